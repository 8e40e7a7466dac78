/**
 * Signatures of pushes (protocol §1.4), of Standard Webhooks and of WebSub. They are compared by
 * Web Crypto, in constant time.
 */
import { pushBytesMax, signaturesMax, toleranceMs as toleranceMsDefault } from "../limits.ts"
import { InvalidSignature, readBytes, type SignatureFault } from "../transport/index.ts"

/** Header fields of a fetch Request or of node:http. */
export type IncomingHeaders =
  | Headers
  | Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

/** A fetch Request, or header fields with the unchanged body. */
export type Incoming =
  | Request
  | { readonly headers: IncomingHeaders; readonly body: string | Uint8Array | ArrayBuffer }

/** The clock for the time of a push. */
export interface Verification {
  /** Largest difference between the time of a push and now; five minutes by default. */
  readonly toleranceMs?: number | undefined
  /** Now, in milliseconds since the epoch. */
  readonly nowMs?: number | undefined
}

/** Fails with a fault. */
export const invalid = (fault: SignatureFault, message: string): never => {
  throw new InvalidSignature(fault, message)
}

const encoder = new TextEncoder()

/** The value of a header; the first one of several. */
export const field = (headers: IncomingHeaders, name: string): string | undefined => {
  if (typeof headers["get"] === "function") {
    // Only the Headers of fetch have a function there.
    return (headers as Headers).get(name) ?? undefined
  }
  for (const [key, value] of Object.entries(headers)) {
    if (key.toLowerCase() === name) return typeof value === "string" ? value : value?.[0]
  }
  return undefined
}

/** The bytes of a body. Throws InvalidSignature beyond the largest push. */
export const bytesOf = async (incoming: Incoming): Promise<Uint8Array> => {
  const { body } = incoming
  if (typeof body === "string") return encoder.encode(body)
  if (body === null || "getReader" in body) {
    return await readBytes(body, pushBytesMax) ??
      invalid("too-large", `a push has ${pushBytesMax} bytes at the most`)
  }
  // `instanceof` fails for an object of another realm.
  return ArrayBuffer.isView(body) ? body : new Uint8Array(body)
}

/** The bytes of a text in base64; undefined for another text. */
export const decodeBase64 = (text: string): Uint8Array<ArrayBuffer> | undefined => {
  try {
    return Uint8Array.from(atob(text), (one) => one.charCodeAt(0))
  } catch {
    return undefined
  }
}

const keyOf = (bytes: Uint8Array<ArrayBuffer>): Promise<CryptoKey> =>
  crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["verify"])

const secretKey = (secret: string): Promise<CryptoKey> => {
  const bytes = decodeBase64(secret.startsWith("whsec_") ? secret.slice(6) : secret)
  if (bytes === undefined || bytes.length === 0) {
    throw new TypeError("a secret is whsec_ and base64")
  }
  return keyOf(bytes)
}

const joined = (start: string, body: Uint8Array): Uint8Array<ArrayBuffer> => {
  const head = encoder.encode(start)
  const bytes = new Uint8Array(head.length + body.length)
  bytes.set(head)
  bytes.set(body, head.length)
  return bytes
}

/** Whether any key made any signature. It checks all pairs, which keeps the time constant. */
const isSigned = async (
  keys: ReadonlyArray<CryptoKey>,
  signatures: ReadonlyArray<Uint8Array<ArrayBuffer>>,
  content: Uint8Array<ArrayBuffer>
): Promise<boolean> => {
  const checks = keys.flatMap((key) =>
    signatures.map((signature) => crypto.subtle.verify("HMAC", key, signature, content))
  )
  return (await Promise.all(checks)).includes(true)
}

/**
 * Verifies a signature of Standard Webhooks over any body, and returns the body. `secrets` has the
 * old and the new secret while a secret changes. Throws InvalidSignature.
 */
export const verifySignature = async (
  incoming: Incoming,
  secrets: string | ReadonlyArray<string>,
  { nowMs = Date.now(), toleranceMs = toleranceMsDefault }: Verification = {}
): Promise<{ readonly id: string; readonly timeMs: number; readonly body: Uint8Array }> => {
  const { headers } = incoming
  const fieldOf = (name: string): string =>
    field(headers, name) || invalid("missing", `there is no ${name}`)
  const id = fieldOf("webhook-id")
  const time = fieldOf("webhook-timestamp")
  const signatureField = fieldOf("webhook-signature")
  if (!/^\d{1,12}$/.test(time)) invalid("malformed", "webhook-timestamp is no time in seconds")
  const timeMs = Number(time) * 1000
  if (!(Math.abs(nowMs - timeMs) <= toleranceMs)) {
    invalid("stale", "webhook-timestamp is too far from now")
  }
  const signatures = signatureField.split(" ").slice(0, signaturesMax).flatMap((one) => {
    const decoded = one.startsWith("v1,") ? decodeBase64(one.slice(3)) : undefined
    return decoded === undefined ? [] : [decoded]
  })
  const keys = await Promise.all((typeof secrets === "string" ? [secrets] : secrets).map(secretKey))
  const body = await bytesOf(incoming)
  if (!await isSigned(keys, signatures, joined(`${id}.${time}.`, body))) {
    invalid("wrong", "no signature matches the body and a secret")
  }
  return { id, timeMs, body }
}

/**
 * Verifies a push of a WebSub subscription to any topic (`X-Hub-Signature`, WebSub §7.1), and
 * returns the body. Throws InvalidSignature.
 */
export const verifyHubSignature = async (
  incoming: Incoming,
  secrets: string | ReadonlyArray<string>
): Promise<Uint8Array> => {
  const signatureField = field(incoming.headers, "x-hub-signature") ??
    invalid("missing", "there is no x-hub-signature")
  const [, hex = ""] = /^sha256=([0-9a-f]{64})$/i.exec(signatureField) ??
    invalid("malformed", "x-hub-signature is not sha256=…")
  const signature = Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))
  const secretTexts = typeof secrets === "string" ? [secrets] : secrets
  const keys = await Promise.all(secretTexts.map((secret) => keyOf(encoder.encode(secret))))
  const body = await bytesOf(incoming)
  if (!await isSigned(keys, [signature], joined("", body))) {
    invalid("wrong", "the signature does not match the body and a secret")
  }
  return body
}
