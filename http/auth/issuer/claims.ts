/** The account and roles in the claims of a verified token. Pure. */
import { Predicate } from "effect"
import { Role, type TokenRights } from "../../../actors/account/index.ts"
import { claimedRolesMax } from "../../limits.ts"
import { isSlug, rightsIn } from "../credentials/index.ts"

/** The claim with the scopes of a token (RFC 8693 §4.2, RFC 9068 §2.2.3). */
const scopeClaim = "scope"

/** Which claims of a token the service reads. */
export interface ClaimNames {
  /** The claim with the account's name; the default is `sub` (protocol §4). */
  readonly account: string
  /** The claim with the account's roles: an array, or names separated by spaces or commas. */
  readonly roles: string
  /** The prefix of the roles and scopes that are for this service; it ignores others. */
  readonly rolesPrefix: string
  /** Whether a token without a scope for this service has no right; else it has all. */
  readonly isScopeRequired: boolean
}

/** The account that a token of the issuer names. */
export interface IssuedIdentity {
  readonly name: string
  readonly roles: ReadonlyArray<Role>
  readonly rights: TokenRights
}

/**
 * The claim at a path such as `realm_access.roles`. A name may contain dots, as
 * `https://example.org/roles` and `kubernetes.io` do: the shortest names that exist are used.
 */
export const claimAt = (claims: unknown, path: string): unknown => {
  if (!Predicate.isObject(claims)) return undefined
  if (Object.hasOwn(claims, path)) return claims[path]
  for (let dot = path.indexOf("."); dot > 0; dot = path.indexOf(".", dot + 1)) {
    const name = path.slice(0, dot)
    if (!Object.hasOwn(claims, name)) continue
    const found = claimAt(claims[name], path.slice(dot + 1))
    if (found !== undefined) return found
  }
  return undefined
}

const namesIn = (claim: unknown): ReadonlyArray<unknown> =>
  typeof claim === "string" ? claim.split(/[ ,]+/) : Array.isArray(claim) ? claim : []

/** The roles of this service among those that the claim names. */
const rolesIn = (claim: unknown, prefix: string): ReadonlyArray<Role> => {
  const named = new Set(namesIn(claim).slice(0, claimedRolesMax))
  return Role.literals.filter((role) => named.has(prefix + role))
}

/** The rights that the claim `scope` gives. Where it has the roles, its words limit nothing. */
const rightsOf = (
  claims: Readonly<Record<string, unknown>>,
  { isScopeRequired, roles, rolesPrefix }: ClaimNames
): TokenRights => {
  const rights = roles === scopeClaim ? {} : rightsIn(claims[scopeClaim], rolesPrefix)
  const hasWord = rights.scopes !== undefined || rights.mailbox !== undefined
  return isScopeRequired && !hasWord ? { scopes: [] } : rights
}

/** The account and its roles, or the reason why the token is rejected. */
export const evaluateClaims = (
  claims: Readonly<Record<string, unknown>>,
  names: ClaimNames
): IssuedIdentity | string => {
  // RFC 9449 §7.1, RFC 8705 §3: this service cannot check the proof that such a token needs.
  if (claims["cnf"] !== undefined) return "the token is bound to a key of its bearer"
  // RFC 9396 §9: they limit the token, in words that this service does not know.
  if (claims["authorization_details"] !== undefined) {
    return "the token has authorization_details, which this service does not know: use scope"
  }
  const name = claimAt(claims, names.account)
  if (name === undefined) return `the token has no claim ${names.account}`
  if (typeof name !== "string" || !isSlug(name)) {
    return `the claim ${names.account} is not an account name: use a-z, 0-9 and hyphens, 64 at most`
  }
  return {
    name,
    roles: rolesIn(claimAt(claims, names.roles), names.rolesPrefix),
    rights: rightsOf(claims, names)
  }
}
