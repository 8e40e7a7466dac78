/**
 * The store of a node that may have lost its shards without knowing. A commit of it may land after
 * a later owner has read the actor; that owner then finds out at its next commit only. So what
 * lands when the shard is not this node's any more is acknowledged to nobody; and what was decided
 * before that is not written when the node is back, and the shard another's.
 */
import { Effect } from "effect"
import { keyOf, RevisionConflict, shardOf, StorageUnavailable } from "../actor/index.ts"
import { ownsAll, type PlacementApi } from "../cluster/index.ts"
import type { Commit, CommitOutcome, StorageApi } from "../ports/index.ts"

/** The actor is another node's: its record is not what was expected, whatever it is. */
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
      // Broken off: whether it was kept is open.
      (outcomes) => group.every(isHeld) ? Effect.succeed(outcomes) : Effect.interrupt
    )
  return {
    ...storage,
    commit: (group) =>
      Effect.suspend(() => {
        if (!placement.isLeaseValid()) {
          return Effect.fail(new StorageUnavailable({ detail: "out of touch with the cluster" }))
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
