/**
 * Read barriers: reads that are never older than their beginning. A server that was cut off
 * believes for a while that it leads, and a new leader may not have applied everything; what
 * either reports of itself may be old. A message that a majority has stored proves more: whatever
 * was acknowledged before it was sent has a lower sequence (the read index of Raft, section 6.4).
 * So a node writes its own message into the stream, and counts only answers of replicas that have
 * reached it.
 */
import { readTimeoutMs } from "../../limits.ts"
import type { Requests } from "./requests.ts"
import { resendUntilAnswered, retryUntilDeadline } from "./retries.ts"

/** A message of this node that a majority has stored. */
export interface ReadBarrier {
  readonly subject: string
  readonly seq: number
}

interface Acknowledgement {
  readonly seq?: number
  readonly error?: { readonly description: string }
}

/** One operation at a time: all who call while it runs share the next run. */
export class SharedCall<A> {
  private readonly operation: () => Promise<A>
  private running: Promise<A> | undefined
  private next: Promise<A> | undefined

  constructor(operation: () => Promise<A>) {
    this.operation = operation
  }

  /** The result of a run that begins after this call. */
  call(): Promise<A> {
    if (this.running === undefined) return this.run()
    this.next ??= this.running.then(() => undefined, () => undefined).then(() => {
      this.next = undefined
      return this.run()
    })
    return this.next
  }

  private run(): Promise<A> {
    const running = this.operation().finally(() => {
      if (this.running === running) this.running = undefined
    })
    this.running = running
    return running
  }
}

/** The barriers of one node, a subject in each stream. */
export class ReadBarriers {
  private readonly requests: Pick<Requests, "request">
  private readonly node: string
  private readonly byStream = new Map<string, SharedCall<ReadBarrier>>()

  /** `node`: the connection's name; each barrier replaces the last one of this name. */
  constructor(requests: Pick<Requests, "request">, node: string) {
    this.requests = requests
    this.node = node.replace(/[^A-Za-z0-9_-]/g, "_")
  }

  /** A barrier that is sent after this call. */
  create(stream: string): Promise<ReadBarrier> {
    const known = this.byStream.get(stream)
    if (known !== undefined) return known.call()
    const subject = `$${stream.replace("_", ".")}._seen.${this.node}`
    const barriers = new SharedCall(() => this.write(subject))
    this.byStream.set(stream, barriers)
    return barriers.call()
  }

  /** Writes several while the stream has no leader; any of them will do. */
  private write(subject: string): Promise<ReadBarrier> {
    return retryUntilDeadline(() =>
      resendUntilAnswered(async () => {
        const reply = await this.requests.request(subject, "", undefined, readTimeoutMs)
        // The server's own answer to a publish.
        const { error, seq } = JSON.parse(reply.string()) as Acknowledgement
        if (seq === undefined) throw new Error(`${subject}: ${error?.description}`)
        return { subject, seq }
      })
    )
  }
}
