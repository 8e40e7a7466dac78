/** The requests that anonymous deposits of one network may cause. */
import { array, assert, constantFrom, nat, property, tuple } from "fast-check"
import { expect, it } from "vitest"
import { AnonymousBudget } from "../../actors/background-task/anonymous-budget.ts"
import { anonymousPerDayMax, anonymousPerMinuteMax } from "../../actors/limits.ts"

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
