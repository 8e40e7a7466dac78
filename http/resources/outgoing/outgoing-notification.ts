/** One outgoing notification: its status (A6), as a document or a stream; retry; removal (A8). */
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { replaysFormat } from "../../../actors/index.ts"
import { normalRecipient, type NotificationMessage, type NotificationReply,
  type NotificationView } from "../../../actors/notification/index.ts"
import { isRefusal } from "../../../runtime/index.ts"
import { auditedAsAdmin } from "../../audit/index.ts"
import { callerOf, refreshedCall } from "../../auth/index.ts"
import { negotiate, standardTypes } from "../../formats/index.ts"
import { writeElement } from "../../formats/xml/index.ts"
import { statusEventPauseMs } from "../../limits.ts"
import { ask, type Call, defineHandler, emptyAnswer, endRefusedStream, entityTags,
  eventStreamAnswer, eventStreamType, expectedVersion, expectReply, type HandlerAnswer,
  type HandlerFailure, httpError, isPageForm, type LiveSource, longPoll, longPollHeaders,
  type PlainAnswer, preferredWaitSeconds, readerHeaders, readFormMethod, readInput, renderView,
  type RequestInput, requireFormat, seeOther, type Service, type StreamPace, unprocessable,
  viewAnswer } from "../../pipeline/index.ts"
import { removeOnce } from "../../request-record.ts"
import { type EventStream, eventText, type ReplyHeaders } from "../../wire/index.ts"
import { describeAs, describedForPage, describeOutgoing, mailboxPath, namedIn,
  outgoingNotificationOf, type OutgoingNotificationRef, outgoingRefOf, retryMessage, tooManyReplays,
  withAbout } from "./outgoing-access.ts"
import { statusElement, statusField, statusView } from "./outgoing-views.ts"

const offered = [...standardTypes, eventStreamType]

/** The id of a status event: the version, and digits that tell this status from any other. */
const eventIdOf = (version: number, data: string): string =>
  `${version}.${createHash("sha256").update(data).digest().readUInt32BE(0)}`

/** The notification, and the check that the caller may still read its status. */
const watchedBy = (
  service: Service,
  call: Call,
  { href, to }: OutgoingNotificationRef
): LiveSource => ({
  to,
  href,
  mayRead: Effect.flatMap(
    refreshedCall(service, call),
    (refreshed) => outgoingNotificationOf(service, refreshed)
  )
})

/**
 * The event stream of the status: one event for each version that it sees, from the one after
 * Last-Event-ID. Quick changes share one event. An event has the whole status, so that a stream
 * with any other Last-Event-ID begins with the present one. After a restore from a backup, the same
 * version may be of another status.
 */
const streamStatus = (
  service: Service,
  call: Call,
  outgoing: OutgoingNotificationRef
): HandlerAnswer => {
  const lastId = call.request.headers.get("last-event-id")
  let version: number | undefined
  const sendStatus = Effect.fnUntraced(function*(
    events: EventStream,
    { awaitReader }: StreamPace
  ): Effect.fn.Return<void, HandlerFailure> {
    const view = yield* describeAs(service, outgoing.to, outgoing.caller)
    if (isRefusal(view)) return endRefusedStream(events, view, outgoing.href)
    if (view.version === version) return
    const isFirst = version === undefined
    version = view.version
    const data = writeElement(statusElement(outgoing, view))
    const id = eventIdOf(version, data)
    if (isFirst && id === lastId) return
    if (!events.send(eventText({ event: "status", id, data }))) return
    yield* awaitReader
    yield* Effect.sleep(statusEventPauseMs)
  })
  const headers: ReplyHeaders = [["Vary", "Accept"], ["Vary", "Authorization"]]
  return eventStreamAnswer(
    service,
    call,
    watchedBy(service, call, outgoing),
    headers,
    sendStatus
  )
}

/* Handlers. */

/**
 * A6, as a document, an event stream or a long poll: the first answer with another entity tag than
 * If-None-Match names, or 304 when the time is over or the server drains.
 */
export const getOutgoing = defineHandler(function*(service, call) {
  const { outgoing } = yield* outgoingNotificationOf(service, call)
  const { headers, method } = call.request
  if (negotiate(headers.get("accept"), offered) === eventStreamType) {
    return streamStatus(service, call, outgoing)
  }
  const isPolling = method === "GET" && headers.has("if-none-match")
  const waitSeconds = isPolling ? preferredWaitSeconds(call) : undefined
  const applied = waitSeconds === undefined ? [] : longPollHeaders(waitSeconds)
  const read = Effect.gen(function*() {
    const status = yield* describeOutgoing(service, outgoing)
    const view = yield* describedForPage(service, call, outgoing, status)
    return renderView(
      {
        _tag: "View",
        status: 200,
        view: statusView(service, outgoing, view),
        offered,
        headers: [statusField(view), ...readerHeaders, ...applied]
      },
      call,
      service.settings.baseUrl
    )
  })
  if (waitSeconds === undefined) return yield* read
  const isNew = ({ status }: PlainAnswer) => status !== 304
  const watched = watchedBy(service, call, outgoing)
  return yield* longPoll(service, call, watched, waitSeconds, read, isNew)
})

/* Retrying: the failed recipients, or a replay to some. */

/** What a person is to write, who sees no status document. */
const asOnPage = "write a name or an address as the page of the notification has it"

/**
 * The indices of the recipients that are named; undefined without a list. 422 for an empty one, and
 * for another URI.
 */
const namedRecipients = Effect.fnUntraced(function*(
  service: Service,
  input: RequestInput,
  { recipients }: NotificationView
): Effect.fn.Return<ReadonlyArray<number> | undefined, HandlerFailure> {
  const isForm = input._tag === "Form"
  const named = namedIn(service, input)
  if (named.length === 0) {
    // An empty list must not be taken for all that have failed.
    const isNaming = isForm ? input.fields.has("to") : input.bytes.length > 0
    return isNaming
      ? yield* unprocessable(
        `to names no recipient: ${
          isForm ? asOnPage : "name one, or send no body to retry all that have failed"
        }`
      )
      : undefined
  }
  const known = new Map(recipients.map(({ to }, at) => [normalRecipient(to), at]))
  const indices = named.map((uri) => known.get(normalRecipient(uri)))
  const fault = indices.indexOf(undefined)
  if (fault >= 0) {
    return yield* unprocessable(
      `to number ${fault + 1} is no recipient of the notification: ${
        isForm ? asOnPage : "take its href from the status"
      }`
    )
  }
  return [...new Set(indices.filter((at) => at !== undefined))]
})

/**
 * POST to …/retry: retries the failed recipients from the start of the schedule, or sends again to
 * those that it names. 202 also for a repeated request, whose first answer may be lost.
 */
export const postRetry = defineHandler(function*(service, call) {
  const { outgoing, view: before } = yield* outgoingNotificationOf(service, call)
  const input = yield* readInput(call, "retry", { form: true, mayBeEmpty: true })
  const named = yield* namedRecipients(service, input, before)
  if (named !== undefined) yield* requireFormat(service, replaysFormat)
  const message = retryMessage(call, outgoing, named === undefined ? {} : { recipients: named })
  const retry = ask<NotificationReply>(service, outgoing.to, message).pipe(
    Effect.tap((reply) =>
      reply._tag === "TooManyReplays" ? tooManyReplays(reply.untilMs) : Effect.void
    )
  )
  const operation = {
    caller: callerOf(outgoing.caller),
    action: "outgoing.retry",
    target: outgoing.path
  } as const
  const reply = yield* auditedAsAdmin(service, call, operation, before.account, retry)
  const { isRepeated, recipients } = expectReply(reply, "Retried")
  if (recipients === 0 && !isRepeated && named === undefined) {
    return yield* httpError("conflict", "no recipient has failed")
  }
  if (isPageForm(call.request)) return seeOther(service, outgoing.path)
  const view = yield* describeOutgoing(service, outgoing)
  return viewAnswer(statusView(service, outgoing, view), {
    status: 202,
    headers: [statusField(view), ...readerHeaders]
  })
})

/* Removal. */

const removeNotification = Effect.fnUntraced(function*(
  service: Service,
  call: Call
): Effect.fn.Return<void, HandlerFailure> {
  const { outgoing, view } = yield* outgoingNotificationOf(service, call)
  const expected = yield* expectedVersion(
    call,
    // The condition may name the entity tag of the page, which has the description.
    Effect.map(withAbout(service, outgoing, view), (described) => ({
      version: view.version,
      tags: entityTags(call, statusView(service, outgoing, described))
    }))
  )
  const caller = callerOf(outgoing.caller)
  const message: NotificationMessage = { _tag: "Delete", caller, ...expected }
  const removal = ask<NotificationReply>(service, outgoing.to, message)
  const operation = { caller, action: "outgoing.remove", target: outgoing.path } as const
  yield* auditedAsAdmin(service, call, operation, view.account, removal)
})

/** A8; the actor removes the entry of the listing. */
export const deleteOutgoing = defineHandler(function*(service, call) {
  yield* removeNotification(service, call)
  return emptyAnswer(204)
})

/** DELETE from the form of a page. */
export const postOutgoingForm = defineHandler(function*(service, call) {
  const { account } = yield* outgoingRefOf(service, call)
  yield* readFormMethod(call, "notification", ["delete"])
  yield* removeOnce(call, removeNotification(service, call))
  if (!isPageForm(call.request)) return emptyAnswer(204)
  return seeOther(service, mailboxPath(account))
})
