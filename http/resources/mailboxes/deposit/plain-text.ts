/**
 * Deposits of plain text (protocol §7), such as what `curl -d "hello"` sends. The text becomes
 * content of the mailbox, and its first line describes the notification.
 */
import { bodyKind, mediaTypeOf } from "../../../formats/index.ts"
import { type DocumentParser, failure, isText, type NotificationDocument, type Result,
  success } from "../../../formats/xml/index.ts"
import { headerValueCharsMax, plainTextTitleCharsMax } from "../../../limits.ts"
import { isNotificationForm } from "../../../notification-body.ts"
import { documentError, type HttpError, httpError } from "../../../pipeline/index.ts"
import type { RequestHeaders } from "../../../wire/index.ts"
import { readTextFields } from "./text-fields.ts"

export const plainTextType = "text/plain"

const typeOfForms = "text/plain; charset=utf-8"

/** Whether a body is plain text: by its type, or a form without a field of a notification. */
export const isPlainText = (bytes: Uint8Array, contentType: string): boolean =>
  mediaTypeOf(contentType) === plainTextType ||
  bodyKind(contentType) === "form" && !isNotificationForm(bytes)

/** The type that the content gets: that of the body, which names its charset. */
const typeOf = (contentType: string): string => {
  const type = contentType.trim()
  const isKept = mediaTypeOf(type) === plainTextType && type.includes("=") &&
    type.length <= headerValueCharsMax && /^[\x20-\x7e]+$/.test(type)
  return isKept ? type : typeOfForms
}

/**
 * The first line that has a word, at most `plainTextTitleCharsMax` characters. XML cannot hold a
 * control character, so it becomes a space.
 */
export const titleOf = (text: string): string => {
  const [line = ""] = text.trimStart().split(/[\r\n]/, 1)
  // A character has two UTF-16 units at most; a line may have many more than are taken.
  const characters = [...line.slice(0, 2 * plainTextTitleCharsMax)].slice(0, plainTextTitleCharsMax)
  return characters.map((character) => isText(character) ? character : " ").join("").trim()
}

/** A notification of a body that becomes content as it came; `extra` is XML for the item. */
export const contentNotification = (
  description: string,
  type: string,
  bytes: Uint8Array,
  extra: string
): NotificationDocument => ({
  to: [],
  from: false,
  sender: undefined,
  description,
  url: "",
  password: undefined,
  content: { type, encoding: "base64", text: Buffer.from(bytes).toString("base64") },
  itemAttributes: "",
  fieldAttributes: undefined,
  extra,
  rootExtra: ""
})

/** The notification of plain text. Fails with 400, 413, 415, and with 422 without a word. */
export const readPlainText = (
  parser: DocumentParser,
  bytes: Uint8Array,
  contentType: string,
  headers: RequestHeaders
): Result<NotificationDocument, HttpError> => {
  const text = parser.decode(bytes, contentType)
  if (!text.ok) return failure(documentError(text.fault))
  const extra = readTextFields(headers)
  if (!extra.ok) return extra
  const description = titleOf(text.value)
  if (description === "") {
    return failure(httpError("unprocessable", "the text has no line with a word: send some text"))
  }
  return success(contentNotification(description, typeOf(contentType), bytes, extra.value))
}
