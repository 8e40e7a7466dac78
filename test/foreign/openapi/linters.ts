/** Linters of OpenAPI documents: every error and every warning is a failure. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Bench, Finding, ForeignSuite } from "../suite.ts"

const withinMs = 120_000

/** The served document as a file of the suite's folder. */
const savedDocument = async ({ folder, origin }: Bench): Promise<string> => {
  const file = join(folder, "openapi.json")
  writeFileSync(file, await (await fetch(`${origin}/openapi.json`)).text())
  return file
}

/** The faults as findings; without any the document has passed. */
const findingsOf = (faults: ReadonlyArray<Finding>): ReadonlyArray<Finding> =>
  faults.length === 0 ? [{ check: "/openapi.json", isPassed: true }] : faults

/** The JSON in the output of a linter; throws what it wrote instead. */
const parsed = ({ errors, output }: { readonly errors: string; readonly output: string }) => {
  try {
    return JSON.parse(output) as unknown
  } catch {
    throw new Error(`the linter did not write JSON: ${output.slice(0, 500)}${errors.slice(0, 500)}`)
  }
}

interface RedoclyReport {
  readonly problems: ReadonlyArray<{
    readonly ruleId: string
    readonly message: string
    readonly location: ReadonlyArray<{ readonly pointer?: string }>
  }>
}

const runRedocly = async (bench: Bench): Promise<ReadonlyArray<Finding>> => {
  const args = ["lint", "--extends=recommended", "--format=json", "--max-problems=1000"]
  const program = await bench.run("redocly", [...args, await savedDocument(bench)], { withinMs })
  // The linter writes this form.
  const { problems } = parsed(program) as RedoclyReport
  return findingsOf(problems.map(({ location, message, ruleId }) => ({
    check: `${ruleId} at ${location[0]?.pointer ?? "/"}`,
    isPassed: false,
    detail: message
  })))
}

export const redocly: ForeignSuite = {
  name: "redocly",
  checks: "`/openapi.json` by the rules `recommended`, errors and warnings",
  source: { registry: "npm", name: "@redocly/cli", version: "2.77.0" },
  reasons: [],
  run: runRedocly
}

interface SpectralResult {
  readonly code: string
  readonly message: string
  readonly path: ReadonlyArray<string>
}

const runSpectral = async (bench: Bench): Promise<ReadonlyArray<Finding>> => {
  const ruleset = join(bench.folder, "ruleset.yaml")
  writeFileSync(ruleset, "extends: [\"spectral:oas\"]\n")
  const args = ["lint", "--format", "json", "--quiet", "--ruleset", ruleset]
  const program = await bench.run("spectral", [...args, await savedDocument(bench)], { withinMs })
  // The linter writes this form.
  const results = parsed(program) as ReadonlyArray<SpectralResult>
  return findingsOf(results.map(({ code, message, path }) => ({
    check: `${code} at /${path.join("/")}`,
    isPassed: false,
    detail: message
  })))
}

export const spectral: ForeignSuite = {
  name: "spectral",
  checks: "`/openapi.json` by the rules `spectral:oas`, errors, warnings and hints",
  source: { registry: "npm", name: "@stoplight/spectral-cli", version: "6.16.3" },
  reasons: [],
  run: runSpectral
}
