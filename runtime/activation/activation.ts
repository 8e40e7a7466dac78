/**
 * One live actor: load, decide, group commit, reply, perform.
 *
 * An activation decides a message at once on the state in memory, which may be ahead of the durable
 * one. Every reply, to a read too, waits for the commit that it has seen. After a conflict or a
 * failed write the activation loads the actor again, and decides the waiting messages again.
 *
 * In this file, in order: the context that a node provides; the inbox; the actor's state in memory;
 * its timers; the activation, which joins these.
 */
import { Cause, Exit } from "effect"
import { ActorDefect, type Address, type AnyBehavior, asIndeterminate, type AskFailure, Decision,
  type DecisionContext, encodeStoredState, firstFormat, isRefusal, keyOf, Overloaded,
  type Quarantined, shardOf, type StorageFailure, StorageUnavailable, type Tagged, UnknownMessage,
  type ValueTooLarge } from "../actor/index.ts"
import { failureOf, storeInterrupted } from "../clock.ts"
import type { CertainOutcome, CommitSource, Committer } from "../commit/index.ts"
import type { KindMetrics } from "../metrics.ts"
import { type Commit, timerMsMax } from "../ports/index.ts"
import type { FiredSignal, FiredTimer, TimerService } from "../timers/index.ts"
import type { Traces } from "../tracing.ts"
import { DeduplicationWindow } from "./deduplication.ts"
import type { Effects, MessageStep } from "./effects.ts"
import { inspected, type InspectedActor, type WaitingMessages, waitingOf } from "./inspection.ts"
import { CommitPipeline, hasWrites, type InboxMessage, isAsked, type PendingCommit,
  type ReplyCallback } from "./pending-commit.ts"
import { Queue } from "./queue.ts"
import { bytesOf, recover, type RecoveredActor, type RecoverySource } from "./recovery.ts"

export interface ActivationContext extends RecoverySource {
  readonly committer: Committer
  readonly effects: Effects
  readonly timers: TimerService
  readonly nowMs: () => number
  /** The newest format that every node of the cluster reads. */
  readonly format: () => number
  /** Logs a commit that is too large, or a defect that does not restart the actor. */
  readonly onFault: (address: Address, cause: unknown) => void
  /** Logs a defect of the actor; how long to wait before its restart, in ms, or its quarantine. */
  readonly onDefect: (address: Address, cause: unknown) => number | Quarantined
  readonly onChange: (address: Address, head: number) => void
  /** The activation was loaded or has changed, and {@link Activation.bytes} with it. */
  readonly onSize: (actor: Activation) => void
  /** The activation has ended by itself and accepts no more messages. */
  readonly onEnd: (actor: Activation) => void
  readonly step: ((step: MessageStep, address: Address) => void) | undefined
  /** Undefined: the node exports no traces. */
  readonly traces?: Traces | undefined
}

/**
 * The accepted messages without a reply; its queue holds those that are not yet decided. `done` is
 * called once for each.
 */
export class Inbox extends Queue<InboxMessage> {
  /** Messages without a reply: those that wait, and those that are decided. */
  unreplied = 0
  private readonly address: Address
  private readonly context: ActivationContext
  private closed = false
  private ending: AskFailure | undefined = undefined

  constructor(address: Address, context: ActivationContext) {
    super()
    this.address = address
    this.context = context
  }

  /** Accepts a message; undefined when the inbox is full or closed, and has answered it. */
  accept(
    message: Tagged,
    done: ReplyCallback,
    due: FiredTimer | undefined,
    trace: string | undefined
  ): InboxMessage | undefined {
    const entry: InboxMessage = {
      message,
      done,
      due,
      trace,
      acceptedMs: this.context.nowMs(),
      attempts: 0,
      writes: false,
      reply: undefined
    }
    const { inboxMax, overloadRetryMs } = this.context.limits
    if (++this.unreplied <= inboxMax && !this.closed) return entry
    const overloaded = { key: keyOf(this.address), retryAfterMs: overloadRetryMs }
    this.answer(entry, this.ending ?? new Overloaded(overloaded))
    return
  }

  answer(entry: InboxMessage, failure: AskFailure | undefined, reply?: unknown): void {
    this.unreplied--
    try {
      entry.done(failure, reply)
    } catch (cause) {
      this.context.onFault(this.address, cause)
    }
  }

  /** Answers the waiting messages, and all later ones, with the failure. */
  close(failure: AskFailure | undefined): void {
    this.closed = true
    this.ending ??= failure
    for (const entry of this.takeAll()) this.answer(entry, this.ending ?? storeInterrupted())
  }

  /**
   * The messages of a lost commit that may be decided again; the others are answered with the
   * failure. `indeterminate`: the store may have kept the commit.
   */
  retryable(
    entries: ReadonlyArray<InboxMessage>,
    failure: AskFailure,
    indeterminate: boolean
  ): Array<InboxMessage> {
    // When the disk is full the request fails at once, and the client retries. A commit that the
    // store may have kept must not be decided twice.
    const final = indeterminate || failure._tag === "StorageFull" ||
      failure._tag === "StorageCorrupted" || failure._tag === "ValueTooLarge"
    const kept: Array<InboxMessage> = []
    for (const entry of entries) {
      const isLast = this.closed || (final && entry.writes) ||
        ++entry.attempts >= this.context.limits.decisionAttemptsMax
      if (isLast) this.answer(entry, failure)
      else kept.push(entry)
    }
    return kept
  }
}

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
  const { deferUntilMs, signals, timerAtMs } = decision
  if (typeof timerAtMs === "number" && !Number.isFinite(timerAtMs)) {
    throw new RangeError(`${behavior.kind}: a timer at ${timerAtMs} ms is no time`)
  }
  if (deferUntilMs !== undefined && !Number.isFinite(deferUntilMs)) {
    throw new RangeError(`${behavior.kind}: a timer deferred until ${deferUntilMs} ms never fires`)
  }
  if (signals !== undefined) {
    for (const { address } of signals) {
      if (shardOf(address) !== shard) {
        throw new RangeError(`${behavior.kind}: a signal to ${keyOf(address)}, of another shard`)
      }
    }
  }
  return decision
}

const findNothing = (): undefined => undefined

/** An actor's state in memory, which may be ahead of the durable one. */
export class ActorState {
  state: Tagged
  /** About how many bytes the state takes in memory, when it was last loaded or committed. */
  bytes = 0
  /** The revision of the state record when it was last read or written. */
  revision = 0
  head = 0
  readonly behavior: AnyBehavior
  private readonly shard: number
  private recent: DeduplicationWindow | undefined = undefined
  private readonly context: { -readonly [Known in keyof DecisionContext]: DecisionContext[Known] }

  constructor(behavior: AnyBehavior, address: Address) {
    this.behavior = behavior
    this.shard = shardOf(address)
    this.context = {
      self: address,
      nowMs: 0,
      head: 0,
      isSignal: false,
      isSignalDurable: false,
      format: firstFormat,
      hint: undefined,
      findDuplicate: findNothing
    }
    this.state = behavior.initial
  }

  /** Replaces the state by what the store has. */
  replace({ bytes, head, recent, revision, state }: RecoveredActor): void {
    this.state = state
    this.bytes = bytes
    this.revision = revision
    this.head = head
    this.recent = recent
    this.context.findDuplicate = recent?.find ?? findNothing
  }

  /** The recovered form of an actor that does not exist. */
  blank(): RecoveredActor {
    const { initial, recall } = this.behavior
    const state = recall?.restore(initial, []) ?? initial
    const recent = recall && new DeduplicationWindow(recall.items)
    return { state, bytes: 0, revision: 0, head: 0, timer: undefined, recent }
  }

  /** Estimates the bytes of the state; `text` is its new record, undefined if that stays. */
  measure(text: string | undefined): void {
    const { behavior, state } = this
    if (text !== undefined || behavior.bytesOf) this.bytes = bytesOf(behavior, state, text)
  }

  /** The state as it is stored, in this format. */
  encode(format: number): string {
    const text = this.behavior.encode(this.state, format, this.context.self)
    return encodeStoredState({ format, text })
  }

  /** See {@link decideOn}. */
  decide(
    message: Tagged,
    nowMs: number,
    format: number,
    signal: FiredSignal | undefined
  ): AnyDecision | undefined {
    this.context.nowMs = nowMs
    this.context.format = format
    this.context.isSignal = signal !== undefined
    this.context.isSignalDurable = signal !== undefined && !Number.isNaN(signal.revision)
    this.context.hint = signal?.hint
    this.context.head = this.head
    return decideOn(this.behavior, this.state, message, this.context, this.shard)
  }

  /** Adds the keys of the decided items, the first with this number; throws what `keyOf` throws. */
  addKeys({ itemKeys, items = [] }: AnyDecision, first: number): void {
    const { recall } = this.behavior
    if (this.recent === undefined || recall === undefined) return
    for (let at = 0; at < items.length; at++) {
      const key = itemKeys?.[at] ?? recall.keyOf(items[at] ?? "")
      if (key !== undefined) this.recent.add(key, first + at)
    }
  }
}

/** The time of a timer as stores take it. */
const wholeMs = (atMs: number | null | undefined): number | null | undefined =>
  typeof atMs === "number" ? Math.min(Math.max(Math.ceil(atMs), 0), timerMsMax) : atMs

/** The timers of one actor: its own, the signals to it, and those that it sets for others. */
export class ActorTimers {
  private readonly address: Address
  private readonly timers: TimerService
  /** The time of the actor's own timer by the last decision. */
  private ownMs: number | undefined = undefined
  /** The time of that timer in the store. */
  private storedMs: number | undefined = undefined

  constructor(address: Address, timers: TimerService) {
    this.address = address
    this.timers = timers
  }

  /** The time of the actor's own timer, deferred or not. */
  get atMs(): number | undefined {
    return this.ownMs
  }

  /** Whether the decision on a timer that fired ends it: it neither defers nor replaces it. */
  endsTimer({ signal }: FiredTimer, decision: AnyDecision, nowMs: number): boolean {
    const { deferUntilMs, removesActor, timerAtMs } = decision
    if (timerAtMs !== undefined || deferUntilMs !== undefined || removesActor) return false
    return signal !== undefined || this.ownMs === undefined || this.ownMs <= nowMs
  }

  /** Whether the store has a key of this time that is not the actor's timer and must be removed. */
  isLeftOver({ signal, storedMs }: FiredTimer): boolean {
    return signal === undefined && storedMs !== undefined && storedMs !== this.storedMs
  }

  /** Adds the timers of a decision to a commit; `ends` is the result of {@link endsTimer}. */
  decide(
    commit: PendingCommit,
    decision: AnyDecision,
    fired: FiredTimer | undefined,
    ends: boolean,
    nowMs: number
  ): void {
    const { deferUntilMs, removesActor, signals } = decision
    const signal = fired?.signal
    const timerAtMs = ends && signal === undefined ? null : wholeMs(decision.timerAtMs)
    if (fired?.storedMs !== undefined && signal === undefined) commit.firedTimerMs = fired.storedMs
    if (timerAtMs !== undefined || removesActor) {
      commit.replaceTimer(timerAtMs ?? null)
      commit.consume(this.timers.deferredSignal(this.address))
    }
    if (ends || timerAtMs !== undefined || removesActor) commit.consume(signal?.revision)
    if (timerAtMs !== undefined) this.ownMs = timerAtMs ?? undefined
    if (deferUntilMs !== undefined) {
      this.defer(commit, deferUntilMs, timerAtMs === undefined ? signal : undefined)
    }
    if (signals === undefined) return
    for (const { address, hint } of signals) {
      if (commit.addSignal(address, nowMs, hint)) this.timers.beginSignal(address)
    }
  }

  /** A decision that writes nothing defers a timer: once the commit that it has seen is durable. */
  deferWithoutWrite(
    { deferUntilMs }: AnyDecision,
    fired: FiredTimer | undefined,
    seen: PendingCommit | undefined
  ): void {
    if (deferUntilMs !== undefined) this.defer(seen, deferUntilMs, fired?.signal)
  }

  /** The own timer as the commit changes it in the store; undefined: it does not. */
  changeOf({ timerAtMs }: PendingCommit): number | null | undefined {
    return (timerAtMs ?? undefined) === this.storedMs ? undefined : timerAtMs
  }

  /** Drops the removal of a signal that another one replaces: that one will fire. */
  beforeWrite(commit: PendingCommit): void {
    const { consumedSignal } = commit
    const isReplaced = consumedSignal !== undefined &&
      !this.timers.isLatestSignal(this.address, consumedSignal)
    if (isReplaced) commit.consumedSignal = undefined
  }

  /** The commit is durable. */
  arm(commit: PendingCommit, signalRevisions: ReadonlyArray<number>): void {
    const { address, timers } = this
    const { consumedSignal, deferredSignal, deferUntilMs, removesActor } = commit
    const timerAtMs = removesActor ? null : commit.timerAtMs
    if (timerAtMs !== undefined) this.storedMs = timerAtMs ?? undefined
    if (deferUntilMs !== undefined && !removesActor) timers.defer(address, deferUntilMs)
    else if (timerAtMs !== undefined) timers.set(address, timerAtMs)
    if (consumedSignal !== undefined) timers.endSignal(address, consumedSignal)
    if (deferredSignal !== undefined && !removesActor) {
      timers.deferSignal(address, deferredSignal.untilMs, deferredSignal.signal)
    }
    let at = 0
    for (const { address: to, atMs, hint } of commit.signals) {
      timers.setSignal(to, atMs, { revision: signalRevisions[at++] ?? Number.NaN, hint })
    }
  }

  /**
   * The commit is lost. Whether or not the store has kept it, its timers and signals fire: one too
   * many does no harm. Its signals have no revision, so that a behavior can distinguish them from
   * those of durable commits. What it was to defer is not deferred. `indeterminate`: the store may
   * keep it later, after these have fired.
   */
  armLost({ signals, timerAtMs }: PendingCommit, indeterminate: boolean): void {
    const { address, timers } = this
    const setsTimers = typeof timerAtMs === "number" || signals.length > 0
    if (indeterminate && setsTimers) timers.expectLateCommits(shardOf(address))
    if (typeof timerAtMs === "number") timers.setNoLater(address, timerAtMs)
    for (const { address: to, atMs } of signals) {
      timers.setSignal(to, atMs, { revision: Number.NaN, hint: undefined })
    }
  }

  /** The state comes from the store again, with this timer. */
  recover(storedMs: number | undefined): void {
    this.ownMs = storedMs
    this.storedMs = storedMs
  }

  /** A timer fired too early, or for a key that was left over: the actor's timer still waits. */
  rearm({ signal }: FiredTimer, { deferUntilMs, removesActor, timerAtMs }: AnyDecision): void {
    const { ownMs } = this
    const waits = signal === undefined && timerAtMs === undefined && deferUntilMs === undefined &&
      !removesActor && ownMs === this.storedMs
    if (waits && ownMs !== undefined) this.timers.set(this.address, ownMs)
  }

  private defer(
    commit: PendingCommit | undefined,
    untilMs: number,
    signal: FiredSignal | undefined
  ): void {
    if (signal === undefined) {
      this.ownMs = untilMs
      if (commit === undefined) this.timers.defer(this.address, untilMs)
      else commit.deferUntilMs = untilMs
    } else if (commit === undefined) this.timers.deferSignal(this.address, untilMs, signal)
    else commit.deferredSignal = { untilMs, signal }
  }
}

/** See the head of this file. */
export class Activation implements CommitSource {
  readonly address: Address
  readonly key: string
  readonly shard: number
  /** Whether a message came since the last passivation sweep. */
  used = true
  lastUsedMs = 0
  private readonly context: ActivationContext
  private readonly metrics: KindMetrics
  private phase: "unloaded" | "loading" | "live" | "stopped" = "unloaded"
  private readonly state: ActorState
  private readonly inbox: Inbox
  private readonly timers: ActorTimers
  private readonly commits: CommitPipeline
  /** Decisions or replies are in progress: a message that arrives now waits. */
  private busy = false
  private restartAfterMs: number | undefined = undefined
  /** The number of next messages that each get a separate commit. */
  private separate = 0
  private cancelReload: (() => void) | undefined = undefined

  constructor(
    address: Address,
    behavior: AnyBehavior,
    context: ActivationContext,
    metrics: KindMetrics,
    isNew = false
  ) {
    this.address = address
    this.key = keyOf(address)
    this.shard = shardOf(address)
    this.context = context
    this.metrics = metrics
    this.state = new ActorState(behavior, address)
    this.inbox = new Inbox(address, context)
    this.timers = new ActorTimers(address, context.timers)
    this.commits = new CommitPipeline(this, context.committer)
    // If the actor exists nevertheless, its first commit is a conflict, and it is loaded.
    if (isNew) this.resume(this.state.blank())
  }

  /** Messages without a reply. */
  get queued(): number {
    return this.inbox.unreplied
  }

  /** The messages without a reply by kind: those that wait for a commit, and those not decided. */
  waiting(): WaitingMessages {
    return waitingOf([...this.commits.messages(), ...this.inbox.toArray()])
  }

  /** See {@link ActorState.bytes}. */
  get bytes(): number {
    return this.state.bytes
  }

  /** The actor as people see it; undefined while it is loaded, and after its end. */
  inspect(): InspectedActor | undefined {
    if (this.phase !== "live") return undefined
    const { state: { head, revision }, timers: { atMs } } = this
    // It was asked for, and does not exist.
    if (revision === 0 && this.commits.isEmpty) return inspected(undefined, head, atMs)
    try {
      return inspected(this.state.encode(this.context.format()), head, atMs)
    } catch {
      // Its next commit will fail, and say so.
      return inspected(undefined, head, atMs)
    }
  }

  /** Whether nothing is under way, so that the actor may be passivated. */
  get idle(): boolean {
    return this.phase === "live" && this.inbox.unreplied === 0 && this.commits.isEmpty &&
      this.restartAfterMs === undefined && !this.busy
  }

  /** Accepts one message; `done` is called exactly once, maybe before this returns. */
  deliver(message: Tagged, done: ReplyCallback, due?: FiredTimer, trace?: string): void {
    this.used = true
    const entry = this.inbox.accept(message, done, due, trace)
    if (entry === undefined) return
    if (this.busy || this.inbox.length > 0 || this.isBlocked()) {
      this.inbox.push(entry)
      if (this.phase === "unloaded") this.load()
      return
    }
    this.busy = true
    this.decide(entry)
    this.busy = false
    if (this.inbox.length > 0) this.drain()
  }

  /**
   * Ends the activation and answers the waiting messages with `failure`. What is decided is still
   * committed, and answered with its outcome.
   */
  stop(failure: AskFailure | undefined): void {
    this.phase = "stopped"
    this.cancelReload?.()
    this.inbox.close(failure)
  }

  takeCommit(): Commit | undefined {
    const { state: actor } = this
    const commit = this.commits.take()
    const timer = this.timers.changeOf(commit)
    // The stores note the timer with the record, so that its next owner knows what to remove.
    const writesState = commit.writesState || (timer !== undefined && actor.revision > 0)
    let state: string | undefined
    try {
      if (writesState && !commit.removesActor) state = actor.encode(this.context.format())
      actor.measure(state)
    } catch (cause) {
      return this.unwritable(this.commits.complete(), cause)
    }
    this.context.onSize(this)
    this.timers.beforeWrite(commit)
    if (this.context.traces !== undefined) {
      commit.beginSpans(this.context.traces, this.address.kind)
    }
    const written = commit.toCommit(this.address, actor.revision, state, timer)
    this.drain()
    return written
  }

  committed(outcome: CertainOutcome): void {
    const commit = this.commits.complete()
    commit.endSpans(outcome._tag === "Conflict" ? "Conflict" : undefined)
    if (outcome._tag === "Conflict") {
      const lost = new StorageUnavailable({ detail: outcome.conflict.message })
      return this.retryLost(commit, lost, 0, false)
    }
    this.context.step?.("committed", this.address)
    this.state.revision = outcome.revision
    if (commit.removesActor) {
      this.state.replace(this.state.blank())
      this.timers.recover(undefined)
      this.context.onSize(this)
    }
    this.timers.arm(commit, outcome.signalRevisions)
    this.busy = true
    for (const entry of commit.messages) this.inbox.answer(entry, undefined, entry.reply)
    this.context.step?.("replied", this.address)
    if (commit.actions !== undefined) this.perform(commit.actions)
    this.context.onChange(this.address, commit.removesActor ? 0 : commit.head)
    this.busy = false
    this.continueAfterCommit()
  }

  /** The commit failed; `indeterminate` when the store may have kept it. */
  commitFailed(failure: StorageFailure, indeterminate: boolean): void {
    const lost = this.commits.complete()
    lost.endSpans(failure._tag)
    if (failure._tag === "ValueTooLarge") return this.dropTooLarge(lost, failure)
    const known = indeterminate ? asIndeterminate(failure) : failure
    this.retryLost(lost, known, this.context.limits.reloadDelayMs, indeterminate)
  }

  /**
   * The store can never keep this commit. The messages of a merged commit are decided again, each
   * for a separate commit. A single message fails. If a client or another actor asked it, the actor
   * goes on: requests must not quarantine an actor. A message of the actor itself would come again
   * for ever, so it is a defect.
   */
  private dropTooLarge(lost: PendingCommit, failure: ValueTooLarge): void {
    // Including reads and later messages.
    this.separate = this.inbox.unreplied
    const writers = lost.messages.filter(({ writes }) => writes)
    if (writers.length > 1) {
      this.retryLost(lost, new StorageUnavailable({ detail: failure.detail }), 0, false)
    } else if (writers.every(isAsked)) {
      this.context.onFault(this.address, failure)
      this.retryLost(lost, failure, 0, false)
    } else this.dropDefective(lost, failure)
  }

  private dropDefective(lost: PendingCommit, failure: ValueTooLarge): void {
    if (this.phase === "stopped") this.context.onFault(this.address, failure)
    const restart = this.phase === "stopped" ? 0 : this.context.onDefect(this.address, failure)
    if (typeof restart === "number") return this.retryLost(lost, failure, restart, false)
    this.stop(restart)
    this.retryLost(lost, failure, 0, false)
    this.context.onEnd(this)
  }

  /** The state cannot be encoded: the commit is dropped, and its messages fail. */
  private unwritable(commit: PendingCommit, cause: unknown): undefined {
    this.busy = true
    this.timers.armLost(commit, false)
    for (const entry of commit.messages) {
      this.inbox.answer(entry, new ActorDefect({ key: this.key }))
    }
    this.busy = false
    this.defect(cause)
  }

  private isBlocked(): boolean {
    return this.phase !== "live" || this.restartAfterMs !== undefined ||
      this.commits.isBlocked(this.separate > 0 ? 0 : this.context.limits.commitItemsMax)
  }

  private load(): void {
    const { context, state: actor } = this
    this.phase = "loading"
    const ended = (exit: Exit.Exit<RecoveredActor, StorageFailure>) => {
      if (this.phase === "stopped") return
      if (Exit.isSuccess(exit)) return this.resume(exit.value)
      const failure = failureOf(exit.cause)
      if (failure === undefined && Cause.hasDies(exit.cause)) return this.defect(exit.cause)
      const kept = this.inbox.retryable(this.inbox.takeAll(), failure ?? storeInterrupted(), false)
      this.inbox.putFirst(kept)
      if (this.inbox.length > 0) return this.reload(context.limits.reloadDelayMs)
      this.stop(failure)
      context.onEnd(this)
    }
    const fiber = context.fork(recover(context, actor.behavior, this.address))
    const atOnce = fiber.pollUnsafe()
    if (atOnce !== undefined) return ended(atOnce)
    this.cancelReload = () => fiber.interruptUnsafe()
    fiber.addObserver(ended)
  }

  private resume(recovered: RecoveredActor): void {
    this.state.replace(recovered)
    this.timers.recover(recovered.timer)
    this.phase = "live"
    this.context.onSize(this)
    this.drain()
  }

  private decide(entry: InboxMessage): void {
    const nowMs = this.context.nowMs()
    this.metrics.decisions++
    if (this.separate > 0) this.separate--
    let decision: AnyDecision | undefined
    try {
      const format = this.context.format()
      decision = this.state.decide(entry.message, nowMs, format, entry.due?.signal)
    } catch (cause) {
      this.inbox.answer(entry, new ActorDefect({ key: this.key }))
      return this.defect(cause)
    }
    if (decision === undefined) {
      const detail = `${this.address.kind} takes no ${entry.message._tag}`
      return this.inbox.answer(entry, new UnknownMessage({ key: this.key, detail }))
    }
    if (isRefusal(decision.answer)) this.metrics.refusals++
    this.carryOut(entry, decision, nowMs)
  }

  private carryOut(entry: InboxMessage, decision: AnyDecision, nowMs: number): void {
    // Behaviors hand back their own states and actions; only the table's types know them.
    if (decision.nextState !== undefined) this.state.state = decision.nextState as Tagged
    const actions = decision.actions as Array<Tagged> | undefined
    const { due } = entry
    const ends = due !== undefined && this.timers.endsTimer(due, decision, nowMs)
    if (due !== undefined && !ends) this.timers.rearm(due, decision)
    entry.reply = decision.answer
    entry.writes = ends || hasWrites(decision) || (due !== undefined && this.timers.isLeftOver(due))
    if (entry.writes) return this.write(entry, decision, ends, actions, nowMs)
    const seen = this.commits.latest
    this.timers.deferWithoutWrite(decision, entry.due, seen)
    if (seen !== undefined) return seen.addMessage(entry, actions)
    this.inbox.answer(entry, undefined, decision.answer)
    if (actions !== undefined) this.perform(actions)
  }

  private write(
    entry: InboxMessage,
    decision: AnyDecision,
    ends: boolean,
    actions: ReadonlyArray<Tagged> | undefined,
    nowMs: number
  ): void {
    const commit = this.commits.open(this.state.head)
    const first = this.state.head + 1
    commit.add(decision)
    this.state.head = commit.head
    this.timers.decide(commit, decision, entry.due, ends, nowMs)
    commit.addMessage(entry, actions)
    this.context.step?.("decided", this.address)
    this.commits.join()
    try {
      if (decision.items !== undefined) this.state.addKeys(decision, first)
    } catch (cause) {
      this.defect(cause)
    }
  }

  private perform(actions: ReadonlyArray<Tagged>): void {
    this.context.effects.perform(this.state.behavior, this.address, actions, (cause) => {
      // An actor that is restarting already is not restarted once more.
      if (this.phase !== "live" || this.restartAfterMs !== undefined) {
        return this.context.onFault(this.address, cause)
      }
      this.defect(cause)
    })
  }

  /** After a commit: the next commit, or the restart that waited for this one. */
  private continueAfterCommit(): void {
    this.commits.join()
    if (this.restartAfterMs !== undefined && this.commits.isEmpty) this.reload(this.restartAfterMs)
    this.drain()
  }

  private drain(): void {
    if (this.busy) return
    this.busy = true
    while (this.inbox.length > 0 && !this.isBlocked()) {
      const entry = this.inbox.shift()
      if (entry !== undefined) this.decide(entry)
    }
    this.busy = false
  }

  /** The commit is lost: everything decided since is dropped and decided again, in order. */
  private retryLost(
    lost: PendingCommit,
    failure: AskFailure,
    delayMs: number,
    indeterminate: boolean
  ): void {
    const pending = this.commits.withdraw()
    if (this.phase !== "stopped") this.phase = "loading"
    this.timers.armLost(lost, indeterminate)
    const kept = this.inbox.retryable(lost.messages, failure, indeterminate)
    if (pending !== undefined) {
      this.timers.armLost(pending, false)
      // Later messages may fit: they are decided again without the one that did not.
      const later = failure._tag === "ValueTooLarge"
        ? new StorageUnavailable({ detail: failure.detail })
        : failure
      kept.push(...this.inbox.retryable(pending.messages, later, false))
    }
    this.metrics.retriedDecisions += kept.length
    this.inbox.putFirst(kept)
    this.reload(Math.max(delayMs, this.restartAfterMs ?? 0))
  }

  private reload(delayMs: number): void {
    this.restartAfterMs = undefined
    if (this.phase === "stopped") return
    this.phase = "loading"
    if (delayMs <= 0) return this.load()
    this.cancelReload = this.context.later(delayMs, () => this.phase === "stopped" || this.load())
  }

  /** A broken invariant: the actor restarts from the store, or is quarantined. */
  private defect(cause: unknown): void {
    if (this.phase === "stopped") return this.context.onFault(this.address, cause)
    const restart = this.context.onDefect(this.address, cause)
    if (typeof restart !== "number") {
      this.stop(restart)
      return this.context.onEnd(this)
    }
    if (this.commits.isEmpty) this.reload(restart)
    else this.restartAfterMs = restart
  }
}
