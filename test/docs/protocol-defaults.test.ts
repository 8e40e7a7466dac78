/** What the protocol's §7 fixes in figures is what a service without any setting does. */
import { Result } from "effect"
import { expect, it } from "vitest"
import { anonymousPerDayMax, anonymousPerMinuteMax, anonymousRequestsMs, browserSessionIdleMs,
  browserSessionLifetimeMs, idempotencyRetentionMs,
  receiptAcceptanceFreshMs } from "../../actors/limits.ts"
import { adminTokenCharsMin } from "../../deploy/limits.ts"
import { loadSettings } from "../../deploy/settings/settings.ts"
import { anonymousKeyCharsMin, originRecipientsMax } from "../../http/limits.ts"

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs

it("has the defaults of protocol §7", () => {
  const { settings } = Result.getOrThrow(loadSettings({}))
  expect(settings).toMatchObject({
    anonymousRetention: 30 * dayMs,
    sessionRetention: 30 * dayMs,
    diskFreeMin: { percent: 10 },
    sessionReferences: "on",
    outboundAllow: [],
    fanoutAllow: [],
    contentBaseUrl: undefined,
    metricsListen: undefined
  })
  // On by default: the protocol names no figure.
  const { anonymousBytesMax, anonymousNetworkBytesMax, accountBytesMax } = settings
  for (const bytes of [anonymousBytesMax, anonymousNetworkBytesMax, accountBytesMax]) {
    expect(bytes).toBeGreaterThan(0)
    expect(bytes).toBeLessThan(Infinity)
  }
  for (const rate of [settings.rateLimitAddress, settings.rateLimitAccount]) {
    expect(rate).toMatchObject({ quota: expect.any(Number), windowMs: minuteMs })
  }
})

it("has the limits of protocol §7", () => {
  expect({ anonymousPerMinuteMax, anonymousPerDayMax, anonymousRequestsMs })
    .toEqual({ anonymousPerMinuteMax: 10, anonymousPerDayMax: 100, anonymousRequestsMs: hourMs })
  expect(originRecipientsMax).toBe(100)
  expect(receiptAcceptanceFreshMs).toBe(dayMs)
  expect([anonymousKeyCharsMin, adminTokenCharsMin]).toEqual([22, 22])
  expect(idempotencyRetentionMs).toBe(dayMs)
  expect([browserSessionIdleMs, browserSessionLifetimeMs]).toEqual([12 * hourMs, 7 * dayMs])
})
