/** What this node remembers: samples of its figures for an hour, and the last events. */
import { Effect } from "effect"
import type { SystemApi } from "../../runtime/index.ts"
import { eventsMax, observationMs, quarantineEventsKeptMax, sampleMs, samplesMax,
  viewSettlesMs } from "../limits.ts"
import { type Reading, readingOf, type ReadingSources, type Sample, sampleOf } from "./sample.ts"
import { type ClusterEvent, eventsBetween, eventText, type Observation,
  observationOf } from "./time-line.ts"

/** An event with the time of day at which this node saw it, ms since the epoch. */
export type SeenEvent = ClusterEvent & { readonly atMs: number }

interface HistorySources extends ReadingSources {
  readonly system: Pick<SystemApi, "cluster" | "snapshot">
}

/** The last `max` items of a list that grows at its end. */
const lastOf = <Item>(items: ReadonlyArray<Item>, max: number): ReadonlyArray<Item> =>
  items.length > max ? items.slice(-max) : items

/** Many actors can break at once, such as by a fault of the disk. */
const quarantineEvents: ReadonlySet<ClusterEvent["type"]> = new Set(["lifted", "quarantined"])

/** The log has these with their causes, from where they happen. */
const loggedElsewhere: ReadonlySet<ClusterEvent["type"]> = new Set([
  "connected",
  "disconnected",
  ...quarantineEvents
])

export class NodeHistory {
  private readonly sources: HistorySources
  /** Those of the last sample and the last look; undefined before the first one. */
  private reading: Reading | undefined
  private observation: Observation | undefined
  /** Until when the cluster is not compared, by the monotonic clock. */
  private unsettledUntilMs = -Infinity
  private kept: ReadonlyArray<Sample> = []
  /** Those of nodes and shards; a wave of quarantines must not displace them. */
  private seen: ReadonlyArray<SeenEvent> = []
  private seenQuarantines: ReadonlyArray<SeenEvent> = []

  constructor(sources: HistorySources) {
    this.sources = sources
  }

  /** The samples, the oldest first, every {@link sampleMs}. */
  get samples(): ReadonlyArray<Sample> {
    return this.kept
  }

  /** The time line, the oldest event first. */
  get events(): ReadonlyArray<SeenEvent> {
    return [...this.seen, ...this.seenQuarantines].toSorted((a, b) => a.atMs - b.atMs)
  }

  /** Looks for events, and takes a sample when it is due. Returns the new events. */
  observe(): ReadonlyArray<ClusterEvent> {
    const { sources } = this
    const observation = this.look()
    const events = eventsBetween(this.observation ?? observation, observation)
    this.add(events)
    this.observation = observation
    if (this.reading === undefined) this.reading = readingOf(sources)
    else if (sources.monotonicMs() - this.reading.monotonicMs >= sampleMs) {
      this.sample(this.reading)
    }
    return events
  }

  /** Observes until it is interrupted. The log has what happens to nodes and shards. */
  readonly keep: Effect.Effect<never> = Effect.sync(() => this.observe()).pipe(
    Effect.flatMap((events) =>
      Effect.forEach(
        events.filter(({ type }) => !loggedElsewhere.has(type)),
        (event) => Effect.logInfo(eventText(event)),
        { discard: true }
      )
    ),
    Effect.andThen(Effect.sleep(observationMs)),
    Effect.forever
  )

  /**
   * What this node sees now. While the connection to NATS is lost, or the members cannot be read,
   * and until they have been seen again, it has the cluster as it was before: all others seem to be
   * gone, and are not. A node that cannot renew its own membership does not see itself either.
   */
  private look(): Observation {
    const { observation: before, sources: { monotonicMs, system } } = this
    const seen = observationOf(system)
    const { nodes, self } = seen.cluster
    const seesMembers = seen.isConnected && nodes.some(({ node }) => node === self)
    if (!seesMembers) this.unsettledUntilMs = monotonicMs() + viewSettlesMs
    const isSettled = seesMembers && monotonicMs() >= this.unsettledUntilMs
    return isSettled || before === undefined ? seen : { ...seen, cluster: before.cluster }
  }

  private add(events: ReadonlyArray<ClusterEvent>): void {
    if (events.length === 0) return
    const atMs = this.sources.nowMs()
    const seen = events.map((one): SeenEvent => ({ ...one, atMs }))
    const isQuarantine = ({ type }: SeenEvent): boolean => quarantineEvents.has(type)
    const others = seen.filter((one) => !isQuarantine(one))
    this.seen = lastOf([...this.seen, ...others], eventsMax)
    const quarantines = [...this.seenQuarantines, ...seen.filter(isQuarantine)]
    this.seenQuarantines = lastOf(quarantines, quarantineEventsKeptMax)
  }

  private sample(before: Reading): void {
    this.reading = readingOf(this.sources)
    this.kept = lastOf([...this.kept, sampleOf(before, this.reading)], samplesMax)
  }
}
