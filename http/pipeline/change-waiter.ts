/** Waits for changes of an actor, for long polls and live streams. */
import { Effect } from "effect"
import type { Address } from "../../runtime/index.ts"
import { longPollSecondsMax, readerStallMs } from "../limits.ts"
import type { EventStream, Exchange } from "../wire/index.ts"
import type { Call } from "./call.ts"
import type { Service } from "./service.ts"

/** The bounded seconds of `Prefer: wait=…`; undefined without it. */
export const preferredWaitSeconds = (call: Call): number | undefined => {
  const field = call.request.headers.get("prefer")
  const seconds = field === undefined
    ? undefined
    : /(?:^|,)\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:[;,]|$)/i.exec(field)?.[1]
  return seconds === undefined ? undefined : Math.min(Number(seconds), longPollSecondsMax)
}

/** Waits for the next change of an actor, until the client leaves or the server drains. */
export class ChangeWaiter {
  private readonly unwatch: () => void
  private ended = false
  private changed = false
  private wake: (() => void) | undefined

  constructor({ system }: Service, about: Address) {
    this.unwatch = system.watch(about, () => {
      this.changed = true
      this.wake?.()
    })
  }

  /** Whether the client left or the server drains. */
  get over(): boolean {
    return this.ended
  }

  readonly end = (): void => {
    this.ended = true
    this.wake?.()
  }

  /** Waits for the next change since the last wait, at most `atMostMs`; not at all when over. */
  next(atMostMs: number): Effect.Effect<void> {
    return Effect.callback<void>((resume) => {
      const done = (): void => {
        clearTimeout(timer)
        this.wake = undefined
        this.changed = false
        resume(Effect.void)
      }
      const timer = setTimeout(done, atMostMs)
      if (this.changed || this.ended) done()
      else this.wake = done
    })
  }

  close(): void {
    this.unwatch()
  }
}

/** Runs `use` with a waiter that ends when the client leaves or the server drains. */
export const withChangeWaiter = <A, E>(
  service: Service,
  about: Address,
  exchange: Exchange,
  use: (waiter: ChangeWaiter) => Effect.Effect<A, E>
): Effect.Effect<A, E> =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      const waiter = new ChangeWaiter(service, about)
      exchange.onAbort(waiter.end)
      return { waiter, undrain: exchange.onDrain(waiter.end) }
    }),
    ({ waiter }) => use(waiter),
    ({ undrain, waiter }) =>
      Effect.sync(() => {
        undrain()
        waiter.close()
      })
  )

/** Waits until the client has read what was sent; disconnects a client that reads nothing. */
export const awaitWritable = (events: EventStream): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    const done = (): void => {
      clearTimeout(timer)
      resume(Effect.void)
    }
    const timer = setTimeout(() => events.cut(), readerStallMs)
    if (events.flowing || !events.open) return done()
    events.onClose(done)
    events.onFlowing(done)
  })
