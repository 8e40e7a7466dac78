/**
 * Sends requests to an operation of the OpenAPI document: valid ones with every body type and for
 * every answer type, and invalid ones, each of which breaks one rule that the document states.
 */
import { expect } from "vitest"
import { writeDocument } from "../../http/formats/xml/index.ts"
import type { Operation } from "./contract.ts"
import { adminToken, type Answered, type Harness } from "./harness.ts"
import { parametersOf, requestFaults } from "./requests.ts"
import { parser } from "./document-parser.ts"

export const admin = `admin:${adminToken}`

const formType = "application/x-www-form-urlencoded"

/** Accept fields of the comparison of HEAD with GET. */
const headTypes = [
  "text/html",
  "application/xml",
  "application/json",
  "text/plain",
  "image/png",
  "text/html,*/*;q=0.8"
]

/** Resources whose figures change by themselves, and how often HEAD is compared with them. */
const changingPaths = /^\/(?:cluster|limits)\b/
const changingHeadsMax = 5

/** Header fields that an answer with a body may have in another form. */
const perAnswer = (name: string): boolean =>
  ["connection", "keep-alive", "transfer-encoding", "last-modified"].includes(name)

/** The requests for one operation; each request has another `round`, so that values can be new. */
export interface Step {
  /** The path with its query. */
  readonly path: string | ((round: number) => string | Promise<string>)
  /** `admin` by default; undefined for a request without credentials. */
  readonly basic?: string | undefined
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as if for a client elsewhere: one on this machine needs no account. */
  readonly isElsewhere?: boolean
  /** The root element of the document, and the document as JSON. */
  readonly root?: string
  readonly json?: (round: number) => unknown
  readonly form?: (round: number) => Readonly<Record<string, string>>
  /** Bodies of other types. */
  readonly bodies?: Readonly<Record<string, string>>
  /** The operation succeeds only once. */
  readonly isOnce?: boolean
  /** Without credentials it is 401, although a secret path would be enough. */
  readonly isClosed?: boolean
  /** Invalid requests that this operation does not reject. */
  readonly besides?: ReadonlyArray<"unknown" | "unfit" | "limit" | "weak">
}

interface Sent {
  readonly type?: string | undefined
  readonly accept?: string | undefined
  readonly headers?: Readonly<Record<string, string>>
}

/** The invalid part of a request; the rest of it is valid. */
type InvalidPart = NonNullable<Parameters<Harness["send"]>[2]> & {
  readonly path?: string
  readonly isAnonymous?: boolean
}

export class OperationRequester {
  readonly asked = new Set<string>()
  private readonly service: Harness
  private readonly weak: string
  private round = 0

  /** `weak` are the credentials of an account without a role and without resources. */
  constructor(service: Harness, weak: string) {
    this.service = service
    this.weak = weak
  }

  /** The operation with this key; throws if the document has none. */
  private operation(key: string): Operation {
    const found = this.service.contract.operations().find((one) => one.key === key)
    if (found === undefined) throw new Error(`${key} is not in the document`)
    return found
  }

  private names(operation: Operation, below: string): ReadonlyArray<string> {
    return Object.keys(this.service.contract.at(`${operation.pointer}/${below}`)?.node ?? {})
  }

  private body(step: Step, type: string | undefined, round: number): string | undefined {
    if (type === undefined) return undefined
    if (step.bodies?.[type] !== undefined) return step.bodies[type]
    if (type === formType) return new URLSearchParams(step.form?.(round) ?? {}).toString()
    const json = step.json?.(round)
    if (json === undefined || type === "application/json") return JSON.stringify(json)
    const root = parser.fromJson(step.root ?? "", json)
    if (!root.ok) throw new Error(root.fault.detail)
    return writeDocument(root.value)
  }

  private async ask(operation: Operation, step: Step, sent: Sent): Promise<Answered> {
    const { contract } = this.service
    const [method = ""] = operation.key.split(" ")
    const round = this.round++
    const path = typeof step.path === "string" ? step.path : await step.path(round)
    const headers = { ...step.headers, ...sent.headers }
    const body = this.body(step, sent.type, round)
    const request = { path, headers, type: sent.type, body }
    expect([operation.key, path, requestFaults(contract, operation, request)])
      .toEqual([operation.key, path, []])
    expect(contract.operationAt(method, path)?.key).toBe(operation.key)
    this.asked.add(operation.key)
    return this.send(method, path, step, {
      headers,
      ...sent.accept === undefined ? {} : { accept: sent.accept },
      ...body === undefined || sent.type === undefined ? {} : { body, type: sent.type }
    })
  }

  private send(
    method: string,
    path: string,
    step: Step,
    options: Parameters<Harness["send"]>[2]
  ): Promise<Answered> {
    const basic = "basic" in step ? step.basic : admin
    const elsewhere = step.isElsewhere === true ? { "X-Forwarded-For": "203.0.113.9" } : {}
    return this.service.send(method, path, {
      ...basic === undefined ? {} : { basic },
      ...options,
      headers: { ...options?.headers, ...elsewhere }
    })
  }

  /** The types of request bodies, and those of successful answers. */
  private types(operation: Operation) {
    const bodies = this.names(operation, "requestBody/content")
    const answers = this.names(operation, "responses").filter((one) => one.startsWith("2"))
      .map((status) => this.names(operation, `responses/${status}/content`))
      // Content has the type that its publisher gave it.
      .flatMap((types) => types.includes("*/*") ? [] : types)
      .filter((type) => type !== "text/event-stream")
    return { bodies, answers: [...new Set(answers)] }
  }

  /** Sends every valid request; returns the answers in their order. */
  private async sendValid(operation: Operation, step: Step): Promise<ReadonlyArray<Answered>> {
    const { contract } = this.service
    const { answers, bodies } = this.types(operation)
    const sendable = bodies.filter((type) =>
      step.bodies?.[type] !== undefined || (type === formType ? step.form : step.json) !== undefined
    )
    expect([operation.key, sendable.length === bodies.length || bodies.includes("*/*")])
      .toEqual([operation.key, true])
    const first = sendable[0] ?? Object.keys(step.bodies ?? {})[0]
    const all: Array<Sent> = sendable.map((type, at) => ({ type, accept: answers[at] }))
    for (const accept of answers.slice(all.length)) all.push({ type: first, accept })
    if (sendable.includes(formType)) all.push({ type: formType, accept: "text/html" })
    const required: unknown = contract.at(`${operation.pointer}/requestBody`)?.node["required"]
    if (required === false) { for (const accept of answers) all.push({ accept }) }
    if (all.length === 0) all.push({ type: first })
    const got: Array<Answered> = []
    for (const sent of step.isOnce === true ? all.slice(0, 1) : all) {
      const answered = await this.ask(operation, step, sent)
      const { status } = answered
      expect([operation.key, sent, status, status < 400 ? "" : answered.text])
        .toEqual([operation.key, sent, status, ""])
      const isExpectedType = status === 303 || answered.text === "" || sent.accept === undefined ||
        answered.header("content-type").startsWith(sent.accept)
      expect([operation.key, sent, status, isExpectedType])
        .toEqual([operation.key, sent, status, true])
      got.push(answered)
    }
    return got
  }

  /** Sends an invalid request; the answer must be a problem with one of these statuses. */
  private async expectProblem(
    operation: Operation,
    step: Step,
    wrong: InvalidPart & { readonly path: string },
    statuses: ReadonlyArray<number>
  ): Promise<void> {
    const [method = ""] = operation.key.split(" ")
    const { isAnonymous = false, path, ...options } = wrong
    const { bodies } = this.types(operation)
    const type = bodies.find((one) => step.bodies?.[one] !== undefined) ?? bodies[0]
    const body = this.body(step, type, this.round++)
    const right = body === undefined || type === undefined ? {} : { body, type }
    const headers = { ...step.headers, ...options.headers }
    const as = isAnonymous ? { ...step, basic: undefined } : step
    const answered = await this.send(method, path, as, { ...right, ...options, headers })
    const { status } = answered
    expect([operation.key, wrong, status])
      .toEqual([operation.key, wrong, statuses.includes(status) ? status : statuses])
    if (method !== "HEAD") expect(answered.header("content-type")).toContain("/problem+xml")
    if (status !== 415) return
    // RFC 9110 §15.5.16; Accept-Post is about POST alone (W3C LDP §7.1).
    const lists = ["accept", "accept-post"].map((name) => answered.headers.has(name))
    expect([operation.key, lists]).toEqual([operation.key, [true, method === "POST"]])
  }

  /** Whether an account may get 403, and not only a token for its scope. */
  private mayBeForbidden({ pointer }: Operation): boolean {
    const at = `${pointer}/responses/403/content/application~1problem+json/schema/properties/type`
    const types: unknown = this.service.contract.at(at)?.node["enum"]
    return Array.isArray(types) && types.some((type) => String(type).endsWith("/forbidden"))
  }

  /** Sends every invalid request that follows from the document. */
  private async sendInvalid(operation: Operation, step: Step): Promise<void> {
    const [method = "", pattern = ""] = operation.key.split(" ")
    const listed = new Set(this.names(operation, "responses"))
    const parameters = parametersOf(this.service.contract, operation)
    const has = (name: string) => parameters.some((one) => one.name === name)
    const security = Object.values(operation.node["security"] ?? {})
    const isSecured = security.length > 0 && security.every((one) => Object.keys(one).length > 0)
    const own = typeof step.path === "string" ? step.path : await step.path(this.round++)
    const pending: Array<Promise<void>> = []
    const wrong = (
      options: InvalidPart,
      ...statuses: ReadonlyArray<number>
    ) => pending.push(this.expectProblem(operation, step, { path: own, ...options }, statuses))
    if (isSecured || step.isClosed === true) wrong({ isAnonymous: true }, 401)
    const isWeak = isSecured && this.mayBeForbidden(operation) && !step.besides?.includes("weak")
    if (isWeak) wrong({ basic: this.weak }, 403, 404)
    const { bodies } = this.types(operation)
    if (bodies.length > 0 && !bodies.includes("*/*")) {
      if (!step.besides?.includes("unfit")) wrong({ type: "image/png", body: "?" }, 415)
      if (bodies.includes("application/xml")) {
        wrong({ type: "application/xml", body: "?" }, 400)
        if (!bodies.includes("text/csv")) wrong({ type: "text/xml", body: "<other/>" }, 422)
      }
    }
    const sent = this.service.contract.at(
      `${operation.pointer}/requestBody/content/application~1json/schema`
    )
    const isClosed: unknown = sent?.node["additionalProperties"]
    if (isClosed === false) {
      const body = JSON.stringify({ ...Object(step.json?.(this.round++)), misspelled: "x" })
      wrong({ type: "application/json", body }, 422)
    }
    if (pattern.includes("{") && !step.besides?.includes("unknown")) {
      const [from = ""] = own.split("?")
      const at = pattern.split("/").findLastIndex((segment) => segment.startsWith("{"))
      const path = from.split("/").map((one, index) => index === at ? "nothing-here" : one)
      wrong({ path: path.join("/") }, 404, 403)
    }
    if (has("If-Match")) wrong({ headers: { "If-Match": "\"x\"" } }, 412)
    if (has("Idempotency-Key")) wrong({ headers: { "Idempotency-Key": "not one" } }, 400)
    if (has("limit") && !step.besides?.includes("limit")) {
      wrong({ path: `${own.split("?")[0]}?limit=0` }, 400)
    }
    if (parameters.some((one) => one.in === "query" && one.required)) {
      wrong({ path: own.split("?")[0] ?? "" }, 400)
    }
    if (method === "GET" && listed.has("406")) wrong({ accept: "image/png" }, 406)
    await Promise.all(pending)
  }

  /** Sends all requests for an operation; GET with HEAD. Returns the answers to the valid ones. */
  async asks(key: string, step: Step): Promise<ReadonlyArray<Answered>> {
    const operation = this.operation(key)
    await this.sendInvalid(operation, step)
    const got = await this.sendValid(operation, step)
    const [method = "", pattern = ""] = key.split(" ")
    if (method === "GET") {
      const head = await this.ask(this.operation(`HEAD ${pattern}`), step, {})
      expect([key, head.status]).toEqual([key, got[0]?.status])
      await this.checkNotModified(operation, step, got[0])
      await this.checkHead(step)
    }
    if (!this.asked.has(`OPTIONS ${pattern}`)) {
      const path = typeof step.path === "string" ? step.path : await step.path(this.round++)
      const bare = { path: path.split("?")[0] ?? "", basic: undefined }
      const options = await this.ask(this.operation(`OPTIONS ${pattern}`), bare, {})
      expect([key, options.status]).toEqual([key, 204])
    }
    return got
  }

  /** HEAD has the status and the fields of GET, whatever it asks for (RFC 9110 §9.3.2). */
  private async checkHead(step: Step): Promise<void> {
    const path = typeof step.path === "string" ? step.path : await step.path(this.round++)
    const separator = path.includes("?") ? "&" : "?"
    const targets = [path, `${path}${separator}format=none`, `${path}${separator}limit=0`]
    const readers = [step, { ...step, basic: undefined }]
    for (const [at, accept] of headTypes.entries()) {
      // Every type at the path, and each of the other targets and readers with some types.
      const target = targets[at % targets.length] ?? path
      const reader = readers[at % readers.length] ?? step
      for (const [uri, as] of [[path, step], [target, step], [path, reader]] as const) {
        await this.compareHead(uri, as, { headers: { ...step.headers }, accept })
      }
    }
  }

  /** Compares HEAD with GET before and after it: their lengths too, unless figures change. */
  private async compareHead(
    uri: string,
    as: Step,
    options: { readonly headers: Record<string, string>; readonly accept: string }
  ): Promise<void> {
    const names = ({ headers }: Answered) => [...headers.keys()].filter((one) => !perAnswer(one))
    const lengthOf = ({ headers }: Answered) => headers.get("content-length")
    const attempts = changingPaths.test(uri) ? changingHeadsMax : 1
    for (let attempt = 1;; attempt++) {
      const first = await this.send("GET", uri, as, options)
      const head = await this.send("HEAD", uri, as, options)
      const again = await this.send("GET", uri, as, options)
      expect([uri, options.accept, head.status, names(head)])
        .toEqual([uri, options.accept, first.status, names(first)])
      const [before, between, after] = [first, head, again].map(lengthOf)
      if (before !== after || between === before) return
      // A figure may have one more digit, and then one less.
      if (attempt < attempts) continue
      expect([uri, options.accept, between]).toEqual([uri, options.accept, before])
    }
  }

  /** Sends the entity tag of an answer: 304, or 200 if the resource has changed. */
  private async checkNotModified(
    operation: Operation,
    step: Step,
    earlier: Answered | undefined
  ): Promise<void> {
    const tag = earlier?.headers.get("etag") ?? undefined
    if (tag === undefined) return
    // The content may have changed meanwhile; `send` checks the answer against the document.
    const headers = { "If-None-Match": tag }
    const accept = earlier?.headers.get("content-type")?.split(";")[0]
    const { status } = await this.ask(operation, step, { headers, accept })
    expect([operation.key, [200, 304].includes(status)]).toEqual([operation.key, true])
  }
}
