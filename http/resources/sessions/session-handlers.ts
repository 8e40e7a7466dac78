/** Handlers of sessions and their answers (B1 to B7). */
import { Effect } from "effect"
import { sessionKind } from "../../../actors/index.ts"
import { accountSessionKey, accountSessionsTable, sessionListing, type SessionMessage,
  type SessionReply, type SessionView } from "../../../actors/session/index.ts"
import { type Address, address, isRefusal } from "../../../runtime/index.ts"
import { audited } from "../../audit/index.ts"
import { type AuthenticatedAccount, callerOf, optionalAccount } from "../../auth/index.ts"
import { sessionBytesMax } from "../../limits.ts"
import { addEntry, listResources } from "../../newest-first-index.ts"
import { absoluteUri, actorIdOf, ask, askOrRefusal, type Call, createdAnswer, defineHandler,
  describeActor, emptyAnswer, entityTags, expectedVersion, expectReply, failRefused,
  type HandlerFailure, httpError, isPageForm, refusalError, seeOther, type Service,
  viewAnswer } from "../../pipeline/index.ts"
import { chargeNetwork } from "../content/index.ts"
import { readReference, type Referrer } from "./answer-reference.ts"
import { readAnswerInput, type SessionInput } from "./session-input.ts"
import { answerPath, type AnswerStep, answerView, collectionPath, entryLink, entryView, isOver,
  listingView, rejection, sessionPath, sessionView } from "./session-views.ts"

/** B1. */
export const getEntry = () => () => Effect.succeed(viewAnswer(entryView))

const addressOf = (id: string): Address => address(sessionKind, id)

/** The session, or the refusal of its actor. */
const describeOrRefusal = (service: Service, id: string) => {
  const message: SessionMessage = { _tag: "Describe" }
  return describeActor<SessionView>(service, addressOf(id), message)
}

const describeSession = (service: Service, id: string) =>
  failRefused(describeOrRefusal(service, id))

/** A page of the sessions, newest first (B3). */
export const getSessions = defineHandler(function*(service, call) {
  const index = { ...sessionListing, owner: "", href: absoluteUri(service, collectionPath) }
  const { next, rows } = yield* listResources(
    service,
    call,
    index,
    (id) => describeOrRefusal(service, id)
  )
  return viewAnswer(listingView(rows, next))
})

/** Lists a session before it begins; that of an account also for its owner. */
const addEntries = Effect.fnUntraced(function*(
  service: Service,
  id: string,
  owner: string | undefined
): Effect.fn.Return<void, HandlerFailure> {
  if (owner !== undefined) {
    const key = accountSessionKey(owner, id)
    yield* service.records.write([{ table: accountSessionsTable, key, value: "" }])
  }
  yield* addEntry(service, sessionListing, "", id)
})

/** Counts a new session of a stranger. A repetition may find what its first attempt has begun. */
const chargeSession = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  id: string
): Effect.fn.Return<void, HandlerFailure> {
  const isRepetition = !call.ids.isRandom && !isRefusal(yield* describeOrRefusal(service, id))
  if (!isRepetition) yield* chargeNetwork(service, call, sessionBytesMax)
})

/** B2. Nothing is created, not even an entry of the listing, unless `continue` is `true`. */
export const postSessions = defineHandler(function*(service, call) {
  const account = yield* optionalAccount(service, call)
  const input = yield* readAnswerInput(call, "both")
  const id = call.ids.id("session")
  if (input.continue === "true") {
    if (account === undefined) yield* chargeSession(service, call, id)
    yield* addEntries(service, id, account?.name)
  }
  const message: SessionMessage = {
    _tag: "Start",
    requestId: call.ids.id("request"),
    ...account === undefined ? {} : { owner: account.name },
    ...input.continue === undefined ? {} : { continue: input.continue }
  }
  const reply = yield* ask<SessionReply>(service, addressOf(id), message, call.ids.isRandom)
  if (reply._tag === "Rejected") return rejection(call, reply.p, entryLink)
  const { view } = expectReply(reply, "Started")
  if (input.isForm && isPageForm(call.request)) return seeOther(service, sessionPath(id))
  return createdAnswer(service, sessionPath(id), sessionView(id, view))
})

/** B4. */
export const getSession = defineHandler(function*(service, call) {
  const id = yield* actorIdOf(call, "session")
  return viewAnswer(sessionView(id, yield* describeSession(service, id)))
})

export const deleteSession = defineHandler(function*(service, call) {
  const id = yield* actorIdOf(call, "session")
  const caller = callerOf(yield* optionalAccount(service, call))
  const expected = yield* expectedVersion(
    call,
    Effect.map(describeSession(service, id), (session) => ({
      version: session.version,
      tags: entityTags(call, sessionView(id, session))
    }))
  )
  const message: SessionMessage = { _tag: "Delete", caller, ...expected }
  const removal = ask<SessionReply>(service, addressOf(id), message)
  const operation = {
    caller,
    action: "session.remove",
    target: sessionPath(id)
  } as const
  yield* caller.admin ? audited(service, call, operation, removal) : removal
  return emptyAnswer(204)
})

/* The answers of a session. */

/** The view of a recorded answer, undefined before it is recorded. */
const recordedView = Effect.fnUntraced(function*(
  service: Service,
  id: string,
  step: AnswerStep,
  session: SessionView
) {
  if (!session.recorded.includes(step)) return
  const message: SessionMessage = { _tag: "ReadAnswer", step }
  const reply = yield* ask<SessionReply>(service, addressOf(id), message)
  return answerView(id, step, expectReply(reply, "Recorded").answer, isOver(session))
})

export const getAnswer = (step: AnswerStep) =>
  defineHandler(function*(service, call) {
    const id = yield* actorIdOf(call, "session")
    const view = yield* recordedView(service, id, step, yield* describeSession(service, id))
    return view === undefined
      ? yield* httpError("not-found", "this question is not answered yet")
      : viewAnswer(view)
  })

/** 405 of an answer after the end of its session. */
const ended = httpError(
  "method-not-allowed",
  "the conversation is over, its answers are read-only",
  [
    ["Allow", "GET, HEAD, OPTIONS"]
  ]
)

/** The text of an answer, or the text that its reference leads to. */
const answerTextOf = Effect.fnUntraced(function*(
  service: Service,
  referrer: Referrer,
  id: string,
  input: SessionInput
): Effect.fn.Return<string, HandlerFailure> {
  const { href, text } = input
  if (href === undefined || (input.continue !== undefined && input.continue !== "true")) return text
  // A session that has ended refuses the answer before anything is read for it.
  if (isOver(yield* describeSession(service, id))) return yield* ended
  return yield* readReference(service, referrer, href)
})

const readAnswer = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  id: string,
  step: AnswerStep,
  from: "documents" | "forms",
  account: AuthenticatedAccount | undefined
): Effect.fn.Return<SessionMessage, HandlerFailure> {
  const input = yield* readAnswerInput(call, from)
  const referrer = { request: call.request, account: account?.name }
  const expected = yield* expectedVersion(
    call,
    Effect.gen(function*() {
      const session = yield* describeSession(service, id)
      const view = yield* recordedView(service, id, step, session)
      const tags = view === undefined ? undefined : entityTags(call, view)
      return { version: session.version, tags }
    })
  )
  return {
    _tag: "Answer",
    step,
    text: yield* answerTextOf(service, referrer, id, input),
    caller: callerOf(account),
    ...input.href === undefined ? {} : { href: input.href },
    ...input.continue === undefined ? {} : { continue: input.continue },
    ...expected
  }
})

/**
 * Records an answer (B5 to B7). After the end it fails with 405, whatever fault its request has.
 * The actor alone decides this once it is asked: when its outcome is unknown, the end may be this
 * very answer's.
 */
const recordAnswer = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  id: string,
  step: AnswerStep,
  from: "documents" | "forms"
): Effect.fn.Return<SessionReply, HandlerFailure> {
  const account = yield* optionalAccount(service, call)
  const message = yield* Effect.catch(
    readAnswer(service, call, id, step, from, account),
    (fault) =>
      Effect.flatMap(
        describeSession(service, id),
        (session) => Effect.fail(isOver(session) ? ended : fault)
      )
  )
  const reply = yield* askOrRefusal<SessionReply>(service, addressOf(id), message)
  if (!isRefusal(reply)) return reply
  return yield* reply.reason === "Ended" ? ended : refusalError(reply)
})

export const putAnswer = (step: AnswerStep) =>
  defineHandler(function*(service, call) {
    const id = yield* actorIdOf(call, "session")
    const reply = yield* recordAnswer(service, call, id, step, "documents")
    if (reply._tag === "Rejected") {
      return rejection(call, reply.p, { rel: "up", href: sessionPath(id), title: "The session" })
    }
    const { created, view } = expectReply(reply, "Answered")
    return viewAnswer(sessionView(id, view), {
      status: created ? 201 : 200,
      headers: [
        ["Location", absoluteUri(service, answerPath(id, step))],
        ["Content-Location", sessionPath(id)]
      ]
    })
  })

/** PUT from the form of a page. */
export const postAnswerForm = (step: AnswerStep) =>
  defineHandler(function*(service, call) {
    const id = yield* actorIdOf(call, "session")
    const reply = yield* recordAnswer(service, call, id, step, "forms")
    return reply._tag === "Rejected"
      ? rejection(call, reply.p, { rel: "up", href: sessionPath(id), title: "The session" })
      : seeOther(service, sessionPath(id))
  })
