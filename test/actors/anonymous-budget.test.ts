/** The requests that anonymous deposits of one network may cause. */
import { array, assert, constantFrom, nat, property, tuple } from "fast-check"
import { expect, it } from "vitest"
import { AnonymousBudget,
  sharedBudgetSlots } from "../../actors/background-task/anonymous-budget.ts"
import { anonymousBudgetsMax, anonymousOriginsMax, anonymousPerDayMax, anonymousPerMinuteMax,
  anonymousSharedBudgetsMax } from "../../actors/limits.ts"

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

/** Each network shares no budget with another one. */
const separate = () => {
  const known = new Map<string, number>()
  return (network: string) => {
    const slot = known.get(network) ?? known.size
    known.set(network, slot)
    return slot
  }
}

const limits = { pairsMax: anonymousBudgetsMax, originsMax: anonymousOriginsMax }

/** Makes `count` requests of a network at the time, each to another origin. */
const takeMany = (
  budget: AnonymousBudget,
  network: string,
  count: number,
  atMs: number
): ReadonlyArray<number> =>
  Array.from({ length: count }, (_, n) => budget.take(network, `https://${n}.example`, atMs))

it("forgets nothing of the last day: while its memory is full, new origins share a budget", () => {
  const budget = new AnonymousBudget(limits, separate())
  for (let n = 0; n < anonymousPerMinuteMax; n++) expect(budget.take("a", victim, 1)).toBe(0)
  // No network has more than another, so that none has room for others.
  for (let n = 1; n < anonymousBudgetsMax; n++) {
    expect(budget.take(`n${n}`, `https://${n}.example`, 1 + n)).toBe(0)
  }
  const atMs = 20_000
  expect(budget.take("a", victim, atMs)).toBe(1 + minuteMs - atMs)
  for (const network of ["a", "b"]) {
    const waits = takeMany(budget, network, anonymousPerMinuteMax + 1, atMs)
    expect(waits).toEqual([...Array.from({ length: anonymousPerMinuteMax }, () => 0), minuteMs])
  }
  // Known origins go on, and are then not the first to be forgotten.
  expect(budget.take("a", victim, 1 + minuteMs)).toBe(0)
  for (let n = anonymousPerMinuteMax; n < anonymousPerDayMax; n++) {
    expect(budget.take("b", victim, atMs + n * minuteMs)).toBe(0)
  }
  // The first pair to end is another one's, a day after its last request.
  const lateMs = atMs + 23 * 60 * minuteMs
  expect(budget.take("b", victim, lateMs)).toBe(2 + dayMs - lateMs)
  expect(budget.take("b", victim, 2 + dayMs)).toBe(0)
  expect(budget.size).toBe(anonymousBudgetsMax)
})

it("has room for an eleventh network when ten have filled it", () => {
  const budget = new AnonymousBudget(limits, separate())
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
  // No network of the ten gets a second budget for each of its origins: one for all together.
  const through = networks.map((network) =>
    origins.map((origin) =>
      Array.from({ length: 2 * anonymousPerMinuteMax }, () => budget.take(network, origin, 3))
        .filter((waitMs) => waitMs === 0).length
    )
  )
  expect(through[0]?.reduce((sum, one) => sum + one)).toBe(anonymousPerMinuteMax)
  expect(Math.max(...through.slice(1).flat())).toBe(anonymousPerMinuteMax - 1)
  // An eleventh, and each later one, gets as much as the others have.
  for (let n = 11; n < 40; n++) {
    expect(takeMany(budget, `n${n}`, 100, 4).every((waitMs) => waitMs === 0)).toBe(true)
  }
  // After a day all have room again.
  for (const network of networks) expect(budget.take(network, victim, 4 + dayMs)).toBe(0)
})

it("lets requests of the network with the most origins through, whoever fills the memory", () => {
  const budget = new AnonymousBudget(limits, separate())
  takeMany(budget, "honest", 500, 1)
  for (let n = 0; n < 19; n++) takeMany(budget, `evil${n}`, 499, 2)
  takeMany(budget, "evil19", anonymousBudgetsMax - budget.size, 2)
  expect(budget.size).toBe(anonymousBudgetsMax)
  expect(budget.take("newcomer", victim, 3)).toBe(0)
  // The room is the honest network's: its new origins share a budget, as do the forgotten ones.
  for (let n = 0; n < anonymousPerMinuteMax - 1; n++) {
    expect(budget.take("honest", `https://new${n}.example`, 4)).toBe(0)
  }
  expect([0, 0].map(() => budget.take("honest", "https://0.example", 4))).toEqual([0, minuteMs])
  expect(budget.take("honest", "https://499.example", 4)).toBe(0)
})

it("has room for a newcomer when each network has one origin", () => {
  const budget = new AnonymousBudget(limits, separate())
  for (let n = 0; n < anonymousBudgetsMax; n++) expect(budget.take(`n${n}`, victim, 1)).toBe(0)
  for (let n = 0; n < 100; n++) expect(budget.take(`newcomer${n}`, victim, 2)).toBe(0)
  // It takes nothing of those that were there before.
  expect(budget.take("n0", victim, 3)).toBe(0)
  expect(budget.size).toBe(anonymousBudgetsMax)
})

it("has a bounded number of shared budgets, which networks may have in common", () => {
  const budget = new AnonymousBudget({ pairsMax: 1, originsMax: 1 }, () => 0)
  expect(budget.take("a", victim, 1)).toBe(0)
  for (let n = 0; n < anonymousPerMinuteMax; n++) expect(budget.take(`n${n}`, victim, 2)).toBe(0)
  expect(budget.take("other", victim, 2)).toBe(minuteMs)
})

it("spreads networks over the shared budgets, in another way at each node", () => {
  const networks = Array.from({ length: 1_000 }, (_, n) => `n${n}`)
  const [one, other] = [sharedBudgetSlots(), sharedBudgetSlots()].map((slotOf) =>
    networks.map(slotOf)
  )
  expect(new Set(one).size).toBeGreaterThan(900)
  expect(one?.every((slot) => slot >= 0 && slot < anonymousSharedBudgetsMax)).toBe(true)
  expect(one).not.toEqual(other)
})

it("lets no network take all the room", () => {
  const budget = new AnonymousBudget(limits, separate())
  takeMany(budget, "a", anonymousOriginsMax, 1)
  expect(budget.take("a", "https://0.example", 2)).toBe(0)
  takeMany(budget, "a", anonymousOriginsMax + 100, 2)
  expect(budget.size).toBe(anonymousOriginsMax)
  expect(budget.take("a", victim, 2)).toBe(minuteMs)
  expect(budget.take("b", victim, 2)).toBe(0)
  expect(budget.size).toBe(anonymousOriginsMax + 1)
})

it("lets at most one more budget through while the room is short, and takes no more room", () => {
  const step = tuple(constantFrom("a", "b", "c", "d"), nat(8), nat(4 * 60 * minuteMs))
  assert(property(array(step, { minLength: 50, maxLength: 400 }), (all) => {
    const few = { pairsMax: 8, originsMax: 5 }
    const budget = new AnonymousBudget(few, separate())
    const through: Array<{ readonly pair: string; readonly atMs: number }> = []
    let nowMs = 0
    for (const [network, at, stepMs] of all) {
      nowMs += stepMs
      // Each request leaves one for the pair, so that a third budget would be seen.
      const kept = anonymousPerDayMax - 1
      const waitMs = budget.take(network, `https://${at}.example`, nowMs, kept)
      expect(budget.size).toBeLessThanOrEqual(few.pairsMax)
      if (waitMs > 0) continue
      const pair = `${network} ${at}`
      through.push({ pair, atMs: nowMs })
      const lastDay = through.filter((one) => one.atMs > nowMs - dayMs)
      expect(lastDay.filter((one) => one.pair === pair).length).toBeLessThanOrEqual(2)
      // Over all origins it is one request more than there are pairs with one.
      const own = lastDay.filter((one) => one.pair.startsWith(network))
      expect(own.length - new Set(own.map((one) => one.pair)).size).toBeLessThanOrEqual(1)
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
