/** Definitions of actors in the simulator: what one declares is what is tested. */
import { describe, expect, it } from "vitest"
import { address, stay as unchanged } from "../../../runtime/index.ts"
import { become, defineActor, Schema, stay } from "../../../runtime/main.ts"
import { simulate, startTestNode, testTable } from "../../../runtime/testing/index.ts"

/** A counter that is reset a minute after its last change. */
const counter = defineActor("counter", {
  state: { Counting: { count: Schema.Int } },
  messages: { Add: { by: Schema.Int }, Read: {}, Reset: {} },
  timer: "Reset",
  initial: { _tag: "Counting", count: 0 },
  table: {
    Counting: {
      Add: ({ count }, { by }, { nowMs }) =>
        become({ _tag: "Counting", count: count + by }).setTimer(nowMs + 60_000).reply(count + by),
      Read: ({ count }) => stay().reply(count),
      Reset: () => become({ _tag: "Counting", count: 0 })
    }
  }
})

const visits = address("counter", "visits")

/** The first five seeds; no counter may be greater than `countMax`. */
const simulated = (countMax: number) =>
  simulate({
    behaviors: [counter],
    clients: (draw) => ({
      to: visits,
      message: draw.chance(0.6) ? { _tag: "Add", by: 1 + draw.below(3) } : { _tag: "Read" }
    }),
    invariants: [{
      name: "the count is bounded",
      always: ({ stateOf }, changed) => {
        const { count } = stateOf<{ readonly count: number }>(changed)
        return count > countMax ? `${count} is more than ${countMax}` : undefined
      }
    }],
    seeds: 5
  })

describe("a definition", () => {
  it("is simulated on a cluster with faults", async () => {
    const { coverage: [cells], seeds } = await simulated(1_000_000)
    expect(seeds).toBe(5)
    expect(cells?.text).toContain("counter: 3 of 3 cells")
  })

  it("fails its simulation where an invariant does not hold", async () => {
    await expect(simulated(3)).rejects.toThrow(/is more than 3[^]*to repeat it/)
  })

  it("runs on a node with a clock of its own, with its timer", async () => {
    const node = await startTestNode({ behaviors: [counter] })
    await node.ask(visits, { _tag: "Add", by: 2 })
    await node.restart()
    expect(await node.ask<number>(visits, { _tag: "Read" })).toBe(2)
    await node.advance(61_000)
    expect(await node.ask<number>(visits, { _tag: "Read" })).toBe(0)
    await node.stop()
  })

  it("has its cells tested one by one", () => {
    const tests = testTable(counter)
    tests.given({ _tag: "Counting", count: 1 }).when({ _tag: "Read" }).then(
      unchanged<never>().reply(1)
    )
    expect(tests.coverage().text).toMatch(/1 of 3 cells/)
  })

  it("has the cell of its timer tested, with the tick that it gets", () => {
    const clock = defineActor("clock", {
      state: { Running: { ticks: Schema.Array(Schema.Int) } },
      messages: { Tick: {} },
      timer: "Tick",
      initial: { _tag: "Running", ticks: [] },
      table: {
        Running: {
          Tick: ({ ticks }, _, { nowMs, tick }) =>
            become({
              _tag: "Running",
              ticks: [...ticks, nowMs, ...tick === undefined ? [] : [tick.dueMs, tick.missed]]
            })
        }
      }
    })
    const tests = testTable(clock)
    const after = (...ticks: ReadonlyArray<number>) => ({ become: { _tag: "Running", ticks } })
    // The initial state is the one that the definition would not call without a timer.
    tests.given(undefined, { nowMs: 5 }).tick().then(after(5, 5, 0))
    tests.given().tick({ dueMs: 7, missed: 2 }).then(after(7, 7, 2))
    tests.given({ _tag: "Running", ticks: [1] }, { nowMs: 9 }).tick({ dueMs: 8 })
      .then(after(1, 9, 8, 0))
    // A signal of another actor has the same cell, and no tick.
    tests.given(undefined, { nowMs: 5, isSignal: true }).when({ _tag: "Tick" }).then(after(5))
    tests.given(undefined, { nowMs: 5 }).when({ _tag: "Tick" }).then(after(5))
    expect(tests.coverage().cells).toEqual([{ state: "Running", message: "Tick", count: 5 }])
  })
})
