/**
 * A node with its embedded store under load is killed, paused, or gets a wrong clock. The responses
 * to all clients never contradict each other. The long form chooses random faults.
 */
import { afterAll, expect, it } from "vitest"
import { cleanUp } from "../e2e/process.ts"
import { closeReceivers } from "../e2e/receivers.ts"
import { faultsNamed } from "./fault.ts"
import { seed } from "./run-options.ts"
import { RunStatistics } from "./run-statistics.ts"
import { runSingleNode, SingleNode } from "./single-node.ts"

const testMs = 400_000
const names = {
  rocksdb: ["killed", "killedAtFailpoint", "paused", "clockForward", "clockBack", "stopped"],
  leveldb: ["killedDuringStart", "killed"]
} as const

afterAll(() => {
  closeReceivers()
  cleanUp()
})

it.each(["rocksdb", "leveldb"] as const)(
  "contradicts nothing that it has ever answered, on %s",
  async (store) => {
    const statistics = new RunStatistics(`embedded-${store}`, seed)
    const node = await SingleNode.start(store)
    await runSingleNode({ node, seed, statistics, choices: faultsNamed(node.faults, names[store]) })
    expect(statistics.faultCount).toBe(names[store].length)
  },
  testMs
)
