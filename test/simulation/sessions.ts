/** Operations of clients on sessions. */
import { sessionKind } from "../../actors/index.ts"
import type { SessionReply } from "../../actors/session/protocol.ts"
import { address } from "../../runtime/index.ts"
import { type SessionOutput, type SessionStep, sessionSteps } from "../histories/models/session.ts"
import type { Operation } from "./plan.ts"
import { askToCreate, askUntilAnswered, type Operations, reasonOf,
  type Turn } from "./operations.ts"

const addressOf = (resource: string) => address(sessionKind, resource.replace("/", "-"))

const refusals: Readonly<Record<string, SessionOutput>> = {
  OutOfOrder: { _tag: "TooEarly" },
  Ended: { _tag: "Over" },
  NotFound: { _tag: "Gone" },
  Gone: { _tag: "Gone" }
}

const outputOf = (reported: unknown): SessionOutput => {
  const reason = reasonOf(reported)
  if (reason !== undefined) return refusals[reason] ?? { _tag: "Gone" }
  // The replies of a session have the types of its protocol.
  const reply = reported as SessionReply
  switch (reply._tag) {
    case "Started":
      return { _tag: "Begun" }
    case "Answered":
      return { _tag: reply.created ? "Recorded" : "Overwritten" }
    case "Rejected":
      return { _tag: "Cast" }
    case "Described":
      return { _tag: "Shown", status: reply.view.status }
    case "Recorded":
      return { _tag: "Answer", text: reply.answer.text }
    case "Done":
      return { _tag: "Deleted" }
  }
}

const stepOf = ({ choice }: Operation): SessionStep =>
  sessionSteps[choice < 0.4 ? 0 : choice < 0.8 ? 1 : 2] ?? "name"

/** Fraction of the answers to the next step; the others go to any step. */
const IN_ORDER = 0.75
/** One of this many last answers is wrong. */
const WRONG = 5

/** The step to answer: mostly the next one, so that sessions end. */
const answeredStep = ({ known }: Turn, { choice, resource, ...rest }: Operation): SessionStep =>
  choice < IN_ORDER
    ? known.steps.get(resource) ?? "name"
    : stepOf({ ...rest, resource, choice: (choice - IN_ORDER) / (1 - IN_ORDER) })

/** The step that a session waits for, by its reply. */
const waiting = ({ known }: Turn, resource: string) => (reported: unknown): SessionOutput => {
  if (reasonOf(reported) === undefined) {
    // The replies of a session have the types of its protocol.
    const reply = reported as SessionReply
    const status = "view" in reply ? reply.view.status : undefined
    if (status !== undefined && status !== "crossed" && status !== "cast") {
      known.steps.set(resource, status)
    }
  }
  return outputOf(reported)
}

export const sessionVerbs: Operations = {
  start: (turn, operation) => {
    const { resource } = operation
    const message = { _tag: "Start", requestId: `start ${resource}`, continue: "true" }
    const reported = {
      all: turn.records.session,
      resource,
      input: { kind: "begin" } as const,
      outputOf
    }
    return askToCreate(turn, operation, addressOf(resource), message, reported)
  },
  answer: (turn, operation) => {
    const { mark, resource } = operation
    const step = answeredStep(turn, operation)
    const last = mark % WRONG === 0 ? "no idea" : "24 mph"
    const text = step === "hard_question" ? last : `${step} ${mark}`
    const message = { _tag: "Answer", step, text }
    const input = { kind: "answer", step, text } as const
    const reported = {
      all: turn.records.session,
      resource,
      input,
      outputOf: waiting(turn, resource)
    }
    return askUntilAnswered(turn, operation, addressOf(resource), message, reported)
  },
  describe: (turn, operation) => {
    const { resource } = operation
    const reported = {
      all: turn.records.session,
      resource,
      input: { kind: "show" } as const,
      outputOf
    }
    return askUntilAnswered(turn, operation, addressOf(resource), { _tag: "Describe" }, reported)
  },
  read: (turn: Turn, operation) => {
    const { resource } = operation
    const step = stepOf(operation)
    const input = { kind: "recorded", step } as const
    const reported = { all: turn.records.session, resource, input, outputOf }
    return askUntilAnswered(
      turn,
      operation,
      addressOf(resource),
      { _tag: "ReadAnswer", step },
      reported
    )
  },
  delete: (turn, operation) => {
    const { choice, resource } = operation
    if (choice > 0.2) return Promise.resolve()
    const reported = {
      all: turn.records.session,
      resource,
      input: { kind: "delete" } as const,
      outputOf
    }
    return askUntilAnswered(turn, operation, addressOf(resource), { _tag: "Delete" }, reported)
  }
}
