/**
 * The requester's side of asks between nodes. It has a separate NATS inbox, because one message may
 * have several answers. It grants one node the right to decide a message that it sent more than
 * once (`message-grants.ts`).
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
  /** Header lines of every copy. */
  readonly headerLines: string
  readonly deadlineMs: number
  readonly sentMs: number
  readonly end: (result: Effect.Effect<string, AskFailed>) => void
  /** The timer for the silence of the node, and then for the deadline. */
  timer: NodeJS.Timeout
  resendTimer: NodeJS.Timeout | undefined
  copies: number
  /** The node that decides the message, or may: no other is granted it, and it is not resent. */
  holder: string | undefined
  /** A node answered `moved`: from then on every node requests a grant. */
  hasMoved: boolean
  /** By claim, the tenures whose owners reported `undecided`. */
  undecided: Map<number, TenureOutcome> | undefined
}

interface TenureOutcome extends TenureReport {
  /** It began before the message was sent, so no earlier tenure matters. */
  readonly isFirst: boolean
}

const outcomeOf = ({ sentMs }: Ask, tenure: TenureReport): TenureOutcome => ({
  ...tenure,
  isFirst: tenure.forMs >= performance.now() - sentMs
})

const timeout = ({ deadlineMs, to }: Ask): AskTimeout =>
  new AskTimeout({ key: keyOf(to), deadlineMs })

const noOwner = ({ to }: Ask): NoOwner =>
  new NoOwner({ key: keyOf(to), retryAfterMs: noOwnerRetryMs })

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
      callback: (error, answer) => {
        if (error === null) this.receive(answer.subject.slice(tokenAt), answer)
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
      this.pending.set(token, {
        to,
        data,
        headerLines,
        deadlineMs,
        sentMs: performance.now(),
        end: resume,
        timer: setTimeout(() => this.checkDeadline(token), Math.min(silenceResendMs, deadlineMs)),
        resendTimer: undefined,
        copies: 0,
        holder: undefined,
        hasMoved: false,
        undecided: undefined
      })
      this.send(token)
      return Effect.sync(() => void this.remove(token))
    })
  }

  private send(token: string): void {
    const ask = this.pending.get(token)
    if (ask === undefined) return
    const lines = ask.headerLines + (ask.copies > 0 ? markLine("resent") : "")
    ask.copies++
    ask.resendTimer = undefined
    const reply = `${this.inbox}.${token}`
    try {
      const headers = lines === "" ? {} : { headers: rawHeaders(headersText(lines)) }
      this.nc.publish(subjectOf(ask.to), ask.data, { reply, ...headers })
    } catch {
      // The connection is closed: this copy was not sent.
      return this.handleNobody(token, ask)
    }
    // A server that still routes to the last owner may lose a copy.
    if (ask.hasMoved) this.resendIn(token, ask, resendAfterMs)
  }

  private receive(token: string, answer: Msg): void {
    const ask = this.pending.get(token)
    const { headers } = answer
    if (isMarked("grant-request", headers)) return this.answerGrantRequest(token, ask, answer)
    if (ask === undefined) return
    if (isNoResponders(answer)) return this.handleNobody(token, ask)
    const node = headers?.get(nodeHeader)
    if (isMarked("deciding", headers)) this.hold(ask, ask.holder ?? node)
    else if (isMarked("answered", headers)) this.awaitLateReply(token, ask, node)
    else if (isMarked("undecided", headers)) this.addUndecided(token, ask, tenureOf(headers))
    else if (isMarked("moved", headers)) {
      if (ask.holder !== undefined && ask.holder !== node) return
      // For a copy that was resent after silence it only proves that this node has not decided.
      const isUndecided = ask.hasMoved || ask.holder === node || ask.copies === 1
      if (isUndecided) this.resend(token, ask)
      else this.addUndecided(token, ask, tenureOf(headers))
    } else this.end(token, Effect.succeed(answer.string()))
  }

  private answerGrantRequest(token: string, ask: Ask | undefined, request: Msg): void {
    const mayDecide = ask !== undefined && ask.holder === undefined &&
      (ask.hasMoved || ask.copies === 1 || this.isOnly(token, ask, tenureOf(request.headers)))
    if (mayDecide) this.hold(ask, request.headers?.get(nodeHeader))
    try {
      request.respond("", { headers: mayDecide ? this.granted : this.refused })
    } catch {
      // The connection closes: the node gets no grant, and decides nothing.
    }
  }

  /**
   * Whether no other node than the one of this tenure can have decided the message. Where an
   * earlier owner has not reported, all nodes are asked.
   */
  private isOnly(token: string, ask: Ask, report: TenureReport | undefined): boolean {
    // The node that answered the message may have forgotten it by then.
    if (report === undefined || performance.now() - ask.sentMs > answeredKeepMs) return false
    for (let tenure = outcomeOf(ask, report); !tenure.isFirst;) {
      const { after: previous, orphaned } = tenure
      if (previous === undefined) return true
      const before = ask.undecided?.get(previous)
      if (before === undefined) {
        // Its owner died: nobody can report whether the message was decided.
        if (orphaned) this.end(token, Effect.fail(timeout(ask)))
        else this.inquire(token, previous)
        return false
      }
      tenure = before
    }
    return true
  }

  private inquire(token: string, claim: number): void {
    try {
      this.nc.publish(tenureInquiries, `${this.inbox}.${token} ${claim}`)
    } catch {
      // The connection closes: the ask ends at its deadline.
    }
  }

  /** The owner of this tenure has not decided the message, and will not. */
  private addUndecided(token: string, ask: Ask, report: TenureReport | undefined): void {
    if (report === undefined || ask.holder !== undefined) return
    if (ask.undecided?.has(report.claim) === true) return
    ask.undecided ??= new Map()
    ask.undecided.set(report.claim, outcomeOf(ask, report))
    if (this.isOnly(token, ask, report)) this.resendIn(token, ask, movedResendMs)
  }

  /** The reply was sent: if it does not come within `lateReplyMs`, it is lost. */
  private awaitLateReply(token: string, ask: Ask, node: string | undefined): void {
    this.hold(ask, ask.holder ?? node)
    clearTimeout(ask.timer)
    ask.timer = setTimeout(() => this.end(token, Effect.fail(timeout(ask))), lateReplyMs)
  }

  private hold(ask: Ask, node: string | undefined): void {
    ask.holder = node
    clearTimeout(ask.resendTimer)
    ask.resendTimer = undefined
  }

  /** No node received this copy. An owner may have received an earlier one. */
  private handleNobody(token: string, ask: Ask): void {
    if (ask.holder !== undefined) return
    if (ask.hasMoved) this.resend(token, ask)
    else if (ask.copies === 1) this.end(token, Effect.fail(noOwner(ask)))
  }

  private resend(token: string, ask: Ask): void {
    ask.holder = undefined
    ask.hasMoved = true
    this.resendIn(token, ask, Math.min(movedResendMs * 2 ** (ask.copies - 1), movedResendMaxMs))
  }

  private resendIn(token: string, ask: Ask, delayMs: number): void {
    clearTimeout(ask.resendTimer)
    ask.resendTimer = setTimeout(() => this.send(token), delayMs)
  }

  /** Ends the ask at its deadline; before, resends after silence. */
  private checkDeadline(token: string): void {
    const ask = this.pending.get(token)
    if (ask === undefined) return
    const leftMs = ask.sentMs + ask.deadlineMs - performance.now()
    // A timer may fire a little early.
    if (leftMs < 1) {
      const isUndecided = ask.hasMoved && ask.holder === undefined
      return this.end(token, Effect.fail(isUndecided ? noOwner(ask) : timeout(ask)))
    }
    ask.timer = setTimeout(() => this.checkDeadline(token), Math.min(silenceResendMs, leftMs))
    if (ask.holder === undefined && ask.resendTimer === undefined) this.send(token)
  }

  private end(token: string, result: Effect.Effect<string, AskFailed>): void {
    this.remove(token)?.end(result)
  }

  private remove(token: string): Ask | undefined {
    const ask = this.pending.get(token)
    if (ask === undefined) return
    this.pending.delete(token)
    clearTimeout(ask.timer)
    clearTimeout(ask.resendTimer)
    return ask
  }
}
