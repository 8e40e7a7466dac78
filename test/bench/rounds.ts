/** Loads the node and its peer in turns, so that both run on the same machine state. */
import { median } from "./line.ts"
import type { Running } from "./process.ts"
import { type Load, type Loaded, wrk } from "./wrk.ts"

const warmUpSeconds = 3
const rounds = 5
const roundSeconds = 4

/** What is loaded: where it answers, and its processor time. */
export type Loadable = Pick<Running, "origin" | "cpuMs">

export type Target = Pick<Load, "script" | "args">

export interface Compared {
  /** Ratio of the node's rate to the peer's: the median of the rounds. */
  readonly ratio: number
  readonly perSecond: number
  readonly peerPerSecond: number
  readonly p99Ms: number
  readonly worstP99Ms: number
  readonly peerP99Ms: number
  /** Processor time of all threads for one request, in µs. */
  readonly cpuUs: number
  readonly peerCpuUs: number
  /** What the peer has answered in all rounds, also before the first that counts. */
  readonly peerRequests: number
}

export interface Round extends Loaded {
  readonly cpuUs: number
}

/** Loads one server once. Fails when it answers nothing, of which there is no ratio. */
export const round = async (server: Loadable, load: Omit<Load, "origin">): Promise<Round> => {
  const beforeMs = server.cpuMs()
  const loaded = await wrk({ ...load, origin: server.origin })
  if (loaded.requests === 0) {
    throw new Error(`${server.origin} answered nothing in ${load.seconds} s`)
  }
  return { ...loaded, cpuUs: (server.cpuMs() - beforeMs) * 1000 / loaded.requests }
}

/**
 * `target` is called for each round, so that no document is deposited twice; `peerTarget`: of a
 * peer with other paths.
 */
export const compare = async (
  node: Loadable,
  peer: Loadable,
  connections: number,
  target: (round: number) => Target,
  peerTarget = target
): Promise<Compared> => {
  const nodes: Array<Round> = []
  const peers: Array<Round> = []
  let peerRequests = 0
  for (let turn = 0; turn <= rounds; turn++) {
    const load = { connections, seconds: turn === 0 ? warmUpSeconds : roundSeconds }
    const byPeer = await round(peer, { ...load, ...peerTarget(turn) })
    const byNode = await round(node, { ...load, ...target(turn) })
    peerRequests += byPeer.requests
    if (turn === 0) continue
    peers.push(byPeer)
    nodes.push(byNode)
  }
  return {
    ratio: median(nodes.map(({ perSecond }, at) => perSecond / (peers[at]?.perSecond ?? 0))),
    perSecond: median(nodes.map(({ perSecond }) => perSecond)),
    peerPerSecond: median(peers.map(({ perSecond }) => perSecond)),
    p99Ms: median(nodes.map(({ p99Ms }) => p99Ms)),
    worstP99Ms: Math.max(...nodes.map(({ p99Ms }) => p99Ms)),
    peerP99Ms: median(peers.map(({ p99Ms }) => p99Ms)),
    cpuUs: median(nodes.map(({ cpuUs }) => cpuUs)),
    peerCpuUs: median(peers.map(({ cpuUs }) => cpuUs)),
    peerRequests
  }
}
