/**
 * Checks whether a history is linearizable, by the search of Wing and Gong: it orders operations so
 * that each takes effect between its start and its end. It remembers visited states (Lowe, Testing
 * for linearizability, 2016). An operation of unknown outcome takes effect at any time after its
 * start, or never. The search is bounded; a search that reaches its bound is a failure.
 */
import { byResource, type HistoryOperation, lineOf, type Model } from "./history.ts"

/** Bound of the search for one resource, in steps of its model. */
const stepsMax = 300_000
const reportedMax = 12

/** What the search for an order of one resource's operations has found. */
export type Verdict =
  | { readonly _tag: "Linearizable"; readonly steps: number }
  /** `report`: the longest order found, and the operations that cannot follow it. */
  | { readonly _tag: "Broken"; readonly report: string; readonly steps: number }
  | { readonly _tag: "GaveUp"; readonly report: string; readonly steps: number }

/** The operations that are in the order already. */
class Taken {
  private readonly words: Uint32Array

  constructor(count: number) {
    this.words = new Uint32Array(Math.ceil(count / 32))
  }

  has(at: number): boolean {
    return ((this.words[at >>> 5] ?? 0) & (1 << (at & 31))) !== 0
  }

  flip(at: number): void {
    this.words[at >>> 5] = (this.words[at >>> 5] ?? 0) ^ (1 << (at & 31))
  }

  get key(): string {
    return String.fromCharCode(...new Uint16Array(this.words.buffer))
  }
}

/** One position of the order: the candidates for it, and how many of them were tried. */
interface Frame<State> {
  readonly state: State
  /** Index of the previous operation; -1 at the beginning. */
  readonly by: number
  readonly nexts: Iterator<readonly [at: number, state: State]>
}

class Search<State, Input extends { readonly kind: string }, Output> {
  private readonly model: Model<State, Input, Output>
  private readonly all: ReadonlyArray<HistoryOperation<Input, Output>>
  private readonly taken: Taken
  /** Operations with a rank, sorted by rank. */
  private readonly ranked: ReadonlyArray<number>
  private readonly seen = new Set<string>()
  private readonly required: number
  /** All required operations before this index are taken; operations are sorted by start. */
  private first = 0
  private requiredTaken = 0
  private steps = 0
  private longest: ReadonlyArray<number> = []
  private stuck: ReadonlyArray<number> = []

  constructor(
    model: Model<State, Input, Output>,
    operations: ReadonlyArray<HistoryOperation<Input, Output>>
  ) {
    this.model = model
    this.all = operations.filter(({ outcome }) => outcome !== "fail")
      .toSorted((one, other) => one.start - other.start)
    this.taken = new Taken(this.all.length)
    const rankOf = (at: number) => this.all[at]?.rank ?? Infinity
    this.ranked = this.all.flatMap(({ rank }, at) => rank === undefined ? [] : [at])
      .toSorted((one, other) => rankOf(one) - rankOf(other))
    this.required = this.all.filter(({ outcome }) => outcome === "ok").length
  }

  /** Candidates that began before the first end of the others; required ones first. */
  private candidates(): ReadonlyArray<number> {
    const must: Array<number> = []
    const may: Array<number> = []
    let ended = Infinity
    for (let at = this.first; at < this.all.length; at += 1) {
      const one = this.all[at]
      if (one === undefined || one.start > ended) break
      if (this.taken.has(at)) continue
      if (one.outcome === "ok") {
        must.push(at)
        ended = Math.min(ended, one.end)
      } else may.push(at)
    }
    const rank = this.nextRank()
    const isNext = (at: number) => {
      const one = this.all[at]
      return one !== undefined && one.start <= ended && (one.rank ?? rank) <= rank
    }
    return [...must, ...may].filter(isNext)
  }

  /** The lowest rank that is not taken yet. */
  private nextRank(): number {
    const at = this.ranked.find((one) => !this.taken.has(one))
    return at === undefined ? Infinity : this.all[at]?.rank ?? Infinity
  }

  private *nexts(state: State): Generator<readonly [number, State]> {
    for (const at of this.candidates()) {
      const one = this.all[at]
      if (one === undefined) continue
      this.steps += 1
      const before = one.outcome === "ok" ? undefined : this.model.keyOf(state)
      for (const after of this.model.step(state, one.input, one.output)) {
        // One of unknown outcome that changes nothing need not take effect.
        if (before !== undefined && this.model.keyOf(after) === before) continue
        yield [at, after]
      }
    }
  }

  private frame(state: State, by: number): Frame<State> {
    return { state, by, nexts: this.nexts(state) }
  }

  private take(at: number): void {
    this.taken.flip(at)
    const isTaken = this.taken.has(at)
    if (this.all[at]?.outcome === "ok") this.requiredTaken += isTaken ? 1 : -1
    if (!isTaken) this.first = Math.min(this.first, at)
    while (this.first < this.all.length && this.taken.has(this.first)) this.first += 1
  }

  private isNew(at: number, state: State): boolean {
    this.taken.flip(at)
    const key = `${this.taken.key}|${this.model.keyOf(state)}`
    this.taken.flip(at)
    if (this.seen.has(key)) return false
    this.seen.add(key)
    return true
  }

  run(limit: number): Verdict {
    const stack = [this.frame(this.model.initial, -1)]
    while (this.requiredTaken < this.required) {
      const top = stack.at(-1)
      if (top === undefined) return { _tag: "Broken", report: this.report(), steps: this.steps }
      if (this.steps > limit) return { _tag: "GaveUp", report: this.report(), steps: this.steps }
      const next = top.nexts.next()
      if (next.done === true) {
        this.remember(stack)
        stack.pop()
        if (top.by >= 0) this.take(top.by)
        continue
      }
      const [at, state] = next.value
      if (!this.isNew(at, state)) continue
      this.take(at)
      stack.push(this.frame(state, at))
    }
    return { _tag: "Linearizable", steps: this.steps }
  }

  private remember(stack: ReadonlyArray<Frame<State>>): void {
    if (this.stuck.length > 0 && stack.length - 1 <= this.longest.length) return
    this.longest = stack.flatMap(({ by }) => by < 0 ? [] : [by])
    this.stuck = this.candidates()
  }

  private report(): string {
    const lines = (numbers: ReadonlyArray<number>) =>
      numbers.map((at) => {
        const one = this.all[at]
        return one === undefined ? "" : `  ${lineOf(one)}`
      }).join("\n")
    return `after ${this.longest.length} of ${this.all.length} operations, the last of them\n` +
      `${lines(this.longest.slice(-reportedMax))}\n` +
      `none of these can come next\n${lines(this.stuck.slice(0, reportedMax))}`
  }
}

/** Checks the history of one resource. */
export const check = <State, Input extends { readonly kind: string }, Output>(
  model: Model<State, Input, Output>,
  operations: ReadonlyArray<HistoryOperation<Input, Output>>,
  limit: number = stepsMax
): Verdict => new Search(model, model.settle?.(operations) ?? operations).run(limit)

/** A history that no order explains, or a search that reached its bound. */
export class Contradiction extends Error {
  override readonly name = "Contradiction"
  /** All of the resource's operations. */
  readonly operations: ReadonlyArray<unknown>

  constructor(message: string, operations: ReadonlyArray<unknown>) {
    super(message)
    this.operations = operations
  }
}

/**
 * Checks each resource; throws a {@link Contradiction} that names the broken resource, or the one
 * whose search reached its bound.
 */
export const expectLinearizable = <State, Input extends { readonly kind: string }, Output>(
  name: string,
  model: Model<State, Input, Output>,
  operations: Iterable<HistoryOperation<Input, Output>>,
  limit: number = stepsMax
): void => {
  for (const [resource, part] of byResource(operations)) {
    const verdict = check(model, part, limit)
    if (verdict._tag === "Linearizable") continue
    const what = verdict._tag === "Broken" ? "is not linearizable" : "was not settled in time"
    const reported = `${name} ${resource} ${what} (${verdict.steps} steps): ${verdict.report}`
    throw new Contradiction(reported, part)
  }
}
