import { become, type Behavior, type BehaviorTable, refuse, stay } from "../../../runtime/index.ts"
import { Effect } from "effect"

const tokensMax = 3
const refillMs = 1_000

interface State {
  readonly _tag: "Bucket"
  readonly tokens: number
  /** When the next token comes, ms since the epoch. */
  readonly refillAtMs: number
}

type Message = { readonly _tag: "Take" } | { readonly _tag: "Refill" }

/** A token each `refillMs`, `tokensMax` at most. A full bucket need not be kept: it vanishes. */
const table: BehaviorTable<State, Message, number> = {
  Bucket: {
    Take: ({ refillAtMs, tokens }, _, { nowMs }) => {
      if (tokens === 0) return refuse("TooMany", `a token comes in ${refillAtMs - nowMs} ms`)
      const atMs = tokens === tokensMax ? nowMs + refillMs : refillAtMs
      return become<State>({ _tag: "Bucket", tokens: tokens - 1, refillAtMs: atMs })
        .setTimer(atMs)
        .reply(tokens - 1)
    },
    Refill: (state, _, { nowMs }) => {
      // A timer may come early or once too often: the state knows better.
      if (nowMs < state.refillAtMs) return stay<State>().setTimer(state.refillAtMs)
      const tokens = state.tokens + 1
      if (tokens >= tokensMax) return stay<State>().removeActor()
      const atMs = state.refillAtMs + refillMs
      return become<State>({ _tag: "Bucket", tokens, refillAtMs: atMs }).setTimer(atMs)
    }
  }
}

export const limiter: Behavior<State, Message, number, never> = {
  kind: "limiter",
  initial: { _tag: "Bucket", tokens: tokensMax, refillAtMs: 0 },
  table,
  encode: (state) => JSON.stringify(state),
  decode: (text) => JSON.parse(text) as State, // written by encode
  decodeMessage: (input) => input as Message, // a real one checks it, with Schema
  timerMessage: { _tag: "Refill" },
  perform: () => Effect.void
}
