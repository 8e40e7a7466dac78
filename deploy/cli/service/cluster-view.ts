/** How a running service stands: its `/cluster` as numbers, and rates between two looks. */
import { Effect, Schema } from "effect"
import type { CommandFailed } from "../../command-failure.ts"
import { decodeAs, type RemoteService, request } from "./remote.ts"

const Count = Schema.FiniteFromString

const Optional = Schema.optionalKey(Schema.String)

const Kind = Schema.Struct({
  name: Schema.String,
  active: Count,
  queued: Count,
  decisions: Count,
  restarts: Count,
  quarantined: Count
})

const Node = Schema.Struct({
  name: Schema.String,
  self: Schema.String,
  leaving: Schema.String,
  answers: Schema.String,
  version: Optional,
  "uptime-seconds": Schema.optionalKey(Count),
  "memory-bytes": Schema.optionalKey(Count),
  kinds: Schema.optionalKey(Schema.Struct({ kind: Schema.optionalKey(Schema.Array(Kind)) })),
  timers: Schema.optionalKey(
    Schema.Struct({ known: Count, due: Count, "under-way": Count, next: Optional })
  ),
  commits: Schema.optionalKey(
    Schema.Struct({
      groups: Count,
      commits: Count,
      failures: Count,
      conflicts: Count,
      "p50-ms": Schema.optionalKey(Count),
      "p99-ms": Schema.optionalKey(Count)
    })
  ),
  deliveries: Schema.optionalKey(
    Schema.Struct({ waiting: Count, "in-flight": Count, "circuits-open": Count })
  )
})

const Cluster = Schema.Struct({
  node: Schema.String,
  shards: Count,
  owned: Count,
  nodes: Schema.Struct({ node: Schema.Array(Node) }),
  owners: Schema.optionalKey(Schema.Struct({
    owner: Schema.optionalKey(
      Schema.Array(Schema.Struct({ node: Schema.String, count: Count }))
    )
  }))
})

/** The cluster, as one node sees it. */
export type Cluster = typeof Cluster.Type

type Node = typeof Node.Type

const toCluster = decodeAs(Cluster)

/** Asks one node; it asks the others. */
export const lookAt = (remote: RemoteService): Effect.Effect<Cluster, CommandFailed> =>
  Effect.flatMap(request(remote, { method: "GET", path: "/cluster" }), toCluster)

/** One node in numbers; what it does a second is known from the second look on. */
export interface NodeLine {
  readonly name: string
  readonly state: "up" | "leaving" | "silent"
  readonly uptimeSeconds: number | undefined
  readonly memoryBytes: number | undefined
  readonly shards: number
  readonly actors: number
  readonly queued: number
  readonly quarantined: number
  readonly decisionsPerSecond: number | undefined
  readonly commitsPerSecond: number | undefined
  readonly commitP99Ms: number | undefined
  readonly timersDue: number
  readonly deliveriesWaiting: number
  readonly deliveriesInFlight: number
  readonly circuitsOpen: number
}

const sum = (numbers: ReadonlyArray<number>): number => numbers.reduce((a, b) => a + b, 0)

const kindsOf = ({ kinds }: Node) => kinds?.kind ?? []

const decisionsOf = (node: Node): number => sum(kindsOf(node).map(({ decisions }) => decisions))

const stateOf = ({ answers, leaving }: Node): NodeLine["state"] =>
  answers !== "true" ? "silent" : leaving === "true" ? "leaving" : "up"

/** A count that went backwards is of a process that began anew. */
const perSecond = (
  now: number | undefined,
  before: number | undefined,
  seconds: number
): number | undefined =>
  now === undefined || before === undefined || now < before || seconds <= 0
    ? undefined
    : (now - before) / seconds

/** A line for each node; `before` is the look some seconds ago. */
export const linesOf = (
  now: Cluster,
  before: Cluster | undefined,
  seconds: number
): ReadonlyArray<NodeLine> => {
  const earlier = new Map(before?.nodes.node.map((node) => [node.name, node]))
  const shards = new Map(now.owners?.owner?.map(({ count, node }) => [node, count]))
  return now.nodes.node.map((node): NodeLine => {
    const last = earlier.get(node.name)
    const kinds = kindsOf(node)
    const { commits, deliveries } = node
    return {
      name: node.name,
      state: stateOf(node),
      uptimeSeconds: node["uptime-seconds"],
      memoryBytes: node["memory-bytes"],
      shards: shards.get(node.name) ?? 0,
      actors: sum(kinds.map(({ active }) => active)),
      queued: sum(kinds.map(({ queued }) => queued)),
      quarantined: sum(kinds.map(({ quarantined }) => quarantined)),
      decisionsPerSecond: last && perSecond(decisionsOf(node), decisionsOf(last), seconds),
      commitsPerSecond: perSecond(commits?.commits, last?.commits?.commits, seconds),
      commitP99Ms: commits?.["p99-ms"],
      timersDue: node["timers"]?.due ?? 0,
      deliveriesWaiting: deliveries?.waiting ?? 0,
      deliveriesInFlight: deliveries?.["in-flight"] ?? 0,
      circuitsOpen: deliveries?.["circuits-open"] ?? 0
    }
  })
}

/** Something that an operator should look at. */
export const noticesOf = (
  { owned, shards }: Cluster,
  lines: ReadonlyArray<NodeLine>
): ReadonlyArray<string> => [
  ...owned < shards ? [`${shards - owned} of ${shards} shards have no owner`] : [],
  ...lines.flatMap(({ circuitsOpen, name, quarantined, state }) => [
    ...state === "silent" ? [`${name} does not answer the others`] : [],
    ...quarantined > 0 ? [`${name} has ${quarantined} actors in quarantine: see /cluster`] : [],
    ...circuitsOpen > 0 ? [`${name} leaves ${circuitsOpen} origins alone that do not answer`] : []
  ])
]
