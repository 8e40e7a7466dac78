/** The stateless questions (B8 to B11): the URI holds the answers so far, nothing is stored. */
import { answerCharsMax, bridge, scriptProgress } from "../../../actors/index.ts"
import { type Control, html, type HtmlForm, link, type PageLink,
  renderForm } from "../../formats/html/index.ts"
import type { FormFields } from "../../formats/index.ts"
import { element, isText } from "../../formats/xml/index.ts"
import { defineHandler, type HandlerAnswer, type HttpError, httpError, readQuery,
  viewAnswer } from "../../pipeline/index.ts"
import { answerControl, type AnswerStep, entryPath, quoted, rejection } from "./session-views.ts"

/** One question's resource, the query parameter of its answer, and the path that takes it. */
interface Question {
  readonly path: string
  readonly step: AnswerStep
  readonly parameter: string
  readonly next: string
}

const namePath = "/questions/name_question"

const questPath = "/questions/quest_question"

const hardPath = "/questions/hard_question"

const questions: ReadonlyArray<Question> = [
  { path: namePath, step: "name", parameter: "name", next: questPath },
  { path: questPath, step: "quest", parameter: "quest", next: hardPath },
  { path: hardPath, step: "hard_question", parameter: "air_speed", next: hardPath }
]

/** The answers in a URI. */
type Answers = ReadonlyArray<readonly [parameter: string, text: string]>

const start: PageLink = { rel: "start", href: namePath, title: "From the beginning" }

const links: ReadonlyArray<PageLink> = [
  start,
  { rel: "alternate", href: entryPath, title: "The bridge, with a session" }
]

/** The fault of one parameter: it is missing, blank, not text, or too long. */
const parameterFault = (name: string, text: string): HttpError | undefined => {
  if (text.trim() === "") return httpError("malformed", `the query parameter ${name} is missing`)
  if (!isText(text)) return httpError("malformed", `${name} holds a control character`)
  return text.length > answerCharsMax
    ? httpError("unprocessable", `${name} has more than ${answerCharsMax} characters`)
    : undefined
}

const uriOf = (path: string, answers: Answers): string => {
  const query = answers.map(([name, text]) => `${name}=${encodeURIComponent(text)}`).join("&")
  return query === "" ? path : `${path}?${query}`
}

const questionForm = ({ next, parameter }: Question, p: string, answers: Answers): HtmlForm => ({
  action: next,
  method: "get",
  controls: [
    ...answers.map(([name, value]): Control => ({ name, label: "", type: "hidden", value })),
    answerControl(parameter, p)
  ],
  submit: "Answer"
})

/** The form that asks for the first refused answer again, with the answers before it. */
export const refusedForm = (fields: FormFields): HtmlForm | undefined => {
  const answers: Array<readonly [string, string]> = []
  const byStep: { [S in AnswerStep]?: string } = {}
  for (const question of questions) {
    const { parameter, step } = question
    const text = fields.get(parameter) ?? ""
    if (parameterFault(parameter, text) !== undefined) {
      const progress = scriptProgress(bridge, byStep)
      return progress._tag === "Asks" ? questionForm(question, progress.p, answers) : undefined
    }
    byStep[step] = text
    answers.push([parameter, text])
  }
  return undefined
}

const challenge = (question: Question, p: string, answers: Answers): HandlerAnswer => {
  const { next, parameter } = question
  const uri = uriOf(next, answers)
  return viewAnswer({
    title: "The bridge-keeper asks",
    tree: element(
      "challenge",
      {},
      element("p", {}, p),
      element("method", {}, "GET"),
      element("uri", { parameter }, `${uri}${answers.length === 0 ? "?" : "&"}${parameter}=`)
    ),
    body: html`${quoted(p)}${renderForm(questionForm(question, p, answers))}`,
    links
  })
}

const crossed = (p: string, answers: Answers): HandlerAnswer =>
  viewAnswer({
    title: "The other side",
    tree: element(
      "challenge",
      {},
      element("p", {}, p),
      element("method", {}, "GET"),
      element("uri", {}, uriOf(hardPath, answers))
    ),
    body: html`${quoted(p)}<p>You have crossed the Bridge of Death.</p>
<p>${link(namePath, "Come to the bridge again")}</p>
`,
    links
  })

/** The question at an index: the URI must have the answers to those before it. */
export const getQuestion = (at: number) =>
  defineHandler(function*(_, call) {
    const query = yield* readQuery(call)
    const byStep: { [S in AnswerStep]?: string } = {}
    const answers: Array<readonly [string, string]> = []
    // The last question takes its own answer; the answer to any other goes to the next question.
    const isAnswered = at === questions.length - 1 && query.has(questions[at]?.parameter ?? "")
    for (const { parameter, step } of questions.slice(0, isAnswered ? at + 1 : at)) {
      const text = query.get(parameter) ?? ""
      const fault = parameterFault(parameter, text)
      if (fault !== undefined) return yield* fault
      byStep[step] = text
      answers.push([parameter, text])
    }
    const progress = scriptProgress(bridge, byStep)
    if (progress._tag === "Cast") return rejection(call, progress.p, start)
    if (progress._tag === "Crossed") return crossed(progress.p, answers)
    const question = questions.find(({ step }) => step === progress.step)
    if (question === undefined) throw new Error(`${progress.step} has no resource`)
    return challenge(question, progress.p, answers)
  })
