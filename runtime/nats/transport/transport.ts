/**
 * The transport port over NATS subjects. A message for an actor goes to
 * `restante.<kind>.<shard>.<id>`; the owner of a shard subscribes to `restante.*.<shard>.>`. Any
 * NATS client that signs as a node does may send one (`envelopes.ts`).
 */
import type { Msg, NatsConnection, Subscription } from "@nats-io/transport-node"
import { Effect, Layer, Schema, type Scope } from "effect"
import { type Address, fromSubject, keyOf, MessageTooLarge, NoOwner, Overloaded, shardOf,
  UnknownMessage } from "../../actor/index.ts"
import { envelopeSkewMs, headerReserveBytes, movedReplyLatestMs, movedReplyMs, noOwnerReplyDelayMs,
  noOwnerRetryMs, tenureSettledMs } from "../../limits.ts"
import { type Serve, type ShardClaim, Transport, type TransportApi } from "../../ports/index.ts"
import { isInbox, isLarger, isNodeInbox, Nats, type NatsApi, wait } from "../connection/index.ts"
import { answerBundleToken, askBundleSubject, PendingAsks } from "./asks.ts"
import type { EnvelopeAuthenticator } from "./envelope-authenticator.ts"
import { Bundler } from "./bundles.ts"
import { type BundledMessage, type Envelope, type EnvelopeFields, EnvelopeRefused, Envelopes,
  type EnvelopeSignature, isFresh } from "./envelopes.ts"
import { ForeignEnvelopes, ReceivedCodes } from "./foreign-envelopes.ts"
import { forgeryLog } from "./forgery-log.ts"
import { Hints } from "./hints.ts"
import { GrantRequests, PastTenures, ReceivedMessages, tenureInquiries,
  tenureText } from "./message-grants.ts"

const TransportFailure = Schema.Union([
  EnvelopeRefused,
  MessageTooLarge,
  NoOwner,
  Overloaded,
  UnknownMessage
])

const encodeFailure = Schema.encodeSync(TransportFailure)

/** The form of `runtime/actor/envelope.ts`, which any client can read. */
const failureText = (failure: typeof TransportFailure.Type): string =>
  JSON.stringify({ _tag: "Failure", failure: encodeFailure(failure) })

/** A shard that this node serves, or (without `serve`) has released within `movedReplyMs`. */
interface ServedShard {
  readonly subscription: Subscription
  serve: Serve | undefined
  claim: ShardClaim | undefined
  sinceMs: number
  /** From then on the node decides first copies without a grant. */
  settledAtMs: number
  /** Until then a first copy may be answered `moved`; 0: the shard was lost, not given up. */
  movedUntilMs: number
  leaveTimer: NodeJS.Timeout | undefined
}

/** False where the node lost the shard without giving it up: another may have decided since. */
const isOrderly = ({ claim, movedUntilMs, serve }: ServedShard): boolean =>
  serve === undefined ? movedUntilMs > 0 : claim?.isHeld() ?? true

/** Whether a node decides a first copy without a grant, since no earlier one can have done so. */
const isTimely = (signature: EnvelopeSignature, { sinceMs }: ServedShard): boolean => {
  const beganAtMs = Date.now() - (performance.now() - sinceMs)
  return isFresh(signature) && signature.sentAtMs > beganAtMs + envelopeSkewMs
}

class NatsTransport {
  private readonly nc: NatsConnection
  private readonly envelopes: Envelopes
  private readonly node: string
  private readonly asks: PendingAsks
  private readonly grants: GrantRequests
  private readonly received = new ReceivedMessages()
  private readonly foreign = new ForeignEnvelopes()
  private readonly bundles = new ReceivedCodes()
  private readonly bundleSubscription: Subscription
  private readonly pastTenures = new PastTenures()
  private readonly shards = new Map<number, ServedShard>()
  /** The answers of this turn, by the inbox of their requester. */
  private readonly answers: Bundler<BundledMessage>
  private draining = 0

  constructor({ nc, writes }: NatsApi, envelopes: Envelopes, node: string) {
    this.nc = nc
    this.envelopes = envelopes
    this.node = node
    this.asks = new PendingAsks({ nc, writes }, envelopes, node)
    this.grants = new GrantRequests(nc, envelopes, node)
    this.answers = new Bundler(writes, (inbox, answers) => this.sendAnswers(inbox, answers))
    this.bundleSubscription = nc.subscribe(askBundleSubject(node), {
      callback: (error, bundle) => {
        if (error === null) this.receiveBundle(envelopes.receiveBundle("asks", bundle))
      }
    })
    nc.subscribe(tenureInquiries, {
      callback: (error, inquiry) => {
        const envelope = error === null ? envelopes.receive("inquiry", inquiry) : undefined
        if (envelope !== undefined) this.answerInquiry(envelope)
      }
    })
  }

  readonly request: TransportApi["request"] = (to, envelope, deadlineMs, done, trace) => {
    const { bytesMax } = this
    if (isLarger(envelope, bytesMax)) done(new MessageTooLarge({ key: keyOf(to), bytesMax }), "")
    else this.asks.ask(to, envelope, trace === undefined ? {} : { trace }, deadlineMs, done)
  }

  beginServing(shard: number, serve: Serve, claim: ShardClaim | undefined): void {
    const left = this.shards.get(shard)
    if (left?.serve !== undefined) throw new Error(`shard ${shard} is served already`)
    const sinceMs = performance.now()
    const tenure = { serve, claim, sinceMs, settledAtMs: sinceMs + tenureSettledMs }
    if (left !== undefined) {
      clearTimeout(left.leaveTimer)
      Object.assign(left, tenure)
      return
    }
    const subscription = this.nc.subscribe(`restante.*.${shard}.>`, {
      callback: (error, message) => {
        if (error === null) this.receiveMessage(served, message)
      }
    })
    const movedUntilMs = Number.POSITIVE_INFINITY
    const served: ServedShard = { subscription, ...tenure, movedUntilMs, leaveTimer: undefined }
    this.shards.set(shard, served)
  }

  /** Stays subscribed for `movedReplyMs`, so that servers lose nothing meanwhile. */
  endServing(shard: number): void {
    const served = this.shards.get(shard)
    if (served === undefined) return
    served.movedUntilMs = isOrderly(served) ? performance.now() + movedReplyLatestMs : 0
    served.serve = undefined
    this.pastTenures.add(served.claim, served.sinceMs)
    served.leaveTimer = setTimeout(() => void this.leave(shard, served.subscription), movedReplyMs)
  }

  /** Answers what is on its way, and unsubscribes. */
  private async leave(shard: number, subscription: Subscription): Promise<void> {
    this.shards.delete(shard)
    this.draining++
    if (!this.nc.isClosed()) await subscription.drain().catch(() => undefined)
    this.draining--
  }

  /** Waits until this node is subscribed to no shard. */
  async close(): Promise<void> {
    const endMs = performance.now() + 2 * movedReplyMs
    void this.drainBundles()
    while (
      this.shards.size + this.draining > 0 && performance.now() < endMs && !this.nc.isClosed()
    ) {
      await wait(movedReplyMs / 20)
    }
  }

  /** Later bundles reach nobody, and their asks go to the subjects of their actors. */
  private async drainBundles(): Promise<void> {
    if (this.nc.isClosed()) return
    this.draining++
    await this.bundleSubscription.drain().catch(() => undefined)
    this.draining--
  }

  private get bytesMax(): number {
    return (this.nc.info?.max_payload ?? Number.POSITIVE_INFINITY) - headerReserveBytes
  }

  private receiveMessage(served: ServedShard, message: Msg): void {
    const ask = this.envelopes.receive("ask", message)
    if (ask !== undefined) return this.receive(served, fromSubject(ask.subject), ask)
    if (!isNodeInbox(message.reply)) this.refuseForged(message)
  }

  /** A bundle counts once: after `elsewhere` its asks may be on their way to another node. */
  private receiveBundle(asks: ReadonlyArray<Envelope>): void {
    const [first] = asks
    if (first === undefined || this.bundles.has(first.code)) return
    this.bundles.add(first.code)
    for (const ask of asks) this.receiveBundled(ask)
  }

  /** A bundle names this node: the shard of a message may be another node's by now. */
  private receiveBundled(ask: Envelope): void {
    const to = fromSubject(ask.subject)
    const served = to && this.shards.get(shardOf(to))
    if (served === undefined) this.answer(ask, "", { mark: "elsewhere", node: this.node })
    else this.receive(served, to, ask)
  }

  /** `to`: undefined where the subject is no actor's. */
  private receive(served: ServedShard, to: Address | undefined, ask: Envelope): void {
    // A message without a reply subject is decided too, and answered to nobody.
    const { mark, reply = "", subject } = ask
    const isFromNode = isNodeInbox(reply)
    if (isFromNode && this.grants.has(reply)) return
    const status = isFromNode ? this.received.statusOf(reply) : undefined
    if (status !== undefined) return this.answer(ask, "", { mark: status, node: this.node })
    const isResent = mark === "resent"
    const orderly = isOrderly(served)
    if (served.serve === undefined || !orderly) {
      const hasMoved = orderly && (isResent || performance.now() <= served.movedUntilMs)
      return this.answerNotDecided(served, ask, hasMoved)
    }
    if (to === undefined) {
      const unknown = { key: subject, detail: "the subject is no actor's" }
      return this.answer(ask, failureText(new UnknownMessage(unknown)))
    }
    const timely = isTimely(ask, served)
    if (!isFromNode) {
      const refused = this.foreign.refusalOf(subject, ask, timely)
      return refused === undefined
        ? this.decide(served, to, ask, false)
        : this.answer(ask, failureText(refused))
    }
    const isSettled = performance.now() > served.settledAtMs
    if (isSettled && timely && !isResent) return this.decide(served, to, ask, false)
    this.grants.send(reply, tenureText(served.claim, served.sinceMs), (result) => {
      if (result === "refused") return
      if (result === "granted" && served.serve !== undefined) {
        this.decide(served, to, ask, true)
      } else this.answerNotDecided(served, ask, true)
    })
  }

  private decide(served: ServedShard, to: Address, ask: Envelope, isGranted: boolean): void {
    const { serve } = served
    if (serve === undefined) return
    const { reply = "", trace } = ask
    this.received.begin(reply)
    serve(to, ask.text, trace).then(
      (text) => {
        this.received.end(reply, text !== undefined)
        if (text === undefined) {
          this.answerNotDecided(served, ask, isGranted || isOrderly(served))
        } else this.reply(to, ask, text)
      },
      // `serve` never rejects; if it does, the requester waits until its deadline.
      () => this.received.end(reply, false)
    )
  }

  /**
   * Answers that this node has not decided the message; `hasMoved`: nor has any other node without
   * a grant. A client that is no node takes the first answer, so it gets this one late, after that
   * of the next owner.
   */
  private answerNotDecided(
    { claim, sinceMs }: ServedShard,
    ask: Envelope,
    hasMoved: boolean
  ): void {
    if (isNodeInbox(ask.reply)) {
      const mark = hasMoved ? "moved" : "undecided"
      return this.answer(ask, "", { mark, node: this.node, ...tenureText(claim, sinceMs) })
    }
    const failure = new NoOwner({ key: ask.subject, retryAfterMs: noOwnerRetryMs })
    setTimeout(() => this.answer(ask, failureText(failure)), noOwnerReplyDelayMs)
  }

  /** A requester asks what this node did with a message during an ended tenure. */
  private answerInquiry(inquiry: Envelope): void {
    const [reply = "", claim = ""] = inquiry.text.split(" ")
    const tenure = this.pastTenures.textOf(Number(claim))
    if (tenure === undefined || !isNodeInbox(reply) || this.nc.isClosed()) return
    const mark = this.received.statusOf(reply) ?? "undecided"
    this.envelopes.publish("answer", reply, "", { mark, node: this.node, ...tenure })
  }

  /** Without a signature: the answer to a stranger would count as an answer of this node. */
  private refuseForged(message: Msg): void {
    if (!isInbox(message.reply)) return
    const detail = "the message is not signed: sign it with the key of the cluster " +
      "(docs/subjects.md)"
    message.respond(failureText(new EnvelopeRefused({ key: message.subject, detail })))
  }

  private reply(to: Address, ask: Envelope, text: string): void {
    const { bytesMax } = this
    if (isLarger(text, bytesMax)) {
      return this.answer(ask, failureText(new MessageTooLarge({ key: keyOf(to), bytesMax })))
    }
    // The requester learns which node has the shard; a bundle shows that it knows.
    this.answer(ask, text, ask.isBundled || !isNodeInbox(ask.reply) ? {} : { node: this.node })
  }

  /** Answers at the requester's inbox; the answers to bundled messages are bundled too. */
  private answer(
    { isBundled, reply }: Envelope,
    text: string,
    fields: EnvelopeFields = {}
  ): void {
    if (reply === undefined || !isInbox(reply)) return
    const tokenAt = reply.lastIndexOf(".") + 1
    const message = { subject: reply.slice(tokenAt), fields, text }
    if (isBundled) this.answers.add(reply.slice(0, tokenAt), message)
    else this.sendAnswers(reply.slice(0, tokenAt), [message])
  }

  /** `inbox` ends with a dot. */
  private sendAnswers(inbox: string, answers: ReadonlyArray<BundledMessage>): void {
    const [first] = answers
    try {
      if (answers.length > 1) {
        this.envelopes.publishBundle("answers", inbox + answerBundleToken, answers)
      } else if (first !== undefined) {
        this.envelopes.publish("answer", inbox + first.subject, first.text, first.fields)
      }
    } catch {
      // The bundle is too large for the server, or the connection closes: the requester times out.
      if (answers.length > 1) { for (const answer of answers) this.sendAnswers(inbox, [answer]) }
    }
  }
}

/** The transport over the connection; closes once no shard's messages come to this node. */
export const makeTransport = (
  authenticator: EnvelopeAuthenticator
): Effect.Effect<TransportApi, never, Nats | Scope.Scope> =>
  Effect.gen(function*() {
    const nats = yield* Nats
    const node = crypto.randomUUID()
    const envelopes = new Envelopes(nats.writes, authenticator, yield* forgeryLog)
    const transport = new NatsTransport(nats, envelopes, node)
    const hints = new Hints(nats.nc, envelopes, node)
    yield* Effect.addFinalizer(() => Effect.promise(() => transport.close()))
    return {
      request: transport.request,
      serve: (shard, serve, claim) =>
        Effect.asVoid(Effect.acquireRelease(
          Effect.sync(() => transport.beginServing(shard, serve, claim)),
          () => Effect.sync(() => transport.endServing(shard))
        )),
      announce: hints.announce,
      watch: hints.watch,
      traffic: () => ({
        messages: nats.writes.messages,
        writes: nats.writes.writes,
        isConnected: nats.isConnected()
      })
    }
  })

/** The transport over the connection, with signed messages. */
export const natsTransport = (
  authenticator: EnvelopeAuthenticator
): Layer.Layer<Transport, never, Nats> => Layer.effect(Transport, makeTransport(authenticator))
