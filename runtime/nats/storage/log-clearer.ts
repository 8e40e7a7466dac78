/**
 * What a removal of items leaves: what becomes of the messages that held them, and how far the
 * log is lowWatermark from its beginning on. A server that is killed may have a removed message again
 * when its mark has faded. Up to the number that the record calls lowWatermark nothing counts, whatever
 * comes again; so marks fade there, and elsewhere stay. Most mailboxes are read from their
 * beginning on, and what was removed from them costs nothing then.
 */
import { logMessageItemsMax, watermarkAdvanceMax } from "../../limits.ts"
import type { Commit } from "../../ports/index.ts"
import type { NatsApi } from "../connection/index.ts"
import { actorKeys, type Bucket, pagesOf, readLastOfMany,
  type StoredMessage } from "../stream/index.ts"
import { type ActorEntry, isLiveItem, isMarker, keysOfItem, type LogMessage,
  parseLogMessage } from "./actor-entry.ts"

/** A message that loses items. */
export interface TrimmedMessage {
  readonly n: number
  /** The last number that it held an item of. */
  readonly last: number
  /** What is left of it; undefined: nothing. */
  readonly rest: LogMessage | undefined
}

export interface LogTrim {
  readonly trimmed: ReadonlyArray<TrimmedMessage>
  /** As of {@link ActorEntry}, once the items are removed. */
  readonly lowWatermark: number
  readonly mayAdvance: boolean
  /** Numbers at whose keys marks are that may fade. */
  readonly faded: ReadonlyArray<number>
}

/** Of a commit that removes nothing. */
export const noTrim = ({ lowWatermark, mayAdvance }: ActorEntry): LogTrim => ({
  trimmed: [],
  lowWatermark,
  mayAdvance,
  faded: []
})

interface Found {
  readonly n: number
  readonly stored: StoredMessage
}

const range = (from: number, to: number): ReadonlyArray<number> =>
  Array.from({ length: Math.max(0, to - from + 1) }, (_, at) => from + at)

const isLasting = (stored: StoredMessage): boolean =>
  isMarker(stored) && stored.header("Nats-TTL") === undefined

class TrimPlanner {
  private readonly nats: NatsApi
  private readonly place: Bucket
  private readonly entry: ActorEntry
  private readonly log: string
  private readonly removed: ReadonlySet<number>

  constructor(
    nats: NatsApi,
    place: Bucket,
    entry: ActorEntry,
    { address, remove }: Pick<Commit, "address" | "remove">
  ) {
    this.nats = nats
    this.place = place
    this.entry = entry
    this.log = actorKeys(place, address).log
    this.removed = new Set(remove)
  }

  /** The messages at whose keys items of these numbers may be, marks too. */
  private async messages(numbers: Iterable<number>): Promise<ReadonlyArray<Found>> {
    const keys = [...new Set([...numbers].flatMap(keysOfItem))].map((n) => this.log + n)
    const found: Array<Found> = []
    for (const piece of pagesOf(keys)) {
      const stored = await readLastOfMany(this.nats, this.place.stream, piece, this.entry.lastSeq)
      for (const one of stored) {
        found.push({ n: Number(one.subject.slice(this.log.length)), stored: one })
      }
    }
    return found
  }

  /** Up to where it is looked for how far the log is lowWatermark now; nowhere when it cannot be. */
  get until(): number {
    const { lowWatermark, head, mayAdvance } = this.entry
    return mayAdvance || this.removed.has(lowWatermark + 1)
      ? Math.min(head, lowWatermark + watermarkAdvanceMax)
      : lowWatermark
  }

  async clearing(until: number): Promise<LogTrim> {
    const { lowWatermark, head, mayAdvance } = this.entry
    let window = range(lowWatermark + 1, Math.min(until, lowWatermark + logMessageItemsMax))
    let found = await this.messages([...this.removed, ...window])
    const trimmed = this.trimmed(found)
    if (until === lowWatermark) return { trimmed, lowWatermark, mayAdvance, faded: [] }
    const marks = new Set<number>()
    let to = lowWatermark
    for (;;) {
      for (const { n, stored } of found) if (isLasting(stored)) marks.add(n)
      const next = to + window.length
      to = Math.min(next, this.firstLeft(found, to) - 1)
      if (to < next || to === until) break
      window = range(to + 1, Math.min(until, 2 * to - lowWatermark))
      found = await this.messages(window)
    }
    for (const { n } of trimmed) marks.delete(n)
    const faded = [...marks].filter((n) => n <= to)
    return { trimmed, lowWatermark: to, mayAdvance: to === until && to < head, faded }
  }

  private trimmed(found: ReadonlyArray<Found>): ReadonlyArray<TrimmedMessage> {
    return found.flatMap(({ n, stored }): ReadonlyArray<TrimmedMessage> => {
      if (!isLiveItem(this.entry, n, stored)) return []
      const { values } = parseLogMessage(n, stored)
      const left = values.map((value, at) => this.removed.has(n + at) ? undefined : value)
      if (left.every((value, at) => value === values[at])) return []
      const rest = left.some((value) => value !== undefined) ? { n, values: left } : undefined
      return [{ n, last: n + values.length - 1, rest }]
    })
  }

  /** The first number above `after` whose item stays; Infinity when these have none. */
  private firstLeft(found: ReadonlyArray<Found>, after: number): number {
    const left = found.flatMap(({ n, stored }) =>
      isLiveItem(this.entry, n, stored)
        ? parseLogMessage(n, stored).values.flatMap((value, at) =>
          value === undefined || n + at <= after || this.removed.has(n + at) ? [] : [n + at]
        )
        : []
    )
    return left.reduce((least, n) => Math.min(least, n), Infinity)
  }
}

/** What the commit's removals come to; `isLarge`: how far it is lowWatermark is left as it is. */
export const planTrim = async (
  nats: NatsApi,
  place: Bucket,
  entry: ActorEntry,
  commit: Pick<Commit, "address" | "remove" | "state">,
  isLarge = false
): Promise<LogTrim> => {
  if (commit.remove.length === 0 || commit.state === null) return noTrim(entry)
  const clearance = new TrimPlanner(nats, place, entry, commit)
  return isLarge
    ? { ...await clearance.clearing(entry.lowWatermark), mayAdvance: true }
    : clearance.clearing(clearance.until)
}
