/**
 * Asks of actors whose shards other nodes own. While a shard moves, no node accepts the message:
 * the ask is repeated until its deadline, and served here when this node takes the shard.
 */
import { Result } from "effect"
import type { ActivationContext, ReplyCallback } from "./activation/index.ts"
import { type Address, type AskFailure, decodeReply, encodeMessage, keyOf, NoOwner, shardOf,
  type Tagged } from "./actor/index.ts"
import type { TransportApi } from "./ports/index.ts"
import type { OpenSpan } from "./tracing.ts"

interface LocalNode {
  /** Delivers a message to a shard that this node owns; false for any other shard. */
  readonly deliverIfOwned: (
    to: Address,
    message: Tagged,
    done: ReplyCallback,
    trace: string | undefined
  ) => boolean
  /** The receiver of a reply threw. */
  readonly onFault: (to: Address, cause: unknown) => void
}

/** A callback that first ends the span of its ask. */
const endingSpan =
  (span: OpenSpan, { kind }: Address, { _tag }: Tagged, done: ReplyCallback): ReplyCallback =>
  (failure, reply) => {
    span.end({ "restante.actor.kind": kind, "restante.message": _tag }, failure?._tag)
    done(failure, reply)
  }

/** One ask under way. */
interface RemoteAsk {
  readonly to: Address
  readonly message: Tagged
  readonly done: ReplyCallback
  readonly trace: string | undefined
  attempts: number
  waitedMs: number
}

export class RemoteAsks {
  private readonly context: Pick<ActivationContext, "format" | "later" | "limits" | "traces">
  private readonly transport: TransportApi
  private readonly node: LocalNode
  /** By shard: how to repeat the asks that wait until a node owns it. */
  private readonly waiting = new Map<number, Set<() => void>>()
  private waitingCount = 0
  private stopped = false
  private unanswered = 0

  constructor(
    context: Pick<ActivationContext, "format" | "later" | "limits" | "traces">,
    transport: TransportApi,
    node: LocalNode
  ) {
    this.context = context
    this.transport = transport
    this.node = node
  }

  /** How many asks have no answer yet, of those that this node does not serve itself by now. */
  get underWay(): number {
    return this.unanswered
  }

  ask(to: Address, message: Tagged, done: ReplyCallback, trace?: string): void {
    this.unanswered++
    const { traces } = this.context
    const span = traces === undefined || trace === undefined
      ? undefined
      : traces.begin({ name: `ask ${to.kind}`, kind: "client", parent: trace })
    this.send({
      to,
      message,
      done: span === undefined ? done : endingSpan(span, to, message, done),
      trace: span === undefined ? trace : span.traceparent,
      attempts: 0,
      waitedMs: 0
    })
  }

  /** This node has taken the shard: the asks that wait for it are repeated at once. */
  taken(shard: number): void {
    for (const repeat of [...this.waiting.get(shard) ?? []]) repeat()
  }

  /** The node has stopped: the asks that wait fail. */
  stop(): void {
    this.stopped = true
    for (const shard of [...this.waiting.keys()]) this.taken(shard)
  }

  private send(ask: RemoteAsk): void {
    const { message, to, trace, waitedMs } = ask
    const sentMs = performance.now()
    const leftMs = this.context.limits.askDeadlineMs - waitedMs
    const envelope = this.encode(message)
    // A message that is no JSON is sent to nobody.
    if (envelope === undefined) return this.answer(ask, this.noOwner(to))
    this.transport.request(to, envelope, leftMs, (failure, reply) => {
      if (failure !== undefined) {
        ask.waitedMs += Math.round(performance.now() - sentMs)
        const waits = failure._tag === "NoOwner" && this.wait(ask)
        return waits ? undefined : this.answer(ask, failure)
      }
      const answer = decodeReply(keyOf(to), reply)
      Result.isSuccess(answer)
        ? this.answer(ask, undefined, answer.success)
        : this.answer(ask, answer.failure)
    }, trace)
  }

  private encode(message: Tagged): string | undefined {
    try {
      return encodeMessage(message, this.context.format())
    } catch {
      return undefined
    }
  }

  /** No node accepted it: repeats the ask later; false if its deadline passes or too many wait. */
  private wait(ask: RemoteAsk): boolean {
    const { askDeadlineMs, unownedAsksMax, unownedRetryMaxMs, unownedRetryMs } = this.context.limits
    const delayMs = Math.min(unownedRetryMs * 2 ** ask.attempts++, unownedRetryMaxMs)
    ask.waitedMs += delayMs
    if (ask.waitedMs >= askDeadlineMs) return false
    if (this.stopped || this.waitingCount >= unownedAsksMax) return false
    const shard = shardOf(ask.to)
    const waiting = this.waiting.get(shard) ?? new Set()
    const repeat = (): void => {
      if (!waiting.delete(repeat)) return
      if (waiting.size === 0 && this.waiting.get(shard) === waiting) this.waiting.delete(shard)
      this.waitingCount--
      cancel()
      this.repeat(ask)
    }
    this.waiting.set(shard, waiting.add(repeat))
    this.waitingCount++
    const cancel = this.context.later(delayMs, repeat)
    return true
  }

  private repeat(ask: RemoteAsk): void {
    const { done, message, to, trace } = ask
    if (this.stopped) return this.answer(ask, this.noOwner(to))
    if (this.node.deliverIfOwned(to, message, done, trace)) this.unanswered--
    else this.send(ask)
  }

  private answer({ done, to }: RemoteAsk, failure: AskFailure | undefined, reply?: unknown): void {
    this.unanswered--
    try {
      done(failure, reply)
    } catch (cause) {
      this.node.onFault(to, cause)
    }
  }

  private noOwner(to: Address): NoOwner {
    return new NoOwner({ key: keyOf(to), retryAfterMs: this.context.limits.overloadRetryMs })
  }
}
