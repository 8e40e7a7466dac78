/** The soonest timers of a shard, out of any number: their keys are in order of address. */
import { fromKey } from "../../actor/index.ts"
import { timersPerStep } from "../../limits.ts"
import type { TimerPage } from "../../ports/index.ts"
import { type Database, readSpan } from "../engine/index.ts"
import * as keys from "../keys.ts"

interface Found {
  readonly key: string
  readonly atMs: number
}

/** Keeps the `limit` soonest of all that are added. */
class Soonest {
  count = 0
  private found: Array<Found> = []
  private beforeMs = Number.POSITIVE_INFINITY
  private readonly limit: number

  constructor(limit: number) {
    this.limit = limit
  }

  add(key: string, atMs: number): void {
    this.count++
    if (atMs >= this.beforeMs) return
    this.found.push({ key, atMs })
    if (this.found.length >= 2 * this.limit) this.beforeMs = this.inOrder().at(-1)?.atMs ?? atMs
  }

  inOrder(): ReadonlyArray<Found> {
    this.found.sort((one, other) => one.atMs - other.atMs)
    if (this.found.length > this.limit) this.found.length = this.limit
    return this.found
  }
}

/** Reads all keys of the shard, a few at once. */
export const nextTimers = async (
  opened: () => Database,
  shard: number,
  limit: number
): Promise<TimerPage> => {
  const prefix = keys.timerPrefix(shard)
  const lt = keys.endOf(prefix)
  const soonest = new Soonest(limit)
  let last: string | undefined = undefined
  for (;;) {
    const from: { gt: string } | { gte: string } = last === undefined
      ? { gte: prefix }
      : { gt: last }
    const span = { ...from, lt, limit: timersPerStep }
    const rows: ReadonlyArray<string> = await readSpan(opened, span, false)
    for (let at = 0; at < rows.length; at += 2) {
      soonest.add(rows[at] ?? "", Number(rows[at + 1]))
    }
    // Shards are read one after another too: each gives way, however few it has.
    if (rows.length > 0) await new Promise((resolve) => setImmediate(resolve))
    if (rows.length < 2 * timersPerStep) break
    last = rows.at(-2)
  }
  const timers = soonest.inOrder().map(({ atMs, key }) => ({
    address: fromKey(key.slice(prefix.length)),
    atMs
  }))
  return { timers, complete: soonest.count <= limit }
}
