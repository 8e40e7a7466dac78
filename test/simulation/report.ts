/** Plays seeds: runs the plan of each, and reports one that fails. */
import { failureReport, type ReportOptions, type RunResult,
  smallestPlan } from "../../runtime/testing/index.ts"
import { type Plan, planOf, type PlanOptions } from "./plan.ts"
import { simulate } from "./run.ts"
import type { WorldSeams } from "./world.ts"

const optionsOf = (seams: WorldSeams): ReportOptions<Plan> => ({
  run: (plan, keepsTrace) => simulate(plan, { seams, keepsTrace }),
  simplify: (plan) => plan.waiting > 0 ? { ...plan, waiting: 0 } : undefined
})

/** The smallest plan found that fails in the same way. */
export const smallest = (plan: Plan, result: RunResult, seams: WorldSeams): Promise<Plan> =>
  smallestPlan(plan, result, optionsOf(seams))

/** The report of a plan that fails. */
export const reportOf = (plan: Plan, result: RunResult, seams: WorldSeams): Promise<string> =>
  failureReport(plan, result, optionsOf(seams))

/** The default simulated time of each seed. */
export const minutesDefault = 0.5

export interface PlayOptions extends Partial<PlanOptions> {
  readonly seams?: WorldSeams
}

/** Runs a seed; returns the report if it fails. */
export const play = async (
  seed: number,
  { minutes = minutesDefault, seams = {}, store = "contract" }: PlayOptions = {}
): Promise<{ readonly result: RunResult; readonly report: string | undefined }> => {
  const plan = planOf(seed, { minutes, store })
  const result = await simulate(plan, { seams })
  const isWell = result.violations.length === 0
  return { result, report: isWell ? undefined : await reportOf(plan, result, seams) }
}
