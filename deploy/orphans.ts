/** Looks for blobs that a crash left without content. */
import { Effect } from "effect"
import { sweepOrphans } from "../http/content/index.ts"
import type { Service } from "../http/service.ts"
import type { Placement } from "../runtime/index.ts"

/** How often a cluster looks for them. */
const orphansEveryMs = 6 * 3_600_000

/** Removes what a crash left of arriving content. */
export const sweep = (service: Service): Effect.Effect<void> =>
  sweepOrphans(service).pipe(
    Effect.flatMap((orphans) =>
      orphans === 0 ? Effect.void : Effect.logInfo("orphaned blobs removed", { orphans })
    ),
    Effect.catch((failure) => Effect.logWarning("the sweep for orphans broke off", failure))
  )

/** The same in a cluster, every so often, at the node that has the first shard. */
export const sweepAmong = (
  service: Service,
  placement: Placement["Service"]
): Effect.Effect<void> =>
  Effect.suspend(() => placement.owns(0) ? sweep(service) : Effect.void).pipe(
    Effect.delay(orphansEveryMs),
    Effect.forever
  )
