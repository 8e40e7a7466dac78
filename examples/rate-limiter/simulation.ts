/** What the rate limiter must hold on a cluster with faults. */
import { request, type SimulateOptions, type SimulationView,
  withMessage } from "@restante/runtime/testing"
import { rateLimiter } from "./index.ts"

const rate = { limit: 3, windowMs: 10_000 }
const limiter = rateLimiter(rate)
const keys = ["ann", "ben"]

/** When the permits that clients have received for a key were given, ascending. */
const permitsOf = ({ attempts }: SimulationView, key: string): ReadonlyArray<number> =>
  withMessage(attempts, limiter, "Take")
    .flatMap(({ reply, to }) => to.id === key && reply?.isGiven === true ? [reply.atMs] : [])
    .sort((one, other) => one - other)

/** Clients that take permits as fast as they can. A lost answer may cost them a permit. */
export const limiterSimulation = {
  behaviors: [limiter],
  clients: (draw) => request(limiter(draw.pick(keys)), { _tag: "Take" }, { attempts: 2 }),
  requestsPerMinute: 120,
  model: "table",
  invariants: [{
    name: "no window has more permits than the limit",
    atRest: (view) =>
      keys.map((key) => {
        const permits = permitsOf(view, key)
        const at = permits.findIndex((ms, index) =>
          (permits[index + rate.limit] ?? Infinity) < ms + rate.windowMs
        )
        return at < 0 ? undefined : `${key} has ${permits.slice(at, at + rate.limit + 1)}`
      }).find((wrong) => wrong !== undefined)
  }]
} satisfies SimulateOptions
