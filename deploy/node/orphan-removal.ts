/** The removal of orphaned blobs, for as long as a node runs. */
import { Effect } from "effect"
import { collectBlobs, type Service } from "../../http/index.ts"
import { logFailure, type Placement } from "../../runtime/index.ts"
import { orphanSweepIntervalMs } from "../limits.ts"

const removeOrphans = (service: Service): Effect.Effect<void> =>
  logFailure(
    Effect.flatMap(collectBlobs(service), (collected) =>
      collected.removed + collected.unanswered === 0
        ? Effect.void
        : Effect.logInfo("orphaned blobs removed", collected)),
    "the removal of orphaned blobs failed"
  )

/**
 * Removes orphaned blobs: once at the start on an embedded store. In a cluster the node that owns
 * the first shard removes them at intervals.
 */
export const orphanRemoval = (
  isClustered: boolean,
  service: Service,
  placement: Pick<Placement["Service"], "owns">
): Effect.Effect<void> =>
  !isClustered
    ? removeOrphans(service)
    : Effect.suspend(() => placement.owns(0) ? removeOrphans(service) : Effect.void).pipe(
      Effect.delay(orphanSweepIntervalMs),
      Effect.forever
    )
