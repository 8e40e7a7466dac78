/**
 * Requests with an Idempotency-Key. Clients repeat them during the faults and at the end: each has
 * one effect, and every response is the same.
 */
import { expect } from "vitest"
import { type Answer, asAdmin, childOf, expectStatus, linkOf, notification, parseXml,
  pathOf } from "../../e2e/client.ts"
import { eventually } from "../../e2e/process.ts"
import type { Random } from "../random.ts"
import type { Recorder, Request } from "../recorder.ts"

const answeredWithinMs = 120_000

const repeatMs = 500

/** Requests that clients repeat while faults happen. */
const recent = 12

/** Deposits to one mailbox, and receipts of one content, so that one page lists all. */
const childrenMax = 200

/** A request with its key, its first response and the time of its first attempt. */
export class KeyedRequest {
  answer: Answer | undefined = undefined
  start: number | undefined = undefined
  /** When the first response came. */
  end = Infinity
  private readonly recorder: Recorder
  private readonly request: Omit<Request, "url">
  private readonly status: number

  constructor(recorder: Recorder, key: string, status: number, request: Omit<Request, "url">) {
    const headers = { ...request.headers, "idempotency-key": `"${key}"` }
    recorder.keyed += 1
    this.recorder = recorder
    this.request = { ...request, headers, method: "POST" }
    this.status = status
  }

  get path(): string {
    return this.request.path
  }

  /** The path of what the request has created; undefined without a response. */
  get created(): string | undefined {
    return this.answer && pathOf(this.answer.headers.get("location"))
  }

  /** Sends the request, and compares the response with the first one. False without a response. */
  async attempt(url: string): Promise<boolean> {
    const { answer, end, start } = await this.recorder.send({ ...this.request, url })
    this.start ??= start
    // 409: an interrupted attempt may still hold the key.
    if (answer === undefined || answer.status === 409 || answer.status === 429) return false
    expectStatus(answer, this.status)
    if (this.answer === undefined) {
      this.answer = answer
      this.end = end
    }
    const [first, again] = [this.answer, answer].map(({ headers, text }) =>
      `${headers.get("location")} ${text}`
    )
    if (first !== again) this.recorder.violations.push(`${this.path}: ${first}, then ${again}`)
    return true
  }
}

/** A mailbox with keyed deposits, or a content with keyed receipts. */
interface Parent {
  readonly path: string
  /** Where the children are listed. */
  readonly listPath: string
  readonly children: Array<Child>
}

interface Child {
  readonly request: KeyedRequest
  readonly description: string
  /** `maybe`: a removal without a response. */
  removed: "no" | "maybe" | "yes"
}

export class KeyedWorkload {
  private readonly all: Array<KeyedRequest> = []
  private readonly mailboxes: Array<Parent> = []
  private readonly contents: Array<Parent> = []
  private readonly recorder: Recorder
  private readonly random: Random
  private count = 0

  constructor(recorder: Recorder, random: Random) {
    this.recorder = recorder
    this.random = random
  }

  async sendRandom(url: string): Promise<void> {
    const turn = this.random.below(20)
    if (turn < 6) await this.random.of(this.all.slice(-recent))?.attempt(url)
    else if (turn < 8) await this.create(url, 201, "/mailboxes", this.mailboxBody(), this.mailboxes)
    else if (turn < 10) await this.create(url, 201, "/sessions", this.sessionBody())
    else if (turn < 12) await this.create(url, 202, "/content", this.contentBody(), this.contents)
    else if (turn < 16) await this.addChild(url, this.mailboxes, notification)
    else if (turn < 19) await this.addChild(url, this.contents, receipt)
    else await this.removeDeposit(url)
  }

  /**
   * Repeats every request at any node, and lists what was created. A crash reserves a key for a
   * minute, which must be over. Returns the number of requests.
   */
  async repeatAndList(anywhere: () => string): Promise<number> {
    for (const request of this.all) {
      await eventually(
        answeredWithinMs,
        `${request.path} is repeated`,
        async () => await request.attempt(anywhere()) || undefined,
        repeatMs
      )
    }
    const created = this.all.map((request) => request.created)
    expect(new Set(created).size, "a key created something of another key").toBe(created.length)
    for (const parent of [...this.mailboxes, ...this.contents]) {
      await this.expectChildren(anywhere, parent)
    }
    return created.length
  }

  private mailboxBody(): string {
    return `<mailbox><name>k${this.count++}</name></mailbox>`
  }

  private sessionBody(): string {
    return `<answer continue="true">${this.count++}</answer>`
  }

  private contentBody(): Buffer {
    return Buffer.from(`content ${this.count++}`)
  }

  private keyed(path: string, status: number, body: string | Buffer): KeyedRequest {
    const key = `${this.random.seed} key ${this.count++}`
    const request = new KeyedRequest(this.recorder, key, status, { path, body, headers: asAdmin })
    this.all.push(request)
    return request
  }

  private async create(
    url: string,
    status: number,
    path: string,
    body: string | Buffer,
    parents: Array<Parent> = []
  ): Promise<void> {
    const request = this.keyed(path, status, body)
    await request.attempt(url)
    const { answer, created } = request
    if (answer === undefined || created === undefined) return
    const listPath = path === "/content" ? `${linkOf(answer, "edit")}/receipts` : created
    parents.push({ path: created, listPath, children: [] })
  }

  private async addChild(
    url: string,
    parents: ReadonlyArray<Parent>,
    bodyOf: (description: string) => string
  ): Promise<void> {
    const parent = this.random.of(parents.slice(-2))
    if (parent === undefined || parent.children.length >= childrenMax) return
    const description = `child-${this.count++}`
    const request = this.keyed(parent.path, 202, bodyOf(description))
    parent.children.push({ request, description, removed: "no" })
    await request.attempt(url)
  }

  /** The repetition of a removed deposit gets the same response, and deposits nothing. */
  private async removeDeposit(url: string): Promise<void> {
    const deposits = this.mailboxes.flatMap(({ children }) => children)
    const child = this.random.of(deposits.filter(({ request }) => request.answer !== undefined))
    const path = child?.request.created
    if (child === undefined || path === undefined) return
    const request = { url, path, method: "DELETE", headers: asAdmin }
    const { answer, isSent } = await this.recorder.send(request)
    if (answer?.status === 204 || answer?.status === 410) child.removed = "yes"
    else if (isSent && child.removed === "no") child.removed = "maybe"
  }

  /** Expects every child once, but for those that were removed. */
  private async expectChildren(anywhere: () => string, parent: Parent): Promise<void> {
    const { children, listPath } = parent
    const listing = await eventually(answeredWithinMs, `${listPath} is listed`, async () => {
      const request = { url: anywhere(), path: `${listPath}?limit=1000`, headers: asAdmin }
      const { answer } = await this.recorder.send(request)
      return answer && expectStatus(answer, 200)
    }, repeatMs)
    const listed = parseXml(listing.text).children.flatMap((one) => {
      if (one.name === "receipt") return [childOf(one, "description").text]
      return one.name === "notification" ? [childOf(childOf(one, "item"), "description").text] : []
    })
    const maybe = children.flatMap(({ description, removed }) =>
      removed === "maybe" && !listed.includes(description) ? [description] : []
    )
    const expected = children.flatMap(({ description, removed }) =>
      removed === "yes" || maybe.includes(description) ? [] : [description]
    )
    expect(listed.toSorted(), `${listPath}: a keyed request was lost, or had two effects`)
      .toEqual(expected.toSorted())
  }
}

const receipt = (description: string): string =>
  `<receipt status="received"><description>${description}</description></receipt>`
