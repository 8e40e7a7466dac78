/** Bearer tokens of an external issuer: JWTs that its keys verify (protocol §4). */
import { Data, Effect } from "effect"
import { errors, type JWTPayload, jwtVerify, type JWTVerifyOptions } from "jose"
import { LRUCache } from "lru-cache"
import type { Clocks } from "../../../runtime/index.ts"
import { verifiedTokensMax } from "../../limits.ts"
import { secretHash } from "../credentials/index.ts"
import { type ClaimNames, evaluateClaims, type IssuedIdentity } from "./claims.ts"
import { type Keys, KeySource, KeysUnavailable } from "./key-source.ts"

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

/** The token is rejected; the client may see the reason, which is only about the token. */
export class TokenRejected extends Data.TaggedError("TokenRejected")<{ readonly why: string }> {}

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
  private readonly settings: IssuerSettings
  private readonly keys: KeySource
  private readonly nowMs: () => number
  private readonly verified = new LRUCache<string, VerifiedToken>({ max: verifiedTokensMax })
  /** The keys that verified these tokens: withdrawing a key invalidates its tokens. */
  private verifiedBy: Keys | undefined

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

  /** The identity of a token. A verified token is cached until it expires or the keys change. */
  readonly verify = Effect.fnUntraced({ self: this }, function*(
    this: Issuer,
    token: string
  ): Effect.fn.Return<IssuedIdentity, TokenRejected | KeysUnavailable> {
    const hash = secretHash(token)
    const cached = this.cached(hash)
    if (cached !== undefined) return cached
    const verifyWith = (keys: Keys) =>
      Effect.tryPromise({ try: () => this.verifyWith(token, keys), catch: (error) => error })
    const { by, claims, expiresAtMs } = yield* Effect.flatMap(this.keys.current, verifyWith).pipe(
      Effect.catchIf(
        (error) => error instanceof errors.JWKSNoMatchingKey,
        () => Effect.flatMap(this.keys.renewed, verifyWith)
      ),
      Effect.mapError((error) =>
        error instanceof KeysUnavailable ? error : new TokenRejected({ why: reasonOf(error) })
      )
    )
    const identity = evaluateClaims(claims, this.settings.claims)
    if (typeof identity === "string") return yield* new TokenRejected({ why: identity })
    if (by !== this.verifiedBy) {
      this.verified.clear()
      this.verifiedBy = by
    }
    this.verified.set(hash, { identity, expiresAtMs })
    return identity
  })

  private cached(hash: string): IssuedIdentity | undefined {
    const verified = this.verified.get(hash)
    if (verified === undefined || this.nowMs() >= verified.expiresAtMs) return undefined
    return this.keys.cached() === this.verifiedBy ? verified.identity : undefined
  }

  private async verifyWith(token: string, keys: Keys) {
    const { algorithms, audience, clockToleranceMs, issuer } = this.settings
    const { payload, typ } = await verifyAmong(token, keys, {
      algorithms: [...algorithms],
      issuer,
      audience: [...audience],
      clockTolerance: clockToleranceMs / 1000,
      currentDate: new Date(this.nowMs()),
      requiredClaims: ["exp", "sub"]
    })
    if (!isAccess(typ)) throw new errors.JWTInvalid("not an access token")
    const expiresAtMs = (payload.exp ?? 0) * 1000 + clockToleranceMs
    return { claims: payload, expiresAtMs, by: keys }
  }
}
