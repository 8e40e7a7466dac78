/** Clusters under load, with random faults until each kind has occurred. */
import { afterAll, expect, it } from "vitest"
import { cleanUp } from "../e2e/process.ts"
import { closeReceivers } from "../e2e/receivers.ts"
import { faultsNamed } from "./fault.ts"
import { Random } from "./random.ts"
import { minutesMax, repeatRuns, seed } from "./run-options.ts"
import { RunStatistics } from "./run-statistics.ts"
import { runCluster, TestCluster } from "./test-cluster.ts"

/** The last run may start just before the end. */
const testMs = (minutesMax + 20) * 60_000

afterAll(() => {
  closeReceivers()
  cleanUp()
})

it(`never contradicts a response of any node, seed ${seed}`, async () => {
  const statistics = new RunStatistics("cluster-long", seed)
  const random = new Random(`${seed} cluster`)
  await repeatRuns(random, async (names, runSeed) => {
    const cluster = await TestCluster.start()
    const choices = faultsNamed(cluster.faults, names(Object.keys(cluster.faults)))
    await runCluster({ cluster, seed: runSeed, statistics, choices })
  })
  expect(statistics.faultCount).toBeGreaterThan(0)
}, testMs)
