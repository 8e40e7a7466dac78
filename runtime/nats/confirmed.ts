/**
 * Reads that are never older than their beginning. A server that was cut off believes for a while
 * that it leads, and a new leader may not have applied all yet: what either says of itself may be
 * old. A message that a majority has stored is not: whatever was acknowledged before it was sent
 * has a lower sequence. Each node writes one of its own into the stream, and counts only answers
 * of copies that have got as far. All reads that begin while one is under way share the next.
 */
import type { NatsApi } from "./connection.ts"
import { readMs } from "./limits.ts"
import { persist, resendUntilAnswered } from "./reader.ts"

/** A message of this node that a majority has stored. */
export interface ReadBarrier {
  readonly subject: string
  readonly seq: number
}

type Sending = Pick<NatsApi, "request">

interface Acknowledgement {
  readonly seq?: number
  readonly error?: { readonly description: string }
}

class Marks {
  private readonly sending: Sending
  private readonly subject: string
  private flying: Promise<ReadBarrier> | undefined
  private next: Promise<ReadBarrier> | undefined

  constructor(sending: Sending, subject: string) {
    this.sending = sending
    this.subject = subject
  }

  /** One that is sent from now on. */
  make(): Promise<ReadBarrier> {
    if (this.flying === undefined) return this.fly()
    this.next ??= this.flying.then(() => undefined, () => undefined).then(() => {
      this.next = undefined
      return this.fly()
    })
    return this.next
  }

  private fly(): Promise<ReadBarrier> {
    const flying = this.send().finally(() => {
      if (this.flying === flying) this.flying = undefined
    })
    this.flying = flying
    return flying
  }

  /** Any of several marks will do: one is sent again and again while nobody leads. */
  private send(): Promise<ReadBarrier> {
    const { subject } = this
    return persist(() =>
      resendUntilAnswered(async () => {
        const reply = await this.sending.request(subject, "", undefined, readMs)
        // The servers' own answer to a publish.
        const { error, seq } = JSON.parse(reply.string()) as Acknowledgement
        if (seq === undefined) throw new Error(`${subject}: ${error?.description}`)
        return { subject, seq }
      })
    )
  }
}

/** The marks of one node, of which each stream has one. */
export class ReadBarriers {
  private readonly sending: Sending
  private readonly node: string
  private readonly marks = new Map<string, Marks>()

  /** `node`: the connection's name; the mark is written over at each use. */
  constructor(sending: Sending, node: string) {
    this.sending = sending
    this.node = node.replace(/[^A-Za-z0-9_-]/g, "_")
  }

  of(stream: string): Promise<ReadBarrier> {
    const known = this.marks.get(stream)
    const subject = `$${stream.replace("_", ".")}._seen.${this.node}`
    const marks = known ?? new Marks(this.sending, subject)
    if (known === undefined) this.marks.set(stream, marks)
    return marks.make()
  }
}
