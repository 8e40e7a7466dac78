/**
 * Asks of actors under way, with an inbox of their own: a message may have several answers. Who
 * asks says which node may decide on a message of which there are several copies (`moving.ts`).
 */
import { createInbox, type Msg, type MsgHdrs, type NatsConnection } from "@nats-io/transport-node"
import { Effect } from "effect"
import { type Address, AskTimeout, keyOf, NoOwner, subjectOf } from "../../actor/index.ts"
import { answeredKeepMs, lateReplyMs, movedResendMaxMs, movedResendMs, noOwnerRetryMs,
  resendAfterMs, silenceResendMs } from "../../limits.ts"
import { isNoResponders, nodeInboxPrefix, rawHeaders } from "../connection/index.ts"
import { headersText, isMarked, markedHeaders, markLine, nodeHeader, tenureInquiries, tenureOf,
  type TenureReport } from "./message-grants.ts"

export type AskFailed = NoOwner | AskTimeout

interface Ask {
  readonly to: Address
  readonly data: Uint8Array
  /** Lines of headers that each copy bears. */
  readonly headerLines: string
  readonly deadlineMs: number
  readonly sentMs: number
  readonly end: (result: Effect.Effect<string, AskFailed>) => void
  /** For the deadline, and before it to see whether anything was heard. */
  look: NodeJS.Timeout
  again: NodeJS.Timeout | undefined
  copies: number
  /** The node that has it, or may: it is granted to no other, and not sent again. */
  holder: string | undefined
  /** A node has said that its shard moves: from then on nobody decides on it unasked. */
  moves: boolean
  /** By their claims, the times that the shard was held and nobody decided on it. */
  told: Map<number, TenureOutcome> | undefined
}

interface TenureOutcome extends TenureReport {
  /** It began before the message was sent: no earlier one matters. */
  readonly isFirst: boolean
}

const toldOf = ({ sentMs }: Ask, holding: TenureReport): TenureOutcome => ({
  ...holding,
  isFirst: holding.forMs >= performance.now() - sentMs
})

export class PendingAsks {
  private readonly nc: NatsConnection
  private readonly inbox = createInbox(nodeInboxPrefix)
  private readonly pending = new Map<string, Ask>()
  private readonly granted: MsgHdrs
  private readonly refused: MsgHdrs
  private count = 0

  constructor(nc: NatsConnection, node: string) {
    this.nc = nc
    this.granted = markedHeaders(node, "granted")
    this.refused = markedHeaders(node, "refused")
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
      const look = setTimeout(() => this.look(token), Math.min(silenceResendMs, deadlineMs))
      this.pending.set(token, {
        to,
        data,
        headerLines,
        deadlineMs,
        sentMs: performance.now(),
        end: resume,
        look,
        again: undefined,
        copies: 0,
        holder: undefined,
        moves: false,
        told: undefined
      })
      this.send(token)
      return Effect.sync(() => void this.forget(token))
    })
  }

  private send(token: string): void {
    const ask = this.pending.get(token)
    if (ask === undefined) return
    const lines = ask.headerLines + (ask.copies > 0 ? markLine("again") : "")
    ask.copies++
    ask.again = undefined
    const reply = `${this.inbox}.${token}`
    try {
      const headers = lines === "" ? {} : { headers: rawHeaders(headersText(lines)) }
      this.nc.publish(subjectOf(ask.to), ask.data, { reply, ...headers })
    } catch {
      // The connection is closed: this copy went nowhere.
      return this.nobody(token, ask)
    }
    // A copy may be lost where servers still think that its last owner is there.
    if (ask.moves) this.sendIn(token, ask, resendAfterMs)
  }

  private take(token: string, reply: Msg): void {
    const ask = this.pending.get(token)
    const { headers } = reply
    if (isMarked("wanted", headers)) return this.wanted(token, ask, reply)
    if (ask === undefined) return
    if (isNoResponders(reply)) return this.nobody(token, ask)
    const node = headers?.get(nodeHeader)
    if (isMarked("taken", headers)) this.hold(ask, ask.holder ?? node)
    else if (isMarked("answered", headers)) this.answered(token, ask, node)
    else if (isMarked("gone", headers)) this.gone(token, ask, tenureOf(headers))
    else if (isMarked("moved", headers)) {
      if (ask.holder !== undefined && ask.holder !== node) return
      // Of a copy that nobody had asked for it tells no more than that this node has not decided.
      const tellsAll = ask.moves || ask.holder === node || ask.copies === 1
      if (tellsAll) this.sendAgain(token, ask)
      else this.gone(token, ask, tenureOf(headers))
    } else this.end(token, Effect.succeed(reply.string()))
  }

  /** A node would decide on it: the first one may that is the only one. */
  private wanted(token: string, ask: Ask | undefined, question: Msg): void {
    const may = ask !== undefined && ask.holder === undefined &&
      (ask.moves || ask.copies === 1 || this.isSole(token, ask, tenureOf(question.headers)))
    if (may) this.hold(ask, question.headers?.get(nodeHeader))
    try {
      question.respond("", { headers: may ? this.granted : this.refused })
    } catch {
      // The connection closes: it hears nothing, and decides nothing.
    }
  }

  /**
   * Whether nobody else can have decided on it than who holds the shard so. When that is not known
   * all nodes are asked who held it before.
   */
  private isSole(token: string, ask: Ask, holding: TenureReport | undefined): boolean {
    // Who had answered it may have forgotten that after so long.
    if (holding === undefined || performance.now() - ask.sentMs > answeredKeepMs) return false
    for (let held = toldOf(ask, holding); !held.isFirst;) {
      const { after, orphaned } = held
      if (after === undefined) return true
      const before = ask.told?.get(after)
      if (before === undefined) {
        // It was never given up: nobody can tell whether it was decided.
        if (orphaned) this.end(token, Effect.fail(this.timeout(ask)))
        else this.inquire(token, after)
        return false
      }
      held = before
    }
    return true
  }

  private inquire(token: string, claim: number): void {
    try {
      this.nc.publish(tenureInquiries, `${this.inbox}.${token} ${claim}`)
    } catch {
      // The connection closes: nobody is asked.
    }
  }

  /** Who held the shard so has not decided on it, and will not. */
  private gone(token: string, ask: Ask, holding: TenureReport | undefined): void {
    if (holding === undefined || ask.holder !== undefined) return
    if (ask.told?.has(holding.claim) === true) return
    ask.told ??= new Map()
    ask.told.set(holding.claim, toldOf(ask, holding))
    if (this.isSole(token, ask, holding)) this.sendIn(token, ask, movedResendMs)
  }

  /** Unless its answer is on its way yet, it is lost. */
  private answered(token: string, ask: Ask, node: string | undefined): void {
    this.hold(ask, ask.holder ?? node)
    clearTimeout(ask.look)
    ask.look = setTimeout(() => this.end(token, Effect.fail(this.timeout(ask))), lateReplyMs)
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
    // Of a later copy it tells nothing of the first.
    else if (ask.copies === 1) this.end(token, Effect.fail(this.noOwner(ask)))
  }

  private sendAgain(token: string, ask: Ask): void {
    ask.holder = undefined
    ask.moves = true
    this.sendIn(token, ask, Math.min(movedResendMs * 2 ** (ask.copies - 1), movedResendMaxMs))
  }

  private sendIn(token: string, ask: Ask, delayMs: number): void {
    clearTimeout(ask.again)
    ask.again = setTimeout(() => this.send(token), delayMs)
  }

  /** Ends it at its deadline; before, sends what nobody has said anything of once more. */
  private look(token: string): void {
    const ask = this.pending.get(token)
    if (ask === undefined) return
    const leftMs = ask.sentMs + ask.deadlineMs - performance.now()
    // A timer may come a little early.
    if (leftMs < 1) return this.late(token, ask)
    ask.look = setTimeout(() => this.look(token), Math.min(silenceResendMs, leftMs))
    if (ask.holder === undefined && ask.again === undefined) this.send(token)
  }

  private late(token: string, ask: Ask): void {
    const isUndecided = ask.moves && ask.holder === undefined
    this.end(token, Effect.fail(isUndecided ? this.noOwner(ask) : this.timeout(ask)))
  }

  private end(token: string, result: Effect.Effect<string, AskFailed>): void {
    this.forget(token)?.end(result)
  }

  private forget(token: string): Ask | undefined {
    const ask = this.pending.get(token)
    if (ask === undefined) return
    this.pending.delete(token)
    clearTimeout(ask.look)
    clearTimeout(ask.again)
    return ask
  }

  private timeout({ deadlineMs, to }: Ask): AskTimeout {
    return new AskTimeout({ key: keyOf(to), deadlineMs })
  }

  private noOwner({ to }: Ask): NoOwner {
    return new NoOwner({ key: keyOf(to), retryAfterMs: noOwnerRetryMs })
  }
}
