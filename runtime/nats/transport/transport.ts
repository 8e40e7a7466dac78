/**
 * The transport port over NATS subjects: an actor is asked at `restante.<kind>.<shard>.<id>`, and
 * the owner of a shard has subscribed to `restante.*.<shard>.>`. Any NATS client may ask.
 */
import type { Msg, MsgHdrs, NatsConnection, Subscription } from "@nats-io/transport-node"
import { Effect, Layer, Schema, type Scope } from "effect"
import { type Address, type AskTimeout, fromSubject, keyOf, MessageTooLarge, NoOwner,
  UnknownMessage } from "../../actor/index.ts"
import { headerReserveBytes, movedReplyLatestMs, movedReplyMs, noOwnerReplyDelayMs, noOwnerRetryMs,
  tenureSettledMs } from "../../limits.ts"
import { type Serve, type ShardClaim, Transport, type TransportApi } from "../../ports/index.ts"
import { isNodeInbox, Nats } from "../connection/index.ts"
import { PendingAsks } from "./asks.ts"
import { Hints } from "./hints.ts"
import { GrantRequests, isMarked, markedHeaders, PastTenures, ReceivedMessages, tenureInquiries,
  tenureLine } from "./message-grants.ts"

const traceHeader = "traceparent"

const Unable = Schema.Union([MessageTooLarge, NoOwner, UnknownMessage])

const encodeFailure = Schema.encodeSync(Unable)

/** As `envelope.ts` of the runtime has it: what any client can read. */
const failureText = (failure: typeof Unable.Type): string =>
  JSON.stringify({ _tag: "Failure", failure: encodeFailure(failure) })

/** A shard that is served, or was until just now: then `serve` is undefined. */
interface Served {
  readonly subscription: Subscription
  serve: Serve | undefined
  held: ShardClaim | undefined
  sinceMs: number
  /** From when on a first copy of a message can have reached no other node that served it. */
  settledAtMs: number
  /** Until when whoever asks may still be told that the shard has moved. */
  saysUntilMs: number
  farewell: NodeJS.Timeout | undefined
}

/** Whether it is this node's, or was given up by it; else another may have it since long. */
const isInOrder = ({ held, saysUntilMs, serve }: Served): boolean =>
  serve === undefined ? saysUntilMs > 0 : held?.isHeld() ?? true

class NatsTransport {
  private readonly nc: NatsConnection
  private readonly node: string
  private readonly asks: PendingAsks
  private readonly grants: GrantRequests
  private readonly taken = new ReceivedMessages()
  private readonly past = new PastTenures()
  private readonly shards = new Map<number, Served>()
  private leaving = 0

  constructor(nc: NatsConnection, node: string) {
    this.nc = nc
    this.node = node
    this.asks = new PendingAsks(nc, node)
    this.grants = new GrantRequests(nc, node)
    nc.subscribe(tenureInquiries, {
      callback: (error, inquiry) => {
        if (error === null) this.inquired(inquiry)
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

  begin(shard: number, serve: Serve, held: ShardClaim | undefined): void {
    const known = this.shards.get(shard)
    if (known?.serve !== undefined) throw new Error(`shard ${shard} is served already`)
    const sinceMs = performance.now()
    const now = { serve, held, sinceMs, settledAtMs: sinceMs + tenureSettledMs }
    if (known !== undefined) {
      clearTimeout(known.farewell)
      Object.assign(known, now)
      return
    }
    const subscription = this.nc.subscribe(`restante.*.${shard}.>`, {
      callback: (error, message) => {
        if (error === null) this.take(served, message)
      }
    })
    const saysUntilMs = Number.POSITIVE_INFINITY
    const served: Served = { subscription, ...now, saysUntilMs, farewell: undefined }
    this.shards.set(shard, served)
  }

  /** What still comes is told that the shard has moved, until the next owner is known. */
  end(shard: number): void {
    const served = this.shards.get(shard)
    if (served === undefined) return
    served.saysUntilMs = isInOrder(served) ? performance.now() + movedReplyLatestMs : 0
    served.serve = undefined
    this.past.ended(served.held, served.sinceMs)
    served.farewell = setTimeout(() => void this.leave(shard, served.subscription), movedReplyMs)
  }

  /** What is on its way is answered yet. */
  private async leave(shard: number, subscription: Subscription): Promise<void> {
    this.shards.delete(shard)
    this.leaving++
    if (!this.nc.isClosed()) await subscription.drain().catch(() => undefined)
    this.leaving--
  }

  /** Waits until nobody is sent here any more. */
  async close(): Promise<void> {
    const endMs = performance.now() + 2 * movedReplyMs
    while (
      this.shards.size + this.leaving > 0 && performance.now() < endMs && !this.nc.isClosed()
    ) {
      await new Promise((resolve) => setTimeout(resolve, movedReplyMs / 20))
    }
  }

  private get bytesMax(): number {
    return (this.nc.info?.max_payload ?? Number.POSITIVE_INFINITY) - headerReserveBytes
  }

  private take(served: Served, message: Msg): void {
    // A message that is sent without a reply subject is taken too, and answered to nobody.
    const { headers, reply = "" } = message
    const isNodes = isNodeInbox(reply)
    if (isNodes && this.grants.has(reply)) return
    const already = isNodes ? this.taken.of(reply) : undefined
    if (already !== undefined) return this.answer(message, "", markedHeaders(this.node, already))
    const again = isMarked("again", headers)
    const inOrder = isInOrder(served)
    if (served.serve === undefined || !inOrder) {
      const moves = inOrder && (again || performance.now() <= served.saysUntilMs)
      return this.notHere(served, message, moves)
    }
    const to = fromSubject(message.subject)
    if (to === undefined) {
      const unknown = { key: message.subject, detail: "the subject is no actor's" }
      return this.answer(message, failureText(new UnknownMessage(unknown)))
    }
    const hasSettled = performance.now() > served.settledAtMs
    if (!isNodes || (hasSettled && !again)) return this.decide(served, to, message, false)
    this.grants.ask(reply, tenureLine(served.held, served.sinceMs), (verdict) => {
      if (verdict === "refused") return
      const isHere = verdict === "granted" && served.serve !== undefined
      if (isHere) this.decide(served, to, message, true)
      else this.notHere(served, message, true)
    })
  }

  private decide(served: Served, to: Address, message: Msg, isGranted: boolean): void {
    const { serve } = served
    if (serve === undefined) return
    const { headers, reply = "" } = message
    this.taken.add(reply)
    serve(to, message.string(), headers?.get(traceHeader)).then(
      (text) => {
        this.taken.over(reply, text !== undefined)
        if (text === undefined) this.notHere(served, message, isGranted || isInOrder(served))
        else this.reply(to, message, text)
      },
      // It never rejects; if it does, the one that asks waits in vain, and no one else.
      () => this.taken.over(reply, false)
    )
  }

  /**
   * It was not decided here; `moves`: nor anywhere else, without a word. Another client takes the
   * first answer that comes: the next owner's, if there is one.
   */
  private notHere({ held, sinceMs }: Served, message: Msg, moves: boolean): void {
    if (isNodeInbox(message.reply)) {
      const lines = tenureLine(held, sinceMs)
      return this.answer(message, "", markedHeaders(this.node, moves ? "moved" : "gone", lines))
    }
    const failure = new NoOwner({ key: message.subject, retryAfterMs: noOwnerRetryMs })
    setTimeout(() => this.answer(message, failureText(failure)), noOwnerReplyDelayMs)
  }

  /** Somebody asks what became of a message while this node held its shard by a claim. */
  private inquired(inquiry: Msg): void {
    const [reply = "", claim = ""] = inquiry.string().split(" ")
    const lines = this.past.lineOf(Number(claim))
    if (lines === undefined || this.nc.isClosed()) return
    const said = this.taken.of(reply) ?? "gone"
    this.nc.publish(reply, "", { headers: markedHeaders(this.node, said, lines) })
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
      // The connection closes: the one that asks finds out by its deadline.
    }
  }
}

/** The transport over the connection; closes once nobody is sent here any more. */
export const makeTransport: Effect.Effect<TransportApi, never, Nats | Scope.Scope> = Effect.gen(
  function*() {
    const { nc } = yield* Nats
    const node = crypto.randomUUID()
    const transport = new NatsTransport(nc, node)
    const hints = new Hints(nc, node)
    yield* Effect.addFinalizer(() => Effect.promise(() => transport.close()))
    return {
      request: (...request) => transport.request(...request),
      serve: (shard, serve, held) =>
        Effect.asVoid(Effect.acquireRelease(
          Effect.sync(() => transport.begin(shard, serve, held)),
          () => Effect.sync(() => transport.end(shard))
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
