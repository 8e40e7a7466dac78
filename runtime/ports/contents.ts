/** Reads one actor as it was at one moment, from a store that others may write meanwhile. */
import { Context } from "effect"
import { type Address, type LogItem, StorageUnavailable } from "../actor/index.ts"

/** Items of an actor's log, ascending; of a long log, before the actor itself. */
export interface ItemsPart {
  readonly _tag: "Items"
  readonly address: Address
  readonly items: ReadonlyArray<LogItem>
}

/** An actor, or the rest of it. */
export interface ActorPart {
  readonly _tag: "Actor"
  readonly address: Address
  /** undefined where there is no state record, but a log or a timer. */
  readonly state: string | undefined
  /** Number of the last item ever appended. */
  readonly head: number
  /** Its timer, ms since the epoch. */
  readonly timer: number | undefined
  /** Items that no part before has brought, ascending. */
  readonly items: ReadonlyArray<LogItem>
  /** Items of the parts before that were removed while they were read. */
  readonly removed: ReadonlyArray<number>
  /**
   * Whether all of it is as it was at one moment. Not where it was changed again and again while
   * it was read: then the state is the latest, and items that it knows to be removed may be there.
   */
  readonly steady: boolean
}

export interface RecordPart {
  readonly _tag: "Record"
  readonly table: string
  readonly key: string
  readonly value: string
}

/**
 * The iterables throw StorageFailure. Memory is bounded, but for one item or state. Nodes may run
 * meanwhile: each actor is told as it was at one moment since the iterable was begun.
 */
export interface StoreContentsApi {
  /**
   * Every actor once; the parts of one actor follow on each other. All of the kinds `first` are
   * read before any of another kind is; of those, what begins meanwhile is left out.
   */
  readonly actors: (first?: ReadonlyArray<string>) => AsyncIterable<ItemsPart | ActorPart>
  /** One actor as it is now; nothing when there is nothing of it. */
  readonly actor: (address: Address) => AsyncIterable<ItemsPart | ActorPart>
  readonly records: () => AsyncIterable<RecordPart>
}

export class StoreContents extends Context.Service<StoreContents, StoreContentsApi>()(
  "restante/runtime/Contents"
) {}

/*
 * The contents port: all that a store holds, read from its beginning to its end without asking for
 * it by name, for archives and checks. Blobs are listed by their own port. The contract is the
 * suite `test/suites/contents.ts`.
 */

/** Items read at first, and at most at once; bytes that are aimed at from then on. */
const PAGE_FIRST = 64

const PAGE_MAX = 900

const PAGE_BYTES = 2 * 1024 * 1024

/** How often an actor is read again that was changed meanwhile. */
const TRIES_MAX = 20

/** An actor without its items. */
export interface ActorRead {
  /** Changes with every write of the record, and so with every removal of items. */
  readonly fence: number
  /** Names the log: another one is of an actor that was removed and made again. */
  readonly life: number
  readonly state: string | undefined
  readonly head: number
  readonly timer: number | undefined
}

/** What reading needs of a store. */
export interface ActorSource {
  readonly look: (address: Address) => Promise<ActorRead>
  readonly read: (address: Address, from: number, limit: number) => Promise<ReadonlyArray<LogItem>>
  /** Numbers of all items. */
  readonly numbers: (address: Address) => Promise<ReadonlyArray<number>>
}

/** How many items of this kind make up a page. */
const pageOf = (items: ReadonlyArray<LogItem>): number => {
  const bytes = items.reduce((sum, { value }) => sum + value.length, 1)
  return Math.max(1, Math.min(PAGE_MAX, Math.floor((PAGE_BYTES * items.length) / bytes)))
}

/** An early timer does no harm. */
const earlier = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined || other === undefined ? one ?? other : Math.min(one, other)

/** Items may have been appended between the two, but none was removed. */
const isSame = (one: ActorRead, other: ActorRead): boolean =>
  one.fence === other.fence && one.life === other.life

/** Items from a number on that are there now; of items without gaps none is missed. */
const rest = async (source: ActorSource, address: Address, from: number) => {
  const items: Array<LogItem> = []
  for (let next = from;;) {
    const page = await source.read(address, next, PAGE_MAX)
    items.push(...page)
    const last = page.at(-1)
    if (last === undefined || page.length < PAGE_MAX) return items
    next = last.n + 1
  }
}

/** Items may have been appended since the actor was looked at, but none is missing before. */
const headOf = ({ head }: ActorRead, items: ReadonlyArray<LogItem>): number =>
  Math.max(head, items.at(-1)?.n ?? 0)

class LongActor {
  private readonly source: ActorSource
  private readonly address: Address
  private readonly told: Array<number> = []

  constructor(source: ActorSource, address: Address) {
    this.source = source
    this.address = address
  }

  tell(items: ReadonlyArray<LogItem>): ItemsPart {
    for (const { n } of items) this.told.push(n)
    return { _tag: "Items", address: this.address, items }
  }

  get last(): number {
    return this.told.at(-1) ?? 0
  }

  /** What is to be said after all items that there were; `first` is how the actor began. */
  async end(first: ActorRead): Promise<ActorPart> {
    const { address, source } = this
    for (let tries = 1;; tries++) {
      const before = await source.look(address)
      if (before.life !== first.life && this.told.length > 0) {
        const detail = `${address.kind}/${address.id} was removed and made again while it was read`
        throw new StorageUnavailable({ detail })
      }
      let items = await rest(source, address, this.last + 1)
      const isChanged = before.fence !== first.fence
      const there = isChanged ? new Set(await source.numbers(address)) : undefined
      const after = await source.look(address)
      const steady = isSame(before, after)
      if (!steady && tries < TRIES_MAX) continue
      // What the latest state knows of must be there.
      if (!steady) items = await rest(source, address, this.last + 1)
      return {
        _tag: "Actor",
        address,
        state: after.state,
        head: headOf(steady ? before : after, items),
        timer: earlier(before.timer, after.timer),
        items,
        removed: there === undefined ? [] : this.told.filter((n) => !there.has(n)),
        steady
      }
    }
  }
}

/** The parts of one actor; none when there is nothing of it. */
export async function* readActor(
  source: ActorSource,
  address: Address
): AsyncGenerator<ItemsPart | ActorPart> {
  let before = await source.look(address)
  let items = await source.read(address, 1, PAGE_FIRST)
  for (let tries = 1; items.length < PAGE_FIRST; tries++) {
    const after = await source.look(address)
    const steady = isSame(before, after)
    if (steady || tries === TRIES_MAX) {
      const { state } = after
      const timer = earlier(before.timer, after.timer)
      if (!steady) items = await rest(source, address, 1)
      const head = headOf(steady ? before : after, items)
      if (state === undefined && head === 0 && timer === undefined) return
      yield { _tag: "Actor", address, state, head, timer, items, removed: [], steady }
      return
    }
    before = after
    items = await source.read(address, 1, PAGE_FIRST)
  }
  const long = new LongActor(source, address)
  for (let size = PAGE_FIRST; items.length >= size;) {
    yield long.tell(items)
    size = pageOf(items)
    items = await source.read(address, long.last + 1, size)
  }
  if (items.length > 0) yield long.tell(items)
  yield await long.end(before)
}
