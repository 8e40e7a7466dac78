/** Waiting for an outgoing notification: long polls (RFC 7240 `wait`) and live streams. */
import { Effect } from "effect"
import { isRefusal } from "../../../runtime/index.ts"
import { writeElement } from "../../formats/xml/index.ts"
import { statusEventPauseMs, watchRecheckMs } from "../../limits.ts"
import { awaitWritable, type Call, ChangeWaiter, type HandlerAnswer, type HandlerFailure,
  preferredWaitSeconds, type Rendered, renderedAnswer, renderView, type Service, type ViewAnswer,
  withChangeWaiter } from "../../pipeline/index.ts"
import { type EventStream, eventText } from "../../wire/index.ts"
import { describeAs, type OutgoingNotificationRef } from "./outgoing-access.ts"
import { statusElement } from "./outgoing-views.ts"

/**
 * The answer, or when `Prefer: wait` and If-None-Match ask for it, the answer once it is another
 * than the client has: 304 when the time is over or the server drains.
 */
export const whenChanged = (
  service: Service,
  call: Call,
  { to }: OutgoingNotificationRef,
  answer: Effect.Effect<ViewAnswer, HandlerFailure>
): Effect.Effect<HandlerAnswer, HandlerFailure> => {
  const waitSeconds = preferredWaitSeconds(call)
  const { headers, method } = call.request
  if (waitSeconds === undefined || method !== "GET" || !headers.has("if-none-match")) return answer
  const rendered = Effect.map(answer, (one): Rendered => {
    const { body, headers, status } = renderView(one, call, service.settings.baseUrl)
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
        const one = yield* rendered
        const leftMs = endMs - performance.now()
        if (one.status !== 304 || leftMs <= 0 || waiter.over) return renderedAnswer(one)
        yield* waiter.next(Math.min(leftMs, watchRecheckMs))
      }
    })
  )
}

/** One event for each version that is seen; what changes quickly is told together. */
const follow = Effect.fnUntraced(function*(
  service: Service,
  outgoing: OutgoingNotificationRef,
  seen: number,
  events: EventStream,
  waiter: ChangeWaiter
): Effect.fn.Return<void, HandlerFailure> {
  let version = seen
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

/** The live stream of how it stands: at once, unless the client has seen that version. */
export const liveAnswer = (
  service: Service,
  outgoing: OutgoingNotificationRef,
  seen: number
): HandlerAnswer => ({
  _tag: "Events",
  headers: [["Vary", "Accept"], ["Vary", "Authorization"]],
  start: (events) => {
    const waiter = new ChangeWaiter(service, outgoing.to)
    events.onClose(() => {
      waiter.end()
      waiter.close()
    })
    Effect.runFork(follow(service, outgoing, seen, events, waiter)).addObserver((exit) => {
      // Its reader comes back, and is told then what is wrong.
      if (exit._tag === "Failure") events.close()
    })
  }
})
