/** Runs seeds of a simulation, and reports the first that fails. */
import { keyOf } from "../../actor/index.ts"
import { failureReport, type ReportOptions } from "../report/index.ts"
import { type CellCount, coverageOf, type CoverageReport } from "../table/index.ts"
import type { SimulateOptions } from "./options.ts"
import { defaults, planOf, type SimulationPlan } from "./plan.ts"
import { runPlan, type SimulationRun } from "./run.ts"

/** A seed has failed. The message is its report: what is wrong, the shrunk plan, and all events. */
export class SimulationFailed extends Error {
  override readonly name = "SimulationFailed"
  readonly seed: number
  /** What does not hold, as the unshrunk plan has shown it. */
  readonly violations: ReadonlyArray<string>

  constructor(seed: number, violations: ReadonlyArray<string>, report: string) {
    super(`${report}\n\nto repeat it: simulate({ ..., seeds: [${seed}] })`)
    this.seed = seed
    this.violations = violations
  }
}

/** What well seeds have done. */
export interface SimulationSummary {
  readonly seeds: number
  /** Attempts of clients, and how many of them were answered. */
  readonly requests: number
  readonly answered: number
  /** Injected faults by kind. */
  readonly faults: Readonly<Record<string, number>>
  readonly simulatedMs: number
  /** Of each kind, in all seeds: which cells were decided. */
  readonly coverage: ReadonlyArray<CoverageReport>
}

const added = (one: CoverageReport | undefined, other: CoverageReport): CoverageReport => {
  if (one === undefined) return other
  const cells = other.cells.map((cell, at): CellCount => ({
    ...cell,
    count: cell.count + (one.cells[at]?.count ?? 0)
  }))
  return coverageOf(one.kind, cells)
}

const seedsOf = (seeds: number | ReadonlyArray<number>): ReadonlyArray<number> =>
  typeof seeds === "number" ? Array.from({ length: seeds }, (_, at) => at + 1) : seeds

/** A plan for people: a reference to an actor would be its whole definition. */
const shownOf = (plan: SimulationPlan) => ({
  ...plan,
  operations: plan.operations.map(({ request: { message, to, ...others }, ...operation }) => ({
    ...operation,
    request: {
      to: keyOf(to),
      message: typeof message === "function" ? "made of the replies" : message,
      ...others
    }
  }))
})

/** Adds up the runs of seeds. */
class Totals {
  private seeds = 0
  private requests = 0
  private answered = 0
  private simulatedMs = 0
  private readonly faults: Record<string, number> = {}
  private readonly coverage = new Map<string, CoverageReport>()

  add({ attempts, coverage, faults, simulatedMs }: SimulationRun): void {
    this.seeds++
    this.requests += attempts.length
    this.answered += attempts.filter(({ outcome }) => outcome === "ok").length
    this.simulatedMs += simulatedMs
    for (const [what, count] of faults) this.faults[what] = (this.faults[what] ?? 0) + count
    for (const one of coverage) {
      this.coverage.set(one.kind, added(this.coverage.get(one.kind), one))
    }
  }

  get summary(): SimulationSummary {
    const { answered, coverage, faults, requests, seeds, simulatedMs } = this
    return { seeds, requests, answered, faults, simulatedMs, coverage: [...coverage.values()] }
  }
}

/**
 * Runs the user's actors on a simulated cluster, seed by seed. Nodes are killed, paused, cut off
 * and restarted; messages are lost, late and doubled; commits fail or have an unknown outcome;
 * clocks jump. The same seed always runs the same way. Rejects with a {@link SimulationFailed} for
 * the first seed whose answers are not linearizable, or that violates an invariant. Only one
 * simulation runs in a process at a time, since it replaces the global clocks, timers and random
 * numbers; another one rejects with an Error.
 */
export const simulate = async <Services = undefined>(
  options: SimulateOptions<Services>
): Promise<SimulationSummary> => {
  const totals = new Totals()
  for (const seed of seedsOf(options.seeds ?? defaults.seeds)) {
    const plan = planOf(seed, options)
    const result = await runPlan(plan, options, false)
    if (result.violations.length > 0) {
      const reporting: ReportOptions<SimulationPlan> = {
        run: (plan, keepsTrace) => runPlan(plan, options, keepsTrace),
        shownOf
      }
      const report = await failureReport(plan, result, reporting)
      throw new SimulationFailed(seed, result.violations, report)
    }
    totals.add(result)
  }
  return totals.summary
}
