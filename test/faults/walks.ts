/** Clients of sessions, and clients that publish content. */
import { createHash } from "node:crypto"
import { type Answer, linkOf, parseXml, pathOf, sha256 } from "../e2e/client.ts"
import { eventually } from "../e2e/process.ts"
import { type SessionOutput, type SessionStep, sessionSteps } from "../histories/models/session.ts"
import type { StoredOutput } from "../histories/models/stored.ts"
import { KeyedRequest } from "./keyed.ts"
import type { Random } from "./random.ts"
import { byStatus, type Recorder } from "./recorder.ts"

const settledWithinMs = 60_000
const pollMs = 500

/** Recent resources that clients read again. */
const recent = 8

const gone = (): { readonly _tag: "Gone" } => ({ _tag: "Gone" })

const sessionOutput = (answer: Answer): SessionOutput =>
  byStatus<SessionOutput>(answer, {
    200: () => {
      const challenge = parseXml(answer.text)
      const textAt = (name: string) =>
        challenge.children.find((child) => child.name === name)?.text ?? ""
      const step = sessionSteps.find((one) => textAt("uri").endsWith(`/${one}`))
      const end = textAt("p") === "Right. Off you go." ? "crossed" : "cast"
      const links = sessionSteps.filter((one) =>
        challenge.children.some(({ attributes, name }) => name === one && attributes["href"])
      )
      const answered = step === undefined ? sessionSteps.length : sessionSteps.indexOf(step)
      if (links.length !== answered) throw new Error(`links to ${links.join(", ")} only`)
      return { _tag: "Shown", status: step ?? end }
    },
    404: gone,
    410: gone
  })

const answered = (answer: Answer): SessionOutput =>
  byStatus<SessionOutput>(answer, {
    201: () => ({ _tag: "Recorded" }),
    200: () => ({ _tag: "Overwritten" }),
    406: () => ({ _tag: "Cast" }),
    409: () => ({ _tag: "TooEarly" }),
    405: () => ({ _tag: "Over" }),
    404: gone,
    410: gone
  })

export class Walks {
  readonly paths: Array<string> = []
  private readonly recorder: Recorder
  private readonly random: Random
  private count = 0

  constructor(recorder: Recorder, random: Random) {
    this.recorder = recorder
    this.random = random
  }

  /** Runs a whole session, with each step at another node. */
  async walk(client: string, anywhere: () => string): Promise<void> {
    const start = performance.now()
    const body = `<answer continue="true">I am not afraid.</answer>`
    const begun = await this.recorder.ask({
      url: anywhere(),
      path: "/sessions",
      method: "POST",
      body
    })
    if (begun.answer?.status !== 201) return
    const path = pathOf(begun.answer.headers.get("location"))
    this.recorder.histories.sessions.push({
      client,
      resource: path,
      input: { kind: "begin" },
      output: { _tag: "Begun" },
      start,
      end: begun.end,
      outcome: "ok"
    })
    this.paths.push(path)
    await this.answer(client, anywhere(), path, "name")
    if (this.random.below(3) === 0) await this.answer(client, anywhere(), path, "hard_question")
    // Two concurrent requests, one of which overwrites the other.
    if (this.random.below(3) === 0) {
      await Promise.all([
        this.answer(client, anywhere(), path, "name"),
        this.answer(`${client}b`, anywhere(), path, "quest")
      ])
    } else await this.answer(client, anywhere(), path, "quest")
    await this.show(client, anywhere(), path)
    if (this.random.below(5) > 0) {
      await Promise.all([
        this.answer(client, anywhere(), path, "hard_question"),
        this.answer(`${client}b`, anywhere(), path, "quest")
      ])
    }
    if (this.random.below(6) === 0) await this.remove(client, anywhere(), path)
  }

  /** Reads one of the last sessions, of any client. */
  async inspect(client: string, url: string): Promise<void> {
    const path = this.random.of(this.paths.slice(-recent))
    if (path !== undefined) await this.show(client, url, path)
  }

  async show(client: string, url: string, resource: string): Promise<void> {
    const { histories } = this.recorder
    const operation = { client, resource, input: { kind: "show" as const } }
    await this.recorder.operate(
      histories.sessions,
      operation,
      { url, path: resource },
      sessionOutput
    )
    const step = this.random.of(sessionSteps) ?? "name"
    const input = { kind: "recorded" as const, step }
    const path = `${resource}/${step}`
    await this.recorder.operate(
      histories.sessions,
      { client, resource, input },
      { url, path },
      (answer) =>
        byStatus<SessionOutput>(answer, {
          200: () => ({ _tag: "Answer", text: parseXml(answer.text).text }),
          404: gone,
          410: gone
        })
    )
  }

  private async answer(
    client: string,
    url: string,
    resource: string,
    step: SessionStep
  ): Promise<void> {
    const colours = ["blue", "blue. No, yellow"]
    const text = step === "hard_question"
      ? this.random.of(colours) ?? ""
      : `Galahad ${this.count++}`
    const input = { kind: "answer" as const, step, text }
    const body = `<answer>${text}</answer>`
    const request = { url, path: `${resource}/${step}`, method: "PUT", body }
    const { sessions } = this.recorder.histories
    await this.recorder.operate(sessions, { client, resource, input }, request, answered)
  }

  private async remove(client: string, url: string, resource: string): Promise<void> {
    const request = { url, path: resource, method: "DELETE" }
    const operation = { client, resource, input: { kind: "delete" as const } }
    await this.recorder.operate(
      this.recorder.histories.sessions,
      operation,
      request,
      (answer) =>
        byStatus<SessionOutput>(answer, {
          204: () => ({ _tag: "Deleted" }),
          404: gone,
          410: gone
        })
    )
  }
}

interface Content {
  readonly path: string
  readonly editPath: string
}

const doneOrGone = {
  200: (): StoredOutput => ({ _tag: "Done" }),
  204: (): StoredOutput => ({ _tag: "Done" }),
  404: gone,
  410: gone
}

interface Publication {
  readonly client: string
  readonly request: KeyedRequest
  readonly value: string
}

export class Contents {
  readonly all: Array<Content> = []
  /** Publications without a response: they are repeated until there is one. */
  private pending: Array<Publication> = []
  private readonly recorder: Recorder
  private readonly random: Random
  private count = 0

  constructor(recorder: Recorder, random: Random) {
    this.recorder = recorder
    this.random = random
  }

  async act(client: string, url: string): Promise<void> {
    const content = this.random.of(this.all.slice(-recent))
    const turn = this.random.below(10)
    const [pending] = this.pending
    if (pending !== undefined && turn < 2) await this.attempt(url, pending)
    else if (content === undefined || turn < 3) await this.publish(client, url)
    else if (turn < 7) await this.read(client, url, content)
    else if (turn < 9) await this.overwrite(client, url, content)
    else await this.remove(client, url, content)
  }

  async read(client: string, url: string, { path }: Content): Promise<void> {
    const operation = { client, resource: path, input: { kind: "read" as const } }
    await this.recorder.operate(
      this.recorder.histories.contents,
      operation,
      { url, path },
      (answer) =>
        byStatus<StoredOutput>(answer, {
          200: () => ({ _tag: "Found", value: sha256(answer.bytes) }),
          404: gone,
          410: gone
        })
    )
  }

  /** Repeats every publication that has no response. */
  async settle(anywhere: () => string): Promise<void> {
    for (const publication of [...this.pending]) {
      await eventually(
        settledWithinMs,
        "a publication is repeated",
        async () => await this.attempt(anywhere(), publication) || undefined,
        pollMs
      )
    }
  }

  /** Reproducible bytes; the sizes are on both sides of the limit for blobs in the database. */
  private bytes(): Buffer {
    const n = this.count++
    const block = createHash("sha512").update(`${this.random.seed} ${n}`).digest()
    return Buffer.alloc(n % 3 === 0 ? 65_537 + this.random.below(60_000) : 2_000, block)
  }

  private async publish(client: string, url: string): Promise<void> {
    const body = this.bytes()
    const request = new KeyedRequest(
      this.recorder,
      `${this.random.seed} content ${this.count}`,
      202,
      { path: "/content", body, headers: { "content-type": "application/octet-stream" } }
    )
    const publication = { client, request, value: sha256(body) }
    this.pending.push(publication)
    await this.attempt(url, publication)
  }

  /** The first response ends a publication, which begins with the first attempt. */
  private async attempt(url: string, publication: Publication): Promise<boolean> {
    const { client, request, value } = publication
    if (!await request.attempt(url)) return false
    this.pending = this.pending.filter((one) => one !== publication)
    const { answer, created, end, start } = request
    if (answer === undefined || created === undefined || start === undefined) return false
    this.all.push({ path: created, editPath: linkOf(answer, "edit") })
    this.recorder.histories.contents.push({
      client,
      resource: created,
      input: { kind: "publish", value },
      output: { _tag: "Done" },
      start,
      end,
      outcome: "ok"
    })
    return true
  }

  private async overwrite(client: string, url: string, content: Content): Promise<void> {
    const body = this.bytes()
    const input = { kind: "overwrite" as const, value: sha256(body) }
    const request = { url, path: content.editPath, method: "PUT", body }
    const operation = { client, resource: content.path, input }
    await this.recorder.operate(
      this.recorder.histories.contents,
      operation,
      request,
      (answer) => byStatus(answer, doneOrGone)
    )
  }

  private async remove(client: string, url: string, content: Content): Promise<void> {
    const request = { url, path: content.editPath, method: "DELETE" }
    const operation = { client, resource: content.path, input: { kind: "remove" as const } }
    await this.recorder.operate(
      this.recorder.histories.contents,
      operation,
      request,
      (answer) => byStatus(answer, doneOrGone)
    )
  }
}
