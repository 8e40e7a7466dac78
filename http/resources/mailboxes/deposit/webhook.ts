/**
 * Webhooks of services that do not know the protocol. Their body becomes content of the mailbox as
 * it came, and the mailbox's templates make the notification of its JSON.
 */
import { Effect } from "effect"
import { signingSecretOf } from "../../../../actors/index.ts"
import type { WebhookTemplates } from "../../../../actors/mailbox/index.ts"
import { isRefusal } from "../../../../runtime/index.ts"
import { bodyKind, mediaTypeOf } from "../../../formats/index.ts"
import { clickElement, type NotificationDocument, priorityElement, type Result,
  tagsElement } from "../../../formats/xml/index.ts"
import { type HandlerFailure, HttpError, httpError, type Service } from "../../../pipeline/index.ts"
import type { HttpRequest } from "../../../wire/index.ts"
import { checkSecret, describeMailbox, type MailboxRef } from "../mailbox-access.ts"
import { typeOrUnnamed } from "../../content/index.ts"
import { fillTemplate, isConstant, templatesOf } from "../webhook-template.ts"
import { contentNotification, titleOf } from "./plain-text.ts"
import { describeBody, isFaultyNotification, jsonOf, type WebhookBody,
  webhookBodyOf } from "./webhook-body.ts"
import { isSigned } from "./webhook-signature.ts"

/** Words for how grave an alert is, as priorities; what is over is not grave. */
const severities: ReadonlyMap<string, string> = new Map([
  ["resolved", "default"],
  ["emergency", "max"],
  ["critical", "max"],
  ["page", "max"],
  ["error", "high"],
  ["warning", "high"],
  ["warn", "high"],
  ["moderate", "default"],
  ["medium", "default"],
  ["info", "default"],
  ["none", "low"]
])

/** The priority that the first word of a text names that is one; empty for none. */
const priorityIn = (text: string): string => {
  for (const word of text.toLowerCase().split(/\s+/)) {
    const found = priorityElement(severities.get(word) ?? word)
    if (found !== "") return found
  }
  return ""
}

/** The body of a deposit, and what it is in a mailbox that takes no webhooks. */
export interface UnreadBody {
  readonly bytes: Uint8Array
  readonly contentType: string
  readonly otherwise: Result<NotificationDocument, HttpError>
}

/** The type of the content. That of JSON names no charset. */
const typeOf = ({ contentType }: WebhookBody, json: unknown): string =>
  json === undefined || bodyKind(contentType) === "form"
    ? typeOrUnnamed(contentType)
    : mediaTypeOf(contentType)

/**
 * The notification of a webhook. It is never refused for what a template makes of it: who sends it
 * cannot change the templates. Without JSON, a template that names a value makes nothing.
 */
const notificationOf = (body: WebhookBody, written: WebhookTemplates): NotificationDocument => {
  const templates = templatesOf(written)
  const json = jsonOf(body)
  const fill = (template = ""): string =>
    json === undefined && !isConstant(template) ? "" : fillTemplate(template, json?.value).trim()
  const extra = priorityIn(fill(templates.priority)) + tagsElement(titleOf(fill(templates.tags))) +
    clickElement(fill(templates.link))
  const description = titleOf(fill(templates.description).replace(/\s+/g, " "))
  const untitled = json === undefined ? describeBody(body) : "A webhook"
  return contentNotification(
    description === "" ? untitled : description,
    typeOf(body, json),
    body.bytes,
    extra
  )
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

/** The status of a document that can be read, and breaks a rule of notifications. */
const ruleBroken = 422

/** The fault of a body that is no notification, in a mailbox that takes no webhooks. */
const withoutWebhooks = ({ headers, problem }: HttpError): HttpError => {
  const hint = "a mailbox takes other documents as webhooks where its owner has set webhook"
  const detail = problem.detail === undefined ? hint : `${problem.detail}; ${hint}`
  return new HttpError({ headers, problem: { ...problem, detail } })
}

/** A webhook as a notification; `isSigned`: its signature is right. */
interface Webhook {
  readonly document: NotificationDocument
  readonly isSigned: boolean
  /** The depositing account, if the sender has one. */
  readonly account: string | undefined
}

/**
 * Takes a body that is no notification, in a mailbox that takes webhooks. In any other, and for a
 * notification with a fault, it is what `otherwise` says. Fails with 403 where the mailbox asks for
 * a signature, the sender has no account, and the signature is not right; with 503 where the secret
 * cannot be decrypted. `account` is found only for a webhook.
 */
export const takeWebhook = Effect.fnUntraced(function*(
  service: Service,
  mailbox: MailboxRef,
  { headers }: HttpRequest,
  { bytes, contentType, otherwise }: UnreadBody,
  account: Effect.Effect<string | undefined, HandlerFailure>
): Effect.fn.Return<Webhook, HandlerFailure> {
  const { documentParser, keyring, nowMs } = service
  const body = webhookBodyOf(documentParser, bytes, contentType)
  const isWebhook = otherwise.ok ? jsonOf(body) !== undefined : !isFaultyNotification(body, headers)
  // Whether it takes webhooks is known only to who knows its URI.
  if (isWebhook) yield* checkSecret(service, mailbox)
  const view = isWebhook ? yield* describeMailbox(service, mailbox) : undefined
  if (view === undefined || isRefusal(view) || view.settings.webhook === undefined) {
    if (!otherwise.ok) {
      const { fault } = otherwise
      return yield* isWebhook && fault.problem.status === ruleBroken
        ? withoutWebhooks(fault)
        : fault
    }
    return { document: otherwise.value, isSigned: false, account: yield* account }
  }
  const document = notificationOf(body, view.settings.webhook)
  const sender = yield* account
  if (view.webhookSecret === undefined) return { document, isSigned: false, account: sender }
  const secret = keyring.open(signingSecretOf(mailbox.to), view.webhookSecret)
  const isRight = secret !== undefined && isSigned({ headers, bytes }, secret, nowMs())
  if (!isRight && sender === undefined) return yield* secret === undefined ? unreadable : unsigned
  return { document, isSigned: isRight, account: sender }
})

/** What a mailbox answers to a body of a type that only webhooks have, if it cannot be read. */
export const faultOfUnread = Effect.fnUntraced(function*(
  service: Service,
  mailbox: MailboxRef,
  fault: HttpError,
  otherwise: HttpError
): Effect.fn.Return<never, HandlerFailure> {
  yield* checkSecret(service, mailbox)
  const view = yield* describeMailbox(service, mailbox)
  return yield* isRefusal(view) || view.settings.webhook === undefined ? otherwise : fault
})
