/** Requests with an Idempotency-Key, which clients repeat at the end: none has a second effect. */
import { expect } from "vitest"
import { type Answer, asAdmin, expectStatus } from "../e2e/client.ts"
import { eventually } from "../e2e/process.ts"
import type { Random } from "./random.ts"
import type { Recorder } from "./recorder.ts"

const answeredWithinMs = 120_000
const repeatMs = 500

interface Keyed {
  readonly path: string
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
  readonly answer: Answer | undefined
}

export class KeyedRequests {
  private readonly all: Array<Keyed> = []
  private readonly recorder: Recorder
  private readonly random: Random
  private count = 0

  constructor(recorder: Recorder, random: Random) {
    this.recorder = recorder
    this.random = random
  }

  async act(url: string): Promise<void> {
    const key = `k${this.count++}`
    const [path, body] = this.random.below(2) === 0
      ? ["/mailboxes", `<mailbox><name>${key}</name></mailbox>`]
      : ["/sessions", `<answer continue="true">${key}</answer>`]
    const headers = { ...asAdmin, "idempotency-key": `"${this.random.seed} ${key}"` }
    const { answer } = await this.recorder.ask({ url, path, method: "POST", body, headers })
    if (answer !== undefined) expectStatus(answer, 201)
    this.all.push({ path, body, headers, answer })
  }

  /**
   * Repeats every request at any node. The response is the same as before; a request without a
   * response has created one resource. A crash reserves its key for a minute, which must be over.
   */
  async repeat(anywhere: () => string): Promise<number> {
    const made = new Set<string>()
    for (const { answer, body, headers, path } of this.all) {
      const request = () => ({ url: anywhere(), path, method: "POST", body, headers })
      const again = await eventually(answeredWithinMs, `${path} may be repeated`, async () => {
        const { answer: one } = await this.recorder.ask(request())
        return one === undefined || one.status === 409 ? undefined : expectStatus(one, 201)
      }, repeatMs)
      const location = again.headers.get("location") ?? ""
      expect(made, "a key made something of another key").not.toContain(location)
      made.add(location)
      if (answer === undefined) continue
      expect(location).toBe(answer.headers.get("location"))
      expect(again.text).toBe(answer.text)
    }
    return made.size
  }
}
