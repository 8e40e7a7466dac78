/** The report of a failing run: its shrunk plan and all events. */
import { type ShrinkablePlan, shrunk } from "./shrink.ts"

/** The result of one run. */
export interface RunResult {
  /** The violated invariants; empty: the run is well. */
  readonly violations: ReadonlyArray<string>
  /** Digest of all events: equal for equal runs. */
  readonly hash: string
  /** All events, one a line; empty unless the trace was kept. */
  readonly trace: ReadonlyArray<string>
  /** Number of recorded operations of clients. */
  readonly operations: number
  /** Numbers of injected faults by kind. */
  readonly faults: ReadonlyMap<string, number>
  readonly simulatedMs: number
  /** Number of executed events. */
  readonly steps: number
}

/** Runs a plan; the same plan has the same result. */
export type RunPlan<Plan> = (plan: Plan, keepsTrace: boolean) => Promise<RunResult>

/** How a failing plan is shrunk and reported. */
export interface ReportOptions<Plan> {
  readonly run: RunPlan<Plan>
  /** Another plan to try first in each round of shrinking; undefined where there is none. */
  readonly simplify?: (plan: Plan) => Plan | undefined
  /** What the report shows of a plan, as JSON; by default the plan. */
  readonly shownOf?: (plan: Plan) => unknown
}

/** Characters of a violation by which its kind is known. */
const kindCharacters = 40

/** The kind of a violation; shrinking preserves it. */
const kindOf = ({ violations: [first = ""] }: RunResult): string =>
  first.replace(/[\w.]+[-=#/]\S*|\d+/g, "*").slice(0, kindCharacters)

/** The smallest plan found that fails in the same way. */
export const smallestPlan = <Plan extends ShrinkablePlan>(
  plan: Plan,
  result: RunResult,
  { run, simplify }: ReportOptions<Plan>
): Promise<Plan> => {
  const kind = kindOf(result)
  const fails = async (smaller: Plan): Promise<boolean> => {
    const other = await run(smaller, false)
    return other.violations.length > 0 && kindOf(other) === kind
  }
  return shrunk(plan, { fails, simplify })
}

/** The report of a plan that fails. */
export const failureReport = async <Plan extends ShrinkablePlan & { readonly seed: number }>(
  plan: Plan,
  result: RunResult,
  options: ReportOptions<Plan>
): Promise<string> => {
  const { shownOf = (shown: Plan): unknown => shown } = options
  const least = await smallestPlan(plan, result, options)
  const { hash, trace, violations } = await options.run(least, true)
  return [
    `seed ${plan.seed} fails (${result.hash}):`,
    ...result.violations,
    "",
    `as small as it was made (${hash}):`,
    JSON.stringify(shownOf(least), undefined, 1),
    "",
    ...violations,
    "",
    "what happened:",
    ...trace
  ].join("\n")
}
