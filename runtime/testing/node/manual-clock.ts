/** A clock that only a test advances: for one node, beside the clocks of the process. */
import { type Clock, Duration, Effect } from "effect"
import { EventHeap, type ScheduledEvent } from "../time/index.ts"

const nanosPerMs = 1_000_000n

export class ManualClock implements Clock.Clock {
  private readonly startMs: number
  private readonly events = new EventHeap()
  private elapsedMs = 0
  private orders = 0

  /** `startMs`: the time of day at the beginning, ms since the epoch. */
  constructor(startMs: number) {
    this.startMs = startMs
  }

  currentTimeMillisUnsafe(): number {
    return Math.floor(this.startMs + this.elapsedMs)
  }

  currentTimeNanosUnsafe(): bigint {
    return BigInt(this.currentTimeMillisUnsafe()) * nanosPerMs
  }

  monotonicTimeNanosUnsafe(): bigint {
    return BigInt(Math.floor(this.elapsedMs)) * nanosPerMs
  }

  readonly currentTimeMillis = Effect.sync(() => this.currentTimeMillisUnsafe())
  readonly currentTimeNanos = Effect.sync(() => this.currentTimeNanosUnsafe())
  readonly monotonicTimeNanos = Effect.sync(() => this.monotonicTimeNanosUnsafe())

  sleep(duration: Duration.Duration): Effect.Effect<void> {
    return Effect.callback((resume) => {
      const event: ScheduledEvent = {
        atMs: this.elapsedMs + Duration.toMillis(duration),
        order: this.orders++,
        live: true,
        run: () => resume(Effect.void)
      }
      this.events.push(event)
      return Effect.sync(() => void (event.live = false))
    })
  }

  /** Ends the sleeps of the next `ms`, in their order; `settle` runs after each, and at the end. */
  async advance(ms: number, settle: () => Promise<void>): Promise<void> {
    const endMs = this.elapsedMs + ms
    for (;;) {
      const event = this.events.peek()
      if (event === undefined || event.atMs > endMs) break
      this.events.pop()
      if (!event.live) continue
      this.elapsedMs = Math.max(this.elapsedMs, event.atMs)
      event.run()
      await settle()
    }
    this.elapsedMs = endMs
    await settle()
  }
}
