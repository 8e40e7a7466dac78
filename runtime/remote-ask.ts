/**
 * Asks of actors whose shards other nodes own. One that nobody has taken, since its shard moves,
 * is tried again until its time is over, here too once this node has taken the shard.
 */
import { Effect, Exit, Result } from "effect"
import type { ActivationContext, ReplyCallback } from "./activation/index.ts"
import { type Address, type AskFailure, decodeReply, encodeMessage, keyOf, NoOwner, shardOf,
  type Tagged } from "./actor/index.ts"
import type { Later } from "./clock.ts"
import type { Limits } from "./limits.ts"
import type { TransportApi } from "./ports/index.ts"

/** Tries again; `stopped`: the node has, and it is not to be tried. */
type Try = (stopped: boolean) => void

export class MovedAskRetries {
  private readonly shards = new Map<number, Set<Try>>()
  private readonly later: Later
  private readonly limits: Limits
  private count = 0
  private stopped = false

  constructor(later: Later, limits: Limits) {
    this.later = later
    this.limits = limits
  }

  /** Before the try number `tries`, from 0, ms. */
  delayMs(tries: number): number {
    const { unownedRetryMaxMs, unownedRetryMs } = this.limits
    return Math.min(unownedRetryMs * 2 ** tries, unownedRetryMaxMs)
  }

  /** Tries again after the delay; false when there is no room for one more. */
  wait(shard: number, delayMs: number, again: Try): boolean {
    if (this.stopped || this.count >= this.limits.unownedAsksMax) return false
    this.count++
    const waiting = this.shards.get(shard) ?? new Set()
    this.shards.set(shard, waiting)
    const run: Try = (stopped) => {
      if (!waiting.delete(run)) return
      if (waiting.size === 0 && this.shards.get(shard) === waiting) this.shards.delete(shard)
      this.count--
      cancel()
      again(stopped)
    }
    waiting.add(run)
    const cancel = this.later(delayMs, () => run(false))
    return true
  }

  /** This node has taken the shard. */
  taken(shard: number): void {
    for (const run of [...this.shards.get(shard) ?? []]) run(false)
  }

  stop(): void {
    this.stopped = true
    for (const waiting of [...this.shards.values()]) for (const run of [...waiting]) run(true)
  }
}

/*
 * Asks that no node took, since their shards move: each is tried again in a while, sooner when
 * this node takes its shard.
 */

interface LocalNode {
  /** Takes a message of a shard that this node owns; false for any other. */
  readonly here: (to: Address, message: Tagged, done: ReplyCallback) => boolean
  /** A receiver of a reply threw. */
  readonly onFault: (to: Address, cause: unknown) => void
}

/** One ask under way. */
interface RemoteAsk {
  readonly to: Address
  readonly message: Tagged
  readonly done: ReplyCallback
  readonly trace: string | undefined
  tries: number
  waitedMs: number
}

export class RemoteAsks {
  private readonly context: Pick<ActivationContext, "fork" | "limits">
  private readonly transport: TransportApi
  private readonly node: LocalNode
  private readonly retries: MovedAskRetries

  constructor(
    around: Pick<ActivationContext, "fork" | "later" | "limits">,
    transport: TransportApi,
    home: LocalNode
  ) {
    this.context = around
    this.transport = transport
    this.node = home
    this.retries = new MovedAskRetries(around.later, around.limits)
  }

  ask(to: Address, message: Tagged, done: ReplyCallback, trace?: string): void {
    this.send({ to, message, done, trace, tries: 0, waitedMs: 0 })
  }

  /** This node has taken the shard: what waits for it need not any longer. */
  taken(shard: number): void {
    this.retries.taken(shard)
  }

  stop(): void {
    this.retries.stop()
  }

  private send(errand: RemoteAsk): void {
    const { message, to, trace, waitedMs } = errand
    const sentMs = performance.now()
    const leftMs = this.context.limits.askDeadlineMs - waitedMs
    const request = Effect.suspend(() =>
      this.transport.request(to, encodeMessage(message), leftMs, trace)
    )
    this.context.fork(Effect.result(request)).addObserver((exit) => {
      if (Exit.isFailure(exit)) return this.answer(errand, this.noOwner(to))
      const sent = exit.value
      if (Result.isFailure(sent)) {
        errand.waitedMs += Math.round(performance.now() - sentMs)
        const waits = sent.failure._tag === "NoOwner" && this.wait(errand)
        return waits ? undefined : this.answer(errand, sent.failure)
      }
      const answer = decodeReply(keyOf(to), sent.success)
      Result.isSuccess(answer)
        ? this.answer(errand, undefined, answer.success)
        : this.answer(errand, answer.failure)
    })
  }

  /** Nobody has taken it: false when it has waited long enough. */
  private wait(errand: RemoteAsk): boolean {
    const { done, message, to } = errand
    const delayMs = this.retries.delayMs(errand.tries++)
    errand.waitedMs += delayMs
    if (errand.waitedMs >= this.context.limits.askDeadlineMs) return false
    return this.retries.wait(shardOf(to), delayMs, (stopped) => {
      if (stopped) return this.answer(errand, this.noOwner(to))
      if (!this.node.here(to, message, done)) this.send(errand)
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
