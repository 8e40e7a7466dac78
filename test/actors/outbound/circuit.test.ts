/** The circuit of one origin by itself, and the pace of returns. */
import { describe, expect, it } from "vitest"
import { CircuitBreaker, noReturns, RetryPacing } from "../../../actors/outbound/origin-limiter.ts"

describe("a circuit by itself", () => {
  it("stays open twice as long with each probe that fails, up to a minute", () => {
    const limits = { faultsMax: 2, openMs: 1_000, openMaxMs: 60_000 }
    const circuit = new CircuitBreaker(limits)
    let nowMs = 0
    circuit.end("faults", circuit.begin(), nowMs)
    const waits: Array<number> = []
    for (let n = 0; n < 9; n++) {
      circuit.end("faults", circuit.begin(), nowMs)
      const until = circuit.closedUntil(nowMs, 5) ?? NaN
      waits.push(until - nowMs)
      expect(circuit.closedUntil(until - 1, 5)).toBe(until)
      nowMs = until
    }
    expect(waits).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60].map((s) => s * 1_000))
    circuit.end("answers", circuit.begin(), nowMs)
    expect(circuit.isBlank).toBe(true)
  })

  it("learns nothing from faults of attempts that began before it opened", () => {
    const circuit = new CircuitBreaker({ faultsMax: 1, openMs: 1_000, openMaxMs: 60_000 })
    const [one, two] = [circuit.begin(), circuit.begin()]
    expect(circuit.end("faults", one, 0)).toBe(true)
    expect(circuit.end("faults", two, 500)).toBe(false)
    expect(circuit.closedUntil(999, 5)).toBe(1_000)
    expect(circuit.closedUntil(1_000, 5)).toBeUndefined()
  })
})

describe("the pace of returns", () => {
  it("spreads a line over time, whatever comes back meanwhile", () => {
    const pace = new RetryPacing(1_000, () => 0)
    const line = noReturns()
    const times = Array.from({ length: 100_000 }, () => pace.next(line, 1_000, 0))
    expect(times[0]).toBe(1_000)
    expect(times.at(-1)).toBe(1_000 + 99_999)
    expect(new Set(times).size).toBe(100_000)
  })

  it("shares the rate between lines, and puts none behind another", () => {
    const pace = new RetryPacing(1_000, () => 0)
    const long = noReturns()
    for (let n = 0; n < 50_000; n++) pace.next(long, 60_000, 0)
    const short = noReturns()
    expect(pace.next(short, 1_000, 0)).toBe(1_000)
    expect(pace.next(short, 1_000, 0)).toBe(1_002)
    expect(pace.next(long, 60_000, 0)).toBe(60_000 + 50_001)
    // The short line is over: the long one has the rate to itself again.
    pace.next(long, 0, 5_000)
    expect(pace.next(long, 0, 5_000)).toBe(60_000 + 50_003)
  })

  it("is a little uneven", () => {
    const pace = new RetryPacing(1_000, () => 0.5)
    expect(pace.next(noReturns(), 1_000, 0)).toBe(1_050)
  })
})
