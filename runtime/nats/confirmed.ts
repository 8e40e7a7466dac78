/**
 * Reads that are never older than their beginning. A server that was cut off believes for a while
 * that it leads, and a new leader may not have applied all yet: what either says of itself may be
 * old. A message that a majority has stored is not: whatever was acknowledged before it was sent
 * has a lower sequence. Each node writes one of its own into the stream, and counts only answers
 * of copies that have got as far. All reads that begin while one is under way share the next.
 */
import type { NatsApi } from "./connection.ts"
import { GIVE_UP_MS, RETRY_MS } from "./limits.ts"
import { write } from "./wire.ts"

/** A message of this node that a majority has stored. */
export interface Confirmed {
  readonly subject: string
  readonly seq: number
}

type Sending = Pick<NatsApi, "request" | "send">

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

class Marks {
  private readonly sending: Sending
  private readonly subject: string
  private flying: Promise<Confirmed> | undefined
  private next: Promise<Confirmed> | undefined

  constructor(sending: Sending, subject: string) {
    this.sending = sending
    this.subject = subject
  }

  /** One that is sent from now on. */
  make(): Promise<Confirmed> {
    if (this.flying === undefined) return this.fly()
    this.next ??= this.flying.then(() => undefined, () => undefined).then(() => {
      this.next = undefined
      return this.fly()
    })
    return this.next
  }

  private fly(): Promise<Confirmed> {
    const flying = this.send().finally(() => {
      if (this.flying === flying) this.flying = undefined
    })
    this.flying = flying
    return flying
  }

  private async send(): Promise<Confirmed> {
    const untilMs = performance.now() + GIVE_UP_MS
    for (;;) {
      const { subject } = this
      const written = await write(this.sending, [{ subject, data: "", headers: "" }])
      if (written._tag === "Kept") return { subject, seq: written.first }
      if (performance.now() > untilMs) throw new Error(`${subject}: ${written.detail}`)
      await wait(RETRY_MS)
    }
  }
}

/** The marks of one node, of which each stream has one. */
export class Confirmations {
  private readonly sending: Sending
  private readonly node: string
  private readonly marks = new Map<string, Marks>()

  /** `node`: the connection's name; the mark is written over at each use. */
  constructor(sending: Sending, node: string) {
    this.sending = sending
    this.node = node.replace(/[^A-Za-z0-9_-]/g, "_")
  }

  of(stream: string): Promise<Confirmed> {
    const known = this.marks.get(stream)
    const subject = `$${stream.replace("_", ".")}._seen.${this.node}`
    const marks = known ?? new Marks(this.sending, subject)
    if (known === undefined) this.marks.set(stream, marks)
    return marks.make()
  }
}
