/** The operations of sessions and of the stateless questions (Area B). */
import { answerCharsMax } from "../../../actors/index.ts"
import { attribute, attributes, dateTime, documentRequestBody, elementText, formRequestBody,
  formSchema, list, object, oneOf, pagingParameters, type Parameter, type ResponseDescription,
  rootElement, seeOtherResponse, text, uri, viewResponse,
  visibleText } from "../../formats/openapi/index.ts"
import type { ResourceDefinition, ResourceOperation } from "../../resource.ts"
import { deleteSession, getAnswer, getEntry, getSession, getSessions, postAnswerForm, postSessions,
  putAnswer } from "./session-handlers.ts"
import { type AnswerStep, questionForm, stepTitles } from "./session-views.ts"
import { getQuestion, refusedForm } from "./stateless-questions.ts"

const answered = object(attributes({ href: uri }), ["href"])

/** The answer to a missing or wrong answer. */
const rejected: ResponseDescription = {
  ...viewResponse("Rejection", "Rejected by the bridge-keeper, or no acceptable type", [
    "Vary?",
    "Cache-Control"
  ]),
  isView: false
}

const answerText = { ...text, maxLength: answerCharsMax }

const pageForm = formSchema({ answer: answerText, href: uri, continue: text })

const belongsToAccount = "A session that an account began is changed by it or an admin alone."

const answerOperations = (step: AnswerStep): ResourceDefinition["operations"] => {
  const path = `/sessions/{session}/${step}` as const
  const name = step === "hard_question" ? "HardQuestion" : step === "name" ? "Name" : "Quest"
  const headers = ["Location", "Content-Location"] as const
  return {
    [`GET ${path}`]: {
      handle: getAnswer(step),
      id: `getAnswer${name}`,
      summary: `The recorded answer to ${step}`,
      responses: { 200: viewResponse("Answer", "The answer") }
    },
    [`PUT ${path}`]: {
      handle: putAnswer(step),
      id: `answer${name}`,
      summary: `Answers ${step}, or answers it again`,
      needs: "anyone",
      scopes: ["send"],
      description: "The answer is 409 out of order, and 405 when the conversation is over. " +
        belongsToAccount,
      body: documentRequestBody("Answer"),
      problems: ["conflict", "method-not-allowed"],
      responses: {
        // The conversation is over after the last answer, which therefore cannot be replaced.
        ...step === "hard_question"
          ? {}
          : { 200: viewResponse("Challenge", "Replaced the earlier answer", headers) },
        201: viewResponse("Challenge", "Recorded, with the next question", headers),
        406: rejected
      }
    },
    [`POST ${path}`]: {
      handle: postAnswerForm(step),
      form: ({ request }) => questionForm(request.path, stepTitles[step]),
      id: `answer${name}ByForm`,
      summary: "Answers the question, for a page's form",
      needs: "anyone",
      scopes: ["send"],
      body: formRequestBody(pageForm),
      problems: ["method-not-allowed", "precondition-failed"],
      responses: { 303: seeOtherResponse, 406: rejected }
    }
  }
}

const answerParameter = (description: string, required: boolean): Parameter => ({
  description,
  schema: { ...answerText, ...visibleText },
  required
})

const name = answerParameter("The answer to the first question.", true)

const quest = answerParameter("The answer to the second question.", true)

const question = (
  at: number,
  id: string,
  summary: string,
  query: Readonly<Record<string, Parameter>>
): ResourceOperation => ({
  handle: getQuestion(at),
  form: (_, fields) => refusedForm(fields),
  id,
  summary,
  query,
  problems: ["unprocessable"],
  responses: { 200: viewResponse("Challenge", "The next question"), 406: rejected }
})

export const sessionResource: ResourceDefinition = {
  tag: "sessions",
  about: "Conversations whose every state has a URI, and the same questions without a session.",
  schemas: {
    Answer: rootElement("answer", {
      ...attributes({ continue: text, href: uri }),
      text: { ...answerText, description: "The answer. In XML the text of the element itself." }
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
      ...elementText("The words of the bridge-keeper.")
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
      handle: getEntry,
      id: "crossBridge",
      summary: "Shows how a session begins",
      responses: { 200: viewResponse("Challenge", "The request that begins a session", ["Link"]) }
    },
    "GET /sessions": {
      handle: getSessions,
      id: "listSessions",
      summary: "Lists all sessions, newest first",
      query: pagingParameters,
      responses: { 200: viewResponse("Sessions", "A page of the listing", ["Link"]) }
    },
    "POST /sessions": {
      handle: postSessions,
      id: "startSession",
      summary: "Begins a session",
      description: "An account owns the sessions that it begins; others are anybody's.",
      needs: "anyone",
      scopes: ["send"],
      body: documentRequestBody("Answer", { form: pageForm }),
      problems: ["gone", "quota-exceeded"],
      responses: {
        201: viewResponse("Challenge", "The first question"),
        303: seeOtherResponse,
        406: rejected
      }
    },
    "GET /sessions/{session}": {
      handle: getSession,
      id: "getSession",
      summary: "Reads the current challenge of a session",
      responses: { 200: viewResponse("Challenge", "The next question, and the answers so far") }
    },
    "DELETE /sessions/{session}": {
      handle: deleteSession,
      id: "deleteSession",
      summary: "Removes a session",
      description: belongsToAccount,
      needs: "anyone",
      scopes: ["send", "admin"],
      problems: ["conflict"]
    },
    ...answerOperations("name"),
    ...answerOperations("quest"),
    ...answerOperations("hard_question"),
    "GET /questions/name_question": question(0, "askName", "Asks the first question", {}),
    "GET /questions/quest_question": question(1, "askQuest", "Asks the second question", { name }),
    "GET /questions/hard_question": question(
      2,
      "askHardQuestion",
      "Asks the third question, or judges its answer",
      { name, quest, air_speed: answerParameter("The answer to the third question.", false) }
    )
  }
}
