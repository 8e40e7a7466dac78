/** Lists the signals of a shard, and its actors' own timers in order of time, page by page. */
import { fromKey } from "../../actor/index.ts"
import type { StoredTimer, TimerCursor, TimerPage } from "../../ports/index.ts"
import { type Database, readSpan } from "../engine/index.ts"
import * as keys from "../keys.ts"

/** The first signals of a shard. The rows of a span are its keys and values in turn. */
const signalsOf = async (
  opened: () => Database,
  shard: number,
  limit: number
): Promise<Array<StoredTimer>> => {
  const prefix = keys.signalPrefix(shard)
  const rows = await readSpan(opened, { gte: prefix, lt: keys.endOf(prefix), limit }, false)
  const signals: Array<StoredTimer> = []
  for (let at = 0; at < rows.length; at += 2) {
    const { atMs, revision } = keys.parseSignal(rows[at + 1] ?? "")
    const address = fromKey((rows[at] ?? "").slice(prefix.length))
    signals.push({ address, atMs, signalRevision: revision })
  }
  return signals
}

/** Where a page begins. A cursor's `after` is the last listed key without the shard's prefix. */
const lowerBound = (prefix: string, from: TimerCursor | undefined) => {
  if (from === undefined) return { gte: prefix }
  return from.after === ""
    ? { gte: prefix + keys.digits(from.atMs) }
    : { gt: prefix + from.after }
}

/** See `StorageApi.timers`. It reads one row more than `limit` to find out whether more follow. */
export const nextTimers = async (
  opened: () => Database,
  shard: number,
  limit: number,
  from: TimerCursor | undefined
): Promise<TimerPage> => {
  const signals = await signalsOf(opened, shard, limit + 1)
  const prefix = keys.duePrefix(shard)
  const span = { ...lowerBound(prefix, from), lt: keys.endOf(prefix), limit: limit + 1 }
  const rows = await readSpan(opened, span, false, false)
  const timers = signals.slice(0, limit)
  const last = rows.length <= 2 * limit
    ? undefined
    : (rows[2 * limit - 2] ?? "").slice(prefix.length)
  for (let at = 0; at < Math.min(rows.length, 2 * limit); at += 2) {
    const { atMs, key } = keys.parseDue((rows[at] ?? "").slice(prefix.length))
    timers.push({ address: fromKey(key), atMs, signalRevision: undefined })
  }
  return {
    timers: timers.sort((one, other) => one.atMs - other.atMs),
    next: last === undefined ? undefined : { atMs: keys.parseDue(last).atMs, after: last },
    hasMoreSignals: signals.length > limit
  }
}
