/** One outgoing notification: its status (A6), as a document or a stream; retry; removal (A8). */
import { Effect } from "effect"
import type { NotificationMessage, NotificationReply,
  NotificationView } from "../../../actors/notification/index.ts"
import { isRefusal } from "../../../runtime/index.ts"
import { callerOf } from "../../auth/index.ts"
import { negotiate, standardTypes } from "../../formats/index.ts"
import { writeElement } from "../../formats/xml/index.ts"
import { statusEventPauseMs, watchRecheckMs } from "../../limits.ts"
import { ask, awaitWritable, type Call, ChangeWaiter, defineHandler, emptyAnswer, entityTags,
  expectedVersion, expectReply, type HandlerAnswer, type HandlerFailure, httpError, isPageWanted,
  preferredWaitSeconds, readerHeaders, readInput, type Rendered, renderedAnswer, renderView,
  seeOther, type Service, type ViewAnswer, viewAnswer,
  withChangeWaiter } from "../../pipeline/index.ts"
import { type EventStream, eventText } from "../../wire/index.ts"
import { describeAs, describeOutgoing, mailboxPath, outgoingNotificationOf,
  type OutgoingNotificationRef } from "./outgoing-access.ts"
import { statusElement, statusField, statusView } from "./outgoing-views.ts"

const eventStream = "text/event-stream"

const offered = [...standardTypes, eventStream]

/* Waiting for a change. */

/**
 * Long poll (RFC 7240 `wait`): the first answer with another entity tag than If-None-Match names;
 * 304 when the time is over or the server drains.
 */
const longPoll = (
  service: Service,
  call: Call,
  { to }: OutgoingNotificationRef,
  answer: Effect.Effect<ViewAnswer, HandlerFailure>,
  waitSeconds: number
): Effect.Effect<HandlerAnswer, HandlerFailure> => {
  const rendered = Effect.map(answer, (view): Rendered => {
    const { body, headers, status } = renderView(view, call, service.settings.baseUrl)
    const applied: Rendered["headers"] = [
      ...headers,
      ["Preference-Applied", `wait=${waitSeconds}`],
      ["Vary", "Prefer"]
    ]
    return { status, headers: applied, body }
  })
  return withChangeWaiter(
    service,
    to,
    call.exchange,
    Effect.fnUntraced(function*(waiter): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
      const endMs = performance.now() + waitSeconds * 1000
      for (;;) {
        const current = yield* rendered
        const leftMs = endMs - performance.now()
        if (current.status !== 304 || leftMs <= 0 || waiter.over) return renderedAnswer(current)
        yield* waiter.next(Math.min(leftMs, watchRecheckMs))
      }
    })
  )
}

/** Sends one event for each version that it sees; quick changes share one event. */
const sendVersions = Effect.fnUntraced(function*(
  service: Service,
  outgoing: OutgoingNotificationRef,
  lastVersion: number,
  events: EventStream,
  waiter: ChangeWaiter
): Effect.fn.Return<void, HandlerFailure> {
  let version = lastVersion
  while (events.open) {
    const view = yield* describeAs(service, outgoing.to, outgoing.caller)
    if (isRefusal(view)) {
      if (view.reason === "Gone") events.send(eventText({ event: "gone", data: outgoing.href }))
      return events.close()
    }
    if (view.version !== version) {
      version = view.version
      const data = writeElement(statusElement(outgoing, view))
      if (!events.send(eventText({ event: "status", id: String(version), data }))) return
      yield* awaitWritable(events)
      yield* Effect.sleep(statusEventPauseMs)
    }
    yield* waiter.next(watchRecheckMs)
  }
})

/** The event stream of the status, from the version after Last-Event-ID. */
const streamStatus = (
  service: Service,
  call: Call,
  outgoing: OutgoingNotificationRef
): Effect.Effect<HandlerAnswer, HandlerFailure> => {
  const { headers, method } = call.request
  const lastId = headers.get("last-event-id") || "0"
  if (!/^\d{1,15}$/.test(lastId)) {
    return Effect.fail(httpError("malformed", "Last-Event-ID must be the id of an earlier event"))
  }
  if (method === "HEAD") {
    return Effect.succeed(emptyAnswer(200, [["Content-Type", eventStream], ["Vary", "Accept"]]))
  }
  return Effect.succeed({
    _tag: "Events",
    headers: [["Vary", "Accept"], ["Vary", "Authorization"]],
    start: (events) => {
      const waiter = new ChangeWaiter(service, outgoing.to)
      events.onClose(() => {
        waiter.end()
        waiter.close()
      })
      const sending = sendVersions(service, outgoing, Number(lastId), events, waiter)
      Effect.runFork(sending).addObserver((exit) => {
        // The client reconnects, and gets the failure as an answer.
        if (exit._tag === "Failure") events.close()
      })
    }
  })
}

/* Handlers. */

/** A6, as a document, a long poll or an event stream. */
export const getOutgoing = defineHandler(function*(service, call) {
  const { outgoing } = yield* outgoingNotificationOf(service, call)
  const { headers, method } = call.request
  if (negotiate(headers.get("accept"), offered) === eventStream) {
    return yield* streamStatus(service, call, outgoing)
  }
  const answer = Effect.map(describeOutgoing(service, outgoing), (view): ViewAnswer => ({
    _tag: "View",
    status: 200,
    view: statusView(outgoing, view),
    offered,
    headers: [statusField(view), ...readerHeaders]
  }))
  const waitSeconds = preferredWaitSeconds(call)
  return waitSeconds === undefined || method !== "GET" || !headers.has("if-none-match")
    ? yield* answer
    : yield* longPoll(service, call, outgoing, answer, waitSeconds)
})

/** POST to …/retry: retries the failed recipients from the start of the schedule. */
export const postRetry = defineHandler(function*(service, call) {
  const { outgoing } = yield* outgoingNotificationOf(service, call)
  const message: NotificationMessage = { _tag: "Retry", caller: callerOf(outgoing.caller) }
  const reply = yield* ask<NotificationReply>(service, outgoing.to, message)
  if (expectReply(reply, "Retried").recipients === 0) {
    return yield* httpError("conflict", "no recipient has failed")
  }
  if (isPageWanted(call)) return seeOther(service, outgoing.path)
  const view = yield* describeOutgoing(service, outgoing)
  return viewAnswer(statusView(outgoing, view), {
    status: 202,
    headers: [statusField(view), ...readerHeaders]
  })
})

const removeNotification = Effect.fnUntraced(function*(
  service: Service,
  call: Call
): Effect.fn.Return<NotificationView, HandlerFailure> {
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
  yield* ask<NotificationReply>(service, outgoing.to, message)
  return view
})

/** A8; the actor removes the entry of the listing. */
export const deleteOutgoing = defineHandler(function*(service, call) {
  yield* removeNotification(service, call)
  return emptyAnswer(204)
})

/** DELETE from the form of a page. */
export const postOutgoingForm = defineHandler(function*(service, call) {
  const input = yield* readInput(call, "notification", { form: true })
  if (input._tag !== "Form" || input.fields.get("method") !== "delete") {
    return yield* httpError("unprocessable", "method must be delete, in a form")
  }
  const { account } = yield* removeNotification(service, call)
  return isPageWanted(call) ? seeOther(service, mailboxPath(account)) : emptyAnswer(204)
})
