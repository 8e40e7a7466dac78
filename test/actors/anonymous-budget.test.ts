/** The requests that anonymous deposits of one network may cause. */
import { array, assert, constantFrom, nat, property, tuple } from "fast-check"
import { expect, it } from "vitest"
import { AnonymousBudget } from "../../actors/background-task/anonymous-budget.ts"
import { anonymousBudgetsMax, anonymousOriginsMax, anonymousPerDayMax,
  anonymousPerMinuteMax } from "../../actors/limits.ts"

const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs
const victim = "https://victim.example"

it("lets ten through in a minute, for each network and origin", () => {
  const budget = new AnonymousBudget()
  const take = (atMs: number) => budget.take("198.51.100.0/24", victim, atMs)
  for (let n = 0; n < anonymousPerMinuteMax; n++) expect(take(1_000 + n)).toBe(0)
  expect(take(1_500)).toBe(minuteMs - 500)
  expect(budget.take("198.51.101.0/24", victim, 1_500)).toBe(0)
  expect(budget.take("198.51.100.0/24", "https://other.example", 1_500)).toBe(0)
  // Who waits as long as required is let through, one for each that is a minute old.
  expect([take(1_000 + minuteMs), take(1_000 + minuteMs)]).toEqual([0, 1])
})

it("lets a hundred through in a day", () => {
  const budget = new AnonymousBudget()
  for (let n = 0; n < anonymousPerDayMax; n++) {
    expect(budget.take("a", victim, n * minuteMs)).toBe(0)
  }
  const atMs = anonymousPerDayMax * minuteMs
  expect(budget.take("a", victim, atMs)).toBe(dayMs - atMs)
  expect(budget.take("a", victim, dayMs)).toBe(0)
})

it("forgets nothing of the last day: new origins wait while its memory is full", () => {
  const budget = new AnonymousBudget()
  for (let n = 0; n < anonymousPerMinuteMax; n++) expect(budget.take("a", victim, 1)).toBe(0)
  // No network has more than another, so that none has room for others.
  for (let n = 1; n < anonymousBudgetsMax; n++) {
    expect(budget.take(`n${n}`, `https://${n}.example`, 1 + n)).toBe(0)
  }
  // The first to end is the victim's, a day after its last request.
  expect(budget.take("a", "https://new.example", 20_000)).toBe(1 + dayMs - 20_000)
  expect(budget.take("b", victim, 20_000)).toBe(1 + dayMs - 20_000)
  expect(budget.take("a", victim, 20_000)).toBe(1 + minuteMs - 20_000)
  // Known origins go on, and are then not the first to be forgotten.
  expect(budget.take("a", victim, 1 + minuteMs)).toBe(0)
  expect(budget.take("a", "https://new.example", 1 + dayMs)).toBe(1)
  expect(budget.take("a", "https://new.example", 2 + dayMs)).toBe(0)
  expect(budget.take("a", "https://newer.example", 2 + dayMs)).toBe(1)
  const times = Array.from(
    { length: anonymousPerMinuteMax },
    () => budget.take("a", victim, 2 + dayMs)
  )
  expect(times.filter((waitMs) => waitMs === 0)).toHaveLength(anonymousPerMinuteMax)
  expect(budget.take("a", victim, 2 + dayMs)).toBe(minuteMs)
})

it("has room for an eleventh network when ten have filled it", () => {
  const budget = new AnonymousBudget()
  const networks = Array.from(
    { length: anonymousBudgetsMax / anonymousOriginsMax },
    (_, n) => `n${n}`
  )
  const origins = Array.from({ length: anonymousOriginsMax }, (_, n) => `https://${n}.example`)
  for (const network of networks) {
    for (const origin of origins) expect(budget.take(network, origin, 1)).toBe(0)
  }
  for (const origin of origins) {
    for (let n = 1; n < anonymousPerMinuteMax; n++) budget.take("n0", origin, 1)
  }
  expect(budget.take("honest", "https://honest.example", 2)).toBe(0)
  // No network of the ten gets a second budget for any of its origins, known or not.
  const through = networks.map((network) =>
    origins.map((origin) =>
      Array.from({ length: 2 * anonymousPerMinuteMax }, () => budget.take(network, origin, 3))
        .filter((waitMs) => waitMs === 0).length
    )
  )
  expect(Math.max(...through[0] ?? [])).toBe(0)
  expect(Math.max(...through.flat())).toBe(anonymousPerMinuteMax - 1)
  // An eleventh, and each later one, gets as much as the others have.
  for (let n = 11; n < 40; n++) {
    for (let at = 0; at < 100; at++) {
      expect(budget.take(`n${n}`, `https://${at}.example`, 4)).toBe(0)
    }
  }
  // After a day all have room again.
  for (const network of networks) expect(budget.take(network, victim, 4 + dayMs)).toBe(0)
})

it("lets no network take all the room", () => {
  const budget = new AnonymousBudget()
  for (let n = 0; n < anonymousOriginsMax; n++) {
    expect(budget.take("a", `https://${n}.example`, n)).toBe(0)
  }
  expect(budget.take("a", victim, 5_000)).toBe(dayMs - 5_000)
  expect(budget.take("b", victim, 5_000)).toBe(0)
  expect(budget.take("a", "https://0.example", 5_000)).toBe(0)
  // The second origin is the first to end, then the third.
  expect([budget.take("a", victim, dayMs), budget.take("a", victim, dayMs + 1)]).toEqual([1, 0])
  expect(budget.take("a", "https://other.example", dayMs + 1)).toBe(1)
})

it("never lets more through while the room is short, and never takes more room", () => {
  const step = tuple(constantFrom("a", "b", "c", "d"), nat(8), nat(4 * 60 * minuteMs))
  assert(property(array(step, { minLength: 50, maxLength: 400 }), (all) => {
    const limits = { pairsMax: 8, originsMax: 5 }
    const budget = new AnonymousBudget(limits)
    const through = new Map<string, Array<number>>()
    let nowMs = 0
    for (const [network, at, stepMs] of all) {
      nowMs += stepMs
      // Each request leaves one for the pair, so that a second budget would be seen.
      const kept = anonymousPerDayMax - 1
      const waitMs = budget.take(network, `https://${at}.example`, nowMs, kept)
      expect(budget.size).toBeLessThanOrEqual(limits.pairsMax)
      if (waitMs > 0) continue
      const pair = `${network} ${at}`
      const times = through.get(pair) ?? []
      expect(times.filter((time) => time > nowMs - dayMs)).toEqual([])
      through.set(pair, [...times, nowMs])
    }
  }))
})

it("never lets more through in any minute or day", () => {
  const steps = array(tuple(constantFrom("a", "b"), nat(3 * minuteMs)), { maxLength: 300 })
  assert(property(steps, (all) => {
    const budget = new AnonymousBudget()
    const through: Record<string, Array<number>> = { a: [], b: [] }
    let nowMs = 0
    for (const [network, stepMs] of all) {
      nowMs += stepMs
      if (budget.take(network, victim, nowMs) === 0) through[network]?.push(nowMs)
      for (const times of Object.values(through)) {
        expect(times.filter((at) => at > nowMs - minuteMs).length)
          .toBeLessThanOrEqual(anonymousPerMinuteMax)
        expect(times.filter((at) => at > nowMs - dayMs).length)
          .toBeLessThanOrEqual(anonymousPerDayMax)
      }
    }
  }))
})
