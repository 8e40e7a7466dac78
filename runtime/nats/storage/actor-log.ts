/** Reads an actor and its log. */
import type { Address, LogItem } from "../../actor/index.ts"
import { keysPerReadMax, logMessageItemsMax } from "../../limits.ts"
import type { NatsApi } from "../connection/index.ts"
import { acknowledgedSequence, actorKeys, barrierReader, type Bucket, listSubjects, readLast,
  readLastOfMany, type StoredMessage } from "../stream/index.ts"
import { type ActorEntry, isLiveItem, itemCount, itemsOf, keysOfItem,
  parseEntry } from "./actor-entry.ts"

/** The last item of a stored message, as far as one replica shows. */
interface LogEnd {
  readonly n: number
  readonly seq: number
}

/**
 * Finds the end of the log above the recorded head by exponential and binary search: items there
 * have no gaps, because a commit that leaves a gap writes the record. Any replica answers, so the
 * result may be too low; the caller continues from it.
 */
const findEnd = async (
  nats: NatsApi,
  bucket: Bucket,
  log: string,
  entry: ActorEntry,
  first: LogEnd
): Promise<LogEnd> => {
  const endAt = async (at: number): Promise<LogEnd | undefined> => {
    const keys = keysOfItem(at).filter((n) => n > entry.head).map((n) => log + n)
    const ends = (await readLastOfMany(nats, bucket.stream, keys, 0)).flatMap(
      (stored): Array<LogEnd> => {
        const n = Number(stored.subject.slice(log.length))
        const end = { n: n + itemCount(stored) - 1, seq: stored.seq }
        return isLiveItem(entry, n, stored) && end.n >= at ? [end] : []
      }
    )
    return ends[0]
  }
  const longer = ({ n }: LogEnd): number => n + Math.max(1, n - entry.head)
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

/**
 * Reads the state record and the end of the log, as they are at the call or later. `known`: the
 * actor as its owner knew it. While the record is the same, the log can only be longer.
 */
export const loadEntry = async (
  nats: NatsApi,
  bucket: Bucket,
  of: Address,
  known?: ActorEntry
): Promise<ActorEntry> => {
  const { log, state } = actorKeys(bucket, of)
  const readSubjects = await barrierReader(nats, bucket.stream)
  const knownNext = known === undefined ? [] : [log + (known.head + 1)]
  const [record, afterKnown] = await readSubjects(state, ...knownNext)
  const entry = parseEntry(record)
  if (entry.seq === 0) return entry
  const isSame = known !== undefined && known.seq === entry.seq
  let { head, lastSeq } = isSame ? known : entry
  let [next] = isSame ? [afterKnown] : await readSubjects(log + (head + 1))
  // One commit at most was written since.
  let isFirst = !isSame
  // Items may be appended meanwhile, so the end must come from one answer.
  while (next !== undefined && isLiveItem(entry, head + 1, next)) {
    const end = { n: head + itemCount(next), seq: next.seq }
    const found = isFirst ? await findEnd(nats, bucket, log, entry, end) : end
    isFirst = false
    head = found.n
    lastSeq = Math.max(lastSeq, found.seq)
    ;[next] = await readSubjects(log + (head + 1))
  }
  return { ...entry, head, lastSeq, nextSeq: next?.seq ?? 0 }
}

/** Id of the commit that wrote a key last. */
export const commitOfKey = async (
  nats: NatsApi,
  bucket: Bucket,
  subject: string
): Promise<string | undefined> =>
  (await readLast(nats, bucket.stream, subject))?.header("Restante-Commit")

/** Item numbers of one read, which also needs the keys before them and the state's key. */
const itemsPerRead = keysPerReadMax - logMessageItemsMax

/** If a read finds fewer items than one in this many numbers, most of them were removed. */
const sparseFactor = 8

interface ItemsRead {
  readonly items: ReadonlyArray<LogItem>
  /** The last known number: that of the record, or of an item above it. */
  readonly head: number
}

const range = (from: number, count: number): ReadonlyArray<number> =>
  Array.from({ length: count }, (_, at) => from + at)

class LogReader {
  private readonly nats: NatsApi
  private readonly bucket: Bucket
  private readonly state: string
  private readonly log: string
  private readonly lastSeq: number

  constructor(nats: NatsApi, bucket: Bucket, of: Address, lastSeq: number) {
    this.nats = nats
    this.bucket = bucket
    const keys = actorKeys(bucket, of)
    this.state = keys.state
    this.log = keys.log
    this.lastSeq = lastSeq
  }

  /** Reads the keys of these ascending numbers, and the record from the same replica. */
  async readNumbers(numbers: ReadonlyArray<number>): Promise<ItemsRead> {
    const subjects = [this.state, ...numbers.map((n) => this.log + n)]
    const stored = await readLastOfMany(this.nats, this.bucket.stream, subjects, this.lastSeq)
    const found = new Map<string, StoredMessage>(
      stored.map((message) => [message.subject, message])
    )
    const entry = parseEntry(found.get(this.state))
    const items: Array<LogItem> = []
    let { head } = entry
    for (const n of numbers) {
      const message = found.get(this.log + n)
      if (message === undefined || !isLiveItem(entry, n, message)) continue
      // Above the record's head a missing number ends the log.
      if (n > head + 1 && items.length > 0) break
      items.push(...itemsOf(n, message))
      head = Math.max(head, n + itemCount(message) - 1)
    }
    return { items, head }
  }

  /** The items of `count` numbers. */
  async readRange(first: number, count: number): Promise<ItemsRead> {
    const before = keysOfItem(first).slice(0, -1)
    const { head, items } = await this.readNumbers([...before, ...range(first, count)])
    return { items: items.filter(({ n }) => n >= first && n < first + count), head }
  }

  /** Lists the numbers of all keys that may hold an item from `from` on, ascending. */
  async listNumbers(from: number): Promise<ReadonlyArray<number>> {
    const numbers: Array<number> = []
    for await (const { subjects } of listSubjects(this.nats, this.bucket.stream, `${this.log}*`)) {
      for (const subject of subjects) {
        const n = Number(subject.slice(this.log.length))
        if (n > from - logMessageItemsMax) numbers.push(n)
      }
    }
    return numbers.sort((a, b) => a - b)
  }
}

/** `known`: the actor as its owner knows it; undefined reads it first. */
export const readLog = async (
  nats: NatsApi,
  bucket: Bucket,
  of: Address,
  known: ActorEntry | undefined,
  first: number,
  limit: number
): Promise<ReadonlyArray<LogItem>> => {
  const [entry, lastSeq] = known === undefined
    ? await Promise.all([
      readLast(nats, bucket.stream, actorKeys(bucket, of).state).then(parseEntry),
      acknowledgedSequence(nats, bucket.stream)
    ])
    : [known, known.lastSeq]
  if (entry.seq === 0 || (entry.head === 0 && entry.floor === entry.seq)) return []
  const reader = new LogReader(nats, bucket, of, lastSeq)
  const items: Array<LogItem> = []
  let next = Math.max(first, entry.lowWatermark + 1)
  while (items.length < limit) {
    const size = Math.min(itemsPerRead, limit - items.length)
    if (known !== undefined && next > known.head) return items
    const read = await reader.readRange(next, size)
    items.push(...read.items)
    next += size
    if (next > read.head + 1 || items.length >= limit) return items
    if (read.items.length * sparseFactor >= size) continue
    const numbers = await reader.listNumbers(next)
    for (let at = 0; at < numbers.length && items.length < limit; at += itemsPerRead) {
      const found = await reader.readNumbers(numbers.slice(at, at + itemsPerRead))
      items.push(...found.items.filter(({ n }) => n >= next))
    }
    return items.slice(0, limit)
  }
  return items
}
