/** The end of one pass of a task that repeats for as long as a node runs. */
import { Cause, Effect } from "effect"

/**
 * Runs one pass of a repeated task. A failure or defect is logged with `message`, and the pass ends
 * normally: nobody supervises the fiber of such a task, so its end would stop the task unnoticed.
 */
export const logFailure = <R>(
  pass: Effect.Effect<unknown, unknown, R>,
  message: string
): Effect.Effect<void, never, R> =>
  Effect.catchCause(
    Effect.asVoid(pass),
    (cause) => Effect.logWarning(message, Cause.squash(cause))
  )
