/** OpenID Connect Discovery 1.0: the metadata of an issuer and the URL of its keys. Pure. */
import { metadataCharsMax } from "../../limits.ts"

const isPlainHttpUrl = ({ hash, password, protocol, username }: URL): boolean =>
  (protocol === "http:" || protocol === "https:") && hash + username + password === ""

/** The URL of the issuer's metadata (§4); undefined if the issuer is not a URL without a query. */
export const metadataUrl = (issuer: string): string | undefined => {
  if (!URL.canParse(issuer)) return undefined
  const url = new URL(issuer)
  return isPlainHttpUrl(url) && url.search === ""
    ? `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`
    : undefined
}

/** The URL of the keys in the issuer's metadata (§3, §4.3), or the reason why there is none. */
export const parseKeysUrl = (text: string, issuer: string): { readonly url: string } | string => {
  if (text.length > metadataCharsMax) return "the issuer's metadata are too long"
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    return "the issuer's metadata are not JSON"
  }
  const metadata: Readonly<Record<string, unknown>> = typeof parsed === "object" && parsed !== null
    ? { ...parsed }
    : {}
  const { issuer: named, jwks_uri: url } = metadata
  if (named !== issuer) return "the metadata belong to another issuer"
  if (typeof url !== "string" || !URL.canParse(url) || !isPlainHttpUrl(new URL(url))) {
    return "the issuer's metadata name no jwks_uri"
  }
  const isDowngrade = issuer.startsWith("https:") && !url.startsWith("https:")
  return isDowngrade ? "the issuer uses https, but its jwks_uri does not" : { url }
}
