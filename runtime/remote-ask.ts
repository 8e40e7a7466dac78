/**
 * Asks of actors whose shards other nodes own. While a shard moves, no node accepts the message:
 * the ask is repeated until its deadline, and served here when this node takes the shard.
 */
import { Effect, Exit, Result } from "effect"
import type { ActivationContext, ReplyCallback } from "./activation/index.ts"
import { type Address, type AskFailure, decodeReply, encodeMessage, keyOf, NoOwner, shardOf,
  type Tagged } from "./actor/index.ts"
import type { Later } from "./clock.ts"
import type { Limits } from "./limits.ts"
import type { TransportApi } from "./ports/index.ts"

/** Repeats an ask, or ends it when the node has stopped. */
type Retry = (stopped: boolean) => void

/** The asks that wait for their shards to be owned. */
export class MovedAskRetries {
  private readonly shards = new Map<number, Set<Retry>>()
  private readonly later: Later
  private readonly limits: Limits
  private count = 0
  private stopped = false

  constructor(later: Later, limits: Limits) {
    this.later = later
    this.limits = limits
  }

  /** The delay after attempt number `attempts`, from 0, ms. */
  delayMs(attempts: number): number {
    const { unownedRetryMaxMs, unownedRetryMs } = this.limits
    return Math.min(unownedRetryMs * 2 ** attempts, unownedRetryMaxMs)
  }

  /** Calls `retry` after the delay; false when too many asks wait. */
  wait(shard: number, delayMs: number, retry: Retry): boolean {
    if (this.stopped || this.count >= this.limits.unownedAsksMax) return false
    this.count++
    const waiting = this.shards.get(shard) ?? new Set()
    this.shards.set(shard, waiting)
    const run: Retry = (stopped) => {
      if (!waiting.delete(run)) return
      if (waiting.size === 0 && this.shards.get(shard) === waiting) this.shards.delete(shard)
      this.count--
      cancel()
      retry(stopped)
    }
    waiting.add(run)
    const cancel = this.later(delayMs, () => run(false))
    return true
  }

  /** This node has taken the shard: its asks are repeated at once. */
  taken(shard: number): void {
    for (const run of [...this.shards.get(shard) ?? []]) run(false)
  }

  stop(): void {
    this.stopped = true
    for (const waiting of [...this.shards.values()]) for (const run of [...waiting]) run(true)
  }
}

interface LocalNode {
  /** Delivers a message to a shard that this node owns; false for any other shard. */
  readonly deliverIfOwned: (to: Address, message: Tagged, done: ReplyCallback) => boolean
  /** The receiver of a reply threw. */
  readonly onFault: (to: Address, cause: unknown) => void
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
  private readonly context: Pick<ActivationContext, "fork" | "limits">
  private readonly transport: TransportApi
  private readonly node: LocalNode
  private readonly retries: MovedAskRetries

  constructor(
    context: Pick<ActivationContext, "fork" | "later" | "limits">,
    transport: TransportApi,
    node: LocalNode
  ) {
    this.context = context
    this.transport = transport
    this.node = node
    this.retries = new MovedAskRetries(context.later, context.limits)
  }

  ask(to: Address, message: Tagged, done: ReplyCallback, trace?: string): void {
    this.send({ to, message, done, trace, attempts: 0, waitedMs: 0 })
  }

  /** This node has taken the shard. */
  taken(shard: number): void {
    this.retries.taken(shard)
  }

  stop(): void {
    this.retries.stop()
  }

  private send(ask: RemoteAsk): void {
    const { message, to, trace, waitedMs } = ask
    const sentMs = performance.now()
    const leftMs = this.context.limits.askDeadlineMs - waitedMs
    const request = Effect.suspend(() =>
      this.transport.request(to, encodeMessage(message), leftMs, trace)
    )
    this.context.fork(Effect.result(request)).addObserver((exit) => {
      if (Exit.isFailure(exit)) return this.answer(ask, this.noOwner(to))
      const sent = exit.value
      if (Result.isFailure(sent)) {
        ask.waitedMs += Math.round(performance.now() - sentMs)
        const waits = sent.failure._tag === "NoOwner" && this.wait(ask)
        return waits ? undefined : this.answer(ask, sent.failure)
      }
      const answer = decodeReply(keyOf(to), sent.success)
      Result.isSuccess(answer)
        ? this.answer(ask, undefined, answer.success)
        : this.answer(ask, answer.failure)
    })
  }

  /** No node accepted it: repeats the ask later; false when its deadline has passed. */
  private wait(ask: RemoteAsk): boolean {
    const { done, message, to } = ask
    const delayMs = this.retries.delayMs(ask.attempts++)
    ask.waitedMs += delayMs
    if (ask.waitedMs >= this.context.limits.askDeadlineMs) return false
    return this.retries.wait(shardOf(to), delayMs, (stopped) => {
      if (stopped) return this.answer(ask, this.noOwner(to))
      if (!this.node.deliverIfOwned(to, message, done)) this.send(ask)
    })
  }

  private answer({ done, to }: RemoteAsk, failure: AskFailure | undefined, reply?: unknown): void {
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
