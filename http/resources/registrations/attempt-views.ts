/**
 * The last attempts to push to a callback and to verify it: the document, the page, and their short
 * form on the page of the registration. Headers and bodies of answers are foreign text.
 */
import type { AttemptFollowUp, RegistrationAttempt } from "../../../actors/registration/index.ts"
import { badge, emptyState, type Html, html, nothing, timeAt } from "../../formats/html/index.ts"
import type { ResourceView } from "../../formats/index.ts"
import { type Element, element, isoTime, optionalElement,
  printable } from "../../formats/xml/index.ts"
import type { MailboxRef } from "../mailboxes/index.ts"
import { attemptsHref, attemptsPath, type RegistrationRef } from "./registration-access.ts"

type HeaderFields = RegistrationAttempt["exchange"]["requestHeaders"]

/** Attempts on the page of the registration. */
export const shortAttemptsMax = 5

/* The document. */

const headerElements = (headers: HeaderFields): ReadonlyArray<Element> =>
  headers.map(([name, value]) => element("header", { name: printable(name) }, printable(value)))

const answerElement = (
  { answer }: RegistrationAttempt["exchange"]
): Element | undefined =>
  answer && element(
    "answer",
    { bytes: answer.bytes, cut: answer.isCut === true ? "true" : undefined },
    ...headerElements(answer.headers),
    optionalElement("body", answer.text === undefined ? undefined : printable(answer.text))
  )

const attemptElement = ({ exchange, follows, kind, nextAtMs, problem }: RegistrationAttempt) =>
  element(
    "attempt",
    {
      kind,
      at: isoTime(exchange.beganAtMs),
      duration: exchange.durationMs,
      code: exchange.code,
      redirects: exchange.redirects,
      follows,
      next: isoTime(nextAtMs)
    },
    optionalElement("problem", problem === undefined ? undefined : printable(problem)),
    // If nothing was sent there are no headers; an empty element is a string in JSON.
    exchange.requestHeaders.length === 0
      ? undefined
      : element("request", {}, ...headerElements(exchange.requestHeaders)),
    answerElement(exchange)
  )

/* The page. */

/** What follows an attempt, for a person. */
const followUpTexts: { readonly [F in AttemptFollowUp]: string } = {
  done: "",
  schedule: "by the retry schedule",
  "retry-after": "the receiver has asked for it (Retry-After)",
  suspended: "none: the registration is suspended",
  "given-up": "none, until it is verified again"
}

const textByFollowUp: ReadonlyMap<string, string> = new Map(Object.entries(followUpTexts))

const followUpOf = ({ follows, nextAtMs }: RegistrationAttempt): Html => {
  // A newer version may have stored another word.
  const text = textByFollowUp.get(follows) ?? follows
  if (text === "") return nothing
  return html` · next attempt ${
    nextAtMs === undefined ? nothing : html`${timeAt(nextAtMs)}, `
  }${text}`
}

const codeText = ({ code }: RegistrationAttempt["exchange"]): string =>
  code === undefined ? "no answer" : String(code)

const redirectsOf = ({ redirects = 0 }: RegistrationAttempt["exchange"]): Html =>
  redirects === 0
    ? nothing
    : html` · after ${redirects} ${redirects === 1 ? "redirect" : "redirects"}`

/** One attempt in a line. */
const summaryOf = (attempt: RegistrationAttempt): Html => {
  const { exchange, kind, problem } = attempt
  const result = problem === undefined
    ? badge("good", `✓ ${codeText(exchange)}`)
    : badge("bad", `✗ ${codeText(exchange)}`)
  return html`<p>${result} ${kind}${
    problem === undefined ? nothing : html`: ${printable(problem)}`
  }</p>
<p class="quiet">${timeAt(exchange.beganAtMs)} · ${exchange.durationMs} ms${redirectsOf(exchange)}${
    followUpOf(attempt)
  }</p>
`
}

/** Foreign text, in its own direction. A browser drops the first line break of the element. */
const foreignText = (text: string): Html =>
  html`<pre dir="auto">
${printable(text)}</pre>
`

const headersOf = (title: string, headers: HeaderFields): Html =>
  headers.length === 0 ? nothing : html`<p>${title}</p>
${foreignText(headers.map(([name, value]) => `${name}: ${value}`).join("\n"))}`

const bodyOf = (answer: NonNullable<RegistrationAttempt["exchange"]["answer"]>): Html => {
  const { bytes, isCut, text } = answer
  if (bytes === 0) return html`<p>The answer has no body.</p>`
  if (text === undefined) return html`<p>The body is not text: ${bytes} bytes.</p>`
  return html`<p>${isCut === true ? `The start of the body, of ${bytes} bytes` : "Body"}</p>
${foreignText(text)}`
}

const answerOf = ({ answer, code }: RegistrationAttempt["exchange"]): Html => {
  if (code === undefined) return html`<p>There was no answer.</p>`
  return answer === undefined
    ? html`<p>The answer is not shown: its address is not public.</p>`
    : html`${headersOf("Headers of the answer", answer.headers)}${bodyOf(answer)}`
}

const entry = (attempt: RegistrationAttempt): Html =>
  html`<li>${summaryOf(attempt)}<details><summary>Request and answer</summary>
${headersOf("Headers of the request", attempt.exchange.requestHeaders)}${
    answerOf(attempt.exchange)
  }</details></li>
`

const none = emptyState("There was no attempt yet.")

/** It does not update itself: that would close what its reader has opened. */
const attemptsPage = (attempts: ReadonlyArray<RegistrationAttempt>): Html =>
  html`<p>What the service sent last to the callback, and what it answered; the newest first.</p>
${attempts.length === 0 ? none : html`<ul class="entries">${attempts.map(entry)}</ul>`}`

/** The last attempts in short, for the page of the registration. */
export const shortAttempts = (
  registration: RegistrationRef,
  attempts: ReadonlyArray<RegistrationAttempt>
): Html =>
  attempts.length === 0 ? nothing : html`<h2>Last attempts</h2>
<ul class="entries">${
    attempts.map((attempt) =>
      html`<li>${summaryOf(attempt)}</li>
`
    )
  }</ul>
<p><a href="${attemptsPath(registration)}">What was sent, and what was answered</a></p>
`

/** The last attempts of a registration, the newest first. */
export const attemptsView = (
  mailbox: MailboxRef,
  registration: RegistrationRef,
  attempts: ReadonlyArray<RegistrationAttempt>
): ResourceView => ({
  title: "Attempts of a push registration",
  tree: () =>
    element("attempts", { href: attemptsHref(registration) }, ...attempts.map(attemptElement)),
  body: () => attemptsPage(attempts),
  links: [
    { rel: "mailbox", href: mailbox.href },
    { rel: "up", href: registration.href, title: "The registration" }
  ]
})
