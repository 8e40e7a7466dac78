/** Input of accounts: a new account, a new token. */
import { Effect } from "effect"
import type { Role, TokenRights } from "../../../actors/account/index.ts"
import { parseDuration } from "../../../actors/mailbox/index.ts"
import { isSlug, parseScopes } from "../../auth/credentials/index.ts"
import { childrenOf, childText, isText, textOf } from "../../formats/xml/index.ts"
import { slugCharsMax, tokenLabelCharsMax, tokenLifetimeMaxMs } from "../../limits.ts"
import { type Call, type HttpError, readInput, type RequestInput,
  unprocessable } from "../../pipeline/index.ts"
import { noReports, roles } from "./account-views.ts"

/** A new account. */
export interface AccountInput {
  readonly name: string
  readonly roles: ReadonlyArray<Role>
  /** Whether a mailbox is opened for its failure reports. */
  readonly hasReports: boolean
}

const isRole = (text: string): text is Role => roles.some((role) => role === text)

/** The new account of a document or form; 422 for an invalid one. */
export const readAccountInput = Effect.fnUntraced(
  function*(call: Call): Effect.fn.Return<AccountInput, HttpError> {
    const input = yield* readInput(call, "account", { form: true })
    const children = input._tag === "Form" ? [] : childrenOf(input.root)
    const textsOf = (field: string): ReadonlyArray<string> =>
      input._tag === "Form"
        ? input.fields.all(field)
        : children.filter(({ name }) => name === field).map((child) => textOf(child).trim())
    const [name, ...others] = textsOf("name")
    if (name === undefined || others.length > 0) {
      return yield* unprocessable("an account has one name")
    }
    if (!isSlug(name)) {
      const detail =
        "a name has lower-case letters, digits and hyphens, no hyphen at the start, and at most " +
        `${slugCharsMax} characters`
      return yield* unprocessable(detail)
    }
    // The form of the page sends an empty role for none.
    const names = textsOf("role").filter((role) => input._tag === "Document" || role !== "")
    if (!names.every(isRole)) return yield* unprocessable(`the roles are ${roles.join(", ")}`)
    const reports = textsOf("failure-reports")
    if (reports.some((text) => text !== "" && text !== noReports)) {
      return yield* unprocessable(
        `failure-reports of a new account, which has no mailbox yet, is ${noReports} for no ` +
          "reports: leave it out for a mailbox of their own, or choose one by PUT of the account"
      )
    }
    return { name, roles: [...new Set(names)], hasReports: !reports.includes(noReports) }
  }
)

/** The name of the mailbox for failure reports in a document or form; undefined for none. */
export const reportsMailboxIn = (input: RequestInput): string | undefined => {
  const text = input._tag === "Form"
    ? input.fields.get("failure-reports")
    : childText(input.root, "failure-reports")
  return text?.trim() || undefined
}

/** A new token. */
export interface TokenInput extends TokenRights {
  readonly label?: string
  readonly expiresAtMs?: number
}

const dateTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/i

/** The expiry in ms: a time (RFC 3339), a duration (ISO 8601), or seconds from now. */
export const parseExpiry = (text: string, nowMs: number): number | undefined => {
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

/** The values of a field, without empty ones. */
type FieldValues = (name: "name" | "expires" | "scope" | "mailbox") => ReadonlyArray<string>

/** The words of the scope; the page has the mailbox in a field of its own. */
const scopeWordsOf = (valuesOf: FieldValues): ReadonlyArray<string> => [
  ...valuesOf("scope").flatMap((value) => value.split(/ +/)),
  ...valuesOf("mailbox").map((name) => `mailbox:${name}`)
]

/** The fields of a document or form. */
const tokenFieldsOf = (input: RequestInput): FieldValues => {
  const trimmed = (texts: ReadonlyArray<string>) =>
    texts.map((text) => text.trim()).filter((text) => text !== "")
  if (input._tag === "Form") return (name) => trimmed(input.fields.all(name))
  const { attributes } = input.root
  return (name) => name === "mailbox" ? [] : trimmed([attributes[name] ?? ""])
}

/** The new token of a document or form, or of an empty body; 422 for an invalid one. */
export const readTokenInput = Effect.fnUntraced(function*(
  call: Call,
  nowMs: number
): Effect.fn.Return<TokenInput, HttpError> {
  const valuesOf = tokenFieldsOf(yield* readInput(call, "token", { form: true, mayBeEmpty: true }))
  const [label, ...otherLabels] = valuesOf("name")
  const [expires, ...otherTimes] = valuesOf("expires")
  if (otherLabels.length > 0 || otherTimes.length > 0) {
    return yield* unprocessable("a token has one name and one time at which it expires")
  }
  if (label !== undefined && !isLabel(label)) {
    return yield* unprocessable(
      `a token's name is one line of at most ${tokenLabelCharsMax} characters`
    )
  }
  const rights = parseScopes(scopeWordsOf(valuesOf))
  if (typeof rights === "string") return yield* unprocessable(rights)
  const named: TokenInput = label === undefined ? rights : { ...rights, label }
  if (expires === undefined) return named
  const expiresAtMs = parseExpiry(expires, nowMs)
  if (expiresAtMs === undefined) {
    return yield* unprocessable(
      "expires is a time such as 2030-01-31T12:00:00Z, a duration such as P30D, or seconds"
    )
  }
  return expiresAtMs > nowMs && expiresAtMs <= nowMs + tokenLifetimeMaxMs
    ? { ...named, expiresAtMs }
    : yield* unprocessable("a token expires in the future, and within ten years")
})
