/** What the resources of Area B show: challenges, recorded answers, the listing, their pages. */
import { answerCharsMax, bridge } from "../../../actors/index.ts"
import type { RecordedAnswer, SessionView as Session } from "../../../actors/session/index.ts"
import { badge, type Control, emptyState, type Html, html, type HtmlForm, link, nothing,
  type PageLink, renderForm, table, time } from "../../formats/html/index.ts"
import type { ResourceView } from "../../formats/index.ts"
import { type Element, element } from "../../formats/xml/index.ts"

/** A step of the script is the name of its answer's resource, too. */
export type AnswerStep = Session["recorded"][number]

export const entryPath = "/cross_bridge"

export const collectionPath = "/sessions"

export const sessionPath = (id: string): string => `${collectionPath}/${id}`

export const answerPath = (id: string, step: AnswerStep): string => `${sessionPath(id)}/${step}`

export const entryLink: PageLink = { rel: "start", href: entryPath, title: "The bridge" }

const collectionLink: PageLink = { rel: "collection", href: collectionPath, title: "All sessions" }

export const stepTitles: { readonly [S in AnswerStep]: string } = {
  name: "The first answer",
  quest: "The second answer",
  hard_question: "The last answer"
}

/** The field of every question's form. */
export const answerControl = (name: string, label: string): Control => ({
  name,
  label,
  required: true,
  maxlength: answerCharsMax,
  hint: "Your answer, in words."
})

const proceeding: Control = { name: "continue", label: "", type: "hidden", value: "true" }

/** What is said, as a page shows it. */
export const spoken = (p: string): Html =>
  html`<blockquote><p>${p}</p></blockquote>
`

/** The entry page's challenge (B1). */
export const entryView: ResourceView = {
  title: "The Bridge of Death",
  tree: element(
    "challenge",
    {},
    element("p", {}, bridge.entry),
    element("method", {}, "POST"),
    element("uri", {}, collectionPath)
  ),
  body: html`${spoken(bridge.entry)}${
    renderForm({
      action: collectionPath,
      controls: [proceeding],
      submit: "Ask me the questions, bridge-keeper. I am not afraid."
    })
  }`,
  links: [
    collectionLink,
    {
      rel: "alternate",
      href: "/questions/name_question",
      title: "The same questions without a session"
    }
  ]
}

/** Whether a session has ended, so that its answers are read-only. */
export const isOver = (session: Session): boolean =>
  session.status === "crossed" || session.status === "cast"

const challenge = (id: string, session: Session): Element => {
  const { p, recorded, status } = session
  const path = sessionPath(id)
  return element(
    "challenge",
    { session: path },
    element("p", {}, p),
    element("method", {}, isOver(session) ? "GET" : "PUT"),
    element("uri", {}, isOver(session) ? path : `${path}/${status}`),
    ...recorded.map((step) => element(step, { href: answerPath(id, step) }))
  )
}

const endings: { readonly [status: string]: string } = {
  crossed: "You have crossed the Bridge of Death.",
  cast: "You were cast into the Gorge of Eternal Peril."
}

const recordedList = (id: string, { recorded }: Session): Html =>
  recorded.length === 0
    ? nothing
    : html`<h2>Answered</h2>
<ul>${recorded.map((step) => html`<li>${link(answerPath(id, step), stepTitles[step])}</li>`)}</ul>
`

/** The form of a session's question at its path; `asked` is the question's own words. */
export const questionForm = (action: string, asked: string): HtmlForm => ({
  action,
  controls: [answerControl("answer", asked), proceeding],
  submit: "Answer"
})

const sessionBody = (id: string, session: Session): Html => {
  const ending = endings[session.status]
  return html`${spoken(session.p)}${
    ending === undefined
      ? renderForm(questionForm(`${sessionPath(id)}/${session.status}`, session.p))
      : html`<p>${ending}</p>
<p>${link(entryPath, "Come to the bridge again")}</p>
`
  }${recordedList(id, session)}`
}

const sessionTitle = ({ status }: Session): string => {
  if (status === "crossed") return "The other side"
  return status === "cast" ? "The Gorge of Eternal Peril" : "The bridge-keeper asks"
}

/** The current challenge of a session (B4). */
export const sessionView = (id: string, session: Session): ResourceView => ({
  title: sessionTitle(session),
  tree: challenge(id, session),
  body: () => sessionBody(id, session),
  links: [collectionLink, entryLink]
})

/** A recorded answer: what was PUT, an href kept as it came. */
export const answerView = (
  id: string,
  step: AnswerStep,
  answer: RecordedAnswer,
  readOnly: boolean
): ResourceView => {
  const { href, text } = answer
  return {
    title: stepTitles[step],
    tree: href === undefined
      ? element("answer", {}, text)
      : element("answer", { href }),
    body: () =>
      html`${spoken(text)}${
        href === undefined ? nothing : html`<p class="quiet">Read from ${link(href)}</p>
`
      }${
        readOnly ? nothing : renderForm({
          action: answerPath(id, step),
          legend: "Change this answer",
          controls: [answerControl("answer", "Another answer"), proceeding],
          submit: "Change"
        })
      }`,
    links: [{ rel: "up", href: sessionPath(id), title: "The session" }]
  }
}

const standings: { readonly [status: string]: Html } = {
  crossed: badge("good", "✓ crossed"),
  cast: badge("bad", "✗ cast into the gorge"),
  name: badge("wait", "○ asked for the name"),
  quest: badge("wait", "○ asked for the quest"),
  hard_question: badge("wait", "○ at the last question")
}

const standing = ({ status }: Session): Html => standings[status] ?? html`${status}`

/** One line of the listing. */
export interface ListedSessionRow {
  readonly id: string
  readonly session: Session
}

const startedOf = (session: Session): string => new Date(session.startedAtMs).toISOString()

/** The listing (B3). */
export const listingView = (
  listed: ReadonlyArray<ListedSessionRow>,
  next: ReadonlyArray<PageLink>
): ResourceView => ({
  title: "Sessions",
  tree: element(
    "sessions",
    {},
    ...listed.map(({ id, session }) =>
      element("session", {
        href: sessionPath(id),
        status: session.status,
        started: startedOf(session)
      })
    )
  ),
  body: () =>
    listed.length === 0
      ? emptyState("Nobody has come to the bridge yet.", html`Be ${link(entryPath, "the first")}.`)
      : table(
        "Sessions",
        ["Started", "Stands at"],
        listed.map(({ id, session }) =>
          html`<tr><td><a href="${sessionPath(id)}">${time(startedOf(session))}</a></td><td>${
            standing(session)
          }</td></tr>
`
        )
      ),
  links: [entryLink, ...next]
})
