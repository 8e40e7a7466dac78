/** Actors for tests of the inspector: one with log, timer and effect, and one that breaks. */
import { become, defineActor, refuse, Schema, stay } from "../../../runtime/main.ts"

/** Time of the timer, ms since the epoch: it never comes during a test. */
export const closesAtMs = Date.UTC(2255, 0, 1)

/** An auction: each bid is an item of its log, and it closes by its timer. */
export const auction = defineActor("auction", {
  state: { Open: { best: Schema.Int, by: Schema.String }, Closed: {} },
  messages: {
    Bid: { amount: Schema.Int, by: Schema.String },
    Close: {},
    CloseAt: { atMs: Schema.Int },
    Remove: {},
    Due: {}
  },
  log: Schema.Struct({ by: Schema.String, amount: Schema.Int }),
  timer: "Due",
  initial: { _tag: "Open", best: 0, by: "" },
  table: {
    Open: {
      Bid: ({ best }, { amount, by }) =>
        amount > best
          ? become({ _tag: "Open", best: amount, by }).append({ by, amount })
            .setTimer(closesAtMs).reply(amount)
          : refuse("TooLow", `the best bid is ${best}`),
      Close: () => become({ _tag: "Closed" }).setTimer(null),
      CloseAt: (_, { atMs }) => stay().setTimer(atMs),
      Remove: () => stay().removeActor(),
      Due: () => become({ _tag: "Closed" })
    },
    Closed: {
      Bid: () => refuse("IsClosed"),
      Close: () => stay(),
      CloseAt: () => stay(),
      Remove: () => stay().removeActor(),
      Due: () => stay()
    }
  }
})

/** Its cell throws. */
export const fragile = defineActor("fragile", {
  state: { Whole: {} },
  messages: { Touch: {} },
  initial: { _tag: "Whole" },
  table: {
    Whole: {
      Touch: () => {
        throw new Error("it broke")
      }
    }
  }
})
