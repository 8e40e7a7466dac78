/** Reading a resource of another service once, for whoever cannot wait for a later attempt. */
import { Effect, type Scope } from "effect"
import { Agent } from "undici"
import { answerHeadBytesMax, type DeliveryLimits, keepAliveMaxMs, keepAliveMs,
  makeDeliveryLimits } from "../limits.ts"
import { makeConnector, makeNames } from "./connector.ts"
import { addressRules, DestinationCache } from "./destination.ts"
import { decoded } from "./exchange.ts"
import { OriginLimiter, type OriginLimiterMetrics, type OriginMetrics } from "./origin-limiter.ts"
import type { DeliveryOutcome, Fetching, FetchOutcome, Outbound } from "./protocol.ts"
import { type Budget, type FinalAnswer, followRedirects, headersOf, type OutboundRequest,
  type OutboundResources, post } from "./request.ts"
import { outcomeOf, valueOf } from "./schedule.ts"

export interface OutboundOptions {
  /** Prefixes or addresses that may be reached though they are forbidden (`outbound.allow`). */
  readonly allow: ReadonlyArray<string>
  /** `restante/<version>`. */
  readonly userAgent: string
  readonly nowMs: () => number
  /** In [0, 1). */
  readonly random: () => number
  readonly limits?: Partial<DeliveryLimits>
  /** Name servers instead of the system's, as `127.0.0.1:53`. */
  readonly dnsServers?: ReadonlyArray<string>
  /** A hosts file instead of the system's. */
  readonly hostsFile?: string
  /** Certificates that are trusted instead of the system's, as PEM. */
  readonly ca?: ReadonlyArray<string>
}

/** Numbers for `/metrics`. Outcomes are totals, the others are as of now. */
export interface OutboundMetrics extends OriginLimiterMetrics {
  readonly outcomes: Readonly<Record<DeliveryOutcome["_tag"] | "Fetched", number>>
  readonly connections: number
}

export interface OutboundService extends Outbound {
  readonly metrics: () => OutboundMetrics
  /** The origins that are in trouble or have most to do. */
  readonly busiestOrigins: (max: number) => ReadonlyArray<OriginMetrics>
}

const acquireWays = Effect.fnUntraced(function*(options: OutboundOptions) {
  const { allow, ca, dnsServers, hostsFile, nowMs, random } = options
  const limits = makeDeliveryLimits(options.limits)
  const rules = addressRules(allow)
  const names = makeNames({
    limits,
    ...dnsServers === undefined ? {} : { dnsServers },
    ...hostsFile === undefined ? {} : { hostsFile }
  })
  const connector = makeConnector({ limits, names, rules, ...ca === undefined ? {} : { ca } })
  const agent = new Agent({
    connect: connector.connect,
    connections: limits.perOriginMax,
    pipelining: 1,
    maxHeaderSize: answerHeadBytesMax,
    keepAliveTimeout: keepAliveMs,
    keepAliveMaxTimeout: keepAliveMaxMs,
    // One timer of each exchange bounds all of it.
    headersTimeout: 0,
    bodyTimeout: 0
  })
  yield* Effect.addFinalizer(() =>
    Effect.promise(async () => {
      names.close()
      connector.close()
      await agent.destroy()
    })
  )
  return {
    agent,
    connector,
    limits,
    targets: new DestinationCache(rules),
    lanes: new OriginLimiter({ limits, nowMs, random })
  }
})

const larger = (bytesMax: number): FetchOutcome => ({
  _tag: "Refused",
  problem: `larger than ${bytesMax} bytes`
})

/** What a 2xx answer to a GET holds. */
const fetched = Effect.fnUntraced(function*({ answer, url }: FinalAnswer, bytesMax: number) {
  const { broken, bytes, code, headers, isTooLarge } = answer
  if (isTooLarge) return larger(bytesMax)
  if (broken !== undefined) return { _tag: "Faulted", code, problem: broken } as const
  const plain = yield* decoded(valueOf(headers, "content-encoding"), bytes, bytesMax)
  switch (plain._tag) {
    case "TooLarge":
      return larger(bytesMax)
    case "Unknown":
      return { _tag: "Refused", code, problem: "the content encoding is not known" } as const
    case "Damaged":
      return { _tag: "Faulted", code, problem: "the content encoding is damaged" } as const
    case "Decoded": {
      const type = valueOf(headers, "content-type") ?? "application/octet-stream"
      return {
        _tag: "Fetched",
        fetched: { uri: url.href, code, type, bytes: plain.bytes }
      } as const
    }
  }
})

const get = Effect.fnUntraced(function*(
  ways: OutboundResources,
  { nowMs, userAgent }: OutboundOptions,
  { bytesMax, headers, uri }: Fetching
): Effect.fn.Return<FetchOutcome> {
  const voyage: OutboundRequest = {
    uri,
    method: "GET",
    load: { headers: headersOf(headers ?? {}, userAgent) },
    keep: "all",
    bytesMax
  }
  const budget: Budget = { sendMs: ways.limits.attemptMs, waitMs: ways.limits.waitMs }
  const came = yield* followRedirects(ways, voyage, budget)
  if (came._tag === "Reached") {
    const outcome = outcomeOf(came.answer, came.url, nowMs())
    return outcome._tag === "Delivered" ? yield* fetched(came, bytesMax) : outcome
  }
  // Travels deliver nothing: only an answer does.
  return came as Exclude<typeof came, { readonly _tag: "Delivered" }>
})

/**
 * The client, with its connections, lanes and circuits; they end with the scope. Prefixes and
 * limits that are wrong are defects.
 */
export const makeOutbound = (
  options: OutboundOptions
): Effect.Effect<OutboundService, never, Scope.Scope> =>
  Effect.map(acquireWays(options), (ways) => {
    const outcomes = { Delivered: 0, Fetched: 0, Refused: 0, Faulted: 0, Deferred: 0 }
    const counted = <A extends { readonly _tag: keyof typeof outcomes }>(
      effect: Effect.Effect<A>
    ): Effect.Effect<A> =>
      Effect.map(effect, (outcome) => {
        outcomes[outcome._tag] += 1
        return outcome
      })
    return {
      post: (posting) => counted(post(ways, options, posting)),
      get: (fetching) => counted(get(ways, options, fetching)),
      metrics: () => ({
        ...ways.lanes.measures(),
        outcomes: { ...outcomes },
        connections: ways.connector.open()
      }),
      busiestOrigins: (max) => ways.lanes.worst(max)
    }
  })

/* The one client of all outbound requests (protocol §5). */

/** What was read. */
export interface Read {
  readonly type: string
  readonly bytes: Uint8Array
}

/** GET, whole, at most `bytesMax` bytes; fails with what was wrong, for people. */
export const readerOf =
  (outbound: Pick<Outbound, "get">) =>
  (uri: string, accept: string, bytesMax: number): Effect.Effect<Read, string> =>
    Effect.flatMap(outbound.get({ uri, headers: { accept }, bytesMax }), (outcome) => {
      switch (outcome._tag) {
        case "Fetched":
          return Effect.succeed({ type: outcome.fetched.type, bytes: outcome.fetched.bytes })
        case "Deferred":
          return Effect.fail("the other service is not asked just now: try again later")
        case "Refused":
        case "Faulted":
          return Effect.fail(outcome.problem)
      }
    })
