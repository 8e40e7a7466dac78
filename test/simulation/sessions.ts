/** Operations of clients on sessions. */
import { sessionKind } from "../../actors/index.ts"
import type { SessionReply } from "../../actors/session/protocol.ts"
import { address } from "../../runtime/index.ts"
import { type SessionOutput, type SessionStep, sessionSteps } from "../histories/models/session.ts"
import type { Operation } from "./plan.ts"
import { sessionIds } from "./shards.ts"
import { askToCreate, askUntilAnswered, type Operations, reasonOf,
  type Turn } from "./operations.ts"
import type { Answer } from "./requests.ts"
import type { WebAnswer } from "./web.ts"

const addressOf = (resource: string) =>
  address(sessionKind, sessionIds[Number(resource.split("/")[1])] ?? resource)

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

const answerOutputs: Readonly<Record<number, SessionOutput>> = {
  200: { _tag: "Overwritten" },
  201: { _tag: "Recorded" },
  404: { _tag: "Gone" },
  405: { _tag: "Over" },
  406: { _tag: "Cast" },
  409: { _tag: "TooEarly" },
  410: { _tag: "Gone" }
}

/** Sends an answer by HTTP, and records it. */
const putAnswer = async (
  { asking, known, name, records, trace }: Turn,
  node: number,
  resource: string,
  step: SessionStep,
  text: string
): Promise<Answer<WebAnswer>> => {
  const start = records.moment()
  const answer = await asking.http(node, {
    method: "PUT",
    path: `/sessions/${addressOf(resource).id}/${step}`,
    headers: { "content-type": "application/xml" },
    body: `<answer>${text}</answer>`
  })
  const status = answer._tag === "Answered" ? answer.reply.status : undefined
  trace.note("client", () => `${name} answers ${resource} ${step}: ${status ?? answer._tag}`)
  const next = sessionSteps[sessionSteps.indexOf(step) + 1]
  if (status === 201 && next !== undefined) known.steps.set(resource, next)
  const what = { client: name, resource, input: { kind: "answer", step, text } } as const
  records.note(records.session, what, start, answer, (reply): SessionOutput => {
    const output = answerOutputs[reply.status]
    if (output === undefined) records.wrong.push(`${resource} is answered with ${reply.status}`)
    return output ?? { _tag: "Gone" }
  })
  return answer
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
  answer: async (turn, operation) => {
    const { mark, nodes, resource } = operation
    const step = answeredStep(turn, operation)
    const last = mark % WRONG === 0 ? "no idea" : "24 mph"
    const text = step === "hard_question" ? last : `${step} ${mark}`
    for (const node of nodes) {
      const answer = await putAnswer(turn, node, resource, step, text)
      if (answer._tag === "Answered") break
    }
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
