/** The step of GitHub Actions of docs/how-to/recipes.md: actionlint accepts it in a workflow. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { goBuildWithinMs, goProgram } from "../deploy/go-programs.ts"
import { run } from "../deploy/tools.ts"
import { cleanUp, temporaryFolder } from "../e2e/process.ts"
import { blocksOf } from "./pages.ts"

const [step = ""] = blocksOf("docs/how-to/recipes.md")
  .filter(({ mark }) => mark?.kind === "file" && mark.text === "step.yml")
  .map(({ text }) => text)

let actionlint: string

beforeAll(async () => {
  actionlint = await goProgram("github.com/rhysd/actionlint/cmd/actionlint", "v1.7.7")
}, goBuildWithinMs)
afterAll(cleanUp)

/** The findings of a workflow with this step, after one that may fail. */
const findings = (text: string): string => {
  const workflow = `on: push
jobs:
  build:
    runs-on: ubuntu-latest
    steps:
      - run: make
${text.replace(/^(?=.)/gm, "      ")}`
  const file = join(temporaryFolder(), "workflow.yml")
  writeFileSync(file, workflow)
  const { code, output } = run(actionlint, ["-no-color", "-shellcheck=", "-pyflakes=", file])
  expect([code === 0, output === ""]).toEqual([output === "", code === 0])
  return output
}

it("has no finding", () => {
  expect(findings(step)).toBe("")
})

it.each([
  ["a context that no step has", "job.status", "jobs.build.status", "undefined variable \"jobs\""],
  ["an unknown member", "  if: always()", "  when: always()", "unexpected key \"when\""],
  ["a function that GitHub does not have", "always()", "ever()", "undefined function \"ever\""]
])("would be refused with %s", (_, from, to, finding) => {
  expect(findings(step.replace(from, to))).toContain(finding)
})
