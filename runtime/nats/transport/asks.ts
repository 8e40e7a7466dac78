/**
 * The requester's side of asks between nodes. It has a separate NATS inbox, because one message may
 * have several answers. It grants one node the right to decide a message that it sent more than
 * once (`message-grants.ts`).
 *
 * The first copy of an ask goes to the subject of its actor. From the answer the requester learns
 * which node has the shard: of several asks for one node in one turn, the first copies go as one
 * bundle to that node. If the shard is another node's by then, the first copy goes to the subject.
 */
import { createInbox, type Msg, type NatsConnection } from "@nats-io/transport-node"
import { type Address, AskTimeout, keyOf, NoOwner, shardOf, subjectOf } from "../../actor/index.ts"
import { InFlight } from "../../in-flight/index.ts"
import { answeredKeepMs, bundlesRememberedMax, lateReplyMs, movedResendMaxMs, movedResendMs,
  noOwnerRetryMs, resendAfterMs, silenceResendMs } from "../../limits.ts"
import type { RequestDone } from "../../ports/index.ts"
import { isNoResponders, type NatsApi, nodeInboxPrefix } from "../connection/index.ts"
import { Bundler } from "./bundles.ts"
import { type BundledMessage, type Envelope, type EnvelopeFields,
  type Envelopes } from "./envelopes.ts"
import { tenureInquiries, tenureOf, type TenureReport } from "./message-grants.ts"

/** The subject of bundles for a node. */
export const askBundleSubject = (node: string): string => `restante.nodes.${node}`

/** The last token of the subject of a bundle of answers, in place of that of an ask. */
export const answerBundleToken = "-"

interface Ask {
  readonly to: Address
  readonly text: string
  /** The trace context of every copy. */
  readonly trace: { readonly trace?: string }
  readonly deadlineMs: number
  readonly sentMs: number
  readonly done: RequestDone
  /** The timer for the silence of the node, and then for the deadline. */
  timer: NodeJS.Timeout
  resendTimer: NodeJS.Timeout | undefined
  copies: number
  /** The first copy went in a bundle, to this node and no other. */
  bundledTo: string | undefined
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

/** An ask in a bundle. */
interface BundledAsk extends BundledMessage {
  readonly token: string
}

/** Whether this marked answer to the ask was received before; remembers it. */
const isRepeated = (
  ask: Ask | undefined,
  { code, mark }: Envelope
): boolean => {
  if (ask === undefined || mark === undefined) return false
  ask.receivedCodes ??= new Set()
  const { size } = ask.receivedCodes
  return ask.receivedCodes.add(code).size === size
}

const timeout = ({ deadlineMs, to }: Ask): AskTimeout =>
  new AskTimeout({ key: keyOf(to), deadlineMs })

const noOwner = ({ to }: Ask): NoOwner =>
  new NoOwner({ key: keyOf(to), retryAfterMs: noOwnerRetryMs })

/** The asks of the last bundles: a ring, for the reason that {@link InFlight} has. */
class SentBundles {
  private readonly bundles: Array<{ bundle: string; tokens: ReadonlyArray<string> } | undefined> =
    []
  private count = 0

  /** Remembers the tokens of the asks in a bundle; returns the token of the bundle. */
  add(tokens: ReadonlyArray<string>): string {
    // No token of an ask begins so.
    const bundle = `_${this.count.toString(36)}`
    this.bundles[this.count++ % bundlesRememberedMax] = { bundle, tokens }
    return bundle
  }

  /** The tokens of the asks in this bundle, once; none if it is not among the last. */
  take(bundle: string): ReadonlyArray<string> {
    const place = Number.parseInt(bundle.slice(1), 36) % bundlesRememberedMax
    const found = this.bundles[place]
    if (found?.bundle !== bundle) return []
    this.bundles[place] = undefined
    return found.tokens
  }
}

export class PendingAsks {
  private readonly envelopes: Envelopes
  private readonly node: string
  private readonly inbox = createInbox(nodeInboxPrefix)
  private readonly pending = new InFlight<Ask>()
  /** By shard: the node that answered an ask at the subject of its actor. */
  private readonly routes = new Map<number, string>()
  private readonly bundler: Bundler<BundledAsk>
  private readonly sent = new SentBundles()

  constructor(
    { nc, writes }: Pick<NatsApi, "nc" | "writes">,
    envelopes: Envelopes,
    node: string
  ) {
    this.envelopes = envelopes
    this.node = node
    this.bundler = new Bundler(writes, (to, asks) => this.sendTogether(to, asks))
    writes.countInFlight(() => this.pending.size)
    this.subscribe(nc)
  }

  private subscribe(nc: NatsConnection): void {
    const tokenAt = this.inbox.length + 1
    nc.subscribe(`${this.inbox}.*`, {
      callback: (error, answer) => {
        if (error === null) this.receiveMessage(answer.subject.slice(tokenAt), answer)
      }
    })
  }

  ask(
    to: Address,
    text: string,
    trace: Ask["trace"],
    deadlineMs: number,
    done: RequestDone
  ): void {
    const token = this.pending.add({
      to,
      text,
      trace,
      deadlineMs,
      sentMs: performance.now(),
      done,
      timer: setTimeout(() => this.checkDeadline(token), Math.min(silenceResendMs, deadlineMs)),
      resendTimer: undefined,
      copies: 0,
      bundledTo: undefined,
      holder: undefined,
      hasMoved: false,
      undecided: undefined,
      receivedCodes: undefined
    })
    this.send(token)
  }

  private send(token: string): void {
    const ask = this.pending.get(token)
    if (ask === undefined) return
    const route = ask.copies === 0 ? this.routes.get(shardOf(ask.to)) : undefined
    if (route !== undefined) {
      ask.copies++
      const fields = { reply: `${this.inbox}.${token}`, ...ask.trace }
      const { text } = ask
      return this.bundler.add(route, { token, subject: subjectOf(ask.to), fields, text })
    }
    const mark = ask.copies > 0 ? { mark: "resent" } as const : {}
    ask.copies++
    ask.resendTimer = undefined
    this.publish(token, ask, mark)
  }

  /** Sends a copy to the subject of the actor. */
  private publish(token: string, ask: Ask, mark: EnvelopeFields): void {
    const reply = `${this.inbox}.${token}`
    try {
      this.envelopes.publish("ask", subjectOf(ask.to), ask.text, { reply, ...mark, ...ask.trace })
    } catch {
      // The connection is closed: this copy was not sent.
      return this.handleNobody(token, ask)
    }
    // A server that still routes to the last owner may lose a copy.
    if (ask.hasMoved) this.resendIn(token, ask, resendAfterMs)
  }

  /** Sends the first copies of one turn for one node; a single one goes to its subject. */
  private sendTogether(to: string, asks: ReadonlyArray<BundledAsk>): void {
    const [first] = asks
    if (asks.length === 1 && first !== undefined) {
      const ask = this.pending.get(first.token)
      return ask && this.publish(first.token, ask, {})
    }
    const tokens = asks.map(({ token }) => token)
    const bundle = this.sent.add(tokens)
    for (const token of tokens) {
      const ask = this.pending.get(token)
      if (ask !== undefined) ask.bundledTo = to
    }
    try {
      const reply = `${this.inbox}.${bundle}`
      this.envelopes.publishBundle("asks", askBundleSubject(to), asks, { reply })
    } catch {
      // The connection is closed, or the bundle is too large for the server: it was not sent.
      this.handleBundleToNobody(bundle)
    }
  }

  /** No node has received the bundle: its asks go to the subjects of their actors. */
  private handleBundleToNobody(bundle: string): void {
    for (const token of this.sent.take(bundle)) {
      const ask = this.pending.get(token)
      if (ask !== undefined) this.sendToSubject(token, ask, ask.bundledTo)
    }
  }

  /**
   * The node to which the first copy went has not decided it and will not, as it does not serve the
   * shard. So the next copy is the first one again. This happens once for an ask: a repeated report
   * must not make a second first copy.
   */
  private sendToSubject(token: string, ask: Ask, node: string | undefined): void {
    if (ask.bundledTo === undefined || ask.bundledTo !== node) return
    ask.bundledTo = undefined
    this.forgetRoute(ask, node)
    if (ask.copies === 1 && ask.holder === undefined && !ask.hasMoved) this.publish(token, ask, {})
  }

  private forgetRoute({ to }: Ask, node: string | undefined): void {
    const shard = shardOf(to)
    if (this.routes.get(shard) === node) this.routes.delete(shard)
  }

  private receiveMessage(token: string, answer: Msg): void {
    const ask = this.pending.get(token)
    // The server sends it, which has no key.
    if (isNoResponders(answer)) {
      return ask === undefined ? this.handleBundleToNobody(token) : this.handleNobody(token, ask)
    }
    if (token !== answerBundleToken) {
      const envelope = this.envelopes.receive("answer", answer)
      return envelope && this.receive(token, envelope)
    }
    for (const envelope of this.envelopes.receiveBundle("answers", answer)) {
      this.receive(envelope.subject, envelope)
    }
  }

  private receive(token: string, answer: Envelope): void {
    const ask = this.pending.get(token)
    if (isRepeated(ask, answer)) return
    const { mark, node, tenure } = answer
    if (mark === "grant-request") return this.answerGrantRequest(token, ask, answer)
    if (ask === undefined) return
    if (mark === undefined) {
      if (node !== undefined) this.routes.set(shardOf(ask.to), node)
      return this.end(token, undefined, answer.text)
    }
    if (mark === "deciding") return this.hold(ask, ask.holder ?? node)
    if (mark === "answered") return this.awaitLateReply(token, ask, node)
    // The node does not serve the shard, or did not.
    this.forgetRoute(ask, node)
    if (mark === "elsewhere") this.sendToSubject(token, ask, node)
    else if (mark === "undecided") this.addUndecided(token, ask, tenureOf(tenure))
    else if (mark === "moved") {
      if (ask.holder !== undefined && ask.holder !== node) return
      // For a copy that was resent after silence it only proves that this node has not decided.
      const isUndecided = ask.hasMoved || ask.holder === node || ask.copies === 1
      if (isUndecided) this.resend(token, ask)
      else this.addUndecided(token, ask, tenureOf(tenure))
    }
  }

  private answerGrantRequest(token: string, ask: Ask | undefined, request: Envelope): void {
    const { node, reply, tenure } = request
    const mayDecide = ask !== undefined && ask.holder === undefined &&
      (ask.hasMoved || ask.copies === 1 || this.isOnly(token, ask, tenureOf(tenure)))
    if (mayDecide) {
      this.hold(ask, node)
      if (node !== undefined) this.routes.set(shardOf(ask.to), node)
    }
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
        if (orphaned) this.end(token, timeout(ask))
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
    ask.timer = setTimeout(() => this.end(token, timeout(ask)), lateReplyMs)
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
    else if (ask.copies === 1) this.end(token, noOwner(ask))
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
      return this.end(token, isUndecided ? noOwner(ask) : timeout(ask))
    }
    ask.timer = setTimeout(() => this.checkDeadline(token), Math.min(silenceResendMs, leftMs))
    if (ask.holder !== undefined || ask.resendTimer !== undefined) return
    if (ask.bundledTo !== undefined) this.forgetNode(ask.bundledTo)
    this.send(token)
  }

  /** A node is silent: it may be paused, and others may have its shards. */
  private forgetNode(node: string): void {
    for (const [shard, route] of this.routes) if (route === node) this.routes.delete(shard)
  }

  private end(token: string, failure: NoOwner | AskTimeout | undefined, reply = ""): void {
    const ask = this.pending.get(token)
    if (ask === undefined) return
    this.pending.delete(token)
    clearTimeout(ask.timer)
    clearTimeout(ask.resendTimer)
    ask.done(failure, reply)
  }
}
