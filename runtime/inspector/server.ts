/**
 * The server of the inspector: pages, and the same as JSON below `/api`. It only reads, answers
 * only requests that name this machine (so that no page of another site reaches it by DNS
 * rebinding), and lets a page load nothing from elsewhere.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { isActorId } from "../actor/index.ts"
import { icon, script, style } from "./assets.ts"
import { actorDocument, type InspectorSource, kindDocument, messagesDocument, type MomentQuery,
  nodeDocument, NotInspectable } from "./documents.ts"
import { actorPage, documentOf, faultPage, kindPage, messagesPage, nodePage,
  type Page } from "./pages.ts"

/** An answer before it is sent. */
interface Answer {
  readonly status: number
  readonly type: string
  readonly body: string
  readonly headers?: Readonly<Record<string, string>>
}

/** A document, and the page that is made of it. */
interface Shown {
  readonly document: object
  readonly page: () => Page
}

const securityHeaders = {
  "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; " +
    "img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; " +
    "frame-ancestors 'none'",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "cache-control": "no-store"
}

const loopbackNames = ["localhost", "127.0.0.1", "[::1]"]

const htmlType = "text/html; charset=utf-8"
const jsonType = "application/json"
const textType = "text/plain; charset=utf-8"

/** The name in a Host header, without its port; undefined when it is none. */
const hostNameOf = (header: string | undefined): string | undefined =>
  /^(\[[\da-f:.]+\]|[^:/\s]+)(?::\d+)?$/i.exec(header ?? "")?.[1]?.toLowerCase()

const assets: Readonly<Record<string, Answer>> = {
  "/style.css": { status: 200, type: "text/css; charset=utf-8", body: style },
  "/script.js": { status: 200, type: "text/javascript; charset=utf-8", body: script },
  "/icon.svg": { status: 200, type: "image/svg+xml", body: icon }
}

const numberIn = (query: URLSearchParams, name: string): number | undefined => {
  const text = query.get(name)
  if (text === null) return undefined
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new NotInspectable(`${name}=${text} is no number: give a whole one`)
}

const momentIn = (query: URLSearchParams): MomentQuery => {
  const commit = numberIn(query, "commit")
  const item = numberIn(query, "item")
  return { ...commit === undefined ? {} : { commit }, ...item === undefined ? {} : { item } }
}

const actorPath = /^\/actors\/([a-z-]+)(?:\/([\w=-]+))?$/

/** What is at a path; undefined when nothing is. */
const shownAt = async (
  source: InspectorSource,
  path: string,
  query: URLSearchParams
): Promise<Shown | undefined> => {
  if (path === "/") {
    const document = nodeDocument(source)
    return { document, page: () => nodePage(document) }
  }
  if (path === "/messages") {
    const document = messagesDocument(source, query.get("kind") ?? undefined)
    return { document, page: () => messagesPage(document) }
  }
  const [, kind, id] = actorPath.exec(path) ?? []
  if (kind === undefined) return undefined
  if (id === undefined) {
    const document = await kindDocument(source, kind, query.get("after") ?? undefined)
    return { document, page: () => kindPage(document) }
  }
  const document = await actorDocument(source, kind, id, momentIn(query))
  return { document, page: () => actorPage(document) }
}

const pageAnswer = (status: number, page: Page): Answer => ({
  status,
  type: htmlType,
  body: documentOf(page)
})

const jsonAnswer = (status: number, value: object): Answer => ({
  status,
  type: jsonType,
  body: `${JSON.stringify(value)}\n`
})

const refusal = (status: number, error: string, isApi: boolean): Answer =>
  isApi
    ? jsonAnswer(status, { error })
    : pageAnswer(status, faultPage(status === 404 ? "Not here" : "It cannot be shown", error))

/** Why a document could not be made. */
const failure = (cause: unknown, isApi: boolean): Answer => {
  if (cause instanceof NotInspectable) return refusal(404, cause.message, isApi)
  const reason = cause instanceof Error ? cause.message || cause.name : String(cause)
  return refusal(503, `the node or its store did not answer: ${reason}. Try again`, isApi)
}

const answerTo = async (source: InspectorSource, url: string): Promise<Answer> => {
  const { pathname, searchParams } = new URL(url, "http://localhost")
  const asset = assets[pathname]
  if (asset !== undefined) return asset
  const isApi = /^\/api(\/|$)/.test(pathname)
  const path = (isApi ? pathname.slice("/api".length) : pathname) || "/"
  // The form of a kind opens an actor by its id.
  const wanted = searchParams.get("id")?.trim()
  if (!isApi && wanted !== undefined && isActorId(wanted) && actorPath.test(path)) {
    return { status: 303, type: textType, body: "", headers: { location: `${path}/${wanted}` } }
  }
  try {
    const shown = await shownAt(source, path, searchParams)
    if (shown === undefined) {
      return refusal(404, `nothing is at ${path}: begin with the list of all actors`, isApi)
    }
    return isApi ? jsonAnswer(200, shown.document) : pageAnswer(200, shown.page())
  } catch (cause) {
    return failure(cause, isApi)
  }
}

const send = (response: ServerResponse, answer: Answer, hasBody: boolean): void => {
  const { body, headers, status, type } = answer
  response.writeHead(status, {
    ...securityHeaders,
    "content-type": type,
    "content-length": Buffer.byteLength(body),
    ...headers
  })
  response.end(hasBody ? body : "")
}

/** The server, which does not listen yet; `hosts` are more names that a request may have. */
export const inspectorServer = (source: InspectorSource, hosts: ReadonlyArray<string>): Server => {
  const names = new Set([...loopbackNames, ...hosts.map((one) => one.toLowerCase())])
  const answer = async ({ headers, method, url = "/" }: IncomingMessage): Promise<Answer> => {
    const name = hostNameOf(headers.host)
    if (name === undefined || !names.has(name)) {
      const body = "The inspector answers only requests for this machine: open it by localhost, " +
        "or add the name to its option `hosts`.\n"
      return { status: 403, type: textType, body }
    }
    if (method !== "GET" && method !== "HEAD") {
      const body = "The inspector changes nothing: use GET.\n"
      return { status: 405, type: textType, body, headers: { allow: "GET, HEAD" } }
    }
    // A target that is no path.
    if (!url.startsWith("/") || url.startsWith("//")) return refusal(404, "no path", false)
    return answerTo(source, url)
  }
  return createServer((request, response) => {
    void answer(request).catch((cause: unknown) => failure(cause, false))
      .then((found) => send(response, found, request.method !== "HEAD"))
  })
}
