/** The origin limiter: permits, queues, deferrals and circuits. */
import { Deferred as Latch, Effect, Fiber } from "effect"
import { describe, expect, it } from "vitest"
import { type DeliveryLimits, deliveryLimits, makeDeliveryLimits } from "../../../actors/limits.ts"
import { type OriginHealth, OriginLimiter } from "../../../actors/outbound/origin-limiter.ts"
import type { RequestCause } from "../../../actors/outbound/protocol.ts"

const small = { perOriginMax: 2, inFlightMax: 8, waitingPerOriginMax: 3, waitingMax: 10 }

const accountOf = (id: string): RequestCause => ({ kind: "account", id })

const startMs = 1_000_000

/** A limiter with a clock that stands still, and requests that end when the test says so. */
const limiterOf = (limits: Partial<DeliveryLimits> = {}) => {
  const clock = { nowMs: startMs, aheadMs: 0 }
  const limiter = new OriginLimiter({
    limits: makeDeliveryLimits({ ...small, ...limits }),
    nowMs: () => clock.nowMs + clock.aheadMs,
    monotonicMs: () => clock.nowMs,
    random: () => 0
  })
  const begun: Array<string> = []
  /** Begins a request; `end` ends it with this health. */
  const attempt = (
    origin: string,
    name = origin,
    waitMs = 60_000,
    cause = accountOf("alice")
  ) => {
    const latch = Latch.makeUnsafe<OriginHealth>()
    const use = Effect.suspend(() => {
      begun.push(name)
      return Latch.await(latch)
    })
    const fiber = Effect.runFork(limiter.withPermit(origin, cause, waitMs, use, (health) => health))
    return {
      fiber,
      end: async (health: OriginHealth = "healthy") => {
        Effect.runSync(Latch.succeed(latch, health))
        return await Effect.runPromise(Fiber.join(fiber))
      },
      result: () => Effect.runPromise(Fiber.join(fiber))
    }
  }
  const fail = async (origin: string, times: number) => {
    for (let n = 0; n < times; n++) await attempt(origin).end("failing")
  }
  return { attempt, begun, clock, fail, limiter }
}

const deferred = (untilMs: number) => ({ _tag: "Deferred", untilMs })

describe("an origin", () => {
  it("has a bounded number of requests in flight; the others wait in order", async () => {
    const { attempt, begun, limiter } = limiterOf()
    const [a, b, c, d] = ["a", "b", "c", "d"].map((name) => attempt("o", name))
    expect(begun).toEqual(["a", "b"])
    expect(limiter.metrics()).toMatchObject({ inFlight: 2, waiting: 2 })
    await b?.end()
    expect(begun).toEqual(["a", "b", "c"])
    await a?.end()
    await c?.end()
    await d?.end()
    expect(begun).toEqual(["a", "b", "c", "d"])
    expect(limiter.metrics()).toMatchObject({ inFlight: 0, waiting: 0, origins: 0 })
  })

  it("defers what its queue does not hold until the queue has emptied", async () => {
    const { attempt, begun } = limiterOf({ fullRetriesPerSecond: 2_000 })
    const first = attempt("o")
    for (let n = 0; n < 4; n++) attempt("o")
    await first.end()
    attempt("o")
    expect(await attempt("o").result()).toEqual(deferred(startMs + 1))
    for (let n = 0; n < 20; n++) await attempt("o").result()
    expect(await attempt("o").result()).toEqual(deferred(startMs + 11))
    expect(begun).toHaveLength(3)
  })

  it("paces few retries to a full queue that is hardly served", async () => {
    const { attempt, clock } = limiterOf()
    for (let n = 0; n < 5; n++) attempt("o")
    clock.nowMs += 1_000
    const backMs = clock.nowMs + 1_000
    expect(await attempt("o").result()).toEqual(deferred(backMs))
    expect(await attempt("o").result()).toEqual(deferred(backMs + 1))
  })

  it("paces more retries to a full queue than it serves", async () => {
    const { attempt, clock } = limiterOf({ fullRetriesPerSecond: 1 })
    const going = Array.from({ length: 5 }, () => attempt("o"))
    for (let n = 0; n < 2_000; n++) {
      await going.shift()?.end()
      going.push(attempt("o"))
    }
    clock.nowMs += 1_000
    for (let n = 0; n < 30; n++) await attempt("o").result()
    // It served 2,000 in one second, so 3,000 may be retried in the next one.
    expect(await attempt("o").result()).toEqual(deferred(clock.nowMs + 11))
  })

  it("closes its circuit in time although the clock is set back by an hour", async () => {
    const { attempt, clock, fail, limiter } = limiterOf({ failuresMax: 2, openMs: 1_000 })
    await fail("o", 2)
    clock.aheadMs = -3_600_000
    const { untilMs } = await attempt("o").result() as { readonly untilMs: number }
    expect(untilMs - (clock.nowMs + clock.aheadMs)).toBe(1_000)
    clock.nowMs += 1_000
    await attempt("o").end()
    expect(limiter.metrics()).toMatchObject({ circuitsOpen: 0, waiting: 0 })
  })

  it("defers what the node's queue does not hold", async () => {
    const { attempt, limiter } = limiterOf()
    for (const cause of ["a", "b", "c", "d", "e"].map(accountOf)) {
      for (let n = 0; n < 5; n++) attempt("one", "one", 60_000, cause)
      for (let n = 0; n < 5; n++) attempt("two", "two", 60_000, cause)
    }
    expect(limiter.metrics()).toMatchObject({ inFlight: 4, waiting: 10 })
    const late = attempt("one", "one", 60_000, accountOf("f"))
    expect(await late.result()).toMatchObject({ _tag: "Deferred" })
  })

  it("defers what has waited too long", async () => {
    const { attempt, begun, limiter } = limiterOf()
    const [first] = [attempt("o"), attempt("o")]
    expect(await attempt("o", "late", 5).result()).toEqual(deferred(startMs + 1_000))
    expect(limiter.metrics().waiting).toBe(0)
    await first.end()
    expect(begun).toEqual(["o", "o"])
  })

  it("releases the permit of an interrupted request, waiting or in flight", async () => {
    const { attempt, begun, limiter } = limiterOf()
    const [one, two, three, four] = ["1", "2", "3", "4"].map((name) => attempt("o", name))
    if (one === undefined || three === undefined) throw new Error("no attempt")
    await Effect.runPromise(Fiber.interrupt(three.fiber))
    await Effect.runPromise(Fiber.interrupt(one.fiber))
    expect(begun).toEqual(["1", "2", "4"])
    await two?.end()
    await four?.end()
    expect(limiter.metrics()).toMatchObject({ inFlight: 0, waiting: 0, origins: 0 })
  })

  it("releases the permit of a request that dies", async () => {
    const { limiter } = limiterOf()
    const died = limiter.withPermit(
      "o",
      accountOf("alice"),
      10,
      Effect.die("bug"),
      () => "healthy"
    )
    expect((await Effect.runPromiseExit(died))._tag).toBe("Failure")
    expect(limiter.metrics()).toMatchObject({ inFlight: 0, origins: 0 })
  })

  it("grants ten thousand permits in a row without a deep stack", async () => {
    const { attempt, limiter } = limiterOf({
      perOriginMax: 1,
      inFlightMax: 2,
      waitingPerOriginMax: 10_000,
      waitingMax: 20_000
    })
    const alice = accountOf("alice")
    const first = attempt("o")
    const others = Array.from(
      { length: 10_000 },
      () =>
        Effect.runPromise(
          limiter.withPermit("o", alice, 60_000, Effect.succeed(1), () => "healthy")
        )
    )
    await first.end()
    expect(new Set(await Promise.all(others))).toEqual(new Set([1]))
  })
})

describe("between origins", () => {
  it("permits alternate", async () => {
    const { attempt, begun } = limiterOf({
      inFlightMax: 4,
      waitingPerOriginMax: 100,
      waitingMax: 100
    })
    const running = [attempt("dead"), attempt("dead")]
    for (let n = 0; n < 20; n++) running.push(attempt("dead"))
    for (let n = 0; n < 3; n++) running.push(attempt("two"), attempt("three"))
    for (const { end } of running.slice(0, 2)) await end()
    expect(begun.slice(2)).toEqual(["two", "three"])
    await Promise.all(running.map(({ end }) => end()))
    const first = begun.slice(2, 11)
    for (const origin of ["dead", "two", "three"]) {
      expect(first.filter((name) => name === origin)).toHaveLength(3)
    }
  })

  it("a full queue delays no other origin", () => {
    const { attempt, begun } = limiterOf({ waitingPerOriginMax: 1_000, waitingMax: 2_000 })
    for (let n = 0; n < 500; n++) attempt("dead")
    attempt("healthy")
    expect(begun).toEqual(["dead", "dead", "healthy"])
  })

  it("idle origins are forgotten, the longest idle first", async () => {
    const { attempt, fail, limiter } = limiterOf({ originsMax: 10, failuresMax: 2 })
    const busy = attempt("busy")
    for (let n = 0; n < 50; n++) await fail(`o${n}`, 1)
    expect(limiter.metrics()).toMatchObject({ origins: 10, inFlight: 1 })
    // o49 is remembered and its circuit opens; o0 is forgotten.
    await fail("o49", 1)
    await fail("o0", 1)
    expect(limiter.metrics().circuitsOpen).toBe(1)
    await busy.end()
  })
})

/** Origins at which the requests of a cause hang. */
const hanging = (kind: RequestCause["kind"], ids: ReadonlyArray<string>, origins: number) => {
  const made = limiterOf({ ...deliveryLimits })
  for (const id of ids) {
    for (let n = 0; n < origins; n++) {
      made.attempt(`evil:${n}`, "evil", 60_000, { kind, id })
    }
  }
  return made
}

describe("between causes", () => {
  const permits = deliveryLimits.inFlightMax

  it("one account with a thousand hanging origins holds half, and delays nobody", () => {
    const { attempt, begun, limiter } = hanging("account", ["mallory"], 1_000)
    expect(limiter.metrics()).toMatchObject({ inFlight: permits / 2, waiting: 1_000 - permits / 2 })
    attempt("healthy", "healthy", 60_000, accountOf("bob"))
    expect(begun.at(-1)).toBe("healthy")
  })

  it("several accounts with hanging origins leave a permit for another", () => {
    const ids = Array.from({ length: 7 }, (_, n) => `mallory${n}`)
    const { attempt, begun } = hanging("account", ids, 300)
    attempt("healthy", "healthy", 60_000, accountOf("bob"))
    expect(begun.at(-1)).toBe("healthy")
  })

  it("all anonymous clients together hold a small part", () => {
    const networks = Array.from({ length: 50 }, (_, n) => `198.51.${n}.0/24`)
    const { attempt, begun, limiter } = hanging("network", networks, 1_000)
    const { anonymousInFlightMax, anonymousWaitingMax } = deliveryLimits
    const { inFlight, waiting } = limiter.metrics()
    expect(inFlight).toBeLessThanOrEqual(anonymousInFlightMax)
    expect(waiting).toBeLessThanOrEqual(anonymousWaitingMax)
    for (let n = 0; n < permits / 4; n++) {
      attempt(`healthy:${n}`, `healthy:${n}`, 60_000, accountOf("bob"))
      expect(begun.at(-1)).toBe(`healthy:${n}`)
    }
  })

  it("one anonymous client with a thousand hanging origins delays no other", () => {
    const { attempt, begun } = hanging("network", ["198.51.100.0/24"], 1_000)
    expect(begun).toHaveLength(deliveryLimits.anonymousInFlightMax / 2)
    attempt("healthy", "healthy", 60_000, { kind: "network", id: "203.0.113.0/24" })
    expect(begun.at(-1)).toBe("healthy")
  })

  it("one account gets its whole share again and again", async () => {
    const { attempt, begun, limiter } = limiterOf({ ...deliveryLimits })
    const running = Array.from({ length: 1_000 }, (_, n) => attempt(`o${n % 100}`))
    for (const { end } of running.slice(0, 800)) await end()
    expect(begun).toHaveLength(800 + permits / 2)
    expect(limiter.metrics().inFlight).toBe(permits / 2)
    for (const { end } of running.slice(800)) await end()
    expect(limiter.metrics()).toMatchObject({ inFlight: 0, waiting: 0, origins: 0 })
  })

  it("accounts take turns at one origin, however many requests one has", async () => {
    const { attempt, begun } = limiterOf({ ...deliveryLimits, perOriginMax: 1 })
    const first = attempt("o", "mallory", 60_000, accountOf("mallory"))
    const more = Array.from(
      { length: 100 },
      () => attempt("o", "mallory", 60_000, accountOf("mallory"))
    )
    const other = attempt("o", "bob", 60_000, accountOf("bob"))
    await first.end()
    await more[0]?.end()
    expect(begun).toEqual(["mallory", "mallory", "bob"])
    await other.end()
    expect(begun).toEqual(["mallory", "mallory", "bob", "mallory"])
  })

  it("a queue whose cause may hold no more leaves its origin to the others", async () => {
    const { attempt, begun } = limiterOf({ ...deliveryLimits, perOriginMax: 1, inFlightMax: 6 })
    const held = ["a", "b", "c"].map((origin) => attempt(origin))
    const first = attempt("o", "bob's first", 60_000, accountOf("bob"))
    attempt("o", "alice's")
    attempt("o", "bob's second", 60_000, accountOf("bob"))
    await first.end()
    expect(begun.slice(3)).toEqual(["bob's first", "bob's second"])
    for (const { end } of held) await end()
  })
})

describe("a circuit", () => {
  it("opens after several failures in a row, and defers new and waiting requests", async () => {
    const { attempt, begun, fail, limiter } = limiterOf({ failuresMax: 3 })
    await fail("o", 2)
    await attempt("o").end("healthy")
    await fail("o", 2)
    expect(limiter.metrics().circuitsOpen).toBe(0)
    const flying = [attempt("o"), attempt("o")]
    const waiting = [attempt("o"), attempt("o")]
    await flying[0]?.end("failing")
    expect(limiter.metrics()).toMatchObject({ circuitsOpen: 1, waiting: 0 })
    expect(await waiting[0]?.result()).toEqual(deferred(startMs + 1_000))
    expect(await waiting[1]?.result()).toEqual(deferred(startMs + 1_001))
    expect(await attempt("o").result()).toEqual(deferred(startMs + 1_002))
    const before = begun.length
    attempt("other")
    expect(begun.slice(before)).toEqual(["other"])
  })

  it("lets one probe through when its time is over; a response closes it", async () => {
    const { attempt, begun, clock, fail, limiter } = limiterOf({ failuresMax: 3 })
    await fail("o", 3)
    clock.nowMs += 1_000
    const probe = attempt("o", "probe")
    expect(await attempt("o").result()).toMatchObject({ _tag: "Deferred" })
    await probe.end("healthy")
    expect(limiter.metrics().circuitsOpen).toBe(0)
    const [one, two] = [attempt("o", "one"), attempt("o", "two")]
    expect(begun.slice(3)).toEqual(["probe", "one", "two"])
    await one.end()
    await two.end()
  })

  it("lets the next probe through if the last one had no result", async () => {
    const { attempt, begun, clock, fail } = limiterOf({ failuresMax: 1 })
    await fail("o", 1)
    clock.nowMs += 1_000
    await attempt("o", "unknown").end("unknown")
    await attempt("o", "next").end("healthy")
    expect(begun.slice(1)).toEqual(["unknown", "next"])
  })
})

it("limits that contradict each other are defects", () => {
  const wrong: ReadonlyArray<Partial<DeliveryLimits>> = [
    { connectMs: 40_000 },
    { perOriginMax: 1_000 },
    { waitingPerOriginMax: 100_000 },
    { openMs: 100_000 },
    { failuresMax: 0 },
    { drainMs: 0.5 }
  ]
  for (const limits of wrong) expect(() => makeDeliveryLimits(limits)).toThrow(/does not hold/)
})
