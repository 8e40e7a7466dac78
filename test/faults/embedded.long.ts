/** Single nodes under load, with random faults until each kind has occurred. */
import { afterAll, expect, it } from "vitest"
import { cleanUp } from "../e2e/process.ts"
import { closeReceivers } from "../e2e/receivers.ts"
import { faultsNamed } from "./fault.ts"
import { Random } from "./random.ts"
import { minutesMax, repeatRuns, seed } from "./run-options.ts"
import { RunStatistics } from "./run-statistics.ts"
import { runSingleNode, SingleNode } from "./single-node.ts"

/** The last run may start just before the end. */
const testMs = (minutesMax + 20) * 60_000

afterAll(() => {
  closeReceivers()
  cleanUp()
})

it.each(["rocksdb", "leveldb"] as const)(
  `contradicts nothing that it has ever answered, on %s, seed ${seed}`,
  async (store) => {
    const statistics = new RunStatistics(`embedded-${store}-long`, seed)
    const random = new Random(`${seed} ${store}`)
    await repeatRuns(random, async (names, runSeed) => {
      const node = await SingleNode.start(store)
      const choices = faultsNamed(node.faults, names(Object.keys(node.faults)))
      await runSingleNode({ node, seed: runSeed, statistics, choices })
    })
    expect(statistics.faultCount).toBeGreaterThan(0)
  },
  testMs
)
