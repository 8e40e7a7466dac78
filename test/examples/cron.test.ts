/** Jobs at an interval: their simulation on a few seeds, and a night without a node. */
import { expect, it } from "vitest"
import { cron } from "../../examples/cron/index.ts"
import { cronSimulation } from "../../examples/cron/simulation.ts"
import { simulate, startTestNode, testTable } from "../../runtime/testing/index.ts"

it("has the ticks that `missed` says, whatever happens to the nodes", async () => {
  const { answered, coverage } = await simulate({ ...cronSimulation, seeds: 5 })
  expect(answered).toBeGreaterThan(50)
  expect(coverage[0]?.missing).not.toContain("Scheduled x Tick")
})

it("runs a job at each tick, and not after it is stopped", async () => {
  const runs: Array<string> = []
  const jobs = cron(async (job) => void runs.push(job))
  await using node = await startTestNode({ behaviors: [jobs] })
  const tea = jobs("tea")
  const start = { _tag: "Start", everyMs: 60_000, missed: "once" } as const
  await node.ask(tea, start)
  await node.advance(150_000)
  expect(runs).toEqual(["tea", "tea"])
  expect(await node.ask(tea, { _tag: "Look" })).toMatchObject({ doneMs: node.nowMs - 30_000 })
  await node.ask(tea, { _tag: "Stop" })
  await node.advance(600_000)
  expect(runs).toHaveLength(2)
})

it("refuses what it cannot keep, and keeps the last ticks only", () => {
  const tests = testTable(cron(async () => {}))
  const start = { _tag: "Start", everyMs: 60_000, missed: "all" } as const
  tests.given().when({ ...start, everyMs: 999 }).then({ refuse: "TooOften" })
  const schedule = { everyMs: 60_000, missed: "all", startedMs: 7, dueMs: null, doneMs: null }
  const scheduled = { _tag: "Scheduled", ...schedule, missed: "all" } as const
  tests.given(scheduled).when(start).then({ reply: schedule })
  tests.given(scheduled).when({ ...start, missed: "skip" }).then({ refuse: "Scheduled" })
  tests.given().when({ _tag: "Done", dueMs: 1 }).then({})
  tests.given().tick().then({})
  const { parts } = tests.given(scheduled, { head: 100 }).tick({ dueMs: 60_007, missed: 2 })
  expect(parts).toMatchObject({
    become: { dueMs: 60_007 },
    removeItems: [1],
    perform: [{ _tag: "Run", dueMs: 60_007 }]
  })
  expect(parts.append?.map((item) => JSON.parse(item))).toMatchObject([{ left: 2, atMs: 60_007 }])
})
