/** Signatures, checked with the package that receivers use (protocol §1.4). */
import fc from "fast-check"
import { createHmac, randomBytes } from "node:crypto"
import { Webhook } from "standardwebhooks"
import { describe, expect, it } from "vitest"
import { hubSignature, sign, webhookHeaders } from "../../../actors/outbound/signatures.ts"

const newSecret = (): string => `whsec_${randomBytes(32).toString("base64")}`

const now = () => Math.floor(Date.now() / 1_000)

const verifies = (secret: string, body: string, headers: Readonly<Record<string, string>>) => {
  try {
    new Webhook(secret).verify(body, { ...headers })
    return true
  } catch {
    return false
  }
}

const body = JSON.stringify({ changed: "é\n" })

describe("Standard Webhooks", () => {
  it("a signature is verified with its secret, id, time and body, and with no other", () => {
    const secret = newSecret()
    const headers = webhookHeaders([secret], "msg_1", now(), body)
    expect(verifies(secret, body, headers)).toBe(true)
    expect(verifies(newSecret(), body, headers)).toBe(false)
    expect(verifies(secret, JSON.stringify("other"), headers)).toBe(false)
    expect(verifies(secret, body, { ...headers, "webhook-id": "msg_2" })).toBe(false)
    expect(verifies(secret, body, { ...headers, "webhook-timestamp": `${now() - 1}` })).toBe(false)
  })

  it("is what the package signs", () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 24, maxLength: 64 }), fc.string(), (bytes, text) => {
        const secret = `whsec_${Buffer.from(bytes).toString("base64")}`
        const at = new Date(1_700_000_000_000)
        expect(sign([secret], "msg_1", 1_700_000_000, text))
          .toBe(new Webhook(secret).sign("msg_1", at, text))
      })
    )
  })

  it("several secrets give a signature each, and each is enough", () => {
    const [old, fresh] = [newSecret(), newSecret()]
    const headers = webhookHeaders([fresh, old], "msg_1", now(), body)
    expect(headers["webhook-signature"]).toMatch(/^v1,\S+ v1,\S+$/)
    expect(verifies(old, body, headers)).toBe(true)
    expect(verifies(fresh, body, headers)).toBe(true)
  })
})

it("X-Hub-Signature is the hex HMAC of the body", () => {
  const digest = createHmac("sha256", "shared secret").update("<a>é</a>", "utf8").digest("hex")
  expect(hubSignature("shared secret", "<a>é</a>")).toBe(`sha256=${digest}`)
})
