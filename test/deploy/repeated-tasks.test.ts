/** Tasks that a node repeats go on after a pass that ended with a defect, and the log names it. */
import { Effect, Layer, Logger, ManagedRuntime } from "effect"
import { TestClock } from "effect/testing"
import { afterAll, expect, it } from "vitest"
import { UsageLedger } from "../../actors/index.ts"
import { usageShownMs } from "../../actors/limits.ts"
import { orphanSweepIntervalMs } from "../../deploy/limits.ts"
import { orphanRemoval } from "../../deploy/node/orphan-removal.ts"
import type { Service } from "../../http/index.ts"
import { expirySweepMs } from "../../http/limits.ts"
import { sweep } from "../../http/record-expiry.ts"
import { makeMemoryRecords } from "../../runtime/memory/records.ts"

const lines: Array<string> = []
const logger = Logger.make(({ message }) => void lines.push([message].flat().join(" ")))
const runtime = ManagedRuntime.make(Layer.merge(TestClock.layer(), Logger.layer([logger])))

afterAll(() => runtime.dispose())

interface Passes {
  count: number
}

/** The first pass dies; every other one is `after`. */
const dyingOnce = <A>(passes: Passes, after: A) =>
  Effect.sync(() => {
    if (passes.count++ === 0) throw new Error("planned")
    return after
  })

const orphansOf = (passes: Passes) => {
  const blobs = { scanSettled: () => dyingOnce(passes, []) }
  const service = { blobs } as unknown as Service // no other part is used
  return orphanRemoval(true, service, { owns: () => true })
}

const ledgerOf = (passes: Passes) => {
  const limits = { anonymousBytesMax: 1, networkBytesMax: 1, accountBytesMax: 1 }
  const records = { ...makeMemoryRecords(), get: () => dyingOnce(passes, undefined) }
  return new UsageLedger(records, limits).watchAnonymous
}

const tasks = [
  {
    name: "the removal of expired records",
    taskOf: (passes: Passes) => sweep(dyingOnce(passes, undefined)),
    everyMs: expirySweepMs,
    line: "expired records were not removed; the node retries Error: planned"
  },
  {
    name: "the removal of orphaned blobs",
    taskOf: orphansOf,
    everyMs: orphanSweepIntervalMs,
    line: "the removal of orphaned blobs failed Error: planned"
  },
  {
    name: "the reading of the anonymous total",
    taskOf: ledgerOf,
    everyMs: usageShownMs,
    line: "what clients without an account have stored was not read; the node retries " +
      "Error: planned"
  }
]

it.each(tasks)("$name goes on after a defect", async ({ everyMs, line, taskOf }) => {
  lines.length = 0
  const passes: Passes = { count: 0 }
  const task = runtime.runFork(taskOf(passes))
  for (let at = 0; at < 3; at++) await runtime.runPromise(TestClock.adjust(everyMs))
  task.interruptUnsafe()
  expect(passes.count).toBeGreaterThanOrEqual(3)
  expect(lines).toEqual([line])
})
