/**
 * Guards the store of a node that may have lost its shards without noticing. Its commit may land
 * after a later owner has loaded the actor, and that owner finds out only at its next commit. So a
 * commit that lands when the node no longer holds the shard is acknowledged to nobody. And what was
 * decided before the node lost the shard is not written when the node is back.
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

export const withLeaseGuard = (storage: StorageApi, placement: PlacementApi): StorageApi => {
  if (placement === ownsAll) return storage
  const isHeld = ({ address }: Commit): boolean => placement.holdsClaim(shardOf(address))
  const commit: StorageApi["commit"] = (group) =>
    Effect.flatMap(
      storage.commit(group),
      // Interrupted: the outcome is indeterminate.
      (outcomes) => group.every(isHeld) ? Effect.succeed(outcomes) : Effect.interrupt
    )
  return {
    ...storage,
    commit: (group) =>
      Effect.suspend(() => {
        if (!placement.isLeaseValid()) {
          return Effect.fail(
            new StorageUnavailable({
              detail: "this node's lease has ended: it could not refresh its membership"
            })
          )
        }
        if (group.every(isHeld)) return commit(group)
        const held = group.filter(isHeld)
        return Effect.map(held.length === 0 ? Effect.succeed([]) : commit(held), (outcomes) => {
          const left = [...outcomes]
          return group.map((one) => held.includes(one) ? left.shift() ?? moved(one) : moved(one))
        })
      })
  }
}
