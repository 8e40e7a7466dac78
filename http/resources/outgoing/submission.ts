/** A5: a notification is queued for its recipients. */
import { Effect } from "effect"
import type { NotificationMessage, NotificationReply,
  NotificationView } from "../../../actors/notification/index.ts"
import { isRefusal } from "../../../runtime/index.ts"
import { failure, type NotificationDocument, type Result, storedFragment,
  success } from "../../formats/xml/index.ts"
import { uriCharsMax } from "../../limits.ts"
import { inlinedOf, isPublished, readNotification } from "../../notification-body.ts"
import { askOrRefusal, type Call, emptyAnswer, type HandlerAnswer, type HandlerFailure, httpError,
  isPageWanted, readBody, refusalError, type Service, viewAnswer } from "../../pipeline/index.ts"
import { publishInline } from "../content/index.ts"
import { describe, describeAs, outgoingNamed, type OutgoingNotificationRef, type OutgoingRef,
  readerHeaders, senderOf } from "./outgoing-access.ts"
import { enter, entered, mark } from "./outgoing-entries.ts"
import { statusField, statusView } from "./outgoing-views.ts"

/**
 * The recipients, none of them twice, or what is wrong with one. It is named by its number, and
 * not repeated when it may hold a password.
 */
const recipientsOf = ({ to }: NotificationDocument): Result<ReadonlyArray<string>, string> => {
  if (to.length === 0) return failure("to is required: the URI of at least one mailbox")
  const unique = new Map<string, string>()
  for (const [at, text] of to.entries()) {
    const which = `to number ${at + 1}`
    if (text.length > uriCharsMax || !/^https?:\/\/[^/?#]/i.test(text) || !URL.canParse(text)) {
      return failure(`${which} must be an absolute http or https URI`)
    }
    const parsed = new URL(text)
    if (parsed.username !== "" || parsed.password !== "") {
      return failure(`${which} must hold neither a user name nor a password`)
    }
    parsed.hash = ""
    if (!unique.has(parsed.href)) unique.set(parsed.href, text)
  }
  return success([...unique.values()])
}

const traceparent = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}/

/** The trace that the request belongs to (W3C Trace Context §3.2), or a new one. */
const traceIdOf = ({ ids, request }: Call): string =>
  traceparent.exec(request.headers.get("traceparent") ?? "")?.[1] ??
    Buffer.from(ids.id("trace"), "base64url").toString("hex")

/** What every recipient gets: without `to`, its content published for the sender. */
const relayed = Effect.fnUntraced(function*(
  service: Service,
  { ids }: Call,
  { account, href }: OutgoingRef,
  document: NotificationDocument
): Effect.fn.Return<string, HandlerFailure> {
  const sender = document.from ? { sender: href } : {}
  const wrapped = (fragment: string): string => `<notification>${fragment}</notification>`
  if (!isPublished(document)) return wrapped(storedFragment(document, sender))
  const inlined = yield* inlinedOf(document)
  const { href: url } = yield* publishInline(service, ids, { ...inlined, owner: account })
  return wrapped(storedFragment({ ...document, content: undefined }, { ...sender, url }))
})

/** Of a repeated request: what its first attempt has queued, if it went so far. */
const queuedBefore = Effect.fnUntraced(function*(
  service: Service,
  { caller, to }: OutgoingNotificationRef
): Effect.fn.Return<NotificationView | undefined, HandlerFailure> {
  const view = yield* describeAs(service, to, caller)
  if (!isRefusal(view)) return view
  return view.reason === "NotFound" ? undefined : yield* refusalError(view)
})

const isRepeatable = ({ request }: Call): boolean => request.headers.has("idempotency-key")

const queue = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  place: OutgoingRef,
  outgoing: OutgoingNotificationRef,
  given: { readonly document: string; readonly to: ReadonlyArray<string> }
): Effect.fn.Return<NotificationView, HandlerFailure> {
  const { account } = place
  const isKeyed = isRepeatable(call)
  const listingKey = yield* enter(service, account, outgoing.id, isKeyed)
  const message: NotificationMessage = {
    _tag: "Create",
    requestId: call.ids.id("request"),
    account,
    listingKey,
    traceId: traceIdOf(call),
    ...given
  }
  const reply = yield* askOrRefusal<NotificationReply>(
    service,
    outgoing.to,
    message,
    call.ids.drawn
  )
  if (isRefusal(reply)) {
    yield* Effect.ignore(mark(service, account, [listingKey.slice(account.length + 1)], null))
    return yield* refusalError(reply)
  }
  if (reply._tag !== "Created") throw new Error(`a notification answered ${reply._tag}`)
  if (isKeyed) yield* entered(service, account, outgoing.id)
  if (reply.repeated) return yield* describe(service, outgoing)
  return {
    account,
    createdAtMs: reply.createdAtMs,
    status: "waiting",
    recipients: given.to.map((to) => ({ to, status: "waiting", attempts: 0, tries: 0 })),
    version: 1
  }
})

/** A5: 202 when it is durably queued, with how it stands; a browser is led to its page. */
export const postOutgoing = (service: Service) =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const place = yield* senderOf(service, call)
    const bytes = yield* readBody(call)
    const read = readNotification(
      service.documentParser,
      bytes,
      call.request.headers.get("content-type") ?? ""
    )
    if (!read.ok) return yield* read.fault
    const to = recipientsOf(read.value)
    if (!to.ok) return yield* httpError("unprocessable", to.fault, [], { rule: "to" })
    const outgoing = outgoingNamed(service, place, call.ids.id("outgoing"))
    const before = isRepeatable(call) ? yield* queuedBefore(service, outgoing) : undefined
    const view = before ?? (yield* queue(service, call, place, outgoing, {
      document: yield* relayed(service, call, place, read.value),
      to: to.value
    }))
    const location: readonly [string, string] = ["Location", outgoing.href]
    if (isPageWanted(call)) return emptyAnswer(303, [location, ["Cache-Control", "no-store"]])
    return viewAnswer(statusView(outgoing, view), {
      status: 202,
      headers: [location, statusField(view), ...readerHeaders]
    })
  })
