/** Input of accounts: a new account, a new token. */
import { Effect } from "effect"
import type { Role } from "../../../actors/account/index.ts"
import { parseDuration } from "../../../actors/mailbox/index.ts"
import { childrenOf, isText, textOf } from "../../formats/xml/index.ts"
import { slugCharsMax, tokenLabelCharsMax, tokenLifetimeMaxMs } from "../../limits.ts"
import { type Call, type HttpError, httpError, readInput } from "../../pipeline/index.ts"
import { isSlug } from "../../slug.ts"
import { roles } from "./account-views.ts"

/** A new account. */
export interface AccountInput {
  readonly name: string
  readonly roles: ReadonlyArray<Role>
}

const isRole = (text: string): text is Role => roles.some((role) => role === text)

const checkAccount = (
  names: ReadonlyArray<string>,
  roleNames: ReadonlyArray<string>
): Effect.Effect<AccountInput, HttpError> => {
  const [name] = names
  if (name === undefined || names.length !== 1) {
    return Effect.fail(httpError("unprocessable", "an account has one name"))
  }
  if (!isSlug(name)) {
    const detail = "a name has small letters, digits and hyphens, no hyphen first, and at most " +
      `${slugCharsMax} characters`
    return Effect.fail(httpError("unprocessable", detail))
  }
  const chosen = new Set<Role>()
  for (const role of roleNames) {
    if (!isRole(role)) {
      return Effect.fail(httpError("unprocessable", `the roles are ${roles.join(", ")}`))
    }
    chosen.add(role)
  }
  return Effect.succeed({ name, roles: [...chosen] })
}

/** The new account of a document or form; 422 for an invalid one. */
export const readAccountInput = Effect.fnUntraced(
  function*(call: Call): Effect.fn.Return<AccountInput, HttpError> {
    const input = yield* readInput(call, "account", { form: true })
    if (input._tag === "Form") {
      const { fields } = input
      return yield* checkAccount(
        fields.all("name"),
        fields.all("role").filter((role) => role !== "")
      )
    }
    const { root } = input
    const unknown = childrenOf(root).find(({ name }) => name !== "name" && name !== "role")
    if (unknown !== undefined) {
      return yield* httpError("unprocessable", `an account has no element ${unknown.name}`)
    }
    const texts = (name: string) => childrenOf(root, name).map((child) => textOf(child).trim())
    return yield* checkAccount(texts("name"), texts("role"))
  }
)

/** A new token. */
export interface TokenInput {
  readonly label?: string
  readonly expiresAtMs?: number
}

const dateTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/i

/** The expiry in ms: a time (RFC 3339), a duration (ISO 8601), or seconds from now on. */
const parseExpiry = (text: string, nowMs: number): number | undefined => {
  if (/^\d{1,12}$/.test(text)) return nowMs + Number(text) * 1000
  if (text.startsWith("P")) {
    const lifetimeMs = parseDuration(text)
    return lifetimeMs === undefined ? undefined : nowMs + lifetimeMs
  }
  const atMs = dateTime.test(text) ? Date.parse(text.toUpperCase()) : Number.NaN
  return Number.isNaN(atMs) ? undefined : atMs
}

const isLabel = (text: string): boolean =>
  text.length <= tokenLabelCharsMax && isText(text) && !/\p{Cc}/u.test(text)

const unprocessable = (detail: string): Effect.Effect<never, HttpError> =>
  Effect.fail(httpError("unprocessable", detail))

const checkToken = (
  names: ReadonlyArray<string>,
  expiries: ReadonlyArray<string>,
  nowMs: number
): Effect.Effect<TokenInput, HttpError> => {
  if (names.length > 1 || expiries.length > 1) {
    return unprocessable("a token has one name and one time at which it expires")
  }
  const [label] = names
  const [expires] = expiries
  if (label !== undefined && !isLabel(label)) {
    return unprocessable(`a token's name is one line of at most ${tokenLabelCharsMax} characters`)
  }
  const named: TokenInput = label === undefined ? {} : { label }
  if (expires === undefined) return Effect.succeed(named)
  const expiresAtMs = parseExpiry(expires, nowMs)
  if (expiresAtMs === undefined) {
    return unprocessable(
      "expires is a time such as 2030-01-31T12:00:00Z, a duration such as P30D, or seconds"
    )
  }
  return expiresAtMs > nowMs && expiresAtMs <= nowMs + tokenLifetimeMaxMs
    ? Effect.succeed({ ...named, expiresAtMs })
    : unprocessable("a token expires in the future, and within ten years")
}

/** The new token of a document or form, or of an empty body. */
export const readTokenInput = Effect.fnUntraced(function*(
  call: Call,
  nowMs: number
): Effect.fn.Return<TokenInput, HttpError> {
  const input = yield* readInput(call, "token", { form: true, mayBeEmpty: true })
  if (input._tag === "Form") {
    const valuesOf = (name: string) =>
      input.fields.all(name).map((text) => text.trim()).filter((text) => text !== "")
    return yield* checkToken(valuesOf("name"), valuesOf("expires"), nowMs)
  }
  const { attributes, children } = input.root
  const isKnown = (name: string) =>
    name === "name" || name === "expires" || name.startsWith("xmlns")
  const unknown = Object.keys(attributes).find((name) => !isKnown(name))
  if (
    unknown !== undefined || children.some((child) => typeof child !== "string" || /\S/.test(child))
  ) {
    // A misspelled `expires` would make a token that never expires.
    return yield* httpError(
      "unprocessable",
      "a token has the attributes name and expires only"
    )
  }
  const valuesOf = (name: string) => {
    const value = attributes[name]?.trim() ?? ""
    return value === "" ? [] : [value]
  }
  return yield* checkToken(valuesOf("name"), valuesOf("expires"), nowMs)
})
