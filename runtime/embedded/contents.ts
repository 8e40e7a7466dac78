/** The contents port on the embedded store: reads all of it, for archives. */
import { type Address, fromKey, keyOf, type LogItem } from "../actor/index.ts"
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
    for (const kind of first) {
      for await (const page of this.pages(`actor/${kind}/`, true)) {
        yield* this.page(page.map(([id, record]) => [`${kind}/${id}`, record] as const))
      }
    }
    const done = new Set(first)
    for await (const page of this.pages("actor/", true)) {
      yield* this.page(page.filter(([key]) => !done.has(key.slice(0, key.indexOf("/")))))
    }
    for await (const page of this.pages("bare/", false)) {
      for (const [key] of page) yield* readActor(this, fromKey(key))
    }
    for (const prefix of ["timer/", "signal/"]) {
      for await (const page of this.pages(prefix, false)) {
        for (const [key] of page) {
          const of = fromKey(prefix === "timer/" ? key : key.slice(key.indexOf("/") + 1))
          const [record, bare, timer] = this.texts(of)
          // The others were read with their records, logs or timers.
          const isRead = record !== undefined || bare !== undefined ||
            (prefix === "signal/" && timer !== undefined)
          if (!isRead) yield* readActor(this, of)
        }
      }
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
    records: () => mapFailures(contents.records())
  }
}
