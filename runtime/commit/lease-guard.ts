/**
 * Guards the store of a node that may have lost its shards without noticing. The store may keep a
 * commit of this node after a later owner has loaded the actor, and the later owner finds out only
 * at its next commit. So a commit is indeterminate when the store acknowledges it after the node
 * has lost the shard. The other commits of the group keep their outcomes. A node that serves again
 * does not write what it decided before it lost the shard.
 */
import { Effect } from "effect"
import { keyOf, RevisionConflict, shardOf, StorageUnavailable } from "../actor/index.ts"
import { ownsAll, type PlacementApi } from "../cluster/index.ts"
import type { Commit, CommitOutcome, StorageApi } from "../ports/index.ts"

/** The conflict of a commit that this node decided before it lost the shard. */
const moved = ({ address, expected }: Commit): CommitOutcome => ({
  _tag: "Conflict",
  conflict: new RevisionConflict({ key: keyOf(address), expected, actual: Number.NaN })
})

const indeterminate: CommitOutcome = { _tag: "Indeterminate" }

export const withLeaseGuard = (storage: StorageApi, placement: PlacementApi): StorageApi => {
  if (placement === ownsAll) return storage
  const isHeld = ({ address }: Commit): boolean => placement.holdsClaim(shardOf(address))
  const checkHeld = (commit: Commit | undefined, outcome: CommitOutcome): CommitOutcome =>
    outcome._tag === "Committed" && commit !== undefined && !isHeld(commit)
      ? indeterminate
      : outcome
  const commitHeld: StorageApi["commit"] = (group, report) =>
    Effect.map(
      storage.commit(group, report && ((at, outcome) => report(at, checkHeld(group[at], outcome)))),
      (outcomes) => outcomes.map((outcome, at) => checkHeld(group[at], outcome))
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
