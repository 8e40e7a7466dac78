/**
 * The decisions of a session, by the script of the bridge. A client can overwrite earlier answers
 * until the last one is recorded; then all are read-only. A session expires a while after its last
 * change. It is then deleted, and its record is removed later, as after a client's DELETE.
 */
import { become, type BehaviorTable, type Decision, type DecisionContext, stay,
  type Variant } from "../../runtime/index.ts"
import { answerCharsMax, entryRemovalRetryMs, idempotencyRetentionMs } from "../limits.ts"
import { deny, denyEach, isOutdated, notOwner } from "../refusals.ts"
import { bridge, type BridgeStep } from "./bridge.ts"
import type { RecordedAnswer, SessionAction, SessionMessage, SessionReply, SessionState,
  SessionStatus, SessionView } from "./protocol.ts"
import { type AnswerTexts, scriptProgress } from "./script.ts"

type Sessions = BehaviorTable<SessionState, SessionMessage, SessionReply, SessionAction>

type SessionDecision = Decision<SessionState, SessionReply, SessionAction>

type Awaiting = Variant<SessionState, "AwaitingName" | "AwaitingQuest" | "AwaitingHardQuestion">

type Ended = Variant<SessionState, "Crossed" | "Cast">

type AnswerMessage = Variant<SessionMessage, "Answer">

const statusOf: { readonly [S in (Awaiting | Ended)["_tag"]]: SessionStatus } = {
  AwaitingName: "name",
  AwaitingQuest: "quest",
  AwaitingHardQuestion: "hard_question",
  Crossed: "crossed",
  Cast: "cast"
}

/** The recorded answers of a state, in the order of the script. */
const recorded = (
  state: Awaiting | Ended
): ReadonlyArray<readonly [BridgeStep, RecordedAnswer]> => {
  const answers: { readonly _tag: string } & { readonly [S in BridgeStep]?: RecordedAnswer } = state
  return bridge.questions.flatMap(({ step }) => {
    const answer = answers[step]
    return answer === undefined ? [] : [[step, answer] as const]
  })
}

const textsOf = (state: Awaiting | Ended): AnswerTexts<BridgeStep> =>
  Object.fromEntries(recorded(state).map(([step, { text }]) => [step, text]))

/** The text of a state. How a session ended is stored: the answers are not compared again. */
const textOf = (state: Awaiting | Ended): string => {
  switch (state._tag) {
    case "Crossed":
      return bridge.crossed
    case "Cast":
      return bridge.cast
    default:
      return scriptProgress(bridge, textsOf(state)).p
  }
}

const view = (state: Awaiting | Ended): SessionView => ({
  status: statusOf[state._tag],
  p: textOf(state),
  recorded: recorded(state).map(([step]) => step),
  startedAtMs: state.startedAtMs,
  version: state.version
})

const rejected = (p: string, cast: boolean): SessionReply => ({ _tag: "Rejected", p, cast })

/** The refusal of a caller who is not the session's account, nor an admin. */
const notPermitted = (
  { owner }: Awaiting | Ended,
  { caller }: Variant<SessionMessage, "Answer" | "Delete">
): Decision<never> | undefined => {
  const reason = owner === undefined ? undefined : notOwner(owner, caller, true)
  return reason === undefined
    ? undefined
    : deny(reason, "the account that began this session, or an admin, may change it")
}

/** The refusal of an invalid answer; undefined if it is valid. */
const invalidAnswer = (
  state: Awaiting,
  message: AnswerMessage
): Decision<never, SessionReply> | undefined => {
  if (isOutdated(state, message)) return deny("PreconditionFailed")
  if (message.continue !== undefined && message.continue !== "true") {
    return stay().reply(rejected(bridge.confused, false))
  }
  if (message.text.trim() === "") {
    return deny("Invalid", "an answer has a text, or an href of one")
  }
  if (message.text.length > answerCharsMax) {
    return deny("Invalid", `an answer has at most ${answerCharsMax} characters`)
  }
  return undefined
}

const answerOf = ({ text, href }: AnswerMessage): RecordedAnswer =>
  href === undefined ? { text } : { text, href }

/** The state with the version and time of a change. */
const withChange = <State extends Awaiting>(state: State, nowMs: number): State => ({
  ...state,
  version: state.version + 1,
  changedAtMs: nowMs
})

/** Stores a changed session. It expires `retentionMs` after the change. */
const storeSession = (next: Awaiting | Ended, retentionMs: number): Decision<SessionState> =>
  become<SessionState>(next).setTimer((next.changedAtMs ?? next.startedAtMs) + retentionMs)

const answered = (next: Awaiting | Ended, created: boolean, retentionMs: number): SessionDecision =>
  storeSession(next, retentionMs).reply<SessionReply>({
    _tag: "Answered",
    created,
    view: view(next)
  })

type AnswerCells = { readonly [S in Awaiting["_tag"]]: Sessions[S]["Answer"] }

/** Answers in the states that still take them. Who may not change the session learns no more. */
const answerCells = (retentionMs: number): AnswerCells => ({
  AwaitingName: (state, message, { nowMs }) => {
    const denied = notPermitted(state, message)
    if (denied !== undefined) return denied
    if (message.step !== "name") return deny("OutOfOrder", "the name comes first")
    const refusal = invalidAnswer(state, message)
    if (refusal !== undefined) return refusal
    const name = answerOf(message)
    const next: Awaiting = { ...withChange(state, nowMs), _tag: "AwaitingQuest", name }
    return answered(next, true, retentionMs)
  },
  AwaitingQuest: (state, message, { nowMs }) => {
    const denied = notPermitted(state, message)
    if (denied !== undefined) return denied
    if (message.step === "hard_question") return deny("OutOfOrder", "the quest comes first")
    const refusal = invalidAnswer(state, message)
    if (refusal !== undefined) return refusal
    const recordedAnswer = answerOf(message)
    const next = withChange(state, nowMs)
    return message.step === "name"
      ? answered({ ...next, name: recordedAnswer }, false, retentionMs)
      : answered(
        { ...next, _tag: "AwaitingHardQuestion", quest: recordedAnswer },
        true,
        retentionMs
      )
  },
  AwaitingHardQuestion: (state, message, { nowMs }) => {
    const refusal = notPermitted(state, message) ?? invalidAnswer(state, message)
    if (refusal !== undefined) return refusal
    const recordedAnswer = answerOf(message)
    const next = withChange(state, nowMs)
    if (message.step !== "hard_question") {
      return answered({ ...next, [message.step]: recordedAnswer }, false, retentionMs)
    }
    const crossed: Ended = { ...next, _tag: "Crossed", hard_question: recordedAnswer }
    if (scriptProgress(bridge, textsOf(crossed))._tag === "Crossed") {
      return answered(crossed, true, retentionMs)
    }
    return storeSession({ ...crossed, _tag: "Cast" }, retentionMs).reply(
      rejected(bridge.cast, true)
    )
  }
})

/** Deletes the session, and removes its entry from the listing. */
const end = (
  { owner }: Awaiting | Ended,
  nowMs: number,
  forgetAfterMs: number
): SessionDecision => {
  const owned = owner === undefined ? {} : { owner }
  return become<SessionState>({ _tag: "Deleted", deletedAtMs: nowMs, ...owned })
    .setTimer(nowMs + forgetAfterMs)
    .perform<SessionAction>({ _tag: "RemoveEntry", ...owned })
}

/** The cells that are equal in all states of a session that exists. */
const existingCells = (retentionMs: number, forgetAfterMs: number) => ({
  Start: (state: Awaiting | Ended, { requestId }: Variant<SessionMessage, "Start">) =>
    requestId === state.requestId
      ? stay().reply<SessionReply>({ _tag: "Started", view: view(state) })
      : deny("Taken"),
  Describe: (state: Awaiting | Ended) =>
    stay().reply<SessionReply>({ _tag: "Described", view: view(state) }),
  ReadAnswer: (state: Awaiting | Ended, { step }: Variant<SessionMessage, "ReadAnswer">) => {
    const found = recorded(state).find(([of]) => of === step)
    return found === undefined
      ? deny("NotFound")
      : stay().reply<SessionReply>({ _tag: "Recorded", answer: found[1] })
  },
  Delete: (
    state: Awaiting | Ended,
    message: Variant<SessionMessage, "Delete">,
    { nowMs }: DecisionContext
  ) =>
    notPermitted(state, message) ??
      (isOutdated(state, message)
        ? deny("PreconditionFailed")
        : end(state, nowMs, forgetAfterMs).reply<SessionReply>({ _tag: "Done" })),
  EntryRemoved: () => stay(),
  TimerFired: (state: Awaiting | Ended, _message: unknown, { nowMs }: DecisionContext) => {
    const expiresAtMs = (state.changedAtMs ?? state.startedAtMs) + retentionMs
    return nowMs < expiresAtMs
      ? stay<SessionState>().setTimer(expiresAtMs)
      : end(state, nowMs, forgetAfterMs)
  }
})

/** The cells that are equal before a session is started and after it is deleted. */
const withoutSession = (reason: "NotFound" | "Gone") =>
  denyEach(reason, "Answer", "Describe", "ReadAnswer", "Delete")

/** Removes the record of a deleted session, but only once its entry is removed. */
const deletedCells = (forgetAfterMs: number): Sessions["Deleted"] => ({
  Start: () => deny("Gone"),
  ...withoutSession("Gone"),
  EntryRemoved: ({ deletedAtMs = 0 }, _message, { nowMs }) =>
    nowMs < deletedAtMs + forgetAfterMs ? stay() : stay<SessionState>().removeActor(),
  TimerFired: ({ deletedAtMs = 0, owner }, _message, { nowMs }) => {
    const forgottenAtMs = deletedAtMs + forgetAfterMs
    return nowMs < forgottenAtMs
      ? stay<SessionState>().setTimer(forgottenAtMs)
      : stay<SessionState>()
        .setTimer(nowMs + entryRemovalRetryMs)
        .perform<SessionAction>({
          _tag: "RemoveEntry",
          ...owner === undefined ? {} : { owner }
        })
  }
})

/**
 * The table of sessions that expire `retentionMs` after their last change. A deleted one is
 * remembered as long again, and while a repeated Idempotency-Key could begin it once more.
 */
export const sessionTable = (retentionMs: number): Sessions => {
  const forgetAfterMs = Math.max(retentionMs, idempotencyRetentionMs)
  const existing = existingCells(retentionMs, forgetAfterMs)
  const answer = answerCells(retentionMs)
  const ended = { ...existing, Answer: () => deny("Ended") }
  return {
    Absent: {
      Start: (_state, message, { nowMs }) => {
        if (message.continue !== "true") return stay().reply(rejected(bridge.confused, false))
        const { owner, requestId } = message
        const next: Awaiting = {
          _tag: "AwaitingName",
          requestId,
          ...owner === undefined ? {} : { owner },
          startedAtMs: nowMs,
          version: 1
        }
        return storeSession(next, retentionMs)
          .reply<SessionReply>({ _tag: "Started", view: view(next) })
      },
      ...withoutSession("NotFound"),
      EntryRemoved: () => stay(),
      TimerFired: () => stay()
    },
    AwaitingName: { ...existing, Answer: answer.AwaitingName },
    AwaitingQuest: { ...existing, Answer: answer.AwaitingQuest },
    AwaitingHardQuestion: { ...existing, Answer: answer.AwaitingHardQuestion },
    Crossed: ended,
    Cast: ended,
    Deleted: deletedCells(forgetAfterMs)
  }
}
