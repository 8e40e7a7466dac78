/** A seed always runs the same way; and bugs that seeds found remain fixed. */
import { describe, expect, it } from "vitest"
import { read } from "./arguments.ts"
import { planOf } from "./plan.ts"
import { play } from "./report.ts"
import { simulate } from "./run.ts"

/**
 * Seeds that failed once, and the bugs that they found. The plan of a seed changes with the code
 * of plans, so each bug also has a test in `test/runtime`.
 */
const kept: ReadonlyArray<readonly [seed: number, minutes: number, found: string]> = [
  [39, 0.5, "a registration was woken without end while a deposit was under way"],
  [1130, 0.5, "a mailbox showed less than it had said: its log was read after its record"]
]

describe("npm run simulate", () => {
  it("runs one seed for half a minute by default", () => {
    const asked = {
      _tag: "Asked",
      seed: 1,
      runs: 1,
      minutes: 0.5,
      store: "contract",
      seams: {},
      isTraced: false
    }
    expect(read([])).toEqual(asked)
    expect(read(["--store", "jetstream"])).toEqual({ ...asked, store: "jetstream" })
    expect(read(["--seed", "7", "--runs=3", "--minutes", "2.5", "--trace"]))
      .toEqual({ ...asked, seed: 7, runs: 3, minutes: 2.5, isTraced: true })
    expect(read(["--fault", "no-fence"])).toMatchObject({ seams: { apply: expect.any(Function) } })
  })

  it("prints its usage", () => {
    expect(read(["--help"])).toMatchObject({
      isWrong: false,
      text: expect.stringContaining("--runs")
    })
  })

  it.each([
    "--seed 0",
    "--seed -1",
    "--seed 1.5",
    "--seed x",
    "--seed",
    "--runs 0",
    "--minutes 0",
    "--minutes Infinity",
    "--store none",
    "--fault none",
    "--fault toString",
    "--other",
    "7"
  ])("says what is wrong with %s", (args) => {
    expect(read(args.split(" "))).toMatchObject({
      _tag: "Reported",
      isWrong: true,
      text: expect.stringContaining("npm run simulate --")
    })
  })
})

describe("a seed", () => {
  it.each([1, 2, 3, 4])("%i has the same course each time", async (seed) => {
    const plan = planOf(seed, { minutes: 0.5 })
    expect(planOf(seed, { minutes: 0.5 })).toEqual(plan)
    const first = await simulate(plan, { keepsTrace: true })
    await simulate(planOf(seed + 100, { minutes: 0.2 }))
    const second = await simulate(plan, { keepsTrace: true })
    expect(second.trace).toEqual(first.trace)
    expect(second.hash).toBe(first.hash)
    // Recording the lines makes no difference.
    expect((await simulate(plan)).hash).toBe(first.hash)
  })

  it("has the same course each time on a simulated JetStream", async () => {
    const plan = planOf(2, { minutes: 0.5, store: "jetstream" })
    const first = await simulate(plan, { keepsTrace: true })
    const second = await simulate(plan, { keepsTrace: true })
    expect(second.trace).toEqual(first.trace)
    expect(second.hash).toBe(first.hash)
    expect(first.hash).not.toBe((await simulate({ ...plan, store: "contract" })).hash)
  })

  it("differs from other seeds", async () => {
    const hashes = new Set<string>()
    for (let seed = 1; seed <= 8; seed++) {
      hashes.add((await simulate(planOf(seed, { minutes: 0.2 }))).hash)
    }
    expect(hashes.size).toBe(8)
  })

  it("restores the clock, the timers and the random numbers", async () => {
    const before = [setTimeout, setImmediate, Date.now, Math.random, crypto.randomUUID]
    const { simulatedMs } = await simulate(planOf(1, { minutes: 0.2 }))
    expect([setTimeout, setImmediate, Date.now, Math.random, crypto.randomUUID]).toEqual(before)
    expect(simulatedMs).toBeGreaterThan(12_000)
    const nowMs = performance.now()
    await new Promise((resolve) => setTimeout(resolve, 5))
    expect(performance.now()).toBeGreaterThan(nowMs)
  })

  it.each(kept)("%i of %f minutes stays well: %s", async (seed, minutes) => {
    expect((await play(seed, { minutes })).report).toBeUndefined()
  })
})
