/** Area B: the bridge's entry, sessions, their answers, the stateless questions (protocol §2). */
import { Effect } from "effect"
import { sessionKind } from "../../../actors/index.ts"
import type { SessionMessage, SessionReply,
  SessionView as Session } from "../../../actors/session/index.ts"
import { type Address, address, isActorId, isRefusal } from "../../../runtime/index.ts"
import { negotiate, standardTypes } from "../../formats/index.ts"
import { absoluteUri, ask, askOrRefusal, type Call, emptyAnswer, entityTags, type HandlerAnswer,
  type HandlerFailure, httpError, isConditional, preconditionsHold, refusalError,
  type ResourceHandler, type Route, type Service, viewAnswer,
  withFormRedisplay } from "../../pipeline/index.ts"
import { readReference } from "./answer-reference.ts"
import { enter, leave, listSessions } from "./session-collection.ts"
import { readAnswerInput, type SessionInput } from "./session-input.ts"
import { rejection } from "./session-rejection.ts"
import { answerPath, type AnswerStep, answerView, entryLink, entryPath, entryView, isOver,
  questionForm, sessionPath, sessionView, stepTitles } from "./session-views.ts"
import { questionRoutes } from "./stateless-questions.ts"

const steps: ReadonlyArray<AnswerStep> = ["name", "quest", "hard_question"]

const at = (id: string): Address => address(sessionKind, id)

/** The id in the path; 404 for what can be none. */
const idOf = ({ parameters }: Call): Effect.Effect<string, HandlerFailure> => {
  const id = parameters.get("session")
  return parameters.secret("session") === undefined && isActorId(id)
    ? Effect.succeed(id)
    : Effect.fail(httpError("not-found"))
}

const unexpected = (reply: SessionReply): Error => new Error(`a session answered ${reply._tag}`)

const describe = Effect.fnUntraced(function*(
  service: Service,
  id: string
): Effect.fn.Return<Session, HandlerFailure> {
  const message: SessionMessage = { _tag: "Describe" }
  const reply = yield* ask<SessionReply>(service, at(id), message)
  if (reply._tag !== "Described") throw unexpected(reply)
  return reply.view
})

const isPageWanted = (call: Call): boolean =>
  negotiate(call.request.headers.get("accept"), standardTypes) === "text/html"

const seeOther = (service: Service, path: string): HandlerAnswer =>
  emptyAnswer(303, [["Location", absoluteUri(service, path)], ["Cache-Control", "no-store"]])

/** B2. Nothing is created, not even an entry of the listing, unless `continue` is `true`. */
const start = (service: Service): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const given = yield* readAnswerInput(call, "both")
    const id = call.ids.id("session")
    const goesOn = given.continue === undefined ? {} : { continue: given.continue }
    if (given.continue === "true") yield* enter(service, id)
    const message: SessionMessage = { _tag: "Start", requestId: call.ids.id("request"), ...goesOn }
    const reply = yield* ask<SessionReply>(service, at(id), message, call.ids.drawn)
    if (reply._tag === "Rejected") return rejection(call, reply.p, entryLink)
    if (reply._tag !== "Started") throw unexpected(reply)
    if (given.isForm && isPageWanted(call)) return seeOther(service, sessionPath(id))
    return viewAnswer(sessionView(id, reply.view), {
      status: 201,
      headers: [["Location", absoluteUri(service, sessionPath(id))]]
    })
  })

const readSession = (service: Service): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const id = yield* idOf(call)
    return viewAnswer(sessionView(id, yield* describe(service, id)))
  })

/** The version that the request's conditions hold for, which the actor compares again; or 412. */
const unchanged = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  id: string,
  step?: AnswerStep
): Effect.fn.Return<{ readonly ifVersion?: number }, HandlerFailure> {
  if (!isConditional(call)) return {}
  const session = yield* describe(service, id)
  const view = step === undefined
    ? sessionView(id, session)
    : yield* recorded(service, id, step, session)
  const tags = view === undefined ? undefined : entityTags(call, view)
  if (!preconditionsHold(call, tags)) return yield* httpError("precondition-failed")
  return { ifVersion: session.version }
})

const deleteSession = (service: Service): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const id = yield* idOf(call)
    const message: SessionMessage = { _tag: "Delete", ...yield* unchanged(service, call, id) }
    yield* ask<SessionReply>(service, at(id), message)
    yield* leave(service, id)
    return emptyAnswer(204)
  })

/** The recorded answer as it is shown, undefined where there is none yet. */
const recorded = Effect.fnUntraced(function*(
  service: Service,
  id: string,
  step: AnswerStep,
  session: Session
) {
  if (!session.recorded.includes(step)) return
  const message: SessionMessage = { _tag: "ReadAnswer", step }
  const reply = yield* ask<SessionReply>(service, at(id), message)
  if (reply._tag !== "Recorded") throw unexpected(reply)
  return answerView(id, step, reply.answer, isOver(session))
})

const readAnswer = (service: Service, step: AnswerStep): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const id = yield* idOf(call)
    const view = yield* recorded(service, id, step, yield* describe(service, id))
    return view === undefined
      ? yield* httpError("not-found", "this question is not answered yet")
      : viewAnswer(view)
  })

/** The conversation is over: its answers are read-only from now on. */
const ended = httpError(
  "method-not-allowed",
  "the conversation is over, its answers are read-only",
  [
    ["Allow", "GET, HEAD, OPTIONS"]
  ]
)

/** Whatever else is wrong with an answer, one that comes after the end is read-only (405). */
const unlessOver = <A>(
  service: Service,
  call: Call,
  recording: Effect.Effect<A, HandlerFailure>
): Effect.Effect<A, HandlerFailure> =>
  Effect.catch(recording, (failure) =>
    Effect.flatMap(
      Effect.flatMap(idOf(call), (id) => describe(service, id)),
      (session) => Effect.fail(isOver(session) ? ended : failure)
    ))

/** The answer's text: its own, or what its reference leads to. */
const textOf = Effect.fnUntraced(function*(
  service: Service,
  id: string,
  { continue: goesOn, href, text }: SessionInput
): Effect.fn.Return<string, HandlerFailure> {
  if (href === undefined || (goesOn !== undefined && goesOn !== "true")) return text
  // A session that takes no answer says so before anything is read for it.
  if (isOver(yield* describe(service, id))) return yield* ended
  return yield* readReference(service, href)
})

/** Records an answer (B5–B7): what the actor replied, its refusals as problems. */
const record = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  step: AnswerStep,
  from: "documents" | "forms"
): Effect.fn.Return<SessionReply, HandlerFailure> {
  const id = yield* idOf(call)
  const given = yield* readAnswerInput(call, from)
  const expected = yield* unchanged(service, call, id, step)
  const { continue: goesOn, href } = given
  const message: SessionMessage = {
    _tag: "Answer",
    step,
    text: yield* textOf(service, id, given),
    ...href === undefined ? {} : { href },
    ...goesOn === undefined ? {} : { continue: goesOn },
    ...expected
  }
  const reply = yield* askOrRefusal<SessionReply>(service, at(id), message)
  if (!isRefusal(reply)) return reply
  return yield* reply.reason === "Ended" ? ended : refusalError(reply)
})

const putAnswer = (service: Service, step: AnswerStep): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const id = yield* idOf(call)
    const reply = yield* unlessOver(service, call, record(service, call, step, "documents"))
    if (reply._tag === "Rejected") {
      return rejection(call, reply.p, { rel: "up", href: sessionPath(id), title: "The session" })
    }
    if (reply._tag !== "Answered") throw unexpected(reply)
    return viewAnswer(sessionView(id, reply.view), {
      status: reply.created ? 201 : 200,
      headers: [
        ["Location", absoluteUri(service, answerPath(id, step))],
        ["Content-Location", sessionPath(id)]
      ]
    })
  })

/** The same from the form of a page: HTML has no PUT. */
const postAnswer = (service: Service, step: AnswerStep): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const id = yield* idOf(call)
    const reply = yield* unlessOver(service, call, record(service, call, step, "forms"))
    return reply._tag === "Rejected"
      ? rejection(call, reply.p, { rel: "up", href: sessionPath(id), title: "The session" })
      : seeOther(service, sessionPath(id))
  })

/** Every resource of Area B. */
export const sessionRoutes = (service: Service): ReadonlyArray<Route<ResourceHandler>> => [
  { pattern: entryPath, methods: { GET: { handle: () => Effect.succeed(viewAnswer(entryView)) } } },
  {
    pattern: "/sessions",
    methods: {
      GET: { handle: (call) => listSessions(service, call) },
      POST: { handle: start(service) }
    }
  },
  {
    pattern: "/sessions/{session}",
    methods: {
      GET: { handle: readSession(service) },
      DELETE: { handle: deleteSession(service) }
    }
  },
  ...steps.map((step): Route<ResourceHandler> => ({
    pattern: `/sessions/{session}/${step}`,
    methods: {
      GET: { handle: readAnswer(service, step) },
      PUT: { handle: putAnswer(service, step) },
      POST: {
        handle: withFormRedisplay(
          ({ request }) => questionForm(request.path, stepTitles[step]),
          postAnswer(service, step)
        )
      }
    }
  })),
  ...questionRoutes
]
