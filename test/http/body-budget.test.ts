/** The budget of unfinished bodies, with a clock of the test. */
import { array, assert, constantFrom, nat, oneof, property, record } from "fast-check"
import { describe, expect, it } from "vitest"
import { BodyBudget, type HeldBody } from "../../http/wire/body-budget.ts"

const limits = { totalBytesMax: 100, networkBytesMax: 60, pressedMs: 1_000 }

const world = () => {
  const clock = { nowMs: 5_000 }
  const budget = new BodyBudget(limits, () => clock.nowMs)
  const givenUp: Array<string> = []
  const hold = (name: string, network: string): HeldBody => {
    const held: HeldBody = budget.hold(network, () => {
      givenUp.push(name)
      held.release()
    })
    return held
  }
  return { budget, clock, givenUp, hold }
}

describe("unfinished bodies", () => {
  it("of one network have room up to its limit, others beyond", () => {
    const { budget, hold } = world()
    const first = hold("first", "a")
    expect([first.grow(40), first.grow(20), first.grow(1)]).toEqual([true, true, false])
    expect(hold("second", "a").grow(1)).toBe(false)
    expect(hold("third", "b").grow(40)).toBe(true)
    expect(hold("fourth", "c").grow(1)).toBe(false)
    expect(budget.bytes).toBe(100)
    first.release()
    first.release()
    expect(budget.bytes).toBe(40)
  })

  it("that take long make room for others, the oldest first and no more than needed", () => {
    const { clock, givenUp, hold } = world()
    for (const name of ["one", "two", "three"]) expect(hold(name, name).grow(30)).toBe(true)
    clock.nowMs += 999
    expect(hold("early", "x").grow(40)).toBe(false)
    clock.nowMs += 1
    expect(hold("late", "x").grow(40)).toBe(true)
    expect(givenUp).toEqual(["one"])
  })

  it("of another network make no room for a network at its own limit", () => {
    const { clock, givenUp, hold } = world()
    expect(hold("other", "b").grow(20)).toBe(true)
    expect(hold("own", "a").grow(60)).toBe(true)
    clock.nowMs += 1_000
    expect(hold("new", "a").grow(10)).toBe(true)
    expect(givenUp).toEqual(["own"])
  })

  it("that were given up take no more", () => {
    const { budget, clock, givenUp, hold } = world()
    const old = hold("old", "a")
    expect(old.grow(60)).toBe(true)
    clock.nowMs += 1_000
    expect(hold("new", "a").grow(60)).toBe(true)
    expect([givenUp, old.grow(1), budget.bytes]).toEqual([["old"], false, 60])
  })

  it("never exceed a limit, and leave nothing behind", () => {
    const step = oneof(
      record({ does: constantFrom("hold"), network: constantFrom("a", "b", "c"), n: nat(50) }),
      record({
        does: constantFrom("grow", "release", "wait"),
        network: constantFrom(""),
        n: nat(50)
      })
    )
    assert(property(array(step, { maxLength: 80 }), (steps) => {
      const { budget, clock, hold } = world()
      const all: Array<HeldBody> = []
      for (const { does, n, network } of steps) {
        const one = all[n % Math.max(1, all.length)]
        if (does === "hold") all.push(hold("", network))
        if (does === "grow") one?.grow(n)
        if (does === "release") one?.release()
        if (does === "wait") clock.nowMs += n * 50
        expect(budget.bytes).toBeLessThanOrEqual(limits.totalBytesMax)
        expect(budget.bytes).toBeGreaterThanOrEqual(0)
      }
      for (const one of all) one.release()
      expect(budget.bytes).toBe(0)
      expect(hold("", "a").grow(limits.networkBytesMax)).toBe(true)
    }))
  })
})
