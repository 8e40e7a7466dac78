/** The one client of all outbound requests (protocol §5), with its connections and limiter. */
import { Effect, type Scope } from "effect"
import { Agent } from "undici"
import type { Traces } from "../../runtime/index.ts"
import { answerHeadBytesMax, type DeliveryLimits, keepAliveMaxMs, keepAliveMs,
  makeDeliveryLimits } from "../limits.ts"
import { makeConnector, makeNameResolver } from "./connector.ts"
import { addressRules, DestinationCache } from "./destination.ts"
import { OriginLimiter, type OriginLimiterMetrics, type OriginMetrics } from "./origin-limiter.ts"
import type { DeliveryOutcome, Outbound, Reach, RequestCause } from "./protocol.ts"
import { get, head, type OutboundResources, post } from "./request.ts"

export interface OutboundOptions {
  /** Prefixes or addresses that may be reached though they are forbidden (`outbound.allow`). */
  readonly allow: ReadonlyArray<string>
  /** `restante/<version>`. */
  readonly userAgent: string
  readonly nowMs: () => number
  /** `performance.now`, unless a test has another clock. */
  readonly monotonicMs?: () => number
  /** In [0, 1). */
  readonly random: () => number
  readonly limits?: Partial<DeliveryLimits>
  /** Name servers instead of the system's, as `127.0.0.1:53`. */
  readonly dnsServers?: ReadonlyArray<string>
  /** A hosts file instead of the system's. */
  readonly hostsFile?: string
  /** Certificates that are trusted instead of the system's, as PEM. */
  readonly ca?: ReadonlyArray<string>
  /** Records a span of each hop of a post that has a `trace`. */
  readonly traces?: Traces | undefined
}

/** Numbers for `/metrics`. Outcomes are totals, the others are as of now. */
export interface OutboundMetrics extends OriginLimiterMetrics {
  readonly outcomes: Readonly<Record<DeliveryOutcome["_tag"] | "Fetched" | "Probed", number>>
  readonly connections: number
}

export interface OutboundService extends Outbound {
  readonly metrics: () => OutboundMetrics
  /** The origins with open circuits or the most requests, those first. */
  readonly busiestOrigins: (max: number) => ReadonlyArray<OriginMetrics>
}

/** The connections of requests that may reach public addresses and `allow`. */
const acquireConnections = Effect.fnUntraced(function*(
  { ca, dnsServers, hostsFile }: OutboundOptions,
  limits: DeliveryLimits,
  allow: ReadonlyArray<string>
) {
  const rules = addressRules(allow)
  const names = makeNameResolver({ limits, dnsServers, hostsFile })
  const connector = makeConnector({ limits, names, rules, publicRules: addressRules([]), ca })
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
  return { agent, connector, destinations: new DestinationCache(rules) }
})

/**
 * The resources of requests by their reach. Those that may not reach what the operator has allowed
 * share no connection with others: one that is open would be used without another check.
 */
const acquireResources = Effect.fnUntraced(function*(options: OutboundOptions) {
  const { allow, nowMs, random, traces, userAgent } = options
  const { monotonicMs = () => performance.now() } = options
  const limits = makeDeliveryLimits(options.limits)
  const limiter = new OriginLimiter({ limits, nowMs, monotonicMs, random })
  const shared = { limiter, limits, userAgent, nowMs, traces }
  const allowed = { ...yield* acquireConnections(options, limits, allow), ...shared }
  const byReach: Readonly<Record<Reach, OutboundResources>> = {
    allowed,
    public: allow.length === 0
      ? allowed
      : { ...yield* acquireConnections(options, limits, []), ...shared }
  }
  return byReach
})

/**
 * The client, with its connections and origin limiter; they end with the scope. Invalid prefixes
 * and limits are defects.
 */
export const makeOutbound = (
  options: OutboundOptions
): Effect.Effect<OutboundService, never, Scope.Scope> =>
  Effect.map(acquireResources(options), (resources) => {
    const { limiter } = resources.allowed
    const connectors = new Set(Object.values(resources).map(({ connector }) => connector))
    const outcomes = {
      Delivered: 0,
      Fetched: 0,
      Probed: 0,
      PermanentFailure: 0,
      RetryableFailure: 0,
      Deferred: 0
    }
    const counted = <A extends { readonly _tag: keyof typeof outcomes }>(
      effect: Effect.Effect<A>
    ): Effect.Effect<A> =>
      Effect.map(effect, (outcome) => {
        outcomes[outcome._tag] += 1
        return outcome
      })
    const within = ({ reach = "allowed" }: { readonly reach?: Reach }) => resources[reach]
    return {
      post: (outboundPost) => counted(post(within(outboundPost), outboundPost)),
      get: (outboundGet) => counted(get(within(outboundGet), outboundGet)),
      head: (outboundHead) => counted(head(within(outboundHead), outboundHead)),
      metrics: () => ({
        ...limiter.metrics(),
        outcomes: { ...outcomes },
        connections: [...connectors].reduce((sum, one) => sum + one.openCount(), 0)
      }),
      busiestOrigins: (max) => limiter.busiest(max)
    }
  })

/** A resource that was read. */
export interface Read {
  readonly type: string
  readonly bytes: Uint8Array
}

/**
 * Reads a resource of another service once, for a caller that cannot wait for a retry: a GET of
 * at most `bytesMax` bytes. It fails with the problem, for people.
 */
export const readerOf =
  (outbound: Pick<Outbound, "get">, reach: Reach, cause: RequestCause) =>
  (uri: string, accept: string, bytesMax: number): Effect.Effect<Read, string> =>
    Effect.flatMap(
      outbound.get({ uri, headers: { accept }, bytesMax, reach, cause }),
      (outcome) => {
        switch (outcome._tag) {
          case "Fetched":
            return Effect.succeed({ type: outcome.fetched.type, bytes: outcome.fetched.bytes })
          case "Deferred":
            return Effect.fail("requests to the other service are suspended: retry later")
          case "PermanentFailure":
          case "RetryableFailure":
            return Effect.fail(outcome.problem)
        }
      }
    )
