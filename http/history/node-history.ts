/** The last hour of this node, in its memory: samples of its figures, and the time line. */
import { Effect } from "effect"
import type { SystemApi } from "../../runtime/index.ts"
import { eventsMax, observationMs, sampleMs, samplesMax } from "../limits.ts"
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

/** The log has these with their causes, from where they happen. */
const loggedElsewhere: ReadonlySet<ClusterEvent["type"]> = new Set([
  "connected",
  "disconnected",
  "lifted",
  "quarantined"
])

export class NodeHistory {
  private readonly sources: HistorySources
  /** Those of the last sample and the last look; undefined before the first one. */
  private reading: Reading | undefined
  private observation: Observation | undefined
  private kept: ReadonlyArray<Sample> = []
  private seen: ReadonlyArray<SeenEvent> = []

  constructor(sources: HistorySources) {
    this.sources = sources
  }

  /** The samples, the oldest first, every {@link sampleMs}. */
  get samples(): ReadonlyArray<Sample> {
    return this.kept
  }

  /** The time line, the oldest event first. */
  get events(): ReadonlyArray<SeenEvent> {
    return this.seen
  }

  /** Looks for events, and takes a sample when it is due. Returns the new events. */
  observe(): ReadonlyArray<ClusterEvent> {
    const { sources } = this
    const observation = observationOf(sources.system)
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

  private add(events: ReadonlyArray<ClusterEvent>): void {
    if (events.length === 0) return
    const atMs = this.sources.nowMs()
    this.seen = lastOf([...this.seen, ...events.map((one) => ({ ...one, atMs }))], eventsMax)
  }

  private sample(before: Reading): void {
    this.reading = readingOf(this.sources)
    this.kept = lastOf([...this.kept, sampleOf(before, this.reading)], samplesMax)
  }
}
