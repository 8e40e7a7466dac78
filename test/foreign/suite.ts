/** What a suite from outside is: where it comes from, what it runs, and how its findings count. */
import type { Program } from "./program.ts"

/** A package of a registry, with its exact version. */
export interface Source {
  readonly registry: "npm" | "PyPI"
  readonly name: string
  readonly version: string
  /** Further packages that the suite needs beside it, as `name@version`. */
  readonly beside?: ReadonlyArray<string>
}

/** What the frame gives a suite: a service of its own, and its installed programs. */
export interface Bench {
  /** Of the started service, such as `http://localhost:4711`. */
  readonly origin: string
  /** The operator's token. */
  readonly token: string
  /** An empty folder for what the suite writes. */
  readonly folder: string
  /** The path of a program that the suite's packages install. */
  readonly pathOf: (program: string) => string
  /** Runs such a program, for example `schemathesis` or `python`. */
  readonly run: (program: string, args: ReadonlyArray<string>, limits: Limits) => Promise<Program>
}

/** How long a program of a suite may run. */
export interface Limits {
  readonly withinMs: number
}

/** One thing that a suite checked. */
export interface Finding {
  /** What was checked: short, and the same in each run, such as `GET /livez: content type`. */
  readonly check: string
  readonly isPassed: boolean
  /** Of a failure: what the suite reports. */
  readonly detail?: string
}

/** Why failures stay. */
export interface Reason {
  /** What fails, for the page. */
  readonly what: string
  /** What the `check` of the failures matches. */
  readonly check: RegExp
  /** What the `detail` of the failures matches: no more than the reason explains. */
  readonly detail: RegExp
  /** One or two sentences, for the page. */
  readonly why: string
}

/** A suite from outside. */
export interface ForeignSuite {
  readonly name: string
  /** What it checks, for the page. */
  readonly checks: string
  readonly source: Source
  /** Settings of the service that it runs against, beside those of the frame. */
  readonly settings?: Readonly<Record<string, string>>
  /** Fills the folder of the store before the service starts. */
  readonly prepare?: (dataFolder: string) => Promise<void>
  readonly reasons: ReadonlyArray<Reason>
  /**
   * It makes random requests for a limited time, so a run may not meet each reason. For any other
   * suite, a reason without a failure is a failure itself.
   */
  readonly isRandom?: boolean
  readonly run: (bench: Bench) => Promise<ReadonlyArray<Finding>>
}

/** The checks of a suite, counted; a check with several findings counts once. */
export interface Verdict {
  readonly passed: number
  /** Checks of which each failure has a listed reason. */
  readonly explained: number
  /** Checks with other failures, and reasons without a failure, as lines for people. */
  readonly failed: ReadonlyArray<string>
  /** Reasons without a failure in a random suite, as lines for people. */
  readonly unmet: ReadonlyArray<string>
}

const matches = (reason: Reason, { check, detail = "" }: Finding): boolean =>
  reason.check.test(check) && reason.detail.test(detail)

/** Counts findings; a suite that checked nothing has failed. */
export const judge = (
  findings: ReadonlyArray<Finding>,
  { reasons, isRandom = false }: Pick<ForeignSuite, "reasons" | "isRandom">
): Verdict => {
  const failures = findings.filter(({ isPassed }) => !isPassed)
  const unexplained = new Map<string, string>()
  for (const failure of failures) {
    const { check, detail = "" } = failure
    if (!unexplained.has(check) && !reasons.some((reason) => matches(reason, failure))) {
      unexplained.set(check, `${check}: ${detail}`)
    }
  }
  const unmet = reasons
    .filter((reason) => !failures.some((one) => matches(reason, one)))
    .map(({ what, why }) => `${what}: no failure has this reason: ${why}`)
  const checks = new Set(findings.map(({ check }) => check)).size
  const failing = new Set(failures.map(({ check }) => check)).size
  return {
    passed: checks - failing,
    explained: failing - unexplained.size,
    failed: [
      ...unexplained.values(),
      ...isRandom ? [] : unmet,
      ...checks === 0 ? ["the suite checked nothing"] : []
    ],
    unmet: isRandom ? unmet : []
  }
}
