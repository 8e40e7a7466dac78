/** Programs of projects that have installed `@restante/runtime`. */
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { nodeTypes, type Project } from "./package-projects.ts"
import { root, textOf } from "./sources.ts"

/** The types of Effect name some of the DOM, which a project has by default. */
const { lib: _, ...withDom } = nodeTypes

export const domTypes: object = withDom

/** Stricter than `strict`; the types of the clients of NATS do not pass it. */
export const stricter: object = {
  ...withDom,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true
}

const examples = "test/runtime/examples"
const httpExamples = "test/runtime/http/examples"

/** The entry that has what a file of the sources has. */
const entryOf = (path: string): string => {
  const [folder = "", file] = path.split("/")
  if (file === undefined) return path === "main.ts" ? "" : "/effect"
  if (folder === "http") return "/http"
  return file === "main.ts" ? `/${folder}` : `/effect/${folder}`
}

/** An example of the sources as a program of the project. */
const asProgram = (text: string): string =>
  text.replace(
    /"(?:\.\.\/)+runtime\/([^"]+)"/g,
    (_, path: string) => `"@restante/runtime${entryOf(path)}"`
  ).replace(/"(\.\/[^"]+)\.ts"/g, "\"$1.js\"")

const mainProgram = `import { Effect } from "effect"
import { program } from "./run.js"
console.log(await Effect.runPromise(program))
`

/** The examples of the README, and `main.ts`, which prints what they return. */
export const writeExamples = (project: Project): void => {
  for (const name of readdirSync(join(root, examples))) {
    project.write(name, asProgram(textOf(`${examples}/${name}`)))
  }
  project.write("main.ts", mainProgram)
}

const httpProgram = `import type { AddressInfo } from "node:net"
import { handler, node } from "./http-face.js"
import { serverOf } from "./http-server.js"

const server = serverOf(handler)
await new Promise<void>((resolve) => server.listen(0, resolve))
const { port } = server.address() as AddressInfo
const answer = await fetch(\`http://127.0.0.1:\${port}/actors/counter/alice\`, {
  method: "POST",
  headers: { authorization: "Bearer alices-token", "content-type": "application/json" },
  body: JSON.stringify({ _tag: "Add", by: 2 })
})
console.log(answer.status, await answer.text())
server.closeAllConnections()
server.close()
await node.stop()
`

/** The examples of the HTTP face, and `http.ts`, which asks their server and prints the answer. */
export const writeHttpExamples = (project: Project): void => {
  for (const name of readdirSync(join(root, httpExamples))) {
    const text = asProgram(textOf(`${httpExamples}/${name}`))
    // There is another counter in the project.
    project.write(`http-${name}`, text.replace(/"\.\/(\w+)\.js"/g, "\"./http-$1.js\""))
  }
  project.write("http.ts", httpProgram)
}

/** Adds 2 to the counter of the examples in a folder, and prints the sum. */
export const storedProgram = `import { Effect, Layer } from "effect"
import { address, singleNodePlacement, System } from "@restante/runtime/effect"
import { embedded } from "@restante/runtime/effect/embedded"
import { counter } from "./counter.js"

const node = System.layer({ behaviors: [counter] }).pipe(
  Layer.provide([embedded("data"), singleNodePlacement])
)
const program = Effect.gen(function*() {
  const system = yield* System
  return yield* system.ask(address("counter", "visits"), { _tag: "Add", by: 2 })
})
console.log(await Effect.runPromise(program.pipe(Effect.provide(node))))
`

/** The same on the NATS server of its first argument. */
export const natsProgram = `import { Effect, Layer } from "effect"
import { address, clusterPlacement, System } from "@restante/runtime/effect"
import { connection, hmacAuthenticator, natsPings, natsRegistry, natsStorage,
  natsTransport } from "@restante/runtime/effect/nats"
import { counter } from "./counter.js"

const [url = ""] = process.argv.slice(2)
const authenticator = hmacAuthenticator([new Uint8Array(32).fill(7)])
const placement = clusterPlacement({ node: "one", format: 1 }).pipe(
  Layer.provide([natsRegistry, natsPings(authenticator)])
)
const node = System.layer({ behaviors: [counter], format: 1 }).pipe(
  Layer.provide([natsStorage(), natsTransport(authenticator), placement]),
  Layer.provide(connection({ servers: [url], name: "one" }))
)
const program = Effect.gen(function*() {
  const system = yield* System
  return yield* system.ask(address("counter", "visits"), { _tag: "Add", by: 2 })
})
console.log(await Effect.runPromise(program.pipe(Effect.provide(node))))
`
