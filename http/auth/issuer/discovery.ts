/** OpenID Connect Discovery 1.0: what an issuer tells of itself, and where its keys are. Pure. */
import { metadataCharsMax } from "../../limits.ts"

const isWeb = ({ hash, password, protocol, username }: URL): boolean =>
  (protocol === "http:" || protocol === "https:") && hash + username + password === ""

/** Where an issuer tells of itself (§4); undefined for one that is no URL, or has a query. */
export const metadataUrl = (issuer: string): string | undefined => {
  if (!URL.canParse(issuer)) return undefined
  const url = new URL(issuer)
  return isWeb(url) && url.search === ""
    ? `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`
    : undefined
}

/** Where the keys are by the metadata of an issuer (§3, §4.3); fails with why not, for people. */
export const parseKeysUrl = (text: string, issuer: string): { readonly url: string } | string => {
  if (text.length > metadataCharsMax) return "the issuer's metadata are too long"
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    return "the issuer's metadata are no JSON"
  }
  const told: Readonly<Record<string, unknown>> = typeof parsed === "object" && parsed !== null
    ? { ...parsed }
    : {}
  const { issuer: named, jwks_uri: url } = told
  if (named !== issuer) return "the metadata are of another issuer"
  if (typeof url !== "string" || !URL.canParse(url) || !isWeb(new URL(url))) {
    return "the issuer's metadata name no jwks_uri"
  }
  const isDowngrade = issuer.startsWith("https:") && !url.startsWith("https:")
  return isDowngrade ? "the jwks_uri of an issuer by https is none" : { url }
}
