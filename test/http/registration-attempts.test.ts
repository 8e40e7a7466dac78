/** The last attempts of a push registration: what was sent, and what the receiver has answered. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { childOf, childrenOf, type Element, textOf } from "../../http/formats/xml/index.ts"
import { owner } from "./mailbox-harness.ts"
import { type Received, type Receiver, startReceiver } from "./receiver.ts"
import { isActive, type Registrations, startRegistrations } from "./registrations-harness.ts"

/** Markup, a bidi override and a control character, as an attacker would answer them. */
const hostile = "<script>alert(1)</script></pre>\u202e\u0007\"'&"

const isChallenge = ({ method }: Received): boolean => method === "GET"

let service: Registrations
let receiver: Receiver

beforeAll(async () => {
  service = await startRegistrations()
  receiver = await startReceiver((received, response) => {
    if (isChallenge(received) && !received.path.startsWith("/deaf")) {
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
const attemptsOf = async (href: string, count: number): Promise<ReadonlyArray<Element>> => {
  for (;;) {
    const { status, xml } = await get(`${href}/attempts`)
    expect(status).toBe(200)
    const found = childrenOf(xml, "attempt")
    if (found.length >= count) return found
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

/** An active registration at a new mailbox, whose pushes fail. */
const failing = async (
  name: string,
  as: { readonly basic: string } = { basic: owner }
): Promise<{ readonly href: string; readonly attempts: ReadonlyArray<Element> }> => {
  const mailbox = await service.open(name)
  const basic = as.basic === "" ? `any:${mailbox.password}` : as.basic
  const made = await service.register(mailbox.href, `${receiver.origin}/${name}`, { basic })
  const href = made.header("location")
  await service.until(href, isActive)
  await service.deposit(mailbox.href, "something new")
  return { href, attempts: await attemptsOf(href, 2) }
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
      sequel: "done"
    })
    expect(push?.attributes).toMatchObject({ kind: "push", code: "500", sequel: "schedule" })
    expect(Date.parse(push?.attributes["at"] ?? "")).not.toBeNaN()
    expect(push?.attributes["duration"]).toMatch(/^\d+$/)
    expect(textOf(childOf(push as Element, "problem") as Element)).toBe("answered 500")
    const sent = headersIn(childOf(push as Element, "request"))
    const [received] = receiver.received.filter(({ method, path }) =>
      method === "POST" && path === "/debugged"
    )
    for (const name of ["webhook-id", "webhook-timestamp", "webhook-signature", "content-type"]) {
      expect([name, sent[name]]).toEqual([name, received?.headers[name]])
    }
    expect(sent).not.toHaveProperty("authorization")
    const answer = childOf(push as Element, "answer")
    expect(headersIn(answer)).toMatchObject({ "x-request-id": "r7" })
    expect(headersIn(answer)).not.toHaveProperty("set-cookie")
    // XML cannot hold the control character: the text is shown as JSON.
    expect(textOf(childOf(answer as Element, "body") as Element)).toBe(JSON.stringify(hostile))
    const { json } = await get(`${href}/attempts`, "application/json")
    expect(json).toMatchObject({
      href: `${href}/attempts`,
      attempt: [
        { kind: "push", problem: "answered 500", answer: { body: JSON.stringify(hostile) } },
        { kind: "verification" }
      ]
    })
    const linked = await get(href)
    expect(linked.header("link")).toContain(`<${href}/attempts>; rel="related"`)
  })

  it("shows hostile text as text, on its page and on that of the registration", async () => {
    const { href } = await failing("hostile")
    const page = await get(`${href}/attempts`, "text/html")
    expect(page.status).toBe(200)
    expect(page.text).not.toContain("<script>alert")
    expect(page.text).toContain("&lt;script&gt;alert(1)&lt;/script&gt;&lt;/pre&gt;")
    expect(page.text).not.toContain("\u0007")
    expect(page.text).toMatch(/<pre dir="auto">\n[^<]*webhook-signature: v1,/)
    const short = await get(href, "text/html")
    expect(short.text).toContain("Last attempts")
    expect(short.text).toContain("✗ 500")
    expect(short.text).toContain(`${new URL(href).pathname}/attempts`)
    expect(short.text).not.toContain("alert(1)")
  })

  it("shows no answer of a private address to whoever registered by a password", async () => {
    const { attempts } = await failing("inside", { basic: "" })
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
    expect(attempt?.attributes).toMatchObject({ code: "404", sequel: "given-up" })
    expect(childOf(attempt as Element, "answer")).toBeUndefined()
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
