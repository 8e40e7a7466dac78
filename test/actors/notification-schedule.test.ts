/** What the schedule promises, through answers that come late, twice or never, and restarts. */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { attemptLeaseMs } from "../../actors/limits.ts"
import type { DeliveryOutcome } from "../../actors/outbound/protocol.ts"
import { retryAfterMaxMs } from "../../actors/outbound/response.ts"
import { nowMs as beganAtMs } from "./cells.ts"
import { World } from "./notification-world.ts"

/** The long form tries eight times as many. */
const runs = (count: number): number =>
  process.env["TEST_LONG"] === "1" ? count : Math.ceil(count / 8)

const outcomes: fc.Arbitrary<DeliveryOutcome> = fc.oneof(
  { weight: 2, arbitrary: fc.constant<DeliveryOutcome>({ _tag: "Delivered", code: 202 }) },
  {
    weight: 1,
    arbitrary: fc.constant<DeliveryOutcome>({
      _tag: "PermanentFailure",
      code: 410,
      problem: "gone"
    })
  },
  {
    weight: 6,
    arbitrary: fc.option(fc.integer({ min: 0, max: 2 * retryAfterMaxMs }), { nil: undefined }).map(
      (retryAfterMs): DeliveryOutcome => ({
        _tag: "RetryableFailure",
        problem: "answered 503",
        ...retryAfterMs === undefined ? {} : { retryAfterMs }
      })
    )
  },
  {
    weight: 2,
    arbitrary: fc.integer({ min: -10, max: 120_000 }).map((afterMs): DeliveryOutcome => ({
      _tag: "Deferred",
      untilMs: beganAtMs + afterMs
    }))
  }
)

type Step =
  | { readonly do: "tell"; at: number; outcome: DeliveryOutcome; random: number; twice: boolean }
  | {
    readonly do:
      | "pass"
      | "again"
      | "reload"
      | "crash"
      | "lose"
      | "release"
      | "retry"
      | "replace"
      | "delete"
  }
  | { readonly do: "hold" | "replay"; at: number }

const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
const just = (what: Exclude<Step["do"], "tell" | "hold" | "replay">) =>
  fc.constant<Step>({ do: what })
const at = (what: "hold" | "replay") => fc.record({ do: fc.constant(what), at: fc.nat(1_000) })
const steps = fc.array(
  fc.oneof(
    {
      weight: 12,
      arbitrary: fc.record({
        do: fc.constant("tell" as const),
        at: fc.nat(1_000),
        outcome: outcomes,
        random,
        twice: fc.boolean()
      })
    },
    { weight: 6, arbitrary: just("pass") },
    { weight: 3, arbitrary: just("again") },
    { weight: 1, arbitrary: just("reload") },
    { weight: 1, arbitrary: just("crash") },
    { weight: 1, arbitrary: just("lose") },
    { weight: 1, arbitrary: at("hold") },
    { weight: 1, arbitrary: just("release") },
    { weight: 1, arbitrary: just("retry") },
    { weight: 1, arbitrary: at("replay") },
    { weight: 1, arbitrary: just("replace") }
  ),
  { maxLength: 150, size: "max" }
)

const take = (world: World, step: Step): void => {
  switch (step.do) {
    case "tell":
      if (world.running.length > 0) world.tell(step.at, step.outcome, step.random, step.twice)
      return
    case "pass":
      return world.pass()
    case "again": {
      const message = world.results.shift()
      if (message !== undefined) world.send(message)
      return
    }
    case "reload":
      return world.model.reload()
    case "crash":
      return world.crash()
    case "lose":
      world.running.pop()
      return
    case "hold":
      if (world.running.length > 0) world.hold(step.at)
      return
    case "release":
      return world.release()
    case "retry":
      return world.retry()
    case "replay":
      return world.replay(step.at)
    case "replace":
      return world.replace()
    case "delete":
      return world.remove()
  }
}

/** Every attempt faults from now on until all has ended; it ends, and is removed in its time. */
const finish = (world: World): void => {
  const most = 40 * world.expected.length + 200
  for (let count = 0; world.queued?.endedAtMs === undefined; count++) {
    if (world.queued === undefined) return
    expect(count).toBeLessThan(most)
    if (world.running.length === 0) world.pass()
    else world.tell(0, { _tag: "RetryableFailure", problem: "answered 503" }, 0.9, false)
  }
  expect(world.note).toBe(
    world.queued.recipients.some(({ status }) => status === "failed") ? "failed" : "sent"
  )
  expect(world.ends.every((count) => count === 1)).toBe(true)
  for (const { delivered, status } of world.queued.recipients) {
    if (status === "success") expect(delivered).toBeUndefined()
  }
  world.pass()
  expect(world.model.state._tag).toBe("Removed")
  expect(world.note).toBe(null)
}

describe("a notification's course", () => {
  it("follows the schedule to its end, whatever the answers", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), steps, (recipients, all) => {
        const world = new World(recipients)
        for (const step of all) take(world, step)
        finish(world)
      }),
      { numRuns: runs(200) }
    )
  })

  it("does so with many recipients, whose results are logged and folded", () => {
    fc.assert(
      fc.property(fc.integer({ min: 17, max: 100 }), steps, (recipients, all) => {
        const world = new World(recipients)
        for (const step of all) take(world, step)
        finish(world)
      }),
      { numRuns: runs(20) }
    )
  })

  it("begins nothing after its removal", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 30 }), steps, steps, (recipients, one, two) => {
        const world = new World(recipients)
        for (const step of [...one, { do: "delete" } as const, ...two]) take(world, step)
        expect(world.model.state._tag).toBe("Removed")
      }),
      { numRuns: runs(100) }
    )
  })

  it("makes a lost attempt again when its lease is over", () => {
    const world = new World(1)
    world.running = []
    world.pass()
    expect(world.running).toMatchObject([{ attempt: 1 }])
    expect(world.nowMs).toBe(beganAtMs + attemptLeaseMs)
  })
})
