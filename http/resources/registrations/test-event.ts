/** POST …/test: sends a test event to the callback of a registration (protocol §1.4). */
import { Clock, Effect } from "effect"
import { mailboxTestsPerMinuteMax, testEventsFormat,
  testsPerMinuteMax } from "../../../actors/index.ts"
import type { RegistrationMessage, RegistrationReply,
  RegistrationView } from "../../../actors/registration/index.ts"
import { testAnswerWaitMs, testPollMs } from "../../limits.ts"
import { ask, type Call, expectReply, failRefused, type HandlerFailure, httpError, isPageForm,
  overLimit, preferredWaitSeconds, requireFormat, seeOther, type Service,
  viewAnswer } from "../../pipeline/index.ts"
import { defineMailboxHandler, mailboxReaderHeaders } from "../mailboxes/index.ts"
import { describeRegistration, registrationAt,
  type RegistrationRef } from "./registration-access.ts"
import { registrationView } from "./registration-views.ts"

/** How long the client waits for the result (RFC 7240 §4.3). */
const waitMsOf = (call: Call): number =>
  Math.min(testAnswerWaitMs, (preferredWaitSeconds(call) ?? Number.POSITIVE_INFINITY) * 1000)

const replaced = httpError(
  "conflict",
  "the result of the test is not known: the callback has changed, or another test has begun, " +
    "before it was read; send a test again"
)

/**
 * The registration once its test event has a result; after this time without. Fails if it is not
 * that test's any more.
 */
const awaitResult = Effect.fnUntraced(function*(
  service: Service,
  { to }: RegistrationRef,
  begun: RegistrationView,
  waitMs: number
): Effect.fn.Return<RegistrationView, HandlerFailure> {
  const endMs = (yield* Clock.currentTimeMillis) + waitMs
  let view = begun
  while (view.test?.status === "pending" && (yield* Clock.currentTimeMillis) < endMs) {
    yield* Effect.sleep(testPollMs)
    view = yield* failRefused(describeRegistration(service, to))
    if (view.test?.id !== begun.test?.id) return yield* replaced
  }
  return view
})

/** 429: more than a registration, or all those of a mailbox, may have in a minute. */
export const tooManyInMinute = Effect.fnUntraced(function*(
  policy: "registration-replays" | "registration-tests",
  detail: string,
  untilMs: number
): Effect.fn.Return<never, HandlerFailure> {
  const waitMs = untilMs - (yield* Clock.currentTimeMillis)
  return yield* overLimit({ detail, policy, waitMs })
})

/** 200 with the result; 202 if it is not known in time: then the registration shows it. */
export const postTest = defineMailboxHandler(function*(mailboxCall) {
  const { call, mailbox, service } = mailboxCall
  const { registration } = yield* registrationAt(mailboxCall)
  yield* requireFormat(service, testEventsFormat)
  const message: RegistrationMessage = { _tag: "Test", id: call.ids.id("test") }
  const reply = yield* ask<RegistrationReply>(service, registration.to, message)
  if (reply._tag === "TooManyTests") {
    const most = `a registration may have ${testsPerMinuteMax} tests in a minute`
    const detail = `${most}: send the next later`
    return yield* tooManyInMinute("registration-tests", detail, reply.untilMs)
  }
  const { view: begun } = expectReply(reply, "Described")
  const view = yield* awaitResult(service, registration, begun, waitMsOf(call))
  const excessUntilMs = view.test?.excessUntilMs
  if (excessUntilMs !== undefined) {
    const most = `all registrations of a mailbox may have ${mailboxTestsPerMinuteMax} tests`
    const detail = `${most} in a minute: send the next later`
    return yield* tooManyInMinute("registration-tests", detail, excessUntilMs)
  }
  if (isPageForm(call.request)) return seeOther(service, registration.path)
  const shown = registrationView(mailbox, registration, view)
  const headers = mailboxReaderHeaders(mailbox)
  return view.test?.status === "pending"
    ? viewAnswer(shown, { status: 202, headers: [["Location", registration.href], ...headers] })
    : viewAnswer(shown, { headers })
})
