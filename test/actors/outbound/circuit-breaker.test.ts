/** The circuit breaker of one origin, and the pacing of retries. */
import { describe, expect, it } from "vitest"
import { CircuitBreaker, RetryPacing } from "../../../actors/outbound/origin-limiter.ts"
import type { RequestCause } from "../../../actors/outbound/protocol.ts"

describe("a circuit breaker", () => {
  it("stays open twice as long with each probe that fails, up to a minute", () => {
    const limits = { failuresMax: 2, openMs: 1_000, openMaxMs: 60_000 }
    const circuit = new CircuitBreaker(limits)
    let nowMs = 0
    circuit.end("failing", circuit.begin(), nowMs)
    const waits: Array<number> = []
    for (let n = 0; n < 9; n++) {
      circuit.end("failing", circuit.begin(), nowMs)
      const until = circuit.retryAtMs(nowMs, 5) ?? NaN
      waits.push(until - nowMs)
      expect(circuit.retryAtMs(until - 1, 5)).toBe(until)
      nowMs = until
    }
    expect(waits).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60].map((s) => s * 1_000))
    circuit.end("healthy", circuit.begin(), nowMs)
    expect(circuit.isBlank).toBe(true)
  })

  it("ignores failures of requests that began before it opened", () => {
    const circuit = new CircuitBreaker({ failuresMax: 1, openMs: 1_000, openMaxMs: 60_000 })
    const [one, two] = [circuit.begin(), circuit.begin()]
    expect(circuit.end("failing", one, 0)).toBe(true)
    expect(circuit.end("failing", two, 500)).toBe(false)
    expect(circuit.retryAtMs(999, 5)).toBe(1_000)
    expect(circuit.retryAtMs(1_000, 5)).toBeUndefined()
  })
})

/** Numbers of [0, 1) that fill it evenly. */
const even = (): () => number => {
  let count = 0
  return () => count++ * 0.618034 % 1
}

const alice = { kind: "account", id: "alice" } as const
const bob = { kind: "account", id: "bob" } as const

describe("the pacing of retries", () => {
  it("spreads the retries of an origin over time", () => {
    const pace = new RetryPacing(1_000, () => 0)
    const times = Array.from(
      { length: 100_000 },
      () => pace.next(alice, "long", 0, { earliestMs: 1_000 })
    )
    expect(times[0]).toBe(1_000)
    expect(times.at(-1)).toBe(1_000 + 99_999)
    expect(new Set(times).size).toBe(100_000)
  })

  it("shares the rate between the origins of a cause, and delays none by another", () => {
    const pace = new RetryPacing(1_000, () => 0)
    const next = (origin: string, nowMs: number, earliestMs: number) =>
      pace.next(alice, origin, nowMs, { earliestMs })
    for (let n = 0; n < 50_000; n++) next("long", 0, 60_000)
    expect(next("short", 0, 1_000)).toBe(1_000)
    expect(next("short", 0, 1_000)).toBe(1_002)
    expect(next("long", 0, 60_000)).toBe(60_000 + 50_001)
    // The short origin has no retry left: the long one has the whole rate again.
    next("long", 5_000, 60_000)
    expect(next("long", 5_000, 60_000)).toBe(60_000 + 50_003)
  })

  it("delays no cause by another with many origins", () => {
    const pace = new RetryPacing(1_000, () => 0)
    const next = (cause: RequestCause, origin: string) =>
      pace.next(cause, origin, 0, { earliestMs: 1_000 })
    for (let n = 0; n < 10_000; n++) next(alice, `o${n}`)
    // Two accounts share the rate; an origin of Alice that Bob also uses delays only Alice.
    expect(next(bob, "o0")).toBe(1_000)
    expect(next(bob, "o0")).toBe(1_002)
  })

  it("spreads the retries of many causes and origins, after hours too, and again", () => {
    const startMs = 36e5
    const pace = new RetryPacing(1_000, even())
    for (let round = 0; round < 3; round++) {
      const nowMs = startMs + 20_000 * round
      const times = Array.from({ length: 10_000 }, (_, n) => {
        const cause = { kind: "account", id: `a${n}` } as const
        return pace.next(cause, "dead", nowMs, { earliestMs: nowMs + 1_000 })
      })
      const perSecond = new Map<number, number>()
      for (const at of times) {
        const second = Math.floor(at / 1_000)
        perSecond.set(second, (perSecond.get(second) ?? 0) + 1)
      }
      // The first ones come before their number is known.
      expect(Math.max(...perSecond.values())).toBeLessThan(3_500)
      expect(perSecond.size).toBeGreaterThanOrEqual(10)
    }
  })

  it("makes no cause with many retries wait for causes with one each", () => {
    const nowMs = 36e5
    const pace = new RetryPacing(1_000, even())
    for (let n = 0; n < 2_000; n++) {
      pace.next({ kind: "account", id: `a${n}` }, `o${n}`, nowMs, { earliestMs: nowMs })
    }
    const times = Array.from(
      { length: 4_000 },
      () => pace.next(alice, "dead", nowMs, { earliestMs: nowMs + 1_000 })
    )
    expect(Math.max(...times)).toBeLessThan(nowMs + 1_000 + 6_200)
    expect(Math.min(...times)).toBeGreaterThanOrEqual(nowMs + 1_000)
  })

  it("delays no account by networks, however many these are", () => {
    const pace = new RetryPacing(1_000, () => 0)
    for (let n = 0; n < 10_000; n++) {
      pace.next({ kind: "network", id: `n${n}` }, "dead", 0, { earliestMs: 1_000 })
    }
    const next = () => pace.next(bob, "dead", 0, { earliestMs: 1_000 })
    expect(next()).toBe(1_000)
    expect(next()).toBe(1_002)
  })

  it("jitters", () => {
    const pace = new RetryPacing(1_000, () => 0.5)
    expect(pace.next(alice, "o", 0, { earliestMs: 1_000 })).toBe(1_051)
  })
})
