/** The table of a definition as the runtime's table: with the guards of timers. */
import { Decision, type DecisionContext, isRefusal, type Tagged } from "../actor/index.ts"
import type { ActorDecision, DecidedTimer } from "./actor-decision.ts"
import { jsonFault } from "./json-value.ts"
import { emptyMeta, type RecordCodec, type RecordMeta } from "./record.ts"
import { type ActorTimer, dueTimer, intervalOf, type Tick } from "./recurrence.ts"

/** The input of a cell besides its state and message. */
export interface CellContext extends DecisionContext {
  /** In the cell of the timer's message: which tick it is. Undefined for a signal. */
  readonly tick?: Tick | undefined
}

type AnyCell = (
  state: Tagged,
  message: Tagged,
  context: CellContext
) => ActorDecision<Tagged, unknown, Tagged, unknown>

type RuntimeDecision = Decision<Tagged, unknown, Tagged>

/** A table whose types are not known here. */
export type AnyTable = Readonly<Record<string, Readonly<Record<string, AnyCell>>>>

export interface CellOptions {
  readonly kind: string
  readonly record: RecordCodec
  /** The tag of the timer's message. */
  readonly timer: string | undefined
  readonly encodeItem: ((item: unknown) => string) | undefined
}

/** The timer that a decision asks for; null: it ends the timer. */
const timerOf = (change: DecidedTimer, nowMs: number): ActorTimer | null => {
  switch (change._tag) {
    case "Clear":
      return null
    case "Once":
      return { atMs: change.atMs }
    case "Retry":
      return { atMs: nowMs }
    case "Every": {
      const { everyMs, options: { firstMs = nowMs + everyMs, lateMs, missed } } = change
      return { atMs: firstMs, interval: intervalOf(everyMs, missed, lateMs) }
    }
  }
}

/** Makes the runtime's decisions of the decisions of a definition's cells. */
class Cells {
  private readonly options: CellOptions

  constructor(options: CellOptions) {
    this.options = options
  }

  /** The runtime's cell for a cell of the definition. */
  runtimeCell(tag: string, cell: AnyCell) {
    return (state: Tagged, message: Tagged, context: DecisionContext): RuntimeDecision => {
      const meta = this.options.record.metaOf(state)
      return tag === this.options.timer && !context.isSignal && meta !== undefined
        ? this.onTimer(cell, meta, state, message, context)
        : this.complete(state, meta, cell(state, message, context), context.nowMs, meta?.timer)
    }
  }

  /** The timer's message may come early, or after the timer has ended: its cell is not called. */
  private onTimer(
    cell: AnyCell,
    meta: RecordMeta,
    state: Tagged,
    message: Tagged,
    context: DecisionContext
  ): RuntimeDecision {
    const { nowMs } = context
    const { timer } = meta
    if (timer === undefined) return new Decision()
    if (nowMs < timer.atMs) return new Decision<Tagged>().setTimer(timer.atMs)
    const { next, tick } = dueTimer(timer, nowMs)
    if (tick !== undefined) {
      const decision = cell(state, message, { ...context, tick })
      return this.complete(state, meta, decision, nowMs, next)
    }
    const skipped = this.options.record.withMeta(state, { ...meta, timer: next })
    return new Decision<Tagged>().become(skipped).setTimer(next?.atMs ?? null)
  }

  /** `following`: the timer, unless the decision changes it. */
  private complete(
    state: Tagged,
    meta: RecordMeta | undefined,
    { inner, isRefused, items, timer: change }: ReturnType<AnyCell>,
    nowMs: number,
    following: ActorTimer | undefined
  ): RuntimeDecision {
    this.assertReply(inner.answer, isRefused)
    if (items !== undefined) this.addItems(inner, items)
    if (inner.removesActor) return inner
    const timer = change === undefined ? following : timerOf(change, nowMs) ?? undefined
    if (change !== undefined) this.setTimer(inner, change, timer, nowMs)
    else if (timer !== meta?.timer) inner.setTimer(timer?.atMs ?? null)
    // The record holds the timer, so it changes with it.
    const isTimerDecided = change !== undefined || timer !== meta?.timer
    if (isTimerDecided && inner.nextState === undefined) inner.become(state)
    if (inner.nextState !== undefined && (meta !== undefined || isTimerDecided)) {
      const next = { ...meta ?? emptyMeta, timer }
      inner.become(this.options.record.withMeta(inner.nextState, next))
    }
    return inner
  }

  /** Before the commit: a reply that cannot travel must not leave its decision behind. */
  private assertReply(answer: unknown, isRefused: boolean): void {
    const { kind } = this.options
    if (isRefusal(answer) && !isRefused) {
      throw new TypeError(
        `${kind} replies with a value whose _tag is Refused, as a refusal has: ` +
          "use `refuse`, or put the value into a field of the reply"
      )
    }
    const fault = jsonFault(answer, "reply")
    if (fault !== undefined) {
      throw new TypeError(`${kind} replies with ${fault}: reply with a JSON value`)
    }
  }

  private setTimer(
    inner: RuntimeDecision,
    change: DecidedTimer,
    timer: ActorTimer | undefined,
    nowMs: number
  ): void {
    const { kind, timer: message } = this.options
    if (message === undefined) {
      throw new TypeError(`${kind} sets a timer, and names no message for it: add \`timer\``)
    }
    inner.setTimer(timer?.atMs ?? null)
    if (change._tag === "Retry") inner.deferTimer(nowMs + change.afterMs)
  }

  private addItems(inner: RuntimeDecision, items: ReadonlyArray<unknown>): void {
    const { encodeItem, kind } = this.options
    if (encodeItem === undefined) {
      throw new TypeError(`${kind} appends an item, and has no Schema for it: add \`log\``)
    }
    for (const item of items) inner.append(encodeItem(item))
  }
}

/** The runtime's table for the table of a definition. */
export const runtimeTable = (table: AnyTable, options: CellOptions) => {
  const cells = new Cells(options)
  return Object.fromEntries(
    Object.entries(table).map(([state, row]) => [
      state,
      Object.fromEntries(
        Object.entries(row).map(([tag, cell]) => [tag, cells.runtimeCell(tag, cell)])
      )
    ])
  )
}
