/**
 * The credentials in a request, and the identifiers and secrets that the service creates: 128 or
 * more random bits in base64url. None begins with `-`, since a command line would read it as a
 * flag: the service then draws another one. The service stores only the SHA-256 of a secret, and
 * compares hashes in constant time (`actors/secret-hash.ts`).
 */
import { createHmac, hash, randomFillSync } from "node:crypto"
import type { TokenRights } from "../../../actors/account/index.ts"
import { sha256 } from "../../../actors/index.ts"
import { slugCharsMax } from "../../limits.ts"
import type { HttpRequest } from "../../wire/index.ts"
import type { SessionCookie } from "./session-cookie.ts"

/** The credentials of a request, not yet checked. */
export type Identity =
  | { readonly _tag: "Anonymous" }
  | { readonly _tag: "Browser"; readonly session: SessionCookie; readonly known?: SignedIn }
  | { readonly _tag: "Basic"; readonly user: string; readonly password: string }
  | { readonly _tag: "Bearer"; readonly token: string }
  /** Authorization names a known scheme, and has no credentials of it. */
  | { readonly _tag: "Unreadable"; readonly scheme: "Basic" | "Bearer" }

const anonymous: Identity = { _tag: "Anonymous" }

const credentials = /^(basic|bearer)[ ]+([A-Za-z0-9\-._~+/]+=*)$/i

/** The scheme ends where no character of a token follows (RFC 9110, section 5.6.2). */
const knownScheme = /^(?:basic|(bearer))(?![\w!#$%&'*+.^`|~-])/i

/** The identity of a field without credentials that can be read. */
const malformedIdentity = (field: string): Identity => {
  const [known, bearer] = knownScheme.exec(field) ?? []
  if (known === undefined) return anonymous
  return { _tag: "Unreadable", scheme: bearer === undefined ? "Basic" : "Bearer" }
}

/**
 * Reads the Authorization field (RFC 7617, RFC 6750); another scheme is anonymous. `Bearer` without
 * a token, and Basic without one, are not: they come from programs whose variable is not set.
 */
export const identityOf = (request: HttpRequest): Identity => {
  const field = request.headers.get("authorization")
  if (field === undefined) return anonymous
  const [, scheme = "", text = ""] = credentials.exec(field.trim()) ?? []
  if (scheme.toLowerCase() === "bearer") return { _tag: "Bearer", token: text }
  if (scheme === "") return malformedIdentity(field.trim())
  const pair = Buffer.from(text, "base64").toString("utf8")
  const colon = pair.indexOf(":")
  // A token or password is never empty.
  return colon < 0 || colon === pair.length - 1
    ? { _tag: "Unreadable", scheme: "Basic" }
    : { _tag: "Basic", user: pair.slice(0, colon), password: pair.slice(colon + 1) }
}

/** An account whose browser is signed in. */
export interface SignedIn {
  readonly name: string
  readonly roles: ReadonlyArray<string>
  /** The rights and the id of the token that it was signed in with. */
  readonly rights: TokenRights
  readonly tokenId: string
  /** When this token expires; undefined if it does not. */
  readonly expiresAtMs?: number
}

/** 128 bits. */
const idBytes = 16

/** 256 bits. */
const secretBytes = 32

/** Enough for a thousand ids. */
const poolBytes = 16_384

/** Random bytes, drawn in blocks: a call for each id would cost more. */
const pool = { bytes: Buffer.alloc(poolBytes), used: poolBytes }

const random = (count: number): string => {
  const { bytes } = pool
  if (pool.used + count > bytes.length) {
    randomFillSync(bytes)
    pool.used = 0
  }
  const end = pool.used + count
  const text = bytes.toString("base64url", pool.used, end)
  bytes.fill(0, pool.used, end)
  pool.used = end
  return text.startsWith("-") ? random(count) : text
}

/** A new identifier: 128 random bits as 22 characters. */
export const randomId = (): string => random(idBytes)

/** Whether a text has the form of an id that the service creates: 128 bits or more. */
export const isRandomId = (text: string): boolean => /^[A-Za-z0-9_-]{16,64}$/.test(text)

/** The stored form of a password, a token or the secret of a URI: its {@link sha256}. */
export const secretHash = (secret: string): string => sha256(secret)

/** 128 bits of the SHA-256 of a document, base64url: recognizes a repeated deposit. */
export const documentDigest = (bytes: Uint8Array): string =>
  hash("sha256", bytes, "base64url").slice(0, 22)

/**
 * Draws the identifiers and secrets of one request. A request with an Idempotency-Key draws the
 * same again when it is repeated, so that it finds what an interrupted attempt created.
 */
export interface IdSource {
  /** Whether the ids are random. If so, nothing with these ids exists yet. */
  readonly isRandom: boolean
  /** 128 bits, different for each name. */
  readonly id: (name: string) => string
  /** 256 bits, different for each name. */
  readonly secret: (name: string) => string
}

export const randomIds: IdSource = {
  isRandom: true,
  id: () => random(idBytes),
  secret: () => random(secretBytes)
}

/** The name of the account of the operator, whose token (`ADMIN_TOKEN`) a person may choose. */
export const operatorAccount = "admin"

/** Tells people and scanners of secrets what a drawn token is. */
export const tokenPrefix = "rst_"

/** A new token of an account. */
export const makeToken = (ids: IdSource): string => tokenPrefix + ids.secret("token")

/** Ids derived from the service's key and a scope that contains the client's secret key. */
export const derivedIds = (serviceKey: string, scope: string): IdSource => {
  const derive = (name: string, count: number): string => {
    const mac = createHmac("sha256", serviceKey).update(`${scope}\n${name}`).digest()
    const text = mac.toString("base64url", 0, count)
    return text.startsWith("-") ? derive(`${name}\nagain`, count) : text
  }
  return {
    isRandom: false,
    id: (name) => derive(name, idBytes),
    secret: (name) => derive(name, secretBytes)
  }
}

/** `[a-z0-9][a-z0-9-]*`, at most 64 characters: names of accounts and mailboxes. */
export const isSlug = (text: string): boolean =>
  text.length <= slugCharsMax && /^[a-z0-9][a-z0-9-]*$/.test(text)
