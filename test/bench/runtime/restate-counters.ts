/** Counters of Restate: virtual objects, asked over HTTP as their clients do. */
import { Agent } from "undici"
import type { Counters } from "./counters.ts"

/** A server that does not answer fails the bench. */
const answerWithinMs = 20_000

const isCount = (value: unknown): value is number => typeof value === "number"

/** `origin`: of the ingress of a Restate server. */
export const restateCounters = async (origin: string, inFlight: number): Promise<Counters> => {
  const agent = new Agent({
    connections: inFlight,
    pipelining: 1,
    headersTimeout: answerWithinMs
  })
  return {
    add: async (id) => {
      const { body, statusCode } = await agent.request({
        origin,
        path: `/counter/${id}/add`,
        method: "POST",
        headers: { "content-type": "application/json" },
        body: "1"
      })
      const text = await body.text()
      if (statusCode !== 200) throw new Error(`Restate answered ${statusCode}: ${text}`)
      const count: unknown = JSON.parse(text)
      if (!isCount(count)) throw new Error(`Restate answered ${text}`)
      return count
    },
    stop: () => agent.close()
  }
}
