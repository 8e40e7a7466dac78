/** A node has few of its timers in memory, and misses none. */
import { Effect } from "effect"
import fc from "fast-check"
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest"
import { keyOf, makeLimits, shardOf } from "../../runtime/index.ts"
import { makeMemoryStorage } from "../../runtime/memory/storage.ts"
import { soleStream, type StorageApi, type StoredTimer,
  type TimerPage } from "../../runtime/ports/storage.ts"
import { TimerService, TimerWindow } from "../../runtime/timers/timer-service.ts"
import { commitOf } from "../suites/storage-probe.ts"
import { at, probe } from "./probe.ts"
import { dropAll, type Rig, start, turns } from "./rig.ts"
import { type Step, step, TimersModel } from "./timers-model.ts"

afterEach(dropAll)

const shard = shardOf(at("a"))
const timerOf = (n: number, atMs: number) => ({
  address: at(`a=${n}`),
  atMs,
  signalRevision: undefined
})
/** A page after which the store has more. */
const pageOf = (timers: ReadonlyArray<StoredTimer>): TimerPage => ({
  timers,
  next: { atMs: timers.at(-1)?.atMs ?? 0, after: keyOf(timers.at(-1)?.address ?? at("a")) },
  hasMoreSignals: false
})
const keyOfNumber = (n: number) => keyOf(at(`a=${n}`))

describe("a window", () => {
  const window = (...times: ReadonlyArray<number>): TimerWindow => {
    const made = new TimerWindow(4)
    made.beginLoad()
    made.finishLoad(pageOf(times.map((atMs, n) => timerOf(n, atMs))))
    return made
  }

  it("leaves later timers to the store", () => {
    const made = window(10, 20, 30, 40)
    made.set("probe/a=later", 41)
    made.set("probe/a=soon", 39)
    made.set(keyOfNumber(0), 50)
    expect([made.size, made.earliestMs]).toEqual([4, 20])
  })

  it("is complete if the store has no more, until it grows too large", () => {
    const made = new TimerWindow(4)
    made.beginLoad()
    made.finishLoad({ timers: [], next: undefined, hasMoreSignals: false })
    for (let n = 0; n < 8; n++) made.set(keyOfNumber(n), 100 - n)
    expect([made.size, made.isLow(Infinity)]).toEqual([8, false])
    made.set(keyOfNumber(8), 92)
    expect([made.size, made.earliestMs]).toEqual([4, 92])
    for (let n = 8; n > 5; n--) made.take(100)
    expect([made.size, made.isLow(Infinity), made.isLow(90)]).toEqual([1, true, false])
  })

  it("ignores loaded timers that are in memory, in delivery or changed since", () => {
    const made = window(10, 20, 30, 40)
    expect(made.take(20)?.key).toBe(keyOfNumber(0))
    made.pin(keyOfNumber(1), 500, "deferred")
    made.set(keyOfNumber(2), null)
    made.set(keyOfNumber(3), null)
    expect(made.isLow(Infinity)).toBe(true)
    made.request(true)
    expect(made.beginLoad()).toEqual({ from: undefined, limit: 6 })
    made.set(keyOfNumber(4), 45)
    made.set(keyOfNumber(5), null)
    made.set(keyOfNumber(6), 1_000)
    expect(made.size).toBe(3)
    const stale = [10, 20, 30, 40, 60, 70, 80].map((atMs, n) => timerOf(n, atMs))
    made.finishLoad(pageOf([...stale.slice(0, 2), ...stale.slice(4)]))
    // Of the keys that were changed during the load, one was cleared, and one is beyond the end.
    expect([made.timeOf(keyOfNumber(1)), made.timeOf(keyOfNumber(4))]).toEqual([500, 45])
    expect(made.size).toBe(2)
    made.beginLoad()
    made.pin(keyOfNumber(5), 900, "deferred")
    made.finishLoad(pageOf(stale.slice(0, 4)))
    expect(made.timeOf(keyOfNumber(5))).toBe(900)
  })

  it("takes an earlier time of the store, as a commit may become durable long after it", () => {
    const made = window(10, 3_600_000)
    made.pin(keyOfNumber(0), 500, "deferred")
    made.request(true)
    made.beginLoad()
    made.finishLoad(pageOf([timerOf(0, 5), timerOf(1, 20)]))
    expect([made.timeOf(keyOfNumber(0)), made.timeOf(keyOfNumber(1))]).toEqual([500, 20])
    made.request(true)
    made.beginLoad()
    made.finishLoad(pageOf([timerOf(1, 3_600_000)]))
    expect(made.earliestMs).toBe(20)
  })

  it("does not repeat a load at once that found nothing new", () => {
    const made = window(10, 20, 30, 40)
    for (let n = 0; n < 4; n++) made.take(40)
    const { from } = made.beginLoad()
    expect(from?.atMs).toBe(40)
    expect(made.finishLoad({ timers: [], next: from, hasMoreSignals: false })).toBe(false)
  })
})

it("misses no timer under any sets, loads, deferrals and losses", async () => {
  const play = async (steps: ReadonlyArray<Step>): Promise<void> => {
    const model = new TimersModel()
    for (const one of steps) await model.play(one)
    model.take()
    for (let round = 0; round < 400 && !(model.idle && model.stored.size === 0); round++) {
      for (const _tag of ["Acknowledge", "Scan", "Scan"] as const) await model.play({ _tag })
      await model.play({ _tag: "EndDelivery", result: "answered" })
      await model.pass(10)
    }
    expect([...model.stored]).toEqual([])
    expect(model.idle).toBe(true)
    await model.end()
  }
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 150, size: "max" }), play),
    { numRuns: 150 }
  )
})

it("retries a delivery in time although the clock is set back by an hour", async () => {
  let nowMs = Date.now()
  let deliveries = 0
  const timers = new TimerService(
    Effect.runFork,
    () => nowMs,
    makeLimits({ timerRetryMs: 50, timerSleepMaxMs: 100 }),
    (_address, _fired, onResult) => {
      deliveries++
      nowMs -= 3_600_000
      onResult("later")
    },
    () => {
      timers.beginLoad(shard)
      timers.finishLoad(shard, { timers: [], next: undefined, hasMoreSignals: false })
    },
    soleStream
  )
  onTestFinished(() => timers.stop())
  timers.take(shard)
  timers.set(at("a"), nowMs)
  await vi.waitFor(() => expect(deliveries).toBeGreaterThan(2), { timeout: 5_000 })
})

const limits = { shardTimersMax: 8, timersInFlightMax: 5, timerBatchMax: 5 }

const write = (storage: StorageApi, ids: ReadonlyArray<string>, atMs: number) =>
  Effect.runPromise(
    storage.commit(ids.map((id) => commitOf({ address: at(id), timer: atMs })))
  )

/** Advances virtual time until the condition is true. */
const passUntil = async (rig: Rig, holds: () => boolean | Promise<boolean>): Promise<void> => {
  for (let left = 500; left > 0 && !(await holds()); left--) {
    await rig.pass(10)
    await turns(2)
  }
  expect(await holds()).toBe(true)
}

describe("a node", () => {
  const left = async (storage: StorageApi): Promise<number> =>
    (await Effect.runPromise(storage.timers(shard, 1_000))).timers.length

  it("delivers many due timers a few at a time", async () => {
    const storage = makeMemoryStorage()
    const ids = Array.from({ length: 100 }, (_, n) => `a=${n}`)
    await write(storage, ids, 50)
    const rig = await start({ limits }, { storage, virtualTime: true })
    expect(rig.system.snapshot().timers).toBe(8)
    await passUntil(rig, async () => (await left(storage)) === 0)
    const { decisions } = rig.system.snapshot().metrics.of("probe")
    expect(decisions).toBe(100)
  })

  it("continues beyond undeliverable timers", async () => {
    const storage = makeMemoryStorage()
    const strange = Array.from({ length: 30 }, (_, n) => ({ kind: "gone", id: `a=${n}` }))
    await Effect.runPromise(
      storage.commit(strange.map((address) => commitOf({ address, timer: 5 })))
    )
    await write(storage, ["a=ok"], 50)
    const rig = await start({ limits }, { storage, virtualTime: true })
    await passUntil(rig, async () => (await left(storage)) === 30)
    expect(rig.system.snapshot().earliestTimerMs).toBeUndefined()
  })

  it("reads no more while too many cannot be delivered", async () => {
    const storage = makeMemoryStorage()
    await write(storage, Array.from({ length: 60 }, (_, n) => `a=${n}`), 50)
    const broken = probe()
    const behavior = {
      ...broken,
      table: {
        ...broken.table,
        Idle: {
          ...broken.table.Idle,
          TimerFired: () => {
            throw new Error("broken on request")
          }
        }
      }
    }
    const options = { behaviors: [behavior], limits: { ...limits, timersStuckMax: 20 } }
    const rig = await start(options, { storage, virtualTime: true })
    for (let n = 0; n < 50; n++) {
      await rig.pass(20)
      await turns(2)
      // One load may add another window.
      expect(rig.system.snapshot().timers).toBeLessThanOrEqual(20 + 8)
    }
    expect(rig.system.snapshot().timers).toBeGreaterThanOrEqual(15)
    expect(await left(storage)).toBe(60)
  })
})
