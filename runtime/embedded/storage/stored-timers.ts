/**
 * The timers and signals of a shard that come first, out of any number: their keys are in order of
 * address.
 */
import { fromKey } from "../../actor/index.ts"
import { timersPerStep } from "../../limits.ts"
import type { StoredTimer, TimerPage } from "../../ports/index.ts"
import { type Database, readSpan } from "../engine/index.ts"
import * as keys from "../keys.ts"

/** Keeps the `limit` soonest of all that are added. */
class SoonestTimers {
  count = 0
  private timers: Array<StoredTimer> = []
  private beforeMs = Number.POSITIVE_INFINITY
  private readonly limit: number

  constructor(limit: number) {
    this.limit = limit
  }

  add(key: string, text: string): void {
    this.count++
    const { atMs, signalRevision } = keys.parseTimer(text)
    if (atMs >= this.beforeMs) return
    this.timers.push({ address: fromKey(key), atMs, signalRevision })
    if (this.timers.length >= 2 * this.limit) this.beforeMs = this.inOrder().at(-1)?.atMs ?? atMs
  }

  inOrder(): ReadonlyArray<StoredTimer> {
    this.timers.sort((one, other) => one.atMs - other.atMs)
    if (this.timers.length > this.limit) this.timers.length = this.limit
    return this.timers
  }
}

/** Reads all timers and signals of the shard, a few at once. */
export const nextTimers = async (
  opened: () => Database,
  shard: number,
  limit: number
): Promise<TimerPage> => {
  const soonest = new SoonestTimers(limit)
  for (const prefix of [keys.timerPrefix(shard), keys.signalPrefix(shard)]) {
    const lt = keys.endOf(prefix)
    let from: { gt: string } | { gte: string } = { gte: prefix }
    for (;;) {
      const span = { ...from, lt, limit: timersPerStep }
      const rows: ReadonlyArray<string> = await readSpan(opened, span, false)
      for (let at = 0; at < rows.length; at += 2) {
        soonest.add((rows[at] ?? "").slice(prefix.length), rows[at + 1] ?? "")
      }
      // Other work gets a turn between two steps, and between two shards.
      if (rows.length > 0) await new Promise((resolve) => setImmediate(resolve))
      if (rows.length < 2 * timersPerStep) break
      from = { gt: rows.at(-2) ?? "" }
    }
  }
  return { timers: soonest.inOrder(), complete: soonest.count <= limit }
}
