/** Waits for what is under way around actors to end, by the machine's own clock. */
import { type Cause, Effect, Exit, type Fiber } from "effect"
import { type StorageFailure, StorageUnavailable } from "./actor/index.ts"

/** Runs an effect in the system's context: its clock, logger and tracer. */
export type Fork = <A, E>(effect: Effect.Effect<A, E>) => Fiber.Fiber<A, E>

/** Runs something after a while; the result calls it off. */
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
 * Runs one call of a store. When it has not answered by the deadline it is interrupted and
 * `onExit` gets an interruption, once; what it answers after that is not heard.
 */
export const runWithin = <A, E = StorageFailure>(
  { fork, later }: Timekeeping,
  call: () => Effect.Effect<A, E>,
  deadlineMs: number,
  onExit: (exit: Exit.Exit<A, E>) => void
): void => {
  const fiber = fork(Effect.suspend(call))
  const atOnce = fiber.pollUnsafe()
  if (atOnce !== undefined) return onExit(atOnce)
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
}

/** The failure that the store named; undefined when it broke off without naming one. */
export const namedFailure = (cause: Cause.Cause<StorageFailure>): StorageFailure | undefined => {
  const reason = cause.reasons.find((one) => one._tag === "Fail")
  return reason?._tag === "Fail" ? reason.error : undefined
}

/** Whether a defect ended it. */
export const hasDied = (cause: Cause.Cause<StorageFailure>): boolean =>
  cause.reasons.some((one) => one._tag === "Die")

/** What to say of a store that broke off or did not answer. */
export const storeInterrupted = (): StorageUnavailable =>
  new StorageUnavailable({ detail: "the store broke off, or did not answer in time" })

/*
 * Time that passes around actors, by the system's own clock; and the deadline of every call of
 * the store, so that a store that never answers holds nobody for ever.
 */

/** Looks every so often whether it is over; false when it is not within the time. */
export const waitUntil = async (
  over: () => boolean,
  withinMs: number,
  everyMs: number
): Promise<boolean> => {
  const endMs = performance.now() + withinMs
  while (!over()) {
    if (performance.now() >= endMs) return false
    await new Promise((resolve) => setTimeout(resolve, everyMs))
  }
  return true
}
