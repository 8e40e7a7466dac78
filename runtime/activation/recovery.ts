/**
 * The start of an activation: the record of its actor, and what its behavior recalls of the end of
 * its log. The items are read in parts, since each may be as large as a message. Of a part only
 * what the behavior keeps stays in memory.
 */
import { Effect, Semaphore } from "effect"
import { type Address, type AnyBehavior, decodeStoredState, keyOf, type LogItem, shardOf,
  type StorageFailure, StorageUnavailable, type Tagged } from "../actor/index.ts"
import { callWithin, type Timekeeping } from "../clock.ts"
import { bytesPerStateChar, type Limits } from "../limits.ts"
import { isLogEnd, type StorageApi, type StoredActor } from "../ports/index.ts"
import { DeduplicationWindow } from "./deduplication.ts"

/** What an activation needs to load its actor. */
export interface RecoverySource extends Timekeeping {
  readonly limits: Limits
  readonly storage: StorageApi
  readonly recallReads: RecallReads
  /** The newest format that this program reads. */
  readonly formatMax: number
}

/** A recovered actor: its record and the end of its log. */
export interface RecoveredActor {
  readonly state: Tagged
  /** About how many bytes the state takes in memory. */
  readonly bytes: number
  readonly revision: number
  readonly head: number
  readonly timer: number | undefined
  readonly recent: DeduplicationWindow | undefined
}

/**
 * Bounds the reads of logs by which actors start, for each stream by itself: a stream that does not
 * answer delays the actors of no other.
 */
export class RecallReads {
  private readonly streams = new Map<number, Semaphore.Semaphore>()
  private readonly limits: Limits
  private readonly streamOf: StorageApi["streamOf"]

  constructor(limits: Limits, streamOf: StorageApi["streamOf"]) {
    this.limits = limits
    this.streamOf = streamOf
  }

  of(address: Address): Semaphore.Semaphore {
    const stream = this.streamOf(shardOf(address))
    const known = this.streams.get(stream)
    if (known !== undefined) return known
    const reads = Semaphore.makeUnsafe(this.limits.recallReadsMax)
    this.streams.set(stream, reads)
    return reads
  }
}

/** About how many bytes a state takes in memory; `text` is its record. */
export const bytesOf = (behavior: AnyBehavior, state: Tagged, text = ""): number =>
  behavior.bytesOf?.(state) ?? bytesPerStateChar * text.length

/** A defect of the store is not a defect of the actor. */
const recoveryAborted = (): Effect.Effect<never, StorageUnavailable> =>
  Effect.fail(new StorageUnavailable({ detail: "the store threw an error" }))

export const callStore = <A>(
  source: RecoverySource,
  call: () => Effect.Effect<A, StorageFailure>
): Effect.Effect<A, StorageFailure> =>
  Effect.catchDefect(callWithin(source, call, source.limits.storageDeadlineMs), recoveryAborted)

/** The state of a record. A record of a later program, with a format above `formatMax`, fails. */
const stateOf = (
  { decode, initial }: AnyBehavior,
  address: Address,
  text: string | undefined,
  formatMax: number
): Effect.Effect<Tagged, StorageUnavailable> =>
  Effect.suspend(() => {
    if (text === undefined) return Effect.succeed<Tagged>(initial)
    const stored = decodeStoredState(text)
    if (stored.format <= formatMax) {
      // The registry has lost the state's type; the behavior's own decoder made it.
      return Effect.succeed<Tagged>(decode(stored.text, stored.format, address))
    }
    const formats = `format ${stored.format}, and this node reads up to ${formatMax}`
    const detail = `${keyOf(address)} is stored in ${formats}`
    return Effect.fail(new StorageUnavailable({ detail }))
  })

type AnyRecall = NonNullable<AnyBehavior["recall"]>

/** What a behavior keeps of the last items of its log. */
class RecalledLog {
  readonly recent: DeduplicationWindow
  private readonly recall: AnyRecall
  private partial: Tagged
  /** The items of a behavior that restores from all of them at once. */
  private readonly items: Array<LogItem> = []

  constructor(recall: AnyRecall, state: Tagged) {
    this.recall = recall
    this.partial = state
    this.recent = new DeduplicationWindow(recall.items)
  }

  add(items: ReadonlyArray<LogItem>): void {
    for (const { n, value } of items) {
      const key = this.recall.keyOf(value)
      if (key !== undefined) this.recent.add(key, n)
    }
    if (this.recall.restoresInParts !== true) this.items.push(...items)
    else if (items.length > 0) this.partial = this.recall.restore(this.partial, items)
  }

  state(): Tagged {
    const { partial, recall } = this
    return recall.restoresInParts === true ? partial : recall.restore(partial, this.items)
  }
}

/**
 * Reads the last items into `log`; false if the log is longer than the record's head by now.
 * Between two reads the store may keep a commit of indeterminate outcome.
 */
const readLog = Effect.fnUntraced(function*(
  source: RecoverySource,
  address: Address,
  { head }: StoredActor,
  from: number,
  log: RecalledLog
): Effect.fn.Return<boolean, StorageFailure> {
  const { limits: { recallCharsMax }, storage } = source
  const reads = source.recallReads.of(address)
  for (let next = from;;) {
    // One more than there should be, to see whether the log is longer by now.
    const limit = head - next + 2
    const call = () => storage.read(address, next, limit, true, recallCharsMax)
    const part = Effect.map(callStore(source, call), (items) => {
      const last = items.at(-1)?.n ?? head
      if (last > head) return { last, isEnd: true }
      log.add(items)
      return { last, isEnd: items.length === 0 || isLogEnd(items, limit, recallCharsMax) }
    })
    const { isEnd, last } = yield* reads.withPermit(part)
    if (isEnd) return last <= head
    next = last + 1
    // A store that reads synchronously must not block the event loop for a whole log.
    yield* Effect.yieldNow
  }
})

/**
 * Reads an actor, as of one moment. A record or item that its behavior cannot decode is a defect.
 * A record of a later program is a failure: a node that reads it can serve the actor.
 */
export const recover = Effect.fnUntraced(function*(
  source: RecoverySource,
  behavior: AnyBehavior,
  address: Address
): Effect.fn.Return<RecoveredActor, StorageFailure> {
  const { recall } = behavior
  for (;;) {
    const stored = yield* callStore(source, () => source.storage.load(address))
    const { head, revision, timer } = stored
    const state = yield* stateOf(behavior, address, stored.state, source.formatMax)
    const recovered = (whole: Tagged, recent: DeduplicationWindow | undefined): RecoveredActor => {
      const bytes = bytesOf(behavior, whole, stored.state)
      return { state: whole, bytes, revision, head, timer, recent }
    }
    if (recall === undefined) return recovered(state, undefined)
    const log = new RecalledLog(recall, state)
    const needed = Math.min(recall.firstOf?.(state) ?? 1, head + 1)
    const from = Math.max(1, head - recall.items + 1, needed)
    if (head > 0 && !(yield* readLog(source, address, stored, from, log))) continue
    return recovered(log.state(), log.recent)
  }
})
