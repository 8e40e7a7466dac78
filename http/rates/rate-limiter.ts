/**
 * Rate limits by account and by client network (draft-ietf-httpapi-ratelimit-headers; protocol
 * §7): a token bucket for each, at this node, in bounded memory. A request whose token was valid at
 * this node within the last minute counts for its account, every other for its network. Guessing
 * therefore spends no account's limit, and a client with a token does not share the limit of its
 * network. A large document counts as several requests. A client on this machine is not limited.
 *
 * Effect's RateLimiter is not used: it starts a fiber for each request and never forgets a key.
 */
import { LRUCache } from "lru-cache"
import { type CredentialCache, identityOf, secretHash } from "../auth/credentials/index.ts"
import { busiestScannedMax, busiestShownMax, documentBytesPerRequest,
  rateBucketsMax } from "../limits.ts"
import type { HttpRequest, ReplyHeaders } from "../wire/index.ts"
import type { Clients } from "./client-address.ts"

/** `quota` requests in each window, also all at once. */
export interface Rate {
  readonly quota: number
  readonly windowMs: number
}

/** The limits of one client network and of one account; undefined without a limit. */
export interface RateLimits {
  readonly address?: Rate | undefined
  readonly account?: Rate | undefined
}

/** The names of the policies in the header fields, the problem and the metric. */
export type PolicyName = keyof RateLimits

/** Tolerates rounding errors of sums of fractions. */
const slackMs = 0.001

/** The state of a bucket after one request. */
export interface RateLimitStatus {
  readonly isOver: boolean
  /** Requests that are allowed immediately. */
  readonly remaining: number
  /** The time until the whole quota is available again without further requests. */
  readonly fullInMs: number
  /** The time until the next request is allowed; 0 if it is allowed now. */
  readonly waitMs: number
}

/** The client of a bucket, and how much of its quota it has spent and not regained. */
export interface BucketUse {
  readonly key: string
  readonly used: number
}

/** A policy, and the clients that have spent most of it at this node. */
export interface PolicyUse {
  readonly policy: PolicyName
  readonly rate: Rate
  readonly clients: ReadonlyArray<BucketUse>
}

/** The buckets of one policy. A rejected request spends nothing, so waiting always helps. */
export class Buckets {
  readonly rate: Rate
  private readonly nowMs: () => number
  private readonly eachMs: number
  private readonly bucketsMax: number
  /**
   * When each bucket is full again: the whole state of a bucket by GCRA. Made when it is needed: an
   * empty cache of this size has several megabytes.
   */
  private buckets: LRUCache<string, number> | undefined

  /** `nowMs` reads a clock that never goes backwards. */
  constructor(rate: Rate, nowMs: () => number, bucketsMax = rateBucketsMax) {
    this.rate = rate
    this.nowMs = nowMs
    this.eachMs = rate.windowMs / rate.quota
    this.bucketsMax = bucketsMax
  }

  private get fullAtMs(): LRUCache<string, number> {
    return this.buckets ??= new LRUCache({ max: this.bucketsMax })
  }

  /** Buckets in memory. */
  get size(): number {
    return this.buckets?.size ?? 0
  }

  /** Those that have spent most, among the ones that were used last. */
  busiest(): ReadonlyArray<BucketUse> {
    const nowMs = this.nowMs()
    const uses: Array<BucketUse> = []
    let scanned = 0
    // The cache begins with the one that was used last.
    for (const [key, fullAtMs] of this.buckets?.entries() ?? []) {
      if (++scanned > busiestScannedMax) break
      const used = Math.ceil((fullAtMs - nowMs - slackMs) / this.eachMs)
      if (used > 0) uses.push({ key, used })
    }
    return uses.toSorted((one, other) => other.used - one.used).slice(0, busiestShownMax)
  }

  take(key: string): RateLimitStatus {
    const nowMs = this.nowMs()
    const beforeMs = Math.max(this.fullAtMs.get(key) ?? nowMs, nowMs)
    const afterMs = beforeMs + this.eachMs
    const roomMs = nowMs + this.rate.windowMs - afterMs
    if (roomMs < -slackMs) {
      return { isOver: true, remaining: 0, fullInMs: beforeMs - nowMs, waitMs: -roomMs }
    }
    this.fullAtMs.set(key, afterMs)
    const remaining = Math.floor((roomMs + slackMs) / this.eachMs)
    return { isOver: false, remaining, fullInMs: afterMs - nowMs, waitMs: 0 }
  }

  /** Spends more for a request that was admitted, also beyond the quota: the next ones wait. */
  spend(key: string, count: number): void {
    const nowMs = this.nowMs()
    const beforeMs = Math.max(this.fullAtMs.get(key) ?? nowMs, nowMs)
    this.fullAtMs.set(key, beforeMs + count * this.eachMs)
  }
}

interface Policy {
  readonly name: PolicyName
  readonly buckets: Buckets
  /** `RateLimit-Policy`. */
  readonly field: string
}

const seconds = (ms: number): number => Math.ceil(ms / 1000)

/** A request over a limit. */
export interface Excess {
  readonly policy: string
  /** Which limit it is, for people. */
  readonly detail: string
  /** The time until the next request is allowed. */
  readonly waitMs: number
}

/** The header fields of the answer, and the excess if the request is over its limit. */
export interface Admission {
  readonly fields: ReplyHeaders
  readonly excess: Excess | undefined
}

const unlimited: Admission = { fields: [], excess: undefined }

/** Who spends a policy. */
interface Spender {
  readonly policy: Policy
  readonly key: string
  /** In words, for people. */
  readonly who: string
}

/** Orchestrators probe these paths; after a 429 they would consider the node dead. */
const probePaths: ReadonlySet<string> = new Set(["/livez", "/readyz"])

export class RateLimiter {
  private readonly address: Policy | undefined
  private readonly account: Policy | undefined
  private readonly credentialCache: CredentialCache
  private readonly clients: Clients
  /** Rejected requests, by policy. */
  private readonly refused: Record<PolicyName, number>

  constructor(
    limits: RateLimits,
    dependencies: {
      readonly credentialCache: CredentialCache
      readonly clients: Clients
      readonly refused: Record<PolicyName, number>
      readonly nowMs?: () => number
    }
  ) {
    const nowMs = dependencies.nowMs ?? (() => performance.now())
    const policy = (name: PolicyName): Policy | undefined => {
      const rate = limits[name]
      if (rate === undefined) return undefined
      const field = `"${name}";q=${rate.quota};w=${seconds(rate.windowMs)}`
      return { name, buckets: new Buckets(rate, nowMs), field }
    }
    this.address = policy("address")
    this.account = policy("account")
    this.credentialCache = dependencies.credentialCache
    this.clients = dependencies.clients
    this.refused = dependencies.refused
  }

  /** Counts a request and decides whether it is admitted. */
  admit(request: HttpRequest): Admission {
    const spender = this.spenderOf(request)
    return spender === undefined ? unlimited : this.take(spender)
  }

  /** Counts a document of an admitted request: reading it takes as long as several small ones. */
  countDocument(request: HttpRequest, bytes: number): void {
    const count = Math.floor(bytes / documentBytesPerRequest)
    const spender = count === 0 ? undefined : this.spenderOf(request)
    spender?.policy.buckets.spend(spender.key, count)
  }

  /** What the busiest clients use of each policy. */
  busiest(): ReadonlyArray<PolicyUse> {
    return [this.address, this.account].flatMap((policy) =>
      policy === undefined ? [] : [{
        policy: policy.name,
        rate: policy.buckets.rate,
        clients: policy.buckets.busiest()
      }]
    )
  }

  /** Undefined for a request that is not limited. */
  private spenderOf(request: HttpRequest): Spender | undefined {
    if (probePaths.has(request.path)) return undefined
    const client = this.clients.clientOf(request)
    if (client.isLocal) return undefined
    const account = this.accountOf(request)
    if (account !== undefined) {
      const who = `the account ${account}`
      return this.account && { policy: this.account, key: account, who }
    }
    const { network } = client
    return this.address && { policy: this.address, key: network, who: `the clients of ${network}` }
  }

  private accountOf(request: HttpRequest): string | undefined {
    if (!request.headers.has("authorization")) return undefined
    const identity = identityOf(request)
    if (identity._tag !== "Basic" && identity._tag !== "Bearer") return undefined
    const token = identity._tag === "Bearer" ? identity.token : identity.password
    return this.credentialCache.recentAccount(secretHash(token))
  }

  private take({ key, policy: { buckets, field, name }, who }: Spender): Admission {
    const { isOver, remaining, waitMs, fullInMs } = buckets.take(key)
    const fields: ReplyHeaders = [
      ["RateLimit-Policy", field],
      ["RateLimit", `"${name}";r=${remaining};t=${seconds(fullInMs)}`]
    ]
    if (!isOver) return { fields, excess: undefined }
    this.refused[name] += 1
    const { quota, windowMs } = buckets.rate
    const detail = `${who} may make ${quota} requests in ${windowMs / 1000} s: ` +
      `repeat the request in ${Math.max(1, seconds(waitMs))} s`
    return { fields, excess: { policy: name, detail, waitMs } }
  }
}

/** The rate limiter of a service; undefined without limits, so that no request is counted. */
export const makeRateLimiter = (
  limits: RateLimits,
  dependencies: ConstructorParameters<typeof RateLimiter>[1]
): RateLimiter | undefined =>
  limits.address === undefined && limits.account === undefined
    ? undefined
    : new RateLimiter(limits, dependencies)
