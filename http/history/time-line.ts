/**
 * What happened to the cluster, as this node saw it: the differences of two observations. So an
 * event that ends between two observations is not seen.
 */
import type { Address, ClusterView, NodeView, SystemApi } from "../../runtime/index.ts"
import { quarantineEventsMax } from "../limits.ts"

/** What a node sees of the cluster at one time. */
export interface Observation {
  readonly cluster: ClusterView
  /** The actors of this node that are in quarantine, and why. */
  readonly quarantined: ReadonlyArray<{ readonly address: Address; readonly reason: string }>
  /** False while the connection to NATS is lost; true where there is none. */
  readonly isConnected: boolean
}

/** An event of the time line; `node` is the one that it is about. */
export type ClusterEvent =
  | {
    /** `removed`: it did not answer, and the others ended its membership. */
    readonly type: "joined" | "restarted" | "leaving" | "left" | "removed"
    readonly node: string
  }
  /** `node` took `count` shards; `from` is their owner before, if they had one. */
  | {
    readonly type: "took"
    readonly node: string
    readonly from: string | undefined
    readonly count: number
  }
  /** `count` shards of `node` have no owner. */
  | { readonly type: "lost"; readonly node: string; readonly count: number }
  | {
    readonly type: "quarantined"
    readonly node: string
    readonly actor: string
    readonly reason: string
  }
  /** The quarantine of the actor has ended, or its shard is at another node. */
  | { readonly type: "lifted"; readonly node: string; readonly actor: string }
  | { readonly type: "disconnected" | "connected"; readonly node: string }

type EventType = ClusterEvent["type"]

const shardCount = (count: number): string => count === 1 ? "1 shard" : `${count} shards`

const eventTexts: {
  readonly [Type in EventType]: (
    event: Extract<ClusterEvent, { readonly type: Type }>
  ) => string
} = {
  joined: ({ node }) => `node ${node} joined`,
  restarted: ({ node }) => `node ${node} started again`,
  leaving: ({ node }) => `node ${node} is stopping, and hands its shards over`,
  // Whether it has stopped or was killed meanwhile is not known.
  left: ({ node }) => `node ${node} is no longer a member`,
  removed: ({ node }) => `node ${node} did not answer, and is no longer a member`,
  took: ({ count, from, node }) =>
    `node ${node} took ${shardCount(count)}${from === undefined ? "" : ` of node ${from}`}`,
  lost: ({ count, node }) => `${shardCount(count)} of node ${node} have no owner`,
  quarantined: ({ actor, reason }) => `the actor ${actor} is in quarantine: ${reason}`,
  lifted: ({ actor }) => `the quarantine of the actor ${actor} ended, or its shard moved`,
  disconnected: ({ node }) => `node ${node} lost its connection to NATS`,
  connected: ({ node }) => `node ${node} is connected to NATS again`
}

/** What happened, in words. */
export const eventText = <Type extends EventType>(
  event: Extract<ClusterEvent, { readonly type: Type }>
): string => eventTexts[event.type](event)

const byName = (nodes: ReadonlyArray<NodeView>): ReadonlyMap<string, NodeView> =>
  new Map(nodes.map((one) => [one.node, one]))

const membershipEvents = (
  before: ClusterView,
  after: ClusterView
): ReadonlyArray<ClusterEvent> => {
  const [old, now] = [byName(before.nodes), byName(after.nodes)]
  const ended = before.nodes.filter(({ node }) => !now.has(node)).map(
    ({ node }): ClusterEvent => ({ type: after.lost.includes(node) ? "removed" : "left", node })
  )
  const changed = after.nodes.flatMap(({ incarnation, leaving, node }): Array<ClusterEvent> => {
    const earlier = old.get(node)
    if (earlier === undefined) return [{ type: "joined", node }]
    if (earlier.incarnation !== incarnation) return [{ type: "restarted", node }]
    return leaving && !earlier.leaving ? [{ type: "leaving", node }] : []
  })
  return [...ended, ...changed]
}

/** The shards that have changed their owner, in one event for each pair of owners. */
const shardEvents = (before: ClusterView, after: ClusterView): ReadonlyArray<ClusterEvent> => {
  const moved = new Map<
    string,
    { from: string | undefined; to: string | undefined; count: number }
  >()
  for (const [shard, to] of after.owners.entries()) {
    const from = before.owners[shard]
    if (from === to) continue
    const key = JSON.stringify([from, to])
    const counted = moved.get(key) ?? { from, to, count: 0 }
    counted.count += 1
    moved.set(key, counted)
  }
  return [...moved.values()].flatMap(({ count, from, to }): Array<ClusterEvent> => {
    if (to !== undefined) return [{ type: "took", node: to, from, count }]
    return from === undefined ? [] : [{ type: "lost", node: from, count }]
  })
}

const actorOf = ({ id, kind }: Address): string => `${kind}/${id}`

const quarantineEvents = (before: Observation, after: Observation): ReadonlyArray<ClusterEvent> => {
  const node = after.cluster.self
  const namesOf = ({ quarantined }: Observation) =>
    new Set(quarantined.map(({ address }) => actorOf(address)))
  const [old, now] = [namesOf(before), namesOf(after)]
  const begun = after.quarantined
    .map(({ address, reason }) => ({ actor: actorOf(address), reason }))
    .filter(({ actor }) => !old.has(actor))
    .map((one): ClusterEvent => ({ type: "quarantined", node, ...one }))
  const ended = [...old].filter((actor) => !now.has(actor))
    .map((actor): ClusterEvent => ({ type: "lifted", node, actor }))
  // Many at once would leave no room for other events; `/cluster` counts all of them.
  return [...begun.slice(0, quarantineEventsMax), ...ended.slice(0, quarantineEventsMax)]
}

const connectionEvents = (before: Observation, after: Observation): ReadonlyArray<ClusterEvent> =>
  before.isConnected === after.isConnected
    ? []
    : [{ type: after.isConnected ? "connected" : "disconnected", node: after.cluster.self }]

/** What has happened between two observations. */
export const eventsBetween = (
  before: Observation,
  after: Observation
): ReadonlyArray<ClusterEvent> => [
  ...connectionEvents(before, after),
  ...membershipEvents(before.cluster, after.cluster),
  ...shardEvents(before.cluster, after.cluster),
  ...quarantineEvents(before, after)
]

/** What this node sees now. */
export const observationOf = (
  system: Pick<SystemApi, "cluster" | "snapshot">
): Observation => {
  const { quarantined, traffic } = system.snapshot()
  return {
    cluster: system.cluster(),
    quarantined,
    isConnected: traffic?.isConnected ?? true
  }
}
