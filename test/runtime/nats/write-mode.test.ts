import { describe, expect, it } from "vitest"
import { type WriteMode, WriteModeChoice } from "../../../runtime/nats/storage/commit-batcher.ts"

/** How many of the commits were written by themselves, at these costs. */
const plainly = (
  choice: WriteModeChoice,
  commits: number,
  costMs: Readonly<Record<WriteMode, number>>
): number => {
  let plain = 0
  for (let at = 0; at < commits; at++) {
    const { mode } = choice
    if (mode === "plain") plain++
    choice.record(mode, costMs[mode])
  }
  return plain
}

describe("the write mode", () => {
  it.each([[1, 5, 0.85, 1], [5, 1, 0, 0.15]])(
    "of %i ms plain and %i ms grouped keeps to the quicker, and follows a change",
    (plain, grouped, least, most) => {
      const choice = new WriteModeChoice()
      plainly(choice, 10_000, { plain: 3, grouped: 1 })
      plainly(choice, 300_000, { plain, grouped })
      const share = plainly(choice, 100_000, { plain, grouped }) / 100_000
      expect(share).toBeGreaterThanOrEqual(least)
      expect(share).toBeLessThanOrEqual(most)
    }
  )
})
