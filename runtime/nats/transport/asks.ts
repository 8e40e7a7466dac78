/**
 * The requester's side of asks between nodes. It has a separate NATS inbox, because one message may
 * have several answers. It grants one node the right to decide a message that it sent more than
 * once (`message-grants.ts`).
 */
import { createInbox, type Msg, type NatsConnection } from "@nats-io/transport-node"
import { Effect } from "effect"
import { type Address, AskTimeout, keyOf, NoOwner, subjectOf } from "../../actor/index.ts"
import { answeredKeepMs, lateReplyMs, movedResendMaxMs, movedResendMs, noOwnerRetryMs,
  resendAfterMs, silenceResendMs } from "../../limits.ts"
import { isNoResponders, nodeInboxPrefix } from "../connection/index.ts"
import { type Envelopes, type EnvelopeSignature, hasMark, isMarked, nodeOf,
  tenureTextOf } from "./envelopes.ts"
import { tenureInquiries, tenureOf, type TenureReport } from "./message-grants.ts"

export type AskFailed = NoOwner | AskTimeout

interface Ask {
  readonly to: Address
  readonly data: Uint8Array
  /** The trace context of every copy. */
  readonly trace: { readonly trace?: string }
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
  /** The codes of marked answers: a repeated one says nothing of the present. */
  receivedCodes: Set<string> | undefined
}

interface TenureOutcome extends TenureReport {
  /** It began before the message was sent, so no earlier tenure matters. */
  readonly isFirst: boolean
}

const outcomeOf = ({ sentMs }: Ask, tenure: TenureReport): TenureOutcome => ({
  ...tenure,
  isFirst: tenure.forMs >= performance.now() - sentMs
})

const reportOf = ({ headers }: Msg): TenureReport | undefined => tenureOf(tenureTextOf(headers))

/** Whether this marked answer to the ask was received before; remembers it. */
const isRepeated = (
  ask: Ask | undefined,
  { code }: EnvelopeSignature,
  { headers }: Msg
): boolean => {
  if (ask === undefined || !hasMark(headers)) return false
  ask.receivedCodes ??= new Set()
  const { size } = ask.receivedCodes
  return ask.receivedCodes.add(code).size === size
}

const timeout = ({ deadlineMs, to }: Ask): AskTimeout =>
  new AskTimeout({ key: keyOf(to), deadlineMs })

const noOwner = ({ to }: Ask): NoOwner =>
  new NoOwner({ key: keyOf(to), retryAfterMs: noOwnerRetryMs })

export class PendingAsks {
  private readonly envelopes: Envelopes
  private readonly node: string
  private readonly inbox = createInbox(nodeInboxPrefix)
  private readonly pending = new Map<string, Ask>()
  private count = 0

  constructor(nc: NatsConnection, envelopes: Envelopes, node: string) {
    this.envelopes = envelopes
    this.node = node
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
    trace: Ask["trace"],
    deadlineMs: number
  ): Effect.Effect<string, AskFailed> {
    return Effect.callback((resume) => {
      const token = (this.count++).toString(36)
      this.pending.set(token, {
        to,
        data,
        trace,
        deadlineMs,
        sentMs: performance.now(),
        end: resume,
        timer: setTimeout(() => this.checkDeadline(token), Math.min(silenceResendMs, deadlineMs)),
        resendTimer: undefined,
        copies: 0,
        holder: undefined,
        hasMoved: false,
        undecided: undefined,
        receivedCodes: undefined
      })
      this.send(token)
      return Effect.sync(() => void this.remove(token))
    })
  }

  private send(token: string): void {
    const ask = this.pending.get(token)
    if (ask === undefined) return
    const mark = ask.copies > 0 ? { mark: "resent" } as const : {}
    ask.copies++
    ask.resendTimer = undefined
    const reply = `${this.inbox}.${token}`
    try {
      this.envelopes.publish("ask", subjectOf(ask.to), ask.data, { reply, ...mark, ...ask.trace })
    } catch {
      // The connection is closed: this copy was not sent.
      return this.handleNobody(token, ask)
    }
    // A server that still routes to the last owner may lose a copy.
    if (ask.hasMoved) this.resendIn(token, ask, resendAfterMs)
  }

  private receive(token: string, answer: Msg): void {
    const ask = this.pending.get(token)
    // The server sends it, which has no key.
    if (isNoResponders(answer)) return ask && this.handleNobody(token, ask)
    const signature = this.envelopes.receive("answer", answer)
    const { headers } = answer
    if (signature === undefined || isRepeated(ask, signature, answer)) return
    if (isMarked("grant-request", headers)) return this.answerGrantRequest(token, ask, answer)
    if (ask === undefined) return
    const node = nodeOf(headers)
    if (isMarked("deciding", headers)) this.hold(ask, ask.holder ?? node)
    else if (isMarked("answered", headers)) this.awaitLateReply(token, ask, node)
    else if (isMarked("undecided", headers)) this.addUndecided(token, ask, reportOf(answer))
    else if (isMarked("moved", headers)) {
      if (ask.holder !== undefined && ask.holder !== node) return
      // For a copy that was resent after silence it only proves that this node has not decided.
      const isUndecided = ask.hasMoved || ask.holder === node || ask.copies === 1
      if (isUndecided) this.resend(token, ask)
      else this.addUndecided(token, ask, reportOf(answer))
    } else this.end(token, Effect.succeed(answer.string()))
  }

  private answerGrantRequest(token: string, ask: Ask | undefined, request: Msg): void {
    const mayDecide = ask !== undefined && ask.holder === undefined &&
      (ask.hasMoved || ask.copies === 1 || this.isOnly(token, ask, reportOf(request)))
    if (mayDecide) this.hold(ask, nodeOf(request.headers))
    const { reply } = request
    if (reply === undefined) return
    try {
      const mark = mayDecide ? "granted" : "refused"
      this.envelopes.publish("answer", reply, "", { mark, node: this.node })
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
      this.envelopes.publish("inquiry", tenureInquiries, `${this.inbox}.${token} ${claim}`)
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
