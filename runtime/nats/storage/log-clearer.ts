/**
 * What a removal of items leaves: what becomes of the messages that held them, and how far the
 * log is cleared from its beginning on. A server that is killed may have a removed message again
 * when its mark has faded. Up to the number that the record calls cleared nothing counts, whatever
 * comes again; so marks fade there, and elsewhere stay. Most mailboxes are read from their
 * beginning on, and what was removed from them costs nothing then.
 */
import { clearedMax, packItemsMax } from "../../limits.ts"
import type { Commit } from "../../ports/index.ts"
import type { NatsApi, StoredMessage } from "../connection/index.ts"
import { actorKeys, type BucketPlace, lastOfMany, pieces } from "../stream/index.ts"
import { type ActorEntry, isItem, isMarker, numbersFor, type Pack, packOf } from "./actor-entry.ts"

/** A message that loses items. */
export interface Torn {
  readonly n: number
  /** The last number that it held an item of. */
  readonly last: number
  /** What is left of it; undefined: nothing. */
  readonly rest: Pack | undefined
}

export interface Clearing {
  readonly torn: ReadonlyArray<Torn>
  /** As of {@link ActorEntry}, once the items are removed. */
  readonly cleared: number
  readonly isFurther: boolean
  /** Numbers at whose keys marks are that may fade. */
  readonly faded: ReadonlyArray<number>
}

/** Of a commit that removes nothing. */
export const nothingCleared = ({ cleared, isFurther }: ActorEntry): Clearing => ({
  torn: [],
  cleared,
  isFurther,
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

class Clearance {
  private readonly nats: NatsApi
  private readonly place: BucketPlace
  private readonly entry: ActorEntry
  private readonly log: string
  private readonly removed: ReadonlySet<number>

  constructor(
    nats: NatsApi,
    place: BucketPlace,
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
    const keys = [...new Set([...numbers].flatMap(numbersFor))].map((n) => this.log + n)
    const found: Array<Found> = []
    for (const piece of pieces(keys)) {
      const stored = await lastOfMany(this.nats, this.place.stream, piece, this.entry.lastSeq)
      for (const one of stored) {
        found.push({ n: Number(one.subject.slice(this.log.length)), stored: one })
      }
    }
    return found
  }

  /** Up to where it is looked for how far the log is cleared now; nowhere when it cannot be. */
  get until(): number {
    const { cleared, head, isFurther } = this.entry
    return isFurther || this.removed.has(cleared + 1)
      ? Math.min(head, cleared + clearedMax)
      : cleared
  }

  async clearing(until: number): Promise<Clearing> {
    const { cleared, head, isFurther } = this.entry
    let window = range(cleared + 1, Math.min(until, cleared + packItemsMax))
    let found = await this.messages([...this.removed, ...window])
    const torn = this.torn(found)
    if (until === cleared) return { torn, cleared, isFurther, faded: [] }
    const marks = new Set<number>()
    let to = cleared
    for (;;) {
      for (const { n, stored } of found) if (isLasting(stored)) marks.add(n)
      const next = to + window.length
      to = Math.min(next, this.firstLeft(found, to) - 1)
      if (to < next || to === until) break
      window = range(to + 1, Math.min(until, 2 * to - cleared))
      found = await this.messages(window)
    }
    for (const { n } of torn) marks.delete(n)
    const faded = [...marks].filter((n) => n <= to)
    return { torn, cleared: to, isFurther: to === until && to < head, faded }
  }

  private torn(found: ReadonlyArray<Found>): ReadonlyArray<Torn> {
    return found.flatMap(({ n, stored }): ReadonlyArray<Torn> => {
      if (!isItem(this.entry, n, stored)) return []
      const { values } = packOf(n, stored)
      const left = values.map((value, at) => this.removed.has(n + at) ? undefined : value)
      if (left.every((value, at) => value === values[at])) return []
      const rest = left.some((value) => value !== undefined) ? { n, values: left } : undefined
      return [{ n, last: n + values.length - 1, rest }]
    })
  }

  /** The first number above `after` whose item stays; Infinity when these have none. */
  private firstLeft(found: ReadonlyArray<Found>, after: number): number {
    const left = found.flatMap(({ n, stored }) =>
      isItem(this.entry, n, stored)
        ? packOf(n, stored).values.flatMap((value, at) =>
          value === undefined || n + at <= after || this.removed.has(n + at) ? [] : [n + at]
        )
        : []
    )
    return left.reduce((least, n) => Math.min(least, n), Infinity)
  }
}

/** What the commit's removals come to; `isLarge`: how far it is cleared is left as it is. */
export const clearingOf = async (
  nats: NatsApi,
  place: BucketPlace,
  entry: ActorEntry,
  commit: Pick<Commit, "address" | "remove" | "state">,
  isLarge = false
): Promise<Clearing> => {
  if (commit.remove.length === 0 || commit.state === null) return nothingCleared(entry)
  const clearance = new Clearance(nats, place, entry, commit)
  return isLarge
    ? { ...await clearance.clearing(entry.cleared), isFurther: true }
    : clearance.clearing(clearance.until)
}
