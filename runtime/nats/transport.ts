/**
 * The transport port over NATS subjects: an actor is asked at `restante.<kind>.<shard>.<id>`, and
 * the owner of a shard has subscribed to `restante.*.<shard>.>`. Any NATS client may ask.
 */
import type { Msg, NatsConnection, Subscription } from "@nats-io/transport-node"
import { Effect, Layer, Schema, type Scope, type Tracer } from "effect"
import { type Address, fromSubject, keyOf } from "../address.ts"
import { type AskTimeout, MessageTooLarge, NoOwner, UnknownMessage } from "../errors.ts"
import { type Serve, Transport, type TransportApi } from "../ports/transport.ts"
import { Asks, isOwnInbox } from "./asks.ts"
import { Nats } from "./connection.ts"
import { Hints } from "./hints.ts"
import { HEADER_BYTES, MOVED_MS, NO_OWNER_RETRY_MS, OTHERS_MS } from "./limits.ts"
import { headersText, isSaid, say, Taken } from "./moving.ts"
import { rawHeaders } from "./requests.ts"

const traceHeader = "traceparent"
const moved = rawHeaders(headersText(say("moved")))
const taken = rawHeaders(headersText(say("taken")))
const Unable = Schema.Union([MessageTooLarge, NoOwner, UnknownMessage])
const encodeFailure = Schema.encodeSync(Unable)

/** As `envelope.ts` of the runtime has it: what any client can read. */
const failureText = (failure: typeof Unable.Type): string =>
  JSON.stringify({ _tag: "Failure", failure: encodeFailure(failure) })

/** A shard that is served, or was until just now: then `serve` is undefined. */
interface Served {
  readonly subscription: Subscription
  serve: Serve | undefined
  farewell: NodeJS.Timeout | undefined
}

class NatsTransport {
  private readonly nc: NatsConnection
  private readonly asks: Asks
  private readonly taken = new Taken()
  private readonly shards = new Map<number, Served>()

  constructor(nc: NatsConnection) {
    this.nc = nc
    this.asks = new Asks(nc)
  }

  request(
    to: Address,
    envelope: string,
    deadlineMs: number,
    trace: string
  ): Effect.Effect<string, NoOwner | AskTimeout | MessageTooLarge> {
    const data = Buffer.from(envelope)
    const { bytesMax } = this
    return data.length > bytesMax
      ? Effect.fail(new MessageTooLarge({ key: keyOf(to), bytesMax }))
      : this.asks.ask(to, data, trace, deadlineMs)
  }

  begin(shard: number, serve: Serve): void {
    const known = this.shards.get(shard)
    if (known?.serve !== undefined) throw new Error(`shard ${shard} is served already`)
    if (known !== undefined) {
      clearTimeout(known.farewell)
      known.serve = serve
      return
    }
    const subscription = this.nc.subscribe(`restante.*.${shard}.>`, {
      callback: (error, message) => {
        if (error === null) this.take(served, message)
      }
    })
    const served: Served = { subscription, serve, farewell: undefined }
    this.shards.set(shard, served)
  }

  /** What still comes is told that the shard has moved, until the next owner is known. */
  end(shard: number): void {
    const served = this.shards.get(shard)
    if (served === undefined) return
    served.serve = undefined
    served.farewell = setTimeout(() => {
      this.shards.delete(shard)
      // Drained: what is on its way is answered yet.
      if (!this.nc.isClosed()) void served.subscription.drain().catch(() => undefined)
    }, MOVED_MS)
  }

  /** Waits until nobody is sent here any more. */
  async close(): Promise<void> {
    const endMs = performance.now() + 2 * MOVED_MS
    while (this.shards.size > 0 && performance.now() < endMs && !this.nc.isClosed()) {
      await new Promise((resolve) => setTimeout(resolve, MOVED_MS / 20))
    }
  }

  private get bytesMax(): number {
    return (this.nc.info?.max_payload ?? Number.POSITIVE_INFINITY) - HEADER_BYTES
  }

  private take({ serve }: Served, message: Msg): void {
    // A message that is sent without a reply subject is taken too, and answered to nobody.
    const { headers, reply = "" } = message
    if (isSaid("again", headers) && this.taken.has(reply)) return this.answer(message, "", taken)
    if (serve === undefined) return this.notHere(message)
    const to = fromSubject(message.subject)
    if (to === undefined) {
      const unknown = { key: message.subject, detail: "the subject is no actor's" }
      return this.answer(message, failureText(new UnknownMessage(unknown)))
    }
    this.taken.add(reply)
    serve(to, message.string(), headers?.get(traceHeader)).then(
      (text) => {
        this.taken.over(reply, text !== undefined)
        if (text === undefined) this.notHere(message)
        else this.reply(to, message, text)
      },
      // It never rejects; if it does, the one that asks waits in vain, and no one else.
      () => this.taken.over(reply, false)
    )
  }

  /** Another client takes the first answer that comes: the next owner's, if there is one. */
  private notHere(message: Msg): void {
    if (isOwnInbox(message.reply)) return this.answer(message, "", moved)
    const failure = new NoOwner({ key: message.subject, retryAfterMs: NO_OWNER_RETRY_MS })
    setTimeout(() => this.answer(message, failureText(failure)), OTHERS_MS)
  }

  private reply(to: Address, message: Msg, text: string): void {
    const { bytesMax } = this
    const data = Buffer.from(text)
    if (data.length <= bytesMax) return this.answer(message, data)
    this.answer(message, failureText(new MessageTooLarge({ key: keyOf(to), bytesMax })))
  }

  private answer(message: Msg, data: Uint8Array | string, headers?: typeof moved): void {
    try {
      message.respond(data, headers === undefined ? undefined : { headers })
    } catch {
      // The connection closes: the one that asks finds out by its deadline.
    }
  }
}

/** The W3C trace context of a span, as a line of headers. */
const traceLine = ({ sampled, spanId, traceId }: Tracer.AnySpan): string =>
  `${traceHeader}: 00-${traceId}-${spanId}-${sampled ? "01" : "00"}\r\n`

const currentTrace: Effect.Effect<string> = Effect.match(Effect.currentParentSpan, {
  onSuccess: traceLine,
  onFailure: () => ""
})

/** The transport over the connection; closes once nobody is sent here any more. */
export const makeTransport: Effect.Effect<TransportApi, never, Nats | Scope.Scope> = Effect.gen(
  function*() {
    const { nc } = yield* Nats
    const transport = new NatsTransport(nc)
    const hints = new Hints(nc)
    yield* Effect.addFinalizer(() => Effect.promise(() => transport.close()))
    return {
      request: (to, envelope, deadlineMs) =>
        Effect.flatMap(
          currentTrace,
          (trace) => transport.request(to, envelope, deadlineMs, trace)
        ),
      serve: (shard, serve) =>
        Effect.asVoid(Effect.acquireRelease(
          Effect.sync(() => transport.begin(shard, serve)),
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
