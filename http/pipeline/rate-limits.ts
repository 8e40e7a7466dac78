/**
 * How many requests an account or an address may make (the fields of
 * draft-ietf-httpapi-ratelimit-headers): a token bucket for each, at this node, in bounded memory.
 * A request whose token was right at this node within the minute counts for its account, every
 * other for its address: who guesses spends nobody else's, and who has a token is not held up by
 * neighbors behind the same address.
 *
 * Not Effect's RateLimiter: it starts a fiber for each request and forgets no key.
 */
import { BlockList, isIP, isIPv6 } from "node:net"
import { BoundedMap, type CredentialCache, identityOf,
  secretHash } from "../auth/credentials/index.ts"
import { forwardedMax, ratedMax } from "../limits.ts"
import type { HttpRequest, ReplyHeaders } from "../wire/index.ts"
import { type HttpError, httpError } from "./failures.ts"

type Family = "ipv4" | "ipv6"

/** One spelling of an address; IPv4 in IPv6 is IPv4. Undefined for what is none. */
const plain = (text: string): string | undefined => {
  const bare = text.trim().replace(/^"|"$/g, "").replace(/^\[(.*)\](?::\d+)?$/, "$1")
  const address = /^\d+\.\d+\.\d+\.\d+:\d+$/.test(bare) ? bare.replace(/:\d+$/, "") : bare
  if (isIP(address) === 0 || address.includes("%")) return undefined
  if (!isIPv6(address)) return address
  // The URL parser writes the shortest form (RFC 5952).
  const short = new URL(`http://[${address}]`).hostname.slice(1, -1)
  const mapped = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(short)
  if (mapped === null) return short
  const [high = 0, low = 0] = mapped.slice(1).map((part) => Number.parseInt(part, 16))
  return [high >> 8, high & 255, low >> 8, low & 255].join(".")
}

const familyOf = (address: string): Family => address.includes(":") ? "ipv6" : "ipv4"

const lists = new WeakMap<ReadonlyArray<string>, BlockList>()

const listOf = (prefixes: ReadonlyArray<string>): BlockList => {
  const known = lists.get(prefixes)
  if (known !== undefined) return known
  const list = new BlockList()
  for (const prefix of prefixes) {
    const [address = "", bits] = prefix.split("/")
    const family = familyOf(address)
    list.addSubnet(address, Number(bits ?? (family === "ipv6" ? 128 : 32)), family)
  }
  lists.set(prefixes, list)
  return list
}

/** Whoever has one address of an IPv6 network has all of its /64. */
const network = (address: string): string => {
  if (!address.includes(":")) return address
  const [head = "", tail] = address.split("::")
  const front = head === "" ? [] : head.split(":")
  const back = tail === undefined || tail === "" ? [] : tail.split(":")
  const zeros = Array.from({ length: Math.max(0, 8 - front.length - back.length) }, () => "0")
  return `${[...front, ...zeros, ...back].slice(0, 4).join(":")}::/64`
}

/**
 * The client's address: the connection's other end, or where that is a trusted proxy the last one
 * in X-Forwarded-For that is none. An IPv6 address stands for its /64.
 */
export const clientAddress = (
  { headers, remoteAddress }: Pick<HttpRequest, "headers" | "remoteAddress">,
  trustedProxies: ReadonlyArray<string>
): string => {
  const near = plain(remoteAddress)
  if (near === undefined) return remoteAddress
  if (trustedProxies.length === 0) return network(near)
  const trusted = listOf(trustedProxies)
  const isTrusted = (address: string) => trusted.check(address, familyOf(address))
  const hops = (headers.get("x-forwarded-for") ?? "").split(",").slice(-forwardedMax).toReversed()
  let last = near
  for (const hop of hops) {
    if (!isTrusted(last)) break
    const address = plain(hop)
    // What a proxy did not write as an address was not written by a proxy.
    if (address === undefined) break
    last = address
  }
  return network(last)
}

/* Which address a request comes from, for counting: behind proxies, what trusted ones say. */

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
  readonly refusal: HttpError | undefined
}

const free: Admission = { fields: [], refusal: undefined }

/** Paths that the machinery dependencies a node asks: refused, it would take the node for dead. */
const unlimited: ReadonlySet<string> = new Set(["/livez", "/readyz"])

export class RateLimiter {
  readonly #address: Policy | undefined
  readonly #account: Policy | undefined
  readonly #credentialCache: CredentialCache
  readonly #trustedProxies: ReadonlyArray<string>
  /** Requests refused, by policy. */
  readonly #refused: Record<PolicyName, number>

  constructor(
    limits: RateLimits,
    dependencies: {
      readonly credentialCache: CredentialCache
      readonly trustedProxies: ReadonlyArray<string>
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
    this.#address = policy("address")
    this.#account = policy("account")
    this.#credentialCache = dependencies.credentialCache
    this.#trustedProxies = dependencies.trustedProxies
    this.#refused = dependencies.refused
  }

  /** Counts a request. */
  admit(request: HttpRequest): Admission {
    if (unlimited.has(request.path)) return free
    const account = this.#accountOf(request)
    if (account !== undefined) {
      return this.#account === undefined ? free : this.#take(this.#account, account)
    }
    if (this.#address === undefined) return free
    return this.#take(this.#address, clientAddress(request, this.#trustedProxies))
  }

  #accountOf(request: HttpRequest): string | undefined {
    if (!request.headers.has("authorization")) return undefined
    const identity = identityOf(request)
    if (identity._tag === "Nobody") return undefined
    const token = identity._tag === "Bearer" ? identity.token : identity.password
    return this.#credentialCache.recentAccount(secretHash(token))
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
    return { fields, refusal: httpError("too-many-requests", detail, retry, policies) }
  }
}

/** The limits of a service; undefined when there are none, so that no request is counted. */
export const makeRateLimiter = (
  limits: RateLimits,
  dependencies: ConstructorParameters<typeof RateLimiter>[1]
): RateLimiter | undefined =>
  limits.address === undefined && limits.account === undefined
    ? undefined
    : new RateLimiter(limits, dependencies)
