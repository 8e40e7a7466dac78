/** The Go client: its module, generated and compiled, against the service, and its page. */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import type { Client, Mailbox } from "../../client/index.ts"
import { toolOf } from "../deploy/tools.ts"
import { blocksOf, root } from "../docs/pages.ts"
import { cleanUp, temporaryFolder } from "../e2e/process.ts"
import { closeReceivers, receiver } from "../e2e/receivers.ts"
import { endPrograms, type Program, runProgram } from "../foreign/program.ts"
import { adminToken } from "../http/harness.ts"
import { startCutting } from "./cutting.ts"
import { expectShown, type Here, inputOf, numbers, registeredAt, startHere } from "./services.ts"

const page = "client/go/README.md"
/** The generated code has 47,000 lines. */
const builtWithinMs = 600_000
const folder = temporaryFolder()
const blocks = blocksOf(page)

let here: Here
let admin: Client

const ran = async (
  command: string,
  args: ReadonlyArray<string>,
  cwd = folder
): Promise<Program> => {
  const program = await runProgram(command, args, { cwd, withinMs: builtWithinMs })
  expect([program.code, program.errors]).toEqual([0, expect.any(String)])
  return program
}

/** A program of this source in a module of its own, set up with the commands of the page. */
const compiled = async (name: string, write: (file: string) => void): Promise<string> => {
  const module = join(folder, name)
  mkdirSync(module)
  await ran("go", ["mod", "init", `restante.test/${name}`], module)
  write(join(module, "main.go"))
  const commands = blocks.filter(({ language }) => language === "sh").map(({ text }) => text)
  expect(commands).toHaveLength(2)
  const setUp = (commands[1] ?? "").replace("/path/of/dist/go", join(root, "dist/go"))
  await ran("sh", ["-ec", setUp], module)
  await ran("go", ["build", "-o", "program", "."], module)
  return join(module, "program")
}

let scenarios = ""

beforeAll(async () => {
  toolOf("go", "golang-go")
  here = await startHere()
  admin = here.admin
  // The project is built already: what is left of `npm run build:go`.
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
  expect(manifest.scripts["build:go"]).toBe("npm run build && node deploy/generate/go-client.mjs")
  expect(blocks.find(({ language }) => language === "sh")?.text).toBe("npm run build:go\n")
  await ran("node", ["deploy/generate/go-client.mjs"], root)
  scenarios = await compiled("scenarios", (file) => {
    copyFileSync(join(root, "test/client/go_scenarios.go"), file)
  })
}, 2 * builtWithinMs)

afterAll(async () => {
  endPrograms()
  closeReceivers()
  await here.close()
  cleanUp()
})

/** What a scenario prints. */
const scenario = async (name: string, ...args: ReadonlyArray<string>) =>
  JSON.parse((await ran(scenarios, [name, ...args])).output)

const watched = (url: string, mailbox: string, count: number, options: object = {}) =>
  scenario("watches", url, adminToken, mailbox, String(count), JSON.stringify(options))

const open = async (name: string, count = 0): Promise<Mailbox> => {
  const { mailbox } = await admin.openMailbox({ name })
  for (let n = 0; n < count; n++) await mailbox.deposit(inputOf(n))
  return mailbox
}

it("is formatted, and has no finding of go vet", async () => {
  const files = [join(root, "client/go"), join(root, "test/client/go_scenarios.go")]
  expect((await ran("gofmt", ["-l", ...files])).output).toBe("")
  await ran("go", ["vet", "."], join(root, "dist/go"))
}, builtWithinMs)

it("has a method for each operation of programs", async () => {
  const document = readFileSync(join(root, "dist/go/openapi.json"), "utf8")
  const ids = [...document.matchAll(/"operationId":"(\w)(\w+)"/g)].map(([, first = "", rest]) =>
    `${first.toUpperCase()}${rest}`
  )
  const generated = readFileSync(join(root, "dist/go/generated/client.go"), "utf8")
  const missing = ids.filter((id) =>
    !new RegExp(`^func \\(c \\*Client(?:WithResponses)?\\) ${id}(?:WithBody)?\\(`, "m")
      .test(generated)
  )
  expect([missing, ids.length > 100]).toEqual([[], true])
})

it("makes errors of problems, and reads documents", async () => {
  expect(await scenario("raises", here.url, adminToken))
    .toEqual(["NotFound", "Unauthenticated", true, true])
})

it("watches each notification once, in order, over cut connections", async () => {
  await open("go-cut", 12)
  const proxy = await startCutting(() => here.port, (n) => 1000 + 400 * n)
  try {
    const all = await watched(proxy.url, "go-cut", 12)
    expect(all.found).toEqual(numbers(12))
    expect(all.lost).toBeGreaterThan(1)
  } finally {
    proxy.close()
  }
  const first = await watched(here.url, "go-cut", 2)
  const next = await watched(here.url, "go-cut", 10, { After: first.cursor })
  expect([next.found, next.lost]).toEqual([numbers(10, 2), 0])
  const since = await watched(here.url, "go-cut", 12, { After: "2020-01-01T00:00:00Z" })
  expect(since.found).toEqual(numbers(12))
})

it("sends the token to the service alone, also where that redirects", async () => {
  const received: Array<string | undefined> = []
  const other = await receiver(({ headers }, response) => {
    received.push(headers.authorization)
    response.writeHead(404).end()
  })
  const redirecting = await receiver(({ headers, path }, response) => {
    received.push(headers.authorization)
    response.writeHead(307, { location: other + path }).end()
  })
  await watched(redirecting, "go-redirected", 1)
  expect(received).toEqual([`Bearer ${adminToken}`, undefined])
})

it("removes what the loop has handled, and not what it has not", async () => {
  const mailbox = await open("go-acknowledged", 4)
  const { found } = await watched(here.url, mailbox.href, 3, { Acknowledge: true })
  expect(found).toEqual(numbers(3))
  const { notifications } = await mailbox.read()
  expect(notifications.map(({ description }) => description)).toEqual(numbers(2, 2))
})

it("ends with an error that is recognized when waiting would not help", async () => {
  const elsewhere = await open("go-elsewhere", 1)
  await open("go-final", 1)
  const { cursor } = await elsewhere.read()
  const ends = [
    await watched(here.url, "absent", 1),
    await watched(here.url, "go-final", 1, { Password: "wrong" }),
    await watched(here.url, "go-final", 2, { After: cursor }),
    await watched("http://127.0.0.1:9", "go-final", 1),
    await watched(here.url, "http://127.0.0.1:9/mailboxes/go-final", 1)
  ].map(({ end }) => end)
  expect(ends).toEqual([
    "NotFound",
    "Unauthenticated",
    "UnknownCursor",
    expect.stringContaining("refused"),
    expect.stringContaining("it is no mailbox of")
  ])
})

it("reads what strangers add to an item by its own names", async () => {
  const mailbox = await open("go-strange")
  const own = "<description>d</description><url>http://a.test/</url>"
  const item = `<item xmlns:x="urn:x"><x:description>y</x:description>${own}</item>`
  const answer = await fetch(mailbox.href, {
    method: "POST",
    headers: { "content-type": "text/xml+rss" },
    body: `<notification>${item}</notification>`
  })
  expect(answer.status).toBe(202)
  const { found, names } = await watched(here.url, "go-strange", 1)
  expect([found, names]).toEqual([["d"], [["description", "url", "x:description"]]])
})

it("verifies the signatures of the service, and refuses wrong and old ones", async () => {
  const { mailbox, next, registration, secret } = await registeredAt(admin, "go-pushes")
  const first = await next(() => mailbox.deposit(inputOf(1)))
  const newer = await registration.renewSecret()
  const test = await next(() => registration.test())
  const at = (seconds: number | string) => ({
    ...first.headers,
    "webhook-timestamp": String(seconds)
  })
  const longAgo = Number(first.headers["webhook-timestamp"]) - 1_000
  const { "webhook-id": _, ...withoutId } = first.headers
  const right = [mailbox.href, numbers(1, 1), false]
  const cases: ReadonlyArray<readonly [object, unknown]> = [
    [{ ...first, secrets: [secret] }, right],
    [{ ...first, secrets: [secret.slice(6)] }, right],
    [{ ...first, secrets: [newer, secret] }, right],
    [{ ...test, secrets: [newer] }, [mailbox.href, [], true]],
    [{ ...first, secrets: [newer] }, "wrong"],
    [{ ...first, secrets: [] }, "wrong"],
    [{ ...first, body: `${first.body}\n`, secrets: [secret] }, "wrong"],
    [{ ...first, headers: withoutId, secrets: [secret] }, "missing"],
    [{ ...first, headers: at("1e9"), secrets: [secret] }, "malformed"],
    [{ ...first, headers: at(longAgo), secrets: [secret] }, "stale"],
    [{ ...first, secrets: ["whsec_"] }, expect.stringContaining("copy all of it")]
  ]
  const file = join(folder, "pushes.json")
  writeFileSync(file, JSON.stringify(cases.map(([one]) => one)))
  expect(await scenario("verifies", file)).toEqual(cases.map(([, result]) => result))
})

it("has a page whose examples print what it shows", async () => {
  const { mailbox, next, secret } = await registeredAt(admin, "go-page")
  const push = await next(() =>
    mailbox.deposit({ description: "About the car", url: "http://a.test/" })
  )
  const mark = "=== example"
  const codes = blocks.filter(({ language }) => language === "go").map(({ text }) =>
    `fmt.Println("${mark}")\n${text.replaceAll("http://localhost:8080", here.url)}`
  )
  const imports = ["context", "errors", "fmt", "log", "net/http", "restante", "restante/generated"]
  const fields = Object.entries(push.headers).map(([name, value]) =>
    `HEADER.Set(${JSON.stringify(name)}, ${JSON.stringify(String(value))})`
  )
  const program = await compiled("page", (file) => {
    writeFileSync(
      file,
      [
        "package main",
        `import (${imports.map((name) => JSON.stringify(name)).join("; ")})`,
        "func main() {",
        "ctx, HEADER := context.Background(), http.Header{}",
        `TOKEN, SECRET := ${JSON.stringify(adminToken)}, ${JSON.stringify(secret)}`,
        `BODY := []byte(${JSON.stringify(push.body)})`,
        ...fields,
        ...codes,
        "}"
      ].join("\n")
    )
  })
  const printed = (await ran(program, [])).output.split(`${mark}\n`).slice(1)
  const shown = blocks.filter(({ language }) => language === "text").map(({ text }) => text)
  expectShown(printed, shown, here.url)
}, builtWithinMs)
