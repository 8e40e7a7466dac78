/** Asks of actors under way, with an inbox of their own: a message may have several answers. */
import { createInbox, type Msg, type NatsConnection } from "@nats-io/transport-node"
import { Effect } from "effect"
import { type Address, keyOf, subjectOf } from "../address.ts"
import { AskTimeout, NoOwner } from "../errors.ts"
import { AGAIN_MAX_MS, AGAIN_MS, NO_OWNER_RETRY_MS } from "./limits.ts"
import { headersText, isSaid, say } from "./moving.ts"
import { rawHeaders } from "./requests.ts"

export type AskFailed = NoOwner | AskTimeout

/** How the inboxes of nodes begin: their asks are told from those of other clients. */
const inboxes = "_INBOX.restante"

/** Whether a message with this reply subject was sent by a node. */
export const isOwnInbox = (reply: string | undefined): boolean =>
  reply?.startsWith(`${inboxes}.`) === true

interface Ask {
  readonly to: Address
  readonly data: Uint8Array
  /** Lines of headers that each copy bears. */
  readonly headerLines: string
  readonly deadlineMs: number
  readonly end: (result: Effect.Effect<string, AskFailed>) => void
  readonly deadline: NodeJS.Timeout
  again: NodeJS.Timeout | undefined
  copies: number
  /** An owner has it: it is not sent again. */
  taken: boolean
  /** Whether the last word on it was that nobody has it. */
  refused: boolean
}

/** 503 without content: the server says that nobody has subscribed. */
const isNoResponders = ({ data, headers }: Msg): boolean =>
  data.length === 0 && headers?.code === 503

export class Asks {
  private readonly nc: NatsConnection
  private readonly inbox = createInbox(inboxes)
  private readonly pending = new Map<string, Ask>()
  private count = 0

  constructor(nc: NatsConnection) {
    this.nc = nc
    const tokenAt = this.inbox.length + 1
    nc.subscribe(`${this.inbox}.*`, {
      callback: (error, reply) => {
        if (error === null) this.take(reply.subject.slice(tokenAt), reply)
      }
    })
  }

  ask(
    to: Address,
    data: Uint8Array,
    headerLines: string,
    deadlineMs: number
  ): Effect.Effect<string, AskFailed> {
    return Effect.callback((resume) => {
      const token = (this.count++).toString(36)
      const deadline = setTimeout(() => this.late(token), deadlineMs)
      this.pending.set(token, {
        to,
        data,
        headerLines,
        deadlineMs,
        end: resume,
        deadline,
        again: undefined,
        copies: 0,
        taken: false,
        refused: false
      })
      this.send(token)
      return Effect.sync(() => void this.forget(token))
    })
  }

  private send(token: string): void {
    const ask = this.pending.get(token)
    if (ask === undefined) return
    const lines = ask.headerLines + (ask.copies > 0 ? say("again") : "")
    ask.copies++
    ask.refused = false
    ask.again = undefined
    const reply = `${this.inbox}.${token}`
    try {
      const headers = lines === "" ? {} : { headers: rawHeaders(headersText(lines)) }
      this.nc.publish(subjectOf(ask.to), ask.data, { reply, ...headers })
    } catch {
      // The connection is closed: this copy went nowhere.
      this.nobody(token, ask)
    }
  }

  private take(token: string, reply: Msg): void {
    const ask = this.pending.get(token)
    if (ask === undefined) return
    if (isNoResponders(reply)) return this.nobody(token, ask)
    const { headers } = reply
    if (isSaid("taken", headers)) ask.taken = true
    else if (isSaid("moved", headers)) this.sendAgain(token, ask)
    else this.end(token, Effect.succeed(reply.string()))
  }

  /** Nobody is there. When an owner may have had a copy before, it is waited for all the same. */
  private nobody(token: string, ask: Ask): void {
    if (ask.copies > 1) this.sendAgain(token, ask)
    else this.end(token, Effect.fail(this.noOwner(ask)))
  }

  private sendAgain(token: string, ask: Ask): void {
    ask.refused = true
    if (ask.taken || ask.again !== undefined) return
    const delayMs = Math.min(AGAIN_MS * 2 ** (ask.copies - 1), AGAIN_MAX_MS)
    ask.again = setTimeout(() => this.send(token), delayMs)
  }

  private late(token: string): void {
    const ask = this.pending.get(token)
    if (ask === undefined) return
    const { deadlineMs, refused, taken, to } = ask
    const failure = refused && !taken
      ? this.noOwner(ask)
      : new AskTimeout({ key: keyOf(to), deadlineMs })
    this.end(token, Effect.fail(failure))
  }

  private end(token: string, result: Effect.Effect<string, AskFailed>): void {
    this.forget(token)?.end(result)
  }

  private forget(token: string): Ask | undefined {
    const ask = this.pending.get(token)
    if (ask === undefined) return
    this.pending.delete(token)
    clearTimeout(ask.deadline)
    clearTimeout(ask.again)
    return ask
  }

  private noOwner({ to }: Ask): NoOwner {
    return new NoOwner({ key: keyOf(to), retryAfterMs: NO_OWNER_RETRY_MS })
  }
}
