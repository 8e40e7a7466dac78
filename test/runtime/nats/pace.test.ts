import { describe, expect, it } from "vitest"
import { type WriteMode, WriteModeChoice } from "../../../runtime/nats/storage/commit-batcher.ts"

/** How many of so many commits went plainly, when they take so long. */
const plainly = (
  pace: WriteModeChoice,
  commits: number,
  costMs: Readonly<Record<WriteMode, number>>
): number => {
  let plain = 0
  for (let at = 0; at < commits; at++) {
    const { manner } = pace
    if (manner === "plain") plain++
    pace.took(manner, costMs[manner])
  }
  return plain
}

describe("the pace", () => {
  it.each([[1, 5, 0.85, 1], [5, 1, 0, 0.15]])(
    "of %i ms plain and %i ms grouped keeps to the quicker, and follows a change",
    (plain, grouped, least, most) => {
      const pace = new WriteModeChoice()
      plainly(pace, 10_000, { plain: 3, grouped: 1 })
      plainly(pace, 300_000, { plain, grouped })
      const share = plainly(pace, 100_000, { plain, grouped }) / 100_000
      expect(share).toBeGreaterThanOrEqual(least)
      expect(share).toBeLessThanOrEqual(most)
    }
  )
})
