/** Reading an actor's log. */
import type { Address, LogItem } from "../../actor/index.ts"
import { keysPerReadMax, logMessageItemsMax } from "../../limits.ts"
import type { NatsApi } from "../connection/index.ts"
import { acknowledgedSequence, actorKeys, barrierReader, type Bucket, listSubjects, readLast,
  readLastOfMany, type StoredMessage } from "../stream/index.ts"
import { type ActorEntry, isLiveItem, itemCount, itemsOf, keysOfItem,
  parseEntry } from "./actor-entry.ts"

/** The end of a stored pack of items, as far as one copy shows. */
interface End {
  readonly n: number
  readonly seq: number
}

/**
 * The end of the log above the recorded head. Items there are without gaps, as whatever leaves a
 * gap writes the record; so it is enough to look at ever longer steps, and then to halve. These
 * looks may miss what is there, as any copy answers them: the caller goes on from what they find.
 */
const findEnd = async (
  nats: NatsApi,
  place: Bucket,
  log: string,
  entry: ActorEntry,
  first: End
): Promise<End> => {
  const endAt = async (at: number): Promise<End | undefined> => {
    const keys = keysOfItem(at).filter((n) => n > entry.head).map((n) => log + n)
    const ends = (await readLastOfMany(nats, place.stream, keys, 0)).flatMap(
      (stored): Array<End> => {
        const n = Number(stored.subject.slice(log.length))
        const end = { n: n + itemCount(stored) - 1, seq: stored.seq }
        return isLiveItem(entry, n, stored) && end.n >= at ? [end] : []
      }
    )
    return ends[0]
  }
  const longer = ({ n }: End): number => n + Math.max(1, n - entry.head)
  let there = first
  let missing = longer(there)
  for (let end = await endAt(missing); end !== undefined; end = await endAt(missing)) {
    there = end
    missing = longer(there)
  }
  while (missing - there.n > 1) {
    const middle = (there.n + missing) >> 1
    const end = await endAt(middle)
    if (end === undefined) missing = middle
    else there = end
  }
  return there
}

/** The state record, then the end of the log, as they are at the call or later. */
export const loadEntry = async (
  nats: NatsApi,
  place: Bucket,
  of: Address
): Promise<ActorEntry> => {
  const { log, state } = actorKeys(place, of)
  const readSubject = await barrierReader(nats, place.stream)
  const entry = parseEntry(await readSubject(state))
  if (entry.seq === 0) return entry
  let { head, lastSeq } = entry
  let next = await readSubject(log + (head + 1))
  let isFirst = true
  // Items may be added meanwhile: what is returned as the end must be one and the same answer.
  while (next !== undefined && isLiveItem(entry, head + 1, next)) {
    const end = { n: head + itemCount(next), seq: next.seq }
    const found = isFirst ? await findEnd(nats, place, log, entry, end) : end
    isFirst = false
    head = found.n
    lastSeq = Math.max(lastSeq, found.seq)
    next = await readSubject(log + (head + 1))
  }
  return { ...entry, head, lastSeq, nextSeq: next?.seq ?? 0 }
}

/** Id of the commit that wrote a key last. */
export const commitOfKey = async (
  nats: NatsApi,
  place: Bucket,
  subject: string
): Promise<string | undefined> =>
  (await readLast(nats, place.stream, subject))?.header("Restante-Commit")

/* Reading one actor from the leader of its stream. */

/** Numbers of one read: their keys, those before them that may hold the first, and the state's. */
const WAVE = keysPerReadMax - logMessageItemsMax

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
  private readonly place: Bucket
  private readonly state: string
  private readonly log: string
  private readonly lastSeq: number

  constructor(nats: NatsApi, place: Bucket, of: Address, lastSeq: number) {
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
    const stored = await readLastOfMany(this.nats, this.place.stream, subjects, this.lastSeq)
    const found = new Map<string, StoredMessage>(
      stored.map((message) => [message.subject, message])
    )
    const entry = parseEntry(found.get(this.state))
    const items: Array<LogItem> = []
    let { head } = entry
    for (const n of numbers) {
      const message = found.get(this.log + n)
      if (message === undefined || !isLiveItem(entry, n, message)) continue
      // Above the record's head a number that is missing ends the log.
      if (n > head + 1 && items.length > 0) break
      items.push(...itemsOf(n, message))
      head = Math.max(head, n + itemCount(message) - 1)
    }
    return { items, head }
  }

  /** The items of so many numbers. */
  async wave(first: number, count: number): Promise<Found> {
    const before = keysOfItem(first).slice(0, -1)
    const { head, items } = await this.at([...before, ...range(first, count)])
    return { items: items.filter(({ n }) => n >= first && n < first + count), head }
  }

  /** All keys that may hold an item from `from` on, by their numbers, ascending. */
  async numbers(from: number): Promise<ReadonlyArray<number>> {
    const numbers: Array<number> = []
    for await (const { subjects } of listSubjects(this.nats, this.place.stream, `${this.log}*`)) {
      for (const subject of subjects) {
        const n = Number(subject.slice(this.log.length))
        if (n > from - logMessageItemsMax) numbers.push(n)
      }
    }
    return numbers.sort((a, b) => a - b)
  }
}

/** `known`: what the owner of the actor knows of it; anyone else asks the leader. */
export const readLog = async (
  nats: NatsApi,
  place: Bucket,
  of: Address,
  known: ActorEntry | undefined,
  first: number,
  limit: number
): Promise<ReadonlyArray<LogItem>> => {
  const [entry, lastSeq] = known === undefined
    ? await Promise.all([
      readLast(nats, place.stream, actorKeys(place, of).state).then(parseEntry),
      acknowledgedSequence(nats, place.stream)
    ])
    : [known, known.lastSeq]
  if (entry.seq === 0 || (entry.head === 0 && entry.floor === entry.seq)) return []
  const reader = new LogReader(nats, place, of, lastSeq)
  const items: Array<LogItem> = []
  let next = Math.max(first, entry.lowWatermark + 1)
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
