/**
 * The cookie of a browser that is signed in (RFC 6265): the account, the id of its session and a
 * secret. With TLS its name has the prefix `__Host-`: no other host of the same site can set it.
 */
import { browserSessionLifetimeMs, sha256 } from "../../../actors/index.ts"
import type { HttpRequest } from "../../wire/index.ts"

/** The cookie of a request, not yet checked. */
export interface SessionCookie {
  readonly account: string
  readonly sessionId: string
  readonly sessionHash: string
}

const isSecure = (baseUrl: string): boolean => baseUrl.startsWith("https:")

const plainName = "restante-session"

const secureName = `__Host-${plainName}`

const nameFor = (baseUrl: string): string => isSecure(baseUrl) ? secureName : plainName

const valuePattern = /^([a-z0-9][a-z0-9-]{0,63})\.([A-Za-z0-9_-]{22})\.([A-Za-z0-9_-]{43})$/

/** The value of the cookie in a Cookie field. Two of this name are none: another host set one. */
const valueIn = (field: string, name: string): string | undefined => {
  const values = field.split(/[;,]/).map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1))
  const [value, ...others] = new Set(values)
  return others.length === 0 ? value : undefined
}

/** The cookie in a Cookie field; undefined without one, and for one that no browser got here. */
export const sessionCookieIn = (
  field: string | undefined,
  baseUrl: string
): SessionCookie | undefined => {
  const value = field === undefined ? undefined : valueIn(field, nameFor(baseUrl))
  const [, account, sessionId, secret] = valuePattern.exec(value ?? "") ?? []
  return account === undefined || sessionId === undefined || secret === undefined
    ? undefined
    : { account, sessionId, sessionHash: sha256(secret) }
}

/** The cookie of a request; undefined beside Authorization, which has precedence. */
export const sessionCookieOf = (
  { headers }: HttpRequest,
  baseUrl: string
): SessionCookie | undefined => {
  const field = headers.get("cookie")
  if (field === undefined || headers.has("authorization")) return undefined
  return sessionCookieIn(field, baseUrl)
}

/** The value of Set-Cookie. `Lax`: the browser sends it when it follows a link of another site. */
const cookieField = (baseUrl: string, value: string, maxAgeSeconds: number): string =>
  `${nameFor(baseUrl)}=${value}; Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Lax${
    isSecure(baseUrl) ? "; Secure" : ""
  }`

/** Set-Cookie for a browser that has signed in. */
export const setSessionCookie = (
  baseUrl: string,
  { account, secret, sessionId }: {
    readonly account: string
    readonly sessionId: string
    readonly secret: string
  }
): readonly [string, string] => [
  "Set-Cookie",
  cookieField(baseUrl, `${account}.${sessionId}.${secret}`, browserSessionLifetimeMs / 1000)
]

/** Set-Cookie for a browser that has signed out. */
export const unsetSessionCookie = (baseUrl: string): readonly [string, string] => [
  "Set-Cookie",
  cookieField(baseUrl, "", 0)
]
