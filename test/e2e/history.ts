/**
 * A mix of client operations, and the state that a service must have afterwards, wherever its data
 * was moved. Without a complete response the outcome of an operation is indeterminate.
 */
import { type Answer, asAdmin, basic, childOf, expectStatus, linkOf, type Listed, listMailbox,
  type Mailbox, mailboxOf, notification, parseXml, pathOf, postXml, putXml, send,
  sha256 } from "./client.ts"

type Outcome = "acknowledged" | "unknown"

interface Deposit {
  readonly description: string
  readonly startMs: number
  endMs: number
  /** Path of the stored notification, once a response contained it. */
  path: string | undefined
  removed: Outcome | undefined
}

interface Box {
  readonly mailbox: Mailbox
  readonly deposits: Array<Deposit>
}

interface Content {
  readonly path: string
  readonly editPath: string
  /** SHA-256 of every possible body; several after an indeterminate overwrite. */
  bodies: ReadonlyArray<string>
  removed: Outcome | undefined
}

interface Session {
  readonly path: string
  /** By step: the acknowledged answer, and answers with an indeterminate outcome. */
  readonly answers: Map<string, { readonly text: string; readonly outcome: Outcome }>
}

/** A keyed request, with or without a response: a repetition must have the same response. */
interface Keyed {
  readonly path: string
  readonly body: string
  readonly key: string
  readonly headers: Readonly<Record<string, string>>
  answer: Answer | undefined
}

const fail = (text: string): never => {
  throw new Error(text)
}

/** Client operations on several services one after the other, recorded. */
export class History {
  readonly boxes: Array<Box> = []
  readonly contents: Array<Content> = []
  readonly sessions: Array<Session> = []
  readonly keyed: Array<Keyed> = []
  acknowledged = 0
  unknown = 0

  /** The response, or undefined without a complete one. */
  private async tried(request: Promise<Answer>): Promise<Answer | undefined> {
    try {
      const answer = await request
      // A stopping or starting service refuses requests: such a response means no effect.
      if (answer.status >= 500) throw new Error(`${answer.status}: ${answer.text}`)
      this.acknowledged += 1
      return answer
    } catch (error) {
      if (error instanceof Error && /^5\d\d: /.test(error.message)) throw error
      this.unknown += 1
      return undefined
    }
  }

  async open(base: string, name: string): Promise<Box | undefined> {
    const document = `<mailbox><name>${name}</name></mailbox>`
    const answer = await this.tried(postXml(base, "/mailboxes", document, asAdmin))
    if (answer === undefined) return undefined
    const box = { mailbox: mailboxOf(expectStatus(answer, 201)), deposits: [] }
    this.boxes.push(box)
    return box
  }

  /** Deposits; with a key when `isKeyed`. */
  async deposit(base: string, box: Box, description: string, isKeyed = false): Promise<void> {
    const startMs = performance.now()
    const done: Deposit = {
      description,
      startMs,
      endMs: Infinity,
      path: undefined,
      removed: undefined
    }
    box.deposits.push(done)
    const { path } = box.mailbox
    const document = notification(description)
    const answer = isKeyed
      ? await this.once(base, path, document, description)
      : await this.tried(postXml(base, path, document))
    if (answer === undefined) return
    done.endMs = performance.now()
    done.path = pathOf(expectStatus(answer, 202).headers.get("location"))
  }

  async remove(base: string, box: Box): Promise<void> {
    const stored = box.deposits.find(({ path, removed }) =>
      path !== undefined && removed === undefined
    )
    if (stored?.path === undefined) return
    stored.removed = "unknown"
    const headers = { authorization: basic("reader", box.mailbox.password) }
    const answer = await this.tried(send(base, stored.path, { method: "DELETE", headers }))
    if (answer === undefined) return
    expectStatus(answer, 204)
    stored.removed = "acknowledged"
  }

  async publish(base: string, body: Uint8Array): Promise<Content | undefined> {
    const headers = { "content-type": "application/octet-stream" }
    const answer = await this.tried(send(base, "/content", { method: "POST", body, headers }))
    if (answer === undefined) return undefined
    const content = {
      path: pathOf(expectStatus(answer, 202).headers.get("location")),
      editPath: linkOf(answer, "edit"),
      bodies: [sha256(body)],
      removed: undefined
    }
    this.contents.push(content)
    return content
  }

  async overwrite(base: string, content: Content, body: Uint8Array): Promise<void> {
    const before = content.bodies
    content.bodies = [...before, sha256(body)]
    const answer = await this.tried(send(base, content.editPath, { method: "PUT", body }))
    if (answer === undefined) return
    expectStatus(answer, 200, 204)
    content.bodies = [sha256(body)]
  }

  async unpublish(base: string, content: Content): Promise<void> {
    content.removed = "unknown"
    const answer = await this.tried(send(base, content.editPath, { method: "DELETE" }))
    if (answer === undefined) return
    expectStatus(answer, 204)
    content.removed = "acknowledged"
  }

  async begin(base: string): Promise<Session | undefined> {
    const answer = await this.tried(
      postXml(base, "/sessions", `<answer continue="true">I am not afraid.</answer>`)
    )
    if (answer === undefined) return undefined
    const path = pathOf(expectStatus(answer, 201).headers.get("location"))
    const session = { path, answers: new Map() }
    this.sessions.push(session)
    return session
  }

  /** Whether the session continues. */
  async answer(base: string, session: Session, step: string, text: string): Promise<boolean> {
    session.answers.set(step, { text, outcome: "unknown" })
    const answer = await this.tried(
      putXml(base, `${session.path}/${step}`, `<answer>${text}</answer>`)
    )
    if (answer === undefined) return false
    expectStatus(answer, 201)
    session.answers.set(step, { text, outcome: "acknowledged" })
    return true
  }

  async once(
    base: string,
    path: string,
    body: string,
    key: string
  ): Promise<Answer | undefined> {
    const headers = { ...asAdmin, "idempotency-key": `"${key}"` }
    const one: Keyed = { path, body, key, headers, answer: undefined }
    this.keyed.push(one)
    one.answer = await this.tried(postXml(base, path, body, headers))
    return one.answer && expectStatus(one.answer, 201, 202)
  }

  /** Throws when something is missing, doubled, incomplete or out of order. */
  async verifyBox(base: string, { deposits, mailbox }: Box): Promise<void> {
    const listed = await listMailbox(base, mailbox)
    const at = new Map<string, Listed>()
    for (const entry of listed) {
      if (at.has(entry.description)) fail(`${mailbox.path}: ${entry.description} is there twice`)
      at.set(entry.description, entry)
    }
    const sent = new Map(deposits.map((one) => [one.description, one]))
    for (const { description, url } of listed) {
      if (!sent.has(description)) fail(`${mailbox.path}: nobody sent ${description}`)
      if (url !== `http://sender.test/${description}`) fail(`${description} is not whole: ${url}`)
    }
    for (const { description, path, removed } of deposits) {
      const found = at.get(description)
      if (path === undefined) continue
      if (removed === "acknowledged") {
        if (found !== undefined) fail(`${description} was deleted and is there again`)
      } else if (removed === undefined && found?.path !== path) {
        fail(`${mailbox.path}: ${description} was accepted as ${path}, is ${String(found?.path)}`)
      }
    }
    this.verifyOrder(listed, sent)
    const headers = { authorization: basic("reader", mailbox.password) }
    const gone = deposits.filter(({ removed }) => removed === "acknowledged").slice(-3)
    for (const { path = "" } of gone) expectStatus(await send(base, path, { headers }), 410)
  }

  /** If one was acknowledged before another was sent, it precedes the other. */
  private verifyOrder(listed: ReadonlyArray<Listed>, sent: ReadonlyMap<string, Deposit>): void {
    let laterEndedMs = Infinity
    for (const { description } of listed.toReversed()) {
      const one = sent.get(description)
      if (one === undefined) continue
      if (one.startMs > laterEndedMs) fail(`${description} precedes one accepted earlier`)
      laterEndedMs = Math.min(laterEndedMs, one.endMs)
    }
  }

  async verifyContent(base: string, content: Content): Promise<void> {
    const answer = await send(base, content.path)
    if (content.removed === "acknowledged") expectStatus(answer, 410)
    else if (content.removed === "unknown" && answer.status === 410) return
    else if (!content.bodies.includes(sha256(expectStatus(answer, 200).bytes))) {
      fail(`${content.path} has other bytes than were sent`)
    }
  }

  async verifySession(base: string, { answers, path }: Session): Promise<void> {
    const challenge = parseXml(expectStatus(await send(base, path), 200).text)
    for (const [step, { outcome, text }] of answers) {
      const recorded = await send(base, `${path}/${step}`)
      if (outcome === "unknown" && recorded.status === 404) continue
      const answer = parseXml(expectStatus(recorded, 200).text).text
      if (answer !== text) fail(`${path}/${step} is ${answer} instead of ${text}`)
      if (childOf(challenge, step).attributes["href"] !== `${path}/${step}`) {
        fail(`${path} does not link to its ${step}`)
      }
    }
  }
}
