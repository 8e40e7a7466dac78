/** Records that end at a time. A table lists them by that time: its keys are `<ms>/<name>`. */
import { Effect } from "effect"
import { keyTimeDigits } from "../actors/index.ts"
import { logFailure, type RecordEntry } from "../runtime/index.ts"
import { expiryPage, expirySweepMs } from "./limits.ts"
import type { HandlerFailure, Service } from "./pipeline/index.ts"

type ExpiryContext = Pick<Service, "nowMs" | "records">

/** The time in a key that begins with it, ms since the epoch. */
export const timeOfKey = (key: string): number => Number(key.slice(0, keyTimeDigits))

/** The part of a key after the time. */
export const nameInKey = (key: string): string => key.slice(keyTimeDigits + 1)

/** Passes all entries of `table` whose time has come to `remove`, which removes them. */
export const removeExpired = Effect.fnUntraced(function*(
  { nowMs, records }: ExpiryContext,
  table: string,
  remove: (expired: ReadonlyArray<RecordEntry>) => Effect.Effect<unknown, HandlerFailure>
): Effect.fn.Return<void, HandlerFailure> {
  for (;;) {
    const entries = yield* records.range(table, { limit: expiryPage })
    const expired = entries.filter(({ key }) => timeOfKey(key) <= nowMs())
    if (expired.length > 0) yield* remove(expired)
    if (expired.length < expiryPage) return
  }
})

/** Repeats a removal at intervals, for as long as the service runs. A failed one is logged. */
export const sweep = (removal: Effect.Effect<void, HandlerFailure>): Effect.Effect<never> =>
  Effect.forever(Effect.andThen(
    logFailure(removal, "expired records were not removed; the node retries"),
    Effect.sleep(expirySweepMs)
  ))
