/** An actor whose messages request every part of a decision. */
import { Effect } from "effect"
import { type Address, address, append, become, type Behavior, type BehaviorTable, type Peers,
  refuse, stay } from "../../runtime/index.ts"

interface Idle {
  readonly _tag: "Idle"
  readonly count: number
  /** Work that was decided but not yet reported as done. */
  readonly todo: string | null
  readonly wokenMs: ReadonlyArray<number>
  /** The hints of the signals that fired; null: none. */
  readonly hints?: ReadonlyArray<number | null>
  /** Whether the commit of each signal that fired was durable. */
  readonly durableSignals?: ReadonlyArray<boolean>
}

interface Rigid {
  readonly _tag: "Rigid"
}

export type State = Idle | Rigid

export type Message =
  | { readonly _tag: "Add"; readonly by: number }
  | { readonly _tag: "Read" }
  | { readonly _tag: "Note"; readonly text: string }
  | { readonly _tag: "Trim"; readonly upTo: number }
  | { readonly _tag: "Refuse" }
  | { readonly _tag: "Break" }
  | { readonly _tag: "BreakRecord" }
  | { readonly _tag: "BreakEffect" }
  | { readonly _tag: "Vanish" }
  | { readonly _tag: "SetTimer"; readonly atMs: number }
  | { readonly _tag: "TimerFired" }
  | {
    readonly _tag: "Signal"
    readonly id: string
    readonly hint?: number
  }
  | { readonly _tag: "Work"; readonly name: string; readonly retryAtMs: number }
  | { readonly _tag: "Worked" }
  | { readonly _tag: "Stiffen" }

export type Action =
  | { readonly _tag: "Do"; readonly name: string }
  | { readonly _tag: "Fail" }

export interface Reply {
  readonly count: number
  readonly head: number
  readonly seen?: number | undefined
}

const initial: State = { _tag: "Idle", count: 0, todo: null, wokenMs: [] }

const table: BehaviorTable<State, Message, Reply, Action> = {
  Idle: {
    Add: (state, { by }, { head }) => {
      const count = state.count + by
      return become<State>({ ...state, count }).reply({ count, head })
    },
    Read: ({ count }, _, { head }) => stay<State>().reply({ count, head }),
    Note: ({ count }, { text }, { head, findDuplicate }) => {
      const seen = findDuplicate(text)
      return seen === undefined
        // Texts of one letter leave the key to the runtime.
        ? append<State>(text, text.length > 1 ? text : undefined).reply({ count, head: head + 1 })
        : stay<State>().reply({ count, head, seen })
    },
    Trim: (state, { upTo }, { head }) =>
      stay<State>().become(state)
        .removeItems(...Array.from({ length: upTo }, (_, at) => at + 1))
        .reply({ count: state.count, head }),
    Refuse: () => refuse("No", "as asked"),
    Break: () => {
      throw new Error("broken on request")
    },
    BreakRecord: (state) =>
      become<State>({ ...state, count: Number.NaN }).reply({ count: 0, head: 0 }),
    BreakEffect: ({ count }, _, { head }) =>
      stay<State>().reply({ count, head }).perform({ _tag: "Fail" } as const),
    Vanish: ({ count }, _, { head }) => stay<State>().removeActor().reply({ count, head }),
    SetTimer: (state, { atMs }, { head }) =>
      become<State>(state).setTimer(atMs).reply({ count: state.count, head }),
    TimerFired: (state, _, { hint = null, isSignal, isSignalDurable, nowMs }) => {
      const hints = [...state.hints ?? [], hint]
      const wokenMs = [...state.wokenMs, nowMs]
      const durable = state.durableSignals ?? []
      const durableSignals = isSignal ? [...durable, isSignalDurable] : durable
      const next = become<State>({ ...state, wokenMs, hints, durableSignals })
      return state.todo === null
        ? next
        : next.setTimer(nowMs + 1_000).perform({ _tag: "Do", name: state.todo } as const)
    },
    Signal: (state, { hint, id }, { head }) =>
      become<State>({ ...state, count: state.count + 1 }).signal(address("probe", id), hint)
        .reply({ count: state.count + 1, head }),
    Work: (state, { name, retryAtMs }, { head }) =>
      become<State>({ ...state, todo: name }).setTimer(retryAtMs)
        .perform({ _tag: "Do", name } as const)
        .reply({ count: state.count, head }),
    Worked: (state) => become<State>({ ...state, todo: null }).setTimer(null),
    Stiffen: (_, __, { head }) => become<State>({ _tag: "Rigid" }).reply({ count: 0, head })
  },
  Rigid: {
    Add: () => refuse("Rigid"),
    Read: (_, __, { head }) => stay<State>().reply({ count: -1, head }),
    Note: () => refuse("Rigid"),
    Trim: () => refuse("Rigid"),
    Refuse: () => refuse("Rigid"),
    Break: () => refuse("Rigid"),
    BreakRecord: () => refuse("Rigid"),
    BreakEffect: () => refuse("Rigid"),
    Vanish: (_, __, { head }) => stay<State>().removeActor().reply({ count: 0, head }),
    SetTimer: () => refuse("Rigid"),
    TimerFired: () => stay<State>(),
    Signal: () => refuse("Rigid"),
    Work: () => refuse("Rigid"),
    Worked: () => stay<State>(),
    Stiffen: () => refuse("Rigid")
  }
}

/** The probe's effects; a test may replace them. */
export type Work = (name: string, self: Address, peers: Peers) => Effect.Effect<Message | void>

const messageTags = new Set<string>(Object.keys(table.Idle))

export const probe = (
  work: Work = () => Effect.succeed({ _tag: "Worked" })
): Behavior<State, Message, Reply, Action> => ({
  kind: "probe",
  initial,
  table,
  encode: (state) => {
    if (state._tag === "Idle" && Number.isNaN(state.count)) throw new Error("no record of NaN")
    return JSON.stringify(state)
  },
  decode: (text) => {
    const state: unknown = JSON.parse(text)
    if (typeof state !== "object" || state === null || !("_tag" in state)) {
      throw new Error("no record of a probe")
    }
    return state as State // written by encode
  },
  decodeMessage: (input) => {
    const known = typeof input === "object" && input !== null && "_tag" in input &&
      typeof input._tag === "string" && messageTags.has(input._tag)
    if (!known) throw new Error("no message of a probe")
    return input as Message // the tests send well-formed ones
  },
  recall: { items: 3, keyOf: (value) => value, restore: (state) => state },
  timerMessage: { _tag: "TimerFired" },
  perform: (action, self, peers) =>
    action._tag === "Do" ? work(action.name, self, peers) : Effect.die(new Error("effect broken"))
})

export const at = (id: string): Address => address("probe", id)
