/**
 * The bodies of webhooks: which bodies are notifications instead, the JSON in the others, and what
 * describes a body without JSON.
 */
import { bodyKind, mediaTypeOf } from "../../../formats/index.ts"
import type { DocumentParser } from "../../../formats/xml/index.ts"
import { isFormOfNotification } from "../../../notification-body.ts"
import type { RequestHeaders } from "../../../wire/index.ts"
import { plainTextType, titleOf } from "./plain-text.ts"
import { readTextFields } from "./text-fields.ts"

/** A body with its type, and with its text where it is UTF-8. */
export interface WebhookBody {
  readonly bytes: Uint8Array
  readonly contentType: string
  readonly text: string | undefined
}

export const webhookBodyOf = (
  parser: DocumentParser,
  bytes: Uint8Array,
  contentType: string
): WebhookBody => {
  const text = parser.decode(bytes, contentType)
  return { bytes, contentType, text: text.ok ? text.value : undefined }
}

const jsonType = /^application\/(?:[\w.-]+\+)?json$/

const payloadField = "payload="

const isForm = (contentType: string): boolean => bodyKind(contentType) === "form"

/** Whether a body is a form of the one field `payload`, as GitHub and Slack send it. */
export const isPayloadForm = (bytes: Uint8Array, contentType: string): boolean =>
  isForm(contentType) && !bytes.includes("&".charCodeAt(0)) &&
  Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, payloadField.length))
      .toString("latin1") === payloadField

/** The name of the first element, without a parser: the document may be none. */
const firstElement = /<([^\s<>/?!]+)/

const firstElementOf = (text = ""): string | undefined => firstElement.exec(text)?.[1]

/**
 * Whether a body that is no valid notification was meant as one, so that its sender gets the fault:
 * a document with the root of a notification, the form of a page, or text whose header fields are
 * wrong. So does a sender of nothing.
 */
export const isFaultyNotification = (
  { bytes, contentType, text }: WebhookBody,
  headers: RequestHeaders
): boolean => {
  if (bytes.length === 0) return true
  if (mediaTypeOf(contentType) === plainTextType) return !readTextFields(headers).ok
  if (bodyKind(contentType) === "xml") return firstElementOf(text) === "notification"
  return isForm(contentType) && isFormOfNotification(bytes)
}

/** The JSON of a text; undefined if it is none. */
const parseJson = (text: string | undefined): { readonly value: unknown } | undefined => {
  try {
    return text === undefined ? undefined : { value: JSON.parse(text) as unknown }
  } catch {
    return undefined
  }
}

/** The value of a field of a form; a form of one field has no bound but that of its body. */
const formValueOf = (encoded: string | undefined): string | undefined => {
  try {
    return encoded === undefined ? undefined : decodeURIComponent(encoded.replaceAll("+", " "))
  } catch {
    return undefined
  }
}

/** The JSON of a webhook, or of the field of its form; undefined without any. */
export const jsonOf = (
  { bytes, contentType, text }: WebhookBody
): { readonly value: unknown } | undefined => {
  if (jsonType.test(mediaTypeOf(contentType))) return parseJson(text)
  if (!isPayloadForm(bytes, contentType)) return undefined
  return parseJson(formValueOf(text?.slice(payloadField.length)))
}

/** What a body of a type is, for people. */
const kinds: ReadonlyArray<readonly [type: RegExp, kind: string]> = [
  [/^image\//, "A picture"],
  [/^audio\//, "A sound"],
  [/^video\//, "A video"],
  [/^application\/pdf$/, "A PDF document"],
  [/^text\/html$|xhtml/, "An HTML page"],
  [/^multipart\//, "A form with files"],
  [jsonType, "A webhook that is no valid JSON"]
]

/** The description of a webhook without JSON: its first line, or what its type is. */
export const describeBody = ({ contentType, text }: WebhookBody): string => {
  const type = mediaTypeOf(contentType)
  const kind = kinds.find(([pattern]) => pattern.test(type))?.[1]
  if (kind !== undefined) return kind
  if (bodyKind(type) === "xml") {
    const root = firstElementOf(text)
    return titleOf(root === undefined ? "An XML document" : `An XML document (${root})`)
  }
  const line = type.startsWith("text/") || isForm(type) ? titleOf(text ?? "") : ""
  if (line !== "") return line
  return type === "" ? "A webhook" : titleOf(`A webhook of the type ${type}`)
}
