/**
 * Asks of actors whose shards other nodes own. One that nobody has taken, since its shard moves,
 * is tried again until its time is over, here too once this node has taken the shard.
 */
import { Effect, Exit, Result } from "effect"
import type { Tagged } from "./actor.ts"
import { type Address, keyOf, shardOf } from "./address.ts"
import { decodeReply, encodeMessage } from "./envelope.ts"
import { type AskFailure, NoOwner } from "./errors.ts"
import { MovedAskRetries } from "./moving.ts"
import type { ReplyCallback } from "./pending.ts"
import type { TransportApi } from "./ports/transport.ts"
import type { ActivationContext } from "./surroundings.ts"

interface Home {
  /** Takes a message of a shard that this node owns; false for any other. */
  readonly here: (to: Address, message: Tagged, done: ReplyCallback) => boolean
  /** A receiver of a reply threw. */
  readonly onFault: (to: Address, cause: unknown) => void
}

/** One ask under way. */
interface Errand {
  readonly to: Address
  readonly message: Tagged
  readonly done: ReplyCallback
  readonly trace: string | undefined
  tries: number
  waitedMs: number
}

export class RemoteAsks {
  private readonly around: Pick<ActivationContext, "fork" | "limits">
  private readonly transport: TransportApi
  private readonly home: Home
  private readonly moving: MovedAskRetries

  constructor(
    around: Pick<ActivationContext, "fork" | "later" | "limits">,
    transport: TransportApi,
    home: Home
  ) {
    this.around = around
    this.transport = transport
    this.home = home
    this.moving = new MovedAskRetries(around.later, around.limits)
  }

  ask(to: Address, message: Tagged, done: ReplyCallback, trace?: string): void {
    this.send({ to, message, done, trace, tries: 0, waitedMs: 0 })
  }

  /** This node has taken the shard: what waits for it need not any longer. */
  taken(shard: number): void {
    this.moving.taken(shard)
  }

  stop(): void {
    this.moving.stop()
  }

  private send(errand: Errand): void {
    const { message, to, trace, waitedMs } = errand
    const sentMs = performance.now()
    const leftMs = this.around.limits.askDeadlineMs - waitedMs
    const request = Effect.suspend(() =>
      this.transport.request(to, encodeMessage(message), leftMs, trace)
    )
    this.around.fork(Effect.result(request)).addObserver((exit) => {
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
  private wait(errand: Errand): boolean {
    const { done, message, to } = errand
    const delayMs = this.moving.delayMs(errand.tries++)
    errand.waitedMs += delayMs
    if (errand.waitedMs >= this.around.limits.askDeadlineMs) return false
    return this.moving.wait(shardOf(to), delayMs, (stopped) => {
      if (stopped) return this.answer(errand, this.noOwner(to))
      if (!this.home.here(to, message, done)) this.send(errand)
    })
  }

  private answer({ done, to }: Errand, failure: AskFailure | undefined, reply?: unknown): void {
    try {
      done(failure, reply)
    } catch (cause) {
      this.home.onFault(to, cause)
    }
  }

  private noOwner(to: Address): NoOwner {
    return new NoOwner({ key: keyOf(to), retryAfterMs: this.around.limits.overloadRetryMs })
  }
}
