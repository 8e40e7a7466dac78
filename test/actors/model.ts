/**
 * A behaviour on a model of the store: what the runtime promises of commits, restarts and
 * wake-ups, in a few lines and without time or threads.
 */
import { expect } from "vitest"
import type { Behaviour, LogItem, Tagged } from "../../runtime/index.ts"
import { decider } from "./cells.ts"

export class Model<S extends Tagged, M extends Tagged, R, A extends Tagged> {
  state: S
  wakeAtMs: number | null = null
  /** Actions that were asked for and neither performed nor lost. */
  actions: Array<A> = []
  readonly log = new Map<number, string>()
  private head = 0
  private record: string | undefined = undefined
  private readonly behaviour: Behaviour<S, M, R, A>

  constructor(behaviour: Behaviour<S, M, R, A>) {
    this.behaviour = behaviour
    this.state = behaviour.initial
  }

  /** Decides on a message and carries out what was decided; answers the reply. */
  send(message: M, nowMs: number): unknown {
    // Every message must come through the envelope as it went in.
    expect(this.behaviour.decodeMessage(JSON.parse(JSON.stringify(message)))).toEqual(message)
    const context = { nowMs, head: this.head, recent: this.recent }
    const decision = decider(this.behaviour.table)(this.state, message, context)
    if (decision.vanishes) {
      this.log.clear()
      this.wakeAtMs = null
      this.record = undefined
      this.head = 0
      this.state = this.behaviour.initial
      return decision.answer
    }
    if (decision.nextState !== undefined) this.state = decision.nextState
    if (decision.nextState !== undefined && !decision.durable) {
      expect(decision.items?.length).toBeGreaterThan(0)
    }
    for (const value of decision.items ?? []) this.log.set(++this.head, value)
    for (const n of decision.removals ?? []) this.log.delete(n)
    if (decision.durable || decision.removals !== undefined) {
      this.record = this.behaviour.encode(this.state)
    }
    if (decision.wakeAtMs !== undefined) this.wakeAtMs = decision.wakeAtMs
    else if (message === this.behaviour.wakeUp) this.wakeAtMs = null
    this.actions.push(...decision.actions ?? [])
    return decision.answer
  }

  /** Delivers due wake-ups until none is due; more than `most` of them is an error. */
  wake(nowMs: number, most = 100): void {
    for (let count = 0; this.wakeAtMs !== null && this.wakeAtMs <= nowMs; count++) {
      expect(count).toBeLessThan(most)
      this.send(this.behaviour.wakeUp, nowMs)
    }
  }

  /** The actor is gone from memory, with its actions, and loaded again from the store. */
  restart(): void {
    const { decode, initial, recall } = this.behaviour
    this.actions = []
    const state = this.record === undefined ? initial : decode(this.record)
    this.state = recall === undefined ? state : recall.restore(state, this.last(recall.items))
  }

  private readonly recent = (key: string): number | undefined => {
    const { recall } = this.behaviour
    if (recall === undefined) return
    return this.last(recall.items).find(({ value }) => recall.keyOf(value) === key)?.n
  }

  private last(count: number): ReadonlyArray<LogItem> {
    return [...this.log].slice(-count).map(([n, value]) => ({ n, value }))
  }
}
