/** The cluster as the answering node sees it, with the figures that each node publishes. */
import { Effect } from "effect"
import type { NodeView } from "../../../runtime/index.ts"
import { nodesReadMax } from "../../limits.ts"
import type { Service } from "../../pipeline/index.ts"
import { collectNodeFigures, type NodeFigures, type QuarantineFigures,
  readNodeFigures } from "./node-figures.ts"

export interface ClusterNode extends NodeView {
  /** Whether it is the answering node. */
  readonly isSelf: boolean
  /** Undefined if the node does not answer. */
  readonly figures: NodeFigures | undefined
}

/** The shards of one owner, ascending; `node` is undefined for shards without an owner. */
export interface ShardHolding {
  readonly node: string | undefined
  readonly shards: ReadonlyArray<number>
}

export interface ClusterStatus {
  readonly self: string
  /** The nodes, ordered by name. */
  readonly nodes: ReadonlyArray<ClusterNode>
  /** The owner of each shard. */
  readonly owners: ReadonlyArray<string | undefined>
  /** The node that should own each shard. */
  readonly targets: ReadonlyArray<string | undefined>
  /**
   * The holdings, ordered by the node's name; a node without shards has one too. The shards without
   * an owner come last.
   */
  readonly holdings: ReadonlyArray<ShardHolding>
}

const byName = (a: string, b: string): number => a < b ? -1 : a > b ? 1 : 0

const holdingsOf = (
  names: ReadonlyArray<string>,
  owners: ReadonlyArray<string | undefined>
): ReadonlyArray<ShardHolding> => {
  const shardsOf = new Map<string | undefined, Array<number>>()
  const owningNodes = owners.filter((owner) => owner !== undefined)
  for (const name of [...new Set([...names, ...owningNodes])].sort(byName)) shardsOf.set(name, [])
  for (const [shard, owner] of owners.entries()) {
    const shards = shardsOf.get(owner)
    if (shards === undefined) shardsOf.set(owner, [shard])
    else shards.push(shard)
  }
  return [...shardsOf].map(([node, shards]) => ({ node, shards }))
}

const figuresOf = (service: Service, node: string): Effect.Effect<NodeFigures | undefined> =>
  Effect.map(
    service.system.nodeStatus.read(node),
    (text) => text === undefined ? undefined : readNodeFigures(text)
  )

/** A node that was removed, since it did not answer. */
const silentNode = (node: string): ClusterNode => ({
  node,
  incarnation: "",
  leaving: false,
  isSelf: false,
  figures: undefined
})

/** Reads the status of the cluster; waits for the figures of other nodes, at most one second. */
export const clusterStatus = Effect.fnUntraced(function*(
  service: Service
): Effect.fn.Return<ClusterStatus> {
  const { lost, nodes: members, owners, self, targets } = service.system.cluster()
  const sorted = [...members].sort((a, b) => byName(a.node, b.node))
  const nodes = yield* Effect.forEach(
    sorted,
    (one) => {
      const isSelf = one.node === self
      const reading = isSelf
        ? Effect.sync(() => collectNodeFigures(service))
        : figuresOf(service, one.node)
      return Effect.map(reading, (figures): ClusterNode => ({ ...one, isSelf, figures }))
    },
    { concurrency: nodesReadMax }
  )
  const absent = lost.filter((node) => node !== self && !nodes.some((one) => one.node === node))
  const all = [...nodes, ...absent.map(silentNode)].sort((a, b) => byName(a.node, b.node))
  const holdings = holdingsOf(sorted.map(({ node }) => node), owners)
  return { self, nodes: all, owners, targets, holdings }
})

/** The node that takes a shard over from its owner; undefined for a shard that stays. */
export const receiverOf = (
  { owners, targets }: Pick<ClusterStatus, "owners" | "targets">,
  shard: number
): string | undefined =>
  owners[shard] === undefined || targets[shard] === owners[shard] ? undefined : targets[shard]

/** How many of these shards are in handoff. */
export const countHandoffs = (
  status: Pick<ClusterStatus, "owners" | "targets">,
  shards: Iterable<number> = status.owners.keys()
): number => [...shards].filter((shard) => receiverOf(status, shard) !== undefined).length

/** Shards as text, such as `0-3 7 9-11`. */
export const ranges = (shards: ReadonlyArray<number>): string => {
  const parts: Array<string> = []
  let from: number | undefined
  for (const [at, shard] of shards.entries()) {
    from ??= shard
    if (shards[at + 1] === shard + 1) continue
    parts.push(from === shard ? String(shard) : `${from}-${shard}`)
    from = undefined
  }
  return parts.join(" ")
}

/** All quarantined actors that the nodes list, with their nodes. */
export const quarantinesOf = (
  { nodes }: ClusterStatus
): ReadonlyArray<QuarantineFigures & { readonly node: string }> =>
  nodes.flatMap(({ figures, node }) =>
    (figures?.quarantines ?? []).map((one) => ({ ...one, node }))
  )

/** The number of quarantined actors of the nodes that answer, listed or not. */
export const countQuarantined = (nodes: ReadonlyArray<ClusterNode>): number =>
  nodes.flatMap(({ figures }) => figures?.kinds ?? [])
    .reduce((total, { quarantined }) => total + quarantined, 0)
