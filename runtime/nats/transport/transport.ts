/**
 * The transport port over NATS subjects. A message for an actor goes to
 * `restante.<kind>.<shard>.<id>`; the owner of a shard subscribes to `restante.*.<shard>.>`. Any
 * NATS client may send one.
 */
import type { Msg, MsgHdrs, NatsConnection, Subscription } from "@nats-io/transport-node"
import { Effect, Layer, Schema, type Scope } from "effect"
import { type Address, type AskTimeout, fromSubject, keyOf, MessageTooLarge, NoOwner,
  UnknownMessage } from "../../actor/index.ts"
import { headerReserveBytes, movedReplyLatestMs, movedReplyMs, noOwnerReplyDelayMs, noOwnerRetryMs,
  tenureSettledMs } from "../../limits.ts"
import { type Serve, type ShardClaim, Transport, type TransportApi } from "../../ports/index.ts"
import { isNodeInbox, Nats, wait } from "../connection/index.ts"
import { PendingAsks } from "./asks.ts"
import { Hints } from "./hints.ts"
import { GrantRequests, isMarked, markedHeaders, PastTenures, ReceivedMessages, tenureInquiries,
  tenureLine } from "./message-grants.ts"

const traceHeader = "traceparent"

const TransportFailure = Schema.Union([MessageTooLarge, NoOwner, UnknownMessage])

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

class NatsTransport {
  private readonly nc: NatsConnection
  private readonly node: string
  private readonly asks: PendingAsks
  private readonly grants: GrantRequests
  private readonly received = new ReceivedMessages()
  private readonly pastTenures = new PastTenures()
  private readonly shards = new Map<number, ServedShard>()
  private draining = 0

  constructor(nc: NatsConnection, node: string) {
    this.nc = nc
    this.node = node
    this.asks = new PendingAsks(nc, node)
    this.grants = new GrantRequests(nc, node)
    nc.subscribe(tenureInquiries, {
      callback: (error, inquiry) => {
        if (error === null) this.answerInquiry(inquiry)
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
    const lines = trace === undefined ? "" : `${traceHeader}: ${trace}\r\n`
    return data.length > bytesMax
      ? Effect.fail(new MessageTooLarge({ key: keyOf(to), bytesMax }))
      : this.asks.ask(to, data, lines, deadlineMs)
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
    if (isFromNode && this.grants.has(reply)) return
    const status = isFromNode ? this.received.statusOf(reply) : undefined
    if (status !== undefined) return this.answer(message, "", markedHeaders(this.node, status))
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
    const isSettled = performance.now() > served.settledAtMs
    if (!isFromNode || (isSettled && !isResent)) return this.decide(served, to, message, false)
    this.grants.send(reply, tenureLine(served.claim, served.sinceMs), (result) => {
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
    serve(to, message.string(), headers?.get(traceHeader)).then(
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
      return this.answer(message, "", markedHeaders(this.node, mark, tenureLine(claim, sinceMs)))
    }
    const failure = new NoOwner({ key: message.subject, retryAfterMs: noOwnerRetryMs })
    setTimeout(() => this.answer(message, failureText(failure)), noOwnerReplyDelayMs)
  }

  /** A requester asks what this node did with a message during an ended tenure. */
  private answerInquiry(inquiry: Msg): void {
    const [reply = "", claim = ""] = inquiry.string().split(" ")
    const tenure = this.pastTenures.lineOf(Number(claim))
    if (tenure === undefined || this.nc.isClosed()) return
    const status = this.received.statusOf(reply) ?? "undecided"
    this.nc.publish(reply, "", { headers: markedHeaders(this.node, status, tenure) })
  }

  private reply(to: Address, message: Msg, text: string): void {
    const { bytesMax } = this
    const data = Buffer.from(text)
    if (data.length <= bytesMax) return this.answer(message, data)
    this.answer(message, failureText(new MessageTooLarge({ key: keyOf(to), bytesMax })))
  }

  private answer(message: Msg, data: Uint8Array | string, headers?: MsgHdrs): void {
    try {
      message.respond(data, headers === undefined ? undefined : { headers })
    } catch {
      // The connection closes: the requester times out.
    }
  }
}

/** The transport over the connection; closes once no shard's messages come to this node. */
export const makeTransport: Effect.Effect<TransportApi, never, Nats | Scope.Scope> = Effect.gen(
  function*() {
    const { nc } = yield* Nats
    const node = crypto.randomUUID()
    const transport = new NatsTransport(nc, node)
    const hints = new Hints(nc, node)
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
  }
)

export const natsTransport: Layer.Layer<Transport, never, Nats> = Layer.effect(
  Transport,
  makeTransport
)
