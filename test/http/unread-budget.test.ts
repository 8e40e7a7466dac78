/** The budget of unread answers, with a clock of the test. */
import { array, assert, boolean, nat, property, record } from "fast-check"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { answerBytesPerSecondMin, answerCreditMsMax, answerKeepMs, heldAnswerBytes,
  readerStallMs } from "../../http/limits.ts"
import { UnreadBudget } from "../../http/wire/answers/index.ts"
import { IndexedHeap } from "../../http/wire/answers/indexed-heap.ts"

const room = 10_000

/** Room for three bodies of one network, and for five in all. */
const limits = {
  networkBytesMax: 3 * (heldAnswerBytes + room),
  totalBytesMax: 5 * (heldAnswerBytes + room)
}

const world = () => {
  const clock = { nowMs: 5_000 }
  const budget = new UnreadBudget(limits, () => clock.nowMs)
  const ended: Array<string> = []
  const kept: Array<string> = []
  const hold = (name: string, network: string, body = new Uint8Array(room)) => {
    const held = budget.hold({
      network,
      body,
      end: () => {
        ended.push(name)
        held.release()
      },
      keep: () => kept.push(name)
    })
    return held
  }
  return { budget, clock, ended, kept, hold }
}

// The budget's own timer: the tests call `sweep`.
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
})
afterEach(() => {
  vi.useRealTimers()
})

describe("unread answers", () => {
  it("of one network have room up to its limit: the slowest is ended for the next one", () => {
    const { budget, clock, ended, hold } = world()
    hold("a1", "a").progress(5 * answerBytesPerSecondMin)
    clock.nowMs += 1_000
    hold("a2", "a")
    clock.nowMs += 1_000
    hold("a3", "a")
    expect(ended).toEqual([])
    hold("a4", "a")
    hold("a5", "a")
    expect(ended).toEqual(["a2", "a3"])
    expect(budget.bytes).toBe(limits.networkBytesMax)
  })

  it("of the network that uses most are ended for another one", () => {
    const { budget, ended, hold } = world()
    for (const name of ["b1", "b2"]) hold(name, "b")
    for (const name of ["a1", "a2", "a3"]) hold(name, "a")
    hold("c1", "c")
    expect(ended).toEqual(["a1"])
    expect(budget.bytes).toBe(limits.totalBytesMax)
  })

  it("share the memory of the same body, and leave nothing behind", () => {
    const { budget, ended, hold } = world()
    const body = new Uint8Array(room)
    const all = ["a1", "a2", "b1"].map((name) => hold(name, name.slice(0, 1), body))
    expect(budget.bytes).toBe(room + 3 * heldAnswerBytes)
    for (const held of [...all, ...all]) held.release()
    expect([budget.bytes, budget.size, ended]).toEqual([0, 0, []])
  })

  it("that share a body make room in the order of their time, thousands at once", () => {
    const count = 16_000
    const networkBytesMax = (count + 1) * heldAnswerBytes + room
    const budget = new UnreadBudget(
      { networkBytesMax, totalBytesMax: Number.POSITIVE_INFINITY },
      () => 5_000
    )
    const ended: Array<number> = []
    const keep = (): void => {}
    const body = new Uint8Array(room)
    for (let n = 0; n < count; n += 1) {
      const held = budget.hold({ network: "a", body, end: () => ended.push(n), keep })
      if (n % 2 === 0) held.progress(answerBytesPerSecondMin)
    }
    expect(ended).toEqual([])
    const large = new Uint8Array(count / 2 * heldAnswerBytes)
    budget.hold({ network: "a", body: large, end: () => ended.push(-1), keep })
    expect(ended).toEqual(Array.from({ length: count / 2 }, (_, n) => 2 * n + 1))
    expect(budget.bytes).toBe(networkBytesMax)
  })

  it("have always room for one, however large", () => {
    const { budget, ended, hold } = world()
    hold("large", "a", new Uint8Array(10 * room))
    expect(ended).toEqual([])
    hold("next", "a")
    expect(ended).toEqual(["large"])
    expect(budget.size).toBe(1)
  })

  it("end without progress, and have time for what the client has read", () => {
    const { budget, clock, ended, hold } = world()
    hold("stalled", "a")
    const slow = hold("slow", "a")
    const fast = hold("fast", "a")
    fast.progress(1_000_000_000)
    clock.nowMs += readerStallMs - 1
    budget.sweep()
    expect(ended).toEqual([])
    slow.progress(answerBytesPerSecondMin)
    clock.nowMs += 1
    budget.sweep()
    expect(ended).toEqual(["stalled"])
    clock.nowMs += 1_000
    budget.sweep()
    expect(ended).toEqual(["stalled", "slow"])
    clock.nowMs = 5_000 + answerCreditMsMax
    budget.sweep()
    expect(ended).toEqual(["stalled", "slow", "fast"])
  })

  it("that are read at the least rate are not ended, and are kept", () => {
    const { budget, clock, ended, hold, kept } = world()
    const held = hold("steady", "a")
    for (let seconds = 0; seconds < 600; seconds += 1) {
      clock.nowMs += 1_000
      held.progress(answerBytesPerSecondMin)
      budget.sweep()
    }
    expect(ended).toEqual([])
    expect(kept).toHaveLength(600_000 / answerKeepMs)
  })

  it("that wait for the service itself are not ended", () => {
    const { budget, clock, ended, hold } = world()
    const held = hold("paused", "a")
    held.pause(true)
    clock.nowMs += 1_000_000
    budget.sweep()
    for (const name of ["a1", "a2", "a3"]) hold(name, "a")
    expect(ended).toEqual(["a1"])
    held.pause(false)
    clock.nowMs += readerStallMs - 1
    budget.sweep()
    expect(ended).toEqual(["a1", "a2", "a3"].slice(0, 1))
    clock.nowMs += 1
    budget.sweep()
    expect(ended).toContain("paused")
  })
})

describe("an indexed heap", () => {
  interface Numbered {
    readonly n: number
    key: number
  }

  it("has the first of its items, whichever of them move and leave", () => {
    const step = record({ isPut: boolean(), n: nat(9), key: nat(20) })
    assert(property(array(step, { maxLength: 60 }), (steps) => {
      const items = Array.from({ length: 10 }, (_, n): Numbered => ({ n, key: 0 }))
      const heap = new IndexedHeap<Numbered>((one, other) =>
        one.key === other.key ? one.n < other.n : one.key < other.key
      )
      const present = new Set<Numbered>()
      for (const { isPut, key, n } of steps) {
        const item = items[n]
        if (item === undefined) continue
        if (isPut) {
          item.key = key
          heap.put(item)
          present.add(item)
        } else {
          heap.remove(item)
          present.delete(item)
        }
        const [first] = [...present]
          .toSorted((one, other) => one.key - other.key || one.n - other.n)
        expect(heap.first).toBe(first)
      }
    }))
  })

  it("compares an item with a number of others that grows with its logarithm", () => {
    const count = 16_384
    let compared = 0
    const heap = new IndexedHeap<Numbered>((one, other) => {
      compared += 1
      return one.key < other.key
    })
    for (let n = 0; n < count; n += 1) heap.put({ n, key: n * 7_919 % count })
    const keys: Array<number> = []
    for (let first = heap.first; first !== undefined; first = heap.first) {
      keys.push(first.key)
      heap.remove(first)
    }
    expect(keys).toEqual(Array.from({ length: count }, (_, n) => n))
    expect(compared).toBeLessThan(3 * count * Math.log2(count))
  })
})
