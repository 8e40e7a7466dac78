/**
 * `npm run test:suites [-- NAME … --write]`: gets the suites of others from the registries, runs
 * all or the named ones against a service each, and prints a table. `--write` also writes it to
 * docs/interoperation.md. Exits with 1 after a failure that has no listed reason, 2 for a wrong
 * command line.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { endAll, root, serve } from "../bench/process.ts"
import { install } from "./install.ts"
import { rewritten, type Row, table } from "./page.ts"
import { endPrograms, runProgram } from "./program.ts"
import { type ForeignSuite, judge } from "./suite.ts"
import { suites } from "./suites.ts"

/** The exit code for a wrong command line. */
const WRONG = 2
const page = `${root}docs/interoperation.md`

const say = (text: string): void => void process.stderr.write(`${text}\n`)

/** Runs a suite against a service of its own. */
const play = async (suite: ForeignSuite, workspace: string): Promise<Row> => {
  say(`# ${suite.name}: ${suite.source.name} ${suite.source.version} (${suite.source.registry})`)
  const folderOf = (name: string): string => {
    const folder = join(workspace, `${suite.name}-${name}`)
    mkdirSync(folder)
    return folder
  }
  const folder = folderOf("work")
  const installed = await install(suite.source)
  const dataFolder = folderOf("data")
  await suite.prepare?.(dataFolder)
  const service = await serve(dataFolder, {
    env: { SECURITY_CONTACT: "mailto:security@example.org", ...suite.settings }
  })
  try {
    const findings = await suite.run({
      origin: service.origin,
      token: service.token,
      folder,
      pathOf: installed.pathOf,
      run: (program, args, { withinMs }) =>
        runProgram(installed.pathOf(program), args, { cwd: folder, withinMs })
    })
    return { suite, verdict: judge(findings, suite) }
  } finally {
    await service.stop()
  }
}

/** A suite that cannot be installed or run has failed; the others still run. */
const attempt = (suite: ForeignSuite, workspace: string): Promise<Row> =>
  play(suite, workspace).catch((error: unknown) => ({
    suite,
    verdict: { passed: 0, explained: 0, failed: [String(error)], unmet: [] }
  }))

const run = async (chosen: ReadonlyArray<ForeignSuite>, writes: boolean): Promise<boolean> => {
  const workspace = mkdtempSync(join(tmpdir(), "restante-foreign-"))
  process.once("exit", () => {
    endPrograms()
    endAll()
    rmSync(workspace, { recursive: true, force: true })
  })
  const rows: Array<Row> = []
  for (const suite of chosen) {
    const row = await attempt(suite, workspace)
    rows.push(row)
    for (const line of row.verdict.failed) say(`${suite.name}: ${line}`)
    for (const line of row.verdict.unmet) say(`${suite.name}, for information: ${line}`)
  }
  process.stdout.write(`${table(rows)}\n`)
  if (writes) writeFileSync(page, rewritten(readFileSync(page, "utf8"), suites, rows))
  return rows.every(({ verdict }) => verdict.failed.length === 0)
}

for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130))

const names = process.argv.slice(2).filter((argument) => argument !== "--write")
const unknown = names.filter((name) => !suites.some((suite) => suite.name === name))
if (unknown.length > 0) {
  say(`no suite ${unknown.join(", ")}; there are ${suites.map(({ name }) => name).join(", ")}`)
  process.exitCode = WRONG
} else {
  const chosen = suites.filter(({ name }) => names.length === 0 || names.includes(name))
  process.exitCode = await run(chosen, process.argv.includes("--write")) ? 0 : 1
}
