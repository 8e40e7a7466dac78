/** The OpenAPI document (3.1) of the operations of all resources. */
import { type ProblemSlug, problemTypes } from "../problem-types.ts"
import { descriptionOf, earlyProblems, headersOf, isView, operationsOf, parametersOf, problemsOf,
  queryOf, responsesOf, type RoutedOperation, securityOf } from "./derivation.ts"
import { emptyResponse, type OperationGroup, pathParameters, requestHeaders,
  type ResponseDescription, responseHeaders } from "./operation.ts"
import { extensible, oneOf, ref, rootElement, type Schema, text, uri } from "./schema.ts"

/** A part of the document. */
export type DocumentPart = Readonly<Record<string, unknown>>

/** The values of the document that depend on the deployment. */
export interface ServiceDescription {
  readonly baseUrl: string
  /** The start of the URIs of content, where that is another one. */
  readonly contentBaseUrl?: string | undefined
  readonly version: string
  /** The largest content, which is the largest `fetch-limit` of a mailbox. */
  readonly contentBytesMax: number
}

const partRef = (kind: string, name: string): DocumentPart => ({
  $ref: `#/components/${kind}/${name}`
})

/** Problem documents of these kinds (RFC 9457). */
const problemSchema = (type: Schema): Schema => ({
  ...extensible(rootElement("problem", {
    type: { ...type, description: "The kind of the problem; its URI answers with an explanation." },
    title: text,
    status: {
      type: ["integer", "string"],
      minimum: 400,
      maximum: 599,
      description: "A number in JSON."
    },
    detail: text,
    instance: uri
  }, ["type", "title", "status", "instance"])),
  description: "RFC 9457."
})

/** The name of the component of these problems: `GoneOrNotFoundProblem`. */
const problemName = (slugs: ReadonlyArray<ProblemSlug>): string => {
  const names = [...slugs].sort().map((slug) => slug.split("-").map(capital).join(""))
  return `${names.join("Or")}Problem`
}

const capital = (id: string): string => id.charAt(0).toUpperCase() + id.slice(1)

const problemHeaders: Readonly<Partial<Record<ProblemSlug, ReadonlyArray<string>>>> = {
  unauthenticated: ["WWW-Authenticate"],
  "insufficient-scope": ["WWW-Authenticate?"],
  "method-not-allowed": ["Allow"],
  "range-not-satisfiable": ["Content-Range"],
  "too-many-requests": ["Retry-After", "RateLimit?", "RateLimit-Policy?"],
  overloaded: ["Retry-After"],
  quarantined: ["Retry-After"],
  "storage-unavailable": ["Retry-After"],
  conflict: ["Retry-After?"],
  "unsupported-media-type": ["Accept?", "Accept-Post?", "Accept-Encoding?"]
}

const headerRefs = (names: ReadonlyArray<string>): DocumentPart =>
  Object.fromEntries([...new Set(names)].map((name) => {
    const bare = name.replace("?", "")
    return [bare, partRef("headers", name === bare ? bare : `${bare}.optional`)]
  }))

/** JSON first: many generators take the first type, or the first that they know. */
const rankOf = (type: string): number =>
  type === "application/json" ? 0 : type === "application/problem+json" ? 1 : 2

const contentOf = (content: Readonly<Record<string, Schema>>): DocumentPart =>
  Object.fromEntries(
    Object.entries(content).sort(([one], [other]) => rankOf(one) - rankOf(other))
      .map(([type, schema]) => [type, { schema }])
  )

const withHeaders = (names: ReadonlyArray<string>): DocumentPart =>
  names.length === 0 ? {} : { headers: headerRefs(names) }

const problemContent = (schemaName: string) => {
  const schema = ref(schemaName)
  return {
    "application/problem+xml": schema,
    "application/problem+json": schema,
    "text/html": text,
    "text/plain": text
  }
}

/** The fields of every problem; a page has a policy. */
const sharedProblemHeaders = ["Vary?", "Cache-Control", "Content-Security-Policy?"]

/** A problem of a mailbox or of a listing has links: to the mailbox, or to the first page. */
const problemLink = (slugs: ReadonlyArray<ProblemSlug>): ReadonlyArray<string> =>
  slugs.every((slug) => slug === "not-found" || slug === "gone") ? [] : ["Link?"]

const problemPart = (slugs: ReadonlyArray<ProblemSlug>): DocumentPart => {
  const names = slugs.flatMap((slug) => problemHeaders[slug] ?? [])
  return {
    description: slugs.map((slug) => problemTypes[slug].title).join("; or "),
    headers: headerRefs([...sharedProblemHeaders, ...problemLink(slugs), ...names]),
    content: contentOf(problemContent(problemName(slugs)))
  }
}

const answerPart = (
  routed: RoutedOperation,
  status: string,
  answer: ResponseDescription
): DocumentPart => {
  const { content, description, headers = [] } = answer
  // An event stream is not a representation: it has no ETag and no Cache-Control.
  const isStream = content !== undefined && "text/event-stream" in content
  const optional = isStream ? "?" : ""
  const shared = answer.isView === true ? ["Vary?", `Cache-Control${optional}`, "Link?"] : []
  const isTagged = isView(routed) && answer.isView === true && status === "200"
  const tag = isTagged ? [`ETag${optional}`, "Content-Location?"] : []
  const ofType = [
    ...isStream ? ["X-Accel-Buffering?"] : [],
    ...content !== undefined && "text/html" in content ? ["Content-Security-Policy?"] : []
  ]
  return {
    description,
    ...withHeaders([...shared, ...tag, ...ofType, ...headers]),
    ...content === undefined ? {} : { content: contentOf(content) }
  }
}

const notModifiedHeaders = ["Vary?", "Cache-Control?", "Link?", "Content-Location?"]

const optionalOf = (name: string): string => name.endsWith("?") ? name : `${name}?`

/** 304 has the fields of the 200 that it replaces, `own` among them, except those of the body. */
const notModifiedPart = (own: ReadonlyArray<string>): DocumentPart => ({
  description: "The client has the current representation",
  headers: headerRefs(["ETag", ...notModifiedHeaders, ...own.map(optionalOf)])
})

/** Kinds of problems by their status. */
const byStatus = (slugs: Iterable<ProblemSlug>): Map<string, Array<ProblemSlug>> => {
  const all = new Map<string, Array<ProblemSlug>>()
  for (const slug of slugs) {
    const status = String(problemTypes[slug].status)
    all.set(status, [...all.get(status) ?? [], slug])
  }
  return all
}

class DocumentBuilder {
  readonly described: ServiceDescription
  readonly schemas: Record<string, Schema> = {}
  readonly responses: Record<string, DocumentPart> = {
    NotModified: notModifiedPart([]),
    Options: {
      description: "The methods of the resource",
      headers: headerRefs(["Allow", "Accept-Post?"])
    }
  }

  constructor(described: ServiceDescription) {
    this.described = described
  }

  /** The answers of these problems by status, as references. */
  private problemsOf(slugs: Iterable<ProblemSlug>): Record<string, DocumentPart> {
    return Object.fromEntries([...byStatus(slugs)].map(([status, ofStatus]) => {
      const name = this.problemSchemaOf(ofStatus)
      this.responses[name] ??= problemPart(ofStatus)
      return [status, partRef("responses", name)]
    }))
  }

  /** Adds the schema of these problems; returns its name. */
  private problemSchemaOf(slugs: ReadonlyArray<ProblemSlug>): string {
    const name = problemName(slugs)
    const { baseUrl } = this.described
    this.schemas[name] ??= problemSchema(
      oneOf(...slugs.map((slug) => `${baseUrl}/problems/${slug}`))
    )
    return name
  }

  optionsOf({ operation, tag }: RoutedOperation): DocumentPart {
    return {
      operationId: `options${capital(operation.id)}`,
      summary: "Lists the methods of the resource",
      description: "Allow has the methods. Also answers a preflight (Fetch §4.8). Needs no "
        + "credentials.",
      tags: [tag],
      responses: {
        "204": partRef("responses", "Options"),
        ...this.problemsOf(earlyProblems)
      },
      security: []
    }
  }

  /** All answers by their status. */
  responsesOf(routed: RoutedOperation): Record<string, DocumentPart> {
    const described = { ...responsesOf(routed.operation), ...this.redirectOf(routed) }
    const all: Record<string, DocumentPart> = this.problemsOf(problemsOf(routed))
    for (const [status, answer] of Object.entries(described)) {
      all[status] = answerPart(routed, status, answer)
    }
    if (isView(routed)) {
      const { headers = [] } = described[200] ?? {}
      const own = headers.filter((name) => !notModifiedHeaders.includes(optionalOf(name)))
      all["304"] ??= own.length === 0
        ? partRef("responses", "NotModified")
        : notModifiedPart(own)
    }
    for (const [status, slugs] of byStatus(problemsOf(routed))) {
      const own = described[Number(status)]
      if (own === undefined) continue
      // The answer and the problem share the types of pages and plain text.
      const content = { ...own.content, ...problemContent(this.problemSchemaOf(slugs)) }
      all[status] = answerPart(routed, status, { ...own, content })
    }
    const isRedirect = !Object.keys(described).some((status) => status.startsWith("2"))
    return isRedirect ? { ...all, default: this.otherAnswer() } : all
  }

  /** Linters want an answer beside the redirects of an operation: it is a problem. */
  private otherAnswer(): DocumentPart {
    this.schemas["Problem"] ??= problemSchema(uri)
    this.responses["Problem"] ??= {
      description: "A problem",
      headers: headerRefs(sharedProblemHeaders),
      content: contentOf(problemContent("Problem"))
    }
    return partRef("responses", "Problem")
  }

  /** HEAD is GET without the body. */
  headOf(get: DocumentPart, routed: RoutedOperation): DocumentPart {
    const { id, summary } = routed.operation
    const answers = Object.entries(this.responsesOf(routed)).map(([status, answer]) => {
      const name = String(answer["$ref"] ?? "").split("/").at(-1) ?? ""
      const shared = this.responses[name]
      if (shared?.["content"] === undefined) return [status, headed(answer)]
      this.responses[`Head${name}`] ??= headed(shared)
      return [status, partRef("responses", `Head${name}`)]
    })
    return {
      ...get,
      operationId: `head${capital(id)}`,
      summary: `${summary}, without the body`,
      responses: Object.fromEntries(answers)
    }
  }

  /** The redirect of readers at the service's own origin to that of content. */
  private redirectOf(
    { operation }: RoutedOperation
  ): Readonly<Record<number, ResponseDescription>> {
    const isElsewhere = operation.contentOrigin === "only" &&
      this.described.contentBaseUrl !== undefined
    return isElsewhere
      ? {
        307: emptyResponse("At another server: it is at this one", ["Location", "Cache-Control"])
      }
      : {}
  }

  /** The servers of an operation at the origin of content. */
  private serversOf({ operation: { contentOrigin } }: RoutedOperation): DocumentPart {
    const { baseUrl, contentBaseUrl } = this.described
    if (contentOrigin === undefined || contentBaseUrl === undefined) return {}
    const urls = contentOrigin === "only" ? [contentBaseUrl] : [contentBaseUrl, serverUrl(baseUrl)]
    return { servers: urls.map((url) => ({ url })) }
  }

  operationOf(routed: RoutedOperation): DocumentPart {
    const { body, id, needs, summary } = routed.operation
    const parameters = [
      ...Object.entries(queryOf(routed)).map(([name, one]) => ({ name, in: "query", ...one })),
      ...[...headersOf(routed)].map((name) => partRef("parameters", name))
    ]
    return {
      operationId: id,
      summary,
      description: descriptionOf(routed),
      tags: [routed.tag],
      ...this.serversOf(routed),
      ...parameters.length === 0 ? {} : { parameters },
      ...body === undefined ? {} : { requestBody: bodyPart(body) },
      responses: this.responsesOf(routed),
      security: needs === undefined ? [] : securityOf[needs]
    }
  }
}

const bodyPart = (body: NonNullable<RoutedOperation["operation"]["body"]>): DocumentPart => ({
  ...body.description === undefined ? {} : { description: body.description },
  content: contentOf(body.content),
  required: body.required
})

/** An answer without its body. */
const headed = (answer: DocumentPart): DocumentPart =>
  Object.fromEntries(Object.entries(answer).filter(([name]) => name !== "content"))

const pathPart = (
  builder: DocumentBuilder,
  pattern: string,
  operations: ReadonlyArray<RoutedOperation>
): DocumentPart => {
  const [first] = operations
  if (first === undefined) throw new Error(`${pattern} has no method`)
  const names = parametersOf(pattern)
  const part: Record<string, unknown> = names.length === 0
    ? {}
    : { parameters: names.map((name) => partRef("parameters", `path.${name}`)) }
  for (const routed of operations) {
    const operation = builder.operationOf(routed)
    part[routed.method.toLowerCase()] = operation
    if (routed.method === "GET") {
      part["head"] = builder.headOf(operation, routed)
    }
  }
  part["options"] = builder.optionsOf(first)
  return part
}

const pathParameter = (name: string): DocumentPart => {
  const parameter = pathParameters[name]
  if (parameter === undefined) throw new Error(`the path parameter ${name} is not described`)
  return { name, in: "path", required: true, ...parameter }
}

const parameterParts = (patterns: ReadonlyArray<string>): DocumentPart => {
  const names = new Set(patterns.flatMap(parametersOf))
  return {
    ...Object.fromEntries([...names].map((name) => [`path.${name}`, pathParameter(name)])),
    ...Object.fromEntries(
      Object.entries(requestHeaders).map(([name, one]) => [name, { name, in: "header", ...one }])
    )
  }
}

const headerParts: DocumentPart = Object.fromEntries(
  Object.entries(responseHeaders).flatMap(([name, description]) => [
    [name, { description, required: true, schema: text }],
    [`${name}.optional`, { description, schema: text }]
  ])
)

const securitySchemes: DocumentPart = {
  basic: {
    type: "http",
    scheme: "basic",
    description: "An account's name and token. For a mailbox or a message also any name and its "
      + "password. A token may have scopes, which each operation names."
  },
  bearer: {
    type: "http",
    scheme: "bearer",
    description: "An account's token, or a JWT of the issuer that the operator trusts. A token "
      + "may have scopes, which each operation names."
  },
  browser: {
    type: "apiKey",
    in: "cookie",
    name: "__Host-restante-session",
    description: "A browser that has signed in at `/sign-in`; without TLS the cookie is named "
      + "`restante-session`. Other methods than GET also need `Origin` or `Sec-Fetch-Site`. "
      + "Programs use the other schemes."
  },
  messagePassword: {
    type: "apiKey",
    in: "header",
    name: "Message-Password",
    description: "The password of one message."
  }
}

const about =
  "Accept chooses the form of every document: XML, HTML, JSON or plain text. XML is the "
  + "default, so that a client of JSON sends `Accept: application/json`. The query parameter "
  + "`format` names one of them, at a URI of its own. One schema describes the "
  + "XML and the JSON of a document. URIs are opaque: follow links. A method that the resource "
  + "does not have is 405. Where the operator limits rates, every answer has RateLimit and "
  + "RateLimit-Policy."

/** The components that something refers to. */
const usedParts = (
  kind: string,
  parts: Readonly<Record<string, unknown>>,
  referring: string
): DocumentPart =>
  Object.fromEntries(
    Object.entries(parts).filter(([name]) => referring.includes(`"#/components/${kind}/${name}"`))
  )

/** A client on another machine would look for `localhost` at its own. */
const serverUrl = (baseUrl: string): string =>
  new URL(baseUrl).hostname === "localhost" ? "/" : baseUrl

/** The whole document. */
export const makeDocument = (
  described: ServiceDescription,
  groups: ReadonlyArray<OperationGroup>
): DocumentPart => {
  const builder = new DocumentBuilder(described)
  const operations = groups.flatMap(operationsOf)
  const patterns = [...new Set(operations.map(({ pattern }) => pattern))]
  const paths = Object.fromEntries(patterns.map((pattern) => {
    const ofPath = operations.filter((operation) => operation.pattern === pattern)
    return [pattern, pathPart(builder, pattern, ofPath)] as const
  }))
  const schemas = Object.assign({}, builder.schemas, ...groups.map((group) => group.schemas))
  const used = (kind: string, parts: Readonly<Record<string, unknown>>) =>
    usedParts(kind, parts, JSON.stringify([paths, builder.responses, schemas]))
  return {
    openapi: "3.1.0",
    info: {
      title: "restante",
      summary: "Poste restante over HTTP",
      description: about,
      version: described.version,
      contact: { name: "The operator of this service", url: described.baseUrl },
      license: { name: "Apache-2.0", identifier: "Apache-2.0" }
    },
    servers: [{ url: serverUrl(described.baseUrl) }],
    tags: groups.map(({ about: description, tag }) => ({ name: tag, description })),
    paths,
    components: {
      schemas: used("schemas", schemas),
      parameters: used("parameters", parameterParts(patterns)),
      headers: used("headers", headerParts),
      responses: used("responses", builder.responses),
      securitySchemes
    }
  }
}

const isPart = (value: unknown): value is DocumentPart =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Whether a part has its entries by media type; a schema may describe a property `content`. */
const isContent = (name: string, part: DocumentPart): boolean =>
  name === "content" && Object.keys(part).every((type) => type.includes("/"))

/** A copy of a document, or of a part of one, with the first type of each body and value only. */
export const withFirstTypes = (part: DocumentPart): DocumentPart =>
  Object.fromEntries(
    Object.entries(part).map(([name, value]) => [name, firstTypesOf(name, value)])
  )

const firstTypesOf = (name: string, value: unknown): unknown => {
  if (Array.isArray(value)) {
    const first: unknown = value[0]
    // A property may be named `type`, but the keyword alone has an array.
    return name === "type" ? first : value.map((one: unknown) => firstTypesOf("", one))
  }
  if (!isPart(value)) return value
  return withFirstTypes(
    isContent(name, value) ? Object.fromEntries(Object.entries(value).slice(0, 1)) : value
  )
}
