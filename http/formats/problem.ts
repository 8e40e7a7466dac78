/**
 * Problem documents (RFC 9457) and their answers: XML by default, JSON on request, a page for
 * browsers. `problem-types.ts` is the catalog; `pipeline/http-error.ts` maps failures to problems.
 */
import { overloadedRetrySeconds, quarantinedRetrySeconds } from "../limits.ts"
import { type Html, html, link, nothing, renderPage } from "./html/index.ts"
import { type MediaType, negotiate } from "./negotiation.ts"
import { isProblemSlug, type ProblemSlug, problemTypes } from "./problem-types.ts"
import type { ResourceView } from "./representations.ts"
import { type Element, element, isName, printable, writeDocument } from "./xml/index.ts"

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
  }
}

const noExtensions: ProblemExtensions = {}

/** One occurrence of a problem type. `detail` and `extensions` must not contain secrets. */
export const makeProblem = (
  slug: ProblemSlug,
  detail?: string,
  extensions: ProblemExtensions = noExtensions
): ProblemDocument => {
  const { status, title } = problemTypes[slug]
  return { slug, status, title, detail, extensions }
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

const toPage = (problem: ProblemDocument, path: string): string => {
  const { detail, extensions, form, slug, status, title } = problem
  const { explanation } = problemTypes[slug]
  return renderPage({
    title,
    path,
    body: html`<p class="alarm">${
      form?.isFaultShown === true
        ? "Nothing was done: the form says what is wrong."
        : detail ?? explanation
    }</p>
${
      detail === undefined || form?.isFaultShown === true ? nothing : html`<p>${explanation}</p>
`
    }<p class="quiet">${status} · ${link(`/problems/${slug}`, slug)}</p>
${
      Object.entries(extensions).map(([name, value]) =>
        html`<p><b>${name}</b> ${typeof value === "object" ? value.join(", ") : value}</p>`
      )
    }`,
    forms: form?.markup ?? html`<p>${link("/", "To the start page")}</p>`
  })
}

/** The path without its secrets, which follow `~` in a segment. */
export const withoutSecrets = (path: string): string => path.replace(/(?:~|%7e)[^/]*/gi, "~")

/** The parts of a request on which the answer depends; the path becomes its `instance`. */
interface RequestHead {
  readonly path: string
  readonly headers: { readonly get: (name: string) => string | undefined }
}

/**
 * The answer for a problem. `baseUrl`, without a slash at its end, is the start of the type's URI;
 * `ownHeaders` are those of this occurrence.
 */
export const problemReply = (
  problem: ProblemDocument,
  request: RequestHead,
  baseUrl: string,
  ownHeaders: ReadonlyArray<readonly [string, string]> = []
) => {
  const media = mediaTypeFor(request.headers.get("accept"))
  const type = `${baseUrl}/problems/${problem.slug}`
  const instance = withoutSecrets(request.path)
  const headers: Array<readonly [string, string]> = [
    ["Vary", "Accept"],
    ["Cache-Control", "no-store"],
    ...ownHeaders
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
    return { status: problem.status, headers, body: toPage(problem, request.path) }
  }
  const body = media === "text/plain"
    ? `${problem.status} ${problem.title}\n${problem.detail ?? ""}\n${type}\n`
    : writeDocument(toElement(problem, type, instance))
  return { status: problem.status, headers, body }
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
