/** The report of a failing run: its shrunk plan and all events. */
import { type Plan, planOf, type PlanOptions } from "./plan.ts"
import { type Result, simulate } from "./run.ts"
import { shrunk } from "./shrink.ts"
import type { WorldSeams } from "./world.ts"

/** The kind of a violation; shrinking preserves it. */
const kindOf = ({ violations: [first = ""] }: Result): string =>
  first.replace(/[\w.]+[-=#/]\S*|\d+/g, "*").slice(0, 40)

/** The smallest plan found that fails in the same way. */
export const smallest = async (plan: Plan, result: Result, seams: WorldSeams): Promise<Plan> => {
  const kind = kindOf(result)
  return shrunk(plan, async (smaller) => {
    const other = await simulate(smaller, { seams })
    return other.violations.length > 0 && kindOf(other) === kind
  })
}

/** The report of a plan that fails. */
export const reportOf = async (
  plan: Plan,
  result: Result,
  seams: WorldSeams
): Promise<string> => {
  const least = await smallest(plan, result, seams)
  const { hash, trace, violations } = await simulate(least, { seams, keepsTrace: true })
  return [
    `seed ${plan.seed} fails (${result.hash}):`,
    ...result.violations,
    "",
    `as small as it was made (${hash}):`,
    JSON.stringify(least, undefined, 1),
    "",
    ...violations,
    "",
    "what happened:",
    ...trace
  ].join("\n")
}

/** The default simulated time of each seed. */
export const minutesDefault = 0.5

export interface PlayOptions extends Partial<PlanOptions> {
  readonly seams?: WorldSeams
}

/** Runs a seed; returns the report if it fails. */
export const play = async (
  seed: number,
  { minutes = minutesDefault, seams = {}, store = "contract" }: PlayOptions = {}
): Promise<{ readonly result: Result; readonly report: string | undefined }> => {
  const plan = planOf(seed, { minutes, store })
  const result = await simulate(plan, { seams })
  const isWell = result.violations.length === 0
  return { result, report: isWell ? undefined : await reportOf(plan, result, seams) }
}
