/** Bearer tokens of an outside issuer: JWTs that are checked with its keys (protocol §4). */
import { Effect } from "effect"
import { errors, type JWTPayload, jwtVerify, type JWTVerifyOptions } from "jose"
import type { Role } from "../../../actors/account/index.ts"
import { verifiedTokensMax } from "../../limits.ts"
import { secretHash } from "../credentials/index.ts"
import { type ClaimNames, evaluateClaims } from "./claims.ts"
import { type Keys, KeySource, type KeysUnavailable } from "./key-source.ts"

export interface IssuerSettings {
  /** `iss` of its tokens, to the letter. */
  readonly issuer: string
  /** One of these is in `aud`. */
  readonly audience: ReadonlyArray<string>
  /** Asymmetric ones only. */
  readonly algorithms: ReadonlyArray<string>
  readonly clockToleranceMs: number
  readonly claims: ClaimNames
}

/** Whom the issuer vouches for. */
export interface IssuedIdentity {
  readonly name: string
  readonly roles: ReadonlyArray<Role>
}

/** The token is not accepted; `why` may be told, since it says nothing but of the token. */
export interface TokenRejected {
  readonly _tag: "TokenRefused"
  readonly why: string
}

const refusal = (why: string): TokenRejected => ({ _tag: "TokenRefused", why })

/** A token in the form of a signed JWT: three parts, the first one of them JSON. */
export const isJwt = (token: string): boolean =>
  token.startsWith("eyJ") && /^[\w-]+\.[\w-]+\.[\w-]*$/.test(token)

/** Kinds of JWT that give access (RFC 8725 §3.11): not logout tokens, nor proofs of keys. */
const accessTypes = new Set(["", "jwt", "at+jwt"])

const isAccess = (typ: unknown): boolean =>
  typ === undefined ||
  (typeof typ === "string" && accessTypes.has(typ.toLowerCase().replace(/^application\//, "")))

/** What is wrong with a token, in words for its bearer. */
const wrongIn = (error: unknown): string => {
  if (error instanceof errors.JWTExpired) return "the token has expired"
  if (error instanceof errors.JWTClaimValidationFailed) {
    if (error.claim === "nbf") return "the token is not valid yet"
    return `the claim ${error.claim} is missing or another than is expected here`
  }
  if (error instanceof errors.JOSEAlgNotAllowed) return "the algorithm is not accepted here"
  if (error instanceof errors.JWSSignatureVerificationFailed) return "the signature is wrong"
  if (error instanceof errors.JWKSNoMatchingKey) return "the issuer has no such key"
  return "the token is malformed or of a kind that is not accepted here"
}

interface Verified {
  readonly vouched: IssuedIdentity
  readonly expiresAtMs: number
}

/** Several keys fit a token that names none: the one that has made the signature is tried for. */
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

/** The issuer whose tokens are accepted. */
export class Issuer {
  readonly #settings: IssuerSettings
  readonly #keys: KeySource
  readonly #nowMs: () => number
  #known = new Map<string, Verified>()
  #before = new Map<string, Verified>()
  /** The keys that these were checked with: a key that is withdrawn takes its tokens with it. */
  #knownBy: Keys | undefined

  /** `load` answers the text of the issuer's JWK Set; fails with what was wrong, for people. */
  constructor(settings: IssuerSettings, load: Effect.Effect<string, string>, nowMs: () => number) {
    this.#settings = settings
    this.#keys = new KeySource(load, nowMs)
    this.#nowMs = nowMs
  }

  /**
   * Whom the token is of. A token that was checked before costs no second check until it expires or
   * the issuer's keys change.
   */
  verify(token: string): Effect.Effect<IssuedIdentity, TokenRejected | KeysUnavailable> {
    const hash = secretHash(token)
    const remembered = this.#remembered(hash)
    return remembered === undefined ? this.#check(token, hash) : Effect.succeed(remembered)
  }

  #remembered(hash: string): IssuedIdentity | undefined {
    const verified = this.#known.get(hash) ?? this.#before.get(hash)
    if (verified === undefined || this.#nowMs() >= verified.expiresAtMs) return undefined
    return this.#keys.now() === this.#knownBy ? verified.vouched : undefined
  }

  #check(
    token: string,
    hash: string
  ): Effect.Effect<IssuedIdentity, TokenRejected | KeysUnavailable> {
    const checkWith = (keys: Keys) =>
      Effect.tryPromise({
        try: () => this.#verified(token, keys),
        catch: (error) => error
      })
    return Effect.flatMap(this.#keys.current, (keys) =>
      checkWith(keys).pipe(
        Effect.catchIf(
          (error) => error instanceof errors.JWKSNoMatchingKey,
          () => Effect.flatMap(this.#keys.renewed, checkWith)
        ),
        Effect.mapError((error) => isKeysAway(error) ? error : refusal(wrongIn(error)))
      )).pipe(Effect.flatMap(({ by, claims, expiresAtMs }) => {
        const judged = evaluateClaims(claims, this.#settings.claims)
        if (judged._tag === "Refused") return Effect.fail(refusal(judged.why))
        const { name, roles } = judged
        const vouched: IssuedIdentity = { name, roles }
        this.#remember(hash, { vouched, expiresAtMs }, by)
        return Effect.succeed(vouched)
      }))
  }

  async #verified(token: string, keys: Keys) {
    const { algorithms, audience, clockToleranceMs, issuer } = this.#settings
    const { payload, typ } = await verifyAmong(token, keys, {
      algorithms: [...algorithms],
      issuer,
      audience: [...audience],
      clockTolerance: clockToleranceMs / 1000,
      currentDate: new Date(this.#nowMs()),
      requiredClaims: ["exp", "sub"]
    })
    if (!isAccess(typ)) throw new errors.JWTInvalid("no access token")
    const expiresAtMs = (payload.exp ?? 0) * 1000 + clockToleranceMs
    return { claims: payload, expiresAtMs, by: keys }
  }

  #remember(hash: string, verified: Verified, by: Keys): void {
    if (by !== this.#knownBy) {
      this.#known = new Map()
      this.#before = new Map()
      this.#knownBy = by
    }
    if (this.#known.size >= verifiedTokensMax / 2) {
      this.#before = this.#known
      this.#known = new Map()
    }
    this.#known.set(hash, verified)
  }
}

const isKeysAway = (error: unknown): error is KeysUnavailable =>
  typeof error === "object" && error !== null && "_tag" in error && error._tag === "KeysAway"
