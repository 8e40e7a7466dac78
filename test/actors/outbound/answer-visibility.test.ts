/** Whose answers an observer of a request sees, and whether their addresses are public. */
import { Effect } from "effect"
import { Agent } from "undici"
import { describe, expect, it, onTestFinished } from "vitest"
import { makeDeliveryLimits } from "../../../actors/limits.ts"
import { makeConnector, originOf } from "../../../actors/outbound/connector.ts"
import { addressRules, DestinationCache } from "../../../actors/outbound/destination.ts"
import { OriginLimiter } from "../../../actors/outbound/origin-limiter.ts"
import type { ExchangeRecord, Reach } from "../../../actors/outbound/protocol.ts"
import { type OutboundResources, post } from "../../../actors/outbound/request.ts"
import { answering, cause, patient, receiver } from "./rig.ts"

/** No address of the loopback network that a receiver has here. */
const elsewhere = "127.9.9.9/32"

const loopback = "127.0.0.0/8"

const addresses: Readonly<Record<string, string>> = {
  "inside.test": "127.0.0.1",
  "outside.test": "127.0.0.2"
}

/** What requests share if these addresses count as public ones. */
const resourcesTo = (publicPrefix: string): OutboundResources => {
  const rules = addressRules([loopback])
  const limits = makeDeliveryLimits(patient)
  const nowMs = () => Date.now()
  const connector = makeConnector({
    limits,
    names: {
      resolve: (name) => Promise.resolve([addresses[name] ?? "127.0.0.1"]),
      close: () => undefined
    },
    rules,
    publicRules: addressRules([publicPrefix])
  })
  const agent = new Agent({ connect: connector.connect })
  onTestFinished(() => {
    connector.close()
    return agent.destroy()
  })
  const monotonicMs = () => performance.now()
  const limiter = new OriginLimiter({ limits, nowMs, monotonicMs, random: () => 0 })
  const destinations = new DestinationCache(rules)
  return { agent, connector, destinations, limiter, limits, userAgent: "restante/test", nowMs }
}

/** What a post exchanges, hop by hop. */
const recordsOf = async (
  uri: string,
  publicPrefix: string,
  answersOf: Reach
): Promise<ReadonlyArray<ExchangeRecord>> => {
  const records: Array<ExchangeRecord> = []
  const observer = { answersOf, record: (record: ExchangeRecord) => void records.push(record) }
  const outboundPost = { uri, cause, headers: {}, body: "hello", observer }
  await Effect.runPromise(post(resourcesTo(publicPrefix), outboundPost))
  return records
}

const answersIn = (records: ReadonlyArray<ExchangeRecord>) =>
  records.map(({ answer, code }) => [code, answer?.text, answer?.isPublic])

describe("the answer of the first hop", () => {
  it("is marked if its address is public", async () => {
    const { uri } = await answering(500, {}, "no")
    expect(answersIn(await recordsOf(uri, loopback, "allowed"))).toEqual([[500, "no", true]])
    expect(answersIn(await recordsOf(uri, loopback, "public"))).toEqual([[500, "no", true]])
  })

  it("has no such mark if the operator's rules allow it, and is seen only on demand", async () => {
    const { uri } = await answering(500, {}, "no")
    expect(answersIn(await recordsOf(uri, elsewhere, "allowed"))).toEqual([[500, "no", undefined]])
    expect(answersIn(await recordsOf(uri, elsewhere, "public"))).toEqual([
      [500, undefined, undefined]
    ])
  })

  // What undici gives the connector for each, and the machine may have no IPv6.
  it.each([
    ["http://[2001:db8::1]:8080", { protocol: "http:", hostname: "2001:db8::1", port: "8080" }],
    ["https://[2001:db8::1]", { protocol: "https:", hostname: "2001:db8::1", port: "" }],
    ["http://192.0.2.1:8080", { protocol: "http:", hostname: "192.0.2.1", port: "8080" }],
    ["https://example.org", { protocol: "https:", hostname: "example.org", port: "" }]
  ])("is found by its origin %s", (origin, connection) => {
    expect(originOf(connection)).toBe(origin)
    expect(new URL(origin).origin).toBe(origin)
  })
})

describe("the answer after a redirect", () => {
  it("is not seen if another origin's address is not public", async () => {
    const end = await answering(503, { "x-inside": "1" }, "the operator's own")
    const start = await answering(307, { location: end.uri }, "there")
    const records = await recordsOf(start.uri, elsewhere, "allowed")
    expect(answersIn(records)).toEqual([[307, "there", undefined], [503, undefined, undefined]])
    expect(JSON.stringify(records)).not.toContain("x-inside")
  })

  it("is seen at the same origin, and at a public address", async () => {
    const same = await receiver((request, response) => {
      const isFirst = request.url === "/"
      response.writeHead(isFirst ? 308 : 500, isFirst ? { location: "/next" } : {}).end("here")
    })
    const redirected = await recordsOf(same.uri, elsewhere, "allowed")
    expect(answersIn(redirected)).toEqual([[308, "here", undefined], [500, "here", undefined]])

    const end = await receiver(
      (_, response) => {
        response.writeHead(503).end("outside")
      },
      "127.0.0.2"
    )
    const location = `http://outside.test:${end.port}/`
    const start = await answering(307, { location }, "inside")
    const records = await recordsOf(
      `http://inside.test:${start.port}/`,
      "127.0.0.2/32",
      "allowed"
    )
    expect(answersIn(records)).toEqual([[307, "inside", undefined], [503, "outside", true]])
  })

  it("comes with the time from the first hop on, and the number of redirects", async () => {
    const end = await answering(500)
    const middle = await answering(307, { location: end.uri })
    const start = await answering(308, { location: middle.uri })
    const records = await recordsOf(start.uri, elsewhere, "allowed")
    expect(records.map(({ code, redirects }) => [code, redirects])).toEqual([
      [308, undefined],
      [307, 1],
      [500, 2]
    ])
    expect(new Set(records.map(({ beganAtMs }) => beganAtMs)).size).toBe(1)
    const durations = records.map(({ durationMs = -1 }) => durationMs)
    expect(durations).toEqual(durations.toSorted((a, b) => a - b))
  })
})
