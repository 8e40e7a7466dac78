/** An actor with cells from the test. */
import { Effect, Result } from "effect"
import { type Address, address, type Behavior, type BehaviorTable, type Decision,
  type DecisionContext, type Peers, stay } from "../../runtime/index.ts"
import type { Rig } from "./rig.ts"

export interface State {
  readonly _tag: "Trying"
  readonly tries: number
  /** Volatile: never encoded. */
  readonly underWay?: string
}

type Message =
  | { readonly _tag: "Do"; readonly how: string }
  | { readonly _tag: "TimerFired" }

export type Cell = (state: State, context: DecisionContext) => Decision<State, unknown, Work>

interface Work {
  readonly _tag: "Work"
}

export const at = (id: string): Address => address("scripted", id)

/** The actor, and the times at which its timer fired. */
export const scriptedActor = (
  cells: Readonly<Record<string, Cell>>,
  work: (self: Address, peers: Peers) => Effect.Effect<void> = () => Effect.void
) => {
  const firedAtMs: Array<number> = []
  const table: BehaviorTable<State, Message, unknown, Work> = {
    Trying: {
      Do: (state, { how }, context) => cells[how]?.(state, context) ?? stay<State>(),
      TimerFired: (state, _, context) => {
        firedAtMs.push(context.nowMs)
        return cells["TimerFired"]?.(state, context) ?? stay<State>()
      }
    }
  }
  const behavior: Behavior<State, Message, unknown, Work> = {
    kind: "scripted",
    initial: { _tag: "Trying", tries: 0 },
    table,
    encode: ({ tries }) => String(tries),
    decode: (text) => ({ _tag: "Trying", tries: Number(text) }),
    decodeMessage: (input) => input as Message, // the tests send well-formed ones
    timerMessage: { _tag: "TimerFired" },
    perform: (_, self, peers) => work(self, peers)
  }
  return { behavior, firedAtMs }
}

/** A reply; a failure as its tag. */
export const doing = (rig: Rig, how: string, id = "a"): Promise<unknown> =>
  Effect.runPromise(
    Effect.map(
      Effect.result(rig.system.ask(at(id), { _tag: "Do", how })),
      (asked) => Result.isSuccess(asked) ? asked.success : asked.failure._tag
    )
  )
