/** Runs many seeds; each test file of seeds runs in its own worker. */
import { expect, it } from "vitest"
import { note } from "../results.ts"
import type { StoreKind } from "./plan.ts"
import { play } from "./report.ts"

/** Seeds of one test, whose time is for hangs: one seed takes over 2 s on a busy machine. */
const PART = 25

/** Tests that run `count` seeds from `first` on. */
export const playSeeds = (
  first: number,
  count: number,
  store: StoreKind = "contract"
): void => {
  for (let from = first; from < first + count; from += PART) {
    const to = Math.min(from + PART, first + count) - 1
    it(`runs the seeds ${from} to ${to} (${store})`, async () => {
      let faults = 0
      let operations = 0
      for (let seed = from; seed <= to; seed++) {
        const { report, result } = await play(seed, { store })
        expect(report, `npm run simulate -- --store ${store} --seed ${seed}`).toBeUndefined()
        expect(result.operations).toBeGreaterThan(0)
        operations += result.operations
        faults += [...result.faults.values()].reduce((sum, count) => sum + count, 0)
      }
      const name = `whole clusters in simulation${store === "contract" ? "" : " of JetStream"}`
      note({ name, runs: to - from + 1, faults, operations })
    })
  }
}
