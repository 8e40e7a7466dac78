/** What the bridge, its sessions and the questions without a session take and answer (Area B). */
import { type AnswerDescription, type Area, attribute, attributes, document, elementText, formBody,
  formOf, list, nothing, object, oneOf, type Operation, type OperationKey, paging, type Parameter,
  root, seeOther, text, time, uri, view } from "../../formats/openapi/index.ts"

type Step = "name" | "quest" | "hard_question"

const answered = object(attributes({ href: uri }), ["href"])

/** What the bridge-keeper says to an answer that is none, or wrong. */
const rejected: AnswerDescription = {
  ...view("Rejection", "What the bridge-keeper says instead; or nothing acceptable", [
    "Vary",
    "Cache-Control"
  ]),
  isView: false
}

const pageForm = formOf(["answer", "href", "continue"])

const ofStep = (step: Step): Readonly<Record<OperationKey, Operation>> => {
  const at = `/sessions/{session}/${step}` as const
  const name = step === "hard_question" ? "HardQuestion" : step === "name" ? "Name" : "Quest"
  const operations: Record<OperationKey, Operation> = {}
  operations[`GET ${at}`] = {
    id: `getAnswer${name}`,
    summary: `The recorded answer to ${step}`,
    problems: ["gone"],
    answers: { 200: view("Answer", "The answer") }
  }
  operations[`PUT ${at}`] = {
    id: `answer${name}`,
    summary: `Answers ${step}, or answers it again`,
    description: "409 out of order; 405 when the conversation is over.",
    body: document("Answer"),
    problems: ["gone", "conflict", "method-not-allowed"],
    answers: {
      // After the last one there is nothing to answer again.
      ...step === "hard_question" ? {} : {
        200: view("Challenge", "Recorded over an earlier one", ["Location", "Content-Location"])
      },
      201: view("Challenge", "Recorded; what comes next", ["Location", "Content-Location"]),
      406: rejected
    }
  }
  operations[`POST ${at}`] = {
    id: `answer${name}ByForm`,
    summary: "The same as PUT, for a page's form",
    body: formBody(pageForm),
    problems: ["gone", "method-not-allowed", "precondition-failed"],
    answers: { 303: seeOther, 406: rejected }
  }
  return operations
}

const answerParameter = (description: string, required: boolean): Parameter => ({
  description,
  schema: text,
  required
})

const name = answerParameter("The answer to the first question.", true)

const quest = answerParameter("The answer to the second question.", true)

const question = (
  id: string,
  summary: string,
  query: Readonly<Record<string, Parameter>>
): Operation => ({
  id,
  summary,
  query,
  problems: ["unprocessable"],
  answers: { 200: view("Challenge", "What comes next"), 406: rejected }
})

export const sessionOperations: Area = {
  tag: "sessions",
  about: "A conversation whose every state has a URI; and the same questions without a session.",
  schemas: {
    Answer: root("answer", {
      ...attributes({ continue: text, href: uri }),
      text: { type: "string", description: "In a JSON request the text may be named so." },
      ...elementText("The answer.")
    }),
    Challenge: root("challenge", {
      session: attribute(uri),
      p: text,
      method: oneOf("GET", "PUT", "POST"),
      uri: {
        anyOf: [
          uri,
          object({ parameter: attribute(text), ...elementText("The URI.") }, ["parameter"])
        ]
      },
      name: answered,
      quest: answered,
      hard_question: answered
    }, ["p", "method", "uri"]),
    Rejection: root("p", {
      p: { type: "string", description: "In JSON; in XML the text of the root." },
      ...elementText("What is said.")
    }),
    Sessions: root("sessions", {
      session: list(
        object({
          ...attributes({ href: uri, started: time }),
          status: attribute(oneOf("name", "quest", "hard_question", "crossed", "cast"))
        }, ["href", "status", "started"])
      )
    }, ["session"])
  },
  operations: {
    "GET /cross_bridge": {
      id: "crossBridge",
      summary: "Where a session begins (B1)",
      answers: { 200: view("Challenge", "How to begin", ["Link"]) }
    },
    "GET /sessions": {
      id: "listSessions",
      summary: "All sessions, newest first (B3)",
      query: paging,
      answers: { 200: view("Sessions", "A page of them", ["Link"]) }
    },
    "POST /sessions": {
      id: "startSession",
      summary: "Begins a session (B2)",
      body: document("Answer", { form: pageForm }),
      problems: ["gone"],
      answers: {
        201: view("Challenge", "The first question", ["Location"]),
        303: seeOther,
        406: rejected
      }
    },
    "GET /sessions/{session}": {
      id: "getSession",
      summary: "How a session stands (B4)",
      problems: ["gone"],
      answers: { 200: view("Challenge", "What comes next, and what was answered") }
    },
    "DELETE /sessions/{session}": {
      id: "deleteSession",
      summary: "Removes a session",
      problems: ["gone", "conflict"],
      answers: { 204: nothing("It is removed") }
    },
    ...ofStep("name"),
    ...ofStep("quest"),
    ...ofStep("hard_question"),
    "GET /questions/name_question": question("askName", "The first question (B8)", {}),
    "GET /questions/quest_question": question("askQuest", "The second question (B9)", { name }),
    "GET /questions/hard_question": question(
      "askHardQuestion",
      "The third question, or how its answer is taken (B10, B11)",
      { name, quest, air_speed: answerParameter("The answer to the third question.", false) }
    )
  }
}
