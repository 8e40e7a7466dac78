/** The Python client: its wheel in a virtual environment, against the service, and its page. */
import { spawn } from "node:child_process"
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Client, Mailbox } from "../../client/index.ts"
import { blocksOf, root } from "../docs/pages.ts"
import { cleanUp, eventually, temporaryFolder } from "../e2e/process.ts"
import { closeReceivers } from "../e2e/receivers.ts"
import { openapiPythonClient } from "../foreign/openapi/index.ts"
import { endPrograms, type Program, runProgram } from "../foreign/program.ts"
import { adminToken } from "../http/harness.ts"
import { startCutting } from "./cutting.ts"
import { expectShown, type Here, inputOf, numbers, registeredAt, startHere } from "./services.ts"

const page = "client/python/README.md"
const builtWithinMs = 280_000
// What hangs fails after a minute.
const pollWithinMs = 10_000
const folder = temporaryFolder()
const python = join(folder, "venv/bin/python")
const scenarios = join(root, "test/client/python_scenarios.py")

let here: Here
let admin: Client

const ran = async (command: string, args: ReadonlyArray<string>): Promise<Program> => {
  const program = await runProgram(command, args, { cwd: folder, withinMs: builtWithinMs })
  expect([program.code, program.errors]).toEqual([0, expect.any(String)])
  return program
}

/** The commands of the page, as a reader types them. */
const commands = blocksOf(page).filter(({ language }) => language === "sh").map(({ text }) => text)

beforeAll(async () => {
  here = await startHere()
  admin = here.admin
  // The project is built already: what is left of `npm run build:python`.
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
  const script = "npm run build && node deploy/generate/python-client.mjs"
  expect(manifest.scripts["build:python"]).toBe(script)
  expect(commands).toHaveLength(2)
  expect(commands[0]).toBe("npm run build:python\n")
  symlinkSync(join(root, "dist"), join(folder, "dist"))
  await ran("sh", ["-c", `cd '${root}' && node deploy/generate/python-client.mjs`])
  await ran("sh", ["-ec", commands[1] ?? ""])
}, 2 * builtWithinMs)

afterAll(async () => {
  endPrograms()
  closeReceivers()
  await here.close()
  cleanUp()
})

/** What a scenario prints. */
const scenario = async (name: string, ...args: ReadonlyArray<string>) => {
  const { errors, output } = await ran(python, [scenarios, name, ...args])
  if (output === "") throw new Error(errors)
  return JSON.parse(output)
}

let opened = 0

const open = async (count = 0): Promise<{ readonly name: string; readonly mailbox: Mailbox }> => {
  const name = `python-${++opened}`
  const { mailbox } = await admin.openMailbox({ name })
  for (let n = 0; n < count; n++) await mailbox.deposit(inputOf(n))
  return { name, mailbox }
}

describe("the wheel", () => {
  it("is made by the generator of the suite that calls every operation", () => {
    const { name, version } = openapiPythonClient.source
    expect(readFileSync(join(root, "client/python/pyproject.toml"), "utf8"))
      .toContain(`"${name}==${version}"`)
  })

  it("has a module for each operation of the document, and its version", async () => {
    const document: unknown = JSON.parse(
      readFileSync(join(root, "dist/python/openapi.json"), "utf8")
    )
    const ids = [...JSON.stringify(document).matchAll(/"operationId":"(\w+)"/g)]
    const { modules, version } = await scenario("describes")
    expect(modules).toBe(ids.length)
    expect(modules).toBeGreaterThan(100)
    expect(document).toMatchObject({ info: { version } })
  })
})

it("raises the errors of generated functions, with and without asyncio", async () => {
  expect(await scenario("raises", here.url, adminToken)).toEqual([
    ["NotFound", 404],
    ["NotFound", 404],
    ["Unavailable", 7],
    ["Unavailable", 9],
    ["TooManyRequests", null]
  ])
})

describe("a watch", () => {
  it("gets each notification once, in order, over cut connections", async () => {
    const { name } = await open(12)
    const proxy = await startCutting(() => here.port, (n) => 1000 + 400 * n)
    try {
      const all = await scenario("watches", proxy.url, adminToken, name, "12", "")
      expect(all.found).toEqual(numbers(12))
      expect(all.lost).toBeGreaterThan(1)
      const more = await scenario(
        "watches",
        here.url,
        adminToken,
        name,
        "12",
        "2020-01-01T00:00:00Z"
      )
      expect(more.found).toEqual(numbers(12))
    } finally {
      proxy.close()
    }
  })

  it("continues behind a cursor", async () => {
    const { mailbox, name } = await open(5)
    const first = await scenario("watches", here.url, adminToken, name, "2", "")
    expect(first.found).toEqual(numbers(2))
    await mailbox.deposit(inputOf(5))
    const next = await scenario("watches", here.url, adminToken, name, "4", first.cursor)
    expect([next.found, next.lost]).toEqual([numbers(4, 2), 0])
  })

  it("gets what comes after it began", async () => {
    const { mailbox, name } = await open(3)
    const child = spawn(python, [scenarios, "follows_now", here.url, adminToken, name])
    let output = ""
    child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text))
    const ended = new Promise((resolve) => child.once("close", resolve))
    await eventually(pollWithinMs, "an open stream", () => output.startsWith("open\n") || undefined)
    await mailbox.deposit(inputOf(3))
    await ended
    expect(JSON.parse(output.slice("open\n".length))).toEqual({ found: numbers(1, 3) })
  })

  it("reads what strangers add to an item by its own names", async () => {
    const { mailbox, name } = await open()
    const fields = "<description>d</description><url>http://a.test/</url>"
    const bodies = [
      `<item description="x" password="x">${fields}</item>`,
      `<item xmlns:x="urn:x">${fields}<x:url>y</x:url><x:password>y</x:password></item>`,
      `<item><description a="b"/><url>http://a.test/</url></item>`,
      `<item>${fields}<note><![CDATA[<!DOCTYPE html>]]></note><note>2</note></item>`
    ]
    for (const body of bodies) {
      const answer = await fetch(mailbox.href, {
        method: "POST",
        headers: { "content-type": "text/xml+rss" },
        body: `<notification>${body}</notification>`
      })
      expect(answer.status, body).toBe(202)
    }
    const url = "http://a.test/"
    expect(await scenario("items", here.url, adminToken, name, "4")).toEqual([
      ["d", null, { "@description": "x", "@password": "x", description: "d", url }],
      ["d", null, expect.objectContaining({ "x:url": "y", "x:password": "y", url })],
      ["", null, { description: { "@a": "b", text: "" }, url }],
      ["d", null, { description: "d", url, note: ["<!DOCTYPE html>", "2"] }]
    ])
  })

  it("pauses before each connection, whatever a proxy says", async () => {
    expect(await scenario("pauses_between")).toEqual({
      pauses: 3,
      none: false,
      end: ["UnexpectedAnswer", null]
    })
  })

  it("removes what the loop has handled, and not what it has not", async () => {
    const { mailbox, name } = await open(4)
    expect(await scenario("acknowledges", here.url, adminToken, name)).toEqual({
      found: numbers(2)
    })
    const { notifications } = await mailbox.read()
    expect(notifications.map(({ description }) => description)).toEqual(numbers(3, 1))
  })

  it("repeats a removal that failed, before it goes on", async () => {
    expect(await scenario("removes_again")).toEqual({
      log: ["GET a", "DELETE 1", "DELETE 1", "DELETE 1", "GET a", "DELETE 2"],
      end: ["Gone", 410]
    })
  })

  it("raises an error of a class for each failure that is final", async () => {
    const { name } = await open(1)
    const elsewhere = await open(1)
    const { cursor } = await elsewhere.mailbox.read()
    expect(await scenario("refuses", here.url, adminToken, name, cursor)).toEqual({
      absent: ["NotFound", 404],
      anonymous: ["Unauthenticated", 401],
      password: ["Unauthenticated", 401],
      cursor: ["UnknownCursor", 400],
      service: ["ConnectionFailed", null],
      elsewhere: [true, true, true, true, true],
      html: ["UnexpectedAnswer", null],
      final: ["ProblemError", 418]
    })
  })
})

it("verifies the signatures of the service, and refuses wrong and old ones", async () => {
  const { mailbox, next, registration, secret } = await registeredAt(admin, "python-pushes")
  const first = await next(() => mailbox.deposit(inputOf(1)))
  const newer = await registration.renewSecret()
  const second = await next(() => mailbox.deposit(inputOf(2)))
  const test = await next(() => registration.test())
  const nowS = Number(first.headers["webhook-timestamp"])
  const { "webhook-id": _, ...withoutId } = first.headers
  const cut = { ...first.headers, "webhook-signature": "v1,AAAA v1,?? v2,x" }
  const cases: ReadonlyArray<readonly [object, unknown]> = [
    [{ ...first, secrets: secret }, [mailbox.href, numbers(1, 1), false]],
    [{ ...first, secrets: secret.slice(6) }, [mailbox.href, numbers(1, 1), false]],
    [{ ...first, secrets: [newer, secret] }, [mailbox.href, numbers(1, 1), false]],
    [{ ...second, secrets: secret }, [mailbox.href, numbers(1, 2), false]],
    [{ ...second, secrets: newer }, [mailbox.href, numbers(1, 2), false]],
    [{ ...test, secrets: newer }, [mailbox.href, [], true]],
    [{ ...first, secrets: newer }, "wrong"],
    [{ ...first, secrets: secret, body: `${first.body}\n` }, "wrong"],
    [{ ...first, secrets: secret, headers: cut }, "wrong"],
    [{ ...first, secrets: [] }, "wrong"],
    [{ ...first, secrets: secret, headers: { ...first.headers, "webhook-id": "\udcff" } }, "wrong"],
    [{ ...first, secrets: secret, headers: withoutId }, "missing"],
    [
      { ...first, secrets: secret, headers: { ...first.headers, "webhook-timestamp": "1e9" } },
      "malformed"
    ],
    [{ ...first, secrets: secret, now: nowS + 301 }, "stale"],
    [{ ...first, secrets: secret, now: nowS - 301 }, "stale"],
    [{ ...first, secrets: secret, now: nowS + 300 }, [mailbox.href, numbers(1, 1), false]]
  ]
  const file = join(folder, "pushes.json")
  writeFileSync(file, JSON.stringify(cases.map(([one]) => one)))
  expect(await scenario("verifies", file)).toEqual([
    ...cases.map(([, result]) => result),
    "missing"
  ])
})

it("has a page whose examples print what it shows", async () => {
  const { mailbox, next, secret } = await registeredAt(admin, "python-page")
  const push = await next(() =>
    mailbox.deposit({ description: "About the car", url: "http://a.test/" })
  )
  const blocks = blocksOf(page).filter(({ language }) => /^(python|text)$/.test(language))
  const mark = "=== example"
  const codes = blocks.filter(({ language }) => language === "python").map(({ text }) =>
    `print("${mark}")\n${text.replaceAll("http://localhost:8080", here.url)}`
  )
  const given = [
    `TOKEN = ${JSON.stringify(adminToken)}`,
    `HEADERS = ${JSON.stringify(push.headers)}`,
    `BODY = ${JSON.stringify(push.body)}.encode()`,
    `SECRET = ${JSON.stringify(secret)}`
  ]
  mkdirSync(join(folder, "page"))
  const file = join(folder, "page/page.py")
  writeFileSync(file, [...given, ...codes].join("\n"))
  const { output } = await ran(python, [file])
  const printed = output.split(`${mark}\n`).slice(1)
  const shown = blocks.filter(({ language }) => language === "text").map(({ text }) => text)
  expectShown(printed, shown, here.url)
})
