/**
 * The decisions of a session: the bridge's script, bound to states. Earlier answers may be
 * overwritten until the last one is recorded; then all are read-only.
 */
import { become, type BehaviorTable, type Decision, stay,
  type Variant } from "../../runtime/index.ts"
import { answerCharsMax } from "../limits.ts"
import { deny, denyEach, isOutdated } from "../refusals.ts"
import { bridge, type BridgeStep } from "./bridge.ts"
import type { RecordedAnswer, SessionMessage, SessionReply, SessionState, SessionStatus,
  SessionView } from "./protocol.ts"
import { type AnswerTexts, scriptProgress } from "./script.ts"

type Sessions = BehaviorTable<SessionState, SessionMessage, SessionReply>

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

const view = (state: Awaiting | Ended): SessionView => ({
  status: statusOf[state._tag],
  p: state._tag === "Cast" ? bridge.cast : scriptProgress(bridge, textsOf(state)).p,
  recorded: recorded(state).map(([step]) => step),
  startedAtMs: state.startedAtMs,
  version: state.version
})

const rejected = (p: string, cast: boolean): SessionReply => ({ _tag: "Rejected", p, cast })

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

const answered = (next: Awaiting | Ended, created: boolean): Decision<SessionState, SessionReply> =>
  become<SessionState>(next).reply<SessionReply>({ _tag: "Answered", created, view: view(next) })

const answer: { readonly [S in Awaiting["_tag"]]: Sessions[S]["Answer"] } = {
  AwaitingName: (state, message) => {
    if (message.step !== "name") return deny("OutOfOrder", "the name comes first")
    const refusal = invalidAnswer(state, message)
    if (refusal !== undefined) return refusal
    const version = state.version + 1
    return answered({ ...state, _tag: "AwaitingQuest", version, name: answerOf(message) }, true)
  },
  AwaitingQuest: (state, message) => {
    if (message.step === "hard_question") return deny("OutOfOrder", "the quest comes first")
    const refusal = invalidAnswer(state, message)
    if (refusal !== undefined) return refusal
    const version = state.version + 1
    const recordedAnswer = answerOf(message)
    return message.step === "name"
      ? answered({ ...state, version, name: recordedAnswer }, false)
      : answered({ ...state, _tag: "AwaitingHardQuestion", version, quest: recordedAnswer }, true)
  },
  AwaitingHardQuestion: (state, message) => {
    const refusal = invalidAnswer(state, message)
    if (refusal !== undefined) return refusal
    const version = state.version + 1
    const recordedAnswer = answerOf(message)
    if (message.step !== "hard_question") {
      return answered({ ...state, version, [message.step]: recordedAnswer }, false)
    }
    const over: Ended = { ...state, _tag: "Crossed", version, hard_question: recordedAnswer }
    if (scriptProgress(bridge, textsOf(over))._tag === "Crossed") return answered(over, true)
    return become<SessionState>({ ...over, _tag: "Cast" }).reply(rejected(bridge.cast, true))
  }
}

/** The cells that are the same in every session that exists. */
const existing = {
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
      : stay().reply<SessionReply>({ _tag: "Recorded", answer: found[1], version: state.version })
  },
  Delete: (state: Awaiting | Ended, message: Variant<SessionMessage, "Delete">) =>
    isOutdated(state, message)
      ? deny("PreconditionFailed")
      : become<SessionState>({ _tag: "Deleted" }).reply<SessionReply>({ _tag: "Done" }),
  TimerFired: () => stay()
}

/** The cells that are the same before a session is started and after it is deleted. */
const withoutSession = (reason: "NotFound" | "Gone") => ({
  ...denyEach(reason, "Answer", "Describe", "ReadAnswer", "Delete"),
  TimerFired: () => stay()
})

const ended = { ...existing, Answer: () => deny("Ended") }

export const sessionTable: Sessions = {
  Absent: {
    Start: (_state, message, { nowMs }) => {
      if (message.continue !== "true") return stay().reply(rejected(bridge.confused, false))
      const { requestId } = message
      const next: Awaiting = { _tag: "AwaitingName", requestId, startedAtMs: nowMs, version: 1 }
      return become<SessionState>(next).reply<SessionReply>({ _tag: "Started", view: view(next) })
    },
    ...withoutSession("NotFound")
  },
  AwaitingName: { ...existing, Answer: answer.AwaitingName },
  AwaitingQuest: { ...existing, Answer: answer.AwaitingQuest },
  AwaitingHardQuestion: { ...existing, Answer: answer.AwaitingHardQuestion },
  Crossed: ended,
  Cast: ended,
  Deleted: {
    Start: () => deny("Gone"),
    ...withoutSession("Gone")
  }
}
