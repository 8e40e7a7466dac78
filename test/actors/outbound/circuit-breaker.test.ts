/** The circuit breaker of one origin, and the pacing of retries. */
import { describe, expect, it } from "vitest"
import { CircuitBreaker, RetryPacing } from "../../../actors/outbound/origin-limiter.ts"

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

describe("the pacing of retries", () => {
  it("spreads the retries of an origin over time", () => {
    const pace = new RetryPacing(1_000, () => 0)
    const slots = { lastMs: 0 }
    const times = Array.from({ length: 100_000 }, () => pace.next(slots, 1_000, 0))
    expect(times[0]).toBe(1_000)
    expect(times.at(-1)).toBe(1_000 + 99_999)
    expect(new Set(times).size).toBe(100_000)
  })

  it("shares the rate between origins, and delays none by another", () => {
    const pace = new RetryPacing(1_000, () => 0)
    const long = { lastMs: 0 }
    for (let n = 0; n < 50_000; n++) pace.next(long, 60_000, 0)
    const short = { lastMs: 0 }
    expect(pace.next(short, 1_000, 0)).toBe(1_000)
    expect(pace.next(short, 1_000, 0)).toBe(1_002)
    expect(pace.next(long, 60_000, 0)).toBe(60_000 + 50_001)
    // The short origin has no retry left: the long one has the whole rate again.
    pace.next(long, 0, 5_000)
    expect(pace.next(long, 0, 5_000)).toBe(60_000 + 50_003)
  })

  it("jitters", () => {
    const pace = new RetryPacing(1_000, () => 0.5)
    expect(pace.next({ lastMs: 0 }, 1_000, 0)).toBe(1_050)
  })
})
