/** Separate parts: addresses, limits, queue, heap, window, supervisor. */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { deduplicationKeysMax,
  DeduplicationWindow } from "../../runtime/activation/deduplication.ts"
import { PendingCommit } from "../../runtime/activation/pending-commit.ts"
import { Queue } from "../../runtime/activation/queue.ts"
import { Supervisor } from "../../runtime/activation/supervisor.ts"
import { address, fromKey, fromSubject, isActorId, keyOf, placingPart, shardOf,
  subjectOf } from "../../runtime/actor/address.ts"
import { makeLimits } from "../../runtime/limits.ts"
import { RuntimeMetrics } from "../../runtime/metrics.ts"
import { TimerHeap } from "../../runtime/timers/timer-service.ts"

describe("an address", () => {
  const id = fc.stringMatching(/^[A-Za-z0-9_=-]{1,200}$/)
  const kind = fc.stringMatching(/^[a-z][a-z-]{0,31}$/)

  it("determines its key, subject and shard, and key and subject determine it", () => {
    fc.assert(fc.property(kind, id, (ofKind, ofId) => {
      const one = address(ofKind, ofId)
      expect(fromKey(keyOf(one))).toEqual(one)
      expect(fromSubject(subjectOf(one))).toEqual(one)
      expect(shardOf(one)).toBeGreaterThanOrEqual(0)
      expect(shardOf(one)).toBeLessThan(256)
      const beside = `${placingPart(ofId)}=more`
      // The whole id determines the shard if it begins with the sign.
      if (!ofId.startsWith("=") && beside.length <= 200) {
        expect(shardOf(address("other", beside))).toBe(shardOf(one))
      }
    }))
  })

  it("rejects any other text", () => {
    for (const bad of ["", "a b", "a/b", "a.b", "*", ">", "é", "a\n", "x".repeat(201)]) {
      expect(isActorId(bad)).toBe(false)
      expect(() => address("probe", bad)).toThrow(TypeError)
    }
    for (const bad of ["", "Probe", "1", "a.b", "a".repeat(33)]) {
      expect(() => address(bad, "a")).toThrow(TypeError)
    }
    const shard = shardOf(address("probe", "a"))
    for (const bad of ["", "other.probe.1.a", `restante.probe.${shard + 1}.a`, "restante.probe"]) {
      expect(fromSubject(bad)).toBeUndefined()
    }
    expect(fromSubject(`restante.probe.${shard}.a.b`)).toBeUndefined()
  })

  it("spreads over the shards", () => {
    const counts = Array.from({ length: 256 }, () => 0)
    for (let n = 0; n < 25_600; n++) {
      const shard = shardOf(address("probe", `actor-${n}`))
      counts[shard] = (counts[shard] ?? 0) + 1
    }
    expect(Math.min(...counts)).toBeGreaterThan(50)
    expect(Math.max(...counts)).toBeLessThan(160)
  })
})

describe("limits", () => {
  it("are checked against each other at start", () => {
    expect(makeLimits({ idleMs: 9_000 }).idleMs).toBe(9_000)
    for (const bad of [{ idleMs: 1 }, { inboxMax: 0 }, { restartDelayMs: 20_000 }]) {
      expect(() => makeLimits(bad)).toThrow(/does not hold/)
    }
  })
})

describe("the queue", () => {
  it("is first in, first out, over any steps", () => {
    const step = fc.oneof(
      fc.nat(2_000).map((count) => ["push", count] as const),
      fc.nat(2_000).map((count) => ["shift", count] as const),
      fc.constant(["putFirst", 3] as const),
      fc.constant(["takeAll", 0] as const)
    )
    fc.assert(fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const queue = new Queue<number>()
      let model: Array<number> = []
      let next = 0
      for (const [what, count] of steps) {
        if (what === "takeAll") {
          expect(queue.takeAll()).toEqual(model)
          model = []
        } else if (what === "putFirst") {
          queue.putFirst([next, next + 1, next + 2])
          model = [next, next + 1, next + 2, ...model]
          next += 3
        } else {
          for (let left = count; left > 0; left--) {
            if (what === "push") {
              queue.push(next)
              model.push(next++)
            } else expect(queue.shift()).toBe(model.shift())
          }
        }
        expect(queue.length).toBe(model.length)
      }
    }))
  })
})

describe("the heap of due times", () => {
  it("returns the earliest first", () => {
    fc.assert(fc.property(fc.array(fc.integer()), (times) => {
      const heap = new TimerHeap()
      times.forEach((atMs, n) => heap.push(atMs, `k${n}`))
      const popped = times.map(() => heap.pop()?.atMs)
      expect(popped).toEqual([...times].sort((one, other) => one - other))
      expect(heap.pop()).toBeUndefined()
      heap.reset([["x", 2], ["y", 1]])
      expect(heap.pop()).toEqual({ atMs: 1, key: "y" })
      expect(heap.size).toBe(1)
    }))
  })
})

describe("the pending commit", () => {
  it.each([[[5, 7]], [[7, 5]], [[Number.NaN, 7]], [[7, Number.NaN]], [[5, Number.NaN, 7]]])(
    "removes the latest signal of %j, whose lost commits have no revision",
    (revisions) => {
      const commit = new PendingCommit(0)
      for (const revision of revisions) commit.consume(revision)
      commit.consume(undefined)
      expect(commit.toCommit(address("probe", "a"), 1, "", undefined).consumedSignal).toBe(7)
    }
  )
})

describe("the window of keys", () => {
  it("forgets the oldest keys", () => {
    const recent = new DeduplicationWindow(2)
    recent.add("a", 1)
    recent.add("b", 2)
    recent.add("c", 3)
    expect(["a", "b", "c"].map(recent.find)).toEqual([undefined, 2, 3])
  })

  it("finds the same as a list of the last items", () => {
    const key = fc.oneof(fc.nat(12).map((n) => `key-${n}`), fc.string())
    fc.assert(fc.property(fc.integer({ min: 1, max: 40 }), fc.array(key), (max, added) => {
      const recent = new DeduplicationWindow(max)
      added.forEach((one, at) => {
        recent.add(one, at + 1)
        const among = added.slice(Math.max(0, at + 1 - max), at + 1)
        for (const each of new Set(added)) {
          const last = among.lastIndexOf(each)
          const n = last < 0 ? undefined : at + 2 - among.length + last
          expect(recent.find(each)).toBe(n)
        }
      })
    }))
  })

  it("accepts many keys, up to its limit", () => {
    const recent = new DeduplicationWindow(1_000)
    for (let n = 1; n <= 10_000; n++) recent.add(`key ${n}`, n)
    expect(recent.find("key 9000")).toBeUndefined()
    for (let n = 9_001; n <= 10_000; n++) expect(recent.find(`key ${n}`)).toBe(n)
    expect(() => new DeduplicationWindow(deduplicationKeysMax + 1)).toThrow(RangeError)
  })
})

const clocksOf = (clock: { nowMs: number; monotonicMs: number }) => ({
  nowMs: () => clock.nowMs,
  monotonicMs: () => clock.monotonicMs
})

describe("the supervisor", () => {
  it("measures by the monotonic clock, and shows when the quarantine began", () => {
    const clock = { nowMs: 10_000_000, monotonicMs: 0 }
    const supervisor = new Supervisor(makeLimits({ restartsMax: 2 }), clocksOf(clock))
    const one = address("probe", "a")
    expect(supervisor.restart(one, "Error")).toBe(10)
    clock.nowMs -= 3_600_000
    expect(supervisor.restart(one, "Error")).toBeUndefined()
    expect(supervisor.refusal(keyOf(one))?.retryAfterMs).toBe(60_000)
    clock.nowMs -= 3_600_000
    clock.monotonicMs += 100_000
    const [{ sinceMs, untilMs } = { sinceMs: 0, untilMs: 0 }] = supervisor.quarantined()
    expect([sinceMs, untilMs]).toEqual([6_400_000, 7_000_000])
    clock.monotonicMs += 500_000
    expect(supervisor.refusal(keyOf(one))).toBeUndefined()
  })

  it("forgets old restarts and quarantines", () => {
    const clock = { nowMs: 0, monotonicMs: 0 }
    const supervisor = new Supervisor(makeLimits({ restartsMax: 2 }), clocksOf(clock))
    supervisor.restart(address("probe", "a"), "Error")
    supervisor.restart(address("probe", "a"), "Error")
    expect(supervisor.quarantined().length).toBe(1)
    clock.monotonicMs = 700_000
    supervisor.sweep()
    expect(supervisor.quarantined()).toEqual([])
    expect(supervisor.restart(address("probe", "a"), "Error")).toBe(10)
  })
})

describe("latency", () => {
  it("is counted under its bound", () => {
    const { commits } = new RuntimeMetrics()
    const { latencyMs } = commits
    for (const ms of [0.1, 0.25, 3, 9_000]) commits.observe(2, ms)
    expect(latencyMs.counts[0]).toBe(2)
    expect(latencyMs.counts[latencyMs.bounds.indexOf(5)]).toBe(1)
    expect(latencyMs.counts.at(-1)).toBe(1)
    expect(latencyMs.count).toBe(4)
    expect([commits.commits, commits.sizes.counts[1]]).toEqual([8, 4])
  })

  it("has quantiles of the last groups only", () => {
    const { commits } = new RuntimeMetrics()
    expect(commits.recentMs.quantile(0.5)).toBeUndefined()
    for (let n = 0; n < 1_000; n++) commits.observe(1, 5_000)
    for (let n = 1; n <= 512; n++) commits.observe(n, n / 10)
    expect(commits.recentMs.quantile(0.5)).toBe(25.6)
    expect(commits.recentMs.quantile(0.99)).toBe(50.7)
    expect(commits.recentMs.quantile(1)).toBe(51.2)
    expect(commits.recentSizes.quantile(0)).toBe(1)
  })
})
