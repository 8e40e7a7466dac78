/** A project of `create-restante` as its users have it, with its tools, on each store. */
import { execFile } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { cleanUp, eventually, temporaryFolder } from "../e2e/process.ts"
import { type ServerProcess, startServer } from "../runtime/nats/servers.ts"
import { create, edit, listen } from "./create-projects.ts"
import { installedWithinMs, packed } from "./package-projects.ts"

const reloadsWithinMs = 60_000

let runtime = ""
let server: ServerProcess

beforeAll(async () => {
  runtime = packed("runtime").path
  server = await startServer()
})

afterAll(async () => {
  await server.close()
  cleanUp()
})

describe.each(["memory", "embedded", "nats"])("on the store %s", (store) => {
  let folder = ""
  const npm = (...args: ReadonlyArray<string>) =>
    promisify(execFile)("npm", [...args], { cwd: folder })

  beforeAll(async () => {
    const workspace = temporaryFolder()
    expect(create(workspace, ["app", "--store", store, "--runtime", runtime]).errors).toBe("")
    folder = join(workspace, "app")
    await npm("install", "--no-audit", "--no-fund", "--loglevel=error", "--prefer-offline")
  }, installedWithinMs)

  it("has its types checked, and its tests pass", async () => {
    await npm("run", "check")
    expect((await npm("test")).stdout).toMatch(/# pass 2\n# fail 0/)
  })

  it("runs with its inspector, and starts again when a file changes", async () => {
    // As `npm run dev` does.
    const watch = [join(folder, "node_modules/tsx/dist/cli.mjs"), "watch", "--clear-screen=false"]
    const main = ["src/main.ts", "--inspector"]
    const program = await listen(folder, [...watch, ...main], { NATS_URL: server.url })
    expect(await program.request("POST", "visits")).toEqual([200, { id: "visits", count: 1 }])
    const [, inspector = ""] = /The inspector: (\S+)/.exec(program.process.output) ?? []
    const answer = await fetch(`${inspector}api/actors/counter/visits`)
    expect(JSON.parse(Object(await answer.json()).state)).toEqual({ _tag: "Counting", count: 1 })
    const kept = store === "memory" ? 0 : 1
    let reply = "stay().reply(count)"
    // Twice: a replaced file has another inode.
    for (const more of [1000, 2000]) {
      const changed = `stay().reply(count + ${more})`
      edit(folder, "src/actors/counter.ts", reply, changed)
      reply = changed
      await eventually(reloadsWithinMs, "the changed actor answers", async () => {
        const [, body] = await program.request("GET", "visits").catch(() => [0, {}] as const)
        return Object(body).count === kept + more ? true : undefined
      })
    }
    await program.process.stop()
  })
})

it("is built by the lines of its Dockerfile, and runs without its tools", async () => {
  const workspace = temporaryFolder()
  create(workspace, ["app", "--runtime", runtime])
  const project = join(workspace, "app")
  const shell = (line: string, cwd: string) =>
    promisify(execFile)("sh", ["-e", "-c", line], { cwd })
  // `npm install` has made the lock before anybody builds the image.
  await shell("npm install --package-lock-only --no-audit --no-fund --prefer-offline", project)
  const stage = temporaryFolder()
  const [, build = "", last = ""] = readFileSync(join(project, "Dockerfile"), "utf8").split(
    /^FROM /m
  )
  const instructions = build.split("\n").filter((line) => /^(COPY|RUN) /.test(line))
  expect(instructions.length).toBeGreaterThan(4)
  for (const line of instructions) {
    const [, command = ""] = /^RUN (.+)$/.exec(line) ?? []
    const [, sources = "", target = ""] = /^COPY (.+) (\S+)$/.exec(line) ?? []
    await (command === ""
      ? shell(`cp -r ${sources} ${join(stage, target)}`, project)
      : shell(command, stage))
  }
  expect(existsSync(join(stage, "node_modules/tsx"))).toBe(false)
  const [, main = ""] = /^CMD \["node", "(.+)"\]$/m.exec(last) ?? []
  const program = await listen(stage, [main])
  expect(await program.request("POST", "visits")).toEqual([200, { id: "visits", count: 1 }])
  expect(await program.process.stop()).toEqual({ code: 0, signal: null })
}, installedWithinMs)
