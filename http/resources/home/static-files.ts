/** The files that never change while the service runs. */
import { Effect } from "effect"
import { liveScript, liveScriptPath, pageScript, stylesheet } from "../../formats/html/index.ts"
import { contentTypeOf, entityTag } from "../../formats/index.ts"
import { fixedMaxAgeSeconds } from "../../limits.ts"
import { type Call, emptyAnswer, evaluatePreconditions, type HandlerAnswer, type HandlerFailure,
  httpError, type ResourceHandler, type Route } from "../../pipeline/index.ts"
import type { ReplyHeaders } from "../../wire/index.ts"

/** Paths that robots must not read: their URIs may be capabilities or name private resources. */
const hiddenFromRobots = [
  "/content/",
  "/mailboxes",
  "/outgoing",
  "/cabinets",
  "/sessions",
  "/queries",
  "/accounts",
  "/cluster",
  "/archive"
]

const robots = `User-agent: *\n${hiddenFromRobots.map((path) => `Disallow: ${path}\n`).join("")}`

const icon = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 16 16\">" +
  "<rect x=\"1\" y=\"3\" width=\"14\" height=\"10\" rx=\"1\" fill=\"#8a2b1a\"/>" +
  "<path d=\"M1.5 4 8 9l6.5-5\" fill=\"none\" stroke=\"#fbf9f4\" stroke-width=\"1.4\"/></svg>\n"

const file = (
  pattern: string,
  contentType: string,
  text: string,
  cacheControl = `public, max-age=${fixedMaxAgeSeconds}`
): Route<ResourceHandler> => {
  const bytes = Buffer.from(text)
  const etag = entityTag(bytes)
  const validators: ReplyHeaders = [["ETag", etag], ["Cache-Control", cacheControl]]
  const handle = ({ request }: Call): Effect.Effect<HandlerAnswer, HandlerFailure> => {
    switch (evaluatePreconditions(request.method, request.headers, { exists: true, etag })) {
      case "failed":
        return Effect.fail(httpError("precondition-failed"))
      case "not-modified":
        return Effect.succeed(emptyAnswer(304, validators))
      case "proceed":
        return Effect.succeed({
          _tag: "Plain",
          status: 200,
          headers: [["Content-Type", contentType], ...validators],
          body: bytes
        })
    }
  }
  return { pattern, methods: { GET: { handle } } }
}

/** A script, which changes with the version of the service. */
const script = (pattern: string, text: string): Route<ResourceHandler> =>
  file(pattern, contentTypeOf("text/javascript"), text, "no-cache")

/** The stylesheet and the scripts of all pages and of live ones, the robots' file, and the icon. */
export const fileRoutes: ReadonlyArray<Route<ResourceHandler>> = [
  file("/style.css", contentTypeOf("text/css"), stylesheet),
  script("/page.js", pageScript),
  script(liveScriptPath, liveScript),
  file("/robots.txt", contentTypeOf("text/plain"), robots),
  file("/favicon.ico", "image/svg+xml", icon)
]
