/** Single nodes under load, with random faults until each kind has occurred. */
import { afterAll, expect, it } from "vitest"
import { cleanUp } from "../e2e/process.ts"
import { closeReceivers } from "../e2e/receivers.ts"
import { Alone, runAlone } from "./alone.ts"
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

it.each(["rocksdb", "leveldb"] as const)(
  `contradicts nothing that it has ever answered, on %s, seed ${seed}`,
  async (store) => {
    const tally = new Tally(`embedded-${store}-long`, seed)
    const random = new Random(`${seed} ${store}`)
    await forLong(random, async (names, runSeed) => {
      const alone = await Alone.start(store)
      const choices = chosen(alone.faults, names(Object.keys(alone.faults)))
      await runAlone({ alone, seed: runSeed, tally, choices })
    })
    expect(tally.struck).toBeGreaterThan(0)
  },
  testMs
)
