/** One outgoing notification: how it stands (A6), trying again, its removal (A8). */
import { Effect } from "effect"
import type { NotificationMessage, NotificationReply,
  NotificationView } from "../../../actors/notification/index.ts"
import { callerOf } from "../../auth/index.ts"
import { negotiate, standardTypes } from "../../formats/index.ts"
import { absoluteUri, ask, type Call, emptyAnswer, entityTags, type HandlerAnswer,
  type HandlerFailure, httpError, isConditional, isPageWanted, preconditionsHold, readInput,
  type Service, type ViewAnswer, viewAnswer } from "../../pipeline/index.ts"
import { describe, mailboxPath, type OutgoingNotificationRef, outgoingOf,
  readerHeaders } from "./outgoing-access.ts"
import { liveAnswer, whenChanged } from "./outgoing-live.ts"
import { statusField, statusView } from "./outgoing-views.ts"

const eventStream = "text/event-stream"

const offered = [...standardTypes, eventStream]

const statusAnswer = (outgoing: OutgoingNotificationRef, view: NotificationView): ViewAnswer => ({
  _tag: "View",
  status: 200,
  view: statusView(outgoing, view),
  offered,
  headers: [statusField(view), ...readerHeaders]
})

const stream = (
  service: Service,
  call: Call,
  outgoing: OutgoingNotificationRef
): Effect.Effect<HandlerAnswer, HandlerFailure> => {
  const { headers, method } = call.request
  const lastId = headers.get("last-event-id") || "0"
  if (!/^\d{1,15}$/.test(lastId)) {
    return Effect.fail(httpError("malformed", "Last-Event-ID must be the id of an earlier event"))
  }
  return Effect.succeed(
    method === "HEAD"
      ? emptyAnswer(200, [["Content-Type", eventStream], ["Vary", "Accept"]])
      : liveAnswer(service, outgoing, Number(lastId))
  )
}

/** A6, as a document or as a live stream. */
export const getOutgoing = (service: Service) =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const { outgoing } = yield* outgoingOf(service, call)
    if (negotiate(call.request.headers.get("accept"), offered) === eventStream) {
      return yield* stream(service, call, outgoing)
    }
    const answer = Effect.map(describe(service, outgoing), (view) => statusAnswer(outgoing, view))
    return yield* whenChanged(service, call, outgoing, answer)
  })

const seeOther = (service: Service, path: string): HandlerAnswer =>
  emptyAnswer(303, [["Location", absoluteUri(service, path)], ["Cache-Control", "no-store"]])

/** POST to …/retry: its failed recipients are tried again, from the schedule's start. */
export const retryOutgoing = (service: Service) =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const { outgoing } = yield* outgoingOf(service, call)
    const message: NotificationMessage = { _tag: "Retry", caller: callerOf(outgoing.caller) }
    const reply = yield* ask<NotificationReply>(service, outgoing.to, message)
    if (reply._tag !== "Retried") throw new Error(`a notification answered ${reply._tag}`)
    if (reply.recipients === 0) return yield* httpError("conflict", "no recipient has failed")
    if (isPageWanted(call)) return seeOther(service, outgoing.path)
    const view = yield* describe(service, outgoing)
    return viewAnswer(statusView(outgoing, view), {
      status: 202,
      headers: [statusField(view), ...readerHeaders]
    })
  })

/** The version that the request's conditions hold for, which the actor compares again; or 412. */
const unchanged = (
  call: Call,
  outgoing: OutgoingNotificationRef,
  view: NotificationView
): Effect.Effect<{ readonly ifVersion?: number }, HandlerFailure> => {
  if (!isConditional(call)) return Effect.succeed({})
  return preconditionsHold(call, entityTags(call, statusView(outgoing, view)))
    ? Effect.succeed({ ifVersion: view.version })
    : Effect.fail(httpError("precondition-failed", "the notification is not as the condition says"))
}

const remove = Effect.fnUntraced(function*(
  service: Service,
  call: Call
): Effect.fn.Return<NotificationView, HandlerFailure> {
  const { outgoing, view } = yield* outgoingOf(service, call)
  const message: NotificationMessage = {
    _tag: "Delete",
    caller: callerOf(outgoing.caller),
    ...yield* unchanged(call, outgoing, view)
  }
  yield* ask<NotificationReply>(service, outgoing.to, message)
  return view
})

/** A8: its actor also takes it out of the listing. */
export const deleteOutgoing =
  (service: Service) => (call: Call): Effect.Effect<HandlerAnswer, HandlerFailure> =>
    Effect.as(remove(service, call), emptyAnswer(204))

/** The same from the form of its page: HTML has no DELETE. */
export const formOfOutgoing = (service: Service) =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const input = yield* readInput(call, "notification", { form: true })
    if (input._tag !== "Form" || input.fields.get("method") !== "delete") {
      return yield* httpError(
        "unprocessable",
        "a form with method=delete removes it; nothing else is"
      )
    }
    const { account } = yield* remove(service, call)
    return isPageWanted(call) ? seeOther(service, mailboxPath(account)) : emptyAnswer(204)
  })
