/** A notification as a mailbox gives it out. */
import { type Json, type JsonObject, objectOf, optionalNumber } from "./json.ts"
import { optionalObject, optionalText, textOf } from "./json.ts"

/** The copy that a mailbox with `fetch="eager"` keeps of a message. */
export interface CachedCopy {
  readonly href: string
  readonly type: string | undefined
  readonly lengthBytes: number | undefined
}

/** A notification in a mailbox. */
export interface Notification {
  /** Its URI. */
  readonly href: string
  /** When it was deposited, RFC 3339, by the service's clock. */
  readonly received: string
  readonly description: string
  /** Where the message is. */
  readonly url: string
  /** The message password. */
  readonly password: string | undefined
  /** The outgoing mailbox that it came from, where its sender wished that to be told. */
  readonly from: string | undefined
  readonly cached: CachedCopy | undefined
  /** The whole `item`, with elements that this package does not know. */
  readonly item: JsonObject
}

const cachedOf = (document: JsonObject): CachedCopy | undefined => {
  const cached = optionalObject(document, "cached")
  return cached === undefined ? undefined : {
    href: textOf(cached, "href"),
    type: optionalText(cached, "type"),
    lengthBytes: optionalNumber(cached, "length")
  }
}

/** Reads a notification of a listing, an event or a push. */
export const notificationOf = (document: JsonObject): Notification => {
  const item = objectOf(document, "item")
  return {
    href: textOf(document, "href"),
    received: textOf(document, "received"),
    description: textOf(item, "description"),
    url: textOf(item, "url"),
    password: optionalText(item, "password"),
    from: optionalText(item, "from"),
    cached: cachedOf(document),
    item
  }
}

/** Content that travels in the notification, and is published by the service. */
export interface InlineContent {
  readonly type: string
  /** Bytes are sent as base64. */
  readonly data: string | Uint8Array
}

/** What a notification says: what it is about, and either where the message is or the message. */
export interface NotificationInput {
  readonly description: string
  /** The URI of the message. */
  readonly url?: string | undefined
  /** Instead of `url`. */
  readonly content?: InlineContent | undefined
  /** The message password, which travels with the notification. */
  readonly password?: string | undefined
  /** Further elements of the `item`. */
  readonly extra?: Readonly<Record<string, Json>> | undefined
}

const encoded = ({ data, type }: InlineContent): JsonObject => {
  if (typeof data === "string") return { type, "#text": data }
  let bytes = ""
  for (const byte of data) bytes += String.fromCharCode(byte)
  return { type, encoding: "base64", "#text": btoa(bytes) }
}

/** The `item` of a letter, as JSON. */
export const itemOf = (
  { content, description, extra, password, url }: NotificationInput
): JsonObject => ({
  ...extra,
  description,
  ...url === undefined ? {} : { url },
  ...password === undefined ? {} : { password },
  ...content === undefined ? {} : { content: encoded(content) }
})
