/** Plants violations of the import directions and of the style; each must be caught. */
import { spawnSync } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "vitest"

const root = fileURLToPath(new URL("..", import.meta.url))
const oxlint = join(root, "node_modules/oxlint/bin/oxlint")
const tsc = join(root, "node_modules/typescript/bin/tsc")
const projects = [
  "runtime",
  "runtime/embedded",
  "runtime/nats",
  "actors",
  "http",
  "client",
  "deploy",
  "test"
]

let copy = ""
const write = (path: string, text: string) => {
  mkdirSync(dirname(join(copy, path)), { recursive: true })
  writeFileSync(join(copy, path), text)
}
const remove = (path: string) => rmSync(join(copy, path))
const run = (tool: string, ...args: ReadonlyArray<string>) => {
  const { status, stderr, stdout } = spawnSync(process.execPath, [tool, ...args], {
    cwd: copy,
    encoding: "utf8"
  })
  return { status, output: stdout + stderr }
}

/** The house with its settings, and one small file in each place that may be imported. */
const sources: Readonly<Record<string, string>> = {
  "cluster.config.ts": "export const clusterConfig = 1\n",
  "runtime/index.ts": "export const system = 1\nexport interface Decision {}\n",
  "runtime/system.ts": "export const system = 1\n",
  "runtime/actor/errors.ts": "export const failure = 1\n",
  "runtime/ports/storage.ts": "export const storage = 1\n",
  "runtime/embedded/storage/storage.ts": "export const storage = 1\n",
  "actors/index.ts": "export const actors = 1\n",
  "actors/mailbox/protocol.ts": "export const protocol = 1\n",
  "actors/mailbox/decide.ts": "export const decide = 1\n",
  "actors/mailbox/actor.ts": "export const actor = 1\n",
  "http/app.ts": "export const app = 1\n",
  "client/index.ts": "export const connect = 1\n",
  "deploy/main.ts": "export const main = 1\n",
  "deploy/node/serve.ts": "export const serve = 1\n",
  "test/one.test.ts": "export const one = 1\n"
}

beforeAll(() => {
  copy = mkdtempSync(join(tmpdir(), "restante-boundaries-"))
  const settings = ["tsconfig.json", "tsconfig.base.json", "tsconfig.config.json"]
  const nested = projects.map((folder) => `${folder}/tsconfig.json`)
  for (const file of [...settings, ...nested, "package.json", ".oxlintrc.json"]) {
    cpSync(join(root, file), join(copy, file), { recursive: true })
  }
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"))
  for (const [path, text] of Object.entries(sources)) write(path, text)
})
afterAll(() => rmSync(copy, { recursive: true, force: true }))

const importing = (target: string) =>
  `import * as planted from "${target}"\nexport const value: unknown = planted\n`
const importingType = (target: string) =>
  `import type * as planted from "${target}"\nexport type Value = typeof planted\n`

const allowed: ReadonlyArray<readonly [string, string]> = [
  ["runtime/planted.ts", "./system.ts"],
  ["runtime/embedded/planted.ts", "../errors.ts"],
  ["runtime/embedded/planted.ts", "../ports/storage.ts"],
  ["actors/mailbox/planted.ts", "../../runtime/index.ts"],
  ["actors/mailbox/decide.ts", "../../runtime/index.ts"],
  ["http/planted.ts", "../runtime/index.ts"],
  ["http/planted.ts", "../actors/index.ts"],
  ["http/mailboxes/planted.ts", "../../actors/mailbox/protocol.ts"],
  ["http/wire/server.ts", "uWebSockets.js"],
  ["client/planted.ts", "./index.ts"],
  ["deploy/planted.ts", "../runtime/embedded/storage.ts"],
  ["deploy/planted.ts", "../cluster.config.ts"],
  ["test/planted.ts", "../deploy/serve.ts"]
]

const forbidden: ReadonlyArray<readonly [string, string]> = [
  ["runtime/planted.ts", "./embedded/storage.ts"],
  ["runtime/ports/planted.ts", "../embedded/storage.ts"],
  ["runtime/planted.ts", "../actors/index.ts"],
  ["runtime/planted.ts", "../http/app.ts"],
  ["runtime/planted.ts", "../deploy/serve.ts"],
  ["runtime/planted.ts", "../cluster.config.ts"],
  ["runtime/embedded/planted.ts", "../system.ts"],
  ["runtime/embedded/planted.ts", "../index.ts"],
  ["runtime/embedded/planted.ts", "../../actors/index.ts"],
  ["actors/planted.ts", "../http/app.ts"],
  ["actors/mailbox/planted.ts", "../../runtime/system.ts"],
  ["actors/mailbox/planted.ts", "../../runtime/embedded/storage.ts"],
  ["actors/mailbox/planted.ts", "../../deploy/serve.ts"],
  ["actors/mailbox/decide.ts", "effect"],
  ["actors/mailbox/decide.ts", "node:crypto"],
  ["actors/mailbox/decide.ts", "./actor.ts"],
  ["http/planted.ts", "../runtime/system.ts"],
  ["http/planted.ts", "../runtime/embedded/storage.ts"],
  ["http/planted.ts", "../actors/mailbox/decide.ts"],
  ["http/mailboxes/planted.ts", "../../actors/mailbox/actor.ts"],
  ["http/planted.ts", "../deploy/serve.ts"],
  ["http/planted.ts", "uWebSockets.js"],
  ["http/planted.ts", "@effect/platform-node/NodeRuntime"],
  ["client/planted.ts", "../http/app.ts"],
  ["client/planted.ts", "../actors/index.ts"],
  ["client/planted.ts", "effect"],
  ["client/planted.ts", "node:crypto"],
  ["deploy/planted.ts", "./main.ts"],
  ["deploy/planted.ts", "uWebSockets.js"],
  ["deploy/planted.ts", "@effect/platform-node"],
  ["http/planted.ts", "undici"],
  ["test/planted.ts", "../deploy/main.ts"]
]

/** Lints one file with this text, and puts the tree back as it was. */
const lint = (path: string, text: string) => {
  write(path, text)
  const result = run(oxlint, path)
  const before = sources[path]
  before === undefined ? remove(path) : write(path, before)
  return result
}

describe("oxlint, file by file", () => {
  it.each(allowed)("%s may import %s", (path, target) => {
    const { output, status } = lint(path, importing(target))
    expect(status, output).toBe(0)
  })

  it.each(forbidden)("%s may not import %s", (path, target) => {
    const { output, status } = lint(path, importing(target))
    expect(status).not.toBe(0)
    expect(output).toContain("no-restricted-imports")
  })

  it("lets decide.ts import types", () => {
    const { output, status } = lint("actors/mailbox/decide.ts", importingType("./actor.ts"))
    expect(status, output).toBe(0)
  })

  it.each([
    ["no-explicit-any", "export const value = (one: any) => one\n"],
    ["no-non-null-assertion", "export const value = (one: string | null) => one!.length\n"],
    ["no-default-export", "export default 1\n"],
    ["eqeqeq", "export const value = (one: number) => one == 1\n"],
    [
      "consistent-type-imports",
      "import { Decision } from \"./index.ts\"\nexport type D = Decision\n"
    ],
    ["no-console", "console.log(1)\n"],
    ["no-cycle", "import { cycle } from \"./back.ts\"\nexport const planted = cycle\n"],
    ["max-lines", "export {}\n".repeat(301)],
    [
      "max-lines-per-function",
      `export const value = () => {\n${"  value()\n".repeat(61)}}\n`
    ]
  ])("catches %s", (rule, text) => {
    write(
      "runtime/back.ts",
      "import { planted } from \"./planted.ts\"\nexport const cycle = planted\n"
    )
    const { output, status } = lint("runtime/planted.ts", text)
    remove("runtime/back.ts")
    expect(status).not.toBe(0)
    expect(output).toContain(rule)
  })

  it.each(["Date.now()", "Math.random()", "performance.now()", "process.pid"])(
    "keeps %s out of decide.ts",
    (call) => {
      expect(lint("actors/mailbox/decide.ts", `export const value = ${call}\n`).status).not.toBe(0)
    }
  )
})

const betweenProjects: ReadonlyArray<readonly [string, string]> = [
  ["runtime/planted.ts", "./embedded/storage.ts"],
  ["runtime/planted.ts", "../actors/index.ts"],
  ["runtime/embedded/planted.ts", "../../actors/index.ts"],
  ["actors/planted.ts", "../http/app.ts"],
  ["actors/planted.ts", "../runtime/embedded/storage.ts"],
  ["http/planted.ts", "../deploy/serve.ts"],
  ["http/planted.ts", "../runtime/embedded/storage.ts"],
  ["client/planted.ts", "../http/app.ts"],
  ["deploy/planted.ts", "../test/one.test.ts"]
]

describe("tsc, folder by folder", () => {
  it("builds the house as it is", () => {
    const { output, status } = run(tsc, "-b")
    expect(status, output).toBe(0)
  })

  it.each(betweenProjects)("%s cannot reach %s", (path, target) => {
    write(path, importing(target))
    const { output, status } = run(tsc, "-b")
    remove(path)
    expect(status).not.toBe(0)
    expect(output).toMatch(/TS(6307|6059|2307)/)
  })
})
