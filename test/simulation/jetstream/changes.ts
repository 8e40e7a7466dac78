/** What the messages of the store's buckets mean: stored actors, and the changes of each write. */
import { Effect } from "effect"
import type { StoredChange } from "../../../runtime/testing/index.ts"
import { type Address, keyOf, shardOf } from "../../../runtime/actor/address.ts"
import type { LogItem } from "../../../runtime/actor/behavior.ts"
import { type ActorEntry, headHeader, isLiveItem, itemCount, itemsOf, lowWatermarkHeader,
  parseEntry, parseLogMessage, revisionHeader } from "../../../runtime/nats/storage/actor-entry.ts"
import { actorKeys, type Bucket, bucketName, bucketNamed, idOfState,
  statesOfKind } from "../../../runtime/nats/stream/keys.ts"
import { isMarker, type StoredMessage } from "../../../runtime/nats/stream/reader.ts"
import type { StorageApi } from "../../../runtime/ports/storage.ts"
import type { SimulatedJetStream } from "./server.ts"
import { fieldOf, type Published, type Stored } from "./stream.ts"

const storedMessage = (message: Published, seq: number): StoredMessage => ({
  subject: message.subject,
  seq,
  header: (name) => fieldOf(message.headers, name),
  text: () => message.data.toString(),
  bytes: () => message.data
})

/** The key of an actor's own message: `state`, `fence` or `log`. */
interface OwnKey {
  readonly address: Address
  readonly what: string
  readonly n: number
}

const ownKeyOf = (subject: string): OwnKey | undefined => {
  const [, , shard = "", kind = "", id = "", what = "", n] = subject.split(".")
  if (!/^\d+$/.test(shard)) return undefined
  return { address: { kind, id }, what, n: Number(n) }
}

/** The actors whose commits these messages are. */
export const actorsOf = (messages: ReadonlyArray<Published>): ReadonlyArray<Address> => {
  const actors = new Map<string, Address>()
  for (const { subject } of messages) {
    const own = ownKeyOf(subject)
    if (own !== undefined) actors.set(keyOf(own.address), own.address)
  }
  return [...actors.values()]
}

/** Follows the writes of all streams. */
export class Changes {
  /** By actor: the key of the message that holds each item. */
  private readonly items = new Map<string, Map<number, number>>()

  /** What a write changes of each actor. */
  of(messages: ReadonlyArray<Published>): ReadonlyArray<StoredChange> {
    const changes = new Map<string, StoredChange>()
    for (const message of messages) {
      const own = ownKeyOf(message.subject)
      if (own === undefined || own.what === "fence") continue
      const key = keyOf(own.address)
      const before = changes.get(key) ??
        { address: own.address, append: [], remove: [], state: undefined }
      const items = this.items.get(key) ?? new Map<number, number>()
      this.items.set(key, items)
      const stored = storedMessage(message, 0)
      const after = own.what === "state"
        ? stateChange(stored, items)
        : logChange(own.n, stored, items)
      changes.set(key, {
        address: own.address,
        append: [...before.append, ...after.append ?? []],
        remove: [...before.remove, ...after.remove ?? []],
        state: after.state === undefined ? before.state : after.state
      })
    }
    return [...changes.values()]
  }
}

const stateChange = (record: StoredMessage, items: Map<number, number>): Partial<StoredChange> => {
  const head = record.header(headHeader)
  if (isMarker(record)) {
    if (head !== undefined) return {}
    items.clear()
    return { state: null }
  }
  const watermark = Number(record.header(lowWatermarkHeader) ?? 0)
  const remove = [...items.keys()].filter((n) => n <= watermark)
  for (const n of remove) items.delete(n)
  // A record that only repeats its text names the revision of it.
  return record.header(revisionHeader) === undefined ? { remove, state: record.text() } : { remove }
}

const logChange = (
  key: number,
  message: StoredMessage,
  items: Map<number, number>
): Partial<StoredChange> => {
  const values = isMarker(message) ? [] : parseLogMessage(key, message).values
  const remove = [...items].filter(([n, holder]) => holder === key && values[n - key] === undefined)
    .map(([n]) => n)
  for (const n of remove) items.delete(n)
  const append = values.flatMap((value, at): ReadonlyArray<LogItem> =>
    value === undefined || items.has(key + at) ? [] : [{ n: key + at, value }]
  )
  for (const { n } of append) items.set(n, key)
  return { append, remove }
}

interface StoredLog {
  readonly entry: ActorEntry
  readonly head: number
  readonly items: ReadonlyArray<LogItem>
}

/** Reads the streams as they are, without a connection. */
export const storedActors = (server: SimulatedJetStream, buckets: number): StorageApi => {
  const all = Array.from({ length: buckets }, (_, at) => bucketNamed(bucketName(at, buckets)))
  const last = ({ stream }: Bucket, subject: string): StoredMessage | undefined => {
    const found: Stored | undefined = server.last(stream, subject)
    return found && storedMessage(found, found.seq)
  }
  const logOf = (of: Address): StoredLog => {
    const bucket = all[shardOf(of) % buckets]
    if (bucket === undefined) throw new RangeError("there is no bucket")
    const { log, state } = actorKeys(bucket, of)
    const entry = parseEntry(last(bucket, state))
    let { head } = entry
    const items: Array<LogItem> = []
    for (const subject of server.list(bucket.stream, `${log}*`)) {
      const n = Number(subject.slice(log.length))
      const message = last(bucket, subject)
      if (message === undefined || !isLiveItem(entry, n, message)) continue
      head = Math.max(head, n + itemCount(message) - 1)
      items.push(...itemsOf(n, message))
    }
    return { entry, head, items: items.sort((one, other) => one.n - other.n) }
  }
  return {
    engine: "JetStream",
    streamOf: (shard) => shard % buckets,
    commit: () => Effect.die("only nodes commit"),
    load: (address) =>
      Effect.sync(() => {
        const { entry: { revision, text: state, timer }, head } = logOf(address)
        return { state, revision, head, timer }
      }),
    read: (address, from, limit) =>
      Effect.sync(() => logOf(address).items.filter(({ n }) => n >= from).slice(0, limit)),
    timers: () => Effect.die("only nodes read timers"),
    scan: (kind, after = "", limit) =>
      Effect.sync(() =>
        all.flatMap((bucket) =>
          server.list(bucket.stream, statesOfKind(bucket, kind)).flatMap((subject) => {
            const record = last(bucket, subject)
            const id = idOfState(bucket, subject)
            return record === undefined || isMarker(record) || id <= after ? [] : [id]
          })
        ).sort().slice(0, limit)
      ),
    health: Effect.void
  }
}
