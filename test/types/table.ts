/** What must not compile. `table.test.ts` compiles this file, with its expectations and without. */
import { append, become, type BehaviorTable, refuse, stay } from "../../runtime/index.ts"

type State = { readonly _tag: "Open"; readonly count: number } | { readonly _tag: "Closed" }

type Message = { readonly _tag: "Add"; readonly by: number } | { readonly _tag: "Close" }

type TheTable = BehaviorTable<State, Message, number, { readonly _tag: "Do" }>

export const whole: TheTable = {
  Open: {
    Add: ({ count }, { by }) => become<State>({ _tag: "Open", count: count + by }).reply(count),
    Close: () => become<State>({ _tag: "Closed" }).reply(0).perform({ _tag: "Do" } as const)
  },
  Closed: { Add: () => refuse("Closed"), Close: () => stay<State>().reply(0) }
}

export const withoutCell: TheTable = {
  // @ts-expect-error A deleted cell does not compile.
  Open: { Add: () => append<State>("x").reply(1) },
  Closed: { Add: () => refuse("Closed"), Close: () => stay<State>() }
}

// @ts-expect-error A deleted state does not compile.
export const withoutState: TheTable = {
  Open: { Add: () => stay<State>(), Close: () => stay<State>() }
}

export const strangers: TheTable = {
  Open: {
    // @ts-expect-error Nor does a reply of another type.
    Add: () => stay<State>().reply("text"),
    // @ts-expect-error Nor does a state of another actor.
    Close: () => become({ _tag: "Elsewhere" } as const)
  },
  Closed: {
    // @ts-expect-error Nor does an action that the behavior cannot perform.
    Add: () => stay<State>().perform({ _tag: "Undo" } as const),
    // @ts-expect-error Nor does reading what this state does not have.
    Close: ({ count }) => stay<State>().reply(count)
  }
}
