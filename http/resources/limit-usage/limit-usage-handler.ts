/** The handler of `/limits`: rate limits as this node counts them, bytes as all nodes do. */
import { requireAdmin } from "../../auth/index.ts"
import { defineHandler, noStore, viewAnswer } from "../../pipeline/index.ts"
import { limitsView } from "./limit-usage-views.ts"

export const getLimits = defineHandler(function*(service, call) {
  yield* requireAdmin(service, call)
  const { rateLimiter, startId, usage } = service
  const nowMs = service.nowMs()
  const view = limitsView(service, {
    // The part after the dot differs from start to start.
    node: startId.slice(0, startId.indexOf(".")),
    rates: rateLimiter?.busiest() ?? [],
    nowMs,
    networks: yield* usage.largestNetworks(nowMs),
    accounts: yield* usage.largestAccounts
  })
  return viewAnswer(view, { headers: noStore })
})
