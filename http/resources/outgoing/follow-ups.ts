/** Follow-ups of an outgoing notification: its sender replaces or withdraws it (protocol §1.3). */
import { Effect } from "effect"
import { followUpsFormat, followUpsMax } from "../../../actors/index.ts"
import { aboutOf, type NotificationMessage, type NotificationReply,
  type NotificationView } from "../../../actors/notification/index.ts"
import { auditedAsAdmin } from "../../audit/index.ts"
import { callerOf } from "../../auth/index.ts"
import type { NotificationDocument } from "../../formats/xml/index.ts"
import { readNotification } from "../../notification-body.ts"
import { absoluteUri, ask, type Call, defineHandler, expectReply, type HandlerAnswer,
  type HandlerFailure, httpError, isPageForm, readBody, readerHeaders, requireFormat, seeOther,
  type Service, viewAnswer } from "../../pipeline/index.ts"
import { describeOutgoing, mailboxPath, outgoingNotificationOf,
  type OutgoingNotificationRef } from "./outgoing-access.ts"
import { statusField, statusView } from "./outgoing-views.ts"
import { admitWhilePaused } from "./pauses.ts"
import { relayedDocument } from "./submission.ts"

/** The elements that the service writes into a follow-up. */
const reservedElement = /<(?:replaces|withdrawn)[\s/>]/

/** Why a document cannot replace a notification; undefined if it can. */
const replacementFault = (
  { extra, to }: NotificationDocument
): { readonly rule: string; readonly detail: string } | undefined => {
  if (to.length > 0) {
    return {
      rule: "to",
      detail: "a replacement goes to the recipients of the notification: leave out to"
    }
  }
  return reservedElement.test(extra)
    ? {
      rule: "replaces",
      detail: "the service itself writes replaces and withdrawn: leave them out"
    }
    : undefined
}

const followUp = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  outgoing: OutgoingNotificationRef,
  content?: { readonly document: string; readonly about?: string }
): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
  const message: NotificationMessage = {
    _tag: "FollowUp",
    caller: callerOf(outgoing.caller),
    requestId: call.ids.id("request"),
    ...content
  }
  const reply = yield* ask<NotificationReply>(service, outgoing.to, message)
  expectReply(reply, "FollowedUp")
  if (isPageForm(call.request)) return seeOther(service, outgoing.path)
  const view = yield* describeOutgoing(service, outgoing)
  return viewAnswer(statusView(service, outgoing, view), {
    status: 202,
    headers: [statusField(view), ...readerHeaders]
  })
})

/** Refuses what the actor would refuse, before anything is published for it. */
const checkReplaceable = (
  { caller }: OutgoingNotificationRef,
  { account, followUps = [] }: NotificationView
): Effect.Effect<void, HandlerFailure> => {
  if (caller.name !== account) {
    return Effect.fail(httpError("forbidden", "only the account itself replaces what it has sent"))
  }
  if (followUps.at(-1)?.kind === "withdrawal") {
    return Effect.fail(httpError("conflict", "the notification was withdrawn before"))
  }
  return followUps.length < followUpsMax
    ? Effect.void
    : Effect.fail(httpError(
      "conflict",
      `a notification is replaced ${followUpsMax} times at most: send a new one`
    ))
}

/** POST to …/replacement: the recipients get this notification in place of the earlier one. */
export const postReplacement = defineHandler(function*(service, call) {
  const { outgoing, view } = yield* outgoingNotificationOf(service, call)
  yield* requireFormat(service, followUpsFormat)
  const isRepeatable = call.request.headers.has("idempotency-key")
  // A keyed request may be a repetition, which the actor recognizes.
  if (!isRepeatable || outgoing.caller.name !== view.account) {
    yield* checkReplaceable(outgoing, view)
  }
  const bytes = yield* readBody(call)
  const document = readNotification(
    service.documentParser,
    bytes,
    call.request.headers.get("content-type") ?? ""
  )
  if (!document.ok) return yield* document.fault
  const fault = replacementFault(document.value)
  if (fault !== undefined) {
    return yield* httpError("unprocessable", fault.detail, [], { rule: fault.rule })
  }
  const { account, count, followUps = [], recipients } = view
  const isWhole = count === recipients.length
  const requestId = call.ids.id("request")
  // What an earlier attempt of the request has stored was admitted then.
  if (!followUps.some((one) => one.requestId === requestId)) {
    yield* admitWhilePaused(service, account, {
      bytes: bytes.length,
      to: isWhole ? recipients.map(({ to }) => to) : undefined
    })
  }
  const mailbox = { account, href: absoluteUri(service, mailboxPath(account)) }
  return yield* followUp(service, call, outgoing, {
    document: yield* relayedDocument(service, call, mailbox, outgoing, document.value),
    ...aboutOf(document.value.description)
  })
})

/** POST to …/withdrawal: the recipients see that the notification is withdrawn, and when. */
export const postWithdrawal = defineHandler(function*(service, call) {
  const { outgoing, view } = yield* outgoingNotificationOf(service, call)
  yield* requireFormat(service, followUpsFormat)
  const operation = {
    caller: callerOf(outgoing.caller),
    action: "outgoing.withdraw",
    target: outgoing.path
  } as const
  const withdrawal = followUp(service, call, outgoing)
  return yield* auditedAsAdmin(service, call, operation, view.account, withdrawal)
})
