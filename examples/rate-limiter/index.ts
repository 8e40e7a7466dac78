/** A rate limiter: in any window of time, a key has a bounded number of permits. */
import { become, defineActor, Schema, stay } from "@restante/runtime"

/** How many permits a key has in any window of `windowMs`. */
export interface PermitRate {
  /** At least 1. */
  readonly limit: number
  readonly windowMs: number
}

/** An idle limiter is kept for as long as the clocks of two nodes may differ, ms. */
const clockDifferenceMaxMs = 10 * 60_000

/**
 * Limiters with this rate: one actor for each key, such as a user or an address. `Take` replies
 * with a permit, or with the time until there is one.
 */
export const rateLimiter = ({ limit, windowMs }: PermitRate) => {
  if (limit < 1) throw new RangeError(`the limit is ${limit}: a limiter gives 1 permit or more`)
  const forgetAfterMs = windowMs + clockDifferenceMaxMs
  return defineActor("rate-limiter", {
    // When the permits of the last window were given, ms since the epoch, ascending.
    state: { Limiting: { givenMs: Schema.Array(Schema.Int) } },
    messages: { Take: {}, Forget: {} },
    timer: "Forget",
    initial: { _tag: "Limiting", givenMs: [] },
    table: {
      Limiting: {
        Take: ({ givenMs }, _, { nowMs }) => {
          // The clock of this node may be behind that of the last one: time does not go back here.
          const atMs = Math.max(nowMs, givenMs.at(-1) ?? 0)
          const inWindow = givenMs.filter((ms) => ms > atMs - windowMs)
          const [firstMs] = inWindow
          if (firstMs !== undefined && inWindow.length >= limit) {
            return stay().reply({ isGiven: false, retryAfterMs: firstMs + windowMs - atMs })
          }
          const given = become({ _tag: "Limiting", givenMs: [...inWindow, atMs] })
            .reply({ isGiven: true, atMs, left: limit - inWindow.length - 1 })
          // A limiter with a permit in its state has a timer already.
          return givenMs.length === 0 ? given.setTimer(atMs + forgetAfterMs) : given
        },
        Forget: ({ givenMs }, _, { nowMs }) => {
          const untilMs = (givenMs.at(-1) ?? 0) + forgetAfterMs
          return nowMs < untilMs ? stay().setTimer(untilMs) : stay().removeActor()
        }
      }
    }
  })
}
