/** Simulated time in place of the globals: clocks, timers and random numbers. */
import { randomBytes, randomUUID } from "node:crypto"
import { describe, expect, it } from "vitest"
import { epochMs, VirtualTime } from "../../../runtime/testing/index.ts"

/** What a program draws and reads in a run of this seed. */
const drawn = async (seed: number) => {
  const time = new VirtualTime(seed)
  const restore = time.install()
  try {
    const computer = time.newComputer("fast", 1.02, 1_000)
    const seen: Array<number> = []
    time.on(computer, 10, () => {
      seen.push(Date.now(), new Date().getTime())
      setTimeout(() => seen.push(Date.now()), 1_020)
    })
    await time.runUntil(5_000)
    return {
      seen,
      values: [
        Math.random(),
        crypto.randomUUID(),
        randomUUID(),
        randomBytes(4).toString("hex"),
        crypto.getRandomValues(new Uint16Array(3)).join()
      ]
    }
  } finally {
    restore()
  }
}

describe("simulated time", () => {
  it("is that of the computer on which the code runs", async () => {
    const { seen: [now = 0, made = 0, later = 0] } = await drawn(1)
    expect(now).toBe(epochMs + 1_010)
    expect(made).toBe(now)
    expect(Math.abs(later - now - 1_020)).toBeLessThanOrEqual(1)
  })

  it("makes the same random numbers for the same seed, and others for another", async () => {
    const { values } = await drawn(1)
    expect((await drawn(1)).values).toEqual(values)
    const { values: others } = await drawn(2)
    for (const [at, value] of values.entries()) expect(others[at]).not.toBe(value)
  })

  it("keeps a given date, and what a date is", async () => {
    const time = new VirtualTime(1)
    const restore = time.install()
    try {
      expect(new Date(0).toISOString()).toBe("1970-01-01T00:00:00.000Z")
      expect(new Date()).toBeInstanceOf(Date)
      expect(new Date().getTime()).toBe(epochMs)
    } finally {
      restore()
    }
  })

  it("restores all that it replaced", async () => {
    const before = [Date, Date.now, crypto.randomUUID, crypto.getRandomValues, randomUUID]
    await drawn(1)
    expect([Date, Date.now, crypto.randomUUID, crypto.getRandomValues, randomUUID]).toEqual(before)
    expect(Date.now()).toBeLessThan(epochMs)
    expect(Object.hasOwn(crypto, "getRandomValues")).toBe(false)
  })
})
