/** The actor of docs/how-to/actor.md: its files are type-checked and run. */
import { execFile } from "node:child_process"
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, expect, it } from "vitest"
import { cleanUp, temporaryFolder } from "../e2e/process.ts"
import { blocksOf, root } from "./pages.ts"

afterAll(cleanUp)

const runWithinMs = 120_000
const files = blocksOf("docs/how-to/actor.md")
  .flatMap(({ mark, text }) => mark?.kind === "file" ? [{ name: mark.text, text }] : [])
const folder = temporaryFolder()

/** Runs the page's program on a folder beside it, and records its output. */
const programTest = `
import { Effect } from "effect"
import { expect, it, vi } from "vitest"
import { program } from "../reminders.ts"
it("rings", async () => {
  const said = vi.spyOn(console, "log").mockImplementation(() => {})
  await Effect.runPromise(program)
  expect(said.mock.calls).toEqual([["tea: It is ready"]])
}, 30_000)
`

const settings = {
  extends: join(root, "tsconfig.base.json"),
  compilerOptions: {
    ...{ composite: false, declaration: false, noEmit: true, allowImportingTsExtensions: true },
    ...{ rewriteRelativeImportExtensions: false, incremental: false },
    typeRoots: [join(root, "node_modules/@types")]
  },
  files: files.map(({ name }) => name)
}

beforeAll(() => {
  for (const { name, text } of files) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  for (const name of ["runtime", "node_modules", "actors/schemas.ts"]) {
    symlinkSync(join(root, name), join(folder, name))
  }
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(settings))
  writeFileSync(join(folder, "package.json"), "{\"type\":\"module\"}")
  writeFileSync(join(folder, "vitest.config.ts"), "export default {}\n")
  writeFileSync(join(folder, "test/program.test.ts"), programTest)
})

const run = (...args: ReadonlyArray<string>) =>
  promisify(execFile)(process.execPath, [...args], { cwd: folder, timeout: runWithinMs })
    .then(({ stderr, stdout }) => ({ code: 0, output: `${stdout}${stderr}` }))
    .catch(({ code, stderr, stdout }) => ({ code, output: `${stdout}${stderr}` }))

it("has the three files of a behavior, a program and a test", () => {
  expect(files.map(({ name }) => name)).toEqual([
    ...["protocol", "decide", "actor"].map((name) => `actors/reminder/${name}.ts`),
    "reminders.ts",
    "test/reminder.test.ts"
  ])
})

it("type-checks", async () => {
  const tsc = join(root, "node_modules/typescript/bin/tsc")
  expect(await run(tsc, "-p", folder, "--pretty", "false")).toEqual({ code: 0, output: "" })
})

it("rings, and passes the page's own test", async () => {
  const vitest = join(root, "node_modules/vitest/vitest.mjs")
  const { code, output } = await run(vitest, "run", "--root", folder, "--reporter=json")
  expect(code, output).toBe(0)
  expect(output).toContain("\"numPassedTests\":3")
})
