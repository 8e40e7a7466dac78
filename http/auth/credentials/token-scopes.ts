/**
 * Scopes of tokens (protocol §7): the part of its account's rights that a token has. The syntax is
 * that of RFC 6749 §3.3. Pure.
 */
import { type TokenRights, TokenScope } from "../../../actors/account/index.ts"
import { claimedRolesMax } from "../../limits.ts"
import { isSlug } from "./credentials.ts"

const prefix = "mailbox:"

const isScope = (word: string): word is TokenScope =>
  TokenScope.literals.some((scope) => scope === word)

/** The words of a token's rights; none for a token with all rights of its account. */
export const scopeWords = ({ mailbox, scopes = [] }: TokenRights): ReadonlyArray<string> =>
  mailbox === undefined ? scopes : [...scopes, prefix + mailbox]

/** The rights that the words name, or what is wrong with them. */
export const parseScopes = (words: ReadonlyArray<string>): TokenRights | string => {
  const scopes = TokenScope.literals.filter((scope) => words.includes(scope))
  const [mailbox, another] = new Set(words.filter((word) => word.startsWith(prefix)))
  if (another !== undefined) return "a token may name one mailbox in its scope"
  const unknown = words.find((word) => !isScope(word) && word !== mailbox)
  if (unknown !== undefined) {
    return `the scope ${unknown} is unknown: use ${TokenScope.literals.join(", ")}, and ` +
      `${prefix}NAME for one mailbox`
  }
  const name = mailbox?.slice(prefix.length)
  if (name !== undefined && !isSlug(name)) {
    return `the scope ${mailbox} names no mailbox: write ${prefix} and its name`
  }
  return {
    ...scopes.length === 0 ? {} : { scopes },
    ...name === undefined ? {} : { mailbox: name }
  }
}

/** Whether a token of the rights `held` may create one of the rights `asked`. */
export const areWithin = (asked: TokenRights, held: TokenRights): boolean => {
  const { scopes } = held
  const isScopeHeld = scopes === undefined ||
    asked.scopes?.every((scope) => scopes.includes(scope)) === true
  return isScopeHeld && (held.mailbox === undefined || held.mailbox === asked.mailbox)
}

/**
 * The rights in the claim `scope` of an issuer's token (RFC 8693 §4.2). It may have words for other
 * services, which are ignored; without a word for this one, the token has all rights.
 */
export const rightsIn = (claim: unknown, wordPrefix: string): TokenRights => {
  const words = typeof claim === "string" ? claim.split(" ").slice(0, claimedRolesMax) : []
  const own = words.filter((word) => word.startsWith(wordPrefix))
    .map((word) => word.slice(wordPrefix.length))
    .filter((word) => isScope(word) || word.startsWith(prefix))
  const rights = parseScopes(own)
  // What names two mailboxes, or none, gives no right.
  return typeof rights === "string" ? { scopes: [] } : rights
}
