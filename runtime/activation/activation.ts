/**
 * One live actor: load -> decide -> group commit -> reply -> perform.
 *
 * A message is decided at once on the state in memory, which may be ahead of what is durable;
 * every reply, of a read too, waits for the commit of what it has seen. A conflict or a failed
 * write drops the state: the actor is loaded again and the waiting messages are decided anew.
 */
import { Effect, Exit } from "effect"
import { ActorDefect, type Address, type AnyBehavior, type AskFailure, Decision,
  type DecisionContext, isRefusal, keyOf, type LogItem, Overloaded, type Quarantined, shardOf,
  type StorageFailure, StorageUnavailable, type Tagged, UnknownMessage } from "../actor/index.ts"
import { brokeOff, hasDied, namedFailure, runWithin, type Timekeeping } from "../clock.ts"
import type { CommitSource, Committer, KnownOutcome } from "../commit/index.ts"
import type { Limits } from "../limits.ts"
import type { KindMetrics } from "../metrics.ts"
import type { Commit, StorageApi, StoredActor } from "../ports/index.ts"
import type { TimerService } from "../timers/index.ts"
import type { CrossActorTimers } from "./cross-actor-timers.ts"
import { DeduplicationWindow } from "./deduplication.ts"
import type { Effects, MessageStep } from "./effects.ts"
import { changes, type FiredTimer, type PendingCommit, type PendingMessage, Pipeline,
  type ReplyCallback } from "./pending-commit.ts"
import { Queue } from "./queue.ts"

export type AnyDecision = Decision<unknown, unknown, unknown>

/**
 * The decision on one message; undefined when the table has no such cell. Throws what the cell
 * throws, and when its decision breaks a rule that no type can hold.
 */
export const decideOn = (
  behavior: AnyBehavior,
  state: Tagged,
  message: Tagged,
  context: DecisionContext,
  shard: number
): AnyDecision | undefined => {
  const cell = behavior.table[state._tag]?.[message._tag]
  if (cell === undefined) return
  const decision: unknown = cell(state, message, context)
  if (!(decision instanceof Decision)) {
    throw new TypeError(`${behavior.kind}: ${state._tag} x ${message._tag} made no decision`)
  }
  const { holdUntilMs, othersWake, wakeAtMs } = decision
  if (typeof wakeAtMs === "number" && !Number.isFinite(wakeAtMs)) {
    throw new RangeError(`${behavior.kind}: a wake-up at ${wakeAtMs} ms is no time`)
  }
  if (holdUntilMs !== undefined && !Number.isFinite(holdUntilMs)) {
    throw new RangeError(`${behavior.kind}: a hold until ${holdUntilMs} ms has no end`)
  }
  if (othersWake !== undefined) {
    for (const { address, atMs } of othersWake) {
      if (!Number.isFinite(atMs)) throw new RangeError(`a wake-up at ${atMs} ms is no time`)
      if (shardOf(address) !== shard) {
        throw new RangeError(`${address.kind}/${address.id} is of another shard: not to be woken`)
      }
    }
  }
  return decision
}

/* The actor as an activation has it in memory: it may be ahead of what is durable. */

const findNothing = (): undefined => undefined

export class ActorImage {
  state: Tagged
  /** Of the state record as it was last read or written. */
  revision = 0
  head = 0
  readonly behavior: AnyBehavior
  private readonly shard: number
  private recent: DeduplicationWindow | undefined = undefined
  private readonly context: { -readonly [Known in keyof DecisionContext]: DecisionContext[Known] }

  constructor(behavior: AnyBehavior, address: Address) {
    this.behavior = behavior
    this.shard = shardOf(address)
    this.context = { self: address, nowMs: 0, head: 0, hint: undefined, recent: findNothing }
    this.state = behavior.initial
  }

  /** Takes over what the store has. */
  recovered({ head, recent, revision, state }: Recovered): void {
    this.state = state
    this.revision = revision
    this.head = head
    this.recent = recent
    this.context.recent = recent?.find ?? findNothing
  }

  /** What the store has of an actor that has never been, or has vanished. */
  blank(): Recovered {
    const { initial, recall } = this.behavior
    const state = recall?.restore(initial, []) ?? initial
    return { state, revision: 0, head: 0, recent: recall && new DeduplicationWindow(recall.items) }
  }

  /** See {@link decideOn}. */
  decide(message: Tagged, nowMs: number, hint: number | undefined): AnyDecision | undefined {
    this.context.nowMs = nowMs
    this.context.hint = hint
    this.context.head = this.head
    return decideOn(this.behavior, this.state, message, this.context, this.shard)
  }

  /** Notes the keys of items appended from the number `first` on; throws what `keyOf` throws. */
  remember(values: ReadonlyArray<string>, first: number): void {
    const { recall } = this.behavior
    if (this.recent === undefined || recall === undefined) return
    for (let at = 0; at < values.length; at++) {
      const key = recall.keyOf(values[at] ?? "")
      if (key !== undefined) this.recent.add(key, first + at)
    }
  }
}

/* The messages that an actor has taken and not yet replied to; `done` is called once for each. */

/** Those that wait to be decided are its queue. */
export class Inbox extends Queue<PendingMessage> {
  /** How many were not yet replied to, those that wait and those that are decided. */
  unreplied = 0
  private readonly address: Address
  private readonly around: ActivationContext
  private closed = false
  private ending: AskFailure | undefined = undefined

  constructor(address: Address, around: ActivationContext) {
    super()
    this.address = address
    this.around = around
  }

  /** The entry of a message, unless there is no room or no more to come: then it is answered. */
  take(
    message: Tagged,
    done: ReplyCallback,
    due: FiredTimer | undefined
  ): PendingMessage | undefined {
    const entry: PendingMessage = {
      message,
      done,
      due,
      attempts: 0,
      writes: false,
      reply: undefined
    }
    const { actorQueueMax, overloadRetryMs } = this.around.limits
    if (++this.unreplied <= actorQueueMax && !this.closed) return entry
    const overloaded = { key: keyOf(this.address), retryAfterMs: overloadRetryMs }
    this.answer(entry, this.ending ?? new Overloaded(overloaded))
    return
  }

  answer(entry: PendingMessage, failure: AskFailure | undefined, reply?: unknown): void {
    this.unreplied--
    try {
      entry.done(failure, reply)
    } catch (cause) {
      this.around.onFault(this.address, cause)
    }
  }

  /** Answers what waits, and all that comes after it, with the failure. */
  close(failure: AskFailure | undefined): void {
    this.closed = true
    this.ending ??= failure
    for (const entry of this.takeAll()) this.answer(entry, this.ending ?? brokeOff())
  }

  /**
   * The entries that may be decided anew; the others are answered with the failure. `unsure`:
   * their commit may have been kept.
   */
  onceMore(
    entries: ReadonlyArray<PendingMessage>,
    failure: AskFailure,
    unsure: boolean
  ): Array<PendingMessage> {
    // Without room the caller is told so at once: it is for the client to come again. And what
    // may have been kept must not be decided twice.
    const final = unsure || failure._tag === "StorageFull" || failure._tag === "StorageDamaged"
    const kept: Array<PendingMessage> = []
    for (const entry of entries) {
      const hopeless = this.closed || (final && entry.writes) ||
        ++entry.attempts >= this.around.limits.redecideMax
      if (hopeless) this.answer(entry, failure)
      else kept.push(entry)
    }
    return kept
  }
}

/* What an activation starts from: the record and the end of the log, as the store has them. */

export interface Recovered {
  readonly state: Tagged
  readonly revision: number
  readonly head: number
  readonly recent: DeduplicationWindow | undefined
}

/** A defect of the store is not one of the actor. */
const recoveryAborted = (): Effect.Effect<never, StorageUnavailable> =>
  Effect.fail(new StorageUnavailable({ detail: "the store broke off" }))

interface Read {
  readonly loaded: StoredActor
  readonly items: ReadonlyArray<LogItem>
}

/**
 * The record and the last items, as they were at one moment. Between the two reads a commit may be
 * kept that was given up before: then the log goes further than the record was said to go.
 */
const readBoth = Effect.fnUntraced(function*(
  storage: StorageApi,
  address: Address,
  count: number
): Effect.fn.Return<Read, StorageFailure> {
  for (;;) {
    const loaded = yield* Effect.suspend(() => storage.load(address))
    const { head } = loaded
    if (head === 0) return { loaded, items: [] }
    const items = yield* storage.read(address, Math.max(1, head - count + 1), count, true)
    if ((items.at(-1)?.n ?? 0) <= head) return { loaded, items }
  }
})

const readRecord = (storage: StorageApi, address: Address): Effect.Effect<Read, StorageFailure> =>
  Effect.map(Effect.suspend(() => storage.load(address)), (loaded) => ({ loaded, items: [] }))

/** Reads an actor; a record or item that its behavior cannot decode is a defect. */
export const recover = Effect.fnUntraced(function*(
  storage: StorageApi,
  behavior: AnyBehavior,
  address: Address
): Effect.fn.Return<Recovered, StorageFailure> {
  const { decode, initial, recall } = behavior
  const { items, loaded: { head, revision, state: text } } = yield* Effect.catchDefect(
    recall === undefined
      ? readRecord(storage, address)
      : readBoth(storage, address, recall.items),
    recoveryAborted
  )
  // The registry has lost the state's type; the behavior's own decoder made it.
  const state: Tagged = text === undefined ? initial : decode(text)
  if (recall === undefined) return { state, revision, head, recent: undefined }
  const recent = new DeduplicationWindow(recall.items)
  for (const { n, value } of items) {
    const key = recall.keyOf(value)
    if (key !== undefined) recent.add(key, n)
  }
  return { state: recall.restore(state, items), revision, head, recent }
})

export interface ActivationContext extends Timekeeping {
  readonly limits: Limits
  readonly storage: StorageApi
  readonly committer: Committer
  readonly effects: Effects
  readonly timers: TimerService
  readonly foreign: CrossActorTimers
  readonly nowMs: () => number
  /** Logs a defect that is not the actor's, or finds it down already. */
  readonly onFault: (address: Address, cause: unknown) => void
  /** Logs a defect of the actor: how long to wait before its restart, in ms, or that it rests. */
  readonly onDefect: (address: Address, cause: unknown) => number | Quarantined
  readonly onChange: (address: Address, head: number) => void
  /** The activation has ended by itself and takes no more messages. */
  readonly onEnd: (actor: Activation) => void
  readonly step: ((step: MessageStep, address: Address) => void) | undefined
}

/* What an activation knows of wake-ups: its own, and those that it sets for others. */

export class ActorTimers {
  private readonly address: Address
  private readonly around: ActivationContext
  /** What this activation decided on last, a hold too; undefined: whatever the store has. */
  private ownMs: number | null | undefined = undefined

  constructor(address: Address, around: ActivationContext) {
    this.address = address
    this.around = around
  }

  /**
   * Whether the wake-up that fired is over: unless its decision, or one before, set another or
   * held it.
   */
  isOver({ foreign }: FiredTimer, decision: AnyDecision, nowMs: number): boolean {
    if (foreign !== undefined) this.around.foreign.met(foreign)
    const { holdUntilMs, vanishes, wakeAtMs } = decision
    if (wakeAtMs !== undefined || holdUntilMs !== undefined || vanishes) return false
    if (typeof this.ownMs !== "number" || this.ownMs <= nowMs) return true
    // Another actor's wake-up may have taken its place.
    this.around.timers.setNoLater(this.address, this.ownMs)
    return false
  }

  /** Takes a decision's wake-ups into its commit. */
  decide(commit: PendingCommit, decision: AnyDecision, clears: boolean): void {
    if (clears) {
      commit.wakeAtMs = null
      commit.holdUntilMs = undefined
    }
    const own = decision.holdUntilMs ?? (clears ? null : decision.wakeAtMs)
    if (own !== undefined) this.ownMs = own
    if (decision.othersWake === undefined) return
    for (const wake of decision.othersWake) commit.wakeOther(this.around.foreign.note(wake))
  }

  /** Takes the hold of a decision that writes nothing: it waits for the commit it has seen. */
  hold({ holdUntilMs }: AnyDecision, seen: PendingCommit | undefined): void {
    if (holdUntilMs === undefined) return
    this.ownMs = holdUntilMs
    if (seen === undefined) this.armHold(holdUntilMs)
    else seen.holdUntilMs = holdUntilMs
  }

  /**
   * The wake-up to write. Another actor's, that this one has not yet seen, is neither taken away
   * nor put off; it is armed by the commit of the one that set it.
   */
  toWrite(commit: PendingCommit): number | null | undefined {
    const own = commit.wakeAtMs
    if (own === undefined) return
    const standing = this.around.foreign.standing(keyOf(this.address))
    if (standing === undefined || (own !== null && own <= standing)) return own
    commit.wakeAtMs = undefined
    return standing
  }

  /** The commit is durable. */
  arm(commit: PendingCommit): void {
    const { foreign, timers } = this.around
    const own = commit.vanishes ? null : commit.wakeAtMs
    // What is held comes at no other time, whatever is stored.
    if (commit.holdUntilMs !== undefined && !commit.vanishes) this.armHold(commit.holdUntilMs)
    else if (own !== undefined) timers.set(this.address, this.afterForeign(own))
    for (const other of commit.otherWakes) {
      foreign.ripen(other)
      timers.setForeign(other.address, other.atMs)
    }
  }

  /**
   * Whether or not a lost commit was kept, its wake-ups may come: one too many does no harm.
   * What it was to hold is not held. `unsure`: it may be kept yet, when these have come already.
   */
  armLost(commit: PendingCommit, unsure: boolean): void {
    const { foreign, timers } = this.around
    const setsSome = typeof commit.wakeAtMs === "number" || commit.otherWakes.length > 0
    if (unsure && setsSome) timers.doubt(shardOf(this.address))
    if (typeof commit.wakeAtMs === "number") timers.setNoLater(this.address, commit.wakeAtMs)
    for (const other of commit.otherWakes) {
      foreign.doubt(other)
      timers.setNoLater(other.address, other.atMs)
    }
  }

  /** The state comes from the store again. */
  forget(): void {
    this.ownMs = undefined
  }

  /**
   * The wake-up to come, of this actor's own and another's that is durable and not yet decided on:
   * the later commit of that one may have been answered before this one.
   */
  private afterForeign(ownMs: number | null): number | null {
    const ripeMs = this.around.foreign.ripeMs(keyOf(this.address))
    return ripeMs === undefined ? ownMs : Math.min(ripeMs, ownMs ?? ripeMs)
  }

  /**
   * Another actor's wake-up that this one has not seen is not put off, when it is durable. One that
   * is not yet comes with its commit: to come before would be to come again and again.
   */
  private armHold(untilMs: number): void {
    const ripeMs = this.around.foreign.ripeMs(keyOf(this.address)) ?? untilMs
    this.around.timers.hold(this.address, Math.min(ripeMs, untilMs))
  }
}

/* Deciding: one cell of a behavior's table is asked, and what it says is looked over. */

export class Activation implements CommitSource {
  readonly address: Address
  readonly key: string
  readonly shard: number
  /** Whether a message came since the passivation sweep looked last. */
  used = true
  lastUsedMs = 0
  private readonly around: ActivationContext
  private readonly measures: KindMetrics
  private phase: "asleep" | "loading" | "live" | "stopped" = "asleep"
  private readonly image: ActorImage
  private readonly inbox: Inbox
  private readonly wakes: ActorTimers
  private readonly commits: Pipeline
  /** A decision or a round of replies is under way: what arrives meanwhile waits. */
  private busy = false
  private restartAfterMs: number | undefined = undefined
  private cancelReload: (() => void) | undefined = undefined

  constructor(
    address: Address,
    behavior: AnyBehavior,
    around: ActivationContext,
    measures: KindMetrics,
    isNew = false
  ) {
    this.address = address
    this.key = keyOf(address)
    this.shard = shardOf(address)
    this.around = around
    this.measures = measures
    this.image = new ActorImage(behavior, address)
    this.inbox = new Inbox(address, around)
    this.wakes = new ActorTimers(address, around)
    this.commits = new Pipeline(this, around.committer)
    // Nobody has addressed it before. Should there be one all the same, its commit is a conflict.
    if (isNew) this.awake(this.image.blank())
  }

  /** Messages not yet replied to. */
  get queued(): number {
    return this.inbox.unreplied
  }

  /** Whether nothing is under way, so that the actor may be put to sleep. */
  get idle(): boolean {
    return this.phase === "live" && this.inbox.unreplied === 0 && this.commits.empty &&
      this.restartAfterMs === undefined && !this.busy
  }

  /** Takes one message; `done` is called exactly once, maybe before this returns. */
  deliver(message: Tagged, done: ReplyCallback, due?: FiredTimer): void {
    this.used = true
    const entry = this.inbox.take(message, done, due)
    if (entry === undefined) return
    if (this.busy || this.inbox.length > 0 || this.held()) {
      this.inbox.push(entry)
      if (this.phase === "asleep") this.load()
      return
    }
    this.busy = true
    this.decide(entry)
    this.busy = false
    if (this.inbox.length > 0) this.drain()
  }

  /**
   * Ends the activation: what waits is answered with `failure`. What is decided already is still
   * committed, and answered as its commit turns out.
   */
  stop(failure: AskFailure | undefined): void {
    this.phase = "stopped"
    this.cancelReload?.()
    this.inbox.close(failure)
  }

  takeCommit(): Commit | undefined {
    const { image } = this
    const commit = this.commits.take()
    let state: string | undefined
    try {
      if (commit.writesState && !commit.vanishes) state = image.behavior.encode(image.state)
    } catch (cause) {
      return this.unwritable(this.commits.landed(), cause)
    }
    const wake = this.wakes.toWrite(commit)
    const written = commit.toCommit(this.address, image.revision, state, wake)
    this.drain()
    return written
  }

  committed(outcome: KnownOutcome): void {
    const commit = this.commits.landed()
    if (outcome._tag === "Conflict") {
      const lost = new StorageUnavailable({ detail: outcome.conflict.message })
      return this.again(commit, lost, 0, false)
    }
    this.around.step?.("committed", this.address)
    this.image.revision = outcome.revision
    if (commit.vanishes) {
      this.image.recovered(this.image.blank())
      this.wakes.forget()
    }
    this.wakes.arm(commit)
    this.busy = true
    for (const entry of commit.held) this.inbox.answer(entry, undefined, entry.reply)
    this.around.step?.("replied", this.address)
    if (commit.actions !== undefined) this.perform(commit.actions)
    this.around.onChange(this.address, commit.vanishes ? 0 : commit.head)
    this.busy = false
    this.carryOn()
  }

  /** The commit failed; `unsure` when it may have been kept all the same. */
  commitFailed(failure: StorageFailure, unsure: boolean): void {
    this.again(this.commits.landed(), failure, this.around.limits.reloadDelayMs, unsure)
  }

  /** The state has no record text: who waits for it is told, and it is dropped. */
  private unwritable(commit: PendingCommit, cause: unknown): undefined {
    this.busy = true
    this.wakes.armLost(commit, false)
    for (const entry of commit.held) this.inbox.answer(entry, new ActorDefect({ key: this.key }))
    this.busy = false
    this.defect(cause)
  }

  private held(): boolean {
    return this.phase !== "live" || this.restartAfterMs !== undefined ||
      this.commits.blocked(this.around.limits.commitItemsMax)
  }

  private load(): void {
    const { around, image } = this
    this.phase = "loading"
    const read = () => recover(around.storage, image.behavior, this.address)
    runWithin(around, read, around.limits.storageDeadlineMs, (exit) => {
      if (this.phase === "stopped") return
      if (Exit.isSuccess(exit)) return this.awake(exit.value)
      const failure = namedFailure(exit.cause)
      if (failure === undefined && hasDied(exit.cause)) return this.defect(exit.cause)
      const kept = this.inbox.onceMore(this.inbox.takeAll(), failure ?? brokeOff(), false)
      this.inbox.putFirst(kept)
      if (this.inbox.length > 0) return this.reload(around.limits.reloadDelayMs)
      this.stop(failure)
      around.onEnd(this)
    })
  }

  private awake(recovered: Recovered): void {
    this.image.recovered(recovered)
    this.wakes.forget()
    this.phase = "live"
    this.drain()
  }

  private decide(entry: PendingMessage): void {
    const nowMs = this.around.nowMs()
    this.measures.decisions++
    let decision: AnyDecision | undefined
    try {
      decision = this.image.decide(entry.message, nowMs, entry.due?.foreign?.hint)
    } catch (cause) {
      this.inbox.answer(entry, new ActorDefect({ key: this.key }))
      return this.defect(cause)
    }
    if (decision === undefined) {
      const detail = `${this.address.kind} takes no ${entry.message._tag}`
      return this.inbox.answer(entry, new UnknownMessage({ key: this.key, detail }))
    }
    if (isRefusal(decision.answer)) this.measures.refusals++
    this.carryOut(entry, decision, nowMs)
  }

  private carryOut(entry: PendingMessage, decision: AnyDecision, nowMs: number): void {
    // Behaviors hand back their own states and actions; only the table's types know them.
    if (decision.nextState !== undefined) this.image.state = decision.nextState as Tagged
    const actions = decision.actions as Array<Tagged> | undefined
    const clears = entry.due !== undefined && this.wakes.isOver(entry.due, decision, nowMs)
    entry.reply = decision.answer
    entry.writes = clears || changes(decision)
    if (entry.writes) return this.write(entry, decision, clears, actions)
    const seen = this.commits.latest
    this.wakes.hold(decision, seen)
    if (seen !== undefined) return seen.hold(entry, actions)
    this.inbox.answer(entry, undefined, decision.answer)
    if (actions !== undefined) this.perform(actions)
  }

  private write(
    entry: PendingMessage,
    decision: AnyDecision,
    clears: boolean,
    actions: ReadonlyArray<Tagged> | undefined
  ): void {
    const commit = this.commits.open(this.image.head)
    const first = this.image.head + 1
    commit.add(decision)
    this.image.head = commit.head
    this.wakes.decide(commit, decision, clears)
    commit.hold(entry, actions)
    this.around.step?.("decided", this.address)
    this.commits.join()
    try {
      if (decision.items !== undefined) this.image.remember(decision.items, first)
    } catch (cause) {
      this.defect(cause)
    }
  }

  private perform(actions: ReadonlyArray<Tagged>): void {
    this.around.effects.perform(this.image.behavior, this.address, actions, (cause) => {
      // What is down already is not restarted once more for it.
      if (this.phase !== "live" || this.restartAfterMs !== undefined) {
        return this.around.onFault(this.address, cause)
      }
      this.defect(cause)
    })
  }

  /** After a commit: what was decided meanwhile is next, then a restart that was put off. */
  private carryOn(): void {
    this.commits.join()
    if (this.restartAfterMs !== undefined && this.commits.empty) this.reload(this.restartAfterMs)
    this.drain()
  }

  private drain(): void {
    if (this.busy) return
    this.busy = true
    while (this.inbox.length > 0 && !this.held()) {
      const entry = this.inbox.shift()
      if (entry !== undefined) this.decide(entry)
    }
    this.busy = false
  }

  /** The commit was lost: all that was decided since is dropped and decided anew, in order. */
  private again(lost: PendingCommit, failure: AskFailure, delayMs: number, unsure: boolean): void {
    const pending = this.commits.drop()
    if (this.phase !== "stopped") this.phase = "loading"
    this.wakes.armLost(lost, unsure)
    const kept = this.inbox.onceMore(lost.held, failure, unsure)
    if (pending !== undefined) {
      this.wakes.armLost(pending, false)
      kept.push(...this.inbox.onceMore(pending.held, failure, false))
    }
    this.measures.redecisions += kept.length
    this.inbox.putFirst(kept)
    this.reload(Math.max(delayMs, this.restartAfterMs ?? 0))
  }

  private reload(delayMs: number): void {
    this.restartAfterMs = undefined
    if (this.phase === "stopped") return
    this.phase = "loading"
    if (delayMs <= 0) return this.load()
    this.cancelReload = this.around.later(delayMs, () => this.phase === "stopped" || this.load())
  }

  /** A broken invariant: logged, and the actor starts anew from the store, or rests. */
  private defect(cause: unknown): void {
    if (this.phase === "stopped") return this.around.onFault(this.address, cause)
    const verdict = this.around.onDefect(this.address, cause)
    if (typeof verdict !== "number") {
      this.stop(verdict)
      return this.around.onEnd(this)
    }
    if (this.commits.empty) this.reload(verdict)
    else this.restartAfterMs = verdict
  }
}
