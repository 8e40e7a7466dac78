/**
 * The contents port on JetStream, while nodes run. It reads actors page by page. Each actor is a
 * consistent snapshot: no node wrote its record while the rest of the actor was read.
 */
import { Effect, Layer } from "effect"
import { type Address, keyOf, type LogItem, shardOf, SHARDS } from "../../actor/index.ts"
import { contentsActorsInFlight, contentsExtraItems, contentsKeysPerRead } from "../../limits.ts"
import { type ActorPart, type ActorRead, type ActorSource, type ItemsPart, readActor,
  type RecordPart, StoreContents, type StoreContentsApi } from "../../ports/index.ts"
import { asStorageUnavailable, Nats, type NatsApi } from "../connection/index.ts"
import { recordOf, recordsKv } from "../records/index.ts"
import { type ActorEntry, isLiveItem, itemCount, itemsOf, loadEntry, parseEntry,
  readLog } from "../storage/index.ts"
import { acknowledgedSequence, actorBuckets, actorKeys, addressOfSignal, addressOfState,
  type Bucket, type BucketFailure, idOfState, isMarker, listSubjects, readLast, readLastOfMany,
  signalsOf, signalsOfKind, statesOfKind, statesOfShard,
  type StoredMessage } from "../stream/index.ts"

/** An actor to read, with the head of its record. */
export interface WantedActor {
  readonly address: Address
  readonly head: number
}

/** Groups the actors, so that a group has at most `contentsKeysPerRead` keys. */
export const groupReads = (wanted: ReadonlyArray<WantedActor>, extraItems: number) => {
  const groups: Array<Array<WantedActor>> = []
  let keys = Infinity
  for (const one of wanted) {
    const keysOfOne = 2 + one.head + extraItems
    keys += keysOfOne
    if (keys > contentsKeysPerRead) {
      groups.push([])
      keys = keysOfOne
    }
    groups.at(-1)?.push(one)
  }
  return groups
}

type Part = ItemsPart | ActorPart

interface Snapshot {
  readonly entry: ActorEntry
  readonly part: ActorPart
}

/** The earlier due time of an actor's own timer and the signal to it. */
const firstTimerMs = (
  timer: number | undefined,
  signal: StoredMessage | undefined
): number | undefined => {
  if (signal === undefined || isMarker(signal)) return timer
  return Math.min(timer ?? Infinity, Number(signal.text()))
}

const bySubject = (stored: ReadonlyArray<StoredMessage>): ReadonlyMap<string, StoredMessage> =>
  new Map(stored.map((message) => [message.subject, message]))

class NatsContents implements ActorSource {
  private readonly nats: NatsApi
  private readonly buckets: ReadonlyArray<Bucket>

  constructor(nats: NatsApi, buckets: ReadonlyArray<Bucket>) {
    this.nats = nats
    this.buckets = buckets
  }

  private bucketOf(of: Address): Bucket {
    const bucket = this.buckets[shardOf(of) % this.buckets.length]
    if (bucket === undefined) throw new RangeError(`no bucket for ${keyOf(of)}`)
    return bucket
  }

  async readRecord(of: Address): Promise<ActorRead> {
    const bucket = this.bucketOf(of)
    const { floor, head, seq, text, timer } = await loadEntry(this.nats, bucket, of)
    const signal = await readLast(this.nats, bucket.stream, actorKeys(bucket, of).signal)
    return { fence: seq, life: floor, state: text, head, timer: firstTimerMs(timer, signal) }
  }

  async read(of: Address, from: number, limit: number): Promise<ReadonlyArray<LogItem>> {
    return readLog(this.nats, this.bucketOf(of), of, undefined, { from, limit })
  }

  /** Reads the items, because a listed subject may have only a marker. */
  async numbers(of: Address): Promise<ReadonlyArray<number>> {
    const numbers: Array<number> = []
    for (;;) {
      const items = await this.read(of, (numbers.at(-1) ?? 0) + 1, contentsKeysPerRead)
      if (items.length === 0) return numbers
      for (const { n } of items) numbers.push(n)
    }
  }

  async *actors(first: ReadonlyArray<string> = []): AsyncGenerator<Part> {
    for (const kind of first) {
      for (const bucket of this.buckets) {
        const filters = [statesOfKind(bucket, kind), signalsOfKind(bucket, kind)] as const
        yield* this.turn(bucket, ...filters, () => true)
      }
    }
    const returned = new Set(first)
    for (let shard = 0; shard < SHARDS; shard++) {
      const bucket = this.buckets[shard % this.buckets.length]
      if (bucket === undefined) continue
      const filters = [statesOfShard(bucket, shard), signalsOf(bucket, shard)] as const
      yield* this.turn(bucket, ...filters, ({ kind }) => !returned.has(kind))
    }
  }

  async *ids(kind: string): AsyncGenerator<ReadonlyArray<string>> {
    for (const bucket of this.buckets) {
      const pages = listSubjects(this.nats, bucket.stream, statesOfKind(bucket, kind))
      for await (const { subjects } of pages) {
        yield subjects.map((subject) => idOfState(bucket, subject))
      }
    }
  }

  /**
   * The wanted actors with these state records or signals. Signals are listed first: an actor that
   * has only a signal may get its record when the records have been listed.
   */
  private async *turn(
    bucket: Bucket,
    states: string,
    signals: string,
    isWanted: (of: Address) => boolean
  ): AsyncGenerator<Part> {
    const withoutRecord = new Map<string, Address>()
    for await (const { subjects } of listSubjects(this.nats, bucket.stream, signals)) {
      for (const subject of subjects) {
        const of = addressOfSignal(bucket, subject)
        if (isWanted(of)) withoutRecord.set(keyOf(of), of)
      }
    }
    yield* this.states(bucket, states, (of) => {
      withoutRecord.delete(keyOf(of))
      return isWanted(of)
    })
    yield* this.each([...withoutRecord.values()])
  }

  /** The wanted actors whose state records match the filter. */
  private async *states(bucket: Bucket, filter: string, isWanted: (of: Address) => boolean) {
    for await (const page of listSubjects(this.nats, bucket.stream, filter)) {
      const all = page.subjects.map((subject) => addressOfState(bucket, subject))
        .filter(isWanted)
      for (let at = 0; at < all.length; at += contentsKeysPerRead) {
        yield* this.page(bucket, all.slice(at, at + contentsKeysPerRead), page.lastSeq)
      }
    }
  }

  /** The actors of a page: small ones in groups, the others one by one. */
  private async *page(
    bucket: Bucket,
    addresses: ReadonlyArray<Address>,
    lastSeq: number
  ): AsyncGenerator<Part> {
    const records = await this.recordsOf(bucket, addresses, lastSeq)
    let wanted = addresses.map((address): WantedActor => ({
      address,
      head: records.get(keyOf(address))?.head ?? 0
    }))
    for (const extraItems of contentsExtraItems) {
      const small = wanted.filter(({ head }) => 3 + head + extraItems <= contentsKeysPerRead)
      const left = wanted.filter((one) => !small.includes(one))
      for (const group of groupReads(small, extraItems)) {
        const snapshots = await this.snapshots(bucket, group, extraItems, lastSeq)
        // The snapshot is consistent if the record did not change meanwhile.
        const seq = await acknowledgedSequence(this.nats, bucket.stream)
        const after = await this.recordsOf(bucket, group.map((one) => one.address), seq)
        for (const one of group) {
          const key = keyOf(one.address)
          const snapshot = snapshots.get(key)
          if (snapshot === undefined || after.get(key)?.seq !== snapshot.entry.seq) left.push(one)
          else if (!isEmpty(snapshot.part)) yield snapshot.part
        }
      }
      wanted = left
    }
    yield* this.each(wanted.map(({ address }) => address))
  }

  private async recordsOf(
    bucket: Bucket,
    addresses: ReadonlyArray<Address>,
    lastSeq: number
  ): Promise<ReadonlyMap<string, ActorEntry>> {
    const subjects = addresses.map((of) => actorKeys(bucket, of).state)
    const found = bySubject(await readLastOfMany(this.nats, bucket.stream, subjects, lastSeq))
    return new Map(addresses.map((of) => [
      keyOf(of),
      parseEntry(found.get(actorKeys(bucket, of).state))
    ]))
  }

  /** Reads actors with their whole logs in one request. Returns them by key. */
  private async snapshots(
    bucket: Bucket,
    wanted: ReadonlyArray<WantedActor>,
    extraItems: number,
    lastSeq: number
  ): Promise<ReadonlyMap<string, Snapshot>> {
    const subjects = wanted.flatMap(({ address, head }) => {
      const { log, signal, state } = actorKeys(bucket, address)
      const items = Array.from({ length: head + extraItems }, (_, at) => log + (at + 1))
      return [state, signal, ...items]
    })
    const found = bySubject(await readLastOfMany(this.nats, bucket.stream, subjects, lastSeq))
    const snapshots = new Map<string, Snapshot>()
    for (const one of wanted) {
      const snapshot = snapshotOf(bucket, one, extraItems, found)
      if (snapshot !== undefined) snapshots.set(keyOf(one.address), snapshot)
    }
    return snapshots
  }

  /** Reads each actor alone, `contentsActorsInFlight` at once. */
  private async *each(addresses: ReadonlyArray<Address>): AsyncGenerator<Part> {
    for (let at = 0; at < addresses.length; at += contentsActorsInFlight) {
      const readers = addresses.slice(at, at + contentsActorsInFlight).map((of) =>
        readActor(this, of)
      )
      const begun = await Promise.all(
        readers.map(async (parts) => [parts, await parts.next()] as const)
      )
      for (const [parts, first] of begun) {
        if (first.done === true) continue
        yield first.value
        yield* parts
      }
    }
  }

  /** Each is read from a replica that holds what the listing covers: others show older values. */
  async *records(): AsyncGenerator<RecordPart> {
    const { prefix, stream } = recordsKv
    for await (const { lastSeq, subjects } of listSubjects(this.nats, stream, `${prefix}>`)) {
      const all = subjects.filter((subject) => !subject.startsWith(`${prefix}_`))
      for (let at = 0; at < all.length; at += contentsKeysPerRead) {
        const some = all.slice(at, at + contentsKeysPerRead)
        for (const stored of await readLastOfMany(this.nats, stream, some, lastSeq)) {
          if (isMarker(stored)) continue
          yield { _tag: "Record", ...recordOf(stored.subject), value: stored.text() }
        }
      }
    }
  }
}

const isEmpty = ({ head, state, timer }: ActorPart): boolean =>
  state === undefined && head === 0 && timer === undefined

/** The actor from the messages of one read; undefined if its log may be longer. */
const snapshotOf = (
  bucket: Bucket,
  { address, head }: WantedActor,
  extraItems: number,
  found: ReadonlyMap<string, StoredMessage>
): Snapshot | undefined => {
  const keys = actorKeys(bucket, address)
  const entry = parseEntry(found.get(keys.state))
  if (entry.head > head) return undefined
  const items: Array<LogItem> = []
  for (let n = 1; n <= head + extraItems;) {
    const stored = found.get(keys.log + n)
    if (stored !== undefined && isLiveItem(entry, n, stored)) {
      items.push(...itemsOf(n, stored))
      n += itemCount(stored)
    } else if (n <= entry.head) n++
    else {
      const last = Math.max(entry.head, n - 1)
      const timer = firstTimerMs(entry.timer, found.get(keys.signal))
      const { text: state } = entry
      const part = { address, state, head: last, timer, items, removed: [], steady: true } as const
      return { entry, part: { _tag: "Actor", ...part } }
    }
  }
  return undefined
}

async function* withTypedErrors<A>(parts: AsyncIterable<A>): AsyncGenerator<A> {
  try {
    yield* parts
  } catch (error) {
    throw asStorageUnavailable(error)
  }
}

/** The contents port; creates the actors' streams if they do not exist. */
export const natsContents = (
  options: { readonly buckets?: number } = {}
): Layer.Layer<StoreContents, BucketFailure, Nats> =>
  Layer.effect(
    StoreContents,
    Effect.gen(function*() {
      const nats = yield* Nats
      const buckets = yield* actorBuckets(nats, options.buckets)
      const contents = new NatsContents(nats, buckets)
      const api: StoreContentsApi = {
        actors: (first) => withTypedErrors(contents.actors(first)),
        actor: (of) => withTypedErrors(readActor(contents, of)),
        ids: (kind) => withTypedErrors(contents.ids(kind)),
        records: () => withTypedErrors(contents.records())
      }
      return api
    })
  )
