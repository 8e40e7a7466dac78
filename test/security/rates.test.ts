/** The buckets of rate limits with a test clock, and their memory. */
import { Result } from "effect"
import { array, assert, integer, property } from "fast-check"
import { describe, expect, it } from "vitest"
import { loadSettings } from "../../deploy/settings/settings.ts"
import { CredentialCache } from "../../http/auth/credentials/credential-cache.ts"
import { secretHash } from "../../http/auth/credentials/credentials.ts"
import { countedTokenMs } from "../../http/limits.ts"
import { Clients } from "../../http/rates/client-address.ts"
import { Buckets, type PolicyName, RateLimiter } from "../../http/rates/rate-limiter.ts"
import { RequestHeaders } from "../../http/wire/request.ts"

describe("a bucket", () => {
  it("lets its quota through at once, then as many as time brings back", () => {
    let nowMs = 5_000
    const buckets = new Buckets({ quota: 3, windowMs: 1_000 }, () => nowMs)
    const take = () => buckets.take("a")
    expect([take(), take(), take()].map(({ isOver, remaining }) => [isOver, remaining])).toEqual([
      [false, 2],
      [false, 1],
      [false, 0]
    ])
    const over = take()
    expect(over).toMatchObject({ isOver: true, remaining: 0 })
    expect(over.waitMs).toBeCloseTo(1000 / 3)
    expect(over.fullInMs).toBeCloseTo(1000)
    expect(buckets.take("b").isOver).toBe(false)
    nowMs += 334
    expect([take().isOver, take().isOver]).toEqual([false, true])
    nowMs += 1_000
    expect(take()).toMatchObject({ isOver: false, remaining: 2 })
  })

  it("lets no more through in any window than twice its quota, and all of who keeps to it", () => {
    const waits = array(integer({ min: 0, max: 400 }), { maxLength: 200 })
    assert(property(integer({ min: 1, max: 20 }), waits, (quota, steps) => {
      let nowMs = 0
      const windowMs = 1_000
      const buckets = new Buckets({ quota, windowMs }, () => nowMs)
      const through: Array<number> = []
      for (const step of steps) {
        nowMs += step
        const { isOver, waitMs } = buckets.take("a")
        if (!isOver) through.push(nowMs)
        const recently = through.filter((at) => at > nowMs - windowMs).length
        expect(recently).toBeLessThan(2 * quota + 1)
        if (isOver) {
          // A client that waits as long as required is admitted.
          nowMs += waitMs + 0.01
          expect(buckets.take("a").isOver).toBe(false)
          through.push(nowMs)
        }
      }
      const patient = new Buckets({ quota, windowMs }, () => nowMs)
      for (const _ of steps) {
        expect(patient.take("b").isOver).toBe(false)
        nowMs += windowMs / quota + 0.01
      }
    }))
  })

  it("is one of a bounded number: the busy ones remain", () => {
    const buckets = new Buckets({ quota: 2, windowMs: 60_000 }, () => 0, 100)
    expect([buckets.take("busy").isOver, buckets.take("busy").isOver]).toEqual([false, false])
    for (let n = 0; n < 40; n += 1) buckets.take(`other-${n}`)
    expect(buckets.take("busy").isOver).toBe(true)
    for (let n = 0; n < 10_000; n += 1) buckets.take(`flood-${n}`)
    expect(buckets.size).toBeLessThanOrEqual(100)
  })
})

describe("the key that a request counts for", () => {
  const limits = {
    address: { quota: 2, windowMs: 60_000 },
    account: { quota: 3, windowMs: 60_000 }
  }

  const world = (trustedProxies: ReadonlyArray<string> = []) => {
    const refused: Record<PolicyName, number> = { address: 0, account: 0 }
    const clock = { nowMs: 1_000_000 }
    const credentialCache = new CredentialCache(() => clock.nowMs)
    const rates = new RateLimiter(limits, {
      credentialCache,
      clients: new Clients(trustedProxies),
      refused,
      nowMs: () => 0
    })
    const ask = (remoteAddress: string, fields: Readonly<Record<string, string>> = {}) =>
      rates.admit({
        method: "GET",
        path: fields["path"] ?? "/",
        query: "",
        headers: new RequestHeaders(Object.entries(fields).flat()),
        remoteAddress
      }).excess === undefined
    return { ask, clock, refused, credentialCache }
  }

  it("the connection's other end, whatever X-Forwarded-For, Forwarded and X-Real-IP say", () => {
    const { ask, refused } = world()
    const claims = (n: number) => ({
      "x-forwarded-for": `198.51.100.${n}`,
      forwarded: `for=198.51.100.${n}`,
      "x-real-ip": `198.51.100.${n}`
    })
    expect([1, 2, 3, 4].map((n) => ask("203.0.113.9", claims(n)))).toEqual(
      [true, true, false, false]
    )
    expect(refused).toEqual({ address: 2, account: 0 })
    expect(ask("203.0.113.10")).toBe(false)
    expect(ask("203.0.114.10")).toBe(true)
  })

  it("behind a trusted proxy the last address that is no proxy, not one from the client", () => {
    const { ask } = world(["127.0.0.0/8"])
    const through = (n: number, client: string) =>
      ask("127.0.0.1", { "x-forwarded-for": `10.9.8.${n}, ${client}` })
    expect([1, 2, 3].map((n) => through(n, "198.51.100.1"))).toEqual([true, true, false])
    expect(through(4, "198.51.101.2")).toBe(true)
  })

  it("all of an IPv6 network of 48 bits", () => {
    const { ask } = world()
    const asked = ["1", "2", "3"].map((end) => ask(`2001:db8:0:${end}::1`))
    expect(asked).toEqual([true, true, false])
    expect(ask("2001:db8:1::1")).toBe(true)
  })

  it("an account, for a minute after its token was right; not by any other token", () => {
    const { ask, clock, refused, credentialCache } = world()
    const bearer = { authorization: "Bearer the-token" }
    const basic = { authorization: `Basic ${Buffer.from("alice:other").toString("base64")}` }
    credentialCache.remember(secretHash("the-token"), "alice")
    credentialCache.remember(secretHash("other"), "alice")
    expect([bearer, basic, bearer, basic].map((one) => ask("203.0.113.1", one))).toEqual(
      [true, true, true, false]
    )
    expect(refused).toEqual({ address: 0, account: 1 })
    // Another client with the same address is not affected.
    expect(ask("203.0.113.1")).toBe(true)
    clock.nowMs += countedTokenMs
    expect([ask("203.0.113.1", bearer), ask("203.0.113.1", bearer)]).toEqual([true, false])
    expect(ask("203.0.114.2", { authorization: "Bearer guess" })).toBe(true)
  })

  it("none, for a client on this machine that forwards nothing", () => {
    const { ask } = world()
    for (const peer of ["127.0.0.1", "127.3.2.1", "::1", "::ffff:7f00:1"]) {
      expect(Array.from({ length: 10 }, () => ask(peer))).not.toContain(false)
      const forwarded = [1, 2, 3].map((n) => ask(peer, { forwarded: `for=198.51.100.${n}` }))
      expect(forwarded).toContain(false)
    }
  })

  it("none, for the probes of an orchestrator", () => {
    const { ask } = world()
    const asked = Array.from({ length: 10 }, () => ask("203.0.113.1", { path: "/readyz" }))
    expect(new Set(asked)).toEqual(new Set([true]))
  })
})

describe("a proxy that is not trusted", () => {
  const requestFrom = (remoteAddress: string, ...flat: ReadonlyArray<string>) => ({
    headers: new RequestHeaders(flat),
    remoteAddress
  })

  it("is reported once for each network, and few are", () => {
    const reported: Array<string> = []
    const clients = new Clients(["192.0.2.0/24"], "0.0.0.0", (address) => reported.push(address))
    const forwarded = ["x-forwarded-for", "198.51.100.7"]
    clients.clientOf(requestFrom("10.0.0.1"))
    clients.clientOf(requestFrom("192.0.2.1", ...forwarded))
    expect(reported).toEqual([])
    for (const last of [1, 2, 1]) clients.clientOf(requestFrom(`10.0.0.${last}`, ...forwarded))
    clients.clientOf(requestFrom("127.0.0.1", "forwarded", "for=198.51.100.7"))
    expect(reported).toEqual(["10.0.0.1", "127.0.0.1"])
    for (let n = 0; n < 9; n++) clients.clientOf(requestFrom(`203.0.${n}.1`, ...forwarded))
    expect(reported).toEqual(["10.0.0.1", "127.0.0.1", "203.0.0.1", "203.0.1.1"])
  })
})

describe("the settings", () => {
  const read = (RATE_LIMIT_ADDRESS: string) => loadSettings({ RATE_LIMIT_ADDRESS })

  it.each([
    ["600/1m", 600, 60_000],
    ["50/s", 50, 1_000],
    ["1/24h", 1, 86_400_000],
    ["10/PT30S", 10, 30_000]
  ])("take %s", (text, quota, windowMs) => {
    const loaded = read(text)
    expect(Result.isSuccess(loaded) && loaded.success.settings.rateLimitAddress)
      .toEqual({ quota, windowMs })
  })

  it.each(["600", "0/1m", "-1/1m", "1.5/s", "5/0s", "5/500ms", "5/1d1", "5/2d", "many/1m", "5/"])(
    "stop the start: %s",
    (text) => {
      const loaded = read(text)
      expect(Result.isFailure(loaded) && loaded.failure.message).toContain("rates.address is")
    }
  )

  it("are generous by default, and can be none", () => {
    const limits = (environment: Record<string, string>) => {
      const loaded = loadSettings(environment)
      const settings = Result.isSuccess(loaded) ? loaded.success.settings : undefined
      return [settings?.rateLimitAddress, settings?.rateLimitAccount]
    }
    expect(limits({})).toEqual([
      { quota: 6_000, windowMs: 60_000 },
      { quota: 60_000, windowMs: 60_000 }
    ])
    expect(limits({ RATE_LIMIT_ADDRESS: "none", RATE_LIMIT_ACCOUNT: "none" }))
      .toEqual(["none", "none"])
  })
})
