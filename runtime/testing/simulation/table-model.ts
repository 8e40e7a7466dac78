/**
 * The table of an actor as the model of its answers. What the actor decided without a client, by
 * its timers, signals and effects, may have happened at any time after it was decided, or never:
 * the commit of a decision can fail.
 */
import { type Address, type AnyBehavior, type Decision, type DecisionContext, keyOf,
  type Tagged } from "../../actor/index.ts"
import { isDeepStrictEqual } from "node:util"
import type { HistoryOperation, Model } from "../history/index.ts"
import type { DecidedContext, RecordedDecision } from "./recorded-decisions.ts"

/** An input of a model: a message, and the contexts with which the actor has decided it. */
export interface ModelInput {
  readonly kind: string
  readonly message: Tagged
  /** Empty: no actor has decided it. */
  readonly contexts: ReadonlyArray<DecidedContext>
}

/** A reply that a client has received. */
export interface ModelOutput {
  readonly reply: unknown
}

export type ActorOperation = HistoryOperation<ModelInput, ModelOutput>

/** The state of an actor, with what its context has of its log. */
interface TableState {
  readonly state: Tagged
  readonly head: number
  /** The keys of the last items, by number. */
  readonly keys: ReadonlyArray<readonly [n: number, key: string | undefined]>
}

/** A value as a client receives it, for a reply may travel as JSON. */
const asJson = (value: unknown): unknown =>
  value === undefined ? undefined : JSON.parse(JSON.stringify(value) ?? "null")

/** The states after a decision: what is only in memory may be lost. */
const statesAfter = (
  behavior: AnyBehavior,
  before: TableState,
  decision: Decision<unknown, unknown, unknown>
): ReadonlyArray<TableState> => {
  const { durable, itemKeys = [], items = [], nextState, removals = [], removesActor } = decision
  if (removesActor) return [{ state: behavior.initial, head: 0, keys: [] }]
  const { recall } = behavior
  const head = before.head + items.length
  const keys = [
    ...before.keys.filter(([n]) => !removals.includes(n)),
    ...items.map((value, at) =>
      [before.head + 1 + at, itemKeys[at] ?? recall?.keyOf(value)] as const
    )
  ].filter(([n, key]) => key !== undefined && n > head - (recall?.items ?? 0))
  const after = { head, keys }
  if (nextState === undefined) return [{ ...before, ...after }]
  // The next state has a tag, as each state of a behavior.
  const next = { state: nextState as Tagged, ...after }
  return durable ? [next] : [next, { ...before, ...after }]
}

/** The table of a behavior as a model of the actor with this address. */
export const tableModel = (
  behavior: AnyBehavior,
  self: Address
): Model<TableState, ModelInput, ModelOutput> => {
  const decide = (before: TableState, message: Tagged, context: DecidedContext) => {
    const { head, keys, state } = before
    const whole: DecisionContext = {
      ...context,
      self,
      head,
      findDuplicate: (key) => keys.findLast(([, other]) => other === key)?.[0]
    }
    try {
      // The cells have lost their types.
      return behavior.table[state._tag]?.[message._tag]?.(state, message, whole) as
        | Decision<unknown, unknown, unknown>
        | undefined
    } catch {
      // A cell that throws changes nothing.
      return undefined
    }
  }
  return {
    initial: { state: behavior.initial, head: 0, keys: [] },
    keyOf: (state) => JSON.stringify(state),
    step: (before, { contexts, message }, output) =>
      contexts.flatMap((context) => {
        const decision = decide(before, message, context)
        if (decision === undefined) return []
        const isPossible = output === undefined ||
          isDeepStrictEqual(asJson(decision.answer), asJson(output.reply))
        return isPossible ? statesAfter(behavior, before, decision) : []
      })
  }
}

/** A message as its actor decodes it, as text: equal for equal messages. */
const textOf = (behavior: AnyBehavior, message: Tagged): string => {
  try {
    return JSON.stringify(behavior.decodeMessage(asJson(message)))
  } catch {
    // A message of the actor itself need not be one of those from outside.
    return JSON.stringify(message) ?? ""
  }
}

/** The history of one actor for its table: what clients asked, and what it decided by itself. */
export const tableHistory = (
  behavior: AnyBehavior,
  self: Address,
  asked: ReadonlyArray<ActorOperation>,
  decisions: ReadonlyArray<RecordedDecision>
): ReadonlyArray<ActorOperation> => {
  const byText = new Map<string, Array<RecordedDecision>>()
  for (const decision of decisions) {
    const text = textOf(behavior, decision.message)
    byText.set(text, [...byText.get(text) ?? [], decision])
  }
  const texts = new Set(asked.map(({ input }) => textOf(behavior, input.message)))
  const own = [...byText].flatMap(([text, some]) =>
    some.filter(({ changes, isTimer }) => changes && (isTimer || !texts.has(text)))
  )
  return [
    ...asked.flatMap((operation) => {
      const { end, input, outcome, start } = operation
      const some = byText.get(textOf(behavior, input.message)) ?? []
      const isUnknown = outcome === "info"
      // What was never decided, or changed nothing, cannot have had an effect.
      const contexts = some.filter(({ at, changes, isTimer }) =>
        !isTimer && at > start && (isUnknown ? changes : at < end)
      ).map(({ context }) => context)
      return isUnknown && contexts.length === 0
        ? []
        : [{ ...operation, input: { ...input, contexts } }]
    }),
    ...own.map(({ at, context, message }): ActorOperation => ({
      client: "the actor itself",
      resource: keyOf(self),
      input: { kind: message._tag, message, contexts: [context] },
      start: at,
      end: Infinity,
      outcome: "info"
    }))
  ]
}
