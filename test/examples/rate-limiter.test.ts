/** The rate limiter: its simulation on a few seeds, its cells, and its end. */
import { expect, it } from "vitest"
import { rateLimiter } from "../../examples/rate-limiter/index.ts"
import { limiterSimulation } from "../../examples/rate-limiter/simulation.ts"
import { simulate, startTestNode, testTable } from "../../runtime/testing/index.ts"

const limiter = rateLimiter({ limit: 2, windowMs: 10_000 })
const ann = limiter("ann")

it("gives no window more permits than its limit, whatever happens to the nodes", async () => {
  const { answered, coverage } = await simulate({ ...limiterSimulation, seeds: 5 })
  expect(answered).toBeGreaterThan(50)
  expect(coverage[0]?.missing).toEqual(["Limiting x Forget"])
})

it("gives permits again after its window, and is forgotten when nobody asks", async () => {
  await using node = await startTestNode({ behaviors: [limiter] })
  const take = () => node.ask(ann, { _tag: "Take" })
  const first = await take()
  expect(first).toEqual({ isGiven: true, atMs: node.nowMs, left: 1 })
  await node.advance(4_000)
  await take()
  await node.restart()
  expect(await take()).toEqual({ isGiven: false, retryAfterMs: 6_000 })
  await node.advance(6_000)
  expect(await take()).toMatchObject({ isGiven: true, left: 0 })
  await node.advance(11 * 60_000)
  expect(node.stateOf(ann)).toEqual(limiter.behavior.initial)
  expect(node.timerOf(ann)).toBeUndefined()
})

it("does not go back in time with the clock of another node", () => {
  const taken = testTable(limiter)
    .given({ _tag: "Limiting", givenMs: [50_000, 50_001] }, { nowMs: 20_000 })
    .when({ _tag: "Take" })
  taken.then({ reply: { isGiven: false, retryAfterMs: 9_999 } })
})

it("refuses a limit that would give no permit", () => {
  expect(() => rateLimiter({ limit: 0, windowMs: 1_000 })).toThrow("the limit is 0")
})
