/**
 * The transport port over NATS subjects. A message for an actor goes to
 * `restante.<kind>.<shard>.<id>`; the owner of a shard subscribes to `restante.*.<shard>.>`. Any
 * NATS client that signs as a node does may send one (`envelopes.ts`).
 */
import type { Msg, NatsConnection, Subscription } from "@nats-io/transport-node"
import { Effect, Layer, Schema, type Scope } from "effect"
import { type Address, type AskTimeout, fromSubject, keyOf, MessageTooLarge, NoOwner, Overloaded,
  UnknownMessage } from "../../actor/index.ts"
import { envelopeSkewMs, forgeryLogMs, headerReserveBytes, movedReplyLatestMs, movedReplyMs,
  noOwnerReplyDelayMs, noOwnerRetryMs, tenureSettledMs } from "../../limits.ts"
import { type Serve, type ShardClaim, Transport, type TransportApi } from "../../ports/index.ts"
import { isInbox, isNodeInbox, Nats, wait } from "../connection/index.ts"
import { PendingAsks } from "./asks.ts"
import type { EnvelopeAuthenticator } from "./envelope-authenticator.ts"
import { type EnvelopeFields, EnvelopeRefused, Envelopes, type EnvelopeSignature, isFresh, isMarked,
  traceOf } from "./envelopes.ts"
import { ForeignEnvelopes } from "./foreign-envelopes.ts"
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
  private readonly pastTenures = new PastTenures()
  private readonly shards = new Map<number, ServedShard>()
  private draining = 0

  constructor(nc: NatsConnection, envelopes: Envelopes, node: string) {
    this.nc = nc
    this.envelopes = envelopes
    this.node = node
    this.asks = new PendingAsks(nc, envelopes, node)
    this.grants = new GrantRequests(nc, envelopes, node)
    nc.subscribe(tenureInquiries, {
      callback: (error, inquiry) => {
        if (error === null && envelopes.receive("inquiry", inquiry) !== undefined) {
          this.answerInquiry(inquiry)
        }
      }
    })
  }

  request(
    to: Address,
    envelope: string,
    deadlineMs: number,
    trace?: string
  ): Effect.Effect<string, NoOwner | AskTimeout | MessageTooLarge> {
    const data = Buffer.from(envelope)
    const { bytesMax } = this
    return data.length > bytesMax
      ? Effect.fail(new MessageTooLarge({ key: keyOf(to), bytesMax }))
      : this.asks.ask(to, data, trace === undefined ? {} : { trace }, deadlineMs)
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
        if (error === null) this.receive(served, message)
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
    while (
      this.shards.size + this.draining > 0 && performance.now() < endMs && !this.nc.isClosed()
    ) {
      await wait(movedReplyMs / 20)
    }
  }

  private get bytesMax(): number {
    return (this.nc.info?.max_payload ?? Number.POSITIVE_INFINITY) - headerReserveBytes
  }

  private receive(served: ServedShard, message: Msg): void {
    // A message without a reply subject is decided too, and answered to nobody.
    const { headers, reply = "" } = message
    const isFromNode = isNodeInbox(reply)
    const signature = this.envelopes.receive("ask", message)
    if (signature === undefined) return isFromNode ? undefined : this.refuseForged(message)
    if (isFromNode && this.grants.has(reply)) return
    const status = isFromNode ? this.received.statusOf(reply) : undefined
    if (status !== undefined) return this.answer(message, "", { mark: status, node: this.node })
    const isResent = isMarked("resent", headers)
    const orderly = isOrderly(served)
    if (served.serve === undefined || !orderly) {
      const hasMoved = orderly && (isResent || performance.now() <= served.movedUntilMs)
      return this.answerNotDecided(served, message, hasMoved)
    }
    const to = fromSubject(message.subject)
    if (to === undefined) {
      const unknown = { key: message.subject, detail: "the subject is no actor's" }
      return this.answer(message, failureText(new UnknownMessage(unknown)))
    }
    const timely = isTimely(signature, served)
    if (!isFromNode) {
      const refused = this.foreign.refusalOf(message.subject, signature, timely)
      return refused === undefined
        ? this.decide(served, to, message, false)
        : this.answer(message, failureText(refused))
    }
    const isSettled = performance.now() > served.settledAtMs
    if (isSettled && timely && !isResent) return this.decide(served, to, message, false)
    this.grants.send(reply, tenureText(served.claim, served.sinceMs), (result) => {
      if (result === "refused") return
      if (result === "granted" && served.serve !== undefined) {
        this.decide(served, to, message, true)
      } else this.answerNotDecided(served, message, true)
    })
  }

  private decide(served: ServedShard, to: Address, message: Msg, isGranted: boolean): void {
    const { serve } = served
    if (serve === undefined) return
    const { headers, reply = "" } = message
    this.received.begin(reply)
    serve(to, message.string(), traceOf(headers)).then(
      (text) => {
        this.received.end(reply, text !== undefined)
        if (text === undefined) {
          this.answerNotDecided(served, message, isGranted || isOrderly(served))
        } else this.reply(to, message, text)
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
    message: Msg,
    hasMoved: boolean
  ): void {
    if (isNodeInbox(message.reply)) {
      const mark = hasMoved ? "moved" : "undecided"
      return this.answer(message, "", { mark, node: this.node, ...tenureText(claim, sinceMs) })
    }
    const failure = new NoOwner({ key: message.subject, retryAfterMs: noOwnerRetryMs })
    setTimeout(() => this.answer(message, failureText(failure)), noOwnerReplyDelayMs)
  }

  /** A requester asks what this node did with a message during an ended tenure. */
  private answerInquiry(inquiry: Msg): void {
    const [reply = "", claim = ""] = inquiry.string().split(" ")
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

  private reply(to: Address, message: Msg, text: string): void {
    const { bytesMax } = this
    const data = Buffer.from(text)
    if (data.length <= bytesMax) return this.answer(message, data)
    this.answer(message, failureText(new MessageTooLarge({ key: keyOf(to), bytesMax })))
  }

  private answer({ reply }: Msg, data: Uint8Array | string, fields?: EnvelopeFields): void {
    if (reply === undefined || !isInbox(reply)) return
    try {
      this.envelopes.publish("answer", reply, data, fields)
    } catch {
      // The connection closes: the requester times out.
    }
  }
}

/** Logs that somebody sends messages without the cluster's key, once in `forgeryLogMs`. */
const forgeryLog: Effect.Effect<(subject: string) => void> = Effect.map(
  Effect.context<never>(),
  (context) => {
    const run = Effect.runForkWith(context)
    let loggedMs = Number.NEGATIVE_INFINITY
    return (subject) => {
      const nowMs = performance.now()
      if (nowMs - loggedMs < forgeryLogMs) return
      loggedMs = nowMs
      run(Effect.logWarning(
        `NATS: a message for ${subject} was refused, since it is not signed with a key of this ` +
          "cluster: check who may publish there, and that all nodes have the same SECRET_KEY_FILE"
      ))
    }
  }
)

/** The transport over the connection; closes once no shard's messages come to this node. */
export const makeTransport = (
  authenticator: EnvelopeAuthenticator
): Effect.Effect<TransportApi, never, Nats | Scope.Scope> =>
  Effect.gen(function*() {
    const { nc } = yield* Nats
    const node = crypto.randomUUID()
    const envelopes = new Envelopes(nc, authenticator, yield* forgeryLog)
    const transport = new NatsTransport(nc, envelopes, node)
    const hints = new Hints(nc, envelopes, node)
    yield* Effect.addFinalizer(() => Effect.promise(() => transport.close()))
    return {
      request: (...request) => transport.request(...request),
      serve: (shard, serve, claim) =>
        Effect.asVoid(Effect.acquireRelease(
          Effect.sync(() => transport.beginServing(shard, serve, claim)),
          () => Effect.sync(() => transport.endServing(shard))
        )),
      announce: hints.announce,
      watch: hints.watch
    }
  })

/** The transport over the connection, with signed messages. */
export const natsTransport = (
  authenticator: EnvelopeAuthenticator
): Layer.Layer<Transport, never, Nats> => Layer.effect(Transport, makeTransport(authenticator))
