/** The contents port on the embedded store: reads all of it, for archives. */
import { type Address, fromKey, keyOf, type LogItem, SHARDS } from "../actor/index.ts"
import { contentsItems, contentsPage } from "../limits.ts"
import { type ActorPart, type ActorRead, type ActorSource, type ItemsPart, readActor,
  type RecordPart, type StoreContentsApi } from "../ports/index.ts"
import { asFailure, type EngineSnapshot, pagesOf, readSpan } from "./engine/index.ts"
import * as keys from "./keys.ts"
import { type EmbeddedStore, itemsIn, parseRecord } from "./storage/index.ts"

/** When the first of an actor's timer and signal is due, given their texts. */
const firstOf = (
  timer: string | undefined,
  signal: string | undefined
): number | undefined => {
  const atMs = Math.min(
    timer === undefined ? Infinity : Number(timer),
    signal === undefined ? Infinity : keys.parseSignal(signal).atMs
  )
  return atMs === Infinity ? undefined : atMs
}

class EmbeddedContents implements ActorSource {
  private readonly store: EmbeddedStore

  constructor(store: EmbeddedStore) {
    this.store = store
  }

  private pages(prefix: string, values: boolean) {
    return pagesOf(this.store.database, prefix, { limit: contentsPage, values })
  }

  /** Record, epoch of a log without one, and timer. */
  private texts(of: Address, view: EngineSnapshot = this.store.database()) {
    const key = keyOf(of)
    return view.getTexts([
      keys.actorKey(key),
      keys.bareKey(key),
      keys.timerKey(key),
      keys.signalKey(of)
    ])
  }

  async readRecord(of: Address): Promise<ActorRead> {
    return this.store.database().withSnapshot((view) => this.recordIn(view, of))
  }

  private async recordIn(view: EngineSnapshot, of: Address): Promise<ActorRead> {
    const [record, bare, timer, signal] = this.texts(of, view)
    const parsed = record === undefined ? undefined : parseRecord(record)
    const life = parsed?.epoch ?? Number(bare ?? 0)
    const prefix = keys.logPrefix(life)
    const last = life === 0 ? undefined : await view.lastKey(prefix, keys.logEnd(prefix))
    return {
      fence: parsed?.revision ?? 0,
      life,
      state: parsed?.state,
      head: Math.max(parsed?.head ?? 0, keys.lastNumber(last ?? "0")),
      timer: firstOf(timer, signal)
    }
  }

  async read(of: Address, from: number, limit: number) {
    const [record, bare] = this.texts(of)
    const life = record === undefined ? Number(bare ?? 0) : parseRecord(record).epoch
    return life === 0 ? [] : this.items(life, from, limit)
  }

  private async items(life: number, from: number, limit: number) {
    const prefix = keys.logPrefix(life)
    const span = { gte: prefix + keys.digits(from), lt: keys.logEnd(prefix), limit }
    return itemsIn(await readSpan(this.store.database, span, false))
  }

  async numbers(of: Address): Promise<ReadonlyArray<number>> {
    const { life } = await this.readRecord(of)
    const numbers: Array<number> = []
    for await (const page of this.pages(keys.logPrefix(life), false)) {
      for (const [key] of page) numbers.push(keys.lastNumber(key))
    }
    return numbers
  }

  /**
   * Reads the actors of a page of state records. Their timers and short logs belong to the same
   * moment if the records have not changed afterwards. Other actors are read one by one.
   */
  private async *page(
    page: ReadonlyArray<readonly [string, string]>
  ): AsyncGenerator<ItemsPart | ActorPart> {
    const found = page.map(([key, record]) => ({
      key,
      address: fromKey(key),
      ...parseRecord(record)
    }))
    const timers = this.store.database().getTexts(
      found.flatMap(({ address, key }) => [keys.timerKey(key), keys.signalKey(address)])
    )
    const firsts = this.store.database().getTexts(
      found.map(({ epoch, head }) => keys.logPrefix(epoch) + keys.digits(head + 1))
    )
    const logs: Array<ReadonlyArray<LogItem>> = []
    for (const [at, { epoch, head }] of found.entries()) {
      const isEmpty = head === 0 && firsts[at] === undefined
      logs.push(isEmpty ? [] : await this.items(epoch, 1, contentsItems))
    }
    const records = this.store.database().getTexts(page.map(([key]) => keys.actorKey(key)))
    for (const [at, { address, head, state }] of found.entries()) {
      const items = logs[at] ?? []
      if (records[at] !== page[at]?.[1] || items.length >= contentsItems) {
        yield* readActor(this, address)
        continue
      }
      const timer = firstOf(timers[2 * at], timers[2 * at + 1])
      const common = { address, state, timer, items, removed: [], steady: true }
      yield { _tag: "Actor", head: Math.max(head, items.at(-1)?.n ?? 0), ...common }
    }
  }

  async *actors(first: ReadonlyArray<string> = []): AsyncGenerator<ItemsPart | ActorPart> {
    for (const kind of first) yield* this.turn(kind, () => true)
    const done = new Set(first)
    yield* this.turn(undefined, (key) => !done.has(key.slice(0, key.indexOf("/"))))
  }

  /**
   * The wanted actors of a kind, or of all kinds. The keys of those without a record are listed
   * first: such an actor may get its record when the records of its page have been read.
   */
  private async *turn(
    kind: string | undefined,
    isWanted: (key: string) => boolean
  ): AsyncGenerator<ItemsPart | ActorPart> {
    const prefix = kind === undefined ? "" : `${kind}/`
    const withoutRecord = new Set<string>()
    for await (const key of this.keysWithoutRecord(prefix)) {
      if (isWanted(key)) withoutRecord.add(key)
    }
    for await (const page of this.pages(keys.actorKey(prefix), true)) {
      const wanted = page.map(([rest, record]) => [prefix + rest, record] as const)
        .filter(([key]) => isWanted(key))
      for (const [key] of wanted) withoutRecord.delete(key)
      yield* this.page(wanted)
    }
    for (const key of withoutRecord) yield* readActor(this, fromKey(key))
  }

  /** The keys, which begin with `prefix`, of actors that have a log, timer or signal only. */
  private async *keysWithoutRecord(prefix: string): AsyncGenerator<string> {
    const signals = Array.from({ length: SHARDS }, (_, shard) => keys.signalPrefix(shard))
    for (const place of [keys.bareKey(""), keys.timerKey(""), ...signals]) {
      for await (const page of this.pages(place + prefix, false)) {
        const found = page.map(([rest]) => prefix + rest)
        const records = this.store.database().getTexts(found.map(keys.actorKey))
        yield* found.filter((_, at) => records[at] === undefined)
      }
    }
  }

  async *ids(kind: string): AsyncGenerator<ReadonlyArray<string>> {
    for await (const page of this.pages(keys.actorKey(`${kind}/`), false)) {
      yield page.map(([id]) => id)
    }
  }

  async *records(): AsyncGenerator<RecordPart> {
    for await (const page of this.pages("record/", true)) {
      for (const [key, value] of page) {
        const end = key.indexOf("/")
        yield { _tag: "Record", table: key.slice(0, end), key: key.slice(end + 1), value }
      }
    }
  }
}

/** Maps what a generator throws to the failures of the port. */
async function* mapFailures<A>(parts: AsyncIterable<A>): AsyncGenerator<A> {
  try {
    yield* parts
  } catch (error) {
    throw asFailure(error)
  }
}

/** The contents port on an open store. */
export const makeContents = (store: EmbeddedStore): StoreContentsApi => {
  const contents = new EmbeddedContents(store)
  return {
    actors: (first) => mapFailures(contents.actors(first)),
    actor: (of) => mapFailures(readActor(contents, of)),
    ids: (kind) => mapFailures(contents.ids(kind)),
    records: () => mapFailures(contents.records())
  }
}
