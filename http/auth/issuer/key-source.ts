/** The issuer's keys: looked for when they are wanted, kept, and looked for again. */
import { Effect } from "effect"
import { createLocalJWKSet, type JSONWebKeySet, type JWK } from "jose"
import { keysFreshMs, keysMax, keysPauseMs, keysStaleMs } from "../../limits.ts"

/** How one set of keys is asked for the one of a token. */
export type GetKey = ReturnType<typeof createLocalJWKSet>

/** The keys as they are known now. */
export interface Keys {
  readonly getKey: GetKey
  /** The same for as long as the keys are the same. */
  readonly text: string
}

/** No keys to check a token with: neither known ones nor new ones. */
export interface KeysUnavailable {
  readonly _tag: "KeysAway"
  readonly why: string
}

const isKey = (value: unknown): value is JWK =>
  typeof value === "object" && value !== null && "kty" in value && typeof value.kty === "string"

const publicTypes = new Set(["RSA", "EC", "OKP"])

/** What a private key has, of any type. */
const privateParts = ["d", "p", "q", "k"]

/**
 * Reads a JWK Set (RFC 7517 §5). Keys that nobody can check a signature with are left out; fails,
 * for people, when none are left, and when a private key is among them.
 */
export const parseKeySet = (text: string): { readonly set: JSONWebKeySet } | string => {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    return "it is no JSON"
  }
  const keys: unknown = typeof parsed === "object" && parsed !== null && "keys" in parsed
    ? parsed.keys
    : undefined
  if (!Array.isArray(keys)) return "it is no JWK Set: it has no array of keys"
  if (keys.length > keysMax) return `it has more than ${keysMax} keys`
  const fit = keys.filter(isKey).filter(({ kty = "" }) => publicTypes.has(kty))
  if (fit.some((key) => privateParts.some((part) => part in key))) {
    return "it holds a private key, which belongs to the issuer alone"
  }
  return fit.length === 0 ? "it has no public key of RSA, EC or OKP" : { set: { keys: fit } }
}

/** Keeps the keys that `load` finds. */
export class KeySource {
  readonly #load: Effect.Effect<string, string>
  readonly #nowMs: () => number
  #keys: Keys | undefined
  #loadedMs = 0
  #triedMs = Number.NEGATIVE_INFINITY
  #problem = ""
  #loading: Promise<void> | undefined

  /** `load` answers the text of a JWK Set; fails with what was wrong, for people. */
  constructor(load: Effect.Effect<string, string>, nowMs: () => number) {
    this.#load = load
    this.#nowMs = nowMs
  }

  /** The keys that may be used without waiting; undefined when there are none. */
  now(): Keys | undefined {
    const ageMs = this.#nowMs() - this.#loadedMs
    if (this.#keys === undefined || ageMs >= keysStaleMs) return undefined
    if (ageMs >= keysFreshMs) void this.#look()
    return this.#keys
  }

  /** The same, looked for when there are none. */
  readonly current: Effect.Effect<Keys, KeysUnavailable> = Effect.suspend(() => {
    const keys = this.now()
    return keys === undefined ? this.renewed : Effect.succeed(keys)
  })

  /** What a look brings, for a token whose key is not among those that are known. */
  readonly renewed: Effect.Effect<Keys, KeysUnavailable> = Effect.suspend(() =>
    Effect.flatMap(Effect.promise(() => this.#look()), () => {
      const keys = this.now()
      return keys === undefined || this.#problem !== ""
        ? Effect.fail<KeysUnavailable>({ _tag: "KeysAway", why: this.#problem })
        : Effect.succeed(keys)
    })
  )

  /** Looks once for all who wait, however many, and not again before the pause is over. */
  #look(): Promise<void> {
    const nowMs = this.#nowMs()
    const sinceMs = nowMs - this.#triedMs
    if (this.#loading === undefined && sinceMs >= 0 && sinceMs < keysPauseMs) {
      return Promise.resolve()
    }
    // Not of the request's own fiber: whoever goes away does not take the look from the others.
    this.#loading ??= Effect.runPromise(
      Effect.match(this.#load, {
        onFailure: (problem) => this.#failed(problem),
        onSuccess: (text) => this.#take(text)
      })
    ).catch((defect) => this.#failed(String(defect))).finally(() => {
      this.#triedMs = nowMs
      this.#loading = undefined
    })
    return this.#loading
  }

  #failed(problem: string): void {
    this.#problem = problem === "" ? "unknown" : problem
  }

  #take(text: string): void {
    const found = parseKeySet(text)
    if (typeof found === "string") return this.#failed(found)
    this.#problem = ""
    this.#loadedMs = this.#nowMs()
    const known = JSON.stringify(found.set)
    if (known === this.#keys?.text) return
    this.#keys = { getKey: createLocalJWKSet(found.set), text: known }
  }
}
