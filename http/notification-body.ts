/** Reading the notification in a body, for deposits (A2) and for relays (A5). */
import { Effect } from "effect"
import type { SealPassword } from "../actors/index.ts"
import { acceptedBodies, bodyKind, type FormFields, parseFormBody } from "./formats/index.ts"
import { describingElements, describingFields, type DocumentParser, failure, isText,
  type NotificationDocument, notificationElement, type Result, type RuleFault, storedFragment,
  success, writeElement, type XmlFault } from "./formats/xml/index.ts"
import { headerValueCharsMax } from "./limits.ts"
import { documentError, type HttpError, httpError, unsupportedMediaType } from "./pipeline/index.ts"

const withHttpError = <A>(result: Result<A, XmlFault | RuleFault>): Result<A, HttpError> =>
  result.ok ? result : failure(documentError(result.fault))

/** A field of a page's form. Splitting a body of separators alone would take 50 ms. */
const formField = /(?:^|&)(?:to|from|description|url|content)(?:[=&]|$)/

/** Whether a form has a field of a notification; what `curl -d "hello"` sends has none. */
export const isNotificationForm = (bytes: Uint8Array): boolean =>
  formField.test(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1"))

const fieldsOfNotification: ReadonlySet<string> = new Set([
  "to",
  "from",
  "description",
  "url",
  "content",
  ...describingFields
])

/** Whether a form has fields of a notification and no others, as that of a page. */
export const isFormOfNotification = (bytes: Uint8Array): boolean => {
  const fields = isNotificationForm(bytes) ? parseFormBody(bytes) : undefined
  return fields?.ok === true &&
    fields.value.entries().every(([name]) => fieldsOfNotification.has(name))
}

/** The recipients of a form: several fields, or several lines of one. */
const recipientsOf = (fields: FormFields): ReadonlyArray<string> =>
  fields.all("to").flatMap((field) => field.split(/[\r\n]+/)).map((line) => line.trim())
    .filter((line) => line !== "")

/** A text of a form, in which browsers end lines by CR LF. */
const textIn = (fields: FormFields, name: string): string =>
  (fields.get(name) ?? "").replace(/\r\n?/g, "\n")

/** The fault of a form that has neither; it stands beside the field that it names. */
const noMessage = "content is empty: write the message itself, or give its address"

/** The notification of a page's form. */
const readForm = (
  parser: DocumentParser,
  bytes: Uint8Array
): Result<NotificationDocument, HttpError> => {
  const fields = parseFormBody(bytes)
  if (!fields.ok) return failure(httpError("malformed", fields.fault))
  const [description = "", url = "", text = ""] = ["description", "url", "content"].map((name) =>
    textIn(fields.value, name)
  )
  const to = recipientsOf(fields.value)
  if (description.trim() === "") {
    return failure(httpError("unprocessable", "description is required"))
  }
  if (![description, url, text, ...to].every(isText)) {
    return failure(httpError("unprocessable", "a field holds a control character"))
  }
  if (url.trim() === "" && text.trim() === "") {
    return failure(httpError("unprocessable", noMessage))
  }
  const extra = describingElements((name) => textIn(fields.value, name))
  if (!extra.ok) {
    const { fault, name } = extra.fault
    return failure(httpError("unprocessable", `${name} ${fault}`))
  }
  const content = text.trim() === "" ? undefined : { type: "text/plain; charset=utf-8", text }
  const from = fields.value.get("from") === "true"
  const root = notificationElement({ to, from, description, url, content })
  const document = withHttpError(parser.parseNotificationText(writeElement(root)))
  return !document.ok || extra.value === ""
    ? document
    : success({ ...document.value, extra: extra.value, written: undefined })
}

/** The notification of a body of any accepted type; fails with 400, 413, 415 or 422. */
export const readNotification = (
  parser: DocumentParser,
  bytes: Uint8Array,
  contentType: string
): Result<NotificationDocument, HttpError> => {
  switch (bodyKind(contentType)) {
    case "xml":
      return withHttpError(parser.parseNotification(bytes, contentType))
    case "json": {
      const root = parser.parseJson("notification", bytes, contentType)
      return root.ok
        ? withHttpError(parser.parseNotificationText(writeElement(root.value)))
        : failure(documentError(root.fault))
    }
    case "form":
      return readForm(parser, bytes)
    case undefined:
      return failure(unsupportedMediaType("POST", acceptedBodies(true)))
  }
}

/** The notification as it is stored; fails with 413. */
export const fragmentToStore = (
  parser: DocumentParser,
  document: NotificationDocument,
  seal: SealPassword
): Result<string, HttpError> => withHttpError(parser.fragmentToStore(document, seal))

/** Whether the service itself has to publish what is in the notification (protocol §1.2). */
export const needsPublication = ({ content, url }: NotificationDocument): boolean =>
  content !== undefined && url === ""

/**
 * The notification as it is stored; `publish` publishes inlined content and returns its URI. Fails
 * with 413, before that: the URI adds little.
 */
export const publishedFragment = Effect.fnUntraced(function*<E>(
  parser: DocumentParser,
  document: NotificationDocument,
  seal: SealPassword,
  publish: Effect.Effect<string, E>
): Effect.fn.Return<string, E | HttpError> {
  const isPublished = needsPublication(document)
  const stored = isPublished ? { ...document, content: undefined, written: undefined } : document
  const fragment = fragmentToStore(parser, stored, seal)
  if (!fragment.ok) return yield* fragment.fault
  return isPublished ? storedFragment({ ...stored, url: yield* publish }, seal) : fragment.value
})

/** Inlined content as it will be published, with the message password; 422 for a bad type. */
export const inlinedContent = (
  { content, password }: NotificationDocument
): Effect.Effect<
  { readonly type: string; readonly bytes: Uint8Array; readonly password: string | undefined },
  HttpError
> => {
  if (content === undefined) throw new Error("there is no content to publish")
  const { encoding, text, type } = content
  return type.length > headerValueCharsMax || !/^[\x20-\x7e]+$/.test(type)
    ? Effect.fail(httpError("unprocessable", "the type of item/content is not a media type"))
    : Effect.succeed({ type, bytes: Buffer.from(text, encoding ?? "utf8"), password })
}
