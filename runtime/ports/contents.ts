/**
 * The contents port: all that a store holds, read from its beginning to its end without asking for
 * it by name, for archives and checks. Blobs are listed by their own port. The contract is the
 * suite `test/suites/contents.ts`.
 */
import { Context } from "effect"
import type { Address } from "../address.ts"
import type { LogItem } from "./storage.ts"

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
  /** undefined where there is no state record, but a log or a wake-up. */
  readonly state: string | undefined
  /** Number of the last item ever appended. */
  readonly head: number
  /** Its wake-up, ms since the epoch. */
  readonly wake: number | undefined
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
   * Every actor once; the parts of one actor follow upon each other. All of the kinds `first` are
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
