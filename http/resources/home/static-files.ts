/** The files that never change while the service runs, and `/openapi.json`. */
import { Effect } from "effect"
import { chartsScript, chipsScript, iconPath, iconsLicense, interFont, interLicense, listScript,
  liveScript, normalizeLicense, notifyScript, pageScript, searchScript, serviceWorker, stylesheet,
  typefaceName } from "../../formats/html/index.ts"
import { contentTypeOf, mediaTypeOf, negotiate } from "../../formats/index.ts"
import { type DocumentPart, type Schema, text as textSchema,
  withFirstTypes } from "../../formats/openapi/index.ts"
import { hashedMaxAgeSeconds, securityTextAgeMaxMs, securityTextValidMs } from "../../limits.ts"
import { httpError, type HttpSettings, readQuery } from "../../pipeline/index.ts"
import type { ResourceDefinition, ResourceOperation } from "../../resource.ts"
import { type ReplyHeaders, scriptPolicy } from "../../wire/index.ts"
import { answerFile, cacheable, fileOperation, type FixedFile, makeFile } from "./fixed-file.ts"
import { icon, largeIcon, largeIconSize } from "./icons.ts"

/** A file that is always the same. */
const fixedOperation = (
  id: string,
  summary: string,
  schema: Schema,
  contentType: string,
  content: string | Buffer,
  headers: ReplyHeaders
): ResourceOperation => {
  const file = makeFile(contentType, content, headers)
  return {
    ...fileOperation(id, summary, { [mediaTypeOf(contentType)]: schema }),
    handle: () => (call) => answerFile(call, file)
  }
}

/** A text that browsers may keep. */
const textOperation = (
  id: string,
  summary: string,
  contentType: string,
  text: string
): ResourceOperation => fixedOperation(id, summary, textSchema, contentType, text, cacheable)

/** A script; browsers check at each page that they have the one of this version. */
const scriptOperation = (id: string, summary: string, text: string): ResourceOperation =>
  fixedOperation(id, summary, textSchema, contentTypeOf("text/javascript"), text, [
    ["Cache-Control", "no-cache"],
    ["Content-Security-Policy", scriptPolicy]
  ])

/** Paths that robots must not read: their URIs may be capabilities or name private resources. */
const hiddenFromRobots = [
  "/content/",
  "/mailboxes",
  "/outgoing",
  "/cabinets",
  "/sessions",
  "/queries",
  "/accounts",
  "/admin",
  "/audit",
  "/blocks",
  "/reports",
  "/limits",
  "/settings",
  "/cluster",
  "/archive"
]

const robots = `User-agent: *\n${hiddenFromRobots.map((path) => `Disallow: ${path}\n`).join("")}`

/** How browsers install the pages, so that they open like an application. */
const manifest = {
  id: "/",
  name: "restante",
  short_name: "restante",
  description: "Mailboxes and their notifications",
  start_url: "/mailboxes",
  scope: "/",
  display: "standalone",
  background_color: "#f7f6f3",
  theme_color: "#8a2b1a",
  icons: [
    { src: "/favicon.ico", type: "image/svg+xml", sizes: "any" },
    ...["any", "maskable"].map((purpose) => ({
      src: iconPath,
      type: "image/png",
      sizes: `${largeIconSize}x${largeIconSize}`,
      purpose
    }))
  ]
}

const manifestSchema: Schema = {
  type: "object",
  properties: { name: { type: "string" }, start_url: { type: "string" } },
  required: ["name", "start_url"],
  additionalProperties: true,
  externalDocs: { url: "https://www.w3.org/TR/appmanifest/" }
}

/** The name of the typeface changes with its content, so browsers keep it. */
const immutable = [
  ["Cache-Control", `public, max-age=${hashedMaxAgeSeconds}, immutable`]
] as const

const typeface = makeFile("font/woff2", interFont, immutable)

const typefaceOperation: ResourceOperation = {
  ...fileOperation("getTypeface", "Reads the typeface of all pages", {
    "font/woff2": { type: "string", format: "binary" }
  }),
  isNeverGone: true,
  handle: () => (call) => {
    const isNamed = call.parameters.get("file") === typefaceName &&
      call.parameters.secret("file") === undefined
    return isNamed ? answerFile(call, typeface) : Effect.fail(httpError("not-found"))
  }
}

/** The stylesheet, the typeface, the scripts, the robots' file, the icons, and the manifest. */
export const fileOperations: ResourceDefinition["operations"] = {
  "GET /style.css": textOperation(
    "getStyle",
    "Reads the stylesheet of all pages",
    contentTypeOf("text/css"),
    stylesheet
  ),
  "GET /fonts/{file}": typefaceOperation,
  "GET /fonts/OFL.txt": textOperation(
    "getTypefaceLicense",
    "Reads the licenses of the typeface, of the icons and of the stylesheet's base",
    contentTypeOf("text/plain"),
    `${interLicense}\nThe icons of the pages are of Lucide:\n\n${iconsLicense}\n` +
      `The base of the stylesheet is modern-normalize:\n\n${normalizeLicense}`
  ),
  "GET /page.js": scriptOperation("getPageScript", "Reads the script of all pages", pageScript),
  "GET /live.js": scriptOperation("getLiveScript", "Reads the script of live pages", liveScript),
  "GET /charts.js": scriptOperation(
    "getChartsScript",
    "Reads the script of charts",
    chartsScript
  ),
  "GET /chips.js": scriptOperation("getChipsScript", "Reads the script of addresses", chipsScript),
  "GET /list.js": scriptOperation("getListScript", "Reads the script of lists", listScript),
  "GET /notify.js": scriptOperation(
    "getNotifyScript",
    "Reads the script that registers a browser",
    notifyScript
  ),
  "GET /search.js": scriptOperation(
    "getSearchScript",
    "Reads the script of a search",
    searchScript
  ),
  "GET /service-worker.js": scriptOperation(
    "getServiceWorker",
    "Reads the script that a browser runs for a push",
    serviceWorker
  ),
  "GET /manifest.webmanifest": fixedOperation(
    "getManifest",
    "Reads how a browser installs the pages",
    manifestSchema,
    "application/manifest+json",
    `${JSON.stringify(manifest)}\n`,
    cacheable
  ),
  "GET /icon.png": fixedOperation(
    "getLargeIcon",
    "Reads the icon of the installed pages and of their notifications",
    { type: "string", format: "binary" },
    "image/png",
    largeIcon,
    cacheable
  ),
  "GET /robots.txt": textOperation(
    "getRobots",
    "Reads the paths that robots must not read",
    contentTypeOf("text/plain"),
    robots
  ),
  "GET /favicon.ico": textOperation(
    "getIcon",
    "Reads the icon of all pages",
    "image/svg+xml",
    icon
  )
}

/** The file by which those who find a weakness reach the operator (RFC 9116). */
const securityText = (contact: string, baseUrl: string, nowMs: number): string =>
  `Contact: ${contact}\n` +
  `Expires: ${new Date(nowMs + securityTextValidMs).toISOString()}\n` +
  "Preferred-Languages: en\n" +
  `Canonical: ${baseUrl}/.well-known/security.txt\n`

/** `/.well-known/security.txt`; 404 where the operator names no contact. */
export const securityOperation: ResourceOperation = {
  ...fileOperation(
    "getSecurityText",
    "Reads the contact for those who find a weakness",
    { "text/plain": textSchema }
  ),
  problems: ["not-found", "precondition-failed"],
  handle: (service) => {
    let file: FixedFile | undefined
    let madeForMs = 0
    const current = (contact: string): FixedFile => {
      const nowMs = service.nowMs()
      // All nodes make the same file.
      const beganMs = nowMs - nowMs % securityTextAgeMaxMs
      if (file !== undefined && beganMs === madeForMs) return file
      const text = securityText(contact, service.settings.baseUrl, beganMs)
      madeForMs = beganMs
      return file = makeFile(contentTypeOf("text/plain"), text, cacheable)
    }
    return (call) => {
      const { securityContact } = service.settings
      return securityContact === undefined
        ? Effect.fail(httpError("not-found"))
        : answerFile(call, current(securityContact))
    }
  }
}

const openapi: Schema = {
  type: "object",
  properties: {
    openapi: { type: "string", pattern: "^3\\.1\\." },
    info: { type: "object", additionalProperties: true },
    paths: { type: "object", additionalProperties: true }
  },
  required: ["openapi", "info", "paths"],
  additionalProperties: true,
  externalDocs: { url: "https://spec.openapis.org/oas/v3.1.0" }
}

const openapiTypes = ["application/json", "application/vnd.oai.openapi+json"]

const openapiHeaders = [["Vary", "Accept"], ...cacheable] as const

/** `/openapi.json`; the document is made on the first request for it. */
export const openapiOperation = (
  document: (settings: HttpSettings) => DocumentPart
): ResourceOperation => ({
  ...fileOperation(
    "getOpenapi",
    "Reads this document",
    Object.fromEntries(openapiTypes.map((type) => [type, openapi])),
    ["Vary"]
  ),
  query: {
    media: {
      description: "With `json` every body has one type only, JSON where there is JSON, and every "
        + "value one type: for generators of clients that know few types.",
      schema: { type: "string", enum: ["json"] }
    }
  },
  problems: ["not-acceptable", "precondition-failed"],
  handle: ({ settings }) => {
    const files = new Map<string, FixedFile>()
    const fileOf = (type: string, media: string | undefined): FixedFile => {
      const key = `${type} ${media}`
      const known = files.get(key)
      if (known !== undefined) return known
      const whole = document(settings)
      const text = JSON.stringify(media === undefined ? whole : withFirstTypes(whole))
      const file = makeFile(type, `${text}\n`, openapiHeaders)
      files.set(key, file)
      return file
    }
    return Effect.fnUntraced(function*(call) {
      const media = (yield* readQuery(call)).get("media")
      if (media !== undefined && media !== "json") {
        return yield* httpError("malformed", "media must be json, or absent for all types")
      }
      const available = openapiTypes
      const type = negotiate(call.request.headers.get("accept"), available)
      if (type === undefined) {
        const detail = `there is ${available.join(", ")}`
        return yield* httpError("not-acceptable", detail, [], { available })
      }
      return yield* answerFile(call, fileOf(type, media))
    })
  }
})
