/**
 * The pending commit of one actor: many decisions merged into one write. A later state replaces an
 * earlier one, appended items add up, and each reply waits for all that it has seen.
 */
import { Effect } from "effect"
import { type Address, type AskFailure, type Decision, keyOf, type LogItem,
  type Tagged } from "../actor/index.ts"
import type { CommitSource, Committer } from "../commit/index.ts"
import type { Commit } from "../ports/index.ts"
import { type FiredSignal, type FiredTimer, latestRevision } from "../timers/index.ts"
import type { OpenSpan, Traces } from "../tracing.ts"

/** Called once with a failure or a reply. An error that it throws is only logged. */
export type ReplyCallback = (failure: AskFailure | undefined, reply: unknown) => void

/** The callback of a message that an actor's own effect sends to it: nobody waits for the reply. */
export const ignoreReply: ReplyCallback = () => {}

/** A message that is sent by callback, as an effect. */
export const askAsEffect = (
  send: (done: ReplyCallback) => void
): Effect.Effect<unknown, AskFailure> =>
  Effect.callback((resume) =>
    send((failure, reply) =>
      resume(failure === undefined ? Effect.succeed(reply) : Effect.fail(failure))
    )
  )

/** A signal that a commit sets. */
export interface DecidedSignal {
  readonly address: Address
  readonly atMs: number
  hint: number | undefined
}

/** The hint of two merged signals; none if one of them has none, since it may be about any item. */
const greatestHint = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined || other === undefined ? undefined : Math.max(one, other)

/** One message under way. */
export interface InboxMessage {
  readonly message: Tagged
  readonly done: ReplyCallback
  readonly due: FiredTimer | undefined
  /** The `traceparent` of whoever sent it. */
  readonly trace: string | undefined
  /** When the inbox accepted it, ms since the epoch. */
  readonly acceptedMs: number
  /** How often it was decided and its commit lost, or could not be decided. */
  attempts: number
  /** Whether its last decision asked for something to be written. */
  writes: boolean
  reply: unknown
}

/** Whether somebody waits for the reply: it is no timer, signal or report of the actor's effect. */
export const isAsked = ({ done, due }: InboxMessage): boolean =>
  due === undefined && done !== ignoreReply

const none: ReadonlyArray<never> = []

export class PendingCommit {
  readonly messages: Array<InboxMessage> = []
  actions: Array<Tagged> | undefined = undefined
  /** The commit contains the state: it was changed, or items are removed. */
  writesState = false
  removesActor = false
  readonly items: Array<LogItem> = []
  timerAtMs: number | null | undefined = undefined
  /** The stored time of the actor's own timer that fired and caused a decision here. */
  firedTimerMs: number | undefined = undefined
  /** When this is durable, the actor's own timer is deferred until this time. */
  deferUntilMs: number | undefined = undefined
  /** A signal that is deferred when this is durable. */
  deferredSignal: { readonly untilMs: number; readonly signal: FiredSignal } | undefined = undefined
  /** Revision of the signal to this actor that the commit removes. */
  consumedSignal: number | undefined = undefined
  /** The log's head after this commit. */
  head: number
  private removals: Array<number> | undefined = undefined
  private decidedSignals: Map<string, DecidedSignal> | undefined = undefined
  /** One in the trace of each message that this writes; undefined if there is none. */
  private spans: Array<OpenSpan> | undefined = undefined

  constructor(head: number) {
    this.head = head
  }

  /** Adds the parts of one decision, except timers and signals. */
  add(decision: Decision<unknown, unknown, unknown>): void {
    const { items, removals } = decision
    if (decision.durable || removals !== undefined) this.writesState = true
    if (decision.removesActor) this.removesActor = true
    if (items !== undefined) {
      for (const value of items) {
        this.items.push({ n: ++this.head, value })
      }
    }
    if (removals !== undefined) {
      this.removals ??= []
      for (const n of removals) this.removals.push(n)
    }
  }

  /** Sets or clears the actor's own timer, which ends any earlier deferral. */
  replaceTimer(atMs: number | null): void {
    this.timerAtMs = atMs
    this.deferUntilMs = undefined
    this.consume(this.deferredSignal?.signal.revision)
    this.deferredSignal = undefined
  }

  /** Removes the signal to this actor of this revision, and those that it replaced. */
  consume(revision: number | undefined): void {
    if (revision === undefined) return
    this.consumedSignal = latestRevision(this.consumedSignal ?? Number.NaN, revision)
  }

  /** Adds a signal; false when the commit has one to this address already. */
  addSignal(address: Address, atMs: number, hint: number | undefined): boolean {
    this.decidedSignals ??= new Map()
    const key = keyOf(address)
    const earlier = this.decidedSignals.get(key)
    if (earlier !== undefined) earlier.hint = greatestHint(earlier.hint, hint)
    else this.decidedSignals.set(key, { address, atMs, hint })
    return earlier === undefined
  }

  /** Holds a reply, and the actions after it, until this is durable. */
  addMessage(entry: InboxMessage, actions: ReadonlyArray<Tagged> | undefined): void {
    this.messages.push(entry)
    if (actions === undefined) return
    this.actions ??= []
    for (const action of actions) this.actions.push(action)
  }

  /** The commit to write; `state` is the record's text and `timer` the own timer, if changed. */
  toCommit(
    address: Address,
    revision: number,
    state: string | undefined,
    timer: number | null | undefined
  ): Commit {
    const { consumedSignal, firedTimerMs: firedTimer, removesActor, signals } = this
    return {
      address,
      expected: revision,
      state: removesActor ? null : state,
      head: removesActor ? 0 : this.head,
      append: removesActor ? none : this.itemsToWrite(),
      remove: removesActor ? none : this.removals ?? none,
      timer: removesActor ? null : timer,
      signals,
      consumedSignal,
      firedTimer
    }
  }

  /** The commit is being written: begins a span in the trace of each message that it writes. */
  beginSpans(traces: Traces, kind: string): void {
    for (const { trace, writes } of this.messages) {
      if (trace === undefined || !writes) continue
      const span = traces.begin({ name: `commit ${kind}`, kind: "internal", parent: trace })
      if (span !== undefined) (this.spans ??= []).push(span)
    }
  }

  /** The outcome is known; `error` names the failure. */
  endSpans(error: string | undefined): void {
    if (this.spans === undefined) return
    const attributes = { "restante.commit.messages": this.messages.length }
    for (const span of this.spans) span.end(attributes, error)
    this.spans = undefined
  }

  get signals(): ReadonlyArray<DecidedSignal> {
    return this.decidedSignals === undefined ? none : [...this.decidedSignals.values()]
  }

  /** The appended items, without those that a later decision removes. */
  private itemsToWrite(): ReadonlyArray<LogItem> {
    if (this.removals === undefined || this.items.length === 0) return this.items
    const removed = new Set(this.removals)
    return this.items.filter(({ n }) => !removed.has(n))
  }
}

/** Whether a decision changes anything that must be written. */
export const hasWrites = (decision: Decision<unknown, unknown, unknown>): boolean =>
  decision.durable || decision.items !== undefined || decision.removals !== undefined ||
  decision.timerAtMs !== undefined || decision.signals !== undefined || decision.removesActor

/** The commits of one actor: one in flight at most, and the pending one. */
export class CommitPipeline {
  private pending: PendingCommit | undefined = undefined
  private inFlight: PendingCommit | undefined = undefined
  /** The pending commit waits in the committer. */
  private joined = false
  private readonly actor: CommitSource
  private readonly committer: Committer

  constructor(actor: CommitSource, committer: Committer) {
    this.actor = actor
    this.committer = committer
  }

  /** The messages whose replies wait for a commit. */
  messages(): ReadonlyArray<InboxMessage> {
    return [...this.inFlight?.messages ?? none, ...this.pending?.messages ?? none]
  }

  get isEmpty(): boolean {
    return this.pending === undefined && this.inFlight === undefined
  }

  /** The commit that a decision made now has seen; undefined when all is durable. */
  get latest(): PendingCommit | undefined {
    return this.pending ?? this.inFlight
  }

  /** Whether no decision can be added: the actor vanishes, or the pending commit is full. */
  isBlocked(itemsMax: number): boolean {
    const { inFlight, pending } = this
    return inFlight?.removesActor === true ||
      (pending !== undefined && (pending.removesActor || pending.items.length >= itemsMax))
  }

  /** The pending commit; a new one begins at this head of the log. */
  open(head: number): PendingCommit {
    return this.pending ??= new PendingCommit(head)
  }

  /** The pending commit, if any, goes to the committer as soon as none is in flight. */
  join(): void {
    if (this.joined || this.pending === undefined || this.inFlight !== undefined) return
    this.joined = true
    this.committer.join(this.actor)
  }

  /** The pending commit is in flight from now on. */
  take(): PendingCommit {
    const commit = this.pending
    if (commit === undefined || this.inFlight !== undefined) {
      throw new Error("a commit was taken while none was pending, or one was in flight")
    }
    this.joined = false
    this.pending = undefined
    this.inFlight = commit
    return commit
  }

  /** The commit in flight is over. */
  complete(): PendingCommit {
    const commit = this.inFlight
    if (commit === undefined) throw new Error("a commit has ended that was not in flight")
    this.inFlight = undefined
    return commit
  }

  /** Takes back the pending commit after the one in flight was lost. */
  withdraw(): PendingCommit | undefined {
    const commit = this.pending
    this.pending = undefined
    return commit
  }
}
