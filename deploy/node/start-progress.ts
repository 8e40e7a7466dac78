/** The log of a slow start, for the operator of a node that does not become ready. */
import { Effect } from "effect"

/** A start that takes longer logs its step, and again at this interval. */
export const slowStartMs = 15_000

export interface StartProgress {
  /** What the node does now: a verb in the third person and its object, `opens the store`. */
  step: string
}

/** Logs the step of a start that takes long, until it is interrupted. */
export const reportSlowStart = (progress: StartProgress): Effect.Effect<never> =>
  Effect.suspend(() => Effect.logWarning(`the node is still starting: it ${progress.step}`)).pipe(
    Effect.delay(slowStartMs),
    Effect.forever
  )
