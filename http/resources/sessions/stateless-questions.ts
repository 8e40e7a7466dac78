/**
 * The stateless variant (B8–B11): the answers so far are parameters of the URI, nothing is stored.
 */
import { Effect } from "effect"
import { answerCharsMax, bridge, scriptProgress } from "../../../actors/index.ts"
import { type Control, html, type HtmlForm, link, type PageLink,
  renderForm } from "../../formats/html/index.ts"
import type { FormFields } from "../../formats/index.ts"
import { element, isText } from "../../formats/xml/index.ts"
import { type Call, type Handled, type HandlerAnswer, type HttpError, httpError, readQuery,
  type ResourceHandler, type Route, viewAnswer, withFormRedisplay } from "../../pipeline/index.ts"
import { rejection } from "./session-rejection.ts"
import { answerControl, type AnswerStep, entryPath, spoken } from "./session-views.ts"

/** One question's resource: the parameter of its answer, and where that is sent. */
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

type Given = ReadonlyArray<readonly [parameter: string, text: string]>

const start: PageLink = { rel: "start", href: namePath, title: "From the beginning" }

const links: ReadonlyArray<PageLink> = [
  start,
  { rel: "alternate", href: entryPath, title: "The bridge, with a session" }
]

/** What is wrong with the value of one parameter: it is missing, blank, no text, or too long. */
const faultOf = (name: string, text: string): HttpError | undefined => {
  if (text.trim() === "") return httpError("malformed", `the query parameter ${name} is missing`)
  if (!isText(text)) return httpError("malformed", `${name} holds a control character`)
  return text.length > answerCharsMax
    ? httpError("unprocessable", `${name} has more than ${answerCharsMax} characters`)
    : undefined
}

const uriOf = (path: string, given: Given): string => {
  const query = given.map(([name, text]) => `${name}=${encodeURIComponent(text)}`).join("&")
  return query === "" ? path : `${path}?${query}`
}

const questionForm = ({ next, parameter }: Question, p: string, given: Given): HtmlForm => ({
  action: next,
  method: "get",
  controls: [
    ...given.map(([name, value]): Control => ({ name, label: "", type: "hidden", value })),
    answerControl(parameter, p)
  ],
  submit: "Answer"
})

/** The form that asks for the first answer which is refused, with those before it. */
const refusedForm = (fields: FormFields): HtmlForm | undefined => {
  const given: Array<readonly [string, string]> = []
  const answers: { [S in AnswerStep]?: string } = {}
  for (const question of questions) {
    const { parameter, step } = question
    const text = fields.get(parameter) ?? ""
    if (faultOf(parameter, text) !== undefined) {
      const course = scriptProgress(bridge, answers)
      return course._tag === "Asks" ? questionForm(question, course.p, given) : undefined
    }
    answers[step] = text
    given.push([parameter, text])
  }
  return undefined
}

const challenge = (question: Question, p: string, given: Given): HandlerAnswer => {
  const { next, parameter } = question
  const begun = uriOf(next, given)
  return viewAnswer({
    title: "The bridge-keeper asks",
    tree: element(
      "challenge",
      {},
      element("p", {}, p),
      element("method", {}, "GET"),
      element("uri", { parameter }, `${begun}${given.length === 0 ? "?" : "&"}${parameter}=`)
    ),
    body: html`${spoken(p)}${renderForm(questionForm(question, p, given))}`,
    links
  })
}

const crossed = (p: string, given: Given): HandlerAnswer =>
  viewAnswer({
    title: "The other side",
    tree: element(
      "challenge",
      {},
      element("p", {}, p),
      element("method", {}, "GET"),
      element("uri", {}, uriOf(hardPath, given))
    ),
    body: html`${spoken(p)}<p>You have crossed the Bridge of Death.</p>
<p>${link(namePath, "Come to the bridge again")}</p>
`,
    links
  })

const ask = (at: number) =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HttpError> {
    const query = yield* readQuery(call)
    const answers: { [S in AnswerStep]?: string } = {}
    const given: Array<readonly [string, string]> = []
    for (const [index, { parameter, step }] of questions.entries()) {
      // Its own answer only comes to the last question: that of any other goes on to the next.
      const wanted = index < at || (at === questions.length - 1 && query.has(parameter))
      if (index > at || !wanted) continue
      const text = query.get(parameter) ?? ""
      const fault = faultOf(parameter, text)
      if (fault !== undefined) return yield* fault
      answers[step] = text
      given.push([parameter, text])
    }
    const course = scriptProgress(bridge, answers)
    if (course._tag === "Cast") return rejection(call, course.p, start)
    if (course._tag === "Crossed") return crossed(course.p, given)
    const question = questions.find(({ step }) => step === course.step)
    if (question === undefined) throw new Error(`${course.step} has no resource`)
    return challenge(question, course.p, given)
  })

/** The three questions' resources. */
export const questionRoutes: ReadonlyArray<Route<ResourceHandler>> = questions.map((
  { path },
  at
) => ({
  pattern: path,
  methods: {
    GET: {
      handle: withFormRedisplay(
        (_, fields) => refusedForm(fields),
        (call): Handled => ask(at)(call)
      )
    }
  }
}))
