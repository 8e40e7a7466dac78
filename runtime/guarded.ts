/**
 * The store of a node that may have lost its shards without knowing. A commit of it may land after
 * a later owner has read the actor; that owner then finds out at its next commit only. So what
 * lands when the node's time is over is acknowledged to nobody.
 */
import { Effect } from "effect"
import { StorageUnavailable } from "./errors.ts"
import type { PlacementApi } from "./placement/placement.ts"
import type { StorageApi } from "./ports/storage.ts"

export const guarded = (storage: StorageApi, { inTime }: PlacementApi): StorageApi => ({
  ...storage,
  commit: (group) =>
    Effect.suspend(() =>
      inTime()
        ? Effect.flatMap(
          storage.commit(group),
          // Broken off: whether it was kept is open.
          (outcomes) => inTime() ? Effect.succeed(outcomes) : Effect.interrupt
        )
        : Effect.fail(new StorageUnavailable({ detail: "out of touch with the cluster" }))
    )
})
