/** The form in which a notification is stored and served: an XML fragment, ready to be joined. */

import { element, escapeAttribute, escapeText } from "./element.ts"
import type { Element } from "./element.ts"
import type { NotificationDocument } from "./rules.ts"

/** What the service itself puts in a stored or relayed notification. */
export interface FragmentChanges {
  /** Replaces `item/password`. */
  readonly password?: string | undefined
  /** Replaces `item/url`, after inlined content was published. */
  readonly url?: string | undefined
  /** Replaces `item/from`, when relaying. */
  readonly sender?: string | undefined
}

/**
 * `<item>…</item>` and after it the unknown elements of the root, as they will be served inside a
 * `notification` element: known fields first, unknown elements as they came. `to` is left out.
 */
export const storedFragment = (
  document: NotificationDocument,
  changes?: FragmentChanges
): string => {
  const attributes = document.fieldAttributes
  const password = changes?.password ?? document.password
  const sender = changes?.sender ?? document.sender
  let text = `<item${document.itemAttributes}><description${attributes?.["description"] ?? ""}>` +
    escapeText(document.description) + `</description><url${attributes?.["url"] ?? ""}>` +
    escapeText(changes?.url ?? document.url) + "</url>"
  if (password !== undefined) {
    text += `<password${attributes?.["password"] ?? ""}>${escapeText(password)}</password>`
  }
  if (sender !== undefined) {
    text += `<from${attributes?.["from"] ?? ""}>${escapeText(sender)}</from>`
  }
  if (document.content !== undefined) text += contentFragment(document)
  return `${text}${document.extra}</item>${document.rootExtra}`
}

const contentFragment = (document: NotificationDocument): string => {
  const content = document.content
  if (content === undefined) return ""
  const encoding = content.encoding === undefined ? "" : ` encoding="${content.encoding}"`
  return `<content type="${escapeAttribute(content.type)}"${encoding}` +
    `${document.fieldAttributes?.["content"] ?? ""}>${escapeText(content.text)}</content>`
}

/** A simple notification of the service's own making, as a document (of a form, of JSON). */
export const notificationElement = (fields: {
  readonly to?: ReadonlyArray<string>
  readonly from?: boolean
  readonly description: string
  readonly url: string
  readonly password?: string | undefined
  readonly content?: { readonly type: string; readonly text: string } | undefined
}): Element =>
  element(
    "notification",
    { from: fields.from === true ? "true" : undefined },
    ...(fields.to ?? []).map((uri) => element("to", {}, uri)),
    element(
      "item",
      {},
      element("description", {}, fields.description),
      element("url", {}, fields.url),
      fields.password === undefined ? undefined : element("password", {}, fields.password),
      fields.content === undefined
        ? undefined
        : element("content", { type: fields.content.type }, fields.content.text)
    )
  )
