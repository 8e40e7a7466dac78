/** Plays many seeds; each file of seeds is one worker's. */
import { expect, it } from "vitest"
import { play } from "./report.ts"

/** Seeds of one test, and how long they may take on a machine that does much else, ms. */
const PART = 125
const TIMEOUT_MS = 300_000

/** Tests that play `count` seeds from `first` on. */
export const playSeeds = (first: number, count: number): void => {
  for (let from = first; from < first + count; from += PART) {
    const to = Math.min(from + PART, first + count) - 1
    it(`plays the seeds ${from} to ${to}`, async () => {
      for (let seed = from; seed <= to; seed++) {
        const { report, result } = await play(seed)
        expect(report, `npm run simulate -- --seed ${seed}`).toBeUndefined()
        expect(result.operations).toBeGreaterThan(0)
      }
    }, TIMEOUT_MS)
  }
}
