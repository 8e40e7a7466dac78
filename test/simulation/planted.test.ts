/** Tests the simulation: it finds planted bugs and shrinks their plans. */
import { describe, expect, it } from "vitest"
import { planted } from "./planted.ts"
import { type Plan, planOf } from "./plan.ts"
import { minutesDefault, reportOf, smallest } from "./report.ts"
import { type Result, simulate } from "./run.ts"

const SEEDS_MAX = 500
const TIMEOUT_MS = 600_000

/** The first seed that fails with the bug. */
const foundWith = async (
  name: string
): Promise<{ readonly plan: Plan; readonly result: Result }> => {
  const seams = planted[name] ?? {}
  for (let seed = 1; seed <= SEEDS_MAX; seed++) {
    const plan = planOf(seed, { minutes: minutesDefault })
    const result = await simulate(plan, { seams })
    if (result.violations.length > 0) return { plan, result }
  }
  return expect.fail(`${name} was not found within ${SEEDS_MAX} seeds`)
}

describe("the simulation finds", () => {
  it.each(Object.keys(planted))("%s", async (name) => {
    const { plan } = await foundWith(name)
    // The violation is the one of the planted bug.
    expect((await simulate(plan)).violations).toEqual([])
  }, TIMEOUT_MS)

  it("a bug, and reports the shrunk plan with all events", async () => {
    const seams = planted["reply-before-commit"] ?? {}
    const { plan, result } = await foundWith("reply-before-commit")
    const least = await smallest(plan, result, seams)
    expect(least.operations.length).toBeLessThan(plan.operations.length)
    expect((await simulate(least, { seams })).violations).not.toEqual([])
    const report = await reportOf(least, result, seams)
    expect(report).toContain(`seed ${plan.seed} fails`)
    expect(report).toContain("VIOLATION")
    expect(report).toContain("is quiet")
  }, TIMEOUT_MS)
})
