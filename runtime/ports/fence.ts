/**
 * The fences of the storage port as a function: what makes a commit conflict with what a store
 * knows of its actor. For backends that check on their own side; it is the contract's reading.
 */
import { keyOf } from "../address.ts"
import { LogConflict, RevisionConflict } from "../errors.ts"
import type { Commit } from "./storage.ts"

/** The conflict of a commit with what is known of its actor; undefined when there is none. */
export const conflictOf = (
  commit: Commit,
  known: { readonly revision: number; readonly head: number }
): RevisionConflict | LogConflict | undefined => {
  const { append, expected, state } = commit
  if (expected !== known.revision) {
    return new RevisionConflict({ key: keyOf(commit.address), expected, actual: known.revision })
  }
  let last = known.head
  for (const { n } of append) {
    // A gap is left only by items that were removed in the commit that would have made them.
    if (n <= last || (state === undefined && n !== last + 1)) {
      return new LogConflict({ key: keyOf(commit.address), item: n })
    }
    last = n
  }
  return undefined
}

/** Throws when a commit asks for what the contract forbids. */
export const assertCommit = (commit: Commit): void => {
  if (commit.remove.length > 0 && commit.state === undefined) {
    throw new TypeError(`${keyOf(commit.address)}: items are removed only with the state`)
  }
}
