/** The export of an account: everything that it owns, and no secret (protocol §7). */
import { createHash, randomBytes } from "node:crypto"
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest"
import { childrenOf } from "../../http/formats/xml/index.ts"
import { exportLineBytes, exportPage, exportsAtOnceMax } from "../../http/limits.ts"
import { Exchange } from "../../http/wire/exchange.ts"
import { address } from "../../runtime/index.ts"
import { type Mailboxes, notification, owner as admin, startMailboxes } from "./mailbox-harness.ts"
import { quarantineActor, quarantineMailbox } from "./quarantined-actor.ts"

let service: Mailboxes

beforeAll(async () => void (service = await startMailboxes()))
afterAll(() => service.close())

const send: Mailboxes["send"] = (...request) => service.send(...request)

interface Joined {
  readonly basic: string
  readonly token: string
}

const join = async (name: string): Promise<Joined> => {
  const body = `<account><name>${name}</name></account>`
  const token = (await send("POST", "/accounts", { basic: admin, body })).child("token") ?? ""
  return { basic: `${name}:${token}`, token }
}

/** The path of what a request has created. */
const made = async (...request: Parameters<Mailboxes["send"]>): Promise<string> => {
  const answer = await send(...request)
  expect([201, 202], answer.text).toContain(answer.status)
  return new URL(answer.header("location")).pathname
}

interface Line extends Readonly<Record<string, string | number | undefined>> {
  readonly kind?: string
  readonly xml?: string
}

/** The lines of an export, without its first one; its end was checked. */
const exported = async (name: string, basic: string): Promise<ReadonlyArray<Line>> => {
  const answer = await send("GET", `/accounts/${name}/export`, { basic })
  expect([answer.status, answer.header("content-type")]).toEqual([200, "application/x-ndjson"])
  const texts = answer.text.trimEnd().split("\n")
  const [first, ...lines] = texts.map((text): Line => JSON.parse(text))
  expect(first).toMatchObject({ restante: "account-export", format: 1, account: name })
  const before = `${texts.slice(0, -1).join("\n")}\n`
  const sha256 = createHash("sha256").update(before).digest("hex")
  expect(lines.at(-1)).toEqual({ kind: "end", lines: texts.length - 1, sha256 })
  return lines.slice(0, -1)
}

const kindsOf = (lines: ReadonlyArray<Line>): Readonly<Record<string, number>> => {
  const counts: Record<string, number> = {}
  for (const { kind = "" } of lines) counts[kind] = (counts[kind] ?? 0) + 1
  return counts
}

const xmlOf = (lines: ReadonlyArray<Line>, kind: string): string =>
  lines.filter((line) => line.kind === kind).map(({ xml = "" }) => xml).join("\n")

/** Readers of streams receive one piece, and wait for `release`; `paces` has one of each. */
const holdStreams = () => {
  let release = () => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  const paces: Array<boolean | undefined> = []
  const replyStream = Exchange.prototype.replyStream
  const spied = vi.spyOn(Exchange.prototype, "replyStream").mockImplementation(
    function(this: Exchange, status, headers, lengthBytes, body, holdsPlace) {
      async function* held() {
        let isFirst = true
        for await (const line of body) {
          if (isFirst) paces.push(holdsPlace)
          isFirst = false
          yield line
          await released
        }
      }
      return replyStream.call(this, status, headers, lengthBytes, held(), holdsPlace)
    }
  )
  onTestFinished(() => spied.mockRestore())
  return { paces, release: () => release() }
}

describe("the export of an account", () => {
  it("has a line of everything that it owns, and of nothing of others", async () => {
    const { basic } = await join("mover")
    const opened = await send("POST", "/mailboxes", { basic, headers: { Slug: "mover-box" } })
    const box = "/mailboxes/mover-box"
    const count = 2 * exportPage + 1
    for (let n = 0; n < count; n++) await service.deposit(box, `word ${n}`)
    const blocked = "<block><account>bob</account><reason>noise</reason></block>"
    await made("POST", `${box}/blocks`, { basic, body: blocked })
    const callback = "<registration><callback>http://127.0.0.1:9/hook</callback></registration>"
    await made("POST", `${box}/registrations`, { basic, body: callback })
    const to = `<to>${service.base}${box}</to>`
    const sent = notification("sent words").replace("<notification>", `<notification>${to}`)
    const outgoing = await made("POST", "/outgoing/mover", { basic, body: sent })
    expect((await send("POST", `${outgoing}/withdrawal`, { basic })).status).toBe(202)
    const pauses = "<pauses><pause origin=\"https://receiver.example\"/></pauses>"
    await send("PUT", "/outgoing/mover/pauses", { basic, body: pauses })
    const list = `<cabinet><mailbox href="${box}"/></cabinet>`
    await made("POST", "/cabinets", { basic, body: list })
    const session = await made("POST", "/sessions", { basic, body: "<answer continue=\"true\"/>" })
    await send("PUT", `${session}/name`, { basic, body: "<answer>Patsy</answer>" })
    await made("POST", "/queries", { basic, body: "<query on=\"customers\"/>" })
    const words = randomBytes(2 * exportLineBytes + 100)
    const content = await made("POST", "/content", {
      basic,
      body: words,
      type: "application/x-words"
    })
    await send("POST", content, { body: "<receipt status=\"received\"/>" })
    await made("POST", "/content", { basic: service.bob, body: "others", type: "text/plain" })

    const lines = await exported("mover", basic)
    expect(kindsOf(lines)).toMatchObject({
      account: 1,
      pauses: 1,
      // With the one for its failure reports.
      mailbox: 2,
      block: 1,
      registration: 1,
      sent: 2,
      recipients: 1,
      cabinet: 1,
      session: 1,
      answer: 1,
      query: 1,
      content: 1,
      bytes: 3,
      "content-end": 1,
      receipt: 1
    })
    const notifications = xmlOf(lines, "notification")
    for (let n = 0; n < count; n++) expect(notifications).toContain(`word ${n}<`)
    expect(xmlOf(lines, "sent")).toContain("sent words")
    expect(xmlOf(lines, "sent")).toContain("<withdrawn>")
    expect(xmlOf(lines, "pauses")).toContain("origin=\"https://receiver.example\"")
    expect(xmlOf(lines, "answer")).toContain("Patsy")
    const bytes = lines.filter(({ kind }) => kind === "bytes")
      .map(({ base64 }) => Buffer.from(String(base64), "base64"))
    expect(Buffer.concat(bytes).equals(words)).toBe(true)
    expect(lines.find(({ kind }) => kind === "content"))
      .toMatchObject({ href: `${service.base}${content}`, length: words.length })
    expect(lines.find(({ kind }) => kind === "content-end")).toMatchObject({ state: "whole" })
    // Nothing is retrieved by it.
    expect(opened.status).toBe(201)
  })

  it("has no secret", async () => {
    const { basic, token } = await join("secretive")
    const opened = await send("POST", "/mailboxes", { basic, headers: { Slug: "secret-box" } })
    const secret = "a-password-of-a-message"
    const body = notification("m")
      .replace("</url>", `</url><password>${secret}</password>`)
    expect((await send("POST", "/mailboxes/secret-box", { body })).status).toBe(202)
    const to = `<to>${service.base}/mailboxes/secret-box</to>`
    const sent = body.replace("<notification>", `<notification>${to}`)
    await made("POST", "/outgoing/secretive", { basic, body: sent })
    const registered = await send("POST", "/mailboxes/secret-box/registrations", {
      basic,
      body: "<registration><callback>http://127.0.0.1:9/hook</callback></registration>"
    })
    const content = await send("POST", "/content", {
      basic,
      body: "words",
      type: "text/plain",
      headers: { "Message-Password": secret }
    })
    const edit = /~([\w-]+)>; rel="edit"/.exec(content.header("link"))?.[1]
    const answer = await send("GET", "/accounts/secretive/export", { basic })
    const password = opened.child("password")
    const signing = registered.child("secret")
    for (const one of [token, secret, password, signing, edit]) {
      expect(one?.length).toBeGreaterThan(10)
      expect(answer.text).not.toContain(one)
    }
  })

  it("goes on after an actor in quarantine, and says what it lacks", async () => {
    const { basic } = await join("dora")
    const box = await made("POST", "/mailboxes", { basic, headers: { Slug: "doras" } })
    await made("POST", "/mailboxes", { basic, headers: { Slug: "doras-second" } })
    await quarantineMailbox(service, "doras")
    await quarantineActor(service, address("outgoing-mailbox", "dora"))
    const answer = await send("GET", "/accounts/dora/export", { basic })
    const lines = answer.text.trimEnd().split("\n").map((text): Line => JSON.parse(text))
    expect(lines.filter(({ kind }) => kind === "unavailable")).toEqual([
      { kind: "unavailable", of: "pauses", id: "dora" },
      { kind: "unavailable", of: "mailboxes", id: box.split("/").at(-1) }
    ])
    const mailboxes = lines.filter(({ kind }) => kind === "mailbox").map(({ href }) => href)
    expect(mailboxes).toEqual([
      expect.stringContaining("/mailboxes/doras-second"),
      expect.stringContaining("/mailboxes/reports-")
    ])
    expect(lines.at(-1)).toMatchObject({ kind: "end", lines: lines.length - 1, unavailable: 2 })
  })

  it("is for the account itself and admins, and in the audit log", async () => {
    const { basic } = await join("private")
    const path = "/accounts/private/export"
    expect((await send("GET", path)).status).toBe(401)
    expect((await send("GET", path, { basic: service.bob })).status).toBe(403)
    // The account, and its mailbox for failure reports.
    for (const as of [basic, admin]) expect(await exported("private", as)).toHaveLength(2)
    const audit = await send("GET", "/audit?action=account.export&limit=1", { basic: admin })
    expect(childrenOf(audit.xml, "entry")[0]?.attributes)
      .toMatchObject({ account: "admin", outcome: "done", target: "/accounts/private" })
    expect((await send("GET", "/accounts/nobody/export", { basic: admin })).status).toBe(404)
    await send("DELETE", "/accounts/private", { basic: admin })
    expect((await send("GET", path, { basic: admin })).status).toBe(410)
  })

  it("is one of the account, and of a few, that a node makes at a time", async () => {
    const node = service.nodes[0] ?? ""
    const accounts = await Promise.all(
      Array.from({ length: exportsAtOnceMax + 1 }, (_, at) => join(`reader${at}`))
    )
    const read = (at: number, basic = accounts[at]?.basic ?? "") =>
      send("GET", `${node}/accounts/reader${at}/export`, { basic })
    const { paces, release } = holdStreams()
    const reading: Array<ReturnType<typeof read>> = []
    for (let at = 0; at < exportsAtOnceMax; at++) {
      reading.push(read(at))
      await vi.waitFor(() => expect(paces).toHaveLength(at + 1))
      const other = await read(at, admin)
      expect([other.status, other.text]).toEqual([409, expect.stringContaining("an export of")])
    }
    const last = await read(exportsAtOnceMax)
    expect([last.status, last.text])
      .toEqual([409, expect.stringContaining(`${exportsAtOnceMax} exports`)])
    release()
    for (const { status } of await Promise.all(reading)) expect(status).toBe(200)
    expect((await read(exportsAtOnceMax)).status).toBe(200)
    expect((await send("GET", `${node}/archive`, { basic: admin })).status).toBe(200)
    // A reader that is too slow loses each of these places.
    expect(paces).toEqual(Array.from({ length: exportsAtOnceMax + 2 }, () => true))
  })

  it.each([
    ["/accounts/racer/export", "account.export"],
    ["/archive", "backup.take"]
  ])(
    "that begins beside another one is refused, and the audit log has no trace of it: %s",
    async (path, action) => {
      await join("racer")
      const { release } = holdStreams()
      const read = () => send("GET", `${service.nodes[0] ?? ""}${path}`, { basic: admin })
      const exportsWith = async (outcome: string) => {
        const target = path.replace("/export", "")
        const filter = `action=${action}&target=${target}&outcome=${outcome}`
        const { xml } = await send("GET", `/audit?${filter}`, { basic: admin })
        return childrenOf(xml, "entry").length
      }
      const doneBefore = await exportsWith("done")
      const both = [read(), read()]
      expect((await Promise.race(both)).status).toBe(409)
      release()
      const statuses = (await Promise.all(both)).map(({ status }) => status)
      expect(statuses.toSorted()).toEqual([200, 409])
      expect(await exportsWith("done")).toBe(doneBefore + 1)
      expect(await exportsWith("begun")).toBe(doneBefore + 1)
    }
  )

  it("leaves its place when its client has left before the first byte", async () => {
    const { basic } = await join("leaving")
    const uri = `${service.nodes[0] ?? ""}/accounts/leaving/export`
    const spied = vi.spyOn(Exchange.prototype, "replyStream").mockImplementationOnce(
      function(this: Exchange) {
        this.reply({ status: 503, headers: [] })
        return Promise.resolve("aborted" as const)
      }
    )
    onTestFinished(() => spied.mockRestore())
    const authorization = `Basic ${Buffer.from(basic).toString("base64")}`
    expect((await fetch(uri, { headers: { authorization } })).status).toBe(503)
    expect((await send("GET", uri, { basic })).status).toBe(200)
    const unknown = "/audit?target=/accounts/leaving&outcome=unknown"
    await expect.poll(async () =>
      childrenOf((await send("GET", unknown, { basic: admin })).xml, "entry").length
    ).toBe(1)
  })
})
