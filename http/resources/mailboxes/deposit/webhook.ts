/**
 * Webhooks of services that do not know the protocol. Their JSON becomes content of the mailbox as
 * it came, and the mailbox's templates make the notification.
 */
import type { WebhookTemplates } from "../../../../actors/mailbox/index.ts"
import { mediaTypeOf } from "../../../formats/index.ts"
import type { DocumentParser, NotificationDocument } from "../../../formats/xml/index.ts"
import { fillTemplate, templatesOf } from "../webhook-template.ts"
import { contentNotification, titleOf } from "./plain-text.ts"
import { clickElement, priorityElement, tagsElement } from "./text-fields.ts"

/** Words for how grave an alert is, as priorities. */
const severities: ReadonlyMap<string, string> = new Map([
  ["emergency", "max"],
  ["critical", "max"],
  ["page", "max"],
  ["error", "high"],
  ["warning", "high"],
  ["warn", "high"],
  ["info", "default"],
  ["none", "low"]
])

/** Whether a body may be a webhook: JSON of any kind. */
export const mayBeWebhook = (contentType: string): boolean =>
  /^application\/(?:[\w.-]+\+)?json$/.test(mediaTypeOf(contentType))

/**
 * The notification of a webhook; undefined if the body is not JSON. It is never refused for what a
 * template makes of it: who sends it cannot change the templates.
 */
export const readWebhook = (
  parser: DocumentParser,
  bytes: Uint8Array,
  contentType: string,
  written: WebhookTemplates
): NotificationDocument | undefined => {
  const text = parser.decode(bytes, contentType)
  if (!text.ok) return undefined
  let webhook: unknown
  try {
    webhook = JSON.parse(text.value)
  } catch {
    return undefined
  }
  const templates = templatesOf(written)
  const fill = (template = ""): string => fillTemplate(template, webhook).trim()
  const priority = fill(templates.priority).toLowerCase()
  const extra = priorityElement(severities.get(priority) ?? priority) +
    tagsElement(titleOf(fill(templates.tags))) + clickElement(fill(templates.link))
  const description = titleOf(fill(templates.description).replace(/\s+/g, " "))
  return contentNotification(
    description === "" ? "A webhook" : description,
    mediaTypeOf(contentType),
    bytes,
    extra
  )
}
