/** Bearer tokens of an external issuer: JWTs that its keys verify (protocol §4). */
import { Effect } from "effect"
import { errors, type JWTPayload, jwtVerify, type JWTVerifyOptions } from "jose"
import { LRUCache } from "lru-cache"
import type { Role } from "../../../actors/account/index.ts"
import { verifiedTokensMax } from "../../limits.ts"
import { secretHash } from "../credentials/index.ts"
import { type ClaimNames, evaluateClaims } from "./claims.ts"
import { type Keys, KeySource, type KeysUnavailable } from "./key-source.ts"

export interface IssuerSettings {
  /** The exact `iss` of its tokens. */
  readonly issuer: string
  /** `aud` must contain one of these. */
  readonly audience: ReadonlyArray<string>
  /** Only asymmetric ones. */
  readonly algorithms: ReadonlyArray<string>
  readonly clockToleranceMs: number
  readonly claims: ClaimNames
}

/** The account that a token of the issuer names. */
export interface IssuedIdentity {
  readonly name: string
  readonly roles: ReadonlyArray<Role>
}

/** The token is rejected; the client may see the reason, which is only about the token. */
export interface TokenRejected {
  readonly _tag: "TokenRejected"
  readonly why: string
}

const rejection = (why: string): TokenRejected => ({ _tag: "TokenRejected", why })

/** Whether a token has the form of a signed JWT: three parts, the first of them JSON. */
export const isJwt = (token: string): boolean =>
  token.startsWith("eyJ") && /^[\w-]+\.[\w-]+\.[\w-]*$/.test(token)

/** Types of access tokens (RFC 8725 §3.11); logout tokens and proofs of keys are none. */
const accessTypes = new Set(["", "jwt", "at+jwt"])

const isAccess = (typ: unknown): boolean =>
  typ === undefined ||
  (typeof typ === "string" && accessTypes.has(typ.toLowerCase().replace(/^application\//, "")))

/** The reason for the client. */
const reasonOf = (error: unknown): string => {
  if (error instanceof errors.JWTExpired) return "the token has expired"
  if (error instanceof errors.JWTClaimValidationFailed) {
    if (error.claim === "nbf") return "the token is not valid yet"
    return `the claim ${error.claim} is missing or has an unexpected value`
  }
  if (error instanceof errors.JOSEAlgNotAllowed) return "the algorithm is not accepted"
  if (error instanceof errors.JWSSignatureVerificationFailed) return "the signature is wrong"
  if (error instanceof errors.JWKSNoMatchingKey) return "the issuer has no such key"
  return "the token is malformed or of an unaccepted type"
}

interface VerifiedToken {
  readonly identity: IssuedIdentity
  readonly expiresAtMs: number
}

/** Verifies a token; if it names no key and several match, each of them is tried. */
const verifyAmong = async (
  token: string,
  keys: Keys,
  options: JWTVerifyOptions
): Promise<{ readonly payload: JWTPayload; readonly typ: unknown }> => {
  try {
    const { payload, protectedHeader } = await jwtVerify(token, keys.getKey, options)
    return { payload, typ: protectedHeader.typ }
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error
    for await (const key of error) {
      try {
        const { payload, protectedHeader } = await jwtVerify(token, key, options)
        return { payload, typ: protectedHeader.typ }
      } catch (inner) {
        if (!(inner instanceof errors.JWSSignatureVerificationFailed)) throw inner
      }
    }
    throw new errors.JWSSignatureVerificationFailed()
  }
}

/** The issuer whose tokens the service accepts. */
export class Issuer {
  readonly #settings: IssuerSettings
  readonly #keys: KeySource
  readonly #nowMs: () => number
  readonly #verified = new LRUCache<string, VerifiedToken>({ max: verifiedTokensMax })
  /** The keys that verified these tokens: withdrawing a key invalidates its tokens. */
  #verifiedBy: Keys | undefined

  /** `load` returns the text of the issuer's JWK Set; it fails with the reason as text. */
  constructor(settings: IssuerSettings, load: Effect.Effect<string, string>, nowMs: () => number) {
    this.#settings = settings
    this.#keys = new KeySource(load, nowMs)
    this.#nowMs = nowMs
  }

  /** The identity of a token. A verified token is cached until it expires or the keys change. */
  verify(token: string): Effect.Effect<IssuedIdentity, TokenRejected | KeysUnavailable> {
    const hash = secretHash(token)
    const cached = this.#cached(hash)
    return cached === undefined ? this.#check(token, hash) : Effect.succeed(cached)
  }

  #cached(hash: string): IssuedIdentity | undefined {
    const verified = this.#verified.get(hash)
    if (verified === undefined || this.#nowMs() >= verified.expiresAtMs) return undefined
    return this.#keys.cached() === this.#verifiedBy ? verified.identity : undefined
  }

  #check(
    token: string,
    hash: string
  ): Effect.Effect<IssuedIdentity, TokenRejected | KeysUnavailable> {
    const checkWith = (keys: Keys) =>
      Effect.tryPromise({
        try: () => this.#verify(token, keys),
        catch: (error) => error
      })
    return Effect.flatMap(this.#keys.current, (keys) =>
      checkWith(keys).pipe(
        Effect.catchIf(
          (error) => error instanceof errors.JWKSNoMatchingKey,
          () => Effect.flatMap(this.#keys.renewed, checkWith)
        ),
        Effect.mapError((error) => areKeysUnavailable(error) ? error : rejection(reasonOf(error)))
      )).pipe(Effect.flatMap(({ by, claims, expiresAtMs }) => {
        const result = evaluateClaims(claims, this.#settings.claims)
        if (result._tag === "Rejected") return Effect.fail(rejection(result.why))
        const identity: IssuedIdentity = { name: result.name, roles: result.roles }
        this.#cache(hash, { identity, expiresAtMs }, by)
        return Effect.succeed(identity)
      }))
  }

  async #verify(token: string, keys: Keys) {
    const { algorithms, audience, clockToleranceMs, issuer } = this.#settings
    const { payload, typ } = await verifyAmong(token, keys, {
      algorithms: [...algorithms],
      issuer,
      audience: [...audience],
      clockTolerance: clockToleranceMs / 1000,
      currentDate: new Date(this.#nowMs()),
      requiredClaims: ["exp", "sub"]
    })
    if (!isAccess(typ)) throw new errors.JWTInvalid("not an access token")
    const expiresAtMs = (payload.exp ?? 0) * 1000 + clockToleranceMs
    return { claims: payload, expiresAtMs, by: keys }
  }

  #cache(hash: string, verified: VerifiedToken, by: Keys): void {
    if (by !== this.#verifiedBy) {
      this.#verified.clear()
      this.#verifiedBy = by
    }
    this.#verified.set(hash, verified)
  }
}

const areKeysUnavailable = (error: unknown): error is KeysUnavailable =>
  typeof error === "object" && error !== null && "_tag" in error && error._tag === "KeysUnavailable"
