/** The plan of a seed: requests of clients, faults, and noise. Shrinking removes parts. */
import { type Fault, faultOf, noiseOf, quiet, rollingRestarts, upTo } from "../cluster/index.ts"
import { pick, type Random, randomOf } from "../time/index.ts"
import type { Draw, SimulatedRequest, SimulateOptions, SimulationNoise } from "./options.ts"

/** One request of a plan. */
export interface PlannedRequest {
  readonly client: number
  /** Earliest true time, ms; the request also waits for the client's previous one. */
  readonly atMs: number
  /** The nodes of its attempts. */
  readonly nodes: ReadonlyArray<number>
  readonly request: SimulatedRequest
}

export interface SimulationPlan {
  readonly seed: number
  readonly nodes: number
  /** When faults and noise end, ms. */
  readonly busyMs: number
  /** Nodes only drain and restart: then each request must be answered. */
  readonly isCalm: boolean
  readonly noise: SimulationNoise
  readonly faults: ReadonlyArray<Fault>
  readonly operations: ReadonlyArray<PlannedRequest>
}

export const defaults = {
  seeds: 20,
  nodes: 3,
  minutes: 0.5,
  clientCount: 4,
  requestsPerMinute: 60,
  restMs: 30_000
}

const minuteMs = 60_000
/** Makes the plan independent of the random numbers of the run. */
const planSeed = 0x5eed
/** Faults of one simulated minute. */
const faultsPerMinute = 4.5
/** Fraction of the runs without faults, but for restarts in good order. */
const calmFraction = 0.15
/** Highest probability that a call of another service fails. */
const outsideMost = 0.5
/** Probability of delays, and the greatest delay of the store, in calm runs. */
const calmNoise: SimulationNoise = { ...quiet, outside: 0, delays: 0.02, slowMs: 200 }

/** Random choices by a generator. */
export const drawOf = (random: Random): Draw => ({
  number: random,
  below: (count) => Math.floor(random() * count),
  pick: (all) => pick(random, all),
  chance: (probability) => random() < probability
})

const requestsOf = (
  random: Random,
  busyMs: number,
  nodes: number,
  options: Pick<SimulateOptions, "clientCount" | "clients" | "requestsPerMinute">
): ReadonlyArray<PlannedRequest> => {
  const { clientCount = defaults.clientCount, clients } = options
  const { requestsPerMinute = defaults.requestsPerMinute } = options
  const draw = drawOf(random)
  const count = Math.max(1, Math.round(requestsPerMinute * busyMs / minuteMs))
  const times = Array.from({ length: count }, () => Math.floor(random() * busyMs))
    .sort((one, other) => one - other)
  return times.map((atMs, number) => {
    const client = draw.below(clientCount)
    const request = clients(draw, { client, number })
    const attempts = Array.from({ length: request.attempts ?? 1 }, () => draw.below(nodes))
    return { client, atMs, nodes: attempts, request }
  })
}

/** The plan of a seed. */
export const planOf = (
  seed: number,
  options: Pick<
    SimulateOptions,
    "clientCount" | "clients" | "faults" | "minutes" | "nodes" | "noise" | "requestsPerMinute"
  >
): SimulationPlan => {
  const { faults: allowed, minutes = defaults.minutes, nodes = defaults.nodes } = options
  const random = randomOf(seed ^ planSeed)
  const busyMs = Math.round(minutes * minuteMs)
  const isCalm = random() < calmFraction
  const noise = isCalm
    ? calmNoise
    : { ...noiseOf(random), outside: upTo(random, outsideMost) }
  const count = Math.round(faultsPerMinute * minutes)
  const faults = isCalm
    ? rollingRestarts(random, busyMs, nodes)
    : Array.from({ length: count }, () => faultOf(random, Math.floor(random() * busyMs), nodes))
      .sort((one, other) => one.atMs - other.atMs)
  return {
    seed,
    nodes,
    busyMs,
    // A lost message is answered by nobody.
    isCalm: isCalm && (options.noise === undefined),
    noise: { ...noise, ...options.noise },
    faults: faults.filter(({ what }) => allowed === undefined || allowed.includes(what)),
    operations: requestsOf(random, busyMs, nodes, options)
  }
}
