/** Clients that publish content with a key, overwrite it, read it and remove it. */
import { createHash } from "node:crypto"
import { linkOf, sha256 } from "../../e2e/client.ts"
import { eventually } from "../../e2e/process.ts"
import type { StoredOutput } from "../../histories/models/stored.ts"
import type { Random } from "../random.ts"
import { byStatus, done, gone, type Recorder } from "../recorder.ts"
import { KeyedRequest } from "./keyed-requests.ts"

const answeredWithinMs = 60_000
const pollMs = 500
/** Recent contents that clients read again. */
const recent = 8

interface Content {
  readonly path: string
  readonly editPath: string
}

const doneOrGone = {
  200: done,
  204: done,
  404: gone,
  410: gone
}

interface Publication {
  readonly client: string
  readonly request: KeyedRequest
  readonly value: string
}

export class ContentWorkload {
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

  async sendRandom(client: string, url: string): Promise<void> {
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
    await this.recorder.invoke(
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
  async repeatPending(anywhere: () => string): Promise<void> {
    for (const publication of [...this.pending]) {
      await eventually(
        answeredWithinMs,
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
    await this.recorder.invoke(
      this.recorder.histories.contents,
      operation,
      request,
      (answer) => byStatus<StoredOutput>(answer, doneOrGone)
    )
  }

  private async remove(client: string, url: string, content: Content): Promise<void> {
    const request = { url, path: content.editPath, method: "DELETE" }
    const operation = { client, resource: content.path, input: { kind: "remove" as const } }
    await this.recorder.invoke(
      this.recorder.histories.contents,
      operation,
      request,
      (answer) => byStatus<StoredOutput>(answer, doneOrGone)
    )
  }
}
