/** Memory of a node with 100,000 mailboxes, all of them idle. */
import { atMost, type Line } from "../line.ts"
import { authorization, openMailbox } from "../mailboxes.ts"
import { wrk } from "../wrk.ts"

const mailboxes = 100_000
const connections = 50
const openWithinSeconds = 120
/** Longer than the idle timeout of actors, which is 5 s here. */
const settleMs = 20_000

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

export const idle: Line = {
  name: "idle",
  run: async (bench) => {
    const folder = bench.folder("idle")
    const env = { IDLE_TIMEOUT: "5s" }
    const node = await bench.serve(folder, { env })
    await openMailbox(node, "first")
    await pause(settleMs)
    const empty = node.memory()
    const { counted } = await wrk({
      origin: node.origin,
      script: "open",
      args: [authorization(node.token), "idle", String(mailboxes)],
      connections,
      seconds: openWithinSeconds
    })
    if (counted < mailboxes) throw new Error(`only ${counted} mailboxes could be opened`)
    const peak = node.memory().peak
    await pause(settleMs)
    const full = node.memory()
    await node.stop()
    const again = await bench.serve(folder, { env, token: node.token })
    await pause(settleMs)
    const restarted = again.memory()
    await again.stop()
    const detail = (memory: typeof full): string =>
      `${empty.resident.toFixed(0)} MB empty, ${memory.resident.toFixed(0)} MB with them`
    return [
      atMost(
        `memory for ${counted.toLocaleString("en")} known idle mailboxes, after opening them`,
        full.resident - empty.resident,
        60,
        "MB",
        `${detail(full)}; peak while opening ${peak.toFixed(0)} MB`
      ),
      atMost(
        "the same after a restart",
        restarted.resident - empty.resident,
        60,
        "MB",
        detail(restarted)
      )
    ]
  }
}
