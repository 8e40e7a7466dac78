/** Complete sessions; each step is durable before the next one starts. */
import type { Line, Row } from "../line.ts"
import { wrk } from "../wrk.ts"

const clients = 32
const seconds = 8

export const sessions: Line = {
  name: "sessions",
  run: async (bench) => {
    const node = await bench.serve(bench.folder("sessions"))
    const walk = async (what: string, ...args: ReadonlyArray<string>): Promise<Row> => {
      const load = {
        origin: node.origin,
        script: "walk",
        args,
        connections: clients,
        threads: clients
      }
      await wrk({ ...load, seconds: 2 })
      const { counted, p99Ms, requests } = await wrk({ ...load, seconds })
      const rate = (counted / seconds).toFixed(0)
      return {
        what,
        measured: `${rate} a second (${(requests / seconds).toFixed(0)} requests a second, ` +
          `p99 ${p99Ms.toFixed(1)} ms, ${clients} at a time)`,
        target: "none",
        met: undefined
      }
    }
    const rows = [
      await walk("session walks B2, B4–B7"),
      await walk("session walks B2–B7, the first 100 sessions listed (B3) in each", "listing")
    ]
    await node.stop()
    return rows
  }
}
