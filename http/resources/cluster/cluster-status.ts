/** The whole cluster as the node that answers sees it, with what each node tells of itself. */
import { Effect } from "effect"
import type { NodeView } from "../../../runtime/index.ts"
import { nodesReadMax } from "../../limits.ts"
import type { Service } from "../../pipeline/index.ts"
import { collectNodeFigures, type NodeFigures, type QuarantineFigures,
  readNodeFigures } from "./node-figures.ts"

export interface ClusterNode extends NodeView {
  /** It is the node that answers. */
  readonly isSelf: boolean
  /** undefined: it does not answer. */
  readonly figures: NodeFigures | undefined
}

/** The shards of one holder, ascending; those that nobody holds have none. */
export interface ShardHolding {
  readonly node: string | undefined
  readonly shards: ReadonlyArray<number>
}

export interface ClusterStatus {
  readonly self: string
  /** By name. */
  readonly nodes: ReadonlyArray<ClusterNode>
  /** The holder of each shard. */
  readonly owners: ReadonlyArray<string | undefined>
  /** By name; a node that holds nothing too; last what nobody holds, if there is any. */
  readonly holdings: ReadonlyArray<ShardHolding>
}

const byName = (a: string, b: string): number => a < b ? -1 : a > b ? 1 : 0

const holdingsOf = (
  names: ReadonlyArray<string>,
  owners: ReadonlyArray<string | undefined>
): ReadonlyArray<ShardHolding> => {
  const held = new Map<string | undefined, Array<number>>()
  const holders = owners.filter((owner) => owner !== undefined)
  for (const name of [...new Set([...names, ...holders])].sort(byName)) held.set(name, [])
  for (const [shard, owner] of owners.entries()) {
    const shards = held.get(owner)
    if (shards === undefined) held.set(owner, [shard])
    else shards.push(shard)
  }
  return [...held].map(([node, shards]) => ({ node, shards }))
}

const figuresOf = (service: Service, node: string): Effect.Effect<NodeFigures | undefined> =>
  Effect.map(
    service.system.nodeStatus.read(node),
    (text) => text === undefined ? undefined : readNodeFigures(text)
  )

/** How the cluster stands; it waits for what other nodes tell, for a second at most. */
export const clusterStatus = Effect.fnUntraced(function*(
  service: Service
): Effect.fn.Return<ClusterStatus> {
  const { nodes: known, owners, self } = service.system.cluster()
  const named = [...known].sort((a, b) => byName(a.node, b.node))
  const nodes = yield* Effect.forEach(
    named,
    (one) => {
      const isSelf = one.node === self
      const figures = isSelf
        ? Effect.sync(() => collectNodeFigures(service))
        : figuresOf(service, one.node)
      return Effect.map(figures, (told): ClusterNode => ({ ...one, isSelf, figures: told }))
    },
    { concurrency: nodesReadMax }
  )
  return { self, nodes, owners, holdings: holdingsOf(named.map(({ node }) => node), owners) }
})

/** `0-3 7 9-11`. */
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

/** Every actor that is told to rest, with its node. */
export const quarantinesOf = (
  { nodes }: ClusterStatus
): ReadonlyArray<QuarantineFigures & { readonly node: string }> =>
  nodes.flatMap(({ figures, node }) =>
    (figures?.quarantines ?? []).map((one) => ({ ...one, node }))
  )
