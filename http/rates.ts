/**
 * How many requests an account or an address may make (the fields of
 * draft-ietf-httpapi-ratelimit-headers): a token bucket for each, at this node, in bounded memory.
 * A request whose token was right at this node within the minute counts for its account, every
 * other for its address: who guesses spends nobody else's, and who has a token is not held up by
 * neighbours behind the same address.
 *
 * Not Effect's RateLimiter: it starts a fiber for each request and forgets no key.
 */
import { clientOf } from "./client-address.ts"
import { identityOf } from "./credentials.ts"
import { fail, type Failed } from "./failures.ts"
import type { ReplyHeaders } from "./fields.ts"
import { BoundedMap } from "./generations.ts"
import { ratedMax } from "./limits.ts"
import type { HttpRequest } from "./request.ts"
import { secretHash } from "./secrets.ts"
import type { CredentialCache } from "./tries.ts"

/** So many requests in so long, which may come at once. */
export interface Rate {
  readonly quota: number
  readonly windowMs: number
}

/** What the requests of one address and of one account are bound to; undefined for nothing. */
export interface RateLimits {
  readonly address?: Rate | undefined
  readonly account?: Rate | undefined
}

/** The policies by their names, as in the fields, the problem and the metric. */
export type PolicyName = keyof RateLimits

/** Sums of fractions of a millisecond are not exact. */
const slackMs = 0.001

/** What one request was told. */
export interface RateLimitStatus {
  readonly isOver: boolean
  /** Requests that may follow at once. */
  readonly remaining: number
  /** Until the whole quota is there again, when nothing comes. */
  readonly wholeInMs: number
  /** Until the next request may come; 0 when it may at once. */
  readonly waitMs: number
}

/** Buckets of one policy. What is over spends nothing, so that patience is always rewarded. */
export class Buckets {
  readonly rate: Rate
  readonly #nowMs: () => number
  readonly #eachMs: number
  /** When a bucket will be full again (GCRA): all that has to be known of it. */
  readonly #fullAtMs: BoundedMap<number>

  /** `nowMs` is of a clock that never goes backwards; `ratedMax` the buckets that are kept. */
  constructor(rate: Rate, nowMs: () => number, bucketsMax = ratedMax) {
    this.rate = rate
    this.#nowMs = nowMs
    this.#eachMs = rate.windowMs / rate.quota
    this.#fullAtMs = new BoundedMap(bucketsMax)
  }

  /** Buckets in memory. */
  get size(): number {
    return this.#fullAtMs.size
  }

  take(key: string): RateLimitStatus {
    const nowMs = this.#nowMs()
    const beforeMs = Math.max(this.#fullAtMs.get(key) ?? nowMs, nowMs)
    const afterMs = beforeMs + this.#eachMs
    const roomMs = nowMs + this.rate.windowMs - afterMs
    if (roomMs < -slackMs) {
      return { isOver: true, remaining: 0, wholeInMs: beforeMs - nowMs, waitMs: -roomMs }
    }
    this.#fullAtMs.set(key, afterMs)
    const remaining = Math.floor((roomMs + slackMs) / this.#eachMs)
    return { isOver: false, remaining, wholeInMs: afterMs - nowMs, waitMs: 0 }
  }
}

interface Policy {
  readonly name: PolicyName
  readonly buckets: Buckets
  /** `RateLimit-Policy`. */
  readonly field: string
}

const seconds = (ms: number): number => Math.ceil(ms / 1000)

/** What goes with the answer of a request, and the refusal of one that is over. */
export interface Admission {
  readonly fields: ReplyHeaders
  readonly refusal: Failed | undefined
}

const free: Admission = { fields: [], refusal: undefined }

/** Paths that the machinery around a node asks: refused, it would take the node for dead. */
const unlimited: ReadonlySet<string> = new Set(["/livez", "/readyz"])

export class RateLimiter {
  readonly #address: Policy | undefined
  readonly #account: Policy | undefined
  readonly #tries: CredentialCache
  readonly #trustedProxies: ReadonlyArray<string>
  /** Requests refused, by policy. */
  readonly #refused: Record<PolicyName, number>

  constructor(
    limits: RateLimits,
    around: {
      readonly tries: CredentialCache
      readonly trustedProxies: ReadonlyArray<string>
      readonly refused: Record<PolicyName, number>
      readonly nowMs?: () => number
    }
  ) {
    const nowMs = around.nowMs ?? (() => performance.now())
    const policy = (name: PolicyName): Policy | undefined => {
      const rate = limits[name]
      if (rate === undefined) return undefined
      const field = `"${name}";q=${rate.quota};w=${seconds(rate.windowMs)}`
      return { name, buckets: new Buckets(rate, nowMs), field }
    }
    this.#address = policy("address")
    this.#account = policy("account")
    this.#tries = around.tries
    this.#trustedProxies = around.trustedProxies
    this.#refused = around.refused
  }

  /** Counts a request. */
  admit(request: HttpRequest): Admission {
    if (unlimited.has(request.path)) return free
    const account = this.#accountOf(request)
    if (account !== undefined) {
      return this.#account === undefined ? free : this.#take(this.#account, account)
    }
    if (this.#address === undefined) return free
    return this.#take(this.#address, clientOf(request, this.#trustedProxies))
  }

  #accountOf(request: HttpRequest): string | undefined {
    if (!request.headers.has("authorization")) return undefined
    const identity = identityOf(request)
    if (identity._tag === "Nobody") return undefined
    const token = identity._tag === "Bearer" ? identity.token : identity.password
    return this.#tries.countedFor(secretHash(token))
  }

  #take({ buckets, field, name }: Policy, key: string): Admission {
    const { isOver, remaining, waitMs, wholeInMs } = buckets.take(key)
    const fields: ReplyHeaders = [
      ["RateLimit-Policy", field],
      ["RateLimit", `"${name}";r=${remaining};t=${seconds(wholeInMs)}`]
    ]
    if (!isOver) return { fields, refusal: undefined }
    this.#refused[name] += 1
    const { quota, windowMs } = buckets.rate
    const detail = `this ${name} may make ${quota} requests in ${windowMs / 1000} s here`
    const retry = [["Retry-After", String(Math.max(1, seconds(waitMs)))]] as const
    const policies = { "violated-policies": [name] }
    return { fields, refusal: fail("too-many-requests", detail, retry, policies) }
  }
}

/** The limits of a service; undefined when there are none, so that no request is counted. */
export const ratesOf = (
  limits: RateLimits,
  around: ConstructorParameters<typeof RateLimiter>[1]
): RateLimiter | undefined =>
  limits.address === undefined && limits.account === undefined
    ? undefined
    : new RateLimiter(limits, around)
