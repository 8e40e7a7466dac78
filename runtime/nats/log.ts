/** Reading an actor's log. */
import type { Address } from "../address.ts"
import type { LogItem } from "../ports/storage.ts"
import type { NatsApi } from "./connection.ts"
import { actorKeys, type BucketPlace } from "./keys.ts"
import { keysMax, packItemsMax } from "./limits.ts"
import { itemsOf, numbersFor } from "./packs.ts"
import { subjectsOf } from "./listing.ts"
import { coveredBy, last, lastOfMany } from "./reader.ts"
import { type ActorEntry, countOf, entryOf, isItem } from "./record.ts"
import type { StoredMessage } from "./wire.ts"

/** Numbers of one read: their keys, those before them that may hold the first, and the state's. */
const WAVE = keysMax - packItemsMax

/** A wave that finds fewer than one in so many is in a part that was mostly removed. */
const SPARSE = 8

interface Found {
  readonly items: ReadonlyArray<LogItem>
  /** The last number that is known to be there: of the record, or of an item above it. */
  readonly head: number
}

const range = (from: number, count: number): ReadonlyArray<number> =>
  Array.from({ length: count }, (_, at) => from + at)

class LogReader {
  private readonly nats: NatsApi
  private readonly place: BucketPlace
  private readonly state: string
  private readonly log: string
  private readonly lastSeq: number

  constructor(nats: NatsApi, place: BucketPlace, of: Address, lastSeq: number) {
    this.nats = nats
    this.place = place
    const keys = actorKeys(place, of)
    this.state = keys.state
    this.log = keys.log
    this.lastSeq = lastSeq
  }

  /** What is at the keys of these numbers, which ascend. The record comes from the same copy. */
  async at(numbers: ReadonlyArray<number>): Promise<Found> {
    const subjects = [this.state, ...numbers.map((n) => this.log + n)]
    const stored = await lastOfMany(this.nats, this.place.stream, subjects, this.lastSeq)
    const found = new Map<string, StoredMessage>(
      stored.map((message) => [message.subject, message])
    )
    const entry = entryOf(found.get(this.state))
    const items: Array<LogItem> = []
    let { head } = entry
    for (const n of numbers) {
      const message = found.get(this.log + n)
      if (message === undefined || !isItem(entry, n, message)) continue
      // Above the record's head a number that is missing ends the log.
      if (n > head + 1 && items.length > 0) break
      items.push(...itemsOf(n, message))
      head = Math.max(head, n + countOf(message) - 1)
    }
    return { items, head }
  }

  /** The items of so many numbers. */
  async wave(first: number, count: number): Promise<Found> {
    const before = numbersFor(first).slice(0, -1)
    const { head, items } = await this.at([...before, ...range(first, count)])
    return { items: items.filter(({ n }) => n >= first && n < first + count), head }
  }

  /** All keys that may hold an item from `from` on, by their numbers, ascending. */
  async numbers(from: number): Promise<ReadonlyArray<number>> {
    const numbers: Array<number> = []
    for await (const { subjects } of subjectsOf(this.nats, this.place.stream, `${this.log}*`)) {
      for (const subject of subjects) {
        const n = Number(subject.slice(this.log.length))
        if (n > from - packItemsMax) numbers.push(n)
      }
    }
    return numbers.sort((a, b) => a - b)
  }
}

/** `known`: what the owner of the actor knows of it; anyone else asks the leader. */
export const readLog = async (
  nats: NatsApi,
  place: BucketPlace,
  of: Address,
  known: ActorEntry | undefined,
  first: number,
  limit: number
): Promise<ReadonlyArray<LogItem>> => {
  const [entry, lastSeq] = known === undefined
    ? await Promise.all([
      last(nats, place.stream, actorKeys(place, of).state).then(entryOf),
      coveredBy(nats, place.stream)
    ])
    : [known, known.lastSeq]
  if (entry.seq === 0 || (entry.head === 0 && entry.floor === entry.seq)) return []
  const reader = new LogReader(nats, place, of, lastSeq)
  const items: Array<LogItem> = []
  let next = Math.max(first, entry.cleared + 1)
  while (items.length < limit) {
    const size = Math.min(WAVE, limit - items.length)
    if (known !== undefined && next > known.head) return items
    const wave = await reader.wave(next, size)
    items.push(...wave.items)
    next += size
    if (next > wave.head + 1 || items.length >= limit) return items
    if (wave.items.length * SPARSE >= size) continue
    const numbers = await reader.numbers(next)
    for (let at = 0; at < numbers.length && items.length < limit; at += WAVE) {
      const found = await reader.at(numbers.slice(at, at + WAVE))
      items.push(...found.items.filter(({ n }) => n >= next))
    }
    return items.slice(0, limit)
  }
  return items
}
