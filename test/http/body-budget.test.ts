/** The budget of unfinished bodies, with a clock of the test. */
import { array, assert, constantFrom, nat, oneof, property, record } from "fast-check"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { bodyBlockBytes, bodyDeadlines, heldBodyBytes,
  uploadBytesPerSecondMin } from "../../http/limits.ts"
import { BodyBudget, deadlineMs, type HeldBody } from "../../http/wire/body-budget.ts"
import { PartialDocument } from "../../http/wire/document.ts"

const limits = {
  totalBytesMax: 100,
  networkBytesMax: 60,
  deadlines: [{ fromShare: 0.9, ms: 1_000 }, { fromShare: 0.5, ms: 4_000 }, {
    fromShare: 0,
    ms: 20_000
  }]
}

const world = () => {
  const clock = { nowMs: 5_000 }
  const budget = new BodyBudget(limits, () => clock.nowMs)
  const givenUp: Array<string> = []
  const kept: Array<string> = []
  const hold = (name: string, network: string, isSteady = false): HeldBody => {
    const giveUp = (): void => {
      givenUp.push(name)
      held.release()
    }
    const held = budget.hold(network, { isSteady, giveUp, keep: () => kept.push(name) })
    return held
  }
  return { budget, clock, givenUp, kept, hold }
}

const full = { of: "the service", bytesMax: 100 }

const networkFull = (of: string) => ({ of, bytesMax: 60 })

// The budget's own timer: the tests call `sweep`.
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
})
afterEach(() => {
  vi.useRealTimers()
})

describe("unfinished bodies", () => {
  it("of one network have room up to its limit, others beyond", () => {
    const { budget, hold } = world()
    const first = hold("first", "a")
    expect([first.resize(40), first.resize(60), first.resize(61)])
      .toEqual([undefined, undefined, networkFull("a")])
    expect(hold("second", "a").resize(1)).toEqual(networkFull("a"))
    expect(hold("third", "b").resize(40)).toBeUndefined()
    expect(hold("fourth", "b").resize(1)).toEqual(full)
    expect(budget.bytes).toBe(100)
    first.release()
    first.release()
    expect(budget.bytes).toBe(40)
  })

  it("that are late make room for others, the oldest first and no more than needed", () => {
    const { clock, givenUp, hold } = world()
    for (const name of ["one", "two", "three"]) expect(hold(name, name).resize(30)).toBeUndefined()
    clock.nowMs += 999
    expect(hold("early", "x").resize(40)).toEqual(full)
    clock.nowMs += 1
    expect(hold("late", "x").resize(40)).toBeUndefined()
    expect(givenUp).toEqual(["one"])
  })

  it("of another network make no room for a network at its own limit", () => {
    const { clock, givenUp, hold } = world()
    expect(hold("other", "b").resize(20)).toBeUndefined()
    expect(hold("own", "a").resize(60)).toBeUndefined()
    clock.nowMs += 1_000
    expect(hold("new", "a").resize(10)).toBeUndefined()
    expect(givenUp).toEqual(["own"])
  })

  it("of the network that uses most give way to one that uses half as much, however new", () => {
    const { givenUp, hold } = world()
    for (const name of ["a1", "a2", "a3"]) expect(hold(name, "a").resize(20)).toBeUndefined()
    expect(hold("b1", "b").resize(40)).toBeUndefined()
    expect(hold("c1", "c").resize(10)).toBeUndefined()
    expect(givenUp).toEqual(["a1"])
    expect(hold("d1", "d").resize(25)).toEqual(full)
    expect(givenUp).toEqual(["a1"])
  })

  it("that were given up take no more", () => {
    const { budget, clock, givenUp, hold } = world()
    const old = hold("old", "a")
    expect(old.resize(60)).toBeUndefined()
    clock.nowMs += 1_000
    expect(hold("new", "a").resize(60)).toBeUndefined()
    old.resize(1)
    expect([givenUp, budget.bytes]).toEqual([["old"], 60])
  })

  it("have the less time the more of the budget they use", () => {
    const { budget, clock, givenUp, hold } = world()
    hold("alone", "a").resize(10)
    clock.nowMs += 19_999
    budget.sweep()
    expect(givenUp).toEqual([])
    hold("next", "b").resize(40)
    budget.sweep()
    // With half of the budget in use there are 4 s for each.
    expect(givenUp).toEqual(["alone"])
    hold("third", "c").resize(51)
    clock.nowMs += 1_000
    budget.sweep()
    expect(givenUp).toEqual(["alone", "next"])
    const times = [0, 0.5, 0.75, 0.9, 1].map((share) => deadlineMs(share))
    expect(times).toEqual([20_000, 8_000, 4_000, 2_000, 2_000])
    expect(bodyDeadlines.at(-1)?.fromShare).toBe(0)
  })

  it("of uploads have as long as they arrive steadily, or the service makes them wait", () => {
    const { budget, clock, givenUp, kept, hold } = world()
    const enough = 20 * uploadBytesPerSecondMin
    const [steady, dripping, waiting] = ["steady", "dripping", "waiting"].map((name) =>
      hold(name, name, true)
    )
    waiting?.pause(true)
    for (let n = 0; n < 3; n += 1) {
      steady?.arrive(enough)
      dripping?.arrive(20)
      clock.nowMs += 20_000
      budget.sweep()
    }
    expect(givenUp).toEqual(["dripping"])
    expect(new Set(kept)).toEqual(new Set(["steady"]))
    waiting?.pause(false)
    budget.sweep()
    clock.nowMs += 20_000
    budget.sweep()
    expect(givenUp).toEqual(["dripping", "steady", "waiting"])
  })

  it("are looked at when the next one begins, or at a sweep", () => {
    const { budget } = world()
    const begun: Array<string> = []
    budget.expect(() => begun.push("first"))
    expect(begun).toEqual([])
    budget.expect(() => begun.push("second"))
    expect(begun).toEqual(["first"])
    budget.sweep()
    budget.sweep()
    expect(begun).toEqual(["first", "second"])
  })

  it("never exceed a limit, and leave nothing behind", () => {
    const step = oneof(
      record({ does: constantFrom("hold"), network: constantFrom("a", "b", "c"), n: nat(50) }),
      record({
        does: constantFrom("resize", "release", "wait", "sweep"),
        network: constantFrom(""),
        n: nat(50)
      })
    )
    assert(property(array(step, { maxLength: 80 }), (steps) => {
      const { budget, clock, hold } = world()
      const all: Array<HeldBody> = []
      for (const { does, n, network } of steps) {
        const one = all[n % Math.max(1, all.length)]
        if (does === "hold") all.push(hold("", network, n % 2 === 0))
        if (does === "resize") one?.resize(n)
        if (does === "release") one?.release()
        if (does === "wait") clock.nowMs += n * 50
        if (does === "sweep") budget.sweep()
        expect(budget.bytes).toBeLessThanOrEqual(limits.totalBytesMax)
        expect(budget.bytes).toBeGreaterThanOrEqual(0)
      }
      for (const one of all) one.release()
      expect(budget.bytes).toBe(0)
      expect(hold("", "a").resize(limits.networkBytesMax)).toBeUndefined()
    }))
  })
})

describe("an unfinished document", () => {
  const begin = (budget: BodyBudget) => new PartialDocument(budget, "a", () => {}, () => {})

  it("is whole at its end, whatever the sizes of its pieces, also in memory used before", () => {
    const budget = new BodyBudget()
    const sizes = array(nat(3 * bodyBlockBytes), { minLength: 1, maxLength: 8 })
    assert(property(sizes, (lengths) => {
      const one = begin(budget)
      const pieces = lengths.map((length, n) => Buffer.alloc(length, 1 + n))
      const last = pieces.pop() ?? Buffer.alloc(0)
      for (const piece of pieces) expect(one.add(piece)).toBeUndefined()
      expect(one.whole(last).equals(Buffer.concat([...pieces, last]))).toBe(true)
      one.release()
      expect(budget.bytes).toBe(0)
    }))
  })

  it("takes no more than its blocks if each byte comes alone", () => {
    const budget = new BodyBudget()
    const one = begin(budget)
    for (let n = 0; n <= bodyBlockBytes; n += 1) one.add(Buffer.from("x"))
    expect(budget.bytes).toBe(heldBodyBytes + 2 * bodyBlockBytes)
  })
})
