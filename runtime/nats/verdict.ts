/** Whether a commit may be written upon what is known of its actor. */
import { keyOf } from "../address.ts"
import { LogConflict, RevisionConflict } from "../errors.ts"
import type { Commit, Outcome } from "../ports/storage.ts"
import type { ActorEntry } from "./record.ts"

type Conflict = RevisionConflict | LogConflict

export const conflictOf = (entry: ActorEntry, commit: Commit): Conflict | undefined => {
  const { address, append, expected, head, state } = commit
  const key = keyOf(address)
  if (expected !== entry.revision) {
    return new RevisionConflict({ key, expected, actual: entry.revision })
  }
  if (state === null) return undefined
  const first = append[0]?.n
  if (first !== undefined && first <= entry.head) return new LogConflict({ key, item: first })
  // Decided without knowing of items that are there.
  if (state !== undefined && head < entry.head) return new LogConflict({ key, item: head + 1 })
  if (state === undefined && first !== undefined && first > entry.head + 1) {
    return new LogConflict({ key, item: first })
  }
  return undefined
}

/** Another activation has written the state's key, if only to say that it is there. */
export const overtaken = (
  known: ActorEntry,
  fresh: ActorEntry,
  commit: Commit
): Conflict | undefined =>
  conflictOf(fresh, commit) ??
    // The key's mark may have faded, or been purged, after a removal.
    (fresh.seq === known.seq || fresh.seq === 0 ? undefined : new RevisionConflict({
      key: keyOf(commit.address),
      expected: commit.expected,
      actual: fresh.revision
    }))

export const conflict = (conflict: Conflict): Outcome => ({ _tag: "Conflict", conflict })

/**
 * Whether a commit of which no trace is left may have been kept, and written over by who has the
 * actor now. Items stay where they are, and a claim of the state's record keeps its revision: so
 * where the revision is what it was, nothing was kept.
 */
export const mayBeUnder = (
  known: ActorEntry,
  fresh: ActorEntry,
  { append, state }: Commit
): boolean => typeof state === "string" && append.length === 0 && fresh.revision !== known.revision

/** `revision`: of the actor once the commit was kept. */
export const committed = ({ expected, state }: Commit, revision: number): Outcome => ({
  _tag: "Committed",
  revision: state === null ? 0 : state === undefined ? expected : revision
})
