/** Checks of signatures by the service (protocol §1.4): real pushes, and who may ask. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { readSecretsFormat } from "../../actors/index.ts"
import { checkedBodyCharsMax, headerBlockBytesMax } from "../../http/limits.ts"
import { newBrowser } from "../actors/web-push.ts"
import { owner } from "./mailbox-harness.ts"
import { eventually, formType, isActive, type Received, type Registrations, startRegistrations,
  startSubscriber, type Subscriber } from "./registrations-harness.ts"

let format = readSecretsFormat
let service: Registrations
let subscriber: Subscriber
let mailbox = ""
let password = ""
let href = ""
let secret = ""
let push: Received
let deposits = 0

const headersOf = ({ headers }: Received): string =>
  Object.entries(headers).map(([name, value]) => `${name}: ${String(value)}`).join("\r\n")

/** The next push to a callback after a deposit. */
const pushTo = async (callback: string): Promise<Received> => {
  const { length } = subscriber.pushes(callback)
  // A mailbox recognizes a document that it has.
  await service.deposit(mailbox, `Grüße,\nzwei Zeilen, ${++deposits}`)
  const all = await eventually(() => subscriber.pushes(callback), (found) => found.length > length)
  const newest = all.at(-1)
  if (newest === undefined) throw new Error("there is no push")
  return newest
}

beforeAll(async () => {
  service = await startRegistrations((one) => ({
    ...one,
    system: { ...one.system, format: () => format }
  }))
  subscriber = await startSubscriber()
  const opened = await service.open("checked")
  mailbox = opened.href
  password = opened.password
  const callback = subscriber.at("echo")
  const made = await service.register(mailbox, callback)
  href = made.header("location")
  secret = made.child("secret") ?? ""
  await service.until(href, isActive)
  push = await pushTo(callback)
})
afterAll(async () => {
  await service.close()
  await subscriber.close()
})

interface Asked {
  readonly headers?: string
  readonly body?: string
  readonly basic?: string | undefined
  readonly accept?: string
  readonly at?: string
}

/** The form of the page, as a browser sends it. */
const check = (
  { at = href, basic = owner, body = push.body, headers = headersOf(push), ...rest }: Asked = {}
) => {
  const fields = { headers, body: body.replace(/\r?\n/g, "\r\n") }
  return service.send("POST", `${at}/signature-check`, {
    basic,
    type: formType,
    body: new URLSearchParams(fields).toString(),
    ...rest
  })
}

const resultOf = async (asked?: Asked) => {
  const answer = await check(asked)
  expect(answer.status, answer.text).toBe(200)
  return [answer.xml.attributes["result"], answer.child("problem"), answer.child("subject")]
}

describe("POST …/signature-check", () => {
  it("says that a real push is right, also with the line ends of a form", async () => {
    const answer = await check()
    expect([answer.status, answer.header("cache-control")]).toEqual([200, "no-store"])
    expect([answer.xml.name, answer.xml.attributes["result"]]).toEqual(["signature-check", "right"])
    expect(await resultOf({ body: `${push.body}\n` })).toEqual([
      "right",
      "the signature is right",
      expect.stringContaining("but for line ends")
    ])
  })

  it("takes JSON byte for byte", async () => {
    const asked = (body: string) =>
      service.send("POST", `${href}/signature-check`, {
        basic: owner,
        type: "application/json",
        accept: "application/json",
        body: JSON.stringify({ headers: headersOf(push), body })
      })
    expect((await asked(push.body)).json).toMatchObject({ result: "right" })
    expect((await asked(`${push.body}\n`)).json).toMatchObject({
      result: "wrong",
      problem: expect.stringContaining("has no newline at its end"),
      advice: expect.stringMatching(/./)
    })
  })

  it("says what is wrong", async () => {
    const headers = headersOf(push)
    expect(await resultOf({ body: push.body.replaceAll("><", ">  <") })).toEqual([
      "wrong",
      expect.stringContaining("XML without blanks"),
      expect.anything()
    ])
    expect(await resultOf({ headers: headers.replace(/webhook-id: .*\r\n/, "") })).toEqual([
      "missing",
      expect.stringContaining("webhook-id"),
      "the header fields"
    ])
    const old = headers.replace(/(webhook-timestamp: )\d+/, (_, name) => `${name}1000000000`)
    expect((await resultOf({ headers: old }))[1]).toMatch(/no signature matches.*days/)
    const shown = await service.send("GET", `${href}/attempts`, { basic: owner })
    const [, shortened = ""] = />(v1,[^<]*…)</.exec(shown.text) ?? []
    const cut = headers.replace(/(webhook-signature: ).*/, (_, name) => name + shortened)
    expect(await resultOf({ headers: cut })).toEqual([
      "malformed",
      "the signature is not complete: … stands for its rest",
      "webhook-signature"
    ])
  })

  it("checks with a secret that is replaced, and with its successor", async () => {
    const callback = subscriber.at("echo")
    const made = await service.register(mailbox, callback)
    const at = made.header("location")
    await service.until(at, isActive)
    const before = await pushTo(callback)
    await service.send("POST", `${at}/secret`, { basic: owner })
    const after = await pushTo(callback)
    for (const one of [before, after]) {
      expect((await resultOf({ at, headers: headersOf(one), body: one.body }))[0]).toBe("right")
    }
    // That of another registration of the mailbox.
    expect((await resultOf({ headers: headersOf(before), body: before.body }))[0]).toBe("wrong")
  })

  it("shows no secret and no signature, and changes nothing", async () => {
    const signature = String(push.headers["webhook-signature"]).slice(3)
    const before = await service.send("GET", href, { basic: owner })
    const headers = headersOf(push).replace(signature, `${"A".repeat(43)}=`)
    for (const accept of ["application/xml", "application/json", "text/html", "text/plain"]) {
      const { text } = await check({ headers, accept })
      expect(text).toContain("no signature matches")
      expect(text).not.toContain(secret.slice(6, 20))
      expect(text).not.toContain(signature.slice(0, 12))
    }
    expect((await service.send("GET", href, { basic: owner })).text).toBe(before.text)
  })

  it("is for those who may change the registration", async () => {
    expect((await check({ basic: service.bob })).status).toBe(403)
    const anonymous = await service.send("POST", `${href}/signature-check`, { body: "x" })
    expect(anonymous.status).toBe(401)
    expect((await check({ basic: `any:${password}` })).status).toBe(200)
    expect((await check({ basic: "any:wrong" })).status).toBe(401)
    expect((await check({ at: `${href}x` })).status).toBe(404)
  })

  it("is refused without header fields, and beyond its bounds", async () => {
    const refused = async (asked: Asked) => {
      const { status, text } = await check(asked)
      return [status, text]
    }
    expect(await refused({ headers: "" })).toEqual([
      422,
      expect.stringContaining("headers is required")
    ])
    expect(await refused({ headers: "a".repeat(headerBlockBytesMax + 1) })).toEqual([
      422,
      expect.stringContaining("headers may have")
    ])
    // A form has a bound of its own.
    expect(await refused({ body: "a".repeat(65_536) })).toEqual([
      400,
      expect.stringContaining("the form exceeds")
    ])
    const json = await service.send("POST", `${href}/signature-check`, {
      basic: owner,
      type: "application/json",
      body: JSON.stringify({ headers: "a: b", body: "a".repeat(checkedBodyCharsMax + 1) })
    })
    expect([json.status, json.text]).toEqual([
      422,
      expect.stringContaining("restante registrations check-signature")
    ])
  })

  it("waits until all nodes know its message", async () => {
    format = readSecretsFormat - 1
    const refused = await check()
    format = readSecretsFormat
    expect([refused.status, refused.header("retry-after")]).toEqual([503, "60"])
  })
})

describe("the hub.secret of a subscription", () => {
  const subscribed = async (fields: Readonly<Record<string, string>>) => {
    const callback = subscriber.at("echo")
    const hub = { "hub.mode": "subscribe", "hub.callback": callback, ...fields }
    const at = (await service.hub(mailbox, hub)).header("location")
    await service.until(at, isActive)
    return { at, callback }
  }

  it("is checked for its subscriber alone, since nobody else may guess it", async () => {
    const { at, callback } = await subscribed({ "hub.secret": "weak" })
    const { body, headers } = await pushTo(callback)
    const asked = { at, body, headers: `X-Hub-Signature: ${String(headers["x-hub-signature"])}` }
    expect((await resultOf(asked))[0]).toBe("right")
    expect((await resultOf({ ...asked, body: `${body}x` }))[0]).toBe("wrong")
    const other = await check({ ...asked, basic: `any:${password}` })
    expect([other.status, other.text]).toEqual([403, expect.stringContaining("hub.secret")])
  })

  it("may be none, and a browser has none: 409 says so", async () => {
    const { at } = await subscribed({})
    const { status, text } = await check({ at })
    expect([status, text]).toEqual([409, expect.stringContaining("has no secret")])
    const { auth, p256dh } = await newBrowser()
    const made = await service.send("POST", `${mailbox}/registrations`, {
      basic: owner,
      type: "application/json",
      body: JSON.stringify({ endpoint: subscriber.at("echo"), keys: { p256dh, auth } })
    })
    const browser = made.header("location")
    expect((await check({ at: browser })).text).toContain("a push to a browser is encrypted")
    const page = await service.send("GET", browser, { basic: owner, accept: "text/html" })
    expect(page.text).not.toContain("/signature-check")
  })
})

describe("the page", () => {
  it("has the form, which shows the diagnosis and what was typed, escaped", async () => {
    const page = await service.send("GET", href, { basic: owner, accept: "text/html" })
    expect(page.text).toContain(`action="${new URL(href).pathname}/signature-check"`)
    const typed = { headers: "</textarea><script>alert(1)</script>: x", body: "<b>\"&" }
    const answer = await check({ ...typed, accept: "text/html" })
    expect(answer.status).toBe(200)
    expect(answer.text).toContain("✗ missing")
    expect(answer.text).not.toContain("<script>alert")
    expect(answer.text).toContain("&lt;/textarea&gt;&lt;script&gt;alert(1)&lt;/script&gt;: x")
    expect(answer.text).toContain("&lt;b&gt;&quot;&amp;")
  })

  it("has the form with a fault and what was typed when it is refused", async () => {
    const answer = await service.send("POST", `${href}/signature-check`, {
      basic: owner,
      type: formType,
      accept: "text/html",
      headers: { "Sec-Fetch-Site": "same-origin" },
      body: new URLSearchParams({ headers: "", body: "kept text" }).toString()
    })
    expect(answer.status).toBe(422)
    expect(answer.text).toContain("kept text")
    expect(answer.text).toContain("“Header fields” is required")
  })
})
