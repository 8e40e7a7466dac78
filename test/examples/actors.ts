/** The examples on nodes of a cluster. What their effects call is a server outside of the nodes. */
import { chatRoom } from "../../examples/chat-room/index.ts"
import { cron } from "../../examples/cron/index.ts"
import { deviceTwin } from "../../examples/device-twin/index.ts"
import { leaderboard } from "../../examples/leaderboard/index.ts"
import { rateLimiter } from "../../examples/rate-limiter/index.ts"
import { type OrderCall, shoppingCart, type Step } from "../../examples/shopping-cart/index.ts"

/** Longer than a node may be without an answer; a crash is to happen within one window. */
export const rate = { limit: 3, windowMs: 600_000 }

export const limiter = rateLimiter(rate)

/** The examples whose effects call this server by `POST`. */
export const exampleActors = (outside: string) => {
  const post = async (path: string, body: string): Promise<string> => {
    const answer = await fetch(`${outside}/${path}`, { method: "POST", body })
    if (!answer.ok) throw new Error(`${path} answered ${answer.status}`)
    return answer.text()
  }
  const step = (name: Step) => async (call: OrderCall): Promise<boolean> =>
    await post(name, JSON.stringify(call)) === "true"
  const carts = shoppingCart({
    reserve: step("reserve"),
    charge: step("charge"),
    ship: step("ship"),
    refund: step("refund"),
    release: step("release")
  })
  const jobs = cron(async (job, dueMs) => void await post("run", `${job} ${dueMs}`))
  return { carts, jobs, all: [limiter, carts, chatRoom, jobs, deviceTwin, leaderboard] }
}
