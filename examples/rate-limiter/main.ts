/** Asks for five permits, of which a user has three. */
import { memory, startNode } from "@restante/runtime"
import { rateLimiter } from "./index.ts"

const limiter = rateLimiter({ limit: 3, windowMs: 10_000 })
const node = await startNode({ actors: [limiter], store: memory() })
for (let request = 1; request <= 5; request++) {
  const answer = await node.ask(limiter("ann"), { _tag: "Take" })
  console.log(request, answer.isGiven ? `permit, ${answer.left} left` : "too many requests")
}
await node.stop()
