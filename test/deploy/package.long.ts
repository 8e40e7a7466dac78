/** The packages, made of a fresh clone and installed in empty folders, as their users do. */
import { execFileSync, type StdioOptions } from "node:child_process"
import { readdirSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { blocksOf } from "../docs/pages.ts"
import { expectStatus, send } from "../e2e/client.ts"
import { cleanUp, start, temporaryFolder } from "../e2e/process.ts"
import { filesOf } from "./create-projects.ts"
import { packed } from "./package-projects.ts"
import { copySources } from "./sources.ts"

const installWithinMs = 1_800_000
const versionRuns = 20
/** Of a program that fails, its error has what it wrote on standard error. */
const outputInError: StdioOptions = ["ignore", "pipe", "pipe"]

/** By which pages name what it runs. */
const thisTest = "test/deploy/package.long.ts"

let folder = ""
let clone = ""

const inFolder = (file: string, ...args: ReadonlyArray<string>): string =>
  execFileSync(file, args, { cwd: folder, encoding: "utf8", stdio: outputInError })

/** The tarball of a package in the folder. */
const tarballOf = (name: string): string => {
  const found = readdirSync(folder).find((file) => new RegExp(`^${name}-\\d.*\\.tgz$`).test(file))
  if (found === undefined) throw new Error(`no tarball of ${name}`)
  return `./${found}`
}

beforeAll(() => {
  folder = temporaryFolder()
  clone = copySources(join(temporaryFolder(), "clone"))
  for (const page of ["deploy/README.md", "create/README.md"]) {
    const [commands = ""] = blocksOf(page).filter(({ mark }) => mark?.text === thisTest)
      .map(({ text }) => text)
    expect(commands).toContain("npm pack")
    execFileSync("sh", ["-e", "-c", commands], { cwd: clone, stdio: outputInError })
  }
  for (const name of readdirSync(clone).filter((file) => file.endsWith(".tgz"))) {
    renameSync(join(clone, name), join(folder, name))
  }
  writeFileSync(join(folder, "package.json"), "{ \"private\": true }\n")
  inFolder("npm", "install", "--no-audit", "--no-fund", tarballOf("restante"))
}, installWithinMs)

afterAll(cleanUp)

it("has the command, whose time is reported", () => {
  const program = join(folder, "node_modules/.bin/restante")
  const times = Array.from({ length: versionRuns }, () => {
    const startedMs = performance.now()
    expect(inFolder(program, "--version")).toMatch(/^restante v\d+\.\d+\.\d+\n$/)
    return performance.now() - startedMs
  }).toSorted((a, b) => a - b)
  console.log(`restante --version: ${times[versionRuns / 2]?.toFixed(0)} ms, median of 20`)
})

it("serves, with its documentation", async () => {
  const script = [join(folder, "node_modules/restante/dist/bin/restante.js"), "serve"]
  const service = await start({ script })
  expectStatus(await send(service.url, "/"), 200)
  expectStatus(await send(service.url, "/docs/quick-start"), 200)
  await service.stop()
})

it("creates a project that is installed from the tarballs, and passes its tests", () => {
  inFolder("npm", "install", "--no-audit", "--no-fund", tarballOf("create-restante"))
  const program = join(folder, "node_modules/.bin/create-restante")
  inFolder(program, "my-app", "--runtime", tarballOf("restante-runtime"))
  const project = join(folder, "my-app")
  // The commands of create/README.md have written the same project beside the clone.
  expect(filesOf(project)).toEqual(filesOf(join(clone, "../my-app")))
  const inProject = (...args: ReadonlyArray<string>) =>
    execFileSync("npm", args, { cwd: project, encoding: "utf8", stdio: outputInError })
  inProject("install", "--no-audit", "--no-fund")
  inProject("run", "build")
  expect(inProject("test")).toMatch(/# pass 2\n# fail 0/)
}, installWithinMs)

it("has the same packages as a built clone", () => {
  for (const workspace of ["client", "create", "runtime"]) {
    const name = workspace === "create" ? "create-restante" : `restante-${workspace}`
    const list = inFolder("tar", "-tzf", tarballOf(name))
    const files = list.trim().split("\n").map((path) => path.replace("package/", "")).toSorted()
    expect(files).toEqual(packed(workspace).files)
  }
})
