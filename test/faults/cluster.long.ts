/** Clusters under load, with random faults until each kind has occurred. */
import { afterAll, expect, it } from "vitest"
import { cleanUp } from "../e2e/process.ts"
import { closeReceivers } from "../e2e/receivers.ts"
import { Clustered, runCluster } from "./clustered.ts"
import { chosen } from "./fault.ts"
import { forLong, longMinutes, seed } from "./form.ts"
import { Random } from "./random.ts"
import { Tally } from "./tally.ts"

/** The last run may start just before the end. */
const testMs = (longMinutes + 20) * 60_000

afterAll(() => {
  closeReceivers()
  cleanUp()
})

it(`never contradicts a response of any node, seed ${seed}`, async () => {
  const tally = new Tally("cluster-long", seed)
  const random = new Random(`${seed} cluster`)
  await forLong(random, async (names, runSeed) => {
    const clustered = await Clustered.start()
    const choices = chosen(clustered.faults, names(Object.keys(clustered.faults)))
    await runCluster({ clustered, seed: runSeed, tally, choices })
  })
  expect(tally.struck).toBeGreaterThan(0)
}, testMs)
