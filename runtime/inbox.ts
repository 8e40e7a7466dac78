/** The messages that an actor has taken and not yet replied to; `done` is called once for each. */
import type { Tagged } from "./actor.ts"
import { type Address, keyOf } from "./address.ts"
import { brokeOff } from "./deadline.ts"
import { type AskFailure, Overloaded } from "./errors.ts"
import type { FiredTimer, PendingMessage, ReplyCallback } from "./pending.ts"
import { Queue } from "./queue.ts"
import type { ActivationContext } from "./surroundings.ts"

/** Those that wait to be decided are its queue. */
export class Inbox extends Queue<PendingMessage> {
  /** How many were not yet replied to, those that wait and those that are decided. */
  unreplied = 0
  private readonly address: Address
  private readonly around: ActivationContext
  private closed = false
  private ending: AskFailure | undefined = undefined

  constructor(address: Address, around: ActivationContext) {
    super()
    this.address = address
    this.around = around
  }

  /** The entry of a message, unless there is no room or no more to come: then it is answered. */
  take(
    message: Tagged,
    done: ReplyCallback,
    due: FiredTimer | undefined
  ): PendingMessage | undefined {
    const entry: PendingMessage = {
      message,
      done,
      due,
      attempts: 0,
      writes: false,
      reply: undefined
    }
    const { actorQueueMax, overloadRetryMs } = this.around.limits
    if (++this.unreplied <= actorQueueMax && !this.closed) return entry
    const overloaded = { key: keyOf(this.address), retryAfterMs: overloadRetryMs }
    this.answer(entry, this.ending ?? new Overloaded(overloaded))
    return
  }

  answer(entry: PendingMessage, failure: AskFailure | undefined, reply?: unknown): void {
    this.unreplied--
    try {
      entry.done(failure, reply)
    } catch (cause) {
      this.around.onFault(this.address, cause)
    }
  }

  /** Answers what waits, and all that comes after it, with the failure. */
  close(failure: AskFailure | undefined): void {
    this.closed = true
    this.ending ??= failure
    for (const entry of this.takeAll()) this.answer(entry, this.ending ?? brokeOff())
  }

  /**
   * The entries that may be decided anew; the others are answered with the failure. `unsure`:
   * their commit may have been kept.
   */
  onceMore(
    entries: ReadonlyArray<PendingMessage>,
    failure: AskFailure,
    unsure: boolean
  ): Array<PendingMessage> {
    // Without room the caller is told so at once: it is for the client to come again. And what
    // may have been kept must not be decided twice.
    const final = unsure || failure._tag === "StorageFull" || failure._tag === "StorageDamaged"
    const kept: Array<PendingMessage> = []
    for (const entry of entries) {
      const hopeless = this.closed || (final && entry.writes) ||
        ++entry.attempts >= this.around.limits.redecideMax
      if (hopeless) this.answer(entry, failure)
      else kept.push(entry)
    }
    return kept
  }
}
