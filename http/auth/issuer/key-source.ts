/**
 * The issuer's keys. The issuer's metadata name their URL (OpenID Connect Discovery 1.0). This node
 * loads the keys on demand, caches them, and loads them again when they are old.
 */
import { Data, Effect } from "effect"
import { createLocalJWKSet, type JSONWebKeySet, type JWK } from "jose"
import { parseUrl } from "../../../actors/index.ts"
import { keysFreshMs, keysMax, keysPauseMs, keysStaleMs, metadataCharsMax } from "../../limits.ts"

const isPlainHttpUrl = ({ hash, password, protocol, username }: URL): boolean =>
  (protocol === "http:" || protocol === "https:") && hash + username + password === ""

/** The URL of the issuer's metadata (§4); undefined if the issuer is not a URL without a query. */
export const metadataUrl = (issuer: string): string | undefined => {
  const url = parseUrl(issuer)
  return url !== undefined && isPlainHttpUrl(url) && url.search === ""
    ? `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`
    : undefined
}

/** The URL of the keys in the issuer's metadata (§3, §4.3), or the reason why there is none. */
export const parseKeysUrl = (text: string, issuer: string): { readonly url: string } | string => {
  if (text.length > metadataCharsMax) return "the issuer's metadata are too long"
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    return "the issuer's metadata are not JSON"
  }
  const metadata: Readonly<Record<string, unknown>> = typeof parsed === "object" && parsed !== null
    ? { ...parsed }
    : {}
  const { issuer: named, jwks_uri: url } = metadata
  if (named !== issuer) return "the metadata belong to another issuer"
  const location = typeof url === "string" ? parseUrl(url) : undefined
  if (typeof url !== "string" || location === undefined || !isPlainHttpUrl(location)) {
    return "the issuer's metadata name no jwks_uri"
  }
  const isDowngrade = issuer.startsWith("https:") && !url.startsWith("https:")
  return isDowngrade ? "the issuer uses https, but its jwks_uri does not" : { url }
}

/** A loaded key set; `getKey` finds the key that signed a token. */
export interface Keys {
  readonly getKey: ReturnType<typeof createLocalJWKSet>
  /** The set as JSON, to recognize whether the keys changed. */
  readonly text: string
}

/** No keys are loaded, and loading them failed. */
export class KeysUnavailable
  extends Data.TaggedError("KeysUnavailable")<{ readonly why: string }>
{}

const isKey = (value: unknown): value is JWK =>
  typeof value === "object" && value !== null && "kty" in value && typeof value.kty === "string"

/** Types (`kty`) of keys that have a public part. */
const publicTypes = new Set(["RSA", "EC", "OKP"])

/** Members that only private keys have. */
const privateParts = ["d", "p", "q", "k"]

/**
 * Reads a JWK Set (RFC 7517 §5) without the keys that cannot verify a signature. Returns the reason
 * as text if no key remains or if it contains a private key.
 */
export const parseKeySet = (text: string): { readonly set: JSONWebKeySet } | string => {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    return "it is not JSON"
  }
  const keys: unknown = typeof parsed === "object" && parsed !== null && "keys" in parsed
    ? parsed.keys
    : undefined
  if (!Array.isArray(keys)) return "it is not a JWK Set: it has no array of keys"
  if (keys.length > keysMax) return `it has more than ${keysMax} keys`
  const usable = keys.filter(isKey).filter(({ kty = "" }) => publicTypes.has(kty))
  if (usable.some((key) => privateParts.some((part) => part in key))) {
    return "it holds a private key, which only the issuer may have"
  }
  return usable.length === 0 ? "it has no public key of RSA, EC or OKP" : { set: { keys: usable } }
}

/** Loads and caches the keys. All ages are on the monotonic clock. */
export class KeySource {
  private readonly load: Effect.Effect<string, string>
  private readonly monotonicMs: () => number
  private keys: Keys | undefined
  private loadedMs = 0
  private triedMs = Number.NEGATIVE_INFINITY
  private problem = ""
  private loading: Promise<void> | undefined

  /** `load` returns the text of a JWK Set; it fails with the reason as text. */
  constructor(load: Effect.Effect<string, string>, monotonicMs: () => number) {
    this.load = load
    this.monotonicMs = monotonicMs
  }

  /**
   * The cached keys; undefined if there are none, or they are too old. Older ones than
   * `keysFreshMs` are used only after an attempt to fetch newer ones has failed: one of them may
   * have been withdrawn.
   */
  cached(): Keys | undefined {
    const nowMs = this.monotonicMs()
    const ageMs = nowMs - this.loadedMs
    if (this.keys === undefined || ageMs >= keysStaleMs) return undefined
    if (ageMs < keysFreshMs) return this.keys
    if (this.problem === "" || nowMs - this.triedMs >= keysFreshMs) return undefined
    // No request waits for an issuer that has not answered a short time ago.
    void this.reload()
    return this.keys
  }

  /** The cached keys, or newly loaded ones. */
  readonly current: Effect.Effect<Keys, KeysUnavailable> = Effect.suspend(() => {
    const keys = this.cached()
    return keys === undefined
      ? Effect.flatMap(Effect.promise(() => this.reload()), () => this.loaded)
      : Effect.succeed(keys)
  })

  private readonly loaded: Effect.Effect<Keys, KeysUnavailable> = Effect.suspend(() => {
    const keys = this.cached()
    return keys === undefined
      ? Effect.fail(new KeysUnavailable({ why: this.problem }))
      : Effect.succeed(keys)
  })

  /** Newly loaded keys, for a token whose key is not among the cached ones. */
  readonly renewed: Effect.Effect<Keys, KeysUnavailable> = Effect.suspend(() =>
    Effect.flatMap(
      Effect.promise(() => this.reload()),
      () =>
        this.problem === ""
          ? this.loaded
          : Effect.fail(new KeysUnavailable({ why: this.problem }))
    )
  )

  /** Loads once for all waiting requests, and not again within `keysPauseMs`. */
  private reload(): Promise<void> {
    const nowMs = this.monotonicMs()
    if (this.loading === undefined && nowMs - this.triedMs < keysPauseMs) {
      return Promise.resolve()
    }
    // A separate fiber: a client that disconnects must not interrupt it for the others.
    this.loading ??= Effect.runPromise(
      Effect.match(this.load, {
        onFailure: (problem) => this.fail(problem),
        onSuccess: (text) => this.accept(text)
      })
    ).catch((defect) => this.fail(String(defect))).finally(() => {
      this.triedMs = nowMs
      this.loading = undefined
    })
    return this.loading
  }

  private fail(problem: string): void {
    this.problem = problem === "" ? "unknown" : problem
  }

  private accept(text: string): void {
    const parsed = parseKeySet(text)
    if (typeof parsed === "string") return this.fail(parsed)
    this.problem = ""
    this.loadedMs = this.monotonicMs()
    const keysText = JSON.stringify(parsed.set)
    if (keysText === this.keys?.text) return
    this.keys = { getKey: createLocalJWKSet(parsed.set), text: keysText }
  }
}
