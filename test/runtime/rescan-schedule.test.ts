/** When timers are read from the store again. */
import { expect, it } from "vitest"
import { defaultLimits } from "../../runtime/limits.ts"
import { RescanSchedule } from "../../runtime/timers/rescan-schedule.ts"

const { lateCommitRescanMs, lateCommitRescans, sweepMs, timersRescanMs } = defaultLimits
const lateSweeps = lateCommitRescanMs / sweepMs
const regularSweeps = timersRescanMs / sweepMs
const shards = Array.from({ length: 256 }, (_, shard) => shard)

it.each([true, false])("rescans are spread over the sweeps (late commits: %s)", (expectsLate) => {
  const schedule = new RescanSchedule(defaultLimits)
  for (const shard of shards) schedule.begin(shard, expectsLate)
  const counts = shards.map(() => 0)
  const sweep = () => {
    const due = schedule.sweep()
    for (const shard of due) counts[shard] = (counts[shard] ?? 0) + 1
    return due.length
  }
  if (expectsLate) {
    const late = Array.from({ length: lateSweeps * (lateCommitRescans + 1) }, sweep)
    expect(Math.max(...late)).toBeLessThanOrEqual(Math.ceil(shards.length / lateSweeps))
    expect(new Set(counts)).toEqual(new Set([lateCommitRescans + 1]))
  }
  const regular = Array.from({ length: 3 * regularSweeps }, sweep)
  expect(Math.max(...regular)).toBeLessThanOrEqual(Math.ceil(shards.length / regularSweeps))
})
