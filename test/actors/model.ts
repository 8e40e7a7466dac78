/**
 * A behavior on a model of the store: what the runtime promises of commits, restarts and
 * timers, in a few lines and without time or threads.
 */
import { expect } from "vitest"
import { type Address, address, type Behavior, keyOf, type LogItem,
  type Tagged } from "../../runtime/index.ts"
import { decider } from "./cells.ts"

/** A field that a later version may have added to a record. */
const laterField = { fieldOfALaterVersion: ["kept"] }

const laterFieldOf = (record: string): unknown => JSON.parse(record).fieldOfALaterVersion

export class Model<S extends Tagged, M extends Tagged, R, A extends Tagged> {
  state: S
  timerAtMs: number | null = null
  /** Until when the timer is held in memory. */
  deferredUntilMs: number | undefined = undefined
  /** The actors that its commits signaled, by key. */
  signaled: Array<string> = []
  /** Actions that were asked for and neither performed nor lost. */
  actions: Array<A> = []
  readonly log = new Map<number, string>()
  private foreignAtMs: number | undefined = undefined
  private foreignHint: number | undefined = undefined
  private hint: number | undefined = undefined
  private isSignal = false
  private head = 0
  private record: string | undefined = undefined
  private readonly behavior: Behavior<S, M, R, A>
  private readonly self: Address | undefined
  private readonly format: number

  constructor(behavior: Behavior<S, M, R, A>, self?: Address, format = 1) {
    this.behavior = behavior
    this.self = self
    this.format = format
    this.state = behavior.initial
  }

  private get address(): Address {
    return this.self ?? address(this.behavior.kind, "one")
  }

  private encode(state: S): string {
    return this.behavior.encode(state, 1, this.address)
  }

  /** What is left of a state in its record; two records of a state differ by their encryption. */
  private kept(state: S): S {
    return this.behavior.decode(this.encode(state), 1, this.address)
  }

  /** Decides on a message and carries out what was decided; answers the reply. */
  send(message: M, nowMs: number): unknown {
    // Every message must come through the envelope as it went in.
    expect(this.behavior.decodeMessage(JSON.parse(JSON.stringify(message)))).toEqual(message)
    const context = {
      nowMs,
      head: this.head,
      isSignal: this.isSignal,
      isSignalDurable: this.isSignal,
      format: this.format,
      hint: this.hint,
      findDuplicate: this.findDuplicate,
      ...this.self === undefined ? {} : { self: this.self }
    }
    this.hint = undefined
    this.isSignal = false
    const decision = decider(this.behavior.table)(this.state, message, context)
    if (decision.removesActor) {
      this.log.clear()
      this.timerAtMs = null
      this.record = undefined
      this.head = 0
      this.state = this.behavior.initial
      return decision.answer
    }
    if (decision.nextState !== undefined && !decision.durable && decision.items === undefined) {
      // Only what is volatile may be remembered without an item that tells it.
      expect(this.kept(decision.nextState)).toEqual(this.kept(this.state))
    }
    const { nextState } = decision
    if (nextState !== undefined && nextState._tag === this.state._tag) {
      const [before, after] = [this.state, nextState].map((one) => this.encode(one))
      expect(laterFieldOf(after ?? "")).toEqual(laterFieldOf(before ?? ""))
    }
    if (decision.nextState !== undefined) this.state = decision.nextState
    for (const [at, value] of (decision.items ?? []).entries()) {
      // A key that is handed over is the one that a later activation reads from the item.
      const key = decision.itemKeys?.[at]
      if (key !== undefined) expect(this.behavior.recall?.keyOf(value)).toBe(key)
      this.log.set(++this.head, value)
    }
    for (const n of decision.removals ?? []) this.log.delete(n)
    if (decision.durable || decision.removals !== undefined) {
      this.record = this.encode(this.state)
    }
    const { deferUntilMs, timerAtMs } = decision
    if (timerAtMs !== undefined) {
      this.timerAtMs = timerAtMs
      this.deferredUntilMs = undefined
    }
    if (deferUntilMs !== undefined) this.deferredUntilMs = deferUntilMs
    else if (timerAtMs === undefined && message === this.behavior.timerMessage) {
      this.timerAtMs = null
    }
    this.signaled.push(...(decision.signals ?? []).map(({ address }) => keyOf(address)))
    this.actions.push(...decision.actions ?? [])
    return decision.answer
  }

  /** Delivers due timers until none is due; more than `most` of them is an error. */
  fireTimer(nowMs: number, most = 100): void {
    for (let count = 0; this.isDue(nowMs); count++) {
      expect(count).toBeLessThan(most)
      this.isSignal = this.foreignAtMs !== undefined
      this.hint = this.meetForeign()
      this.send(this.behavior.timerMessage, nowMs)
    }
  }

  /** Another actor's commit signals it; its own decisions do not cancel the signal. */
  signalAt(atMs: number, hint?: number): void {
    const before = this.foreignAtMs === undefined ? hint : this.foreignHint
    this.foreignHint = hint === undefined || before === undefined
      ? undefined
      : Math.max(hint, before)
    this.foreignAtMs = atMs
  }

  /** Whether a timer would be delivered now. */
  isDue(nowMs: number): boolean {
    if (this.foreignAtMs !== undefined) return this.foreignAtMs <= nowMs
    return this.timerAtMs !== null && Math.max(this.timerAtMs, this.deferredUntilMs ?? 0) <= nowMs
  }

  /** The actor is reloaded; its running effects and its deferred timer remain. */
  reload(): void {
    const { decode, initial, recall } = this.behavior
    const state = this.record === undefined
      ? initial
      : decode(JSON.stringify({ ...JSON.parse(this.record), ...laterField }), 1, this.address)
    if (recall === undefined) {
      this.state = state
      return
    }
    const items = this.last(recall.items)
    this.state = recall.restore(state, items)
    if (recall.restoresInParts !== true) return
    let inParts = state
    for (let at = 0; at < items.length; at += 3) {
      inParts = recall.restore(inParts, items.slice(at, at + 3))
    }
    expect(inParts).toEqual(this.state)
  }

  /** The actor is gone from memory, with its actions, and loaded again from the store. */
  restart(): void {
    this.actions = []
    this.meetForeign()
    this.deferredUntilMs = undefined
    this.reload()
  }

  /** What the other actor said with its timer, if there is one. */
  private meetForeign(): number | undefined {
    if (this.foreignAtMs === undefined) return
    this.timerAtMs = this.foreignAtMs
    this.deferredUntilMs = undefined
    this.foreignAtMs = undefined
    return this.foreignHint
  }

  private readonly findDuplicate = (key: string): number | undefined => {
    const { recall } = this.behavior
    if (recall === undefined) return
    return this.last(recall.items).find(({ value }) => recall.keyOf(value) === key)?.n
  }

  private last(count: number): ReadonlyArray<LogItem> {
    return [...this.log].slice(-count).map(([n, value]) => ({ n, value }))
  }
}
