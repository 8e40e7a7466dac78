/** What the bridge, its sessions and the questions without a session take and answer (Area B). */
import { attribute, attributes, dateTime, documentRequestBody, elementText, emptyResponse,
  formRequestBody, formSchema, list, object, oneOf, type Operation, type OperationGroup,
  type OperationKey, pagingParameters, type Parameter, type ResponseDescription, rootElement,
  seeOtherResponse, text, uri, viewResponse } from "../../formats/openapi/index.ts"

type Step = "name" | "quest" | "hard_question"

const answered = object(attributes({ href: uri }), ["href"])

/** What the bridge-keeper says to an answer that is none, or wrong. */
const rejected: ResponseDescription = {
  ...viewResponse("Rejection", "The rejection of the bridge-keeper; or no acceptable type", [
    "Vary",
    "Cache-Control"
  ]),
  isView: false
}

const pageForm = formSchema(["answer", "href", "continue"])

const ofStep = (step: Step): Readonly<Record<OperationKey, Operation>> => {
  const at = `/sessions/{session}/${step}` as const
  const name = step === "hard_question" ? "HardQuestion" : step === "name" ? "Name" : "Quest"
  const operations: Record<OperationKey, Operation> = {}
  operations[`GET ${at}`] = {
    id: `getAnswer${name}`,
    summary: `The recorded answer to ${step}`,
    problems: ["gone"],
    responses: { 200: viewResponse("Answer", "The answer") }
  }
  operations[`PUT ${at}`] = {
    id: `answer${name}`,
    summary: `Answers ${step}, or answers it again`,
    description: "409 out of order; 405 when the conversation is over.",
    body: documentRequestBody("Answer"),
    problems: ["gone", "conflict", "method-not-allowed"],
    responses: {
      // After the last one there is nothing to answer again.
      ...step === "hard_question" ? {} : {
        200: viewResponse("Challenge", "Recorded over an earlier one", [
          "Location",
          "Content-Location"
        ])
      },
      201: viewResponse("Challenge", "Recorded; what comes next", ["Location", "Content-Location"]),
      406: rejected
    }
  }
  operations[`POST ${at}`] = {
    id: `answer${name}ByForm`,
    summary: "The same as PUT, for a page's form",
    body: formRequestBody(pageForm),
    problems: ["gone", "method-not-allowed", "precondition-failed"],
    responses: { 303: seeOtherResponse, 406: rejected }
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
  responses: { 200: viewResponse("Challenge", "What comes next"), 406: rejected }
})

export const sessionOperations: OperationGroup = {
  tag: "sessions",
  about: "A conversation whose every state has a URI; and the same questions without a session.",
  schemas: {
    Answer: rootElement("answer", {
      ...attributes({ continue: text, href: uri }),
      text: { type: "string", description: "In a JSON request the text may be named so." },
      ...elementText("The answer.")
    }),
    Challenge: rootElement("challenge", {
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
    Rejection: rootElement("p", {
      p: { type: "string", description: "In JSON; in XML the text of the root." },
      ...elementText("What is said.")
    }),
    Sessions: rootElement("sessions", {
      session: list(
        object({
          ...attributes({ href: uri, started: dateTime }),
          status: attribute(oneOf("name", "quest", "hard_question", "crossed", "cast"))
        }, ["href", "status", "started"])
      )
    }, ["session"])
  },
  operations: {
    "GET /cross_bridge": {
      id: "crossBridge",
      summary: "Where a session begins (B1)",
      responses: { 200: viewResponse("Challenge", "How to begin", ["Link"]) }
    },
    "GET /sessions": {
      id: "listSessions",
      summary: "All sessions, newest first (B3)",
      query: pagingParameters,
      responses: { 200: viewResponse("Sessions", "A page of them", ["Link"]) }
    },
    "POST /sessions": {
      id: "startSession",
      summary: "Begins a session (B2)",
      body: documentRequestBody("Answer", { form: pageForm }),
      problems: ["gone"],
      responses: {
        201: viewResponse("Challenge", "The first question", ["Location"]),
        303: seeOtherResponse,
        406: rejected
      }
    },
    "GET /sessions/{session}": {
      id: "getSession",
      summary: "The current challenge of a session (B4)",
      problems: ["gone"],
      responses: { 200: viewResponse("Challenge", "What comes next, and what was answered") }
    },
    "DELETE /sessions/{session}": {
      id: "deleteSession",
      summary: "Removes a session",
      problems: ["gone", "conflict"],
      responses: { 204: emptyResponse("It is removed") }
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
