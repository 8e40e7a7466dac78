/** The contents port on the embedded store. */
import { type Address, fromKey, keyOf, type LogItem } from "../actor/index.ts"
import { contentsItems, contentsPage } from "../limits.ts"
import { type ActorPart, type ActorRead, type ActorSource, type ItemsPart, readActor,
  type RecordPart, type StoreContentsApi } from "../ports/index.ts"
import { asFailure, type EngineSnapshot, readSpan } from "./engine/index.ts"
import * as keys from "./keys.ts"
import { asItems, type EmbeddedStore, parseRecord } from "./storage/index.ts"

class EmbeddedContents implements ActorSource {
  private readonly store: EmbeddedStore

  constructor(store: EmbeddedStore) {
    this.store = store
  }

  /** Pages of rows: keys, without what they all begin with, and values in turn. */
  async *pages(prefix: string, values: boolean): AsyncGenerator<ReadonlyArray<[string, string]>> {
    const lt = keys.endOf(prefix)
    let from: { gte: string } | { gt: string } = { gte: prefix }
    for (;;) {
      const span = { ...from, lt, limit: contentsPage }
      const rows = await readSpan(this.store.database, span, false, values)
      const page: Array<[string, string]> = []
      for (let at = 0; at < rows.length; at += 2) {
        page.push([(rows[at] ?? "").slice(prefix.length), rows[at + 1] ?? ""])
      }
      yield page
      if (page.length < contentsPage) return
      from = { gt: rows.at(-2) ?? "" }
      // Others have their turn, where the service runs.
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  /** Record, epoch of a log without one, and timer. */
  private texts(of: Address, view: EngineSnapshot = this.store.database()) {
    const key = keyOf(of)
    return view.getTexts([keys.actorKey(key), keys.bareKey(key), keys.timerKey(of)])
  }

  async look(of: Address): Promise<ActorRead> {
    return this.store.database().atOnce((view) => this.lookIn(view, of))
  }

  private async lookIn(view: EngineSnapshot, of: Address): Promise<ActorRead> {
    const [record, bare, timer] = this.texts(of, view)
    const parsed = record === undefined ? undefined : parseRecord(record)
    const life = parsed?.epoch ?? Number(bare ?? 0)
    const prefix = keys.logPrefix(life)
    const last = life === 0 ? undefined : await view.lastKey(prefix, keys.logEnd(prefix))
    return {
      fence: parsed?.revision ?? 0,
      life,
      state: parsed?.state,
      head: Math.max(parsed?.head ?? 0, keys.lastNumber(last ?? "0")),
      timer: timer === undefined ? undefined : Number(timer)
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
    return asItems(await readSpan(this.store.database, span, false))
  }

  async numbers(of: Address): Promise<ReadonlyArray<number>> {
    const { life } = await this.look(of)
    const numbers: Array<number> = []
    for await (const page of this.pages(keys.logPrefix(life), false)) {
      for (const [key] of page) numbers.push(keys.lastNumber(key))
    }
    return numbers
  }

  /**
   * Actors of which the records are known. What is read beside them is of the same moment when the
   * records are the same afterwards; whatever is larger, or changes, is read by itself.
   */
  private async *page(
    page: ReadonlyArray<[string, string]>
  ): AsyncGenerator<ItemsPart | ActorPart> {
    const found = page.map(([key, record]) => ({
      key,
      address: fromKey(key),
      ...parseRecord(record)
    }))
    const timers = this.store.database().getTexts(found.map((one) => keys.timerKey(one.address)))
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
      const timer = timers[at] === undefined ? undefined : Number(timers[at])
      const common = { address, state, timer, items, removed: [], steady: true }
      yield { _tag: "Actor", head: Math.max(head, items.at(-1)?.n ?? 0), ...common }
    }
  }

  async *actors(first: ReadonlyArray<string> = []): AsyncGenerator<ItemsPart | ActorPart> {
    for (const kind of first) {
      for await (const page of this.pages(`actor/${kind}/`, true)) {
        yield* this.page(page.map(([id, record]) => [`${kind}/${id}`, record]))
      }
    }
    const told = new Set(first)
    for await (const page of this.pages("actor/", true)) {
      yield* this.page(page.filter(([key]) => !told.has(key.slice(0, key.indexOf("/")))))
    }
    for await (const page of this.pages("bare/", false)) {
      for (const [key] of page) yield* readActor(this, fromKey(key))
    }
    for await (const page of this.pages("timer/", false)) {
      for (const [key] of page) {
        const of = fromKey(key.slice(key.indexOf("/") + 1))
        const [record, bare] = this.texts(of)
        // All others were told with their records.
        if (record === undefined && bare === undefined) yield* readActor(this, of)
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

async function* failing<A>(parts: AsyncIterable<A>): AsyncGenerator<A> {
  try {
    yield* parts
  } catch (error) {
    throw asFailure(error)
  }
}

/** The contents port upon an open store. */
export const makeContents = (store: EmbeddedStore): StoreContentsApi => {
  const contents = new EmbeddedContents(store)
  return {
    actors: (first) => failing(contents.actors(first)),
    actor: (of) => failing(readActor(contents, of)),
    records: () => failing(contents.records())
  }
}
