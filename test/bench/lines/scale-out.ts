/**
 * What a further node adds: deposits, reads, relays and sessions over 1, 2 and 3 nodes, on one
 * server and on three, all on this machine; deposits with other numbers of streams as well. Each
 * node has the same number of clients. First without limits, for the processor time of each
 * operation; then with a quarter of a processor for each node, so that the nodes limit the rate.
 */
import { startCluster, startServer } from "../../runtime/nats/servers.ts"
import { atLeast, atMost, type Bench, type Line, median, type Row, thousands,
  withoutTarget } from "../line.ts"
import { authorization, openMailboxes } from "../mailboxes.ts"
import { cpuMsOf, requireNats, type Running } from "../process.ts"
import { limitCpu, releaseCpu } from "../quota.ts"
import { countOf, until } from "../receiver.ts"
import { type Load, wrk } from "../wrk.ts"
import { nodeOn, pause, type SharedSettings, shareSettings } from "./cluster-nodes.ts"

const mailboxes = 100
const rounds = 2
const seconds = 3
/** Rounds at most until a new node has had its first requests. */
const newNodeRoundsMax = 12
const nodesMax = 3
/** Time for a new node's shards to move and settle. */
const settledMs = 8_000
const quotaCores = 0.25
/**
 * A node with a new quota has this part of the first requests before it is measured: other
 * operations have passivated its mailboxes, and it takes many seconds to load them with a quarter
 * of a processor.
 */
const limitedShare = 16

interface Servers {
  readonly urls: ReadonlyArray<string>
  readonly pids: ReadonlyArray<number>
  readonly close: () => Promise<void>
}

const startServers = async (count: number): Promise<Servers> => {
  if (count === 1) {
    const { close, pid, url } = await startServer()
    return { urls: [url], pids: [pid ?? 0], close }
  }
  const { close, processes, urls } = await startCluster(count)
  return { urls, pids: processes.map(({ pid }) => pid ?? 0), close }
}

/** What is measured, and what relays go to. */
interface Cluster {
  readonly name: string
  readonly shared: SharedSettings
  readonly servers: Servers
  readonly receiver: Running
  readonly nodes: Array<Running>
}

/** Counters of the nodes' metrics. */
interface Counters {
  readonly messages: number
  readonly writes: number
  readonly groups: number
}

const countersOf = async (nodes: ReadonlyArray<Running>): Promise<Counters> => {
  const texts = await Promise.all(
    nodes.map(async ({ origin }) => (await fetch(`${origin}/metrics`)).text())
  )
  const sum = (name: string): number =>
    texts.reduce(
      (total, text) => total + Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1]),
      0
    )
  return {
    messages: sum("restante_nats_messages_total"),
    writes: sum("restante_nats_writes_total"),
    groups: sum("restante_commit_groups_total")
  }
}

/** One round over all nodes: operations a second, and what each operation took. */
interface Round {
  /** Operations of all nodes. */
  readonly done: number
  readonly perSecond: number
  readonly nodesUs: number
  readonly serversUs: number
  readonly messages: number
  readonly writes: number
  readonly groups: number
}

interface Operation {
  readonly name: string
  /**
   * The first requests of a new node, by which V8 finds out what to compile. A busy machine takes
   * more time for them, so that no time would do.
   */
  readonly newNodeRequests: number
  /** What wrk requests of each node. */
  readonly load: (cluster: Cluster) => Omit<Load, "origin" | "seconds">
  /** The receiver gets one request for each. */
  readonly isRelay?: boolean
}

let run = 0
const deposit: Operation = {
  name: "deposit",
  newNodeRequests: 40_000,
  load: () => ({
    script: "deposit",
    args: [`scale-out${run++}`, "/mailboxes/m", String(mailboxes)],
    connections: 128
  })
}

const operations: ReadonlyArray<Operation> = [
  deposit,
  {
    name: "read of a mailbox",
    newNodeRequests: 40_000,
    load: ({ shared }) => ({
      script: "get",
      args: ["/mailboxes/m", "", "0", String(mailboxes - 1), authorization(shared.token)],
      connections: 128
    })
  },
  {
    name: "relay",
    newNodeRequests: 2_000,
    load: ({ receiver, shared }) => ({
      script: "outgoing",
      args: [authorization(shared.token), `scale-out${run++}`, `${receiver.origin}/inbox`, "300"],
      connections: 64
    }),
    isRelay: true
  },
  {
    name: "step of a session",
    newNodeRequests: 5_000,
    load: () => ({ script: "walk", connections: 30, threads: 30 })
  }
]

const roundOf = async (
  cluster: Cluster,
  { isRelay = false, load }: Operation
): Promise<Round> => {
  const { nodes, receiver, servers } = cluster
  const cpu = () => ({
    nodes: nodes.reduce((sum, node) => sum + node.cpuMs(), 0),
    servers: servers.pids.reduce((sum, pid) => sum + cpuMsOf(pid), 0)
  })
  const [before, counted, received] = [cpu(), await countersOf(nodes), await countOf(receiver)]
  const startedMs = performance.now()
  const loads = await Promise.all(
    nodes.map(({ origin }) => wrk({ ...load(cluster), origin, seconds }))
  )
  const done = loads.reduce((sum, { requests }) => sum + requests, 0)
  if (isRelay) await until(receiver, received + done)
  const elapsedMs = performance.now() - startedMs
  const [after, counts] = [cpu(), await countersOf(nodes)]
  return {
    done,
    perSecond: done * 1_000 / elapsedMs,
    nodesUs: (after.nodes - before.nodes) * 1_000 / done,
    serversUs: (after.servers - before.servers) * 1_000 / done,
    messages: (counts.messages - counted.messages) / done,
    writes: (counts.writes - counted.writes) / done,
    groups: (counts.groups - counted.groups) / done
  }
}

/** Gives each node so many requests; by default, those that a new one needs. */
const warmUp = async (
  cluster: Cluster,
  operation: Operation,
  requests = operation.newNodeRequests
): Promise<void> => {
  let each = 0
  for (let turn = 0; turn < newNodeRoundsMax && each < requests; turn++) {
    each += (await roundOf(cluster, operation)).done / cluster.nodes.length
  }
}

/** The median of each figure over the rounds. */
const measured = async (cluster: Cluster, operation: Operation): Promise<Round> => {
  const all: Array<Round> = []
  for (let turn = 0; turn < rounds; turn++) all.push(await roundOf(cluster, operation))
  const of = (figure: keyof Round): number => median(all.map((round) => round[figure]))
  return {
    done: of("done"),
    perSecond: of("perSecond"),
    nodesUs: of("nodesUs"),
    serversUs: of("serversUs"),
    messages: of("messages"),
    writes: of("writes"),
    groups: of("groups")
  }
}

/** The rounds of one operation over 1, 2 and 3 nodes, without limits and with. */
interface Measured {
  readonly operation: Operation
  readonly each: Array<Round>
  readonly limited: Array<Round>
}

const figuresOf = ({ groups, messages, nodesUs, perSecond, serversUs, writes }: Round): string =>
  `${thousands(perSecond)} a second, ${nodesUs.toFixed(0)} µs of nodes, ` +
  `${serversUs.toFixed(0)} µs of servers, ${messages.toFixed(2)} messages in ` +
  `${writes.toFixed(2)} writes, ${groups.toFixed(2)} groups`

const described = (each: ReadonlyArray<Round>): string =>
  each.map((round, at) => `${at + 1}: ${figuresOf(round)}`).join("; ")

const rowsOf = (
  { each, limited, operation: { name } }: Measured,
  where: string
): ReadonlyArray<Row> => {
  const [one, , three] = each
  const [oneLimited, twoLimited, threeLimited] = limited
  const ratio = (a: number | undefined, b: number | undefined) => (a ?? NaN) / (b ?? NaN)
  return [
    atMost(
      `processor time of a ${name} on ${where} over three nodes, of one over one node`,
      ratio(three?.nodesUs, one?.nodesUs),
      1.5,
      "x",
      described(each)
    ),
    atLeast(
      `rate of a ${name} on ${where} over two nodes of ${quotaCores} cores each, of one such node`,
      ratio(twoLimited?.perSecond, oneLimited?.perSecond),
      1.6,
      described(limited)
    ),
    atLeast(
      `rate of a ${name} on ${where} over three such nodes, of one`,
      ratio(threeLimited?.perSecond, oneLimited?.perSecond),
      2.2,
      `${thousands(threeLimited?.perSecond ?? NaN)} a second`
    )
  ]
}

const addNode = async (bench: Bench, { name, nodes, shared }: Cluster): Promise<void> => {
  const size = nodes.length
  const node = await nodeOn(bench, shared, `${name}-${size + 1}`)
  if (size === 0) await openMailboxes(node, mailboxes)
  nodes.push(node)
  await pause(settledMs)
}

const measureLimited = async (cluster: Cluster, all: ReadonlyArray<Measured>): Promise<void> => {
  const { nodes } = cluster
  for (const { pid } of nodes) limitCpu(pid, quotaCores)
  try {
    for (const { limited, operation } of all) {
      await warmUp(cluster, operation, operation.newNodeRequests / limitedShare)
      limited.push(await measured(cluster, operation))
    }
  } finally {
    for (const { pid } of nodes) releaseCpu(pid)
  }
}

interface Setup {
  readonly servers: number
  /** The number of streams for actors; undefined: the default. */
  readonly buckets?: number
  readonly operations: ReadonlyArray<Operation>
}

const startSetup = async (
  bench: Bench,
  { buckets, servers: count }: Omit<Setup, "operations">,
  label = "scale-out"
): Promise<Cluster> => {
  const servers = await startServers(count)
  const name = `${label}-${count}-${buckets ?? "default"}`
  const shared = shareSettings(bench, name, servers.urls, buckets)
  const receiver = await bench.peer()
  return { name, shared, servers, receiver, nodes: [] }
}

const stopSetup = async ({ nodes, receiver, servers }: Cluster): Promise<void> => {
  await Promise.all([...nodes, receiver].map((process) => process.stop()))
  await servers.close()
}

/** The rows of a setup, measured over 1, 2 and 3 nodes. */
const measureSetup = async (bench: Bench, setup: Setup): Promise<ReadonlyArray<Row>> => {
  const cluster = await startSetup(bench, setup)
  const { nodes } = cluster
  const all = setup.operations.map((operation): Measured => ({ operation, each: [], limited: [] }))
  const where = setup.servers === 1 ? "one server" : `${setup.servers} servers`
  while (nodes.length < nodesMax) {
    await addNode(bench, cluster)
    for (const { each, operation } of all) {
      await warmUp(cluster, operation)
      each.push(await measured(cluster, operation))
    }
    if (setup.buckets === undefined) await measureLimited(cluster, all)
    bench.say(`${where}: ${all.map(({ each }) => described(each)).join(" | ")}`)
  }
  await stopSetup(cluster)
  return setup.buckets === undefined
    ? all.flatMap((one) => rowsOf(one, where))
    : all.map(({ each, operation: { name } }) =>
      withoutTarget(`${name} on ${where}, streams for actors: ${setup.buckets}`, described(each))
    )
}

/**
 * A deposit where each of as many nodes is alone on a server of its own, and all run beside each
 * other: what a machine with few processors adds to the work of several nodes, cluster or not.
 */
const measureApart = async (bench: Bench): Promise<Row> => {
  const [first, ...others] = await Promise.all(
    Array.from(
      { length: nodesMax },
      (_, at) => startSetup(bench, { servers: 1 }, `apart-${at + 1}`)
    )
  )
  if (first === undefined) throw new Error("there is no node to measure")
  const all = [first, ...others]
  for (const one of all) await addNode(bench, one)
  const pids = all.flatMap(({ servers }) => servers.pids)
  const nodes = all.flatMap((one) => one.nodes)
  const together = { ...first, nodes, servers: { ...first.servers, pids } }
  await warmUp(together, deposit)
  const round = await measured(together, deposit)
  await Promise.all(all.map(stopSetup))
  const what = `deposit through ${nodesMax} nodes that are no cluster, each on a server of its own`
  return withoutTarget(what, figuresOf(round))
}

const setups: ReadonlyArray<Setup> = [
  { servers: 1, operations },
  { servers: 3, operations },
  { servers: 3, buckets: 1, operations: [deposit] },
  { servers: 3, buckets: 8, operations: [deposit] }
]

export const scaleOut: Line = {
  name: "scale-out",
  run: async (bench) => {
    await requireNats()
    const rows = [await measureApart(bench)]
    for (const setup of setups) rows.push(...await measureSetup(bench, setup))
    return rows
  }
}
