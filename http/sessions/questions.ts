/**
 * The stateless variant (B8–B11): the answers so far are parameters of the URI, nothing is stored.
 */
import { Effect } from "effect"
import { bridge, courseOf } from "../../actors/index.ts"
import { answerCharsMax } from "../../actors/limits.ts"
import { type Answer, type Call, type Handled, type Handler, queryOf, shown } from "../call.ts"
import { fail, type Failed } from "../failures.ts"
import type { FormFields } from "../forms.ts"
import { type Control, form } from "../html/forms.ts"
import type { Link } from "../html/layout.ts"
import { type Html, html, link } from "../html/template.ts"
import type { Route } from "../routing.ts"
import { element, isText } from "../xml.ts"
import { rejection } from "./rejection.ts"
import { answerControl, entryPath, spoken, type Step } from "./views.ts"

/** One question's resource: the parameter of its answer, and where that is sent. */
interface Question {
  readonly path: string
  readonly step: Step
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

const start: Link = { rel: "start", href: namePath, title: "From the beginning" }
const links: ReadonlyArray<Link> = [
  start,
  { rel: "alternate", href: entryPath, title: "The bridge, with a session" }
]

/** The value of one parameter; 400 when it is missing, blank, or no text. */
const parameterOf = (query: FormFields, name: string): Effect.Effect<string, Failed> => {
  const text = query.get(name) ?? ""
  if (text.trim() === "") {
    return Effect.fail(fail("malformed", `the query parameter ${name} is missing`))
  }
  if (!isText(text)) {
    return Effect.fail(fail("malformed", `${name} holds a control character`))
  }
  return text.length > answerCharsMax
    ? Effect.fail(fail("unprocessable", `${name} has more than ${answerCharsMax} characters`))
    : Effect.succeed(text)
}

const uriOf = (path: string, given: Given): string => {
  const query = given.map(([name, text]) => `${name}=${encodeURIComponent(text)}`).join("&")
  return query === "" ? path : `${path}?${query}`
}

const questionForm = ({ next, parameter }: Question, p: string, given: Given): Html =>
  form({
    action: next,
    method: "get",
    controls: [
      ...given.map(([name, value]): Control => ({ name, label: "", type: "hidden", value })),
      answerControl(parameter, p)
    ],
    submit: "Answer"
  })

const challenge = (question: Question, p: string, given: Given): Answer => {
  const { next, parameter } = question
  const begun = uriOf(next, given)
  return shown({
    title: "The bridge-keeper asks",
    tree: element(
      "challenge",
      {},
      element("p", {}, p),
      element("method", {}, "GET"),
      element("uri", { parameter }, `${begun}${given.length === 0 ? "?" : "&"}${parameter}=`)
    ),
    body: html`${spoken(p)}${questionForm(question, p, given)}`,
    links
  })
}

const crossed = (p: string, given: Given): Answer =>
  shown({
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
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<Answer, Failed> {
    const query = yield* queryOf(call)
    const answers: { [S in Step]?: string } = {}
    const given: Array<readonly [string, string]> = []
    for (const [index, { parameter, step }] of questions.entries()) {
      // Its own answer only comes to the last question: that of any other goes on to the next.
      const wanted = index < at || (at === questions.length - 1 && query.has(parameter))
      if (index > at || !wanted) continue
      const text = yield* parameterOf(query, parameter)
      answers[step] = text
      given.push([parameter, text])
    }
    const course = courseOf(bridge, answers)
    if (course._tag === "Cast") return rejection(call, course.p, start)
    if (course._tag === "Crossed") return crossed(course.p, given)
    const question = questions.find(({ step }) => step === course.step)
    if (question === undefined) throw new Error(`${course.step} has no resource`)
    return challenge(question, course.p, given)
  })

/** The three questions' resources. */
export const questionRoutes: ReadonlyArray<Route<Handler>> = questions.map(({ path }, at) => ({
  pattern: path,
  methods: { GET: { handle: (call): Handled => ask(at)(call) } }
}))
