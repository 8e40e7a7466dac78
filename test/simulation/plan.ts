/**
 * The plan of a run: a list of operations and faults, derived from a seed and shrunk by removing
 * parts. The run itself draws only delays and the effects of noise.
 */
import { type ClusterNoise, type Fault, faultOf, noiseOf, pick, quiet, type Random, randomOf,
  rollingRestarts, streamCount, upTo } from "../../runtime/testing/index.ts"

/** The noise of a cluster, and of other services. */
export interface Noise extends ClusterNoise {
  /** Recipients' answers that are replaced by failures. */
  readonly recipients: number
  /** Attempts that get no permit, because their origin is busy. */
  readonly deferrals: number
}

/** An operation of a client on a resource. */
export interface Operation {
  readonly client: number
  /** Earliest time; the operation also waits for the client's previous one. */
  readonly atMs: number
  readonly resource: string
  readonly verb: string
  /** Distinguishes the texts and ids of this operation. */
  readonly mark: number
  /** In [0, 1): determines the choices of the verb. */
  readonly choice: number
  /** How often it is repeated while its outcome is unknown, and at which nodes. */
  readonly nodes: ReadonlyArray<number>
}

/** What the nodes store in: the port's contract with faults, or the real storage of NATS. */
export const storeKinds = ["contract", "jetstream"] as const
export type StoreKind = typeof storeKinds[number]

export interface Plan {
  readonly seed: number
  readonly store: StoreKind
  readonly nodes: number
  /** When faults and noise end; operations under way may then finish. */
  readonly busyMs: number
  readonly noise: Noise
  /** Nodes only drain and restart: then each request must be answered. */
  readonly isCalm: boolean
  /** Timers that wait in one shard from the beginning. */
  readonly waiting: number
  readonly operations: ReadonlyArray<Operation>
  readonly faults: ReadonlyArray<Fault>
}

export interface PlanOptions {
  /** Simulated time with clients and faults. */
  readonly minutes: number
  /** `contract` by default. */
  readonly store?: StoreKind
}

const MINUTE_MS = 60_000
const CLIENTS = 5
/** Operations and faults of one simulated minute. */
const OPERATIONS = 56
const FAULTS = 4.5
/** Leaders lost in one simulated minute besides these, on a simulated JetStream. */
const LEADERS = 3
/** Longest time of such a stream without a leader. */
const LEADERLESS_MS = 4_000
/** Fraction of the runs without noise. */
const CALM = 0.15
/** Fraction of the runs with many waiting timers, and their number. */
const VOLUMES = 0.011
const WAITING = 100_000

const verbs: Readonly<Record<string, ReadonlyArray<string>>> = {
  mailbox: [
    ..."deposit deposit deposit deposit deposit deposit deposit-once deposit-once".split(" "),
    ..."read read read read describe describe remove remove configure configure".split(" ")
  ],
  notification: "send send send describe describe retry delete".split(" "),
  registration: "register register describe describe rotate lift delete".split(" "),
  session: "answer answer answer answer describe describe read delete".split(" "),
  cabinet: "replace replace replace describe describe remove".split(" "),
  content: "overwrite overwrite read read read remove".split(" "),
  customer: "put put put put read read list list remove remove".split(" ")
}

const serviceNoiseOf = (random: Random): Noise => ({
  ...noiseOf(random),
  recipients: random() * 0.7,
  deferrals: upTo(random, 0.2)
})

const leaderLost = (random: Random, atMs: number): Fault => ({
  atMs,
  what: "leader",
  stream: Math.floor(random() * streamCount),
  forMs: Math.round(random() * LEADERLESS_MS)
})

/** Fraction of the changes of one mailbox's settings that remove the mailbox instead. */
const DESTROYED = 0.15

/** Contents of a run; each is published once. */
export const contentsCount = 6

/** Customers of a run, and operations on them in a simulated minute, by clients of their own. */
export const customersCount = 2
const CUSTOMER_OPERATIONS = 24
const CUSTOMER_CLIENTS = 2

/** The number of resources of each kind in a run. */
const resources: ReadonlyArray<readonly [kind: string, count: number, weight: number]> = [
  ["mailbox", 2, 5],
  ["notification", 0, 3],
  ["registration", 3, 2],
  ["session", 2, 3],
  ["cabinet", 1, 2],
  ["content", contentsCount, 3]
]
const weights = resources.reduce((sum, [, , weight]) => sum + weight, 0)

const operationOf = (
  random: Random,
  mark: number,
  atMs: number,
  nodes: number
): Operation => {
  let lot = random() * weights
  const [kind = "mailbox", count = 1] = resources.find(([, , weight]) => (lot -= weight) < 0) ?? []
  const resource = count === 0 ? kind : `${kind}/${Math.floor(random() * count)}`
  const verb = pick(random, verbs[kind] ?? [])
  const isLast = resource === "mailbox/1" && verb === "configure" && random() < DESTROYED
  return {
    client: Math.floor(random() * CLIENTS),
    atMs,
    resource,
    verb: isLast ? "destroy" : verb,
    mark,
    choice: random(),
    nodes: Array.from({ length: 3 }, () => Math.floor(random() * nodes))
  }
}

/** Smaller marks belong to the operations that create resources. */
const FIRST_MARK = 100
const FIRST_PUBLICATION = 10
const CREATED_MS = 3_000

/** One client creates each resource once, at the beginning. */
const creations = (random: Random, nodes: number): ReadonlyArray<Operation> => {
  const names = ["mailbox/0", "mailbox/1", "session/0", "session/1", "cabinet/0"]
  return names.map((resource, mark) => ({
    ...operationOf(random, mark, Math.floor(random() * CREATED_MS), nodes),
    client: mark % CLIENTS,
    resource,
    verb: resource.startsWith("session") ? "start" : "create"
  }))
}

/** Publishes each content once, at any time. */
const publications = (
  random: Random,
  busyMs: number,
  nodes: number
): ReadonlyArray<Operation> =>
  Array.from({ length: contentsCount }, (_, at) => ({
    ...operationOf(random, FIRST_PUBLICATION + at, Math.floor(random() * busyMs / 2), nodes),
    resource: `content/${at}`,
    verb: "publish"
  }))

/** Operations on customers, at any time. */
const customerOperations = (
  seed: number,
  busyMs: number,
  nodes: number
): ReadonlyArray<Operation> => {
  // Numbers of their own, so that the operations on other resources stay as they are.
  const random = randomOf(seed ^ 0xc057)
  const count = Math.round(CUSTOMER_OPERATIONS * busyMs / MINUTE_MS)
  return Array.from({ length: count }, (_, mark) => ({
    ...operationOf(random, mark, Math.floor(random() * busyMs), nodes),
    client: CLIENTS + Math.floor(random() * CUSTOMER_CLIENTS),
    resource: `customer/${Math.floor(random() * customersCount)}`,
    verb: pick(random, verbs["customer"] ?? [])
  }))
}

/** More sessions, each with a client of its own, which answers in order: they reach their end. */
export const crossings: ReadonlyArray<number> = [2, 3, 4, 5]

/** Answers to each of them; some are lost. */
const CROSSING_ANSWERS = 5

/** The operations on these sessions, at any time. */
const crossingOperations = (
  seed: number,
  busyMs: number,
  nodes: number
): ReadonlyArray<Operation> => {
  const random = randomOf(seed ^ 0xb41d)
  return crossings.flatMap((number, at) => {
    const startedMs = Math.floor(random() * busyMs)
    return Array.from({ length: 1 + CROSSING_ANSWERS }, (_, mark) => ({
      ...operationOf(random, mark, startedMs, nodes),
      ...mark === 0 ? {} : { atMs: Math.floor(startedMs + random() * (busyMs - startedMs)) },
      client: CLIENTS + CUSTOMER_CLIENTS + at,
      resource: `session/${number}`,
      verb: mark === 0 ? "start" : "answer",
      choice: 0
    }))
  })
}

/** The plan of a seed. */
export const planOf = (
  seed: number,
  { minutes, store = "contract" }: PlanOptions
): Plan => {
  const random = randomOf(seed ^ 0x5eed)
  const nodes = random() < 0.8 ? 3 : 4
  const busyMs = Math.round(minutes * MINUTE_MS)
  const isCalm = random() < CALM
  const noise = isCalm
    ? { ...quiet, recipients: 0.3, deferrals: 0, delays: 0.02, slowMs: 200 }
    : serviceNoiseOf(random)
  const times = (count: number) =>
    Array.from({ length: Math.round(count * minutes) }, () => Math.floor(random() * busyMs))
      .sort((one, other) => one - other)
  return {
    seed,
    store,
    nodes,
    busyMs,
    noise,
    isCalm,
    // Volumes are tested with the one store: they take long.
    waiting: random() < VOLUMES && store === "contract" ? WAITING : 0,
    operations: [
      ...creations(random, nodes),
      ...[
        ...publications(random, busyMs, nodes),
        ...customerOperations(seed, busyMs, nodes),
        ...crossingOperations(seed, busyMs, nodes),
        ...times(isCalm ? 2 * OPERATIONS : OPERATIONS).map((atMs, at) =>
          operationOf(random, FIRST_MARK + at, atMs, nodes)
        )
      ].sort((one, other) => one.atMs - other.atMs)
    ],
    faults: isCalm
      ? rollingRestarts(random, busyMs, nodes)
      : [
        ...times(FAULTS).map((atMs) => faultOf(random, atMs, nodes)),
        ...times(store === "jetstream" ? LEADERS : 0).map((atMs) => leaderLost(random, atMs))
      ]
  }
}
