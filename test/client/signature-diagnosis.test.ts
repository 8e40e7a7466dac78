/** What is wrong with a push: signatures of another implementation, and what may happen to them. */
import { createHmac } from "node:crypto"
import { Webhook } from "standardwebhooks"
import { describe, expect, it } from "vitest"
import { diagnoseSignature, readHeaderText, readRequestText, type SignatureCheck,
  type SignatureDiagnosis } from "../../client/index.ts"

const secretOf = (key: string) => `whsec_${Buffer.from(key).toString("base64")}`
const secret = secretOf("0123456789abcdef0123456789abcdef")
const other = secretOf("fedcba9876543210fedcba9876543210")
const sentAt = new Date("2030-01-01T00:00:00Z")
const nowMs = sentAt.getTime()
const xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<changed mailbox=\"http://a.test/\">"
  + "<notification><item><description>Grüße</description></item></notification></changed>"

const bytes = Buffer.byteLength(xml)

type Headers = Readonly<Record<string, string>>

const signed = (text = xml, by = secret): Headers => ({
  "webhook-id": "msg_1",
  "webhook-timestamp": `${nowMs / 1000}`,
  "webhook-signature": new Webhook(by).sign("msg_1", sentAt, text)
})

const diagnose = (
  headers: Headers,
  body: string | Uint8Array = xml,
  options: SignatureCheck = {},
  secrets: string | ReadonlyArray<string> = secret
): Promise<SignatureDiagnosis> =>
  diagnoseSignature({ headers, body }, secrets, { nowMs, ...options })

const without = (headers: Headers, name: string): Headers =>
  Object.fromEntries(Object.entries(headers).filter(([key]) => key !== name))

describe("a push", () => {
  it("that is right is right, by either secret, with or without whsec_", async () => {
    for (const secrets of [secret, [other, secret], secret.slice("whsec_".length)]) {
      expect(await diagnose(signed(), xml, {}, secrets)).toMatchObject({
        result: "right",
        problem: "the signature is right",
        subject: `webhook-signature of msg_1, of the body of ${bytes} bytes`
      })
    }
  })

  it.each(["webhook-id", "webhook-timestamp", "webhook-signature"])(
    "without %s lacks it",
    async (name) => {
      expect(await diagnose(without(signed(), name))).toMatchObject({
        result: "missing",
        problem: `the signature cannot be checked: there is no ${name}`,
        advice: expect.stringContaining("proxy")
      })
    }
  )

  it.each([
    [{}, "the header fields", "webhook-id: …"],
    [{ "x-hub-signature-256": "sha256=x" }, "GitHub", "webhook-id: …"],
    [{ "svix-signature": "v1,x" }, "Svix", "webhook-id: …"],
    [{ "stripe-signature": "t=1" }, "Stripe", "webhook-id: …"]
  ])("of another sender is named: %j", async (headers, subject, advice) => {
    const { advice: what, result, subject: of } = await diagnose(headers as Headers)
    expect([result, of, what]).toEqual([
      "missing",
      expect.stringContaining(subject),
      expect.stringContaining(advice)
    ])
  })

  it.each([
    [3 * 3_600_000 + 120_000, "3 hours and 2 minutes old", "when it arrives"],
    [5 * 60_000 + 1000, "5 minutes and 1 second old", "when it arrives"],
    [-86_400_000, "1 day in the future", "which is slow"]
  ])("that is %d ms old says so, and that the rest is right", async (ageMs, age, advice) => {
    expect(await diagnose(signed(), xml, { nowMs: nowMs + ageMs })).toEqual({
      result: "stale",
      problem: `the time of the push is ${age}, and 5 minutes are allowed`,
      subject: expect.stringContaining("otherwise the signature is right: webhook-signature"),
      advice: expect.stringContaining(advice)
    })
  })

  it("that is old and wrong is both", async () => {
    const old = { nowMs: nowMs + 3_600_000 }
    expect(await diagnose(signed(), `${xml}x`, old)).toMatchObject({
      result: "wrong",
      problem: "no signature matches the body and the secret; and the time of the push is 1 hour "
        + "old, and 5 minutes are allowed"
    })
    expect(await diagnose(signed(), xml, old, "???")).toMatchObject({
      result: "malformed",
      subject: "the secret"
    })
  })

  it.each([
    ["1893456000000", "it has milliseconds"],
    ["2030-01-01T00:00:00Z", "no whole number of seconds"]
  ])("with the time %s says that it has none", async (time, problem) => {
    expect(await diagnose({ ...signed(), "webhook-timestamp": time })).toMatchObject({
      result: "malformed",
      problem: expect.stringContaining(problem),
      subject: "webhook-timestamp"
    })
  })

  it.each([
    ["v1a,AAAA", "another version than v1: v1a"],
    ["AAAA", "another version than v1: none"],
    ["v1,SFBPh3B9…", "… stands for its rest"],
    ["v1,SFBPh3B9...", "… stands for its rest"],
    ["v1,SFBPh3B9", "not base64 of 32 bytes"],
    ["v1,", "not base64 of 32 bytes"]
  ])("with the signature %s says what is wrong with it", async (signature, problem) => {
    expect(await diagnose({ ...signed(), "webhook-signature": signature })).toMatchObject({
      result: "malformed",
      problem: expect.stringContaining(problem),
      subject: "webhook-signature"
    })
  })
})

describe("a secret", () => {
  it.each(["", "???", "whsec_", "whsec_ä"])("that is none is named: %j", async (text) => {
    expect(await diagnose(signed(), xml, {}, text)).toMatchObject({
      result: "malformed",
      problem: "the secret is not whsec_ and base64"
    })
  })

  it.each([
    ["with whsec_", secret],
    ["the text after whsec_", secret.slice("whsec_".length)]
  ])("that was not decoded is named: %s", async (problem, key) => {
    expect(await diagnose(signed(xml, secretOf(key)))).toMatchObject({
      result: "wrong",
      problem: expect.stringContaining(problem),
      subject: "the secret"
    })
  })

  it("of another registration is one of the causes", async () => {
    expect(await diagnose(signed(xml, other))).toMatchObject({
      result: "wrong",
      problem: "no signature matches the body and the secret",
      advice: expect.stringContaining("the secret of this registration, not of another one")
    })
  })
})

const json = "{\"a\":1,\"b\":\"ü\"}"
const latin1 = (text: string) => new Uint8Array(Buffer.from(text, "latin1"))

describe("a body", () => {
  it.each<readonly [string, sent: string, received: string | Uint8Array]>([
    ["has no newline at its end", json, `${json}\n`],
    ["has no newline at its end", json, `${json}\r\n\r\n`],
    ["ends with a newline", `${json}\n`, json],
    ["has line feeds where", "a\nb", "a\r\nb"],
    [
      "has line feeds where this one has carriage returns and line feeds, and none",
      "a\nb",
      "a\r\nb\r\n"
    ],
    ["has carriage returns and line feeds", "a\r\nb", "a\nb"],
    ["has no blanks around it", json, ` ${json} `],
    ["is JSON without blanks", json, JSON.stringify(JSON.parse(json), null, 2)],
    ["is the text that this one has as a string of JSON", xml, JSON.stringify(xml)],
    ["is XML without blanks", xml, xml.replace("\n", "").replaceAll("><", ">\n  <")],
    ["begins with an XML declaration", xml, xml.slice(xml.indexOf("\n") + 1)],
    ["has no byte order mark", json, `\ufeff${json}`],
    ["is UTF-8, and this one was decoded as Latin-1", json, Buffer.from(json).toString("latin1")],
    ["is UTF-8, and this one was encoded as Latin-1", json, latin1(json)],
    ["is the decoded base64", xml, Buffer.from(xml).toString("base64")]
  ])("that was changed is recognized: the sender's %s", async (change, sent, received) => {
    const { advice, problem, result } = await diagnose(signed(sent), received)
    expect([result, problem, advice]).toEqual([
      "wrong",
      expect.stringContaining(`the sender's body ${change}`),
      expect.stringMatching(/./)
    ])
  })

  it("that was pasted is right in spite of its line ends, and of nothing else", async () => {
    const pasted = { isPasted: true }
    for (const body of ["a\nb\n", "a\r\nb", "a\nb\n\n"]) {
      expect(await diagnose(signed("a\nb"), body, pasted)).toMatchObject({
        result: "right",
        subject: expect.stringContaining("but for line ends")
      })
    }
    expect(await diagnose(signed("a\nb"), " a\nb", pasted)).toMatchObject({ result: "wrong" })
  })

  it("that is compressed or cut is recognized by the header fields", async () => {
    const headers = { ...signed(), "content-length": `${bytes}` }
    expect(await diagnose(headers, xml.slice(0, 99))).toMatchObject({
      problem: `no signature matches: the Content-Length is ${bytes}`,
      subject: expect.stringContaining("the body of 99 bytes")
    })
    expect(await diagnose({ ...headers, "content-encoding": "gzip" }, "x")).toMatchObject({
      problem: expect.stringContaining("compressed")
    })
  })

  it("takes linear time to be compared, whatever it is", async () => {
    // Each would take minutes by an expression that backtracks.
    const repeated = ["\n", " ", "\r\n", ">\n", "> ", "["].map((piece) =>
      `<${piece.repeat(200_000 / piece.length)}x`
    )
    const encoded = [
      "[".repeat(100_000) + "]".repeat(100_000),
      "QUJD".repeat(50_000),
      "ü".repeat(100_000),
      `"${"\\\"".repeat(100_000)}"`,
      `\ufeff${" ".repeat(200_000)}`
    ]
    for (const body of [...repeated, ...encoded]) {
      expect(await diagnose(signed(), body)).toMatchObject({ result: "wrong" })
    }
  })
})

describe("a push of WebSub", () => {
  const hub = (by: string) => ({
    "x-hub-signature": `sha256=${createHmac("sha256", by).update(xml).digest("hex")}`
  })

  it("is checked with its hub.secret", async () => {
    expect(await diagnose(hub("own"), xml, {}, "own")).toMatchObject({ result: "right" })
    expect(await diagnose(hub("own"), `${xml}\n`, {}, "own")).toMatchObject({
      result: "wrong",
      problem: expect.stringContaining("no newline at its end")
    })
    expect(await diagnose(hub("own"), xml, {}, "their")).toMatchObject({
      result: "wrong",
      subject: expect.not.stringContaining("webhook")
    })
    expect(await diagnose({ "x-hub-signature": "sha256=ab…" }, xml, {}, "own")).toMatchObject({
      result: "malformed",
      subject: "x-hub-signature"
    })
  })

  it("is not checked with an empty secret", async () => {
    expect(await diagnose(hub("own"), xml, {}, "")).toMatchObject({
      result: "malformed",
      subject: "the secret"
    })
  })

  it("is no push of a native registration", async () => {
    expect(await diagnose(hub("own"), xml, { scheme: "standard-webhooks" })).toMatchObject({
      result: "missing",
      subject: expect.stringContaining("WebSub")
    })
    expect(await diagnose(signed(), xml, { scheme: "websub" })).toMatchObject({
      result: "missing",
      subject: expect.stringContaining("native form")
    })
  })
})

it("never shows a signature that would be right, or a secret", async () => {
  const expected = signed()["webhook-signature"] ?? ""
  const all = await Promise.all([
    diagnose({ ...signed(), "webhook-signature": `v1,${"A".repeat(43)}=` }),
    diagnose(without(signed(), "webhook-signature")),
    diagnose(signed(), `${xml}\n`),
    diagnose(signed(), xml, { nowMs: 0 }),
    diagnose(signed(), xml, {}, "???")
  ])
  for (const text of all.map((one) => JSON.stringify(one))) {
    expect(text).not.toContain(expected.slice(3, 20))
    expect(text).not.toContain(secret.slice(6, 20))
  }
})

const fields = { "webhook-id": "msg_1", "webhook-timestamp": "1", "webhook-signature": "v1,A=" }

describe("a request as text", () => {
  it.each([
    "Webhook-Id: msg_1\nWebhook-Timestamp: 1\nWebhook-Signature: v1,A=",
    "POST /x?a=b HTTP/1.1\r\nwebhook-id:msg_1\r\nwebhook-timestamp:  1 \r\n"
    + "webhook-signature: v1,A=\r\n",
    "> webhook-id: msg_1\n> webhook-timestamp: 1\n> webhook-signature: v1,A=\n>",
    JSON.stringify(fields),
    JSON.stringify(fields, null, 2),
    "{ 'webhook-id': 'msg_1', 'webhook-timestamp': '1',\n  'webhook-signature': 'v1,A=' }",
    "HTTP_WEBHOOK_ID=msg_1\nHTTP_WEBHOOK_TIMESTAMP=1\nHTTP_WEBHOOK_SIGNATURE=v1,A=",
    "webhook-id: msg_1\nwebhook-id: msg_2\nwebhook-timestamp: 1\nwebhook-signature: v1,A="
  ])("has its header fields: %j", (text) => {
    expect(readHeaderText(text)).toMatchObject(fields)
  })

  it("takes linear time to be read, whatever it is", () => {
    // Each would take minutes by an expression that backtracks.
    for (const piece of [",", " ", "}", "\"", "\n", ":", "{"]) {
      expect(readHeaderText(`a: ${piece.repeat(1_000_000)}x\nb: c`)).toMatchObject({ b: "c" })
    }
  })

  it.each([
    ["a: b\n\n\n<x>\r\n", "\n<x>\r\n"],
    ["a: b\r\n\r\n<x>", "<x>"],
    ["> a: b\n> \n<x>", "<x>"],
    ["a: b\n", ""],
    ["a: b", ""],
    ["", ""]
  ])("has its body after the first empty line, as it is: %j", (text, body) => {
    expect(Buffer.from(readRequestText(new TextEncoder().encode(text)).body).toString()).toBe(body)
  })
})
