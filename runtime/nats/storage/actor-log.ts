/** Reads an actor and its log. */
import type { Address, LogItem } from "../../actor/index.ts"
import { keysPerReadMax, logMessageItemsMax } from "../../limits.ts"
import { firstChars } from "../../ports/index.ts"
import type { NatsApi } from "../connection/index.ts"
import { acknowledgedSequence, actorKeys, barrierReader, type Bucket, listSubjects, readFirstOfMany,
  readLast, readLastOfMany, type StoredMessage } from "../stream/index.ts"
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
 * Reads the state record and the end of the log, as they are at one moment: at the call or later.
 * `known`: the actor as its owner knew it. While the record is the same, the log can only be
 * longer.
 */
export const loadEntry = async (
  nats: NatsApi,
  bucket: Bucket,
  of: Address,
  known?: ActorEntry
): Promise<ActorEntry> => {
  for (let expected = known;; expected = undefined) {
    const entry = await readEntry(nats, bucket, of, expected)
    if (entry !== undefined) return entry
  }
}

/** {@link loadEntry}; undefined if the record has changed between the reads. */
const readEntry = async (
  nats: NatsApi,
  bucket: Bucket,
  of: Address,
  known: ActorEntry | undefined
): Promise<ActorEntry | undefined> => {
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
    // A commit writes both, and may have come after the read of the record.
    const [same, following] = await readSubjects(state, log + (head + 1))
    if (same?.seq !== entry.seq) return undefined
    next = following
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
  /** How many of the numbers were read: fewer than requested if the items are large. */
  readonly count: number
  /** The last known number: that of the record, or of an item above it. */
  readonly head: number
}

const range = (from: number, count: number): ReadonlyArray<number> =>
  Array.from({ length: count }, (_, at) => from + at)

/** What was read of the `count` numbers from `first` on. */
const within = ({ head, items }: ItemsRead, first: number, count: number): ItemsRead => ({
  items: items.filter(({ n }) => n >= first && n < first + count),
  head,
  count
})

class LogReader {
  private readonly nats: NatsApi
  private readonly bucket: Bucket
  private readonly state: string
  private readonly log: string
  private readonly lastSeq: number
  /** Bytes of one answer of the servers; undefined: as many as they send. */
  private readonly bytesMax: number | undefined

  constructor(
    nats: NatsApi,
    bucket: Bucket,
    of: Address,
    lastSeq: number,
    bytesMax: number | undefined
  ) {
    this.bytesMax = bytesMax
    this.nats = nats
    this.bucket = bucket
    const keys = actorKeys(bucket, of)
    this.state = keys.state
    this.log = keys.log
    this.lastSeq = lastSeq
  }

  /**
   * Reads the keys of these ascending numbers, and the record from the same replica: at least
   * `countMin` of them.
   */
  async readNumbers(all: ReadonlyArray<number>, countMin = 1): Promise<ItemsRead> {
    const { count, stored } = await this.readKeys(all, countMin)
    const numbers = all.slice(0, count)
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
    return { items, head, count }
  }

  private async readKeys(numbers: ReadonlyArray<number>, countMin: number) {
    const { bucket: { stream }, bytesMax, lastSeq, nats } = this
    const subjects = [this.state, ...numbers.map((n) => this.log + n)]
    if (bytesMax === undefined) {
      const stored = await readLastOfMany(nats, stream, subjects, lastSeq)
      return { stored, count: numbers.length }
    }
    const bounds = { bytesMax, countMin: 1 + countMin }
    const { count, stored } = await readFirstOfMany(nats, stream, subjects, lastSeq, bounds)
    return { stored, count: count - 1 }
  }

  /** The items of `count` numbers, or of the first of them. */
  async readRange(first: number, count: number): Promise<ItemsRead> {
    if (this.bytesMax !== undefined) {
      // An item that has a message of its own is not in one before it, and those may be large.
      const read = await this.readNumbers(range(first, count))
      if (read.items[0]?.n === first) return within(read, first, read.count)
    }
    const before = keysOfItem(first).slice(0, -1)
    const read = await this.readNumbers([...before, ...range(first, count)], before.length + 1)
    return within(read, first, read.count - before.length)
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

/** Bounds of one read of a log: see the port. */
interface LogBounds {
  readonly from: number
  readonly limit: number
  readonly charsMax?: number | undefined
}

/** The items that a read has found, up to its bounds. */
class FoundItems {
  private readonly limit: number
  private readonly charsMax: number
  private readonly all: Array<LogItem> = []
  private chars = 0
  private wanted = 0

  constructor(limit: number, charsMax = Infinity) {
    this.limit = limit
    this.charsMax = charsMax
  }

  get items(): ReadonlyArray<LogItem> {
    return firstChars(this.all.slice(0, this.limit), this.charsMax)
  }

  get isFull(): boolean {
    return this.all.length >= this.limit || this.chars >= this.charsMax
  }

  /** How many items to read next: likely so many that they have the missing characters. */
  takeWanted(): number {
    const missing = this.limit - this.all.length
    if (this.chars === 0 || this.charsMax === Infinity) return missing
    const charsOfOne = this.chars / this.all.length
    const likely = Math.ceil((this.charsMax - this.chars) / charsOfOne)
    // Many small items may follow large ones.
    this.wanted = Math.max(likely, 2 * this.wanted)
    return Math.min(missing, this.wanted)
  }

  add(items: ReadonlyArray<LogItem>): void {
    for (const item of items) {
      this.all.push(item)
      this.chars += item.value.length
    }
  }
}

/** `known`: the actor as its owner knows it; undefined reads it first. */
export const readLog = async (
  nats: NatsApi,
  bucket: Bucket,
  of: Address,
  known: ActorEntry | undefined,
  { charsMax, from, limit }: LogBounds
): Promise<ReadonlyArray<LogItem>> => {
  const [entry, lastSeq] = known === undefined
    ? await Promise.all([
      readLast(nats, bucket.stream, actorKeys(bucket, of).state).then(parseEntry),
      acknowledgedSequence(nats, bucket.stream)
    ])
    : [known, known.lastSeq]
  if (entry.seq === 0 || (entry.head === 0 && entry.floor === entry.seq)) return []
  // A character has a byte at least.
  const reader = new LogReader(nats, bucket, of, lastSeq, charsMax)
  const found = new FoundItems(limit, charsMax)
  let next = Math.max(from, entry.lowWatermark + 1)
  while (!found.isFull) {
    if (known !== undefined && next > known.head) break
    const read = await reader.readRange(next, Math.min(itemsPerRead, found.takeWanted()))
    found.add(read.items)
    next += read.count
    if (next > read.head + 1) break
    if (found.isFull || read.items.length * sparseFactor >= read.count) continue
    const numbers = await reader.listNumbers(next)
    for (let at = 0; at < numbers.length && !found.isFull;) {
      const { count, items } = await reader.readNumbers(numbers.slice(at, at + itemsPerRead))
      found.add(items.filter(({ n }) => n >= next))
      at += count
    }
    break
  }
  return found.items
}
