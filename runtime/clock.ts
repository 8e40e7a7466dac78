/**
 * Delays, waits and deadlines of the runtime. Every call of the store has a deadline, so a store
 * that never answers blocks no actor for ever.
 */
import { Cause, Effect, Exit, type Fiber, Option } from "effect"
import { type StorageFailure, StorageUnavailable } from "./actor/index.ts"

/**
 * The two clocks of a process, in ms. Durations are measured by the one that only goes forward: the
 * time of day is set, also back by an hour.
 */
export interface Clocks {
  /** The time of day, since the epoch: for what is stored, shown, or due at a time. */
  readonly nowMs: () => number
  /** Since any moment: for waits, ages, rates and leases. */
  readonly monotonicMs: () => number
}

/** Runs an effect with the clock, logger and tracer of the system. */
export type Fork = <A, E>(effect: Effect.Effect<A, E>) => Fiber.Fiber<A, E>

/** Calls a function after a delay; the result cancels it. */
export type Later = (delayMs: number, run: () => void) => () => void

export const laterWith = (fork: Fork): Later => (delayMs, run) => {
  const fiber = fork(Effect.map(Effect.sleep(delayMs), run))
  return () => fiber.interruptUnsafe()
}

/** Fork and Later of one system. */
export interface Timekeeping {
  readonly fork: Fork
  readonly later: Later
}

/**
 * Runs one call of a store. A call without an answer at the deadline is interrupted: `onExit` gets
 * an interruption, and no later answer.
 */
export const runWithin = <A, E = StorageFailure>(
  { fork, later }: Timekeeping,
  call: () => Effect.Effect<A, E>,
  deadlineMs: number,
  onExit: (exit: Exit.Exit<A, E>) => void
): Fiber.Fiber<A, E> => {
  const fiber = fork(Effect.suspend(call))
  const atOnce = fiber.pollUnsafe()
  if (atOnce !== undefined) {
    onExit(atOnce)
    return fiber
  }
  let open = true
  const cancel = later(deadlineMs, () => {
    if (!open) return
    open = false
    fiber.interruptUnsafe()
    onExit(Exit.interrupt())
  })
  fiber.addObserver((exit) => {
    if (!open) return
    open = false
    cancel()
    onExit(exit)
  })
  return fiber
}

/** {@link runWithin} as an effect: a call without an answer at the deadline is an interruption. */
export const callWithin = <A, E = StorageFailure>(
  time: Timekeeping,
  call: () => Effect.Effect<A, E>,
  deadlineMs: number
): Effect.Effect<A, E> =>
  Effect.callback((resume) => {
    const fiber = runWithin(time, call, deadlineMs, resume)
    return Effect.sync(() => fiber.interruptUnsafe())
  })

/** The failure that a store or registry reported; undefined if the call was interrupted or died. */
export const failureOf = <E>(cause: Cause.Cause<E>): E | undefined =>
  Option.getOrUndefined(Cause.findErrorOption(cause))

/** The failure of a store that was interrupted or did not answer. */
export const storeInterrupted = (): StorageUnavailable =>
  new StorageUnavailable({ detail: "the store did not answer in time or was interrupted" })

/** Checks `isOver` at an interval until it is true; false after `timeoutMs`. */
export const waitUntil = async (
  isOver: () => boolean,
  timeoutMs: number,
  intervalMs: number
): Promise<boolean> => {
  const endMs = performance.now() + timeoutMs
  while (!isOver()) {
    if (performance.now() >= endMs) return false
    await new Promise((resolve) => setTimeout(resolve, intervalMs))
  }
  return true
}
