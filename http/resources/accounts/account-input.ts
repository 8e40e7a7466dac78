/** What requests ask for: an account, a token. */
import { Effect } from "effect"
import type { Role } from "../../../actors/account/index.ts"
import { parseDuration } from "../../../actors/mailbox/index.ts"
import { childrenOf, isText, textOf } from "../../formats/xml/index.ts"
import { slugCharsMax, tokenLabelCharsMax, tokenLifetimeMaxMs } from "../../limits.ts"
import { type Call, type HttpError, httpError, readInput } from "../../pipeline/index.ts"
import { isSlug } from "../../slug.ts"
import { roles } from "./account-views.ts"

/** What an account is to be. */
export interface Wished {
  readonly name: string
  readonly roles: ReadonlyArray<Role>
}

const isRole = (text: string): text is Role => roles.some((role) => role === text)

const checked = (
  names: ReadonlyArray<string>,
  given: ReadonlyArray<string>
): Effect.Effect<Wished, HttpError> => {
  const [name] = names
  if (name === undefined || names.length !== 1) {
    return Effect.fail(httpError("unprocessable", "an account has one name"))
  }
  if (!isSlug(name)) {
    const detail = "a name has small letters, digits and hyphens, no hyphen first, and at most " +
      `${slugCharsMax} characters`
    return Effect.fail(httpError("unprocessable", detail))
  }
  const wished = new Set<Role>()
  for (const role of given) {
    if (!isRole(role)) {
      return Effect.fail(httpError("unprocessable", `the roles are ${roles.join(", ")}`))
    }
    wished.add(role)
  }
  return Effect.succeed({ name, roles: [...wished] })
}

/** The account that is asked for; 422 for one that cannot be. */
export const wishedOf = Effect.fnUntraced(
  function*(call: Call): Effect.fn.Return<Wished, HttpError> {
    const input = yield* readInput(call, "account", { form: true })
    if (input._tag === "Form") {
      const { fields } = input
      return yield* checked(fields.all("name"), fields.all("role").filter((role) => role !== ""))
    }
    const { root } = input
    const unknown = childrenOf(root).find(({ name }) => name !== "name" && name !== "role")
    if (unknown !== undefined) {
      return yield* httpError("unprocessable", `an account has no element ${unknown.name}`)
    }
    const texts = (name: string) => childrenOf(root, name).map((child) => textOf(child).trim())
    return yield* checked(texts("name"), texts("role"))
  }
)

/** What a token is to be. */
export interface WishedToken {
  readonly label?: string
  readonly expiresAtMs?: number
}

const dateTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/i

/** A time (RFC 3339), a duration from now on (ISO 8601), or seconds from now on; in ms. */
const expiryIn = (text: string, nowMs: number): number | undefined => {
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

const checkedToken = (
  names: ReadonlyArray<string>,
  expiries: ReadonlyArray<string>,
  nowMs: number
): Effect.Effect<WishedToken, HttpError> => {
  if (names.length > 1 || expiries.length > 1) {
    return unprocessable("a token has one name and one time at which it expires")
  }
  const [label] = names
  const [expires] = expiries
  if (label !== undefined && !isLabel(label)) {
    return unprocessable(`a token's name is one line of at most ${tokenLabelCharsMax} characters`)
  }
  const named: WishedToken = label === undefined ? {} : { label }
  if (expires === undefined) return Effect.succeed(named)
  const expiresAtMs = expiryIn(expires, nowMs)
  if (expiresAtMs === undefined) {
    return unprocessable(
      "expires is a time such as 2030-01-31T12:00:00Z, a duration such as P30D, or seconds"
    )
  }
  return expiresAtMs > nowMs && expiresAtMs <= nowMs + tokenLifetimeMaxMs
    ? Effect.succeed({ ...named, expiresAtMs })
    : unprocessable("a token expires in the future, and within ten years")
}

/** The token that is asked for: a document, a form, or nothing at all. */
export const wishedTokenOf = Effect.fnUntraced(function*(
  call: Call,
  nowMs: number
): Effect.fn.Return<WishedToken, HttpError> {
  const input = yield* readInput(call, "token", { form: true, mayBeEmpty: true })
  if (input._tag === "Form") {
    const given = (name: string) =>
      input.fields.all(name).map((text) => text.trim()).filter((text) => text !== "")
    return yield* checkedToken(given("name"), given("expires"), nowMs)
  }
  const { attributes, children } = input.root
  const known = (name: string) => name === "name" || name === "expires" || name.startsWith("xmlns")
  const unknown = Object.keys(attributes).find((name) => !known(name))
  if (
    unknown !== undefined || children.some((child) => typeof child !== "string" || /\S/.test(child))
  ) {
    // A misspelt `expires` would be a token that never does.
    return yield* httpError(
      "unprocessable",
      "a token has the attributes name and expires, and no more"
    )
  }
  const given = (name: string) => {
    const value = attributes[name]?.trim() ?? ""
    return value === "" ? [] : [value]
  }
  return yield* checkedToken(given("name"), given("expires"), nowMs)
})
