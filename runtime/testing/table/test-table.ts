/** Tests of one decision table, without a runtime: given a state, when a message, then what. */
import { address, type AnyBehavior, type Behavior, Decision, type DecisionContext, firstFormat,
  type Tagged } from "../../actor/index.ts"
import type { CellContext, Tick } from "../../definition/index.ts"
import { isDeepStrictEqual } from "node:util"
import { epochMs } from "../time/index.ts"
import { CellCoverage, cellName, type CoverageReport } from "./cell-coverage.ts"
import { type DecidedParts, lineOfParts, partsOf } from "./decision-parts.ts"

/** The table decided otherwise than expected, or made no decision. */
export class UnexpectedDecision extends Error {
  override readonly name = "UnexpectedDecision"
}

/** The part of a cell's context that a test sets; the others have defaults. */
export interface GivenContext extends Partial<Omit<DecisionContext, "findDuplicate">> {
  /** The numbers of recent log items by their keys, for `context.findDuplicate`. */
  readonly keys?: Readonly<Record<string, number>>
}

/** The decision on a message. */
export interface WhenDecided<State, Reply, Action> {
  readonly decision: Decision<State, Reply, Action>
  readonly parts: DecidedParts
  /**
   * Throws an {@link UnexpectedDecision} unless the table has decided this, and nothing else: a
   * part that the expected decision does not set must be absent. Returns nothing.
   */
  readonly then: (expected: Decision<State, Reply, Action> | DecidedParts) => void
}

/** A state, and what the cell finds in its context. */
export interface GivenState<State, Message, Reply, Action> {
  /** The decision on a message that somebody sends. */
  readonly when: (message: Message) => WhenDecided<State, Reply, Action>
  /**
   * The decision of the timer's cell when the timer is due. `context.tick` of the cell is this
   * tick: by default it is due now, and none before it was missed. Where only `dueMs` is given, it
   * is the time of the node too.
   */
  readonly tick: (tick?: Partial<Tick>) => WhenDecided<State, Reply, Action>
}

/** A table under test; see {@link testTable}. */
export interface TableTest<State, Message, Reply, Action> {
  /** A state, by default the initial one, and what the cell finds in its context. */
  readonly given: (
    state?: State,
    context?: GivenContext
  ) => GivenState<State, Message, Reply, Action>
  /** Which cells the tests have decided so far. */
  readonly coverage: () => CoverageReport
}

const contextOf = (
  kind: string,
  { keys = {}, ...given }: GivenContext,
  tick: Tick | undefined
): CellContext => ({
  self: address(kind, "test"),
  nowMs: epochMs,
  head: 0,
  isSignal: false,
  isSignalDurable: false,
  format: firstFormat,
  hint: undefined,
  findDuplicate: (key) => keys[key],
  ...given,
  ...tick !== undefined && { tick }
})

/** Decides a message by a table. */
const decide = (
  { kind, table, timerMessage }: AnyBehavior,
  state: Tagged,
  message: Tagged,
  context: CellContext
): Decision<unknown, unknown, unknown> => {
  const name = `${kind}: ${cellName(state._tag, message._tag)}`
  const cell: unknown = table[state._tag]?.[message._tag]
  if (typeof cell !== "function") throw new UnexpectedDecision(`${name} is not in the table`)
  // A definition knows by the object whether a state has a timer that is due: a copy has none, and
  // its cell is called.
  const own = message._tag === timerMessage._tag ? { ...state } : state
  const decision: unknown = cell(own, message, context)
  if (decision instanceof Decision) return decision
  throw new UnexpectedDecision(`${name} made no decision: return become, stay, append or refuse`)
}

/**
 * A harness for one table: `testTable(counter).given(state).when(message).then(decision)`, and
 * `.tick()` in place of `.when` for the cell of the timer. It calls the cells as they are; nothing
 * is stored, sent or performed.
 */
export const testTable = <
  State extends Tagged,
  Message extends Tagged,
  Reply,
  Action extends Tagged
>(
  actor:
    | Behavior<State, Message, Reply, Action>
    | { readonly behavior: Behavior<State, Message, Reply, Action> }
): TableTest<State, Message, Reply, Action> => {
  const behavior = "behavior" in actor ? actor.behavior : actor
  const { kind } = behavior
  const coverage = new CellCoverage(behavior)
  const when = (state: State, context: GivenContext, message: Message, tick?: Tick) => {
    // The table of this behavior makes decisions of these types.
    const decision = decide(behavior, state, message, contextOf(kind, context, tick)) as Decision<
      State,
      Reply,
      Action
    >
    coverage.add(state._tag, message._tag)
    const parts = partsOf(decision)
    const assert = (expected: Decision<State, Reply, Action> | DecidedParts): void => {
      const wanted = expected instanceof Decision ? partsOf(expected) : expected
      if (isDeepStrictEqual(parts, wanted)) return
      throw new UnexpectedDecision(
        `${kind}: ${cellName(state._tag, message._tag)} decides\n  ${lineOfParts(parts)}\n` +
          `and not\n  ${lineOfParts(wanted)}`
      )
    }
    // It reads as "given, when, then", and nobody awaits it.
    // oxlint-disable-next-line unicorn/no-thenable
    return { decision, parts, then: assert }
  }
  return {
    given: (state = behavior.initial, context = {}) => ({
      when: (message) => when(state, context, message),
      tick: ({ dueMs, missed = 0 } = {}) => {
        const nowMs = context.nowMs ?? dueMs ?? epochMs
        const tick = { dueMs: dueMs ?? nowMs, missed }
        return when(state, { ...context, nowMs }, behavior.timerMessage, tick)
      }
    }),
    coverage: () => coverage.report()
  }
}
