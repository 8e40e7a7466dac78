/**
 * What a further node adds: deposits and sessions over 1, 2 and 3 nodes, on one server and on
 * three, all on this machine. First without limits, for the processor time of each operation;
 * then with a quarter of a processor for each node, so that the nodes limit the rate.
 */
import { startCluster, startServer } from "../../runtime/nats/servers.ts"
import { atLeast, atMost, type Bench, type Line, median, type Row, thousands } from "../line.ts"
import { openMailbox } from "../mailboxes.ts"
import { cpuMsOf, requireNats, type Running } from "../process.ts"
import { limitCpu, releaseCpu } from "../quota.ts"
import { type Load, wrk } from "../wrk.ts"
import { nodeOn, pause, shareSettings } from "./cluster-nodes.ts"

const connections = 128
const mailboxes = 100
const rounds = 3
const seconds = 4
const nodesMax = 3
/** Time for a new node's shards to move and settle. */
const settledMs = 8_000
const quotaCores = 0.25

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

/** Counters of a node's metrics. */
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
  readonly perSecond: number
  readonly nodesUs: number
  readonly serversUs: number
  readonly messages: number
  readonly writes: number
  readonly groups: number
}

type Operation = () => Omit<Load, "origin" | "seconds">

let run = 0
/** What wrk requests, by the name of the operation. */
const operations: Readonly<Record<string, Operation>> = {
  deposit: () => ({
    script: "deposit",
    args: [`scale-out${run++}`, "/mailboxes/m", String(mailboxes)],
    connections
  }),
  "step of a session": () => ({ script: "walk", connections: 30, threads: 30 })
}

const roundOf = async (
  nodes: ReadonlyArray<Running>,
  servers: Servers,
  operation: Operation
): Promise<Round> => {
  const cpu = () => ({
    nodes: nodes.reduce((sum, node) => sum + node.cpuMs(), 0),
    servers: servers.pids.reduce((sum, pid) => sum + cpuMsOf(pid), 0)
  })
  const [before, counted] = [cpu(), await countersOf(nodes)]
  const loads = await Promise.all(nodes.map((node) => {
    const load = operation()
    const each = Math.max(1, Math.floor(load.connections / nodes.length))
    const threads = Math.min(load.threads ?? 1, each)
    return wrk({ ...load, origin: node.origin, connections: each, threads, seconds })
  }))
  const [after, counts] = [cpu(), await countersOf(nodes)]
  const done = loads.reduce((sum, { requests }) => sum + requests, 0)
  return {
    perSecond: done / seconds,
    nodesUs: (after.nodes - before.nodes) * 1_000 / done,
    serversUs: (after.servers - before.servers) * 1_000 / done,
    messages: (counts.messages - counted.messages) / done,
    writes: (counts.writes - counted.writes) / done,
    groups: (counts.groups - counted.groups) / done
  }
}

/** The median of each figure over the rounds, after one that warms up. */
const measured = async (...args: Parameters<typeof roundOf>): Promise<Round> => {
  const all: Array<Round> = []
  for (let turn = 0; turn <= rounds; turn++) {
    const round = await roundOf(...args)
    if (turn > 0) all.push(round)
  }
  const of = (figure: keyof Round): number => median(all.map((round) => round[figure]))
  return {
    perSecond: of("perSecond"),
    nodesUs: of("nodesUs"),
    serversUs: of("serversUs"),
    messages: of("messages"),
    writes: of("writes"),
    groups: of("groups")
  }
}

const described = (each: ReadonlyArray<Round>): string =>
  each.map(({ groups, messages, nodesUs, perSecond, serversUs, writes }, at) =>
    `${at + 1}: ${thousands(perSecond)} a second, ${nodesUs.toFixed(0)} µs of nodes, ` +
    `${serversUs.toFixed(0)} µs of servers, ${messages.toFixed(2)} messages in ` +
    `${writes.toFixed(2)} writes, ${groups.toFixed(2)} groups`
  ).join("; ")

/** The rows of one operation, whose figures are for 1, 2 and 3 nodes. */
const rowsOf = (
  what: string,
  each: ReadonlyArray<Round>,
  limited: ReadonlyArray<Round>
): ReadonlyArray<Row> => {
  const [one, , three] = each
  const [oneLimited, twoLimited, threeLimited] = limited
  const ratio = (a: number | undefined, b: number | undefined) => (a ?? NaN) / (b ?? NaN)
  return [
    atMost(
      `processor time of a ${what} over three nodes, of one over one node`,
      ratio(three?.nodesUs, one?.nodesUs),
      1.5,
      "x",
      described(each)
    ),
    atLeast(
      `rate of a ${what} over two nodes of ${quotaCores} cores each, of one such node`,
      ratio(twoLimited?.perSecond, oneLimited?.perSecond),
      1.6,
      described(limited)
    ),
    atLeast(
      `rate of a ${what} over three such nodes, of one`,
      ratio(threeLimited?.perSecond, oneLimited?.perSecond),
      2.2,
      `${thousands(threeLimited?.perSecond ?? NaN)} a second`
    )
  ]
}

const fill = async (node: Running): Promise<void> => {
  for (let at = 0; at < mailboxes; at++) await openMailbox(node, `m${at}`)
}

/** The figures of all operations for 1, 2 and 3 nodes. */
const onServers = async (bench: Bench, count: number): Promise<ReadonlyArray<Row>> => {
  const servers = await startServers(count)
  const shared = shareSettings(bench, `scale-out-${count}`, servers.urls)
  const all = Object.entries(operations).map(([name, operation]) => ({
    name,
    operation,
    each: new Array<Round>(),
    limited: new Array<Round>()
  }))
  const nodes: Array<Running> = []
  for (let size = 1; size <= nodesMax; size++) {
    const node = await nodeOn(bench, shared, `scale-out-${count}-${size}`)
    nodes.push(node)
    if (size === 1) await fill(node)
    await pause(settledMs)
    for (const { each, operation } of all) each.push(await measured(nodes, servers, operation))
    for (const { pid } of nodes) limitCpu(pid, quotaCores)
    for (const { limited, operation } of all) {
      limited.push(await measured(nodes, servers, operation))
    }
    for (const { pid } of nodes) releaseCpu(pid)
    bench.say(`${count} servers: ${all.map(({ each }) => described(each)).join(" | ")}`)
  }
  await Promise.all(nodes.map((node) => node.stop()))
  await servers.close()
  const where = count === 1 ? "one server" : `${count} servers`
  return all.flatMap(({ each, limited, name }) => rowsOf(`${name} on ${where}`, each, limited))
}

export const scaleOut: Line = {
  name: "scale-out",
  run: async (bench) => {
    await requireNats()
    return [...await onServers(bench, 1), ...await onServers(bench, 3)]
  }
}
