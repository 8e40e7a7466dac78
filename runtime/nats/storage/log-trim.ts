/**
 * Removal of log items: the messages that lose items, and the new low watermark, up to which all
 * items were removed. A killed server may restore a removed message after its marker has expired.
 * Up to the low watermark nothing counts, so markers expire there; above it they stay. Most
 * mailboxes are emptied from their beginning, and then removed items cost nothing.
 */
import { logMessageItemsMax, watermarkAdvanceMax } from "../../limits.ts"
import type { Commit } from "../../ports/index.ts"
import type { NatsApi } from "../connection/index.ts"
import { actorKeys, type Bucket, isMarker, pagesOf, readLastOfMany,
  type StoredMessage } from "../stream/index.ts"
import { type ActorEntry, isLiveItem, keysOfItem, type LogMessage,
  parseLogMessage } from "./actor-entry.ts"

/** A message that loses items. */
export interface TrimmedMessage {
  readonly n: number
  /** The last number that it held an item of. */
  readonly last: number
  /** The message without them; undefined where no item stays. */
  readonly rest: LogMessage | undefined
}

export interface LogTrim {
  readonly trimmed: ReadonlyArray<TrimmedMessage>
  /** As in {@link ActorEntry}, after the removal. */
  readonly lowWatermark: number
  readonly mayAdvance: boolean
  /** Numbers whose keys have markers that may expire from now on. */
  readonly expiring: ReadonlyArray<number>
}

/** For a commit that removes nothing. */
export const noTrim = ({ lowWatermark, mayAdvance }: ActorEntry): LogTrim => ({
  trimmed: [],
  lowWatermark,
  mayAdvance,
  expiring: []
})

interface NumberedMessage {
  readonly n: number
  readonly stored: StoredMessage
}

const range = (from: number, to: number): ReadonlyArray<number> =>
  Array.from({ length: Math.max(0, to - from + 1) }, (_, at) => from + at)

const isPermanentMarker = (stored: StoredMessage): boolean =>
  isMarker(stored) && stored.header("Nats-TTL") === undefined

class TrimPlanner {
  private readonly nats: NatsApi
  private readonly bucket: Bucket
  private readonly entry: ActorEntry
  private readonly log: string
  private readonly removed: ReadonlySet<number>

  constructor(
    nats: NatsApi,
    bucket: Bucket,
    entry: ActorEntry,
    { address, remove }: Pick<Commit, "address" | "remove">
  ) {
    this.nats = nats
    this.bucket = bucket
    this.entry = entry
    this.log = actorKeys(bucket, address).log
    this.removed = new Set(remove)
  }

  /** Reads the messages, markers too, whose keys may hold items of these numbers. */
  private async messages(numbers: Iterable<number>): Promise<ReadonlyArray<NumberedMessage>> {
    const keys = [...new Set([...numbers].flatMap(keysOfItem))].map((n) => this.log + n)
    const found: Array<NumberedMessage> = []
    for (const piece of pagesOf(keys)) {
      const stored = await readLastOfMany(this.nats, this.bucket.stream, piece, this.entry.lastSeq)
      for (const one of stored) {
        found.push({ n: Number(one.subject.slice(this.log.length)), stored: one })
      }
    }
    return found
  }

  /** The highest number that the low watermark may reach now. */
  get watermarkMax(): number {
    const { lowWatermark, head, mayAdvance } = this.entry
    return mayAdvance || this.removed.has(lowWatermark + 1)
      ? Math.min(head, lowWatermark + watermarkAdvanceMax)
      : lowWatermark
  }

  async plan(until: number): Promise<LogTrim> {
    const { lowWatermark, head, mayAdvance } = this.entry
    let window = range(lowWatermark + 1, Math.min(until, lowWatermark + logMessageItemsMax))
    let found = await this.messages([...this.removed, ...window])
    const trimmed = this.trimmed(found)
    if (until === lowWatermark) return { trimmed, lowWatermark, mayAdvance, expiring: [] }
    const marks = new Set<number>()
    let to = lowWatermark
    for (;;) {
      for (const { n, stored } of found) if (isPermanentMarker(stored)) marks.add(n)
      const next = to + window.length
      to = Math.min(next, this.firstRemaining(found, to) - 1)
      if (to < next || to === until) break
      window = range(to + 1, Math.min(until, 2 * to - lowWatermark))
      found = await this.messages(window)
    }
    for (const { n } of trimmed) marks.delete(n)
    const expiring = [...marks].filter((n) => n <= to)
    return { trimmed, lowWatermark: to, mayAdvance: to === until && to < head, expiring }
  }

  private trimmed(found: ReadonlyArray<NumberedMessage>): ReadonlyArray<TrimmedMessage> {
    return found.flatMap(({ n, stored }): ReadonlyArray<TrimmedMessage> => {
      if (!isLiveItem(this.entry, n, stored)) return []
      const { values } = parseLogMessage(n, stored)
      const left = values.map((value, at) => this.removed.has(n + at) ? undefined : value)
      if (left.every((value, at) => value === values[at])) return []
      const rest = left.some((value) => value !== undefined) ? { n, values: left } : undefined
      return [{ n, last: n + values.length - 1, rest }]
    })
  }

  /** The first number above `after` whose item stays; Infinity when there is none. */
  private firstRemaining(found: ReadonlyArray<NumberedMessage>, after: number): number {
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

/** Plans the removals of a commit; `isLarge`: without moving the low watermark. */
export const planTrim = async (
  nats: NatsApi,
  bucket: Bucket,
  entry: ActorEntry,
  commit: Pick<Commit, "address" | "remove" | "state">,
  isLarge = false
): Promise<LogTrim> => {
  if (commit.remove.length === 0 || commit.state === null) return noTrim(entry)
  const planner = new TrimPlanner(nats, bucket, entry, commit)
  return isLarge
    ? { ...await planner.plan(entry.lowWatermark), mayAdvance: true }
    : planner.plan(planner.watermarkMax)
}
