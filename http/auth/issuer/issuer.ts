/** Bearer tokens of an external issuer: JWTs that the issuer's keys sign (protocol §4). */
import { Data, Effect } from "effect"
import { errors, type JWTPayload, jwtVerify, type JWTVerifyOptions } from "jose"
import { LRUCache } from "lru-cache"
import type { Clocks } from "../../../runtime/index.ts"
import { verifiedTokensMax } from "../../limits.ts"
import { secretHash } from "../credentials/index.ts"
import { type ClaimNames, evaluateClaims, type IssuedIdentity } from "./claims.ts"
import { type Keys, KeySource, KeysUnavailable } from "./key-source.ts"

export interface IssuerSettings {
  /** A token's `iss` must be exactly this text. */
  readonly issuer: string
  /** A token's `aud` must contain at least one of these. */
  readonly audience: ReadonlyArray<string>
  /** The signature algorithms that the service accepts; all are asymmetric. */
  readonly algorithms: ReadonlyArray<string>
  /** How far the issuer's clock may differ from this node's. */
  readonly clockToleranceMs: number
  /** Whether a token's `typ` must be `at+jwt` (RFC 9068 §2.1). */
  readonly isTypeRequired: boolean
  readonly claims: ClaimNames
}

/** The service rejects the token. The client may see `why`, which describes only the token. */
export class TokenRejected extends Data.TaggedError("TokenRejected")<{ readonly why: string }> {}

/** Whether a token has the form of a signed JWT: three parts, the first of them JSON. */
export const isJwt = (token: string): boolean =>
  token.startsWith("eyJ") && /^[\w-]+\.[\w-]+\.[\w-]*$/.test(token)

/**
 * The `typ` of an access token (RFC 8725 §3.11), in lower case and without `application/`. Logout
 * tokens and proofs of possession have other types.
 */
const accessTokenTypes = new Set(["", "jwt", "at+jwt"])

/** The only accepted `typ` if `isTypeRequired`: the type of access tokens (RFC 9068 §2.1). */
const strictTokenTypes = new Set(["at+jwt"])

const isAccessToken = (typ: unknown, isTypeRequired: boolean): boolean => {
  if (typ === undefined) return !isTypeRequired
  const types = isTypeRequired ? strictTokenTypes : accessTokenTypes
  return typeof typ === "string" && types.has(typ.toLowerCase().replace(/^application\//, ""))
}

/** Why the token is rejected, as text for the client. */
const rejectionReason = (error: unknown): string => {
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

/**
 * Verifies the token's signature and the claims in `options`. If the token names no key and
 * several keys match, each of them is tried.
 */
const verifyJwt = async (
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

/** The external issuer whose tokens the service accepts. */
export class Issuer {
  private readonly settings: IssuerSettings
  private readonly keys: KeySource
  private readonly nowMs: () => number
  /** Verified tokens by their hash. */
  private readonly verified = new LRUCache<string, VerifiedToken>({ max: verifiedTokensMax })
  /**
   * The keys that verified the cached tokens. When the keys change, the cache is void: the issuer
   * may have withdrawn the key of a cached token.
   */
  private verifiedWith: Keys | undefined

  /** `load` returns the text of the issuer's JWK Set; it fails with the reason as text. */
  constructor(
    settings: IssuerSettings,
    load: Effect.Effect<string, string>,
    { monotonicMs, nowMs }: Clocks
  ) {
    this.settings = settings
    this.keys = new KeySource(load, monotonicMs)
    this.nowMs = nowMs
  }

  /**
   * Returns the identity that the token names. A verified token stays cached until it expires or
   * the keys change.
   */
  readonly verify = Effect.fnUntraced({ self: this }, function*(
    this: Issuer,
    token: string
  ): Effect.fn.Return<IssuedIdentity, TokenRejected | KeysUnavailable> {
    const hash = secretHash(token)
    const cached = this.cached(hash)
    if (cached !== undefined) return cached
    const verify = (keys: Keys) =>
      Effect.tryPromise({ try: () => this.verifyWith(keys, token), catch: (error) => error })
    const { claims, expiresAtMs, keys } = yield* Effect.flatMap(this.keys.current, verify).pipe(
      Effect.catchIf(
        (error) => error instanceof errors.JWKSNoMatchingKey,
        () => Effect.flatMap(this.keys.renewed, verify)
      ),
      Effect.mapError((error) =>
        error instanceof KeysUnavailable
          ? error
          : new TokenRejected({ why: rejectionReason(error) })
      )
    )
    const identity = evaluateClaims(claims, this.settings.claims)
    if (typeof identity === "string") return yield* new TokenRejected({ why: identity })
    if (keys !== this.verifiedWith) {
      this.verified.clear()
      this.verifiedWith = keys
    }
    this.verified.set(hash, { identity, expiresAtMs })
    return identity
  })

  private cached(hash: string): IssuedIdentity | undefined {
    const verified = this.verified.get(hash)
    if (verified === undefined || this.nowMs() >= verified.expiresAtMs) return undefined
    return this.keys.cached() === this.verifiedWith ? verified.identity : undefined
  }

  private async verifyWith(keys: Keys, token: string) {
    const { algorithms, audience, clockToleranceMs, isTypeRequired, issuer } = this.settings
    const { payload, typ } = await verifyJwt(token, keys, {
      algorithms: [...algorithms],
      issuer,
      audience: [...audience],
      clockTolerance: clockToleranceMs / 1000,
      currentDate: new Date(this.nowMs()),
      requiredClaims: ["exp", "sub"]
    })
    if (!isAccessToken(typ, isTypeRequired)) throw new errors.JWTInvalid("not an access token")
    const expiresAtMs = (payload.exp ?? 0) * 1000 + clockToleranceMs
    return { claims: payload, expiresAtMs, keys }
  }
}
