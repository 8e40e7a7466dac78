/** Testing a behavior's table: one test for each of its cells, and decisions made by hand. */
import { expect, it } from "vitest"
import { address, type BehaviorTable, type Decision, type DecisionContext, isRefusal,
  type Tagged } from "../../runtime/index.ts"

/** `<State>.<Message>` for each cell of a table. */
type CellName<T> = {
  [S in keyof T & string]: `${S}.${keyof T[S] & string}`
}[keyof T & string]

/** One test for each cell; a cell without one, or a test without a cell, is an error. */
export const testCells = <T extends object>(
  table: T,
  tests: { readonly [Name in CellName<T>]: () => void }
): void => {
  const names = Object.entries(table)
    .flatMap(([state, row]) => Object.keys(row).map((message) => `${state}.${message}`))
  it("has one test for each cell of the table", () => {
    expect(Object.keys(tests).toSorted()).toEqual(names.toSorted())
  })
  for (const [name, test] of Object.entries<() => void>(tests)) it(name, test)
}

/** What the cells of the tests know, unless they say otherwise. */
export const nowMs = 1_800_000_000_000

/** Whose table it is, unless they say otherwise. */
const self = address("tested", "one")

/** Makes decisions by a table, without a runtime. */
export const decider =
  <S extends Tagged, M extends Tagged, R, A = never>(table: BehaviorTable<S, M, R, A>) =>
  (state: S, message: M, context: Partial<DecisionContext> = {}): Decision<S, R, A> => {
    // A tag of a union is a key of its table; TypeScript does not follow the pair to its cell.
    const rows = table as unknown as Record<
      string,
      Record<string, (state: S, message: M, context: DecisionContext) => Decision<S, R, A>>
    >
    const cell = rows[state._tag]?.[message._tag]
    if (cell === undefined) throw new Error(`no cell ${state._tag}.${message._tag}`)
    const known = {
      nowMs,
      head: 0,
      format: 1,
      self,
      isSignal: false,
      isSignalDurable: false,
      hint: undefined,
      findDuplicate: () => undefined
    }
    return cell(state, message, { ...known, ...context })
  }

type AnyDecision = Decision<unknown, unknown, unknown>

/** What a decision does to the store and the outside; nothing when undefined. */
export const effectsOf = (decision: AnyDecision): unknown => {
  const { nextState, durable, removesActor, items, removals, timerAtMs, signals, actions } =
    decision
  const { deferUntilMs } = decision
  const all = { nextState, items, removals, timerAtMs, deferUntilMs, signals, actions }
  const some = Object.entries(all).filter(([, value]) => value !== undefined)
  return some.length > 0 || durable || removesActor ? Object.fromEntries(some) : undefined
}

/** Expects a refusal that changes nothing. */
export const expectRefused = (decision: AnyDecision, reason: string): void => {
  expect(isRefusal(decision.answer) ? decision.answer.reason : decision.answer).toBe(reason)
  expect(effectsOf(decision)).toBeUndefined()
}

/** Expects this reply, and no change. */
export const expectOnlyReply = (decision: AnyDecision, answer: unknown): void => {
  expect(decision.answer).toEqual(answer)
  expect(effectsOf(decision)).toBeUndefined()
}

/** A secret's hash that is recognizable in a failing test. */
export const hash = (of: string): string => of.padEnd(43, "_")
