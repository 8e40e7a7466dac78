/**
 * What the service has sent in an attempt and what was answered, as an element of a document and as
 * an entry of a page. Headers and bodies of answers are foreign text.
 */
import type { AttemptRecord } from "../../../actors/attempts/index.ts"
import { badge, emptyState, type Html, html, nothing, timeAt } from "../../formats/html/index.ts"
import { type Element, element, isoTime, optionalElement,
  printable } from "../../formats/xml/index.ts"

type Exchange = AttemptRecord["exchange"]

type HeaderFields = Exchange["requestHeaders"]

/**
 * The attempt as a reader may see it. Only some readers see what addresses have answered that only
 * the operator's rules allow: the service is no way to look into its network (protocol §5).
 */
export const shownAttempt = <Attempt extends AttemptRecord>(
  attempt: Attempt,
  seesPrivateAnswers: boolean
): Attempt => {
  const { answer, ...exchange } = attempt.exchange
  return seesPrivateAnswers || answer?.isPublic === true ? attempt : { ...attempt, exchange }
}

/* The document. */

const headerElements = (headers: HeaderFields): ReadonlyArray<Element> =>
  headers.map(([name, value]) => element("header", { name: printable(name) }, printable(value)))

const answerElement = ({ answer }: Exchange): Element | undefined =>
  answer && element(
    "answer",
    { bytes: answer.bytes, cut: answer.isCut === true ? "true" : undefined },
    ...headerElements(answer.headers),
    optionalElement("body", answer.text === undefined ? undefined : printable(answer.text))
  )

/** An attempt; `own` are the attributes of its kind. */
export const attemptElement = (
  { exchange, follows, nextAtMs, problem }: AttemptRecord,
  own: Readonly<Record<string, string | number | undefined>>
): Element =>
  element(
    "attempt",
    {
      ...own,
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

/** How a kind of attempt is shown to a person. */
export interface AttemptTexts<Attempt extends AttemptRecord> {
  /** What was attempted. */
  readonly label: (attempt: Attempt) => Html
  /** What follows, by word. */
  readonly followUps: ReadonlyMap<string, string>
  /** Why there is neither a request nor an answer to show; undefined if there may be. */
  readonly withoutExchange?: (attempt: Attempt) => string | undefined
  /** The id of the entry of this attempt, to which other pages link. */
  readonly anchor?: (attempt: Attempt) => string | undefined
}

const followUpOf = (
  { follows, nextAtMs }: AttemptRecord,
  followUps: ReadonlyMap<string, string>
): Html => {
  // A newer version may have stored another word.
  const text = followUps.get(follows) ?? follows
  if (text === "") return nothing
  return html` · next attempt ${
    nextAtMs === undefined ? nothing : html`${timeAt(nextAtMs)}, `
  }${text}`
}

const codeText = ({ code }: Exchange): string => code === undefined ? "no answer" : String(code)

const durationOf = ({ durationMs }: Exchange): Html =>
  durationMs === undefined ? nothing : html` · ${durationMs} ms`

const redirectsOf = ({ redirects = 0 }: Exchange): Html =>
  redirects === 0
    ? nothing
    : html` · after ${redirects} ${redirects === 1 ? "redirect" : "redirects"}`

/** One attempt in two lines. */
export const attemptSummary = <Attempt extends AttemptRecord>(
  attempt: Attempt,
  { followUps, label }: AttemptTexts<Attempt>
): Html => {
  const { exchange, problem } = attempt
  const result = problem === undefined
    ? badge("good", `✓ ${codeText(exchange)}`)
    : badge("bad", `✗ ${codeText(exchange)}`)
  // The badge has the code.
  const reason = problem === `answered ${exchange.code}` ? undefined : problem
  return html`<p>${result} ${label(attempt)}${
    reason === undefined ? nothing : html`: ${printable(reason)}`
  }</p>
<p class="quiet">${timeAt(exchange.beganAtMs)}${durationOf(exchange)}${redirectsOf(exchange)}${
    followUpOf(attempt, followUps)
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

const bodyOf = ({ bytes, isCut, text }: NonNullable<Exchange["answer"]>): Html => {
  if (bytes === 0) return html`<p>The answer has no body.</p>`
  if (text === undefined) return html`<p>The body is not text: ${bytes} bytes.</p>`
  return html`<p>${isCut === true ? `The start of the body, of ${bytes} bytes` : "Body"}</p>
${foreignText(text)}`
}

const answerOf = ({ answer, code }: Exchange): Html => {
  if (code === undefined) return html`<p>There was no answer.</p>`
  return answer === undefined
    ? html`<p>The answer is not shown: its address is not public.</p>`
    : html`${headersOf("Headers of the answer", answer.headers)}${bodyOf(answer)}`
}

const exchangeOf = ({ exchange }: AttemptRecord): Html =>
  html`<details><summary>Request and answer</summary>
${headersOf("Headers of the request", exchange.requestHeaders)}${answerOf(exchange)}</details>`

const entry = <Attempt extends AttemptRecord>(
  attempt: Attempt,
  texts: AttemptTexts<Attempt>
): Html => {
  const anchor = texts.anchor?.(attempt)
  const without = texts.withoutExchange?.(attempt)
  return html`<li${anchor === undefined ? nothing : html` id="${anchor}"`}>${
    attemptSummary(attempt, texts)
  }${without === undefined ? exchangeOf(attempt) : html`<p class="quiet">${without}</p>`}</li>
`
}

/** All attempts. The list does not update itself: that would close what its reader has opened. */
export const attemptList = <Attempt extends AttemptRecord>(
  attempts: ReadonlyArray<Attempt>,
  texts: AttemptTexts<Attempt>
): Html =>
  attempts.length === 0
    ? emptyState("There was no attempt yet.")
    : html`<ul class="entries">${attempts.map((attempt) => entry(attempt, texts))}</ul>`
