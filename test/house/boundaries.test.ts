/** Plants violations of the import directions and of the style; each must be caught. */
import { spawnSync } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync,
  writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "vitest"

const root = fileURLToPath(new URL("../..", import.meta.url))
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
  "examples",
  "test"
]

let copy = ""
const write = (path: string, text: string) => {
  mkdirSync(dirname(join(copy, path)), { recursive: true })
  writeFileSync(join(copy, path), text)
}
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
  "actors/mailbox/index.ts": "export const mailbox = 1\n",
  "actors/mailbox/protocol.ts": "export const protocol = 1\n",
  "actors/outbound/index.ts": "export const outbound = 1\n",
  "actors/mailbox/decide.ts": "export const decide = 1\n",
  "actors/mailbox/actor.ts": "export const actor = 1\n",
  "http/app.ts": "export const app = 1\n",
  "http/wire/server.ts": "export const server = 1\n",
  "client/index.ts": "export const connect = 1\n",
  "deploy/main.ts": "export const main = 1\n",
  "deploy/node/serve.ts": "export const serve = 1\n",
  "examples/counter/index.ts": "export const counter = 1\n",
  "test/one.test.ts": "export const one = 1\n"
}

const settings = ["tsconfig.json", "tsconfig.base.json", "tsconfig.config.json"]
const nested = projects.map((folder) => `${folder}/tsconfig.json`)

/** Makes the house in a folder of the copy, with its settings. */
const build = (folder: string) => {
  for (const file of [...settings, ...nested, "package.json", ".oxlintrc.json"]) {
    cpSync(join(root, file), join(copy, folder, file), { recursive: true })
  }
  // oxlint takes options from the topmost configuration only, and each house has one of its own.
  const config = join(copy, folder, ".oxlintrc.json")
  const { options: _, ...rules } = JSON.parse(readFileSync(config, "utf8"))
  writeFileSync(config, JSON.stringify(rules))
  for (const [path, text] of Object.entries(sources)) write(join(folder, path), text)
}

beforeAll(() => {
  copy = mkdtempSync(join(tmpdir(), "restante-boundaries-"))
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"))
})
afterAll(() => rmSync(copy, { recursive: true, force: true }))

const importing = (target: string) =>
  `import * as planted from "${target}"\nexport const value: unknown = planted\n`
const importingType = (target: string) =>
  `import type * as planted from "${target}"\nexport type Value = typeof planted\n`

const allowed: ReadonlyArray<readonly [string, string]> = [
  ["runtime/planted.ts", "./system.ts"],
  ["runtime/activation/planted.ts", "../ports/index.ts"],
  ["runtime/embedded/planted.ts", "../actor/index.ts"],
  ["runtime/embedded/planted.ts", "../ports/index.ts"],
  ["runtime/nats/storage/planted.ts", "../../limits.ts"],
  ["actors/mailbox/planted.ts", "../../runtime/index.ts"],
  ["actors/mailbox/decide.ts", "../../runtime/index.ts"],
  ["actors/outbound/planted.ts", "undici"],
  ["http/planted.ts", "../runtime/index.ts"],
  ["http/planted.ts", "../actors/index.ts"],
  ["http/planted.ts", "../client/index.ts"],
  ["http/resources/mailboxes/planted.ts", "../../../actors/mailbox/index.ts"],
  ["http/wire/native-module.ts", "uws-node-20-22"],
  ["client/planted.ts", "./index.ts"],
  ["client/transport/planted.ts", "../limits.ts"],
  ["deploy/planted.ts", "../runtime/embedded/index.ts"],
  ["deploy/planted.ts", "../cluster.config.ts"],
  ["deploy/cli/planted.ts", "../../client/index.ts"],
  ["examples/counter/planted.ts", "./index.ts"],
  ["examples/counter/planted.ts", "@restante/runtime/testing"],
  ["test/planted.ts", "../deploy/serve.ts"]
]

const forbidden: ReadonlyArray<readonly [string, string]> = [
  ["runtime/planted.ts", "./embedded/index.ts"],
  ["runtime/planted.ts", "./http/index.ts"],
  ["runtime/ports/planted.ts", "../nats/index.ts"],
  ["runtime/planted.ts", "../actors/index.ts"],
  ["runtime/planted.ts", "../http/app.ts"],
  ["runtime/planted.ts", "../deploy/serve.ts"],
  ["runtime/planted.ts", "../cluster.config.ts"],
  ["runtime/embedded/planted.ts", "../system.ts"],
  ["runtime/embedded/planted.ts", "../activation/index.ts"],
  ["runtime/embedded/storage/planted.ts", "../../activation/index.ts"],
  ["runtime/embedded/planted.ts", "../nats/index.ts"],
  ["runtime/nats/storage/planted.ts", "../../embedded/index.ts"],
  ["runtime/embedded/planted.ts", "../../actors/index.ts"],
  ["actors/planted.ts", "../http/app.ts"],
  ["actors/mailbox/planted.ts", "../../runtime/system.ts"],
  ["actors/mailbox/planted.ts", "../../runtime/embedded/index.ts"],
  ["actors/mailbox/planted.ts", "../../deploy/serve.ts"],
  ["actors/mailbox/planted.ts", "undici"],
  ["actors/mailbox/decide.ts", "effect"],
  ["actors/mailbox/decide.ts", "node:crypto"],
  ["actors/mailbox/decide.ts", "./actor.ts"],
  ["http/planted.ts", "../runtime/system.ts"],
  ["http/planted.ts", "../runtime/embedded/index.ts"],
  ["http/planted.ts", "../actors/mailbox/decide.ts"],
  ["http/planted.ts", "../actors/outbound/index.ts"],
  ["http/resources/mailboxes/planted.ts", "../../../actors/mailbox/actor.ts"],
  ["http/planted.ts", "../deploy/serve.ts"],
  ["http/planted.ts", "uws-node-24-26"],
  ["http/planted.ts", "@effect/platform-node/NodeRuntime"],
  ["client/planted.ts", "../http/app.ts"],
  ["client/planted.ts", "../actors/index.ts"],
  ["client/transport/planted.ts", "../../http/app.ts"],
  ["client/planted.ts", "effect"],
  ["client/planted.ts", "node:crypto"],
  ["deploy/planted.ts", "./main.ts"],
  ["deploy/planted.ts", "@uwsjs/linux-x64-20"],
  ["deploy/planted.ts", "@effect/platform-node"],
  ["http/planted.ts", "undici"],
  ["examples/counter/planted.ts", "../../runtime/index.ts"],
  ["examples/counter/planted.ts", "effect"],
  ["test/planted.ts", "../deploy/main.ts"]
]

interface Case {
  readonly name: string
  readonly path: string
  readonly text: string
  /** The rule that is broken; undefined when none is. */
  readonly rule: string | undefined
}

const importCase =
  (rule: string | undefined) => ([path, target]: readonly [string, string]): Case => ({
    name: `${path} ${rule === undefined ? "may" : "may not"} import ${target}`,
    path,
    text: importing(target),
    rule
  })

const caught: ReadonlyArray<readonly [rule: string, text: string]> = [
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
  ["no-cycle", "import type { Back } from \"./back.ts\"\nexport const planted: Back = 1\n"],
  [
    "no-duplicate-imports",
    "import { system } from \"./system.ts\"\nimport { system as other } from \"./system.ts\"\n" +
    "export const both = [system, other]\n"
  ],
  ["no-restricted-properties", "export const value = (uri: string) => URL.canParse(uri)\n"],
  ["max-lines", `${"// A line.\n".repeat(800)}export const value = 1\n`],
  ["max-lines-per-function", `export const value = () => {\n${"  value()\n".repeat(61)}}\n`]
]

const impure = [
  "Date.now()",
  "URL.canParse(\"\")",
  "Math.random()",
  "performance.now()",
  "process.pid"
]

const cases: ReadonlyArray<Case> = [
  ...allowed.map(importCase(undefined)),
  ...forbidden.map(importCase("no-restricted-imports")),
  {
    name: "decide.ts may import types",
    path: "actors/mailbox/decide.ts",
    text: importingType("./actor.ts"),
    rule: undefined
  },
  ...caught.map(([rule, text], at): Case => ({
    name: `${rule} is caught (${at})`,
    path: "runtime/planted.ts",
    text,
    rule
  })),
  ...impure.map((call): Case => ({
    name: `${call} is kept out of decide.ts`,
    path: "actors/mailbox/decide.ts",
    text: `export const value = ${call}\n`,
    rule: "no-restricted"
  }))
]

/** What one run of oxlint finds in the file of each case: each case has a house of its own. */
const lintAll = (): ReadonlyMap<string, ReadonlyArray<string>> => {
  cases.forEach(({ path, text }, at) => {
    build(`case-${at}`)
    write(
      `case-${at}/runtime/back.ts`,
      "import { planted } from \"./planted.ts\"\n" +
        "export const cycle = planted\nexport type Back = number\n"
    )
    write(`case-${at}/${path}`, text)
  })
  const { output } = run(oxlint, "-f", "unix", ...cases.map((_, at) => `case-${at}`))
  const found = new Map<string, Array<string>>()
  for (const line of output.split("\n")) {
    const [, file, rule] = /^(\S+?):\d+:\d+: .* \[Error\/(\S+)\]$/.exec(line) ?? []
    if (file !== undefined && rule !== undefined) {
      found.set(file, [...(found.get(file) ?? []), rule])
    }
  }
  return found
}

describe("oxlint, file by file", () => {
  let found: ReadonlyMap<string, ReadonlyArray<string>> = new Map()
  beforeAll(() => {
    found = lintAll()
  })

  it.each(cases.map((one, at) => ({ ...one, at })))("$name", ({ at, path, rule }) => {
    const rules = (found.get(`case-${at}/${path}`) ?? []).join(" ")
    if (rule === undefined) expect(rules).toBe("")
    else expect(rules).toContain(rule)
  })
})

const betweenProjects: ReadonlyArray<readonly [string, string]> = [
  ["runtime/planted.ts", "./embedded/index.ts"],
  ["runtime/planted.ts", "../actors/index.ts"],
  ["runtime/embedded/planted.ts", "../../actors/index.ts"],
  ["actors/planted.ts", "../http/app.ts"],
  ["actors/planted.ts", "../runtime/embedded/index.ts"],
  ["http/planted.ts", "../deploy/serve.ts"],
  ["http/planted.ts", "../runtime/embedded/index.ts"],
  ["client/planted.ts", "../http/app.ts"],
  ["deploy/planted.ts", "../test/one.test.ts"]
]

describe("tsc, folder by folder", () => {
  beforeAll(() => build("."))

  it("builds the house as it is", () => {
    const { output, status } = run(tsc, "-b")
    expect(status, output).toBe(0)
  })

  it.each(betweenProjects)("%s cannot reach %s", (path, target) => {
    write(path, importing(target))
    const { output, status } = run(tsc, "-b")
    rmSync(join(copy, path))
    expect(status).not.toBe(0)
    expect(output).toMatch(/TS(6307|6059|2307)/)
  })
})
