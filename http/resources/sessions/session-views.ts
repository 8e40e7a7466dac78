/**
 * The documents of Area B: challenges, recorded answers, rejections, the listing, and their pages.
 */
import type { ListedResource } from "../../newest-first-index.ts"
import { answerCharsMax, bridge } from "../../../actors/index.ts"
import type { RecordedAnswer, SessionView } from "../../../actors/session/index.ts"
import { type Control, emptyState, type Html, html, type HtmlForm, link, namedLink, nothing,
  type PageLink, renderForm, renderPage, statusBadge, type StatusBadges, table,
  timeAt } from "../../formats/html/index.ts"
import { contentTypeOf, type MediaType, negotiate, pageCaching, pageReaderOf, type ResourceView,
  standardTypes } from "../../formats/index.ts"
import { type Element, element, isoTime, writeDocument } from "../../formats/xml/index.ts"
import type { Call, HandlerAnswer } from "../../pipeline/index.ts"
import type { HttpRequest, ReplyHeaders } from "../../wire/index.ts"

/** A step of the script, which also names the resource of its answer. */
export type AnswerStep = SessionView["recorded"][number]

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

const continueControl: Control = { name: "continue", label: "", type: "hidden", value: "true" }

/** The words of the bridge-keeper on a page. */
export const quoted = (p: string): Html =>
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
  body: html`${quoted(bridge.entry)}${
    renderForm({
      action: collectionPath,
      controls: [continueControl],
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
export const isOver = (session: SessionView): boolean =>
  session.status === "crossed" || session.status === "cast"

const challenge = (id: string, session: SessionView): Element => {
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

const recordedList = (id: string, { recorded }: SessionView): Html =>
  recorded.length === 0
    ? nothing
    : html`<h2>Answered</h2>
<ul>${recorded.map((step) => html`<li>${link(answerPath(id, step), stepTitles[step])}</li>`)}</ul>
`

/** The form that answers a question of a session. */
export const questionForm = (action: string, question: string): HtmlForm => ({
  action,
  controls: [answerControl("answer", question), continueControl],
  submit: "Answer"
})

const sessionBody = (id: string, session: SessionView): Html => {
  const ending = endings[session.status]
  return html`${quoted(session.p)}${
    ending === undefined
      ? renderForm(questionForm(`${sessionPath(id)}/${session.status}`, session.p))
      : html`<p>${ending}</p>
<p>${link(entryPath, "Come to the bridge again")}</p>
`
  }${recordedList(id, session)}`
}

const sessionTitle = ({ status }: SessionView): string => {
  if (status === "crossed") return "The other side"
  return status === "cast" ? "The Gorge of Eternal Peril" : "The bridge-keeper asks"
}

/** The current challenge of a session (B4). */
export const sessionView = (id: string, session: SessionView): ResourceView => ({
  title: sessionTitle(session),
  tree: challenge(id, session),
  body: () => sessionBody(id, session),
  links: [collectionLink, entryLink]
})

/**
 * A recorded answer as it was PUT: its text, or its href. The text that the href led to is not
 * shown: it was read from the service's network, which may show it more than the reader.
 */
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
      html`${
        href === undefined ? quoted(text) : html`<p>The answer is what ${namedLink(href)} said.</p>
`
      }${
        readOnly ? nothing : renderForm({
          action: answerPath(id, step),
          legend: "Change this answer",
          controls: [answerControl("answer", "Another answer"), continueControl],
          submit: "Change"
        })
      }`,
    links: [{ rel: "up", href: sessionPath(id), title: "The session" }]
  }
}

const badges: StatusBadges<SessionView["status"]> = {
  crossed: ["good", "✓ crossed"],
  cast: ["bad", "✗ cast into the gorge"],
  name: ["wait", "○ asked for the name"],
  quest: ["wait", "○ asked for the quest"],
  hard_question: ["wait", "○ at the last question"]
}

/** The listing (B3). */
export const listingView = (
  listed: ReadonlyArray<ListedResource<SessionView>>,
  next: ReadonlyArray<PageLink>
): ResourceView => ({
  title: "Sessions",
  tree: element(
    "sessions",
    {},
    ...listed.map(({ id, view: session }) =>
      element("session", {
        href: sessionPath(id),
        status: session.status,
        started: isoTime(session.startedAtMs)
      })
    )
  ),
  body: () =>
    listed.length === 0
      ? emptyState("Nobody has come to the bridge yet.", html`Be ${link(entryPath, "the first")}.`)
      : table(
        "Sessions",
        ["Started", "Status"],
        listed.map(({ id, view: session }) =>
          html`<tr><td><a href="${sessionPath(id)}">${timeAt(session.startedAtMs)}</a></td><td>${
            statusBadge(badges, session.status)
          }</td></tr>
`
        )
      ),
  links: [entryLink, ...next]
})

/* The answers that the protocol gives as 406 with the element `p` instead of a problem. */

const rejectionBody = (
  type: MediaType,
  p: string,
  back: PageLink,
  request: HttpRequest
): string => {
  switch (type) {
    case "application/json":
      return `${JSON.stringify({ p })}\n`
    case "text/plain":
      return `${p}\n`
    case "text/html":
      return renderPage({
        title: "Not accepted",
        path: request.path,
        reader: pageReaderOf(request),
        body: quoted(p),
        links: [back]
      })
    default:
      return writeDocument(element("p", {}, p))
  }
}

/** 406 with the words of the bridge-keeper; `back` is the link on its page (protocol §2). */
export const rejection = (call: Call, p: string, back: PageLink): HandlerAnswer => {
  const { request } = call
  const type = negotiate(request.headers.get("accept"), standardTypes) ?? "application/xml"
  const headers: ReplyHeaders = [
    ["Content-Type", contentTypeOf(type)],
    ["Vary", "Accept"],
    ["Cache-Control", "no-store"]
  ]
  return {
    _tag: "Plain",
    status: 406,
    headers: type === "text/html" ? pageCaching(headers, pageReaderOf(request)) : headers,
    body: rejectionBody(type, p, back, request)
  }
}
