/**
 * Checks requests and answers against the service's OpenAPI document: statuses, types, header
 * fields, and every JSON and XML body against its schema.
 */
import addFormats from "ajv-formats"
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js"
import type { DocumentPart } from "../../http/formats/openapi/document.ts"
import { parseText, toJson } from "../../http/formats/xml/index.ts"
import { compileRoutes, type Route } from "../../http/pipeline/routing.ts"

/** A part of the document; the meta schema defines its properties. */
interface Node {
  readonly [key: string]: Node
}

/** One operation of the document. */
export interface Operation {
  /** `GET /mailboxes/{mailbox}`. */
  readonly key: string
  /** Its JSON pointer in the document. */
  readonly pointer: string
  readonly node: Node
}

/** A request and its answer. */
export interface Exchanged {
  readonly method: string
  readonly path: string
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

const escaped = (name: string): string => name.replaceAll("~", "~0").replaceAll("/", "~1")
const unescaped = (name: string): string => name.replaceAll("~1", "/").replaceAll("~0", "~")

const mediaOf = (contentType: string): string =>
  (contentType.split(";")[0] ?? "").trim().toLowerCase()

const isJson = (media: string): boolean => /[/+]json$/.test(media)
const isXml = (media: string): boolean =>
  /^(application|text)\/xml(\+rss)?$|problem\+xml$/.test(media)

/** Header fields of every answer. */
const commonHeaders = { "x-content-type-options": "nosniff", "referrer-policy": "no-referrer" }

/** The policies that an answer has by its type (protocol §7), in its fields. */
const policiesOf = ({ headers, path, status }: Exchanged): Record<string, string | null> => {
  const media = mediaOf(headers.get("content-type") ?? "")
  const isContent = /^\/content\/[^/?]+(?:\?|$)/.test(path) && [200, 206, 304, 307].includes(status)
  const byType = media === "text/html" && !isContent
    ? "default-src 'none'; style-src 'self'; script-src 'self'; form-action 'self'; "
      + "connect-src 'self'; img-src 'self'; font-src 'self'; manifest-src 'self'; "
      + "base-uri 'none'; frame-ancestors 'none'"
    : "sandbox; default-src 'none'; frame-ancestors 'none'"
  const isScript = path.endsWith(".js") && [200, 304].includes(status)
  const policy = status === 304 ? null : byType
  return {
    "content-security-policy": isScript ? "default-src 'self'" : policy,
    "cross-origin-resource-policy": isContent ? "cross-origin" : "same-origin"
  }
}

/**
 * Header fields that the document describes for all answers at once (`RateLimit`), that OpenAPI
 * describes elsewhere (`Content-Type`), or that belong to the connection or to CORS.
 */
const undescribedHeaders: ReadonlySet<string> = new Set([
  ...Object.keys(commonHeaders),
  "connection",
  "content-length",
  "content-security-policy",
  "content-type",
  "cross-origin-resource-policy",
  "date",
  "keep-alive",
  "ratelimit",
  "ratelimit-policy",
  "transfer-encoding"
])

const isUndescribed = (name: string): boolean =>
  undescribedHeaders.has(name) || name.startsWith("access-control-")

/** Statuses of refusals by a check or a limit: the detail names it, whose it is, and until when. */
const refusals: ReadonlySet<number> = new Set([401, 403, 413, 429, 507])

/** A problem of such a status without a detail. */
const unexplained = ({ headers, status, text }: Exchanged): ReadonlyArray<string> => {
  const media = mediaOf(headers.get("content-type") ?? "")
  if (!refusals.has(status) || !/problem\+(?:json|xml)$/.test(media) || text === "") return []
  const detail = isJson(media)
    ? /"detail":"[^"]/.test(text)
    : /<detail>[^<]/.test(text)
  return detail ? [] : [`the problem ${status} has no detail`]
}

/** The fields of an answer that its description does not list. */
const unlisted = (response: Node, headers: Headers): ReadonlyArray<string> => {
  const listed = new Set(Object.keys(response["headers"] ?? {}).map((name) => name.toLowerCase()))
  return [...headers.keys()].filter((name) => !isUndescribed(name) && !listed.has(name))
    .map((name) => `the field ${name} is not listed`)
}

export class Contract {
  readonly document: Node
  /** The statuses and types of the answers so far, by operation. */
  readonly answered = new Map<string, Set<string>>()
  private readonly match: ReturnType<typeof compileRoutes<Operation>>
  private readonly ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false })
  private readonly compiled = new Map<string, ValidateFunction>()

  /** `routes` are those of this service; it ignores other paths of the document. */
  constructor(document: DocumentPart, routes: ReadonlyArray<Route<unknown>>) {
    // openapi.test.ts checks that the document has the shape of the meta schema.
    this.document = JSON.parse(JSON.stringify(document)) as unknown as Node
    const served = new Map(routes.map(({ methods, pattern }) => [pattern, Object.keys(methods)]))
    this.match = compileRoutes(
      this.operations().reduce<Array<Route<Operation>>>((all, operation) => {
        const [method = "", pattern = ""] = operation.key.split(" ")
        const methods = served.get(pattern)
        const isServed = method === "OPTIONS" || methods?.includes(method) === true ||
          (method === "HEAD" && methods?.includes("GET") === true)
        if (methods === undefined || !isServed) return all
        const sameRoute = all.find((route) => route.pattern === pattern)
        const others = all.filter((route) => route !== sameRoute)
        return [...others, { pattern, methods: { ...sameRoute?.methods, [method]: operation } }]
      }, [])
    )
    addFormats.default(this.ajv)
    this.ajv.addSchema(this.document, "openapi")
  }

  /** Every operation of the document. */
  operations(): ReadonlyArray<Operation> {
    return Object.entries(this.document["paths"] ?? {}).flatMap(([path, item]) =>
      Object.entries(item).filter(([method]) => method !== "parameters").map(([method, node]) => ({
        key: `${method.toUpperCase()} ${path}`,
        pointer: `/paths/${escaped(path)}/${method}`,
        node
      }))
    )
  }

  /** The operation of a request; undefined if there is none. */
  operationAt(method: string, path: string): Operation | undefined {
    const found = this.match(method, path.split(/[?#]/)[0] ?? "")
    return found._tag === "Found" ? found.handler : undefined
  }

  /** The node at a pointer, and its pointer after following references. */
  at(pointer: string): { readonly node: Node; readonly pointer: string } | undefined {
    let node: Node | undefined = this.document
    for (const name of pointer.split("/").slice(1)) node = node?.[unescaped(name)]
    const target: unknown = node?.["$ref"]
    if (typeof target === "string") return this.at(target.slice(1))
    return node === undefined ? undefined : { node, pointer }
  }

  /** The faults of a value by the schema at this pointer. */
  invalid(pointer: string, value: unknown): ReadonlyArray<string> {
    let validate = this.compiled.get(pointer)
    if (validate === undefined) {
      validate = this.ajv.compile({ $ref: `openapi#${encodeURI(pointer)}` })
      this.compiled.set(pointer, validate)
    }
    if (validate(value)) return []
    return (validate.errors ?? []).map(({ instancePath, message = "", params }) =>
      `${instancePath} ${message} ${JSON.stringify(params)}`
    )
  }

  /** The possible names of the root element by the schema at this pointer. */
  rootNames(pointer: string): ReadonlyArray<string> {
    const found = this.at(pointer)
    const name: unknown = found?.node["xml"]?.["name"]
    if (found === undefined || typeof name === "string") {
      return typeof name === "string"
        ? [name]
        : []
    }
    return ["anyOf", "allOf"].flatMap((keyword) =>
      Object.keys(found.node[keyword] ?? {}).flatMap((index) =>
        this.rootNames(`${found.pointer}/${keyword}/${index}`)
      )
    )
  }

  /** The faults of a body of this type by the schema at this pointer. */
  bodyFaults(pointer: string, media: string, text: string): ReadonlyArray<string> {
    if (isJson(media)) return this.invalid(pointer, JSON.parse(text))
    if (!isXml(media)) return text === "" && media === "text/html" ? ["the page is empty"] : []
    const parsed = parseText(text)
    if (!parsed.ok) return [`it is not XML: ${parsed.fault.detail}`]
    const names = this.rootNames(pointer)
    return names.includes(parsed.value.name)
      ? this.invalid(pointer, toJson(parsed.value))
      : [`the root is ${parsed.value.name}, not ${names.join(" or ")}`]
  }

  /** How an answer differs from the document; none for an operation that it does not describe. */
  faults(exchanged: Exchanged): ReadonlyArray<string> {
    const { headers } = exchanged
    const expected = { ...commonHeaders, ...policiesOf(exchanged) }
    const wrongHeaders = Object.entries(expected).filter(([name, value]) =>
      headers.get(name) !== value
    )
    return [
      ...wrongHeaders.map(([name, value]) => `${name} is not ${value}`),
      ...unexplained(exchanged),
      ...this.undescribed(exchanged)
    ]
  }

  private undescribed({ headers, method, path, status, text }: Exchanged): ReadonlyArray<string> {
    const operation = this.operationAt(method, path)
    if (operation === undefined) return []
    const { key, pointer } = operation
    const media = mediaOf(headers.get("content-type") ?? "")
    const seen = this.answered.get(key) ?? new Set()
    this.answered.set(key, seen.add(`${status} ${media}`.trim()))
    const response = this.at(`${pointer}/responses/${status}`)
    if (response === undefined) return [`${status} is not listed`]
    const missing = Object.keys(response.node["headers"] ?? {}).filter((name) => {
      const field = this.at(`${response.pointer}/headers/${escaped(name)}`)
      const isRequired: unknown = field?.node["required"]
      return isRequired === true && !headers.has(name)
    }).map((name) => `the field ${name} is missing`)
    return [
      ...missing,
      ...unlisted(response.node, headers),
      ...this.contentFaults(operation, response.pointer, media, text)
    ]
  }

  private contentFaults(
    { pointer }: Operation,
    response: string,
    media: string,
    text: string
  ): ReadonlyArray<string> {
    const isHead = pointer.endsWith("/head")
    if (isHead) return text === "" ? [] : ["HEAD has a body"]
    const content = this.at(`${response}/content`)?.node ?? {}
    if (media === "" && text === "") return []
    const listed = [media, "*/*"].find((type) => Object.hasOwn(content, type))
    if (listed === undefined) return [`${media || "a body without a type"} is not listed`]
    if (listed === "*/*") return []
    return this.bodyFaults(`${response}/content/${escaped(listed)}/schema`, media, text)
  }
}
