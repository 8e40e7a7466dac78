/** Input of registrations: a callback, the fields of a WebSub request, or a browser's keys. */
import { Effect } from "effect"
import { ECDH } from "node:crypto"
import { parseUrl } from "../../../actors/index.ts"
import type { TopicFormat } from "../../../actors/registration/index.ts"
import type { FormFields } from "../../formats/index.ts"
import { childOf, childText, type Element } from "../../formats/xml/index.ts"
import { leaseSecondsDefault, leaseSecondsMax, subscriberSecretBytesMax,
  uriCharsMax } from "../../limits.ts"
import { type HttpError, type RequestInput, unprocessable } from "../../pipeline/index.ts"
import type { MailboxRef } from "../mailboxes/index.ts"
import { isTopicFormat } from "./topic-document.ts"

/** The callback in a document or in the form of a page, unchecked. */
export const callbackIn = (input: RequestInput): string | undefined => {
  const text = input._tag === "Form"
    ? input.fields.get("callback")
    : childText(input.root, "callback")
  return text?.trim() || undefined
}

/** Whether a change is to pause the registration: its document, or a form, has this status. */
export const isPause = (input: RequestInput): boolean => {
  const status = input._tag === "Form"
    ? input.fields.get("status")
    : input.root.attributes["status"]
  return status === "paused"
}

/** The position from which pushes are to begin again, or the end of that, unchecked. */
export const positionIn = (input: RequestInput, name: "since" | "until"): string | undefined => {
  const text = input._tag === "Form" ? input.fields.get(name) : childText(input.root, name)
  return text?.trim() || undefined
}

/** The callback; 422 with a fault that begins with the name of the field. */
export const readCallback = (
  name: string,
  text: string | undefined
): Effect.Effect<string, HttpError> => {
  if (text === undefined) {
    return unprocessable(`${name} is required: the URI that changes are pushed to`)
  }
  if (text.length > uriCharsMax) {
    return unprocessable(`${name} may have ${uriCharsMax} characters at the most`)
  }
  const isWritten = /^https?:\/\/[^/?#]/i.test(text) && /^[\x21-\x7e]+$/.test(text)
  const url = isWritten ? parseUrl(text) : undefined
  if (url === undefined) {
    return unprocessable(`${name} must be an absolute http or https URI`)
  }
  const { password, username } = url
  if (username !== "" || password !== "") {
    return unprocessable(`${name} must hold neither a user name nor a password`)
  }
  return text.includes("#") ? unprocessable(`${name} must have no fragment`) : Effect.succeed(text)
}

/** A valid push subscription of a browser (Push API §8.2). */
export interface BrowserSubscription {
  readonly endpoint: string
  readonly p256dh: string
  readonly auth: string
}

/** Whether a document is the push subscription of a browser, and not the native form. */
export const isBrowserSubscription = (root: Element): boolean =>
  childOf(root, "endpoint") !== undefined || childOf(root, "keys") !== undefined

const authBytes = 16

const pointBytes = 65

/** The bytes of a text of base64url without padding; undefined for another number of them. */
const decodedBytes = (text: string | undefined, bytes: number): Buffer | undefined => {
  if (text === undefined || !/^[A-Za-z0-9_-]+$/.test(text)) return undefined
  const decoded = Buffer.from(text, "base64url")
  return decoded.length === bytes && text.length === Math.ceil(bytes * 4 / 3) ? decoded : undefined
}

/** Whether the bytes are an uncompressed point of P-256 (SEC 1 §2.3.4). */
const isPoint = (bytes: Buffer): boolean => {
  if (bytes[0] !== 4) return false
  try {
    ECDH.convertKey(bytes, "prime256v1")
    return true
  } catch {
    return false
  }
}

/** Whether nobody on the way reads what is sent there; on this machine without TLS too. */
const isConfidential = (uri: string): boolean => {
  const { hostname = "", protocol } = parseUrl(uri) ?? {}
  return protocol === "https:" || /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname)
}

/**
 * The push subscription as `PushSubscription.toJSON()` writes it; 422 with the fault of one field.
 * The expirationTime has no meaning here: the push service answers when the subscription has ended.
 */
export const readBrowserSubscription = Effect.fnUntraced(function*(
  root: Element
): Effect.fn.Return<BrowserSubscription, HttpError> {
  if (childOf(root, "callback") !== undefined) {
    return yield* unprocessable("endpoint and callback: a registration has one of them")
  }
  const endpoint = yield* readCallback("endpoint", childText(root, "endpoint")?.trim() || undefined)
  if (!isConfidential(endpoint)) {
    return yield* unprocessable("endpoint must be an https URI, as those of push services are")
  }
  const keys = childOf(root, "keys")
  const keyOf = (name: string) => keys === undefined ? undefined : childText(keys, name)?.trim()
  const point = decodedBytes(keyOf("p256dh"), pointBytes)
  if (point === undefined || !isPoint(point)) {
    return yield* unprocessable(
      `keys.p256dh must be an uncompressed point of P-256: ${pointBytes} bytes as base64url`
    )
  }
  const auth = decodedBytes(keyOf("auth"), authBytes)
  if (auth === undefined) {
    return yield* unprocessable(`keys.auth must be ${authBytes} bytes as base64url`)
  }
  return {
    endpoint,
    p256dh: point.toString("base64url"),
    auth: auth.toString("base64url")
  }
})

/** A valid WebSub request (WebSub §5.1). */
export type HubRequest =
  | {
    readonly mode: "subscribe"
    readonly callback: string
    readonly topicFormat: TopicFormat | undefined
    readonly secret: string | undefined
    readonly leaseSeconds: number
  }
  | {
    readonly mode: "unsubscribe"
    readonly callback: string
    readonly topicFormat: TopicFormat | undefined
  }

/** Whether a form is a WebSub request, and not the form of a page. */
export const isHubRequest = (fields: FormFields): boolean =>
  fields.entries().some(([name]) => name.startsWith("hub."))

const readLease = (text: string | undefined): Effect.Effect<number, HttpError> => {
  if (text === undefined || text === "") return Effect.succeed(leaseSecondsDefault)
  return /^\d+$/.test(text) && Number(text) > 0
    ? Effect.succeed(Math.min(Number(text), leaseSecondsMax))
    : unprocessable("hub.lease_seconds must be a positive whole number")
}

/**
 * The format of a topic; undefined for the mailbox itself. The verification and the pushes name the
 * public URI, which the subscriber must recognize.
 */
const readTopic = (
  topic: string | undefined,
  { href }: MailboxRef
): Effect.Effect<TopicFormat | undefined, HttpError> => {
  if (topic === href) return Effect.succeed(undefined)
  const start = `${href}?format=`
  const format = topic?.startsWith(start) === true ? topic.slice(start.length) : ""
  return isTopicFormat(format) ? Effect.succeed(format) : unprocessable(
    `hub.topic must be the mailbox: ${href}, or one of its representations, such as ${start}atom`
  )
}

/** The WebSub request of these fields for this mailbox; 422 with the fault of one field. */
export const readHubRequest = Effect.fnUntraced(function*(
  fields: FormFields,
  mailbox: MailboxRef
): Effect.fn.Return<HubRequest, HttpError> {
  const mode = fields.get("hub.mode")
  if (mode !== "subscribe" && mode !== "unsubscribe") {
    return yield* unprocessable("hub.mode must be subscribe or unsubscribe")
  }
  const topicFormat = yield* readTopic(fields.get("hub.topic"), mailbox)
  const callback = yield* readCallback("hub.callback", fields.get("hub.callback"))
  if (mode === "unsubscribe") return { mode, callback, topicFormat }
  const secret = fields.get("hub.secret") || undefined
  if (secret !== undefined && Buffer.byteLength(secret) > subscriberSecretBytesMax) {
    return yield* unprocessable(`hub.secret may have ${subscriberSecretBytesMax} bytes at the most`)
  }
  const leaseSeconds = yield* readLease(fields.get("hub.lease_seconds"))
  return { mode, callback, topicFormat, secret, leaseSeconds }
})
