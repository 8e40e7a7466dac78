/**
 * Asks an operation of the OpenAPI document rightly, with every type of body that it takes and for
 * every type that it answers, and wrongly in every way that the document itself gives away.
 */
import { expect } from "vitest"
import { writeDocument } from "../../http/formats/xml/index.ts"
import type { Operation } from "./contract.ts"
import { adminToken, type Answered, type Harness } from "./harness.ts"
import { parametersOf, requestFaults } from "./requests.ts"
import { parser } from "./document-parser.ts"

export const admin = `admin:${adminToken}`

const formType = "application/x-www-form-urlencoded"

/** How an operation is asked; what depends on the round is new in each. */
export interface Step {
  /** With its query. */
  readonly path: string | ((round: number) => string | Promise<string>)
  /** `admin` unless said; undefined for nobody. */
  readonly basic?: string | undefined
  readonly headers?: Readonly<Record<string, string>>
  /** The root element, and the document as JSON. */
  readonly root?: string
  readonly json?: (round: number) => unknown
  readonly form?: (round: number) => Readonly<Record<string, string>>
  /** Bodies of other types. */
  readonly bodies?: Readonly<Record<string, string>>
  /** It can be done once only. */
  readonly isOnce?: boolean
  /** Without credentials it is 401, although another path would be enough. */
  readonly isClosed?: boolean
  /** Wrong requests that mean nothing here. */
  readonly besides?: ReadonlyArray<"unknown" | "unfit" | "limit" | "weak">
}

interface Sent {
  readonly type?: string | undefined
  readonly accept?: string | undefined
  readonly headers?: Readonly<Record<string, string>>
}

/** What is wrong with a request; all else in it is right. */
type Wrong = NonNullable<Parameters<Harness["send"]>[2]> & {
  readonly path?: string
  readonly isNobody?: boolean
}

export class Asker {
  readonly asked = new Set<string>()
  private readonly service: Harness
  private readonly weak: string
  private round = 0

  /** `weak` is an account without a role, and nobody's owner. */
  constructor(service: Harness, weak: string) {
    this.service = service
    this.weak = weak
  }

  /** The operation of that key, which must be there. */
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
    return this.service.send(method, path, {
      ...basic === undefined ? {} : { basic },
      ...options
    })
  }

  /** The types of bodies that it takes, and those of what it answers when all is well. */
  private types(operation: Operation) {
    const bodies = this.names(operation, "requestBody/content")
    const answers = this.names(operation, "responses").filter((one) => one.startsWith("2"))
      .flatMap((status) => this.names(operation, `responses/${status}/content`))
      .filter((type) => type !== "text/event-stream" && type !== "*/*")
    return { bodies, answers: [...new Set(answers)] }
  }

  /** Every right request; the answers in their order. */
  private async rightly(operation: Operation, step: Step): Promise<ReadonlyArray<Answered>> {
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
      const isAsWanted = status === 303 || answered.text === "" || sent.accept === undefined ||
        answered.header("content-type").startsWith(sent.accept)
      expect([operation.key, sent, status, isAsWanted])
        .toEqual([operation.key, sent, status, true])
      got.push(answered)
    }
    return got
  }

  /** A request that must end as that problem. */
  private async refused(
    operation: Operation,
    step: Step,
    wrong: Wrong & { readonly path: string },
    statuses: ReadonlyArray<number>
  ): Promise<void> {
    const [method = ""] = operation.key.split(" ")
    const { isNobody = false, path, ...options } = wrong
    const { bodies } = this.types(operation)
    const type = bodies.find((one) => step.bodies?.[one] !== undefined) ?? bodies[0]
    const body = this.body(step, type, this.round++)
    const right = body === undefined || type === undefined ? {} : { body, type }
    const headers = { ...step.headers, ...options.headers }
    const as = isNobody ? { ...step, basic: undefined } : step
    const answered = await this.send(method, path, as, { ...right, ...options, headers })
    const { status } = answered
    expect([operation.key, wrong, status])
      .toEqual([operation.key, wrong, statuses.includes(status) ? status : statuses])
    if (method !== "HEAD") expect(answered.header("content-type")).toContain("/problem+xml")
  }

  /** Every wrong request that the document gives away. */
  private async wrongly(operation: Operation, step: Step): Promise<void> {
    const [method = "", pattern = ""] = operation.key.split(" ")
    const listed = new Set(this.names(operation, "responses"))
    const parameters = parametersOf(this.service.contract, operation)
    const has = (name: string) => parameters.some((one) => one.name === name)
    const security = Object.values(operation.node["security"] ?? {})
    const isSecured = security.length > 0 && security.every((one) => Object.keys(one).length > 0)
    const own = typeof step.path === "string" ? step.path : await step.path(this.round++)
    const wrongs: Array<Promise<void>> = []
    const wrong = (
      options: Wrong,
      ...statuses: ReadonlyArray<number>
    ) => wrongs.push(this.refused(operation, step, { path: own, ...options }, statuses))
    if (isSecured || step.isClosed === true) wrong({ isNobody: true }, 401)
    const isWeak = isSecured && listed.has("403") && !step.besides?.includes("weak")
    if (isWeak) wrong({ basic: this.weak }, 403, 404)
    const { bodies } = this.types(operation)
    if (bodies.length > 0 && !bodies.includes("*/*")) {
      if (!step.besides?.includes("unfit")) wrong({ type: "image/png", body: "?" }, 415)
      if (bodies.includes("application/xml")) {
        wrong({ type: "application/xml", body: "?" }, 400)
        if (!bodies.includes("text/csv")) wrong({ type: "text/xml", body: "<other/>" }, 422)
      }
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
    await Promise.all(wrongs)
  }

  /** Asks an operation in every way; GET with HEAD. Gives the right answers. */
  async asks(key: string, step: Step): Promise<ReadonlyArray<Answered>> {
    const operation = this.operation(key)
    await this.wrongly(operation, step)
    const got = await this.rightly(operation, step)
    const [method = "", pattern = ""] = key.split(" ")
    if (method === "GET") {
      const head = await this.ask(this.operation(`HEAD ${pattern}`), step, {})
      expect([key, head.status]).toEqual([key, got[0]?.status])
      await this.unchanged(operation, step, got[0])
    }
    if (!this.asked.has(`OPTIONS ${pattern}`)) {
      const path = typeof step.path === "string" ? step.path : await step.path(this.round++)
      const bare = { path: path.split("?")[0] ?? "", basic: undefined }
      const options = await this.ask(this.operation(`OPTIONS ${pattern}`), bare, {})
      expect([key, options.status]).toEqual([key, 204])
    }
    return got
  }

  /** 304 where a tag is known. */
  private async unchanged(
    operation: Operation,
    step: Step,
    shown: Answered | undefined
  ): Promise<void> {
    const tag = shown?.headers.get("etag") ?? undefined
    if (tag === undefined) return
    // The content may be another by now; that it is answered at all is held against the document.
    const headers = { "If-None-Match": tag }
    const { status } = await this.ask(operation, step, { headers })
    expect([operation.key, [200, 304].includes(status)]).toEqual([operation.key, true])
  }
}
