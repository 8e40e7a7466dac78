/**
 * The contents port: reads a whole store for archives and checks. Each actor is a consistent
 * snapshot, although nodes may write meanwhile. Blobs are listed by their own port. The contract
 * is the suite `test/suites/contents.ts`.
 */
import { Context } from "effect"
import { type Address, type LogItem, StorageUnavailable } from "../actor/index.ts"

/** Items of a long log, ascending; they precede the part with the actor itself. */
export interface ItemsPart {
  readonly _tag: "Items"
  readonly address: Address
  readonly items: ReadonlyArray<LogItem>
}

/** An actor, with the items that no earlier part had. */
export interface ActorPart {
  readonly _tag: "Actor"
  readonly address: Address
  /** undefined if the actor has a log or a timer, but no state record. */
  readonly state: string | undefined
  /** Number of the last item ever appended. */
  readonly head: number
  /** Its timer, ms since the epoch. */
  readonly timer: number | undefined
  /** Items that no earlier part had, ascending. */
  readonly items: ReadonlyArray<LogItem>
  /** Numbers of items in earlier parts that were removed during the read. */
  readonly removed: ReadonlyArray<number>
  /**
   * Whether the parts are one consistent snapshot. False if the actor changed during every attempt
   * to read it: then the state is the latest, and items that it has removed may still be listed.
   */
  readonly steady: boolean
}

/** One record of the store, with its table. */
export interface RecordPart {
  readonly _tag: "Record"
  readonly table: string
  readonly key: string
  readonly value: string
}

/**
 * The iterables throw StorageFailure. They use bounded memory, plus one item or state. Nodes may
 * run meanwhile: each actor is a consistent snapshot of some moment after the iterable began.
 */
export interface StoreContentsApi {
  /**
   * Every actor once; the parts of one actor are consecutive. All actors of the kinds `first` are
   * read before any other, kind by kind; actors of these kinds that begin after their turn are
   * omitted. An actor that had only a timer or a log when its turn began is read in every case,
   * though it may have got a state meanwhile.
   */
  readonly actors: (first?: ReadonlyArray<string>) => AsyncIterable<ItemsPart | ActorPart>
  /** The ids of all actors of a kind that have a state, page by page. */
  readonly ids: (kind: string) => AsyncIterable<ReadonlyArray<string>>
  /** One actor as it is now; nothing if it does not exist. */
  readonly actor: (address: Address) => AsyncIterable<ItemsPart | ActorPart>
  /** All records of all tables. */
  readonly records: () => AsyncIterable<RecordPart>
}

/** The port that reads everything in a store, for archives and checks. */
export class StoreContents extends Context.Service<StoreContents, StoreContentsApi>()(
  "restante/runtime/Contents"
) {}

/** Items in the first page, and at most in any page. */
const firstPageItems = 64

const pageItemsMax = 900

/** The size that later pages aim at. */
const pageTargetBytes = 2 * 1024 * 1024

/** How often an actor that changes during the read is read again. */
const attemptsMax = 20

/** An actor without its items. */
export interface ActorRead {
  /** Changes with every write of the record; every removal of items writes the record. */
  readonly fence: number
  /** Identifies the log. It differs after the actor was removed and created again. */
  readonly life: number
  readonly state: string | undefined
  readonly head: number
  readonly timer: number | undefined
}

/** The store's part of reading an actor. */
export interface ActorSource {
  readonly readRecord: (address: Address) => Promise<ActorRead>
  readonly read: (address: Address, from: number, limit: number) => Promise<ReadonlyArray<LogItem>>
  /** Numbers of all items. */
  readonly numbers: (address: Address) => Promise<ReadonlyArray<number>>
}

/** How many items fit a page, if they are as large as these. */
const pageItems = (items: ReadonlyArray<LogItem>): number => {
  const bytes = items.reduce((sum, { value }) => sum + value.length, 1)
  return Math.max(1, Math.min(pageItemsMax, Math.floor((pageTargetBytes * items.length) / bytes)))
}

/** The earlier of two timers: a timer that fires too early does no harm. */
const earlier = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined || other === undefined ? one ?? other : Math.min(one, other)

/** Whether no item was removed between the two reads; items may have been appended. */
const isUnchanged = (one: ActorRead, other: ActorRead): boolean =>
  one.fence === other.fence && one.life === other.life

/** All current items from a number on. */
const readRest = async (source: ActorSource, address: Address, from: number) => {
  const items: Array<LogItem> = []
  for (let next = from;;) {
    const page = await source.read(address, next, pageItemsMax)
    items.push(...page)
    const last = page.at(-1)
    if (last === undefined || page.length < pageItemsMax) return items
    next = last.n + 1
  }
}

/** The head with the items that were appended after the actor's record was read. */
const headOf = ({ head }: ActorRead, items: ReadonlyArray<LogItem>): number =>
  Math.max(head, items.at(-1)?.n ?? 0)

/** Reads an actor whose log takes several pages. */
class LongActor {
  private readonly source: ActorSource
  private readonly address: Address
  private readonly yielded: Array<number> = []

  constructor(source: ActorSource, address: Address) {
    this.source = source
    this.address = address
  }

  itemsPart(items: ReadonlyArray<LogItem>): ItemsPart {
    for (const { n } of items) this.yielded.push(n)
    return { _tag: "Items", address: this.address, items }
  }

  get last(): number {
    return this.yielded.at(-1) ?? 0
  }

  /** The last part; `first` is the actor's record before its first page. */
  async lastPart(first: ActorRead): Promise<ActorPart> {
    const { address, source } = this
    for (let attempts = 1;; attempts++) {
      const before = await source.readRecord(address)
      if (before.life !== first.life && this.yielded.length > 0) {
        const detail = `${address.kind}/${address.id} was removed and created again during the read`
        throw new StorageUnavailable({ detail })
      }
      let items = await readRest(source, address, this.last + 1)
      const isChanged = before.fence !== first.fence
      const present = isChanged ? new Set(await source.numbers(address)) : undefined
      const after = await source.readRecord(address)
      const steady = isUnchanged(before, after)
      if (!steady && attempts < attemptsMax) continue
      // The latest state may refer to items that were appended since.
      if (!steady) items = await readRest(source, address, this.last + 1)
      return {
        _tag: "Actor",
        address,
        state: after.state,
        head: headOf(steady ? before : after, items),
        timer: earlier(before.timer, after.timer),
        items,
        removed: present === undefined ? [] : this.yielded.filter((n) => !present.has(n)),
        steady
      }
    }
  }
}

/** The parts of one actor; none if it does not exist. */
export async function* readActor(
  source: ActorSource,
  address: Address
): AsyncGenerator<ItemsPart | ActorPart> {
  let before = await source.readRecord(address)
  let items = await source.read(address, 1, firstPageItems)
  for (let attempts = 1; items.length < firstPageItems; attempts++) {
    const after = await source.readRecord(address)
    const steady = isUnchanged(before, after)
    if (steady || attempts === attemptsMax) {
      const { state } = after
      const timer = earlier(before.timer, after.timer)
      if (!steady) items = await readRest(source, address, 1)
      const head = headOf(steady ? before : after, items)
      if (state === undefined && head === 0 && timer === undefined) return
      yield { _tag: "Actor", address, state, head, timer, items, removed: [], steady }
      return
    }
    before = after
    items = await source.read(address, 1, firstPageItems)
  }
  const long = new LongActor(source, address)
  for (let size = firstPageItems; items.length >= size;) {
    yield long.itemsPart(items)
    size = pageItems(items)
    items = await source.read(address, long.last + 1, size)
  }
  if (items.length > 0) yield long.itemsPart(items)
  yield await long.lastPart(before)
}
