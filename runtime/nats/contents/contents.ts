/**
 * The contents port on JetStream, with nodes running: actors page by page, each known to be as it
 * was at one moment because its record was not written while the rest of it was read.
 */
import { Effect, Layer } from "effect"
import { createHash } from "node:crypto"
import { type Address, keyOf, type LogItem, shardOf, SHARDS } from "../../actor/index.ts"
import { contentsActorsInFlight, contentsExtraItems, contentsKeysPerRead } from "../../limits.ts"
import { type ActorPart, type ActorRead, type ActorSource, type ItemsPart, readActor,
  type RecordPart, StoreContents, type StoreContentsApi } from "../../ports/index.ts"
import { asStorageUnavailable, Nats, type NatsApi } from "../connection/index.ts"
import { recordOf, recordsKv } from "../records/index.ts"
import { type ActorEntry, isLiveItem, isMarker, itemCount, itemsOf, loadEntry, parseEntry,
  readLog } from "../storage/index.ts"
import { acknowledgedSequence, actorBuckets, actorKeys, addressOfState, addressOfTimer, type Bucket,
  type BucketFailure, listSubjects, readLast, readLastOfMany, scanStream, signalsOf, statesOfKind,
  statesOfShard, type StoredMessage, timersOf } from "../stream/index.ts"

/** An actor to be read, with what its record told. */
export interface WantedActor {
  readonly address: Address
  readonly head: number
}

/** Groups of which none asks for more keys than one question may. */
export const groupReads = (wanted: ReadonlyArray<WantedActor>, beyond: number) => {
  const groups: Array<Array<WantedActor>> = []
  let keys = Infinity
  for (const one of wanted) {
    const more = 2 + one.head + beyond
    keys += more
    if (keys > contentsKeysPerRead) {
      groups.push([])
      keys = more
    }
    groups.at(-1)?.push(one)
  }
  return groups
}

/* How actors are put together in questions when all of the store is read. */

type Part = ItemsPart | ActorPart

interface Snapshot {
  readonly entry: ActorEntry
  readonly part: ActorPart
}

/** When the first of an actor's timer and signal is due. */
const firstTimerMs = (
  ...stored: ReadonlyArray<StoredMessage | undefined>
): number | undefined => {
  const times = stored.flatMap((one) =>
    one === undefined || isMarker(one) ? [] : [Number(one.text())]
  )
  return times.length === 0 ? undefined : Math.min(...times)
}

const bySubject = (stored: ReadonlyArray<StoredMessage>): ReadonlyMap<string, StoredMessage> =>
  new Map(stored.map((message) => [message.subject, message]))

class NatsContents implements ActorSource {
  private readonly nats: NatsApi
  private readonly places: ReadonlyArray<Bucket>

  constructor(nats: NatsApi, places: ReadonlyArray<Bucket>) {
    this.nats = nats
    this.places = places
  }

  private placeOf(of: Address): Bucket {
    const place = this.places[shardOf(of) % this.places.length]
    if (place === undefined) throw new RangeError(`no bucket for ${keyOf(of)}`)
    return place
  }

  async look(of: Address): Promise<ActorRead> {
    const place = this.placeOf(of)
    const { floor, head, seq, text } = await loadEntry(this.nats, place, of)
    const { signal, timer } = actorKeys(place, of)
    const own = await readLast(this.nats, place.stream, timer)
    const timerMs = firstTimerMs(own, await readLast(this.nats, place.stream, signal))
    return { fence: seq, life: floor, state: text, head, timer: timerMs }
  }

  async read(of: Address, from: number, limit: number): Promise<ReadonlyArray<LogItem>> {
    return readLog(this.nats, this.placeOf(of), of, undefined, from, limit)
  }

  /** Names alone do not tell what is a mark, so the items are read. */
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
      for (const place of this.places) yield* this.states(place, statesOfKind(place, kind))
    }
    const told = new Set(first)
    for (let shard = 0; shard < SHARDS; shard++) {
      const place = this.places[shard % this.places.length]
      if (place !== undefined) yield* this.shard(place, shard, told)
    }
  }

  /** The actors of these records that are wanted. */
  private async *states(place: Bucket, filter: string, isWanted?: (of: Address) => boolean) {
    for await (const page of listSubjects(this.nats, place.stream, filter)) {
      const all = page.subjects.map((subject) => addressOfState(place, subject))
        .filter((of) => isWanted?.(of) ?? true)
      for (let at = 0; at < all.length; at += contentsKeysPerRead) {
        yield* this.page(place, all.slice(at, at + contentsKeysPerRead), page.lastSeq)
      }
    }
  }

  /** But for kinds that are told already. */
  private async *shard(place: Bucket, shard: number, told: ReadonlySet<string>) {
    const { nats } = this
    const known = new Set<string>()
    yield* this.states(place, statesOfShard(place, shard), (of) => {
      known.add(keyOf(of))
      return !told.has(of.kind)
    })
    const bare: Array<Address> = []
    for (const filter of [timersOf(place, shard), signalsOf(place, shard)]) {
      for await (const { subjects } of listSubjects(nats, place.stream, filter)) {
        for (const subject of subjects) {
          const of = addressOfTimer(place, subject)
          if (known.has(keyOf(of))) continue
          known.add(keyOf(of))
          bare.push(of)
        }
      }
    }
    yield* this.each(bare)
  }

  /** The actors of a page: the small ones many at once, the others by themselves. */
  private async *page(
    place: Bucket,
    addresses: ReadonlyArray<Address>,
    lastSeq: number
  ): AsyncGenerator<Part> {
    const records = await this.recordsOf(place, addresses, lastSeq)
    let wanted = addresses.map((address): WantedActor => ({
      address,
      head: records.get(keyOf(address))?.head ?? 0
    }))
    for (const beyond of contentsExtraItems) {
      const small = wanted.filter(({ head }) => 3 + head + beyond <= contentsKeysPerRead)
      const left = wanted.filter((one) => !small.includes(one))
      for (const group of groupReads(small, beyond)) {
        const snapshots = await this.snapshots(place, group, beyond, lastSeq)
        // What was read is of one moment when its record is the same still.
        const seq = await acknowledgedSequence(this.nats, place.stream)
        const after = await this.recordsOf(place, group.map((one) => one.address), seq)
        for (const one of group) {
          const key = keyOf(one.address)
          const snapshot = snapshots.get(key)
          if (snapshot === undefined || after.get(key)?.seq !== snapshot.entry.seq) left.push(one)
          else if (!isNothing(snapshot.part)) yield snapshot.part
        }
      }
      wanted = left
    }
    yield* this.each(wanted.map(({ address }) => address))
  }

  private async recordsOf(
    place: Bucket,
    addresses: ReadonlyArray<Address>,
    lastSeq: number
  ): Promise<ReadonlyMap<string, ActorEntry>> {
    const subjects = addresses.map((of) => actorKeys(place, of).state)
    const found = bySubject(await readLastOfMany(this.nats, place.stream, subjects, lastSeq))
    return new Map(addresses.map((of) => [
      keyOf(of),
      parseEntry(found.get(actorKeys(place, of).state))
    ]))
  }

  /** Actors whose whole logs came with their records, by key. */
  private async snapshots(
    place: Bucket,
    wanted: ReadonlyArray<WantedActor>,
    beyond: number,
    lastSeq: number
  ): Promise<ReadonlyMap<string, Snapshot>> {
    const subjects = wanted.flatMap(({ address, head }) => {
      const { log, signal, state, timer } = actorKeys(place, address)
      const items = Array.from({ length: head + beyond }, (_, at) => log + (at + 1))
      return [state, timer, signal, ...items]
    })
    const found = bySubject(await readLastOfMany(this.nats, place.stream, subjects, lastSeq))
    const snapshots = new Map<string, Snapshot>()
    for (const one of wanted) {
      const snapshot = snapshotOf(place, one, beyond, found)
      if (snapshot !== undefined) snapshots.set(keyOf(one.address), snapshot)
    }
    return snapshots
  }

  /** Each by itself, the next ones begun before they are asked for. */
  private async *each(addresses: ReadonlyArray<Address>): AsyncGenerator<Part> {
    for (let at = 0; at < addresses.length; at += contentsActorsInFlight) {
      const some = addresses.slice(at, at + contentsActorsInFlight).map((of) => readActor(this, of))
      const begun = await Promise.all(
        some.map(async (parts) => [parts, await parts.next()] as const)
      )
      for (const [parts, first] of begun) {
        if (first.done === true) continue
        yield first.value
        yield* parts
      }
    }
  }

  async *records(): AsyncGenerator<RecordPart> {
    const { prefix, stream } = recordsKv
    // One that was rewritten meanwhile comes again, at the end.
    const told = new Set<number>()
    for await (const { isNew, messages } of scanStream(this.nats, stream, `${prefix}>`)) {
      for (const stored of messages) {
        const { subject } = stored
        if (isMarker(stored) || subject.startsWith(`${prefix}_`)) continue
        const mark = markOf(subject)
        if (isNew && told.has(mark)) continue
        told.add(mark)
        const { key, table } = recordOf(subject)
        yield { _tag: "Record", table, key, value: stored.text() }
      }
    }
  }
}

/** 48 bits that stand for a subject, among a million of others. */
const markOf = (subject: string): number =>
  createHash("sha256").update(subject).digest().readUIntBE(0, 6)

const isNothing = ({ head, state, timer }: ActorPart): boolean =>
  state === undefined && head === 0 && timer === undefined

/** The actor as one question found it; undefined when there may be more of its log. */
const snapshotOf = (
  place: Bucket,
  { address, head }: WantedActor,
  beyond: number,
  found: ReadonlyMap<string, StoredMessage>
): Snapshot | undefined => {
  const keys = actorKeys(place, address)
  const entry = parseEntry(found.get(keys.state))
  if (entry.head > head) return undefined
  const items: Array<LogItem> = []
  for (let n = 1; n <= head + beyond;) {
    const stored = found.get(keys.log + n)
    if (stored !== undefined && isLiveItem(entry, n, stored)) {
      items.push(...itemsOf(n, stored))
      n += itemCount(stored)
    } else if (n <= entry.head) n++
    else {
      const last = Math.max(entry.head, n - 1)
      const timer = firstTimerMs(found.get(keys.timer), found.get(keys.signal))
      const { text: state } = entry
      const part = { address, state, head: last, timer, items, removed: [], steady: true } as const
      return { entry, part: { _tag: "Actor", ...part } }
    }
  }
  return undefined
}

async function* failing<A>(parts: AsyncIterable<A>): AsyncGenerator<A> {
  try {
    yield* parts
  } catch (error) {
    throw asStorageUnavailable(error)
  }
}

/** The contents port. The streams of the actors are made when they are not there. */
export const natsContents = (
  options: { readonly buckets?: number } = {}
): Layer.Layer<StoreContents, BucketFailure, Nats> =>
  Layer.effect(
    StoreContents,
    Effect.gen(function*() {
      const nats = yield* Nats
      const places = yield* actorBuckets(nats, options.buckets)
      const contents = new NatsContents(nats, places)
      const api: StoreContentsApi = {
        actors: (first) => failing(contents.actors(first)),
        actor: (of) => failing(readActor(contents, of)),
        records: () => failing(contents.records())
      }
      return api
    })
  )
