/**
 * Placement: which shards this node owns. Alone it owns them all; in a cluster the owned set
 * follows claims. It is asked for every message, so it answers synchronously.
 */
import { Context, Layer } from "effect"
import { SHARDS } from "../address.ts"

export interface PlacementApi {
  readonly owns: (shard: number) => boolean
  /**
   * Calls `taken` for each owned shard, now and whenever one is taken, and `lost` when one is
   * given up; the result stops it.
   */
  readonly follow: (taken: (shard: number) => void, lost: (shard: number) => void) => () => void
}

export class Placement extends Context.Service<Placement, PlacementApi>()(
  "restante/runtime/Placement"
) {}

/** One node that owns every shard for as long as it runs. */
export const alone: Layer.Layer<Placement> = Layer.succeed(Placement, {
  owns: () => true,
  follow: (taken) => {
    for (let shard = 0; shard < SHARDS; shard++) taken(shard)
    return () => {}
  }
})
