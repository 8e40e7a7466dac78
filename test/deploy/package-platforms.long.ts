/** The client and the runtime on Bun and Deno, and their types with an older compiler. */
import { execFile } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { adminToken, cleanUp, publicUrl, type Service, start } from "../e2e/process.ts"
import { installedWithinMs, packed, type Project, projectWith } from "./package-projects.ts"
import { root } from "./sources.ts"

/** The platforms, as packages of npm with their binaries. */
const platforms = [
  { name: "bun", version: "1.4.5", args: ["run"] },
  { name: "deno", version: "2.9.6", args: ["run", "--allow-all", "--node-modules-dir=manual"] }
]

let service: Service
let project: Project

beforeAll(async () => {
  service = await start()
  const tools = platforms.map(({ name, version }) => `${name}@${version}`)
  project = await projectWith(packed("client").path, packed("runtime").path, ...tools, compiler)
}, installedWithinMs)

afterAll(async () => {
  await service.stop()
  cleanUp()
})

/** TypeScript is written in Go since version 7. */
const compiler = "typescript@5.9.3"

const clientProgram = `import { connect, verifyPush, InvalidSignature } from "@restante/client"
const [url, publicUrl, token] = process.argv.slice(2)
const post = connect({ url, publicUrl, account: "admin", token })
const { mailbox } = await post.openMailbox({ title: "A platform" })
await mailbox.deposit({ description: "one", content: { type: "text/plain", data: "text" } })
for await (const notification of mailbox.watch()) {
  const { response } = await post.get(notification)
  console.log(notification.description, await response.text())
  break
}
const fault = await verifyPush({ headers: {}, body: "" }, "whsec_AAAA").catch((error) => error)
console.log(fault instanceof InvalidSignature)
process.exit(0)
`

const runtimeProgram = `import { Effect, Layer } from "effect"
import { address, become, singleNodePlacement, stay, System } from "@restante/runtime/effect"
import { memoryStorage, memoryTransport } from "@restante/runtime/effect/memory"
const counter = {
  kind: "counter",
  initial: { _tag: "Counting", count: 0 },
  table: {
    Counting: {
      Add: ({ count }, { by }) => become({ _tag: "Counting", count: count + by }).reply(count + by),
      Read: ({ count }) => stay().reply(count)
    }
  },
  encode: ({ count }) => String(count),
  decode: (text) => ({ _tag: "Counting", count: Number(text) }),
  decodeMessage: (input) => input,
  timerMessage: { _tag: "Read" },
  perform: () => Effect.void
}
const node = System.layer({ behaviors: [counter] }).pipe(
  Layer.provide([memoryStorage, memoryTransport, singleNodePlacement])
)
const program = Effect.gen(function*() {
  const system = yield* System
  yield* system.ask(address("counter", "visits"), { _tag: "Add", by: 2 })
  return yield* system.ask(address("counter", "visits"), { _tag: "Add", by: 3 })
})
console.log(await Effect.runPromise(program.pipe(Effect.provide(node))))
`

describe.each(platforms)("on $name", ({ args, name }) => {
  const runOn = async (file: string, ...rest: ReadonlyArray<string>): Promise<string> => {
    const program = join(project.folder, "node_modules/.bin", name)
    const { stdout } = await promisify(execFile)(program, [...args, file, ...rest], {
      cwd: project.folder
    })
    return stdout
  }

  it("the client sends, watches and verifies", async () => {
    project.write("client.js", clientProgram)
    expect(await runOn("client.js", service.url, publicUrl, adminToken)).toBe("one text\ntrue\n")
  })

  it("the runtime runs an actor in memory", async () => {
    project.write("runtime.js", runtimeProgram)
    expect(await runOn("runtime.js")).toBe("5\n")
  })
})

it("have types for a compiler of the line before", async () => {
  const compilerOptions = {
    ...{ strict: true, skipLibCheck: false, noEmit: true, target: "ES2022", module: "NodeNext" },
    typeRoots: [join(root, "node_modules/@types")]
  }
  const program = `import { type Client, connect } from "@restante/client"
import { memoryStorage } from "@restante/runtime/effect/memory"
export const client: Client = connect({ url: "http://post.test" })
export const storage = memoryStorage
`
  project.write("types.ts", program)
  project.write("tsconfig.json", JSON.stringify({ compilerOptions, files: ["types.ts"] }))
  const tsc = join(project.folder, "node_modules/typescript/bin/tsc")
  const { stdout } = await promisify(execFile)(process.execPath, [tsc, "-p", project.folder])
    .catch((error: { readonly stdout: string }) => error)
  expect(stdout).toBe("")
})
