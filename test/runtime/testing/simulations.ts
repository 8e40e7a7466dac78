/** Simulations of the small actors, for the short and the long form of the tests. */
import { address } from "../../../runtime/index.ts"
import { simulate, type SimulateOptions,
  type SimulationSummary } from "../../../runtime/testing/index.ts"
import { account, type Mails, type Reminder } from "./actors.ts"

export const accounts = ["ann", "ben"].map((id) => address("account", id))

/** Clients that pay in, withdraw and read; they repeat what has no answer. */
export const banking = {
  behaviors: [account],
  clients: (draw, { number }) => {
    const cents = 1 + draw.below(9)
    return {
      to: draw.pick(accounts),
      message: draw.pick([
        { _tag: "Deposit", cents, key: `key-${number}` },
        { _tag: "Withdraw", cents },
        { _tag: "Read" }
      ]),
      attempts: 3
    }
  },
  lastRequests: accounts.map((to) => ({ to, message: { _tag: "Read" }, attempts: 3 }))
} satisfies SimulateOptions

const reminders = ["one", "two", "three"].map((id) => address("reminder", id))

/** Clients that ask to be reminded; each accepted text must be sent. */
export const remind = (
  behaviors: SimulateOptions<Mails>["behaviors"],
  seeds: number
): Promise<SimulationSummary> =>
  simulate<Mails>({
    behaviors,
    services: () => ({ sent: [] }),
    clients: (draw, { number }) => ({
      to: draw.pick(reminders),
      message: { _tag: "Remind", text: `text-${number}`, inMs: draw.below(10_000) }
    }),
    requestsPerMinute: 30,
    model: "table",
    isAtRest: ({ stateOf }) => reminders.every((of) => stateOf<Reminder>(of)._tag === "Idle"),
    invariants: [{
      name: "each accepted text is sent",
      atRest: ({ attempts, services: { sent } }) =>
        attempts.map(({ message, reply }) =>
          reply === "later" && "text" in message ? String(message.text) : undefined
        ).find((text) => text !== undefined && !sent.includes(text))
    }],
    seeds
  })
