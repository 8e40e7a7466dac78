/** Requests over one inbox of the connection's own, and headers that are sent as they are. */
import { createInbox, type Msg, type MsgHdrs, type NatsConnection } from "@nats-io/transport-node"
import { isNoResponders } from "./inboxes.ts"
import { requestSweepMs } from "./limits.ts"

/** No reply: whether the message arrived is unknown, unless nobody was there to take it. */
export class NoReply extends Error {
  readonly reason: "timeout" | "no responders" | "closed"

  constructor(subject: string, reason: NoReply["reason"]) {
    super(`${subject}: ${reason}`)
    this.reason = reason
  }
}

/** Encoded headers; the connection asks nothing of headers but their bytes. */
export class RawHeaders {
  private readonly bytes: Buffer

  constructor(text: string) {
    this.bytes = Buffer.from(text, "latin1")
  }

  encode(): Uint8Array {
    return this.bytes
  }
}

/** As the client's own type; see {@link RawHeaders}. */
export const rawHeaders = (text: string): MsgHdrs =>
  // The connection calls `encode` and nothing else of what it publishes.
  new RawHeaders(text) as unknown as MsgHdrs

interface Waiting {
  readonly subject: string
  readonly untilMs: number
  /** Takes a reply; whether it was the last one. */
  readonly take: (reply: Msg) => boolean
  readonly reject: (reason: NoReply) => void
}

export class Requests {
  private readonly nc: NatsConnection
  private readonly inbox = createInbox()
  private readonly waiting = new Map<string, Waiting>()
  private readonly sweep: NodeJS.Timeout
  private count = 0

  constructor(nc: NatsConnection) {
    this.nc = nc
    const tokenAt = this.inbox.length + 1
    nc.subscribe(`${this.inbox}.*`, {
      callback: (error, reply) => {
        if (error === null) this.take(reply.subject.slice(tokenAt), reply)
      }
    })
    this.sweep = setInterval(() => this.expire(), requestSweepMs)
    this.sweep.unref()
    void nc.closed().then(() => {
      clearInterval(this.sweep)
      this.endAll("closed")
    })
  }

  request(
    subject: string,
    data: Uint8Array | string,
    headersText: string | undefined,
    timeoutMs: number
  ): Promise<Msg> {
    return new Promise((resolve, reject) => {
      this.ask(subject, data, headersText, timeoutMs, reject, (reply) => {
        resolve(reply)
        return true
      })
    })
  }

  /** All replies up to the one that has a status, which comes last. */
  replies(subject: string, data: string, timeoutMs: number): Promise<ReadonlyArray<Msg>> {
    return new Promise((resolve, reject) => {
      const replies: Array<Msg> = []
      this.ask(subject, data, undefined, timeoutMs, reject, (reply) => {
        replies.push(reply)
        const isLast = (reply.headers?.code ?? 0) !== 0
        if (isLast) resolve(replies)
        return isLast
      })
    })
  }

  private ask(
    subject: string,
    data: Uint8Array | string,
    headersText: string | undefined,
    timeoutMs: number,
    reject: (reason: Error) => void,
    take: Waiting["take"]
  ): void {
    const token = (this.count++).toString(36)
    if (this.nc.isClosed()) {
      reject(new NoReply(subject, "closed"))
      return
    }
    const untilMs = performance.now() + timeoutMs
    this.waiting.set(token, { subject, untilMs, take, reject })
    try {
      const reply = `${this.inbox}.${token}`
      this.nc.publish(
        subject,
        data,
        headersText === undefined ? { reply } : { reply, headers: rawHeaders(headersText) }
      )
    } catch (error) {
      this.waiting.delete(token)
      // The client throws only Errors: a payload too large, a connection that is closing.
      reject(error as Error)
    }
  }

  private take(token: string, reply: Msg): void {
    const waiting = this.waiting.get(token)
    if (waiting === undefined) return
    if (isNoResponders(reply)) {
      this.waiting.delete(token)
      waiting.reject(new NoReply(waiting.subject, "no responders"))
    } else if (waiting.take(reply)) this.waiting.delete(token)
  }

  /** Time limits differ, so all are looked at; there are few that wait so long. */
  private expire(): void {
    const nowMs = performance.now()
    for (const [token, waiting] of this.waiting) {
      if (waiting.untilMs > nowMs) continue
      this.waiting.delete(token)
      waiting.reject(new NoReply(waiting.subject, "timeout"))
    }
  }

  private endAll(reason: NoReply["reason"]): void {
    for (const waiting of this.waiting.values()) {
      waiting.reject(new NoReply(waiting.subject, reason))
    }
    this.waiting.clear()
  }
}
