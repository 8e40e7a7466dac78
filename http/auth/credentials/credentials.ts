/** The credentials in a request. */
import type { HttpRequest } from "../../wire/index.ts"

/** The credentials of a request, not yet checked. */
export type Identity =
  | { readonly _tag: "Anonymous" }
  | { readonly _tag: "Basic"; readonly user: string; readonly password: string }
  | { readonly _tag: "Bearer"; readonly token: string }

const anonymous: Identity = { _tag: "Anonymous" }

const credentials = /^(basic|bearer)[ ]+([A-Za-z0-9\-._~+/]+=*)$/i

/** Reads the Authorization field (RFC 7617, RFC 6750); another scheme is anonymous. */
export const identityOf = (request: HttpRequest): Identity => {
  const field = request.headers.get("authorization")
  if (field === undefined) return anonymous
  const [, scheme = "", text = ""] = credentials.exec(field.trim()) ?? []
  if (scheme.toLowerCase() === "bearer") return { _tag: "Bearer", token: text }
  if (scheme === "") return anonymous
  const pair = Buffer.from(text, "base64").toString("utf8")
  const colon = pair.indexOf(":")
  return colon < 0
    ? anonymous
    : { _tag: "Basic", user: pair.slice(0, colon), password: pair.slice(colon + 1) }
}
