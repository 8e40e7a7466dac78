/**
 * Placement: which shards this node owns. Alone it owns them all; in a cluster the owned set
 * follows claims. It is asked for every message, so it answers synchronously.
 */
import { Context, Layer } from "effect"
import { SHARDS } from "../actor/index.ts"
import type { ShardTenure } from "../ports/index.ts"
import { type NodeStatusApi, noNodeStatus } from "./node-status.ts"

/** One node, as its cluster sees it. */
export interface NodeView {
  readonly node: string
  /** New at each start. */
  readonly incarnation: string
  /** It is about to stop and hands its shards over. */
  readonly leaving: boolean
}

/** The cluster, as this node sees it: a hint, which may be a moment old. */
export interface ClusterView {
  readonly self: string
  readonly nodes: ReadonlyArray<NodeView>
  /** The node that holds each shard; undefined while nobody does. */
  readonly owners: ReadonlyArray<string | undefined>
}

export interface PlacementApi {
  /** Whether a message for the shard is to be taken here, now. */
  readonly owns: (shard: number) => boolean
  /**
   * Whether no other node can have taken a shard that this node did not give up. When not, what
   * the store acknowledges is told to nobody: a later owner may not have seen it.
   */
  readonly isLeaseValid: () => boolean
  /**
   * Whether no other node can have taken this shard: it is owned, or is being given up. Not so
   * when the node was out of touch and is back, until it has taken the shard again.
   */
  readonly holdsClaim: (shard: number) => boolean
  /**
   * Calls `taken` for each owned shard, now and whenever one is taken, with the claim where there
   * are other nodes, and `lost` when one is given up: from then on `owns` is false, and the next
   * owner comes once the promise, which never rejects, is resolved. The result stops it.
   */
  readonly follow: (
    taken: (shard: number, held?: ShardTenure) => void,
    lost: (shard: number) => Promise<void>
  ) => () => void
  /**
   * Hands all shards over to the other nodes, for a stop in good order; resolves when they are
   * given up. undefined: there are no others, and this one keeps them until it ends.
   */
  readonly leave: () => Promise<void> | undefined
  readonly view: () => ClusterView
  /** What the nodes tell of themselves, for people. */
  readonly nodeStatus: NodeStatusApi
}

export class Placement extends Context.Service<Placement, PlacementApi>()(
  "restante/runtime/Placement"
) {}

const sole = "sole"

const soleView: ClusterView = {
  self: sole,
  nodes: [{ node: sole, incarnation: sole, leaving: false }],
  owners: Array.from({ length: SHARDS }, () => sole)
}

/** What {@link alone} provides. */
export const ownsAll: PlacementApi = {
  owns: () => true,
  isLeaseValid: () => true,
  holdsClaim: () => true,
  follow: (taken) => {
    for (let shard = 0; shard < SHARDS; shard++) taken(shard)
    return () => {}
  },
  leave: () => undefined,
  view: () => soleView,
  nodeStatus: noNodeStatus
}

/** One node that owns every shard for as long as it runs. */
export const alone: Layer.Layer<Placement> = Layer.succeed(Placement, ownsAll)
