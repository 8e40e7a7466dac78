/**
 * Type-checks and runs the examples of docs/client.md and client/README.md, and compares their
 * output with the page; and the program of README.md.
 */
import { execFile, spawn } from "node:child_process"
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { afterAll, beforeAll, expect, it } from "vitest"
import { blocksOf } from "../docs/pages.ts"
import { cleanUp, eventually, temporaryFolder } from "../e2e/process.ts"
import { adminToken } from "../http/harness.ts"
import { type Here, startHere } from "./services.ts"

let here: Here
beforeAll(async () => {
  here = await startHere()
})
afterAll(async () => {
  await here.close()
  cleanUp()
})

const run = promisify(execFile)
const root = fileURLToPath(new URL("../..", import.meta.url))
const written = "http://localhost:8080"

/** What hangs fails after a minute. */
const printedWithinMs = 60_000

/** Declarations that the page assumes: a callback server, an old push. */
const assumed = `
import { createServer } from "node:http"
const TOKEN = "${adminToken}"
const HEADERS = {
  "webhook-id": "msg_1",
  "webhook-timestamp": "1",
  "webhook-signature": "v1,AAAA"
}
const BODY = "<changed/>"
let handler: (request: Request) => Promise<Response> = () => Promise.resolve(new Response())
let pushed = () => {}
const isPushed = new Promise<void>((resolve) => pushed = resolve)
const serve = (receive: typeof handler): void => {
  handler = receive
}
const server = createServer(async (incoming, outgoing) => {
  const chunks: Array<Buffer> = []
  for await (const chunk of incoming) chunks.push(chunk)
  const { method = "", url = "" } = incoming
  const headers = new Headers()
  for (const [name, value] of Object.entries(incoming.headers)) headers.set(name, String(value))
  const body = method === "POST" ? { body: Buffer.concat(chunks).toString() } : {}
  const answer = await handler(new Request("http://localhost" + url, { method, headers, ...body }))
  outgoing.writeHead(answer.status).end(await answer.text())
  if (answer.status === 204) pushed()
})
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
const address = server.address()
const CALLBACK = "http://127.0.0.1:" + (typeof address === "object" ? address?.port : 0) + "/"
`

const mark = "=== example "

interface Example {
  readonly code: string
  readonly output: string
}

const examplesOf = (markdown: string): ReadonlyArray<Example> => {
  const examples: Array<{ code: string; output: string }> = []
  for (const [, language, text = ""] of markdown.matchAll(/^```(ts|text)\n([\s\S]*?)^```$/gm)) {
    const last = examples.at(-1)
    if (language === "ts") examples.push({ code: text, output: "" })
    else if (last !== undefined) last.output = text
  }
  return examples
}

const pattern = (output: string): RegExp => {
  const parts = output.trimEnd().split("…").map((part) =>
    part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")
  )
  return new RegExp(`^${parts.join("[^\\n]*")}$`)
}

/** The page as one program, which prints a mark before each example. */
const programOf = (examples: ReadonlyArray<Example>): string => {
  const imports = new Set<string>()
  const parts = examples.map(({ code }, n) => {
    const rest = code.replace(/^import .* from "@restante\/client"$/gm, (line) => {
      imports.add(line)
      return ""
    })
    // The order of pushes and other output varies.
    const wait = rest.includes("serve(pushReceiver") ? "await isPushed\n" : ""
    return `console.log("${mark}${n}")\n${rest}\n${wait}`
  })
  return [...imports, assumed, ...parts, "server.closeAllConnections(); server.close()"].join("\n")
}

const compilerOptions = {
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  target: "ES2022",
  module: "NodeNext",
  lib: ["ES2022"],
  types: ["node"],
  typeRoots: [join(root, "node_modules/@types")]
}

/** Each page is one program, and shows this number of outputs. */
const pages = [
  { page: "docs/client.md", file: "page", shown: 7 },
  { page: "client/README.md", file: "readme", shown: 1 }
].map((one) => ({ ...one, examples: examplesOf(readFileSync(join(root, one.page), "utf8")) }))

const folder = temporaryFolder()

/** The program of README.md, which watches until it is ended. */
const programs = blocksOf("README.md").filter(({ language }) => language === "ts")
  .map(({ text }) => text.replace("import ", `const TOKEN = "${adminToken}"\nimport `))

it("has examples that type-check", async () => {
  mkdirSync(join(folder, "node_modules/@restante"), { recursive: true })
  symlinkSync(join(root, "client"), join(folder, "node_modules/@restante/client"))
  const names = [...pages.map(({ file }) => file), "program"].map((name) => `${name}.ts`)
  const settings = JSON.stringify({ compilerOptions, files: names })
  writeFileSync(join(folder, "tsconfig.json"), settings)
  writeFileSync(join(folder, "package.json"), "{\"type\":\"module\"}")
  for (const { examples, file } of pages) {
    const text = programOf(examples).replaceAll(written, here.url)
    writeFileSync(join(folder, `${file}.ts`), text)
  }
  expect(programs).toHaveLength(1)
  writeFileSync(join(folder, "program.ts"), (programs[0] ?? "").replaceAll(written, here.url))
  const tsc = join(root, "node_modules/typescript/bin/tsc")
  const checked = await run(process.execPath, [tsc, "-p", folder, "--pretty", "false"])
    .catch((error) => error)
  expect(checked.stdout).toBe("")
})

it.each(pages)("has examples with the shown output: $page", async ({ examples, file, shown }) => {
  expect(examples.filter(({ output }) => output !== "").length).toBeGreaterThanOrEqual(shown)
  const ran: { readonly stderr: string; readonly stdout: string } = await run(
    process.execPath,
    [`${file}.js`],
    { cwd: folder, timeout: 25_000 }
  ).catch((error) => error)
  expect(ran.stderr).toBe("")
  const output = ran.stdout.replaceAll(here.url, written)
  const outputs = output.split(new RegExp(`^${mark}\\d+\\n`, "m")).slice(1)
  expect(outputs).toHaveLength(examples.length)
  examples.forEach(({ code, output }, n) => {
    expect(outputs[n]?.trimEnd(), code).toMatch(pattern(output))
  })
})

it("has a program in README.md, which prints each notification with its content", async () => {
  const { mailbox } = await here.admin.openMailbox({ name: "alice" })
  const child = spawn(process.execPath, ["program.js"], { cwd: folder })
  let output = ""
  let errors = ""
  child.stdout.setEncoding("utf8").on("data", (text: string) => output += text)
  child.stderr.setEncoding("utf8").on("data", (text: string) => errors += text)
  try {
    for (const n of [1, 2]) {
      const { href } = await here.admin.publish(`text ${n}`, { contentType: "text/plain" })
      await mailbox.deposit({ description: `letter ${n}`, url: href })
      await eventually(printedWithinMs, `letter ${n} is printed`, () => {
        if (child.exitCode !== null) throw new Error(errors)
        return output.includes(`letter ${n} text ${n}\n`) ? true : undefined
      })
    }
  } finally {
    child.kill()
  }
  expect(errors).toBe("")
})
