/** What the claims of a token that was found genuine say of its bearer. Pure. */
import { Role } from "../../../actors/account/index.ts"
import { claimedRolesMax } from "../../limits.ts"
import { isSlug } from "../../slug.ts"

/** Which claims are read. */
export interface ClaimNames {
  /** Of the account's name; `sub` by protocol §4. */
  readonly account: string
  /** Of its roles: an array of names, or names separated by spaces or commas. */
  readonly roles: string
  /** What the issuer's names of roles begin with; other roles mean nothing here. */
  readonly rolesPrefix: string
}

export type ClaimsResult =
  | { readonly _tag: "Vouched"; readonly name: string; readonly roles: ReadonlyArray<Role> }
  | { readonly _tag: "Refused"; readonly why: string }

const refused = (why: string): ClaimsResult => ({ _tag: "Refused", why })

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/**
 * The claim at a path such as `realm_access.roles`. A name may have dots of its own, as
 * `https://example.org/roles` and `kubernetes.io` do: the shortest names that lead somewhere count.
 */
export const claimAt = (claims: unknown, path: string): unknown => {
  if (!isObject(claims)) return undefined
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

/** The account and its roles, or why the token leads to none. */
export const evaluateClaims = (
  claims: Readonly<Record<string, unknown>>,
  names: ClaimNames
): ClaimsResult => {
  // RFC 9449 §7.1, RFC 8705 §3: the proof that such a token asks for is not looked at here.
  if (claims["cnf"] !== undefined) return refused("the token is bound to a key of its bearer")
  const name = claimAt(claims, names.account)
  if (name === undefined) return refused(`the token has no claim ${names.account}`)
  if (typeof name !== "string" || !isSlug(name)) {
    return refused(
      `the claim ${names.account} is no name of an account: small letters, digits and hyphens`
    )
  }
  return { _tag: "Vouched", name, roles: rolesIn(claimAt(claims, names.roles), names.rolesPrefix) }
}
