/** A5: a notification is queued for its recipients. */
import { Effect } from "effect"
import { parseUrl, sealPasswordFor } from "../../../actors/index.ts"
import { aboutOf, type NotificationMessage, type NotificationReply,
  type NotificationView } from "../../../actors/notification/index.ts"
import { isRefusal } from "../../../runtime/index.ts"
import { bodyKind } from "../../formats/index.ts"
import { failure, type NotificationDocument, type Result,
  success } from "../../formats/xml/index.ts"
import { originRecipientsMax, uriCharsMax } from "../../limits.ts"
import { inlinedContent, publishedFragment, readNotification } from "../../notification-body.ts"
import { askOrRefusal, type Call, defineHandler, expectReply, type HandlerFailure, httpError,
  isPageForm, readBody, readerHeaders, refusalError, seeOther, type Service,
  viewAnswer } from "../../pipeline/index.ts"
import { traceparentOf } from "../../trace-context.ts"
import { publishInline } from "../content/index.ts"
import { serviceBlock } from "../mailboxes/index.ts"
import { describeAs, describeOutgoing, type OutgoingNotificationRef, type OutgoingRef,
  outgoingRefNamed, senderRefOf, typedRecipient } from "./outgoing-access.ts"
import { deleteRequestKey, enterOutgoing, removeOutgoing } from "./outgoing-entries.ts"
import { statusField, statusView } from "./outgoing-views.ts"
import { admitWhilePaused } from "./pauses.ts"

/**
 * The recipients without duplicates, or the fault of one. The fault names the recipient by its
 * number: its URI may hold a password. People write names in a form, which documents do not have.
 */
const recipientsOf = (
  service: Service,
  { to: written }: NotificationDocument,
  isForm: boolean
): Result<ReadonlyArray<string>, string> => {
  const to = isForm ? written.map((text) => typedRecipient(service, text)) : written
  if (to.length === 0) {
    return failure(`to is required: the ${isForm ? "name or " : ""}URI of at least one mailbox`)
  }
  const unique = new Map<string, string>()
  for (const [at, text] of to.entries()) {
    const which = `to number ${at + 1}`
    const isHttp = text.length <= uriCharsMax && /^https?:\/\/[^/?#]/i.test(text)
    const parsed = isHttp ? parseUrl(text) : undefined
    if (parsed === undefined) {
      const name = isForm ? "the name of a mailbox of this service, or " : ""
      return failure(`${which} must be ${name}an absolute http or https URI`)
    }
    if (parsed.username !== "" || parsed.password !== "") {
      return failure(`${which} must hold neither a user name nor a password`)
    }
    parsed.hash = ""
    if (!unique.has(parsed.href)) unique.set(parsed.href, text)
  }
  return success([...unique.values()])
}

/**
 * The fault of a notification with more recipients at one foreign origin than that origin should
 * have to bear (protocol §7); undefined without one. The operator may have allowed the origin.
 */
const fanOutFault = (service: Service, to: ReadonlyArray<string>): string | undefined => {
  const { baseUrl, fanOutAllow } = service.settings
  const counts = new Map<string, number>()
  for (const uri of to) {
    const origin = parseUrl(uri)?.origin ?? ""
    counts.set(origin, (counts.get(origin) ?? 0) + 1)
  }
  const isOpen = (origin: string): boolean =>
    origin === parseUrl(baseUrl)?.origin || fanOutAllow.includes(origin)
  const over = [...counts].find(([origin, count]) => count > originRecipientsMax && !isOpen(origin))
  return over === undefined ? undefined : `${over[1]} recipients are at ${over[0]}, at most ` +
    `${originRecipientsMax} may be: leave some out, or let the operator name it in FANOUT_ALLOW`
}

/** The trace that the request belongs to (W3C Trace Context §3.2), or a new one. */
const traceIdOf = ({ ids, request }: Call): string =>
  traceparentOf(request)?.split("-")[1] ??
    Buffer.from(ids.id("trace"), "base64url").toString("hex")

/** The trace of a notification, and the span of its request if this node exports that. */
interface NotificationTrace {
  readonly traceId: string
  readonly spanId?: string
}

const traceOf = (
  { traces }: Service,
  call: Call
): Effect.Effect<NotificationTrace> =>
  traces === undefined
    ? Effect.succeed({ traceId: traceIdOf(call) })
    : Effect.match(Effect.currentParentSpan, {
      onFailure: (): NotificationTrace => ({ traceId: traceIdOf(call) }),
      onSuccess: ({ sampled, spanId, traceId }): NotificationTrace =>
        sampled ? { traceId, spanId } : { traceId }
    })

/** The document that every recipient receives: without `to`, its content published. */
export const relayedDocument = Effect.fnUntraced(function*(
  service: Service,
  { ids }: Call,
  { account, href }: Pick<OutgoingRef, "account" | "href">,
  { to }: Pick<OutgoingNotificationRef, "to">,
  document: NotificationDocument
): Effect.fn.Return<string, HandlerFailure> {
  const blocked = serviceBlock(service, { account }, "")
  if (blocked !== undefined) return yield* blocked
  const signed = document.from ? { ...document, sender: href, written: undefined } : document
  const publish = Effect.gen(function*() {
    const content = yield* inlinedContent(document)
    const published = yield* publishInline(service, ids, {
      ...content,
      owner: account,
      sender: { account, network: undefined }
    })
    return published.href
  })
  const fragment = yield* publishedFragment(
    service.documentParser,
    signed,
    sealPasswordFor(service.keyring, to),
    publish
  )
  return `<notification>${fragment}</notification>`
})

/** The notification that an earlier attempt of a keyed request has queued. */
const describeQueued = Effect.fnUntraced(function*(
  service: Service,
  { caller, to }: OutgoingNotificationRef
): Effect.fn.Return<NotificationView | undefined, HandlerFailure> {
  const view = yield* describeAs(service, to, caller)
  if (!isRefusal(view)) return view
  return view.reason === "NotFound" ? undefined : yield* refusalError(view)
})

const isKeyed = ({ request }: Call): boolean => request.headers.has("idempotency-key")

const queueNotification = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  mailbox: OutgoingRef,
  outgoing: OutgoingNotificationRef,
  content: {
    readonly document: string
    readonly about?: string
    readonly to: ReadonlyArray<string>
  }
): Effect.fn.Return<NotificationView, HandlerFailure> {
  const { account } = mailbox
  const listingKey = yield* enterOutgoing(service, account, outgoing.id, isKeyed(call))
  const message: NotificationMessage = {
    _tag: "Create",
    requestId: call.ids.id("request"),
    account,
    listingKey,
    ...yield* traceOf(service, call),
    ...content
  }
  const reply = yield* askOrRefusal<NotificationReply>(
    service,
    outgoing.to,
    message,
    call.ids.isRandom
  )
  if (isRefusal(reply)) {
    yield* removeOutgoing(service, account, listingKey.slice(account.length + 1))
    return yield* refusalError(reply)
  }
  const { createdAtMs, repeated } = expectReply(reply, "Created")
  if (isKeyed(call)) yield* deleteRequestKey(service, account, outgoing.id)
  if (repeated) return yield* describeOutgoing(service, outgoing)
  return {
    account,
    createdAtMs,
    status: "waiting",
    recipients: content.to.map((to) => ({ to, status: "waiting", attempts: 0, tries: 0 })),
    count: content.to.length,
    version: 1,
    ...content.about === undefined ? {} : { about: content.about }
  }
})

/** A5: 202 with the status when it is durably queued; a browser is redirected to its page. */
export const postOutgoing = defineHandler(function*(service, call) {
  const mailbox = yield* senderRefOf(service, call)
  const bytes = yield* readBody(call)
  const type = call.request.headers.get("content-type") ?? ""
  const document = readNotification(service.documentParser, bytes, type)
  if (!document.ok) return yield* document.fault
  const to = recipientsOf(service, document.value, bodyKind(type) === "form")
  const fault = to.ok ? fanOutFault(service, to.value) : to.fault
  if (!to.ok || fault !== undefined) {
    return yield* httpError("unprocessable", fault, [], { rule: "to" })
  }
  const outgoing = outgoingRefNamed(service, mailbox, call.ids.id("outgoing"))
  const queued = isKeyed(call) ? yield* describeQueued(service, outgoing) : undefined
  if (queued === undefined) {
    const submission = { bytes: bytes.length, to: to.value }
    yield* admitWhilePaused(service, mailbox.account, submission)
  }
  const view = queued ?? (yield* queueNotification(service, call, mailbox, outgoing, {
    document: yield* relayedDocument(service, call, mailbox, outgoing, document.value),
    ...aboutOf(document.value.description),
    to: to.value
  }))
  if (isPageForm(call.request)) return seeOther(service, outgoing.path)
  return viewAnswer(statusView(service, outgoing, view), {
    status: 202,
    headers: [["Location", outgoing.href], statusField(view), ...readerHeaders]
  })
})
