/** A trip: a flight and a hotel, or neither. */
import { become, defineActor, Schema, stay } from "../../../../runtime/main.ts"

type Part = "flight" | "hotel"

/** Repeats of a call have the same key, and the same answer. */
export interface Agency {
  /** Whether there was one left. */
  readonly reserve: (part: Part, key: string) => Promise<boolean>
  readonly cancel: (part: Part, key: string) => Promise<void>
}

const retryAfterMs = 10_000

const reserve = (part: Part) =>
  become({ _tag: "Reserving", part }).attempt({ _tag: "Reserve", part }, retryAfterMs)

const cancelFlight = () =>
  become({ _tag: "Cancelling" }).attempt({ _tag: "Cancel", part: "flight" }, retryAfterMs)

const end = (outcome: "booked" | "failed") => become({ _tag: "Ended", outcome }).setTimer(null)

/** Answers to attempts of a state that the trip has left. */
const late = { Retry: () => stay(), Reserved: () => stay(), Cancelled: () => stay() }

const part = Schema.Literals(["flight", "hotel"])

export const trip = (agency: Agency) =>
  defineActor("trip", {
    state: {
      New: {},
      Reserving: { part },
      Cancelling: {},
      Ended: { outcome: Schema.Literals(["booked", "failed"]) }
    },
    messages: {
      Book: {},
      Look: {},
      Retry: {},
      Reserved: { part, isFree: Schema.Boolean },
      Cancelled: {}
    },
    actions: { Reserve: { part }, Cancel: { part } },
    internal: ["Reserved", "Cancelled"],
    timer: "Retry",
    initial: { _tag: "New" },
    table: {
      New: {
        ...late,
        Book: () => reserve("flight").reply("begun"),
        Look: () => stay().reply("new")
      },
      Reserving: {
        ...late,
        Book: () => stay().reply("begun"),
        Look: () => stay().reply("reserving"),
        Retry: (state) => reserve(state.part),
        Reserved: (state, { isFree, part }) => {
          if (part !== state.part) return stay()
          if (part === "flight") return isFree ? reserve("hotel") : end("failed")
          return isFree ? end("booked") : cancelFlight()
        }
      },
      Cancelling: {
        ...late,
        Book: () => stay().reply("begun"),
        Look: () => stay().reply("cancelling"),
        Retry: () => cancelFlight(),
        Cancelled: () => end("failed")
      },
      Ended: {
        ...late,
        Book: () => stay().reply("begun"),
        Look: ({ outcome }) => stay().reply(outcome)
      }
    },
    perform: {
      Reserve: async ({ part }, { self }) => ({
        _tag: "Reserved",
        part,
        isFree: await agency.reserve(part, self.id)
      }),
      Cancel: async ({ part }, { self }) => {
        await agency.cancel(part, self.id)
        return { _tag: "Cancelled" }
      }
    }
  })
