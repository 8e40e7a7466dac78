/** `create-restante`: the project that it writes is compiled, tested and run; and its refusals. */
import { execFile } from "node:child_process"
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync,
  writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { cleanUp, temporaryFolder } from "../e2e/process.ts"
import { create, filesOf, listen } from "./create-projects.ts"
import { installedWithinMs, packed } from "./package-projects.ts"
import { at, root, textOf, wordAt } from "./sources.ts"

const execute = promisify(execFile)

/** A user that owns no file. */
const otherUser = 65_534

afterAll(cleanUp)

const version = wordAt(JSON.parse(textOf("package.json")), "version")

describe("a project from the packed packages", () => {
  let runtime = ""
  let folder = ""

  beforeAll(async () => {
    runtime = packed("runtime").path
    const tarball = packed("create")
    const unpacked = temporaryFolder()
    await execute("tar", ["-xzf", tarball.path, "-C", unpacked])
    const workspace = temporaryFolder()
    folder = join(workspace, "my-app")
    const script = join(unpacked, "package/main.mjs")
    const created = create(workspace, ["my-app", "--runtime", runtime], { script })
    expect(created).toEqual({
      code: 0,
      output: expect.stringMatching(/\n {2}cd my-app && npm install\n {2}npm run dev\n$/),
      errors: ""
    })
    // The tools come from this repository: the long form installs them, too.
    const quiet = ["--no-audit", "--no-fund", "--loglevel=error", "--prefer-offline"]
    await execute("npm", ["install", "--omit=dev", ...quiet], { cwd: folder })
    const tsc = join(root, "node_modules/typescript/bin/tsc")
    const types = ["--typeRoots", join(root, "node_modules/@types")]
    await execute(process.execPath, [tsc, "-p", folder, ...types])
      .catch((error: { readonly stdout: string }) => expect(error.stdout).toBe(""))
  }, installedWithinMs)

  it("has its files, its name and its versions", () => {
    expect(filesOf(folder)).toEqual([
      ".dockerignore",
      ".gitignore",
      "Dockerfile",
      "README.md",
      "package-lock.json",
      "package.json",
      basename(runtime),
      "src/actors/counter.ts",
      "src/main.ts",
      "src/route.ts",
      "src/store.ts",
      "test/counter.test.ts",
      "tsconfig.json"
    ])
    const manifest: unknown = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))
    expect(wordAt(manifest, "name")).toBe("my-app")
    expect(at(manifest, "dependencies")).toEqual({
      "@restante/runtime": `file:${basename(runtime)}`,
      "classic-level": "^3.0.0"
    })
    const texts = filesOf(folder).filter((path) => !path.endsWith(".tgz"))
      .map((path) => readFileSync(join(folder, path), "utf8"))
    expect(texts.filter((text) => text.includes("{{"))).toEqual([])
  })

  it("passes its tests", async () => {
    const args = ["--test", join(folder, "dist/test/counter.test.js")]
    const { NODE_OPTIONS: _, NODE_TEST_CONTEXT: __, ...env } = process.env
    const { stdout } = await execute(process.execPath, args, { cwd: folder, env })
    expect(stdout).toMatch(/# pass 2\n# fail 0/)
  })

  it("answers its route, and keeps what it has counted", async () => {
    const first = await listen(folder, ["dist/src/main.js"])
    expect(await first.request("POST", "visits")).toEqual([200, { id: "visits", count: 1 }])
    expect(await first.request("POST", "visits")).toEqual([200, { id: "visits", count: 2 }])
    expect(await first.request("PUT", "visits")).toEqual([405, { error: "use GET or POST" }])
    expect(await first.request("GET", "a%20b")).toEqual([404, { error: "try /counters/visits" }])
    expect(await first.process.stop()).toEqual({ code: 0, signal: null })
    const second = await listen(folder, ["dist/src/main.js"])
    expect(await second.request("GET", "visits")).toEqual([200, { id: "visits", count: 2 }])
    expect(await second.process.stop()).toEqual({ code: 0, signal: null })
  })

  it("says what stops it from starting: a port, and a folder, that others use", async () => {
    const first = await listen(folder, ["dist/src/main.js"])
    const port = String(first.port)
    const main = join(folder, "dist/src/main.js")
    const start = (variables: Readonly<Record<string, string>>) =>
      execute(process.execPath, [main], { cwd: folder, env: { ...process.env, ...variables } })
        .catch((error: unknown) => String(Object(error).stderr))
    expect(await start({ PORT: port, DATA_DIR: join(folder, "other") })).toMatch(
      /^the server cannot listen: .*EADDRINUSE.*\. Set PORT to one that is free\n$/
    )
    expect(await start({ PORT: "0", DATA_DIR: join(folder, "data") })).toMatch(
      /^the node does not start on .*data: another program has .* open \(process \d+\)\. /
    )
    await first.process.stop()
  })

  it.each([
    ["memory", []],
    ["nats", ["@nats-io/jetstream", "@nats-io/kv", "@nats-io/transport-node"]]
  ])("has the store %s, and what it needs", (store, needed) => {
    const workspace = temporaryFolder()
    expect(create(workspace, ["an-app", "--store", store]).code).toBe(0)
    const project = join(workspace, "an-app")
    const manifest: unknown = JSON.parse(readFileSync(join(project, "package.json"), "utf8"))
    const dependencies = Object(at(manifest, "dependencies"))
    expect(Object.keys(dependencies)).toEqual([...needed, "@restante/runtime"].toSorted())
    expect(dependencies["@restante/runtime"]).toBe(`^${version}`)
    expect(readFileSync(join(project, "src/store.ts"), "utf8")).toBe(
      textOf(`create/stores/${store}.ts`)
    )
  })
})

describe("the command", () => {
  it("prints its help and its version", () => {
    const folder = temporaryFolder()
    expect(create(folder, ["--help"]).output).toContain("npm create restante my-app")
    expect(create(folder, ["-h"]).output).toBe(create(folder, ["--help"]).output)
    expect(create(folder, ["--version"]).output).toBe(`${version}\n`)
    expect(readdirSync(folder)).toEqual([])
  })

  it("fills a new repository of git", () => {
    const folder = join(temporaryFolder(), "app")
    mkdirSync(join(folder, ".git"), { recursive: true })
    const { code, output } = create(folder, ["."])
    expect([code, output]).toEqual([0, expect.stringContaining("\n  npm install\n")])
  })

  it("refuses a file that is no tarball, whatever it is called", () => {
    const folder = temporaryFolder()
    const file = join(folder, "runtime.tgz")
    writeFileSync(file, "junk")
    const { code, errors } = create(folder, ["app", "--runtime", file])
    expect([code, readdirSync(folder)]).toEqual([64, ["runtime.tgz"]])
    expect(errors).toMatch(/runtime\.tgz is no tarball of @restante\/runtime: pack it/)
  })

  it.each([
    [[], /has no name: add one/],
    [[""], /has no name: add one/],
    [["node_modules"], /"node_modules" cannot be the name of a project/],
    [["app", "--runtime", join(root, "package.json")], /package\.json is no tarball/],
    [["a", "b"], /more than one name \(a, b\): give one/],
    [["My App"], /"My App" cannot be the name of a project: .* Choose a name such as my-app\./],
    [["app", "--store", "disk"], /disk is no store: --store takes one of memory, embedded, nats/],
    [["app", "--shop"], /arguments are not understood: .*--shop.*--help/s],
    [["app", "--runtime", "none.tgz"], /none\.tgz is no tarball .*: pack it by `npm pack/]
  ])("refuses %j", (args, message) => {
    const folder = temporaryFolder()
    const { code, errors, output } = create(folder, args)
    expect([code, output]).toEqual([64, ""])
    expect(errors).toMatch(message)
    expect(readdirSync(folder)).toEqual([])
  })

  it("refuses a folder with files, and leaves them as they are", () => {
    const folder = temporaryFolder()
    mkdirSync(join(folder, "app"))
    writeFileSync(join(folder, "app/package.json"), "mine")
    const { code, errors } = create(folder, ["app"])
    expect([code, errors]).toEqual([
      73,
      `create-restante: ${join(folder, "app")} has files already (package.json), and nothing was ` +
      "written. Choose another name, or empty the folder.\n"
    ])
    expect(readdirSync(join(folder, "app"))).toEqual(["package.json"])
  })

  it("refuses a folder where nobody may write, and one below a file", () => {
    const folder = temporaryFolder()
    // The user has to read the command, and may write nowhere.
    for (const name of ["main.mjs", "package.json", "stores", "template"]) {
      cpSync(join(root, "create", name), join(folder, name), { recursive: true })
    }
    chmodSync(folder, 0o555)
    const script = join(folder, "main.mjs")
    const user = process.getuid?.() === 0 ? { uid: otherUser } : {}
    const denied = create(folder, ["app"], { script, ...user })
    chmodSync(folder, 0o755)
    expect([denied.code, denied.errors]).toEqual([
      73,
      `create-restante: ${join(folder, "app")} cannot be made: you may not write there. Choose a ` +
      "folder of yours, or have its permissions changed.\n"
    ])
    const below = create(folder, ["main.mjs/app"])
    expect([below.code, below.errors]).toEqual([
      73,
      `create-restante: ${join(folder, "main.mjs/app")} cannot be made: a part of the path is a ` +
      "file. Choose another folder.\n"
    ])
    expect(existsSync(join(folder, "app"))).toBe(false)
  })
})
