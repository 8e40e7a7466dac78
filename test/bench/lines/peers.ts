/**
 * Durable deposits (A2), compared with other stores that take the same documents over HTTP and
 * answer when they are on the disk.
 */
import { rmSync } from "node:fs"
import { atLeast, type Bench, type Line, notMeasured, type Row, thousands,
  withoutTarget } from "../line.ts"
import { openMailboxes } from "../mailboxes.ts"
import { mailboxes, type Peer, startPostgresql, startRedis,
  startRestateMailboxes } from "../peers/servers.ts"
import type { Running } from "../process.ts"
import { compare, type Compared } from "../rounds.ts"

const connectionCounts = [16, 128, 512]

/** The least ratio to PostgreSQL. The goal is 1.5. */
const postgresqlLeast = 1

interface PeerLine {
  readonly name: string
  /** What has happened to a document before its answer. */
  readonly durability: string
  /** The least ratio to it; without one the rows have no target. */
  readonly least?: number
  readonly start: (folder: string) => Promise<Peer>
}

const all: ReadonlyArray<PeerLine> = [
  {
    name: "PostgreSQL",
    durability: "a row with a unique key, grouped inserts, fsync at each commit",
    least: postgresqlLeast,
    start: startPostgresql
  },
  {
    name: "Redis Streams",
    durability: "an entry without a check for repetition, appendfsync always",
    start: startRedis
  },
  {
    name: "Restate",
    durability: "a virtual object's state, flushed log",
    start: startRestateMailboxes
  }
]

const rowOf = (
  { durability, least, name }: PeerLine,
  version: string,
  connections: number,
  figures: Compared
): Row => {
  const { cpuUs, p99Ms, peerCpuUs, peerP99Ms, peerPerSecond, perSecond, ratio } = figures
  const what = `durable deposits at ${connections} connections, of ${name} ${version} ` +
    `(${durability})`
  const detail = `${thousands(perSecond)} of ${thousands(peerPerSecond)} a second; ` +
    `${cpuUs.toFixed(1)} µs of processor time each, the peer's ${peerCpuUs.toFixed(1)} µs, ` +
    `${(cpuUs / peerCpuUs).toFixed(2)} of it; ` +
    `p99 ${p99Ms.toFixed(1)} ms, the peer's ${peerP99Ms.toFixed(1)} ms`
  return least === undefined
    ? withoutTarget(what, `${ratio.toFixed(2)} (${detail})`)
    : atLeast(what, ratio, least, detail)
}

/** A peer that answers before it stores would be worth nothing. */
const verify = async (peer: Peer, answered: number): Promise<void> => {
  const stored = await peer.count()
  if (!(stored >= answered)) {
    throw new Error(`the peer answered ${answered} deposits and has stored ${stored}`)
  }
}

/** Adds a row for each number of connections; fails at the first that cannot be measured. */
const measure = async (
  line: PeerLine,
  node: Running,
  peer: Peer,
  add: (row: Row) => void
): Promise<void> => {
  let answered = 0
  for (const connections of connectionCounts) {
    const text = (round: number) => `${connections}-${round}`
    const figures = await compare(
      node,
      peer,
      connections,
      (round) => ({
        script: "deposit",
        args: [text(round), "/mailboxes/m", String(mailboxes)]
      }),
      (round) => peer.target(text(round))
    )
    answered += figures.peerRequests
    await verify(peer, answered)
    add(rowOf(line, peer.version, connections, figures))
  }
}

/** Both begin with empty folders, which are removed afterwards. */
const besideNode = async (
  bench: Bench,
  line: PeerLine,
  add: (row: Row) => void
): Promise<void> => {
  const names = [`peer-${line.name}`, `node-beside-${line.name}`]
  const [peerFolder = "", nodeFolder = ""] = names.map((name) =>
    bench.folder(name.replaceAll(" ", "-"))
  )
  try {
    const peer = await line.start(peerFolder)
    try {
      const node = await bench.serve(nodeFolder)
      try {
        await openMailboxes(node, mailboxes)
        await measure(line, node, peer, add)
      } finally {
        await node.stop()
      }
    } finally {
      await peer.stop()
    }
  } finally {
    for (const folder of [peerFolder, nodeFolder]) rmSync(folder, { recursive: true, force: true })
  }
}

/** The rows of a peer; one that cannot be had, or whose round fails, is a row with the reason. */
const rowsOf = async (bench: Bench, line: PeerLine): Promise<ReadonlyArray<Row>> => {
  const rows: Array<Row> = []
  const add = (row: Row): void => {
    rows.push(row)
    bench.say(`${line.name}: ${row.measured}`)
  }
  try {
    await besideNode(bench, line, add)
  } catch (error) {
    const { durability, least, name } = line
    const left = connectionCounts.slice(rows.length).join(", ")
    const what = `durable deposits at ${left} connections, of ${name} (${durability})`
    add(notMeasured(what, error, least === undefined ? "none" : `≥ ${least.toFixed(2)}`))
  }
  return rows
}

export const peers: Line = {
  name: "peers",
  run: async (bench) => {
    const rows: Array<Row> = []
    for (const line of all) rows.push(...await rowsOf(bench, line))
    return rows
  }
}
