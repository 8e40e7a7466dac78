/** The package, made of a clone and installed in an empty folder, as its users do. */
import { execFileSync, type StdioOptions } from "node:child_process"
import { readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { expectStatus, send } from "../e2e/client.ts"
import { cleanUp, start, temporaryFolder } from "../e2e/process.ts"
import { copySources } from "./sources.ts"

const installWithinMs = 1_800_000
const versionRuns = 20
/** Of a program that fails, its error has what it wrote on standard error. */
const outputInError: StdioOptions = ["ignore", "pipe", "pipe"]

let folder = ""

const inFolder = (file: string, ...args: ReadonlyArray<string>): string =>
  execFileSync(file, args, { cwd: folder, encoding: "utf8", stdio: outputInError })

beforeAll(() => {
  folder = temporaryFolder()
  const clone = copySources(join(temporaryFolder(), "clone"))
  execFileSync("npm", ["pack", "--pack-destination", folder], { cwd: clone, stdio: outputInError })
  writeFileSync(join(folder, "package.json"), "{ \"private\": true }\n")
  const [tarball = ""] = readdirSync(folder).filter((name) => name.endsWith(".tgz"))
  inFolder("npm", "install", "--no-audit", "--no-fund", `./${tarball}`)
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

it("serves, with its documentation, and has the client", async () => {
  const script = [join(folder, "node_modules/restante/dist/bin/restante.js"), "serve"]
  const service = await start({ script })
  expectStatus(await send(service.url, "/"), 200)
  expectStatus(await send(service.url, "/docs/quick-start"), 200)
  const program = "import { connect } from \"restante/client\"; console.log(typeof connect)"
  expect(inFolder(process.execPath, "--input-type=module", "--eval", program)).toBe("function\n")
  await service.stop()
})
