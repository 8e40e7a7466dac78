/** How soon the actors of a killed node answer elsewhere: of three nodes under load, in turn. */
import { startServer } from "../../runtime/nats/servers.ts"
import { atMost, type Bench, type Line, median, type Row } from "../line.ts"
import { openMailboxes } from "../mailboxes.ts"
import { requireNats, type Running } from "../process.ts"
import { nodeOn, pause, shareSettings } from "./cluster-nodes.ts"

const kills = 20
const nodesCount = 3
const mailboxes = 60
/** A deposit without an answer for this time is sent again, as another one. */
const patienceMs = 400
const pollMs = 50
const withinMs = 60_000
/** Time for a new node's shards to move and settle. */
const settledMs = 7_000

let deposits = 0

const document = (): string =>
  `<notification><item><description>${deposits++}</description>` +
  "<url>https://example.org/</url></item></notification>"

/** Whether the mailbox accepts a deposit at this node. */
const accepts = async ({ origin }: Running, mailbox: number): Promise<boolean> => {
  try {
    const { body, status } = await fetch(`${origin}/mailboxes/m${mailbox}`, {
      method: "POST",
      headers: { "Content-Type": "application/xml" },
      body: document(),
      signal: AbortSignal.timeout(patienceMs)
    })
    await body?.cancel()
    return status === 202
  } catch {
    return false
  }
}

/** Deposits at a node until it is stopped; errors do not matter. */
const loadOn = (node: Running): () => Promise<void> => {
  const state = { isOver: false }
  const client = async (mailbox: number): Promise<void> => {
    while (!state.isOver) if (!await accepts(node, mailbox)) await pause(pollMs)
  }
  const all = Promise.all(Array.from({ length: 8 }, (_, at) => client(at)))
  return async () => {
    state.isOver = true
    await all
  }
}

/** Time until every mailbox accepts a deposit at this node. */
const allAcceptMs = async (node: Running): Promise<number> => {
  const startedMs = performance.now()
  await Promise.all(Array.from({ length: mailboxes }, async (_, mailbox) => {
    while (!await accepts(node, mailbox)) {
      if (performance.now() - startedMs > withinMs) throw new Error(`m${mailbox} is not served`)
      await pause(pollMs)
    }
  }))
  return performance.now() - startedMs
}

const seconds = (ms: number): string => (ms / 1_000).toFixed(1)

const rowOf = (times: ReadonlyArray<number>): Row => {
  const sorted = times.toSorted((a, b) => a - b)
  const p95 = sorted[Math.ceil(0.95 * sorted.length) - 1] ?? Number.NaN
  const counts = new Map<number, number>()
  for (const ms of sorted) {
    const half = Math.floor(ms / 500) / 2
    counts.set(half, (counts.get(half) ?? 0) + 1)
  }
  const histogram = [...counts].map(([from, count]) => `${count} in ${from} to ${from + 0.5} s`)
  return atMost(
    `p95 of ${kills} kills: until all actors of a killed node answer elsewhere, under load`,
    p95 / 1_000,
    5,
    "s",
    `median ${seconds(median(sorted))} s, longest ${seconds(sorted.at(-1) ?? Number.NaN)} s; ` +
      histogram.join(", ")
  )
}

const measure = async (bench: Bench): Promise<Row> => {
  const server = await startServer()
  const shared = shareSettings(bench, "takeover", [server.url])
  const nodes: Array<Running> = []
  for (let at = 0; at < nodesCount; at++) nodes.push(await nodeOn(bench, shared, `takeover-${at}`))
  const [first] = nodes
  if (first === undefined) throw new Error("there is no node")
  await openMailboxes(first, mailboxes)
  const times: Array<number> = []
  for (let kill = 0; kill < kills; kill++) {
    await pause(settledMs)
    const [victim] = nodes.splice(0, 1)
    const [survivor] = nodes
    if (victim === undefined || survivor === undefined) throw new Error("there is no node")
    const loads = nodes.map(loadOn)
    await pause(500)
    await victim.stop("SIGKILL")
    const ms = await allAcceptMs(survivor)
    for (const end of loads) await end()
    times.push(ms)
    bench.say(`kill ${kill + 1}: ${seconds(ms)} s`)
    nodes.push(await nodeOn(bench, shared, `takeover-${nodesCount + kill}`))
  }
  await Promise.all(nodes.map((node) => node.stop()))
  await server.close()
  return rowOf(times)
}

export const takeover: Line = {
  name: "takeover",
  run: async (bench) => {
    await requireNats()
    return [await measure(bench)]
  }
}
