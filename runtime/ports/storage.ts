/**
 * The storage port: what the runtime asks of a store of actors. The contract is the suite
 * `test/suites/storage.ts`; a backend passes it in one line.
 *
 * An actor has a state record with a revision, a log of numbered items, at most one timer of its
 * own, and at most one signal that other actors set. Only its own commits write its timer. They can
 * only remove the signal, and only the one that they name. A {@link Commit} is kept whole or not at
 * all. Each commit of a group has its own outcome, which no other member delays. A commit that is
 * reported is durable.
 */
import { Context, type Effect } from "effect"
import { type Address, keyOf, LogConflict, type LogItem, RevisionConflict,
  type StorageFailure } from "../actor/index.ts"

/** What one decision, or several of one actor, change in the store: all of it or nothing. */
export interface Commit {
  readonly address: Address
  /** Revision that the state record must still have; 0 when there must be none. */
  readonly expected: number
  /**
   * The record's new text; undefined leaves it as it is. null removes the actor: its record, its
   * whole log and its own timer, whatever `append`, `remove` and `timer` say.
   */
  readonly state: string | null | undefined
  /** Number of the last item ever appended, kept with the record when the record is written. */
  readonly head: number
  /**
   * Items to create, numbered upwards from the log's head + 1; a number that was used conflicts.
   * Numbers may be missing only when `state` is written: their items were removed in the same
   * commit.
   */
  readonly append: ReadonlyArray<LogItem>
  /** Numbers of items to delete; missing ones are ignored. A removal requires `state`. */
  readonly remove: ReadonlyArray<number>
  /**
   * The actor's own timer, whole ms from 0 to {@link timerMsMax}; null clears it; undefined leaves
   * it. The time that it had before is removed in the same commit.
   */
  readonly timer: number | null | undefined
  /**
   * Signals to other actors of the same shard, one for each address at most. A signal replaces
   * the earlier signal to the same actor, and never its own timer.
   */
  readonly signals: ReadonlyArray<Timer>
  /**
   * Revision of the signal to this actor that the commit decides on: the store removes the signal,
   * unless another one has replaced it. undefined leaves it.
   */
  readonly consumedSignal: number | undefined
  /**
   * The listed time of the own timer that fired and that this commit decides on. The store removes
   * its key of that time, unless it is the actor's timer after the commit. This collects keys that
   * a fault has left. undefined: no timer fired, or its time is unknown.
   */
  readonly firedTimer: number | undefined
}

/** When an actor receives its timer's message: `atMs` is in ms since the epoch. */
export interface Timer {
  readonly address: Address
  readonly atMs: number
}

/** An actor's own timer, or a signal to it. */
export interface StoredTimer extends Timer {
  /** Of a signal: greater than that of each signal that it replaced. undefined: its own timer. */
  readonly signalRevision: number | undefined
}

/** Own timers later than this (the year 2255) are stored as of this time. */
export const timerMsMax = 9_000_000_000_000

/**
 * Where a listing of a shard's own timers has arrived: it has all before `atMs`, and those of this
 * very time up to `after` in the store's own order ("" is before all).
 */
export interface TimerCursor {
  readonly atMs: number
  readonly after: string
}

/** Signals of one shard, and the own timers that come next. */
export interface TimerPage {
  /** In order of time; those of one time in any order. */
  readonly timers: ReadonlyArray<StoredTimer>
  /** Where the own timers continue, maybe beyond a stretch without any; undefined: no more. */
  readonly next: TimerCursor | undefined
  /** Whether the shard has more signals than these. */
  readonly hasMoreSignals: boolean
}

/**
 * The outcome of one commit. The store always compares `expected`, for log items and timers alone
 * too: an activation that is no longer the owner must not add to an actor that its successor has
 * changed. A store that has the record's revision in memory compares it at no cost. A store that
 * checks one sequence for each message can check the last one among all keys of the actor.
 */
export type CommitOutcome =
  | {
    readonly _tag: "Committed"
    /**
     * Of the state record: 0 when it was removed, `expected` when it was not written. NaN when
     * another activation has written it since: no later commit can expect NaN.
     */
    readonly revision: number
    /** Of the commit's signals, in their order; NaN where the store does not know. */
    readonly signalRevisions: ReadonlyArray<number>
  }
  | { readonly _tag: "Conflict"; readonly conflict: RevisionConflict | LogConflict }
  /** Nothing of the commit was kept, nor will be. */
  | { readonly _tag: "Refused"; readonly failure: StorageFailure }
  /**
   * The store may have kept the commit, or may keep it yet. Until a store knows, it fails to load
   * the actor, unless another node owns it by now. `failure`: why, if the store knows.
   */
  | { readonly _tag: "Indeterminate"; readonly failure?: StorageFailure }

/** Takes the outcome of the member of a group at this index, once. */
export type ReportOutcome = (at: number, outcome: CommitOutcome) => void

/** An actor as it is stored. */
export interface StoredActor {
  readonly state: string | undefined
  /** 0 when there is no state record. Revisions of one key only grow, over removals too. */
  readonly revision: number
  /** The greater of the recorded head and the number of the log's last item; 0 when empty. */
  readonly head: number
  /** Its own timer, ms since the epoch. */
  readonly timer: number | undefined
}

/**
 * A store of actors, as {@link Storage} provides it. Calls may be made at the same time, and may be
 * interrupted, which undoes nothing.
 */
export interface StorageApi {
  /** The name of the database, for people: `RocksDB`, `LevelDB`, `JetStream`, `memory`. */
  readonly engine: string
  /**
   * The stream that a shard is stored in, from 0 on. Streams fail and stall each by itself, so a
   * group has commits of one stream only.
   */
  readonly streamOf: (shard: number) => number
  /**
   * Outcomes in the order of the group; groups of one stream are applied in the order they were
   * handed in. A store that knows the outcomes at different times calls `report` with each as soon
   * as it is known; the result then repeats them.
   *
   * A failure refuses all members that were not reported, and the runtime decides them again. So a
   * store that does not know an outcome reads it back before it fails. When the call is interrupted
   * (the runtime does so after `limits.storageDeadlineMs`), members that were not reported are
   * indeterminate. `isHeld`: whether no other node can own the actor of a member. The store does
   * not write a member again for which it is false; it may be written only once, so the outcome of
   * a lost acknowledgement is then indeterminate.
   */
  readonly commit: (
    group: ReadonlyArray<Commit>,
    report?: ReportOutcome,
    isHeld?: (at: number) => boolean
  ) => Effect.Effect<ReadonlyArray<CommitOutcome>, StorageFailure>
  /** The actor as it is stored; one that was never stored has revision 0 and no state. */
  readonly load: (address: Address) => Effect.Effect<StoredActor, StorageFailure>
  /**
   * Log items with `n >= from`, ascending, at most `limit`; numbers may be missing where items
   * were removed. `isOwn`: this node owns the actor and has it in memory, so that the store may
   * rely on what it has acknowledged to this node. `charsMax`: the result ends with the item that
   * reaches so many characters, so it may be short ({@link isLogEnd}). The store then holds few
   * times that many in memory, whatever the items have.
   */
  readonly read: (
    address: Address,
    from: number,
    limit: number,
    isOwn?: boolean,
    charsMax?: number
  ) => Effect.Effect<ReadonlyArray<LogItem>, StorageFailure>
  /**
   * At most `limit` signals of one shard, and at most `limit` of its own timers in order of time,
   * from `from` on; `limit` is at least 1. The cost depends on the result, not on the number that
   * wait. The result may be short or empty, with the cursor for the next call: the store need not
   * search beyond `untilMs`, and returns what it has found by its deadline. Commits that were
   * durable before the call are in the result; concurrent ones may be. A timer that another node
   * ended seconds ago, or that a fault has left, may be listed too: see {@link Commit.firedTimer}.
   * An interrupted call ends its reads.
   */
  readonly timers: (
    shard: number,
    limit: number,
    from?: TimerCursor,
    untilMs?: number
  ) => Effect.Effect<TimerPage, StorageFailure>
  /**
   * Calls `onSettled` with a shard when the store has settled commits of it that it left without a
   * certain outcome: from now on `timers` returns what it kept of them. The result ends the calls.
   * A store without this may keep such a commit late without noticing.
   */
  readonly followLateCommits?: (onSettled: (shard: number) => void) => () => void
  /** Ids of the actors of a kind that have a state record, ascending, after `after`. */
  readonly scan: (
    kind: string,
    after: string | undefined,
    limit: number
  ) => Effect.Effect<ReadonlyArray<string>, StorageFailure>
  /** Fails while the store cannot take commits; for readiness. */
  readonly health: Effect.Effect<void, StorageFailure>
}

/** The port to the store of a node's actors. Each store has a layer for it. */
export class Storage extends Context.Service<Storage, StorageApi>()("restante/runtime/Storage") {}

/** {@link StorageApi.streamOf} of a store that is one stream. */
export const soleStream = (): number => 0

/** The items up to the one that reaches so many characters; undefined is no bound. */
export const firstChars = <Item extends LogItem>(
  items: ReadonlyArray<Item>,
  charsMax: number | undefined
): ReadonlyArray<Item> => {
  if (charsMax === undefined) return items
  let chars = 0
  const last = items.findIndex(({ value }) => (chars += value.length) >= charsMax)
  return last < 0 ? items : items.slice(0, last + 1)
}

/** Whether a read with these bounds has found the end of the log: none of the bounds ended it. */
export const isLogEnd = (
  items: ReadonlyArray<LogItem>,
  limit: number,
  charsMax: number
): boolean =>
  items.length < limit && items.reduce((chars, { value }) => chars + value.length, 0) < charsMax

/** Of a commit without signals. */
export const noSignals: ReadonlyArray<never> = []

/** The conflict of a commit with the stored actor; undefined when there is none. */
export const conflictOf = (
  commit: Commit,
  stored: Pick<StoredActor, "revision" | "head">
): RevisionConflict | LogConflict | undefined => {
  const { append, expected, state } = commit
  if (expected !== stored.revision) {
    return new RevisionConflict({ key: keyOf(commit.address), expected, actual: stored.revision })
  }
  let last = stored.head
  for (const { n } of append) {
    // A gap is left only by items that were removed in the commit that would have made them.
    if (n <= last || (state === undefined && n !== last + 1)) {
      return new LogConflict({ key: keyOf(commit.address), item: n })
    }
    last = n
  }
  return undefined
}

/** Throws when a commit asks for what the contract forbids. */
export const assertCommit = (commit: Commit): void => {
  if (commit.remove.length > 0 && commit.state === undefined) {
    throw new TypeError(`${keyOf(commit.address)}: items are removed only with the state`)
  }
  const { timer } = commit
  if (
    typeof timer === "number" && !(Number.isInteger(timer) && timer >= 0 && timer <= timerMsMax)
  ) {
    throw new TypeError(`${keyOf(commit.address)}: a timer at ${timer} ms cannot be stored`)
  }
}
