/** One outgoing notification: its status (A6), as a document or a stream; retry; removal (A8). */
import { Effect } from "effect"
import { createHash } from "node:crypto"
import type { NotificationMessage, NotificationReply } from "../../../actors/notification/index.ts"
import { isRefusal } from "../../../runtime/index.ts"
import { auditedAsAdmin } from "../../audit/index.ts"
import { callerOf, refreshedCall } from "../../auth/index.ts"
import { negotiate, standardTypes } from "../../formats/index.ts"
import { writeElement } from "../../formats/xml/index.ts"
import { statusEventPauseMs } from "../../limits.ts"
import { ask, type Call, defineHandler, emptyAnswer, endRefusedStream, entityTags,
  eventStreamAnswer, eventStreamType, expectedVersion, expectReply, type HandlerAnswer,
  type HandlerFailure, httpError, isPageForm, type LiveSource, longPoll, longPollHeaders,
  type PlainAnswer, preferredWaitSeconds, readerHeaders, readFormMethod, renderView, seeOther,
  type Service, type StreamPace, viewAnswer } from "../../pipeline/index.ts"
import { removeOnce } from "../../request-record.ts"
import { type EventStream, eventText, type ReplyHeaders } from "../../wire/index.ts"
import { describeAs, describeOutgoing, mailboxPath, outgoingNotificationOf,
  type OutgoingNotificationRef, outgoingRefOf, retryMessage } from "./outgoing-access.ts"
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
  const read = Effect.map(describeOutgoing(service, outgoing), (view) =>
    renderView(
      {
        _tag: "View",
        status: 200,
        view: statusView(outgoing, view),
        offered,
        headers: [statusField(view), ...readerHeaders, ...applied]
      },
      call,
      service.settings.baseUrl
    ))
  if (waitSeconds === undefined) return yield* read
  const isNew = ({ status }: PlainAnswer) => status !== 304
  const watched = watchedBy(service, call, outgoing)
  return yield* longPoll(service, call, watched, waitSeconds, read, isNew)
})

/**
 * POST to …/retry: retries the failed recipients from the start of the schedule. 202 also for a
 * repeated request, whose first answer may be lost.
 */
export const postRetry = defineHandler(function*(service, call) {
  const { outgoing, view: { account } } = yield* outgoingNotificationOf(service, call)
  const message = retryMessage(call, outgoing)
  const retry = ask<NotificationReply>(service, outgoing.to, message)
  const operation = {
    caller: callerOf(outgoing.caller),
    action: "outgoing.retry",
    target: outgoing.path
  } as const
  const reply = yield* auditedAsAdmin(service, call, operation, account, retry)
  const { isRepeated, recipients } = expectReply(reply, "Retried")
  if (recipients === 0 && !isRepeated) {
    return yield* httpError("conflict", "no recipient has failed")
  }
  if (isPageForm(call.request)) return seeOther(service, outgoing.path)
  const view = yield* describeOutgoing(service, outgoing)
  return viewAnswer(statusView(outgoing, view), {
    status: 202,
    headers: [statusField(view), ...readerHeaders]
  })
})

const removeNotification = Effect.fnUntraced(function*(
  service: Service,
  call: Call
): Effect.fn.Return<void, HandlerFailure> {
  const { outgoing, view } = yield* outgoingNotificationOf(service, call)
  const expected = yield* expectedVersion(
    call,
    Effect.sync(() => ({
      version: view.version,
      tags: entityTags(call, statusView(outgoing, view))
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
