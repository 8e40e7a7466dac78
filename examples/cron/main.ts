/** Says the time each second, three times. */
import { memory, startNode } from "@restante/runtime"
import { cron } from "./index.ts"

const jobs = cron(async (job, dueMs) => console.log(job, new Date(dueMs).toISOString()))
const node = await startNode({ actors: [jobs], store: memory() })
const clock = jobs("clock")
await node.ask(clock, { _tag: "Start", everyMs: 1_000, missed: "skip" })
for await (const { item, n } of node.log(clock)) {
  console.log(`tick ${n}, ${item.left} left out`)
  if (n === 3) break
}
await node.ask(clock, { _tag: "Stop" })
await node.stop()
