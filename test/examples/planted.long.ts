/** The simulation of each example finds a planted bug, and passes on the same seeds without it. */
import { describe, expect, it } from "vitest"
import { SimulationFailed } from "../../runtime/testing/index.ts"
import { plantedExamples } from "./planted-bugs.ts"

const seedsMax = 200
/** Answers in one seed: fewer would test little. */
const answeredMin = 15
const seeds = Array.from({ length: seedsMax }, (_, at) => at + 1)

/** 200 seeds of one example, on a busy machine. */
const timeoutMs = 3_600_000

describe.each(plantedExamples)("$name", ({ bug, found, name, plant, run }) => {
  it(`is found when it ${bug}`, { timeout: timeoutMs }, async () => {
    const failure: unknown = await run(seeds, plant).then(() => undefined, (error) => error)
    if (!(failure instanceof SimulationFailed)) {
      return expect.fail(`${seedsMax} seeds do not find it: ${String(failure)}`)
    }
    process.stdout.write(`${name}: found by seed ${failure.seed}\n`)
    expect(failure.violations.join("\n")).toMatch(found)
  })

  it(`passes on ${seedsMax} seeds as it is`, { timeout: timeoutMs }, async () => {
    const summary = await run(seeds)
    expect(summary.seeds).toBe(seedsMax)
    expect(summary.answered).toBeGreaterThan(answeredMin * seedsMax)
  })
})
