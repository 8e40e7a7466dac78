/**
 * Problem documents (RFC 9457) and their answers: XML by default, JSON on request, a page for
 * browsers. `problem-types.ts` is the catalog; `pipeline/http-error.ts` maps failures to problems.
 */
import { overloadedRetrySeconds, quarantinedRetrySeconds } from "../limits.ts"
import { type Html, html, link, nothing, type PageReader, renderDocsSearch, renderForm, renderPage,
  signInForm, signInHref } from "./html/index.ts"
import { type MediaType, negotiate } from "./negotiation.ts"
import { pageCaching, pageReaderOf, type ReadRequest } from "./page-reader.ts"
import { isProblemSlug, type ProblemSlug, type ProblemType, problemTypes } from "./problem-types.ts"
import type { ResourceView } from "./representations.ts"
import { type Element, element, isName, printable, withoutForbidden,
  writeDocument } from "./xml/index.ts"

/** Members of a problem beyond the standard ones; their names must be XML names. */
export type ProblemExtensions = Readonly<Record<string, string | number | ReadonlyArray<string>>>

/** One occurrence of a problem. */
export interface ProblemDocument {
  readonly slug: ProblemSlug
  readonly status: number
  readonly title: string
  readonly detail: string | undefined
  readonly extensions: ProblemExtensions
  /** For the page: the rejected form with its typed values. */
  readonly form?: {
    readonly markup: Html
    /** Whether the form shows the detail beside a field. */
    readonly isFaultShown: boolean
    /** Whether the form itself signs in. */
    readonly isSignIn?: boolean
    /** Whether somebody has changed what the form changes since its page showed it. */
    readonly isOutdated?: boolean
  }
}

type HeaderFields = ReadonlyArray<readonly [string, string]>

const noExtensions: ProblemExtensions = {}

/** One occurrence of a problem type. `detail` and `extensions` must not contain secrets. */
export const makeProblem = (
  slug: ProblemSlug,
  detail?: string,
  extensions: ProblemExtensions = noExtensions
): ProblemDocument => {
  const { status, title } = problemTypes[slug]
  // A detail may quote a request.
  const text = detail === undefined ? undefined : withoutForbidden(detail)
  return { slug, status, title, detail: text, extensions }
}

/** `Retry-After` in seconds, for the types that always have one. */
const retryAfterSeconds = (slug: ProblemSlug): number | undefined => {
  if (slug === "overloaded" || slug === "storage-unavailable") return overloadedRetrySeconds
  return slug === "quarantined" ? quarantinedRetrySeconds : undefined
}

const offered: ReadonlyArray<MediaType> = [
  "application/problem+xml",
  "application/problem+json",
  "text/html",
  "application/json",
  "application/xml",
  "text/xml",
  "text/plain"
]

/**
 * The media type of a problem's answer for an Accept field. It is XML if the field accepts none of
 * the types (RFC 9110 §15.5.7).
 */
const mediaTypeFor = (accept: string | undefined): MediaType => {
  const chosen = negotiate(accept, offered)
  if (chosen === "application/json") return "application/problem+json"
  return chosen === undefined || chosen.endsWith("xml") ? "application/problem+xml" : chosen
}

/** Whether a problem's answer for an Accept field is a page, perhaps where a resource's is not. */
export const hasProblemPage = (accept: string | undefined): boolean =>
  mediaTypeFor(accept) === "text/html"

const extensionElements = (extensions: ProblemExtensions): ReadonlyArray<Element> =>
  Object.entries(extensions).filter(([name]) => isName(name)).map(([name, value]) =>
    typeof value === "object"
      ? element(name, {}, ...value.map((item) => element("i", {}, printable(item))))
      : element(name, {}, printable(String(value)))
  )

// `printable` quotes text of a request that XML cannot contain.
const toElement = (problem: ProblemDocument, type: string, instance: string): Element =>
  element(
    "problem",
    { xmlns: "urn:ietf:rfc:7807" },
    element("type", {}, type),
    element("title", {}, problem.title),
    element("status", {}, problem.status),
    problem.detail === undefined ? undefined : element("detail", {}, printable(problem.detail)),
    element("instance", {}, printable(instance)),
    ...extensionElements(problem.extensions)
  )

/** The challenge of Basic for accounts. */
export const accountChallenge = "Basic realm=\"restante\""

/**
 * Whether a browser would ask for the name and token in a dialog of its own, before its user sees
 * the page that signs in: it shows a page, or a script of a page has sent the request.
 */
const hasSignInPage = ({ headers }: RequestHead, media: MediaType): boolean =>
  media === "text/html" || headers.get("sec-fetch-site") !== undefined ||
  headers.get("cookie") !== undefined

/** The fields for a browser, whose user signs in on a page. Bearer remains: a 401 needs one. */
const withoutDialog = (fields: HeaderFields): HeaderFields =>
  fields.filter(([, value]) => value !== accountChallenge)

/** Statuses from here on are faults of the service (RFC 9110 §15.6). */
const serverErrors = 500

/** Whether a browser gets the page again by its address: that of a sent form needs the form. */
const isRead = ({ method = "GET" }: RequestHead): boolean => method === "GET" || method === "HEAD"

/** What the user can do after a problem: sign in, submit the form again, or begin again. */
const formsAfter = (
  { form, slug }: ProblemDocument,
  reader: PageReader,
  request: RequestHead,
  { isSignIn, retrySeconds }: { readonly isSignIn: boolean; readonly retrySeconds?: number }
): Html => {
  if (isSignIn) {
    if (form === undefined) return renderForm(signInForm(reader.returnPath))
    const signIn = html`<p>${link(signInHref(reader.returnPath), "Sign in")} first.</p>
`
    return form.isSignIn === true ? form.markup : html`${signIn}${form.markup}`
  }
  return form === undefined
    ? waysOn(slug, reader, { isReadAgain: isRead(request), wait: waitText(retrySeconds) })
    : form.markup
}

/** Problems of an address: other ones may help. */
const ofAddress: ReadonlyArray<ProblemSlug> = ["not-found", "method-not-allowed"]

const minuteSeconds = 60

const hourSeconds = 3600

/** Up to so many, people read a time in the smaller unit. */
const smallUnitsMax = 90

/** Below, people need longer to try again than to wait. */
const fewSecondsMax = 5

/** When to try again, for people; in a minute where nobody knows. */
const waitText = (seconds = minuteSeconds): string => {
  if (seconds < fewSecondsMax) return "in a few seconds"
  if (seconds === minuteSeconds) return "in a minute"
  return seconds <= smallUnitsMax
    ? `in ${seconds} seconds`
    : seconds <= smallUnitsMax * minuteSeconds
    ? `in ${Math.ceil(seconds / minuteSeconds)} minutes`
    : `in ${Math.ceil(seconds / hourSeconds)} hours`
}

/** What may help the reader of a problem without a form: advice, links, and a search. */
const waysOn = (
  slug: ProblemSlug,
  { account, returnPath }: PageReader,
  { isReadAgain, wait }: { readonly isReadAgain: boolean; readonly wait: string }
): Html => {
  const isFault = problemTypes[slug].status >= serverErrors
  const isRepeatable = isFault || slug === "too-many-requests"
  const isOfAddress = ofAddress.includes(slug)
  const advice = [
    isOfAddress &&
    html`Compare the address with the one that you were given: each character counts, also what
follows a <code>~</code>.`,
    isOfAddress && account === undefined &&
    html`${link(signInHref(returnPath), "Sign in")}: some pages are there for their owner only.`,
    isRepeatable && html`${
      !isReadAgain
        ? "Go back, and send it again"
        : returnPath === undefined
        ? "Load this page again"
        : link(returnPath, "Try this page again")
    } ${wait}${isFault && "; nothing that was accepted is lost"}.`,
    html`Begin at ${link("/", "the start page")}, ${link("/mailboxes", "your mailboxes")} or ${
      link("/outgoing", "what you have sent")
    }.`,
    html`Read ${link(`/problems/${slug}`, "what this problem means")}, or search the documentation.`
  ]
  return html`<h2>What you can do</h2>
<ul>${advice.map((one) => one !== false && html`<li>${one}</li>`)}</ul>
${renderDocsSearch()}`
}

/** The text of a problem's page. What programs read is below what people do. */
const problemBody = (
  { detail, extensions, form, slug, status }: ProblemDocument,
  retrySeconds: number | undefined
): Html => {
  const { explanation, forPeople }: ProblemType = problemTypes[slug]
  const isFaultShown = form?.isFaultShown === true
  const retry = retrySeconds === undefined ? "" : ` Try again ${waitText(retrySeconds)}.`
  const alarm = isFaultShown
    ? "Nothing was done: the form says what is wrong."
    : forPeople === undefined
    ? detail ?? explanation
    : forPeople + retry
  const isDetailBelow = forPeople !== undefined && detail !== undefined && !isFaultShown
  return html`<p class="alarm">${alarm}</p>
${
    detail === undefined || isFaultShown || forPeople !== undefined || form?.isOutdated === true
      ? nothing
      : html`<p>${explanation}</p>
`
  }<p class="quiet">${status} · ${link(`/problems/${slug}`, slug)}${
    isDetailBelow && `: ${detail}`
  }</p>
${
    Object.entries(extensions).map(([name, value]) =>
      html`<p><b>${name}</b> ${typeof value === "object" ? value.join(", ") : value}</p>`
    )
  }`
}

/** The text of a page that nobody sees without an account: its form signs in. */
const signInBody = ({ detail, slug, status }: ProblemDocument): Html =>
  html`<p>This page needs an account. Sign in, and the browser comes back to it.</p>
<p class="quiet">${status} · ${link(`/problems/${slug}`, slug)}${
    detail === undefined ? "" : `: ${detail}`
  }</p>`

const toPage = (
  problem: ProblemDocument,
  request: RequestHead,
  headers: HeaderFields,
  retrySeconds?: number
): string => {
  const { form, slug, title } = problem
  const reader = pageReaderOf(request)
  const isAccountWanted = headers.some(([, value]) => value === accountChallenge)
  const isSignIn = slug === "unauthenticated" && isAccountWanted && reader.account === undefined
  return renderPage({
    title: isSignIn && (form === undefined || form.isSignIn === true)
      ? "Sign in"
      // Who fills in a form knows nothing of the document that it becomes.
      : slug === "unprocessable" && form?.isFaultShown === true
      ? "The form needs a correction"
      : form?.isOutdated === true
      ? "Somebody has changed this meanwhile"
      : title,
    path: request.path,
    reader,
    body: isSignIn && form === undefined ? signInBody(problem) : problemBody(problem, retrySeconds),
    forms: formsAfter(problem, reader, request, {
      isSignIn,
      ...retrySeconds === undefined ? {} : { retrySeconds }
    })
  })
}

/** The path without its secrets, which follow `~` in a segment. */
export const withoutSecrets = (path: string): string => path.replace(/(?:~|%7e)[^/]*/gi, "~")

/** The parts of a request on which the answer depends; the path becomes its `instance`. */
interface RequestHead extends ReadRequest {
  readonly headers: { readonly get: (name: string) => string | undefined }
}

/** What a program reads of an address without a resource; a page says the same at more length. */
const nothingHere = "no resource has this address, or its secret part is wrong: compare it with " +
  "the one that you were given"

/** The problem as programs get it. */
const forPrograms = (problem: ProblemDocument): ProblemDocument =>
  problem.slug === "not-found" && problem.detail === undefined
    ? { ...problem, detail: nothingHere }
    : problem

const replyAs = (
  media: MediaType,
  written: ProblemDocument,
  request: RequestHead,
  baseUrl: string,
  ownHeaders: HeaderFields
) => {
  const problem = media === "text/html" ? written : forPrograms(written)
  const type = `${baseUrl}/problems/${problem.slug}`
  const instance = withoutSecrets(request.path)
  const headers: Array<readonly [string, string]> = [
    ["Vary", "Accept"],
    ["Cache-Control", "no-store"],
    ...hasSignInPage(request, media) ? withoutDialog(ownHeaders) : ownHeaders
  ]
  const retry = retryAfterSeconds(problem.slug)
  if (retry !== undefined && ownHeaders.every(([name]) => name !== "Retry-After")) {
    headers.push(["Retry-After", String(retry)])
  }
  if (media === "application/problem+json") {
    const { status, title, detail, extensions } = problem
    headers.push(["Content-Type", media])
    const body = `${JSON.stringify({ ...extensions, type, title, status, detail, instance })}\n`
    return { status, headers, body }
  }
  headers.push(["Content-Type", `${media}; charset=utf-8`])
  if (media === "text/html") {
    const cached = pageCaching(headers, pageReaderOf(request))
    const [, wait] = headers.find(([name]) => name === "Retry-After") ?? []
    const body = toPage(problem, request, ownHeaders, wait === undefined ? wait : Number(wait))
    return { status: problem.status, headers: cached, body }
  }
  const body = media === "text/plain"
    ? `${problem.status} ${problem.title}\n${problem.detail ?? ""}\n${type}\n`
    : writeDocument(toElement(problem, type, instance))
  return { status: problem.status, headers, body }
}

/**
 * The answer for a problem. `baseUrl`, without a slash at its end, is the start of the type's URI;
 * `ownHeaders` are those of this occurrence.
 */
export const problemReply = (
  problem: ProblemDocument,
  request: RequestHead,
  baseUrl: string,
  ownHeaders: HeaderFields = []
) => replyAs(mediaTypeFor(request.headers.get("accept")), problem, request, baseUrl, ownHeaders)

/** The same where no page may be: a browser gets text. */
export const pagelessProblemReply = (
  problem: ProblemDocument,
  request: RequestHead,
  baseUrl: string
) => {
  const media = mediaTypeFor(request.headers.get("accept"))
  return replyAs(media === "text/html" ? "text/plain" : media, problem, request, baseUrl, [])
}

/** The view of `/problems/<slug>`; undefined for an unknown slug. */
export const problemTypeView = (slug: string): ResourceView | undefined => {
  if (!isProblemSlug(slug)) return undefined
  const { status, title, explanation } = problemTypes[slug]
  return {
    title,
    tree: element(
      "problem-type",
      {},
      element("status", {}, status),
      element("title", {}, title),
      element("explanation", {}, explanation)
    ),
    body: html`<p>${explanation}</p><p class="quiet">Status ${status}</p>`
  }
}
