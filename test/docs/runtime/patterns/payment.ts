/** A payment: charges a card once, whatever happens to the node meanwhile. */
import { become, defineActor, refuse, Schema, stay } from "../../../../runtime/main.ts"

/** Charges a card, and resolves with a receipt. A bank charges nothing for a key that it knows. */
export type Charge = (key: string, cents: number) => Promise<string>

const retryAfterMs = 30_000

export const payment = (charge: Charge) =>
  defineActor("payment", {
    state: {
      Open: {},
      Charging: { cents: Schema.Int },
      Paid: { cents: Schema.Int, receipt: Schema.String }
    },
    messages: {
      Pay: { cents: Schema.Int },
      Look: {},
      Retry: {},
      Charged: { receipt: Schema.String }
    },
    actions: { Charge: { cents: Schema.Int } },
    internal: ["Charged"],
    timer: "Retry",
    initial: { _tag: "Open" },
    table: {
      Open: {
        Pay: (_, { cents }) =>
          become({ _tag: "Charging", cents })
            .attempt({ _tag: "Charge", cents }, retryAfterMs)
            .reply("charging"),
        Look: () => stay().reply("open"),
        Retry: () => stay(),
        Charged: () => stay()
      },
      Charging: {
        // Its sender did not receive the first reply, and sends it again.
        Pay: (state, { cents }) =>
          cents === state.cents ? stay().reply("charging") : refuse("OtherAmount"),
        Look: () => stay().reply("charging"),
        // The node crashed, or the bank did not answer.
        Retry: ({ cents }) => stay().attempt({ _tag: "Charge", cents }, retryAfterMs),
        Charged: ({ cents }, { receipt }) => become({ _tag: "Paid", cents, receipt }).setTimer(null)
      },
      Paid: {
        Pay: (state, { cents }) =>
          cents === state.cents ? stay().reply("paid") : refuse("OtherAmount"),
        Look: () => stay().reply("paid"),
        Retry: () => stay(),
        Charged: () => stay()
      }
    },
    perform: {
      // The key is the same at each attempt.
      Charge: async ({ cents }, { self }) => ({
        _tag: "Charged",
        receipt: await charge(self.id, cents)
      })
    }
  })
