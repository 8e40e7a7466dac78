/** What clients do with sessions. */
import { sessionKind } from "../../actors/index.ts"
import type { Reply } from "../../actors/session/protocol.ts"
import { address } from "../../runtime/index.ts"
import { type SessionOutput, type SessionStep, sessionSteps } from "../histories/models/session.ts"
import type { Operation } from "./plan.ts"
import { askAgain, askToMake, reasonOf, type Turn, type Verbs } from "./verbs.ts"

const addressOf = (resource: string) => address(sessionKind, resource.replace("/", "-"))

const refusals: Readonly<Record<string, SessionOutput>> = {
  OutOfOrder: { _tag: "TooEarly" },
  Ended: { _tag: "Over" },
  NotFound: { _tag: "Gone" },
  Gone: { _tag: "Gone" }
}

const outputOf = (told: unknown): SessionOutput => {
  const reason = reasonOf(told)
  if (reason !== undefined) return refusals[reason] ?? { _tag: "Gone" }
  // A session answers in its own protocol.
  const reply = told as Reply
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

export const sessionVerbs: Verbs = {
  start: (turn, operation) => {
    const { resource } = operation
    const message = { _tag: "Start", requestId: `start ${resource}`, continue: "true" }
    const told = {
      all: turn.records.session,
      resource,
      input: { kind: "begin" } as const,
      outputOf
    }
    return askToMake(turn, operation, addressOf(resource), message, told)
  },
  answer: (turn, operation) => {
    const { choice, mark, resource } = operation
    const step = stepOf(operation)
    const right = choice < 0.9 ? "24 mph" : "no idea"
    const text = step === "hard_question" ? right : `${step} ${mark}`
    const message = { _tag: "Answer", step, text }
    const input = { kind: "answer", step, text } as const
    const told = { all: turn.records.session, resource, input, outputOf }
    return askAgain(turn, operation, addressOf(resource), message, told)
  },
  describe: (turn, operation) => {
    const { resource } = operation
    const told = { all: turn.records.session, resource, input: { kind: "show" } as const, outputOf }
    return askAgain(turn, operation, addressOf(resource), { _tag: "Describe" }, told)
  },
  read: (turn: Turn, operation) => {
    const { resource } = operation
    const step = stepOf(operation)
    const input = { kind: "recorded", step } as const
    const told = { all: turn.records.session, resource, input, outputOf }
    return askAgain(turn, operation, addressOf(resource), { _tag: "ReadAnswer", step }, told)
  },
  delete: (turn, operation) => {
    const { choice, resource } = operation
    if (choice > 0.2) return Promise.resolve()
    const told = {
      all: turn.records.session,
      resource,
      input: { kind: "delete" } as const,
      outputOf
    }
    return askAgain(turn, operation, addressOf(resource), { _tag: "Delete" }, told)
  }
}
