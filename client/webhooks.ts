/**
 * Receiving pushes (protocol §1.4): signatures of Standard Webhooks and of WebSub, the challenge
 * that verifies a callback, and the document of a push. Signatures are compared by Web Crypto, in
 * constant time.
 */
import { pushBytesMax, signaturesMax, toleranceMs as toleranceMsDefault } from "./limits.ts"
import { type Notification, notificationOf } from "./notifications.ts"
import { InvalidSignature, type JsonObject, listOf, readBytes, type SignatureFault, textOf,
  unexpected, xmlToJson } from "./transport/index.ts"

/** A push: the changes of a mailbox since the last acknowledged push. */
export interface Push {
  /** The same for repeated pushes of the same changes; empty in the WebSub form. */
  readonly id: string
  readonly mailbox: string
  /** Continue after this push with `read` or `watch`. */
  readonly cursor: string
  /** In the order of their deposit. */
  readonly notifications: ReadonlyArray<Notification>
  /** URIs of notifications that were removed. */
  readonly removed: ReadonlyArray<string>
  /** Whether the mailbox itself has been deleted. */
  readonly deleted: boolean
  /** Whether it is a test event, which has no changes. A WebSub subscriber cannot tell it. */
  readonly test: boolean
}

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

const invalid = (fault: SignatureFault, message: string): never => {
  throw new InvalidSignature(fault, message)
}

const encoder = new TextEncoder()

const strictDecoder = (): TextDecoder => new TextDecoder("utf-8", { fatal: true })

const field = (headers: IncomingHeaders, name: string): string | undefined => {
  if (typeof headers["get"] === "function") {
    // Only the Headers of fetch have a function there.
    return (headers as Headers).get(name) ?? undefined
  }
  for (const [key, value] of Object.entries(headers)) {
    if (key.toLowerCase() === name) return typeof value === "string" ? value : value?.[0]
  }
  return undefined
}

const bytesOf = async (incoming: Incoming): Promise<Uint8Array> => {
  const { body } = incoming
  if (typeof body === "string") return encoder.encode(body)
  if (body === null || "getReader" in body) {
    return await readBytes(body, pushBytesMax) ??
      invalid("too-large", `a push has ${pushBytesMax} bytes at the most`)
  }
  // `instanceof` fails for an object of another realm.
  return ArrayBuffer.isView(body) ? body : new Uint8Array(body)
}

const decodeBase64 = (text: string): Uint8Array<ArrayBuffer> | undefined => {
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

/** Reads the document of a push without verifying it. Throws UnexpectedAnswer. */
export const readPush = (body: string, id = ""): Push => {
  const document = xmlToJson(body)
  return {
    id,
    mailbox: textOf(document, "mailbox"),
    cursor: textOf(document, "time"),
    notifications: listOf(document, "notification").map((one) => notificationOf(one)),
    removed: listOf(document, "removed").map((one) => textOf(one, "href")),
    deleted: document["deleted"] !== undefined,
    test: document["test"] === "true"
  }
}

const textIn = (bytes: Uint8Array): string => {
  try {
    return strictDecoder().decode(bytes)
  } catch {
    return invalid("malformed", "the body is not UTF-8")
  }
}

const jsonIn = (text: string): JsonObject => {
  try {
    // The readers of its properties check them.
    return JSON.parse(text) as JsonObject
  } catch {
    return unexpected("it is not JSON")
  }
}

/** Reads a mailbox document with new notifications, in XML or JSON. */
const readTopic = (body: string): Push => {
  const document = body.startsWith("{") ? jsonIn(body) : xmlToJson(body)
  return {
    id: "",
    mailbox: textOf(document, "href"),
    cursor: textOf(document, "time"),
    notifications: listOf(document, "notification").map((one) => notificationOf(one)),
    removed: [],
    deleted: false,
    test: false
  }
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

/** Verifies a push of a native registration and reads it. Throws InvalidSignature. */
export const verifyPush = async (
  incoming: Incoming,
  secrets: string | ReadonlyArray<string>,
  verification: Verification = {}
): Promise<Push> => {
  const { body, id } = await verifySignature(incoming, secrets, verification)
  return readPush(textIn(body), id)
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

/**
 * Verifies a push of a WebSub subscription to a mailbox, as XML or JSON, and reads it. A push to
 * such a topic has no removals. Throws InvalidSignature, and UnexpectedAnswer for another topic.
 */
export const verifyHubPush = async (
  incoming: Incoming,
  secrets: string | ReadonlyArray<string>
): Promise<Push> => readTopic(textIn(await verifyHubSignature(incoming, secrets)))

/** A callback. */
export interface PushReceiver {
  /** `whsec_…`; several while the secret changes. A function is called for each push. */
  readonly secrets:
    | string
    | ReadonlyArray<string>
    | (() => string | ReadonlyArray<string> | Promise<string | ReadonlyArray<string>>)
  /** URIs of the mailboxes of this callback; it refuses the challenge of any other. */
  readonly mailboxes: string | ReadonlyArray<string>
  /** Once it resolves, the push is acknowledged; when it rejects, the service repeats the push. */
  readonly onPush: (push: Push) => Promise<void> | void
  readonly toleranceMs?: number | undefined
}

const answer = (status: number, text?: string): Response =>
  new Response(text ?? null, {
    status,
    headers: text === undefined ? {} : { "content-type": "text/plain; charset=utf-8" }
  })

/**
 * A callback as a fetch handler (Deno.serve, workers, Hono and others): it echoes the challenge of
 * its mailboxes, verifies pushes, and acknowledges a push after `onPush` resolves.
 */
export const pushReceiver = ({ mailboxes, onPush, secrets, toleranceMs }: PushReceiver) => {
  const wanted: ReadonlyArray<string> = typeof mailboxes === "string" ? [mailboxes] : mailboxes
  return async (request: Request): Promise<Response> => {
    if (request.method === "GET") {
      const { searchParams } = new URL(request.url)
      const challenge = searchParams.get("hub.challenge")
      const topic = searchParams.get("hub.topic") ?? ""
      return challenge !== null && wanted.includes(topic) ? answer(200, challenge) : answer(404)
    }
    if (request.method !== "POST") return answer(405)
    try {
      const currentSecrets = typeof secrets === "function" ? await secrets() : secrets
      const push = await verifyPush(
        request,
        currentSecrets,
        toleranceMs === undefined ? {} : { toleranceMs }
      )
      if (!wanted.includes(push.mailbox)) return answer(404)
      await onPush(push)
      return answer(204)
    } catch (error) {
      if (error instanceof InvalidSignature) {
        return answer(error.fault === "too-large" ? 413 : 401, error.message)
      }
      return answer(500)
    }
  }
}
