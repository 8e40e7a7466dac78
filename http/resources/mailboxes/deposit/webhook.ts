/**
 * Webhooks of services that do not know the protocol. Their JSON becomes content of the mailbox as
 * it came, and the mailbox's templates make the notification.
 */
import { Effect } from "effect"
import { signingSecretOf } from "../../../../actors/index.ts"
import type { WebhookTemplates } from "../../../../actors/mailbox/index.ts"
import { isRefusal } from "../../../../runtime/index.ts"
import { mediaTypeOf } from "../../../formats/index.ts"
import type { NotificationDocument } from "../../../formats/xml/index.ts"
import { type HandlerFailure, type HttpError, httpError,
  type Service } from "../../../pipeline/index.ts"
import type { HttpRequest } from "../../../wire/index.ts"
import { describeMailbox, type MailboxRef } from "../mailbox-access.ts"
import { fillTemplate, templatesOf } from "../webhook-template.ts"
import { contentNotification, titleOf } from "./plain-text.ts"
import { clickElement, priorityElement, tagsElement } from "./text-fields.ts"
import { isSigned } from "./webhook-signature.ts"

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

/** The body of a deposit that is no notification, and the failure that says so. */
export interface UnreadBody {
  readonly bytes: Uint8Array
  readonly contentType: string
  readonly fault: HttpError
}

/**
 * The notification of a webhook. It is never refused for what a template makes of it: who sends it
 * cannot change the templates.
 */
const notificationOf = (
  webhook: unknown,
  { bytes, contentType }: UnreadBody,
  written: WebhookTemplates
): NotificationDocument => {
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

/** The JSON of a text; undefined if it is none. */
const parseJson = (text: string): { readonly value: unknown } | undefined => {
  try {
    return { value: JSON.parse(text) as unknown }
  } catch {
    return undefined
  }
}

const unsigned = httpError(
  "forbidden",
  "the signature of this webhook is missing, wrong or too old, and nothing was stored: give the "
    + "sender the secret that the owner of the mailbox has set, and check the clocks"
)

/** A sender repeats after 503, and gives up after 403: nothing is lost because a key was. */
const unreadable = httpError(
  "storage-unavailable",
  "the secret of this mailbox's webhooks cannot be decrypted, and nothing was stored: the operator "
    + "gives the service the key back, or the owner of the mailbox sets the secret again"
)

/** A webhook as a notification; `isSigned`: its signature is right. */
interface Webhook {
  readonly document: NotificationDocument
  readonly isSigned: boolean
}

/**
 * Takes a body that is no notification, in a mailbox that takes webhooks. Fails with the fault of
 * the body in any other, and with 403 where the mailbox asks for a signature, the sender has no
 * account, and the signature is not right; with 503 where the secret cannot be decrypted.
 */
export const takeWebhook = Effect.fnUntraced(function*(
  service: Service,
  mailbox: MailboxRef,
  { headers }: HttpRequest,
  unread: UnreadBody,
  account: string | undefined
): Effect.fn.Return<Webhook, HandlerFailure> {
  const { documentParser, keyring, nowMs } = service
  const view = yield* describeMailbox(service, mailbox)
  if (isRefusal(view) || view.settings.webhook === undefined) return yield* unread.fault
  const text = documentParser.decode(unread.bytes, unread.contentType)
  const json = text.ok ? parseJson(text.value) : undefined
  if (!text.ok || json === undefined) return yield* unread.fault
  const { webhook } = view.settings
  const document = () => notificationOf(json.value, unread, webhook)
  if (view.webhookSecret === undefined) return { document: document(), isSigned: false }
  const secret = keyring.open(signingSecretOf(mailbox.to), view.webhookSecret)
  const isRight = secret !== undefined &&
    isSigned({ headers, text: text.value }, secret, nowMs())
  if (!isRight && account === undefined) return yield* secret === undefined ? unreadable : unsigned
  return { document: document(), isSigned: isRight }
})
