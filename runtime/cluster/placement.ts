/**
 * Placement: which shards this node owns. A single node owns all shards; in a cluster, claims
 * determine the owners. The node checks ownership for every message, so `owns` is synchronous.
 */
import { Context, Layer } from "effect"
import { SHARDS } from "../actor/index.ts"
import type { ShardTenure } from "../ports/index.ts"
import { type NodeStatusApi, noNodeStatus } from "./node-status.ts"

/** One node of a cluster. */
export interface NodeView {
  readonly node: string
  /** New at each start. */
  readonly incarnation: string
  /** The node will stop, and hands over its shards. */
  readonly leaving: boolean
}

/** The cluster, as this node last observed it: a hint. */
export interface ClusterView {
  readonly self: string
  readonly nodes: ReadonlyArray<NodeView>
  /** The node that owns each shard; undefined while no node does. */
  readonly owners: ReadonlyArray<string | undefined>
  /**
   * The node that should own each shard; undefined while no node may take shards. The shard is in
   * handoff while another node owns it.
   */
  readonly targets: ReadonlyArray<string | undefined>
  /** Nodes that did not answer, and whose membership ended within the last minutes. */
  readonly lost: ReadonlyArray<string>
}

/** Which shards a node owns, as {@link Placement} provides it. */
export interface PlacementApi {
  /** Whether this node accepts messages for the shard now. */
  readonly owns: (shard: number) => boolean
  /**
   * Whether no other node can have taken a shard that this node has not released. If not, the node
   * reports no commit as done, because a later owner may have decided without it.
   */
  readonly isLeaseValid: () => boolean
  /**
   * The number of the claim by which this node owns or releases the shard: no other node can have
   * taken it. undefined without a valid lease, and after the node lost the shard. It is another
   * number once the node has claimed the shard again.
   */
  readonly heldClaim: (shard: number) => number | undefined
  /**
   * Resolves once it is known whether the lease continues: at once if it is valid. A process that
   * stood still has no valid lease until others have answered that they did not remove the node.
   */
  readonly awaitLeaseDecision: () => Promise<void>
  /**
   * Calls `taken` for each owned shard, now and whenever the node takes one; in a cluster with its
   * tenure. Calls `lost` when the node gives up a shard: from then on `owns` is false. The next
   * node may take the shard when the promise resolves; it never rejects. The result stops it.
   */
  readonly follow: (
    taken: (shard: number, tenure?: ShardTenure) => void,
    lost: (shard: number) => Promise<void>
  ) => () => void
  /**
   * Hands over all shards before an orderly stop; resolves when they are released. undefined: there
   * is no other node, so this one owns its shards until it ends.
   */
  readonly leave: () => Promise<void> | undefined
  /**
   * The newest format that every member of the cluster reads; undefined for a single node, which
   * writes the newest format of its program.
   */
  readonly format: () => number | undefined
  /** The nodes and the owner of each shard, as this node last observed them. */
  readonly view: () => ClusterView
  /** The status of each node, for people. */
  readonly nodeStatus: NodeStatusApi
}

/**
 * Decides which shards a node owns: all of them (`singleNodePlacement`), or its part of a cluster
 * (`clusterPlacement`).
 */
export class Placement extends Context.Service<Placement, PlacementApi>()(
  "restante/runtime/Placement"
) {}

const sole = "sole"

const allSole: ReadonlyArray<string> = Array.from({ length: SHARDS }, () => sole)

const soleView: ClusterView = {
  self: sole,
  nodes: [{ node: sole, incarnation: sole, leaving: false }],
  owners: allSole,
  targets: allSole,
  lost: []
}

/** The placement of a single node. */
export const ownsAll: PlacementApi = {
  owns: () => true,
  isLeaseValid: () => true,
  heldClaim: () => 0,
  awaitLeaseDecision: () => Promise.resolve(),
  follow: (taken) => {
    for (let shard = 0; shard < SHARDS; shard++) taken(shard)
    return () => {}
  },
  leave: () => undefined,
  format: () => undefined,
  view: () => soleView,
  nodeStatus: noNodeStatus
}

/** One node that owns every shard for as long as it runs. */
export const singleNodePlacement: Layer.Layer<Placement> = Layer.succeed(Placement, ownsAll)
