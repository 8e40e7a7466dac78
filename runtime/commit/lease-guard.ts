/**
 * Guards the store of a node that may have lost its shards without noticing. Its commit may land
 * after a later owner has loaded the actor, and that owner finds out only at its next commit. So a
 * commit that lands when the node no longer holds its shard is indeterminate; other members of its
 * group are not concerned. And what was decided before the node lost the shard is not written when
 * the node is back.
 */
import { Effect } from "effect"
import { keyOf, RevisionConflict, shardOf, StorageUnavailable } from "../actor/index.ts"
import { ownsAll, type PlacementApi } from "../cluster/index.ts"
import type { Commit, CommitOutcome, StorageApi } from "../ports/index.ts"

/** Another node owns the actor: whatever its record is, it is not the expected one. */
const moved = ({ address, expected }: Commit): CommitOutcome => ({
  _tag: "Conflict",
  conflict: new RevisionConflict({ key: keyOf(address), expected, actual: Number.NaN })
})

const indeterminate: CommitOutcome = { _tag: "Indeterminate" }

export const withLeaseGuard = (storage: StorageApi, placement: PlacementApi): StorageApi => {
  if (placement === ownsAll) return storage
  const isHeld = ({ address }: Commit): boolean => placement.holdsClaim(shardOf(address))
  const landed = (commit: Commit | undefined, outcome: CommitOutcome): CommitOutcome =>
    outcome._tag === "Committed" && commit !== undefined && !isHeld(commit)
      ? indeterminate
      : outcome
  const commitHeld: StorageApi["commit"] = (group, report) =>
    Effect.map(
      storage.commit(group, report && ((at, outcome) => report(at, landed(group[at], outcome)))),
      (outcomes) => outcomes.map((outcome, at) => landed(group[at], outcome))
    )
  return {
    ...storage,
    commit: (group, report) =>
      Effect.suspend(() => {
        if (!placement.isLeaseValid()) {
          return Effect.fail(
            new StorageUnavailable({
              detail: "this node's lease has ended: it could not refresh its membership"
            })
          )
        }
        if (group.every(isHeld)) return commitHeld(group, report)
        const held = group.flatMap((commit, at) => isHeld(commit) ? [at] : [])
        const members = held.flatMap((at) => group[at] ?? [])
        const outcomes = group.map((one) => isHeld(one) ? indeterminate : moved(one))
        if (members.length === 0) return Effect.succeed(outcomes)
        const reportHeld = report &&
          ((at: number, outcome: CommitOutcome) => report(held[at] ?? Number.NaN, outcome))
        return Effect.map(commitHeld(members, reportHeld), (found) => {
          found.forEach((outcome, at) => outcomes[held[at] ?? Number.NaN] = outcome)
          return outcomes
        })
      })
  }
}
