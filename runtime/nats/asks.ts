/**
 * Asks of actors under way, with an inbox of their own: a message may have several answers. Who
 * asks says which node may decide on a message of which there are several copies (`moving.ts`).
 */
import { createInbox, type Msg, type MsgHdrs, type NatsConnection } from "@nats-io/transport-node"
import { Effect } from "effect"
import { type Address, keyOf, subjectOf } from "../address.ts"
import { AskTimeout, NoOwner } from "../errors.ts"
import { inboxes, isNoResponders } from "./inboxes.ts"
import { AGAIN_MAX_MS, AGAIN_MS, NO_OWNER_RETRY_MS, UNHEARD_MS } from "./limits.ts"
import { headersText, isSaid, nodeHeader, saidBy, say } from "./moving.ts"
import { rawHeaders } from "./requests.ts"

export type AskFailed = NoOwner | AskTimeout

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
  /** The node that has it, or may: it is granted to no other, and not sent again. */
  holder: string | undefined
  /** A node has said that its shard moves: from then on nobody decides on it unasked. */
  moves: boolean
}

export class Asks {
  private readonly nc: NatsConnection
  private readonly inbox = createInbox(inboxes)
  private readonly pending = new Map<string, Ask>()
  private readonly granted: MsgHdrs
  private readonly refused: MsgHdrs
  private count = 0

  constructor(nc: NatsConnection, node: string) {
    this.nc = nc
    this.granted = saidBy(node, "granted")
    this.refused = saidBy(node, "refused")
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
        holder: undefined,
        moves: false
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
    const reply = `${this.inbox}.${token}`
    try {
      const headers = lines === "" ? {} : { headers: rawHeaders(headersText(lines)) }
      this.nc.publish(subjectOf(ask.to), ask.data, { reply, ...headers })
    } catch {
      // The connection is closed: this copy went nowhere.
      return this.nobody(token, ask)
    }
    // A copy may be lost where servers still think that its last owner is there.
    if (ask.moves) this.sendIn(token, ask, UNHEARD_MS)
  }

  private take(token: string, reply: Msg): void {
    const ask = this.pending.get(token)
    const { headers } = reply
    if (isSaid("wanted", headers)) return this.wanted(ask, reply)
    if (ask === undefined) return
    if (isNoResponders(reply)) return this.nobody(token, ask)
    const node = headers?.get(nodeHeader)
    if (isSaid("taken", headers)) this.hold(ask, ask.holder ?? node)
    else if (isSaid("moved", headers)) {
      if (ask.holder === undefined || ask.holder === node) this.sendAgain(token, ask)
    } else this.end(token, Effect.succeed(reply.string()))
  }

  /** A node would decide on it: the first one may. */
  private wanted(ask: Ask | undefined, question: Msg): void {
    const may = ask !== undefined && ask.holder === undefined
    if (may) this.hold(ask, question.headers?.get(nodeHeader))
    try {
      question.respond("", { headers: may ? this.granted : this.refused })
    } catch {
      // The connection closes: it hears nothing, and decides nothing.
    }
  }

  private hold(ask: Ask, node: string | undefined): void {
    ask.holder = node
    clearTimeout(ask.again)
    ask.again = undefined
  }

  /** Nobody is there. When an owner may have had a copy before, it is waited for all the same. */
  private nobody(token: string, ask: Ask): void {
    if (ask.holder !== undefined) return
    if (ask.moves) this.sendAgain(token, ask)
    else this.end(token, Effect.fail(this.noOwner(ask)))
  }

  private sendAgain(token: string, ask: Ask): void {
    ask.holder = undefined
    ask.moves = true
    this.sendIn(token, ask, Math.min(AGAIN_MS * 2 ** (ask.copies - 1), AGAIN_MAX_MS))
  }

  private sendIn(token: string, ask: Ask, delayMs: number): void {
    clearTimeout(ask.again)
    ask.again = setTimeout(() => this.send(token), delayMs)
  }

  private late(token: string): void {
    const ask = this.pending.get(token)
    if (ask === undefined) return
    const { deadlineMs, holder, moves, to } = ask
    const failure = moves && holder === undefined
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
