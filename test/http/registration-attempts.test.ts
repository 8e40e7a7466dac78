/** The last attempts of a push registration: what was sent, and what the receiver has answered. */
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { childOf, childrenOf, type Element, textOf } from "../../http/formats/xml/index.ts"
import { type LogItem, type StorageFailure, StorageUnavailable } from "../../runtime/index.ts"
import { owner } from "./mailbox-harness.ts"
import { type Received, type Receiver, startReceiver } from "./receiver.ts"
import { eventually, isActive, type Registrations,
  startRegistrations } from "./registrations-harness.ts"

/** Markup, a bidi override and a control character, as an attacker would answer them. */
const hostile = "<script>alert(1)</script></pre>\u202e\u0007\"'&"

const hiddenText = "The answer is not shown: its address is not public."

/** A page that is larger than the echo of a challenge may be. */
const page = `<!DOCTYPE html><title>Welcome</title>${"<p>Nothing here.</p>".repeat(1024)}`

const isChallenge = ({ method }: Received): boolean => method === "GET"

type ReadLog = Effect.Effect<ReadonlyArray<LogItem>, StorageFailure>

const asItIs = (read: ReadLog): ReadLog => read

/** What the service reads of logs. */
let readLog = asItIs

let service: Registrations
let receiver: Receiver

beforeAll(async () => {
  service = await startRegistrations((one) => ({
    ...one,
    system: { ...one.system, read: (...range) => readLog(one.system.read(...range)) }
  }))
  receiver = await startReceiver((received, response) => {
    if (received.path === "/turned") {
      response.writeHead(307, { Location: "/end" }).end()
    } else if (received.path.startsWith("/page")) {
      response.writeHead(200, { "Content-Type": "text/html" }).end(page)
    } else if (isChallenge(received) && !received.path.startsWith("/deaf")) {
      const { searchParams } = new URL(received.path, "http://any.test")
      response.end(searchParams.get("hub.challenge") ?? "")
    } else {
      response.writeHead(isChallenge(received) ? 404 : 500, {
        "Content-Type": "text/plain; charset=utf-8",
        "Set-Cookie": "session=of-the-receiver",
        "X-Request-Id": "r7"
      }).end(hostile)
    }
  })
})
afterAll(async () => {
  await service.close()
  await receiver.close()
})

const get = (href: string, accept = "application/xml", basic = owner) =>
  service.send("GET", href, { basic, accept })

/** Polls until there are so many attempts. */
const attemptsOf = async (
  href: string,
  count: number,
  basic = owner
): Promise<ReadonlyArray<Element>> => {
  const { xml } = await eventually(
    () => get(`${href}/attempts`, "application/xml", basic),
    (answer) => {
      expect(answer.status).toBe(200)
      return childrenOf(answer.xml, "attempt").length >= count
    }
  )
  return childrenOf(xml, "attempt")
}

interface Failing {
  readonly href: string
  readonly password: string
  /** The first push and, after it, the verification before: a repeated push is newer. */
  readonly attempts: ReadonlyArray<Element>
}

const firstOf = (attempts: ReadonlyArray<Element>): ReadonlyArray<Element> => attempts.slice(-2)

/** An active registration at a new mailbox of an account, whose pushes fail. */
const failing = async (
  name: string,
  { account = owner, byPassword = false }: {
    readonly account?: string
    readonly byPassword?: boolean
  } = {}
): Promise<Failing> => {
  const body = `<mailbox><name>${name}</name></mailbox>`
  const opened = await service.send("POST", "/mailboxes", { basic: account, body })
  const mailbox = opened.header("location")
  const password = opened.child("password") ?? ""
  const basic = byPassword ? `any:${password}` : account
  const made = await service.register(mailbox, `${receiver.origin}/${name}`, { basic })
  const href = made.header("location")
  await eventually(() => get(href, "application/xml", account), isActive)
  await service.deposit(mailbox, "something new")
  return { href, password, attempts: firstOf(await attemptsOf(href, 2, account)) }
}

const headersIn = (part: Element | undefined): Readonly<Record<string, string>> =>
  Object.fromEntries(
    childrenOf(part ?? { name: "", attributes: {}, children: [] }, "header")
      .map((header) => [header.attributes["name"] ?? "", textOf(header)])
  )

describe("GET …/registrations/{registration}/attempts", () => {
  it("shows what was sent and what was answered, the newest first", async () => {
    const { attempts, href } = await failing("debugged")
    const [push, verification] = attempts
    expect(verification?.attributes).toMatchObject({
      kind: "verification",
      code: "200",
      follows: "done"
    })
    expect(push?.attributes).toMatchObject({ kind: "push", code: "500", follows: "schedule" })
    expect(Date.parse(push?.attributes["at"] ?? "")).not.toBeNaN()
    expect(push?.attributes["duration"]).toMatch(/^\d+$/)
    expect(textOf(childOf(push as Element, "problem") as Element)).toBe("answered 500")
    const sent = headersIn(childOf(push as Element, "request"))
    const [received] = receiver.received.filter(({ method, path }) =>
      method === "POST" && path === "/debugged"
    )
    for (const name of ["webhook-id", "webhook-timestamp", "content-type"]) {
      expect([name, sent[name]]).toEqual([name, received?.headers[name]])
    }
    // A whole signature would let every reader send the push again.
    const signature = String(received?.headers["webhook-signature"])
    expect(sent["webhook-signature"]).toBe(`${signature.slice(0, "v1,".length + 8)}…`)
    expect(sent).not.toHaveProperty("authorization")
    const answer = childOf(push as Element, "answer")
    expect(headersIn(answer)).toMatchObject({ "x-request-id": "r7" })
    expect(headersIn(answer)).not.toHaveProperty("set-cookie")
    // XML cannot hold the control character: the text is shown as JSON.
    expect(textOf(childOf(answer as Element, "body") as Element)).toBe(JSON.stringify(hostile))
    const { json, text } = await get(`${href}/attempts`, "application/json")
    expect(json).toMatchObject({ href: `${href}/attempts` })
    const { attempt: inJson } = JSON.parse(text) as { readonly attempt: ReadonlyArray<unknown> }
    expect(inJson.slice(-2)).toMatchObject([
      { kind: "push", problem: "answered 500", answer: { body: JSON.stringify(hostile) } },
      { kind: "verification" }
    ])
    const linked = await get(href)
    expect(linked.header("link")).toContain(`<${href}/attempts>; rel="related"`)
  })

  it("are explained in the list of registrations, as in the document of one", async () => {
    const { href } = await failing("listed")
    const list = href.slice(0, href.lastIndexOf("/"))
    const names = ["cursor", "last", "code", "problem"] as const
    const entryIn = ({ text }: { readonly text: string }) => JSON.parse(text).registration[0]
    const inJson = entryIn(
      await eventually(
        () => get(list, "application/json"),
        (answer) => entryIn(answer).next !== undefined
      )
    )
    expect(inJson).toMatchObject({ href, cursor: "0", code: "500", problem: "answered 500" })
    const [entry] = childrenOf((await get(list)).xml, "registration")
    expect(textOf(childOf(entry as Element, "problem") as Element)).toBe("answered 500")
    const one = JSON.parse((await get(href, "application/json")).text)
    expect(Object.keys(inJson)).toEqual(expect.arrayContaining([...names]))
    expect(Object.keys(one)).toEqual(expect.arrayContaining([...names]))
  })

  it("shows what a test was, in the document and on both pages", async () => {
    const { href } = await failing("tried")
    const { xml } = await service.send("POST", `${href}/test`, { basic: owner })
    expect(childOf(xml, "test")?.attributes).toMatchObject({ status: "failed", code: "500" })
    const all = childrenOf((await get(`${href}/attempts`)).xml, "attempt")
    const attempt = all.find(({ attributes }) => attributes["kind"] === "test") as Element
    expect(attempt.attributes).toMatchObject({ code: "500", follows: "none" })
    expect(attempt.attributes).not.toHaveProperty("next")
    const sent = headersIn(childOf(attempt, "request"))
    expect(sent["webhook-id"]).toMatch(/^msg_/)
    expect(sent["webhook-signature"]).toMatch(/^v1,.{8}…$/)
    const answer = childOf(attempt, "answer") as Element
    expect(textOf(childOf(answer, "body") as Element)).toBe(JSON.stringify(hostile))
    expect(headersIn(answer)).not.toHaveProperty("set-cookie")
    const page = await get(`${href}/attempts`, "text/html")
    expect(page.text).toContain("✗ 500</span> test</p>")
    expect(page.text).toContain("next attempt none: a test is not repeated")
    expect((await get(href, "text/html")).text).toContain("✗ 500</span> test</p>")
  })

  it("shows the start of what is no echo of the challenge", async () => {
    const mailbox = await service.open("welcoming")
    const made = await service.register(mailbox.href, `${receiver.origin}/page`)
    const [attempt] = await attemptsOf(made.header("location"), 1)
    expect(attempt?.attributes).toMatchObject({ kind: "verification" })
    const answer = childOf(attempt as Element, "answer")
    expect(answer?.attributes).toMatchObject({ cut: "true" })
    expect(textOf(childOf(answer as Element, "body") as Element)).toBe(page.slice(0, 4096))
  })

  it("says how many redirects were followed", async () => {
    const { attempts, href } = await failing("turned")
    const [push, verification] = attempts
    expect(push?.attributes).toMatchObject({ code: "500", redirects: "1" })
    expect(verification?.attributes).not.toHaveProperty("redirects")
    const shown = await get(`${href}/attempts`, "text/html")
    expect(shown.text).toContain("ms · after 1 redirect · next attempt")
  })

  it("shows hostile text as text, on its page and on that of the registration", async () => {
    const { href } = await failing("hostile")
    const shown = await get(`${href}/attempts`, "text/html")
    expect(shown.status).toBe(200)
    expect(shown.text).not.toContain("<script>alert")
    expect(shown.text).toContain("&lt;script&gt;alert(1)&lt;/script&gt;&lt;/pre&gt;")
    expect(shown.text).not.toContain("\u0007")
    expect(shown.text).toMatch(/<pre dir="auto">\n[^<]*webhook-signature: v1,[^<]{8}…/)
    const short = await get(href, "text/html")
    expect(short.text).toContain("Last attempts")
    expect(short.text).toContain("✗ 500")
    expect(short.text).toContain(`${new URL(href).pathname}/attempts`)
    expect(short.text).not.toContain("alert(1)")
  })

  it("shows no answer of a private address to whoever registered by a password", async () => {
    const { attempts } = await failing("inside", { byPassword: true })
    const [push, verification] = attempts
    for (const attempt of [push, verification]) {
      expect(attempt?.attributes["code"]).toMatch(/^[25]00$/)
      expect(attempt?.attributes["duration"]).toMatch(/^\d+$/)
      expect(childOf(attempt as Element, "answer")).toBeUndefined()
    }
    expect(headersIn(childOf(push as Element, "request"))).toHaveProperty("webhook-id")
  })

  it("shows none either after a password has moved the owner's callback", async () => {
    const mailbox = await service.open("moved")
    const made = await service.register(mailbox.href, `${receiver.origin}/first`)
    const href = made.header("location")
    await service.until(href, isActive)
    const basic = `any:${mailbox.password}`
    const body = `<registration><callback>${receiver.origin}/deaf</callback></registration>`
    expect((await service.send("PUT", href, { basic, body })).status).toBe(200)
    const [attempt] = await attemptsOf(href, 2)
    expect(attempt?.attributes).toMatchObject({ code: "404", follows: "given-up" })
    expect(childOf(attempt as Element, "answer")).toBeUndefined()
  })

  /** That no representation of the attempts has an answer for this reader. */
  const expectNoAnswer = async (href: string, basic: string): Promise<void> => {
    const [push, verification] = firstOf(await attemptsOf(href, 2, basic))
    for (const attempt of [push, verification]) {
      expect(attempt?.attributes["code"]).toMatch(/^[25]00$/)
      expect(childOf(attempt as Element, "answer")).toBeUndefined()
    }
    expect(headersIn(childOf(push as Element, "request"))).toHaveProperty("webhook-id")
    const shown = await get(`${href}/attempts`, "text/html", basic)
    expect(shown.text).toContain(hiddenText)
    for (const accept of ["text/html", "application/json", "application/xml"]) {
      for (const uri of [href, `${href}/attempts`]) {
        const { status, text } = await get(uri, accept, basic)
        expect(status).toBe(200)
        expect(text).not.toContain("alert(1)")
        expect(text).not.toContain("x-request-id")
      }
    }
  }

  it("shows no answer of a private address to an owner who is no admin", async () => {
    const { href } = await failing("ordinary", { account: service.bob })
    await expectNoAnswer(href, service.bob)
  })

  it("shows those that an admin sees of the own mailbox to no reader by its password", async () => {
    const { attempts, href, password } = await failing("read-by-password")
    const answer = childOf(attempts[0] as Element, "answer")
    expect(textOf(childOf(answer as Element, "body") as Element)).toContain("alert(1)")
    await expectNoAnswer(href, `any:${password}`)
  })

  it("leaves out what a newer version has stored and this one cannot read", async () => {
    const { href } = await failing("newer")
    const before = await attemptsOf(href, 2)
    const changed = (item: LogItem, at: number): LogItem =>
      at === 0 ? { ...item, value: "{\"kind\":7}" } : item
    readLog = (read) => Effect.map(read, (items) => items.map(changed))
    try {
      const after = await attemptsOf(href, before.length - 1)
      expect(after.map(({ attributes }) => attributes["kind"])).not.toContain("verification")
      expect((await get(href, "text/html")).status).toBe(200)
    } finally {
      readLog = asItIs
    }
  })

  it("is no part of a change, which does not fail with it", async () => {
    const { href } = await failing("changed")
    const before = await get(href, "text/html")
    expect(before.text).toContain("Last attempts")
    readLog = () => Effect.fail(new StorageUnavailable({ detail: "planned" }))
    try {
      expect((await get(`${href}/attempts`)).status).toBe(503)
      // Only the page shows attempts.
      expect((await get(href)).status).toBe(200)
      const body = JSON.stringify({ status: "paused" })
      const sending = { basic: owner, body, type: "application/json", accept: "text/html" }
      const put = await service.send("PUT", href, sending)
      expect(put.status).toBe(200)
      expect(put.text).toContain("paused")
    } finally {
      readLog = asItIs
    }
    expect((await get(href)).xml.attributes["status"]).toBe("paused")
  })

  it("is for those who may read the registration, and ends with it", async () => {
    const { href } = await failing("guarded")
    const uri = `${href}/attempts`
    expect((await service.send("GET", uri)).status).toBe(401)
    const mailbox = await service.open("other-mailbox")
    const basic = `any:${mailbox.password}`
    expect((await service.send("GET", uri, { basic })).status).toBe(401)
    expect((await service.send("DELETE", href, { basic: owner })).status).toBe(204)
    expect((await get(uri)).status).toBe(410)
    expect((await get(`${mailbox.href}/registrations/${"x".repeat(22)}/attempts`)).status).toBe(404)
  })
})
