/** Each example in an empty project that has installed the package: checked strictly, and run. */
import { afterAll, beforeAll, expect, it } from "vitest"
import { installedWithinMs, packed, type Project, projectWith } from "../deploy/package-projects.ts"
import { stricter } from "../deploy/runtime-programs.ts"
import { textOf } from "../deploy/sources.ts"
import { cleanUp } from "../e2e/process.ts"

let project: Project

beforeAll(async () => {
  project = await projectWith(packed("runtime").path)
}, installedWithinMs)

afterAll(cleanUp)

/** The options that the page of the examples names, and stricter ones. */
const options = {
  ...stricter,
  target: "ES2023",
  rewriteRelativeImportExtensions: true,
  verbatimModuleSyntax: true
}

/** What each program prints. */
const outputs = {
  "rate-limiter": /^1 permit, 2 left\n2 permit, 1 left\n3 permit, 0 left\n4 too .*\n5 too .*\n$/,
  "shopping-cart": /^reserve .*\ncharge .*: 700 cents\n[^]*charge .*: known\nship .*\nshipped\n$/,
  "chat-room": /^\[ 'ann' \]\n\[ 'ann', 'ben' \]\nann: Tea\?\nben: Yes!\n\[ 'ben' \]\n$/,
  cron: /tick 1, 0 left out\n[^]*tick 3, 0 left out\n/,
  "device-twin": /^desired \{ version: 1, .*in sync: false\n[^]*isInSync: true\n\}\n$/,
  leaderboard: /^ann .*\nben \{ points: 5, rank: 1 \}\nann \{ points: 7, rank: 1 \}\nann .*7/
}

it.each(Object.entries(outputs))("%s is copied, compiled and run", async (name, output) => {
  for (const file of ["index.ts", "main.ts", "simulation.ts"]) {
    project.write(file, textOf(`examples/${name}/${file}`))
  }
  expect((await project.check("simulation.ts", options)).errors).toEqual([])
  expect((await project.check("main.ts", options)).errors).toEqual([])
  expect(await project.run("main.js")).toMatch(output)
})
