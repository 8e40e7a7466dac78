/**
 * The figures that a node publishes about itself: counts, times and quarantined actors. A node of
 * another version may publish more fields, which are skipped, or figures that cannot be read.
 */
import { Effect, Option, Schema } from "effect"
import { originsMax, quarantinesMax } from "../../limits.ts"
import type { Service } from "../../pipeline/index.ts"

const KindFigures = Schema.Struct({
  kind: Schema.String,
  active: Schema.Number,
  queued: Schema.Number,
  decisions: Schema.Number,
  refusals: Schema.Number,
  restarts: Schema.Number,
  quarantined: Schema.Number
})

const QuarantineFigures = Schema.Struct({
  kind: Schema.String,
  id: Schema.String,
  sinceMs: Schema.Number,
  untilMs: Schema.Number,
  reason: Schema.String
})

/** Deliveries to one origin, or to all. */
export const WaitingFigures = Schema.Struct({
  waiting: Schema.Number,
  inFlight: Schema.Number,
  oldestWaitingMs: Schema.Number
})

const OriginFigures = Schema.Struct({
  ...WaitingFigures.fields,
  origin: Schema.String,
  circuitOpen: Schema.Boolean
})

/** Totals since the start, and the times and sizes of the last groups. */
export const CommitFigures = Schema.Struct({
  groups: Schema.Number,
  commits: Schema.Number,
  failures: Schema.Number,
  conflicts: Schema.Number,
  p50Ms: Schema.optionalKey(Schema.Number),
  p99Ms: Schema.optionalKey(Schema.Number),
  groupSize: Schema.optionalKey(Schema.Number),
  groupSizeMax: Schema.optionalKey(Schema.Number)
})

/** Times are ms since the epoch. */
export const NodeFigures = Schema.Struct({
  version: Schema.String,
  /** The storage engine. Nodes of older versions do not publish it. */
  engine: Schema.optionalKey(Schema.String),
  startedMs: Schema.Number,
  uptimeSeconds: Schema.Number,
  memoryBytes: Schema.Number,
  kinds: Schema.Array(KindFigures),
  /** The oldest quarantines, at most {@link quarantinesMax}. */
  quarantines: Schema.Array(QuarantineFigures),
  timers: Schema.Struct({
    /** Timers in memory: the earliest ones of each shard. */
    known: Schema.Number,
    due: Schema.Number,
    underWay: Schema.Number,
    nextMs: Schema.optionalKey(Schema.Number)
  }),
  commits: CommitFigures,
  deliveries: Schema.Struct({
    ...WaitingFigures.fields,
    circuitsOpen: Schema.Number,
    origins: Schema.Array(OriginFigures)
  })
})

export type NodeFigures = typeof NodeFigures.Type

export type KindFigures = typeof KindFigures.Type

export type QuarantineFigures = typeof QuarantineFigures.Type

export type OriginFigures = typeof OriginFigures.Type

type Snapshot = ReturnType<Service["system"]["snapshot"]>

const kindsOf = ({ metrics, quarantined, activations }: Snapshot): ReadonlyArray<KindFigures> =>
  [...activations].map(([kind, { active, queued }]) => {
    const { decisions, refusals, restarts } = metrics.of(kind)
    const inQuarantine = quarantined.filter(({ address }) => address.kind === kind).length
    return { kind, active, queued, decisions, refusals, restarts, quarantined: inQuarantine }
  })

/** The time rounded to two decimals. */
const rounded = (ms: number): number => Math.round(ms * 100) / 100

const commitsOf = ({ metrics }: Snapshot): NodeFigures["commits"] => {
  const { commits, conflicts, failures, latencyMs, recentMs, recentSizes } = metrics.commits
  const totals = { groups: latencyMs.count, commits, failures, conflicts }
  const p50Ms = recentMs.quantile(0.5)
  const p99Ms = recentMs.quantile(0.99)
  const groupSize = recentSizes.quantile(0.5)
  const groupSizeMax = recentSizes.quantile(1)
  return p50Ms === undefined || p99Ms === undefined || groupSize === undefined ||
      groupSizeMax === undefined
    ? totals
    : { ...totals, p50Ms: rounded(p50Ms), p99Ms: rounded(p99Ms), groupSize, groupSizeMax }
}

/** Collects the figures of this node. */
export const collectNodeFigures = (
  { deliveries, engine, nowMs, settings, system }: Service
): NodeFigures => {
  const snapshot = system.snapshot()
  const { earliestTimerMs, quarantined, timers, timersDue, timersInFlight } = snapshot
  const { circuitsOpen, inFlight, oldestWaitingMs, waiting } = deliveries.metrics()
  const uptimeSeconds = Math.floor(process.uptime())
  const quarantines = [...quarantined].sort((a, b) => a.sinceMs - b.sinceMs)
    .slice(0, quarantinesMax)
  return {
    version: settings.version,
    engine,
    startedMs: nowMs() - Math.round(process.uptime() * 1_000),
    uptimeSeconds,
    memoryBytes: process.memoryUsage.rss(),
    kinds: kindsOf(snapshot),
    quarantines: quarantines.map(({ address, reason, sinceMs, untilMs }) => ({
      kind: address.kind,
      id: address.id,
      sinceMs,
      untilMs,
      reason
    })),
    timers: {
      known: timers,
      due: timersDue,
      underWay: timersInFlight,
      ...earliestTimerMs === undefined ? {} : { nextMs: earliestTimerMs }
    },
    commits: commitsOf(snapshot),
    deliveries: {
      inFlight,
      waiting,
      oldestWaitingMs,
      circuitsOpen,
      origins: deliveries.busiestOrigins(originsMax)
    }
  }
}

const decode = Schema.decodeUnknownOption(NodeFigures)

/** The figures of a text; undefined for one that cannot be read. */
export const readNodeFigures = (text: string): NodeFigures | undefined => {
  try {
    return Option.getOrUndefined(decode(JSON.parse(text)))
  } catch {
    return
  }
}

/** Publishes the figures of this node regularly; the result stops it. */
export const publishNodeFigures = (service: Service): () => void =>
  service.system.nodeStatus.publish(() => JSON.stringify(collectNodeFigures(service)))

/** {@link publishNodeFigures} until the scope closes. */
export const keepPublishingFigures = (service: Service) =>
  Effect.acquireRelease(
    Effect.sync(() => publishNodeFigures(service)),
    (stop) => Effect.sync(stop)
  )

/** The name of a figure in documents: `inFlight` is `in-flight`. */
const documentName = (figure: string): string =>
  figure.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

/** Values of figures by their names in documents. */
export const byDocumentName = <Value>(
  figures: Readonly<Record<string, Value>>
): Readonly<Record<string, Value>> =>
  Object.fromEntries(Object.entries(figures).map(([name, value]) => [documentName(name), value]))
