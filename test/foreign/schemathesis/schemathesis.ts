/** schemathesis: requests made from `/openapi.json`, good and bad, and checks of their answers. */
import { createReadStream } from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { reasons } from "./reasons.ts"
import type { Bench, Finding, ForeignSuite } from "../suite.ts"

/** How long it makes requests. */
const budgetSeconds = 480
/** It shows its failures after the requests. */
const withinMs = (budgetSeconds + 420) * 1000
const requestTimeoutSeconds = 30
const detailMax = 1200
const answerMax = 200
const bodyMax = 200

/** The parts of its report that are read: one event a line. */
interface Event {
  readonly ScenarioFinished?: {
    readonly recorder?: {
      readonly label: string
      readonly checks?: Readonly<Record<string, ReadonlyArray<Check>>>
      readonly interactions?: Readonly<Record<string, Interaction>>
    }
  }
  readonly NonFatalError?: unknown
  readonly FatalError?: unknown
}

interface Check {
  readonly name: string
  readonly status: "success" | "failure"
  readonly failure_info?: {
    readonly failure: {
      /** Such as `GET /livez`; the label of a scenario of several operations names none. */
      readonly operation: string
      readonly title: string
      readonly message: string
    }
  }
}

interface Interaction {
  readonly request: {
    readonly method: string
    readonly uri: string
    readonly headers: Readonly<Record<string, ReadonlyArray<string>>>
    readonly body?: { readonly $base64: string } | null
  }
  readonly response?: {
    readonly status_code: number
    readonly content?: { readonly $base64: string }
  }
}

/** How problems of each type begin their `detail`. */
const detailPatterns = [
  /<p class="alarm">([^<]*)/,
  /<detail>([^<]*)/,
  /"detail":"([^"]*)/,
  /^\d{3} [^\n]*\n\s*([^\n]+)/
]

/** The `detail` of a problem; else the beginning of the content. */
const problemIn = ({ content }: NonNullable<Interaction["response"]>): string => {
  const text = Buffer.from(content?.$base64 ?? "", "base64").toString("utf8")
  const details = detailPatterns.map((pattern) => pattern.exec(text)?.[1])
  return details.find((detail) => detail !== undefined) ?? text.slice(0, answerMax)
}

const shortened = (text: string): string => text.replaceAll(/\s+/g, " ").slice(0, detailMax)

const findingOf = (label: string, check: Check, interaction: Interaction | undefined): Finding => {
  if (check.status === "success") return { check: `${label}: ${check.name}`, isPassed: true }
  const { message = "", operation = label, title = "" } = check.failure_info?.failure ?? {}
  const { request, response } = interaction ?? {}
  const answer = response === undefined
    ? "no answer"
    : `${response.status_code} ${problemIn(response)}`
  const type = request?.headers["Content-Type"]?.join() ?? "nothing"
  const body = Buffer.from(request?.body?.$base64 ?? "", "base64").toString("utf8")
  const sent = `${type} ${body.slice(0, bodyMax)}`
  const detail = `${title}: ${answer} with ${sent} for ${request?.uri}: ${message}`
  return { check: `${operation}: ${check.name}`, isPassed: false, detail: shortened(detail) }
}

const findingsOf = ({ FatalError, NonFatalError, ScenarioFinished }: Event): Array<Finding> => {
  const error = FatalError ?? NonFatalError
  if (error !== undefined) {
    return [{ check: "error", isPassed: false, detail: shortened(JSON.stringify(error)) }]
  }
  const { checks = {}, interactions = {}, label = "" } = ScenarioFinished?.recorder ?? {}
  return Object.entries(checks).flatMap(([id, done]) =>
    done.map((check) => findingOf(label, check, interactions[id]))
  )
}

const run = async ({ folder, origin, run, token }: Bench): Promise<ReadonlyArray<Finding>> => {
  const report = join(folder, "events.ndjson")
  const { code, errors, output } = await run("schemathesis", [
    "run",
    `${origin}/openapi.json`,
    ...["--checks", "all"],
    ...["--max-time", String(budgetSeconds)],
    ...["--request-timeout", String(requestTimeoutSeconds)],
    ...["--workers", "1"],
    ...["--seed", "1"],
    ...["--header", `Authorization: Bearer ${token}`],
    ...["--generation-database", "none"],
    "--continue-on-failure",
    "--no-color",
    ...["--report", "ndjson", "--report-ndjson-path", report]
  ], { withinMs })
  // 1: it found failures, which the report lists.
  if (code !== 0 && code !== 1) {
    throw new Error(`schemathesis ended with ${code}: ${output.slice(-2000)}${errors}`)
  }
  const findings = new Map<string, Finding>()
  for await (const line of createInterface({ input: createReadStream(report) })) {
    // Each line is an event of this form.
    for (const finding of findingsOf(JSON.parse(line) as Event)) {
      findings.set(`${finding.check} ${finding.detail}`, finding)
    }
  }
  return [...findings.values()]
}

export const schemathesis: ForeignSuite = {
  name: "schemathesis",
  checks: `all checks and phases on \`/openapi.json\`, seed 1, ${budgetSeconds / 60} minutes`,
  source: { registry: "PyPI", name: "schemathesis", version: "4.32.5" },
  reasons,
  isRandom: true,
  run
}
