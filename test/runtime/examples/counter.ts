import { become, type Behavior, type BehaviorTable, stay } from "../../../runtime/index.ts"
import { Effect } from "effect"

interface State {
  readonly _tag: "Counting"
  readonly count: number
}

type Message = { readonly _tag: "Add"; readonly by: number } | { readonly _tag: "Read" }

const table: BehaviorTable<State, Message, number> = {
  Counting: {
    Add: ({ count }, { by }) =>
      become<State>({ _tag: "Counting", count: count + by }).reply(count + by),
    Read: ({ count }) => stay<State>().reply(count)
  }
}

export const counter: Behavior<State, Message, number, never> = {
  kind: "counter",
  initial: { _tag: "Counting", count: 0 },
  table,
  encode: ({ count }) => String(count),
  decode: (text) => ({ _tag: "Counting", count: Number(text) }),
  decodeMessage: (input) => input as Message, // a real one checks it, with Schema
  timerMessage: { _tag: "Read" },
  perform: () => Effect.void
}
