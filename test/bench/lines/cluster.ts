/** Nodes on NATS JetStream, compared with JetStream alone in the same run. */
import { readFileSync } from "node:fs"
import { startCluster, startServer } from "../../runtime/nats/servers.ts"
import { atLeast, atMost, type Bench, type Line, median, type Row, thousands,
  withoutTarget } from "../line.ts"
import { openMailboxes } from "../mailboxes.ts"
import { requireNats, type Running, runScript } from "../process.ts"
import { type Loaded, wrk } from "../wrk.ts"
import { nodeOn, pause, shareSettings } from "./cluster-nodes.ts"

const connections = 128
/** Deposits in flight for the rate: as many as the clients of a busy node have. */
const busyConnections = 512
const mailboxes = 100
const rounds = 3
const seconds = 4
const million = 1_000_000
const timers = 100_000
const shards = 256
const withinMs = 60_000

let run = 0
const deposit = (node: Running, connected = connections): Promise<Loaded> =>
  wrk({
    origin: node.origin,
    script: "deposit",
    args: [`cluster${run++}`, "/mailboxes/m", String(mailboxes)],
    connections: connected,
    seconds
  })

const rawRate = async (urls: ReadonlyArray<string>, mode: "single" | "batch"): Promise<number> =>
  Number(await runScript("raw-publish.js", [urls.join(","), mode, String(seconds)]))

/** Deposits through one node, and JetStream alone, in turns. */
const compared = async (
  node: Running,
  urls: ReadonlyArray<string>,
  mode: "single" | "batch",
  { least, mostMs, what }: { what: string; least: number; mostMs: number }
): Promise<ReadonlyArray<Row>> => {
  const loads: Array<Loaded> = []
  const calm: Array<Loaded> = []
  const raws: Array<number> = []
  for (let turn = 0; turn <= rounds; turn++) {
    const raw = await rawRate(urls, mode)
    const load = await deposit(node, busyConnections)
    const other = await deposit(node)
    if (turn === 0) continue
    raws.push(raw)
    loads.push(load)
    calm.push(other)
  }
  const rate = median(loads.map(({ perSecond }) => perSecond))
  const at128 = median(calm.map(({ perSecond }) => perSecond))
  const detail = `${thousands(rate)} of ${thousands(median(raws))} a second; ` +
    `${thousands(at128)} at ${connections} connections`
  const ratio = median(loads.map(({ perSecond }, at) => perSecond / (raws[at] ?? Number.NaN)))
  const p50Ms = median(calm.map(({ p50Ms: each }) => each))
  return [
    atLeast(what, ratio, least, detail),
    atMost(`p50 of these at ${connections} connections`, p50Ms, mostMs, "ms")
  ]
}

const openAll = async (node: Running): Promise<void> => {
  await openMailboxes(node, mailboxes)
}

const alone = async (bench: Bench): Promise<ReadonlyArray<Row>> => {
  const nats = await startServer()
  const node = await nodeOn(bench, shareSettings(bench, "r1", [nats.url]), "r1")
  await openAll(node)
  const rows = await compared(node, [nats.url], "single", {
    what: `deposits through one node at ${busyConnections} connections, of compare-and-set ` +
      "publishes alone, 256 in flight (R1)",
    least: 0.5,
    mostMs: 15
  })
  // The output of the script.
  const { askMs, echoMs } = JSON.parse(
    await runScript("roundtrip.js", [nats.url])
  ) as { askMs: number; echoMs: number }
  await node.stop()
  await nats.close()
  const detail = `${(askMs * 1_000).toFixed(0)} of ${(echoMs * 1_000).toFixed(0)} µs`
  return [...rows, atMost("an ask of another node, of a request", askMs / echoMs, 1.5, "x", detail)]
}

const threeServers = async (bench: Bench): Promise<ReadonlyArray<Row>> => {
  const nats = await startCluster(3)
  const first = await nodeOn(bench, shareSettings(bench, "r3", nats.urls), "r3a")
  await openAll(first)
  const rows = [
    ...await compared(first, nats.urls, "batch", {
      what: `deposits through one node at ${busyConnections} connections, of atomic batches of ` +
        "200 alone (R3)",
      least: 0.6,
      mostMs: 25
    })
  ]
  await first.stop()
  await nats.close()
  return rows
}

const residentMb = (pid: number | undefined): number => {
  const status = readFileSync(`/proc/${pid ?? 0}/status`, "utf8")
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) * 1024 / 1e6
}

const memoryRow = (what: string, megabytes: number): Row =>
  withoutTarget(
    `memory of nats-server for each ${what}, at 1,000,000`,
    `${(megabytes * 1e6 / million).toFixed(0)} bytes`
  )

/** Starts a node without local data, and measures until it owns its shards. */
const takenOverMs = async (bench: Bench, url: string, name: string): Promise<number> => {
  const startedMs = performance.now()
  const node = await nodeOn(bench, shareSettings(bench, name, [url]), name)
  for (;;) {
    const text = await (await fetch(`${node.origin}/metrics`)).text()
    const owned = Number(/^restante_shards_owned (\d+)$/m.exec(text)?.[1])
    if (owned === shards) break
    if (performance.now() - startedMs > withinMs) throw new Error(`${owned} shards are owned`)
    await pause(10)
  }
  const elapsedMs = performance.now() - startedMs
  await node.stop()
  return elapsedMs
}

const filled = async (bench: Bench): Promise<ReadonlyArray<Row>> => {
  const nats = await startServer()
  const fill = (what: string, count: number) =>
    runScript("fill-nats.js", [nats.url, what, String(count)])
  const emptyMb = residentMb(nats.pid)
  await fill("mailboxes", million)
  bench.say("1,000,000 mailboxes stored")
  await nats.restart()
  const mailboxesMb = residentMb(nats.pid) - emptyMb
  const mailboxesMs = await takenOverMs(bench, nats.url, "many")
  await nats.close()

  const other = await startServer()
  await runScript("fill-nats.js", [other.url, "timers", String(timers)])
  const timersMs = await takenOverMs(bench, other.url, "timers")
  const beforeMb = residentMb(other.pid)
  await runScript("fill-nats.js", [other.url, "notifications", String(million)])
  await other.restart()
  const notificationsMb = residentMb(other.pid) - beforeMb
  await other.close()
  const what = `start of a node, and takeover of ${shards} shards`
  return [
    atMost(`${what} with 1,000,000 mailboxes`, mailboxesMs / 1_000, 5, "s"),
    atMost(`${what} with 100,000 timers`, timersMs / 1_000, 5, "s"),
    memoryRow("mailbox", mailboxesMb),
    memoryRow("stored notification", notificationsMb)
  ]
}

export const clustered: Line = {
  name: "cluster",
  run: async (bench) => {
    await requireNats()
    return [...await alone(bench), ...await threeServers(bench), ...await filled(bench)]
  }
}
