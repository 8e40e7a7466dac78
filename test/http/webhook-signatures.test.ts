/** Webhooks with signatures: each kind, what is wrong with others, and the secret of a mailbox. */
import { createHmac } from "node:crypto"
import { Effect } from "effect"
import { Webhook } from "standardwebhooks"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { lostWebhookSecret, mailboxKind } from "../../actors/index.ts"
import { childrenOf } from "../../http/formats/xml/index.ts"
import { isSigned } from "../../http/resources/mailboxes/deposit/webhook-signature.ts"
import { address } from "../../runtime/index.ts"
import { type Mailboxes, owner, startMailboxes } from "./mailbox-harness.ts"

let service: Mailboxes

beforeAll(async () => {
  service = await startMailboxes()
})

afterAll(() => service.close())

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
const body = JSON.stringify({ title: "hello" })

const hmac = (text: string) => createHmac("sha256", secret).update(text).digest("hex")

const nowS = () => Math.floor(Date.now() / 1000)

const stripe = (seconds: number, text = body, ...more: ReadonlyArray<string>) => ({
  "Stripe-Signature": [`t=${seconds}`, ...more, `v1=${hmac(`${seconds}.${text}`)}`].join(",")
})

const standard = (prefix: string, date: Date, text = body) => ({
  [`${prefix}-id`]: "msg_1",
  [`${prefix}-timestamp`]: String(Math.floor(date.getTime() / 1000)),
  [`${prefix}-signature`]: `v1,bm90IHRoaXMgb25l ${new Webhook(secret).sign("msg_1", date, text)}`
})

const grafana = (seconds: number, name = "X-Grafana-Alerting-Signature") => ({
  [name]: hmac(`${seconds}:${body}`),
  "X-Grafana-Alerting-Timestamp": String(seconds)
})

const right = (): Readonly<Record<string, Readonly<Record<string, string>>>> => ({
  GitHub: { "X-Hub-Signature-256": `sha256=${hmac(body)}` },
  Grafana: { "X-Grafana-Alerting-Signature": hmac(body) },
  "Grafana, by the name of its source": { "X-Grafana-Alert-Signature": hmac(body) },
  "Grafana, with a time": grafana(nowS()),
  "Grafana, with a time, by the name of its source": grafana(nowS(), "X-Grafana-Alert-Signature"),
  Stripe: stripe(nowS()),
  "Stripe, while the secret is rotated": stripe(nowS(), body, `v1=${"0".repeat(64)}`, "v0=1"),
  "Standard Webhooks": standard("webhook", new Date()),
  Svix: standard("svix", new Date())
})

const wrong = (): Readonly<Record<string, Readonly<Record<string, string>>>> => ({
  "no signature": {},
  "another body": { "X-Hub-Signature-256": `sha256=${hmac("{}")}` },
  "another algorithm": { "X-Hub-Signature-256": `sha1=${hmac(body)}` },
  "no hexadecimal digits": { "X-Grafana-Alerting-Signature": "é" },
  "a time of Grafana that is not signed": {
    ...grafana(nowS()),
    "X-Grafana-Alerting-Signature": hmac(body)
  },
  "an old time of Grafana": grafana(nowS() - 301),
  "a time of Grafana to come": grafana(nowS() + 600),
  "a changed time of Grafana": {
    ...grafana(nowS() - 600),
    "X-Grafana-Alerting-Timestamp": String(nowS())
  },
  "a signed time of Grafana that is left out": {
    "X-Grafana-Alerting-Signature": grafana(nowS())["X-Grafana-Alerting-Signature"] ?? ""
  },
  "an old time": stripe(nowS() - 301),
  // Five minutes ahead of the service are allowed, whenever the request arrives.
  "a time to come": stripe(nowS() + 600),
  "a changed time": {
    "Stripe-Signature": stripe(nowS() - 600)["Stripe-Signature"].replace(/t=\d+/, `t=${nowS()}`)
  },
  "no time": { "Stripe-Signature": `v1=${hmac(`.${body}`)}` },
  "an old message": standard("webhook", new Date(Date.now() - 301_000)),
  "no id": { ...standard("svix", new Date()), "svix-id": "" }
})

const open = async (name: string, settings = "") => {
  const { href } = await service.open(name, `<webhook>{/title}</webhook>${settings}`)
  const put = (path: string, value: string, basic = owner) =>
    service.send("PUT", path, {
      basic,
      body: `<webhook-secret><secret>${value}</secret></webhook-secret>`
    })
  expect((await put(`${href}/webhook-secret`, secret)).status).toBe(204)
  const post = (headers: Readonly<Record<string, string>>, more = {}) =>
    service.send("POST", href, { body, type: "application/json", headers, ...more })
  const count = async () =>
    childrenOf((await service.send("GET", href, { basic: owner })).xml, "notification").length
  return { href, put, post, count }
}

describe("a mailbox with a secret of webhooks", () => {
  it.each(Object.keys(right()))("takes what %s signs", async (sender) => {
    const { count, post } = await open(`right-${Object.keys(right()).indexOf(sender)}`)
    expect((await post(right()[sender] ?? {})).status).toBe(202)
    expect(await count()).toBe(1)
  })

  it("checks the bytes as they came, of any type and in any charset", async () => {
    const { count, href } = await open("raw")
    const sign = (bytes: Uint8Array) => createHmac("sha256", secret).update(bytes).digest("hex")
    const bodies: ReadonlyArray<readonly [type: string, bytes: Uint8Array]> = [
      ["application/json", Buffer.from("\ufeff{\"title\":\"with a byte order mark\"}")],
      ["application/json; charset=iso-8859-1", Buffer.from("{\"title\":\"é\"}", "latin1")],
      ["application/x-www-form-urlencoded", Buffer.from("payload=%7B%22title%22%3A1%7D")],
      ["image/png", Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x00, 0xff])]
    ]
    for (const [type, bytes] of bodies) {
      const post = (headers: Readonly<Record<string, string>>) =>
        service.send("POST", href, { body: bytes, type, headers })
      expect((await post({})).status, type).toBe(403)
      const changed = sign(Buffer.concat([bytes, Buffer.from(" ")]))
      expect((await post({ "X-Hub-Signature-256": `sha256=${changed}` })).status, type).toBe(403)
      const signature = { "X-Hub-Signature-256": `sha256=${sign(bytes)}` }
      expect((await post(signature)).status, type).toBe(202)
      const date = new Date()
      const timed = {
        "webhook-id": "msg_2",
        "webhook-timestamp": String(Math.floor(date.getTime() / 1000)),
        "webhook-signature": `v1,${
          createHmac("sha256", Buffer.from(secret.slice("whsec_".length), "base64"))
            .update(`msg_2.${Math.floor(date.getTime() / 1000)}.`).update(bytes).digest("base64")
        }`
      }
      expect((await post(timed)).status, type).toBe(202)
    }
    expect(await count()).toBe(bodies.length)
  })

  it("refuses every other webhook, and stores nothing", async () => {
    const { count, href, post } = await open("wrong")
    for (const [what, headers] of Object.entries(wrong())) {
      const answer = await post(headers)
      expect([answer.status, answer.child("detail")], what)
        .toEqual([403, expect.stringContaining("the signature of this webhook")])
    }
    // With a key, the request takes the other path through the service.
    const key = { "Idempotency-Key": "a-key-of-22-characters-or-more" }
    expect((await post(key)).status).toBe(403)
    expect(await count()).toBe(0)
    const text = await service.send("POST", href, { body: "hello", type: "text/plain" })
    expect(text.status).toBe(202)
  })

  it("refuses a recorded webhook whose time is made part of the body", async () => {
    const { count, post } = await open("recorded")
    const seconds = nowS() - 3_600
    for (const separator of [":", "."]) {
      const recorded = `${seconds}${separator}${body}`
      for (
        const headers of [
          { "X-Grafana-Alerting-Signature": hmac(recorded) },
          { "X-Hub-Signature-256": `sha256=${hmac(recorded)}` }
        ]
      ) expect((await post(headers, { body: recorded })).status).toBe(403)
    }
    expect(await count()).toBe(0)
  })

  it("asks to repeat later where its secret cannot be decrypted, as after a lost key", async () => {
    const { count, post } = await open("unreadable")
    const [node] = service.services
    const caller = { account: "admin", admin: true }
    const message = { _tag: "SetWebhookSecret", caller, secret: lostWebhookSecret }
    const to = address(mailboxKind, "unreadable")
    await Effect.runPromise(node?.system.ask(to, message) ?? Effect.die("no node"))
    const answer = await post(right()["GitHub"] ?? {})
    expect([answer.status, answer.child("detail")])
      .toEqual([503, expect.stringContaining("cannot be decrypted")])
    expect(await count()).toBe(0)
    expect((await post({}, { basic: service.bob })).status).toBe(202)
  })

  it("takes those of accounts unsigned, and signed ones where only accounts may", async () => {
    const { count, href, post } = await open("accounts", "<deposit>accounts</deposit>")
    expect((await post({}, { basic: service.bob })).status).toBe(202)
    const other = JSON.stringify({ title: "other" })
    const signed = { "X-Hub-Signature-256": `sha256=${hmac(other)}` }
    expect((await post({}, { body: other })).status).toBe(403)
    expect((await post(signed, { body: other })).status).toBe(202)
    const text = await service.send("POST", href, { body: "hello", type: "text/plain" })
    expect(text.status).toBe(401)
    expect(await count()).toBe(2)
  })

  it("has its secret from its owner alone, shows it to nobody, and forgets it", async () => {
    const { href, post, put } = await open("kept")
    const path = `${href}/webhook-secret`
    expect((await put(path, secret, service.bob)).status).toBe(403)
    for (const value of ["short", "with a space in it", "é".repeat(10), "x".repeat(257)]) {
      expect((await put(path, value)).status, value).toBe(422)
    }
    expect((await service.send("GET", path, { basic: owner })).status).toBe(405)
    for (const accept of ["application/xml", "text/html"]) {
      const shown = await service.send("GET", href, { basic: owner, accept })
      expect(shown.text).not.toContain(secret)
    }
    const page = await service.send("GET", href, { basic: owner, accept: "text/html" })
    expect(page.text).toContain("<dd>{/title}, signed</dd>")
    // The settings are put back as they were read, and the secret stays.
    const settings = (await service.send("GET", href, { basic: owner })).text
    expect((await service.send("PUT", href, { basic: owner, body: settings })).status).toBe(200)
    expect((await post({})).status).toBe(403)
    expect((await service.send("DELETE", path, { basic: owner })).status).toBe(204)
    expect((await post({})).status).toBe(202)
  })
})

describe("a signature", () => {
  const headersOf = (fields: Readonly<Record<string, string>>) => ({
    get: (name: string) => fields[name]
  })

  it("is that of GitHub's documentation", () => {
    const headers = headersOf({
      "x-hub-signature-256":
        "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    })
    const signed = { headers, bytes: Buffer.from("Hello, World!") }
    expect(isSigned(signed, "It's a Secret to Everybody", 0)).toBe(true)
    expect(isSigned(signed, "It's a secret to everybody", 0)).toBe(false)
  })

  it("is of no key that a secret leaves as base64, unless it is one of Standard Webhooks", () => {
    const text = "{}"
    const key = (secret: string) => Buffer.from(secret.replace("whsec_", ""), "base64")
    for (const other of ["!!!!!!!!", "whsec_!!!!!!!!!!!!!!!!!!!!!!!!", "a password, not a key"]) {
      const signature = createHmac("sha256", key(other)).update(`msg_1.1.${text}`).digest("base64")
      const headers = headersOf({
        "webhook-id": "msg_1",
        "webhook-timestamp": "1",
        "webhook-signature": `v1,${signature}`
      })
      expect([other, isSigned({ headers, bytes: Buffer.from(text) }, other, 1000)]).toEqual([
        other,
        false
      ])
    }
  })

  it("is that of Svix's documentation", () => {
    const headers = headersOf({
      "svix-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
      "svix-timestamp": "1614265330",
      "svix-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    })
    const signed = { headers, bytes: Buffer.from("{\"test\": 2432232314}") }
    expect(isSigned(signed, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", 1614265330_000)).toBe(true)
  })
})
