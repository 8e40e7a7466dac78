/** Signatures of pushes: Standard Webhooks, and X-Hub-Signature of WebSub (protocol §1.4). */
import { createHmac } from "node:crypto"

const prefix = "whsec_"

/** A body, as text or as its bytes. */
type SignedContent = string | Uint8Array

const signed = (secret: string, head: string, body: SignedContent): string => {
  const key = Buffer.from(secret.slice(secret.startsWith(prefix) ? prefix.length : 0), "base64")
  return `v1,${createHmac("sha256", key).update(head).update(body).digest("base64")}`
}

/**
 * The `webhook-signature` of a message: one signature for each secret, so that a receiver that
 * knows the old secret and one that knows the new both find theirs. `timestamp` in seconds.
 */
export const sign = (
  secrets: ReadonlyArray<string>,
  id: string,
  timestamp: number,
  body: SignedContent
): string => secrets.map((secret) => signed(secret, `${id}.${timestamp}.`, body)).join(" ")

/** The headers of a push that is signed by Standard Webhooks. */
export const webhookHeaders = (
  secrets: ReadonlyArray<string>,
  id: string,
  timestamp: number,
  body: SignedContent
): Readonly<Record<string, string>> => ({
  "webhook-id": id,
  "webhook-timestamp": `${timestamp}`,
  "webhook-signature": sign(secrets, id, timestamp, body)
})

/** The `X-Hub-Signature` of a body (WebSub §7.1); the secret is taken as it is written. */
export const hubSignature = (secret: string, body: SignedContent): string =>
  `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`
