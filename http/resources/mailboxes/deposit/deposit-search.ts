/** The search in a mailbox's log for a deposit whose number is unknown. */
import { Effect } from "effect"
import { decodeItem, isRemoval, itemAtMs } from "../../../../actors/mailbox/index.ts"
import type { LogItem } from "../../../../runtime/index.ts"
import { keyedSearchClockSkewMs, keyedSearchPage } from "../../../limits.ts"
import { type HandlerFailure, httpError } from "../../../pipeline/index.ts"

/** Reads log items with `n >= from`, ascending, at most `limit`. */
export type ReadLog = (
  from: number,
  limit: number
) => Effect.Effect<ReadonlyArray<LogItem>, HandlerFailure>

/** The first number, `head + 1` at the most, whose item may be of this time or later. */
const firstSince = Effect.fnUntraced(function*(
  read: ReadLog,
  head: number,
  sinceMs: number
): Effect.fn.Return<number, HandlerFailure> {
  let from = 1
  let to = head + 1
  // The times of a log never decrease.
  while (from < to) {
    const middle = Math.floor((from + to) / 2)
    const [item] = yield* read(middle, 1)
    if (item !== undefined && itemAtMs(item.value) < sinceMs) from = item.n + 1
    else to = middle
  }
  return Math.min(from, head + 1)
})

/** The deposit to find. */
interface SoughtDeposit {
  readonly idRandom: string
  /** When the key was first used. Clocks of nodes differ, so the deposit may be dated earlier. */
  readonly sinceMs: number
  /** The number of the last item. */
  readonly head: number
  /** Fail with 503 after so many items. */
  readonly itemsMax: number
}

/**
 * The number of the item with this random part; undefined if the log does not have it. Clocks of
 * nodes differ, so the search ends with the items of the last `keyedSearchClockSkewMs` before
 * `sinceMs`.
 */
export const findDeposit = Effect.fnUntraced(function*(
  read: ReadLog,
  { head, idRandom, itemsMax, sinceMs }: SoughtDeposit
): Effect.fn.Return<number | undefined, HandlerFailure> {
  const first = yield* firstSince(read, head, sinceMs)
  const earliest = yield* firstSince(read, head, sinceMs - keyedSearchClockSkewMs)
  let itemsLeft = itemsMax
  for (const [from, to] of [[first, head], [earliest, first - 1]] as const) {
    let next = from
    while (next <= to) {
      if (itemsLeft <= 0) return yield* tooMany
      const items = yield* read(next, Math.min(keyedSearchPage, itemsLeft))
      const isDeposit = ({ value }: LogItem): boolean =>
        !isRemoval(value) && decodeItem(value).idRandom === idRandom
      const found = items.find(isDeposit)
      if (found !== undefined) return found.n
      itemsLeft -= items.length
      next = (items.at(-1)?.n ?? to) + 1
    }
  }
  return undefined
})

const tooMany = httpError(
  "overloaded",
  "an earlier attempt stored this notification, but the search for it ended after too many later "
    + "ones; read the mailbox to find it"
)
