/**
 * What a session decides: the bridge's script bound to states. Earlier answers may be
 * overwritten until the last one is given; then all are read-only.
 */
import { become, type BehaviorTable, type Decision, stay,
  type Variant } from "../../runtime/index.ts"
import { answerCharsMax } from "../limits.ts"
import { deny, isOutdated } from "../refusals.ts"
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

/** Why an answer is not even looked at; undefined when it is one. */
const unfit = (
  state: Awaiting,
  message: AnswerMessage
): Decision<never, SessionReply> | undefined => {
  if (isOutdated(state, message)) return deny("PreconditionFailed")
  if (message.continue !== undefined && message.continue !== "true") {
    return stay().reply(rejected(bridge.confused, false))
  }
  if (message.text.trim() === "") {
    return deny("Invalid", "an answer holds text, or an href to some")
  }
  if (message.text.length > answerCharsMax) {
    return deny("Invalid", `an answer has at most ${answerCharsMax} characters`)
  }
  return undefined
}

const answerOf = ({ text, href }: AnswerMessage): RecordedAnswer =>
  href === undefined ? { text } : { text, href }

const goOn = (next: Awaiting | Ended, created: boolean): Decision<SessionState, SessionReply> =>
  become<SessionState>(next).reply<SessionReply>({ _tag: "Answered", created, view: view(next) })

const answer: { readonly [S in Awaiting["_tag"]]: Sessions[S]["Answer"] } = {
  AwaitingName: (state, message) => {
    if (message.step !== "name") return deny("OutOfOrder", "the name comes first")
    const reason = unfit(state, message)
    if (reason !== undefined) return reason
    const version = state.version + 1
    return goOn({ ...state, _tag: "AwaitingQuest", version, name: answerOf(message) }, true)
  },
  AwaitingQuest: (state, message) => {
    if (message.step === "hard_question") return deny("OutOfOrder", "the quest comes first")
    const reason = unfit(state, message)
    if (reason !== undefined) return reason
    const version = state.version + 1
    const given = answerOf(message)
    return message.step === "name"
      ? goOn({ ...state, version, name: given }, false)
      : goOn({ ...state, _tag: "AwaitingHardQuestion", version, quest: given }, true)
  },
  AwaitingHardQuestion: (state, message) => {
    const reason = unfit(state, message)
    if (reason !== undefined) return reason
    const version = state.version + 1
    const given = answerOf(message)
    if (message.step !== "hard_question") {
      return goOn({ ...state, version, [message.step]: given }, false)
    }
    const over: Ended = { ...state, _tag: "Crossed", version, hard_question: given }
    if (scriptProgress(bridge, textsOf(over))._tag === "Crossed") return goOn(over, true)
    return become<SessionState>({ ...over, _tag: "Cast" }).reply(rejected(bridge.cast, true))
  }
}

/** What is the same in every session that is there. */
const present = {
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

const ended = { ...present, Answer: () => deny("Ended") }

export const sessionTable: Sessions = {
  Absent: {
    Start: (_state, message, { nowMs }) => {
      if (message.continue !== "true") return stay().reply(rejected(bridge.confused, false))
      const { requestId } = message
      const next: Awaiting = { _tag: "AwaitingName", requestId, startedAtMs: nowMs, version: 1 }
      return become<SessionState>(next).reply<SessionReply>({ _tag: "Started", view: view(next) })
    },
    Answer: () => deny("NotFound"),
    Describe: () => deny("NotFound"),
    ReadAnswer: () => deny("NotFound"),
    Delete: () => deny("NotFound"),
    TimerFired: () => stay()
  },
  AwaitingName: { ...present, Answer: answer.AwaitingName },
  AwaitingQuest: { ...present, Answer: answer.AwaitingQuest },
  AwaitingHardQuestion: { ...present, Answer: answer.AwaitingHardQuestion },
  Crossed: ended,
  Cast: ended,
  Deleted: {
    Start: () => deny("Gone"),
    Answer: () => deny("Gone"),
    Describe: () => deny("Gone"),
    ReadAnswer: () => deny("Gone"),
    Delete: () => deny("Gone"),
    TimerFired: () => stay()
  }
}
