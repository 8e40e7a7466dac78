/** Push services of browsers, and the sites of others, which are counted (protocol §1.4). */
import { parseUrl, sha256 } from "../../../actors/index.ts"
import { networkOfText } from "../../rates/index.ts"

/** The push services of Chrome and Edge, Firefox, Safari and earlier Edge, with what is below. */
const knownHosts = [
  "fcm.googleapis.com",
  "jmt17.google.com",
  "push.services.mozilla.com",
  "push.apple.com",
  "notify.windows.com"
]

/** Characters of a site's hash: those of one mailbox only must differ. */
const siteChars = 16

const isKnown = ({ hostname, port, protocol }: URL): boolean =>
  protocol === "https:" && port === "" &&
  knownHosts.some((host) => hostname === host || hostname.endsWith(`.${host}`))

/**
 * What one party may have whole: the network (/24, /48) of an address, and else the domain of the
 * last two labels. Where a registry gives out longer domains, as below `co.uk`, strangers share it:
 * it is a bound against strangers, and the operator can name an origin.
 */
const siteOf = ({ hostname }: URL): string =>
  networkOfText(hostname) ??
    hostname.split(".").filter((label) => label !== "").slice(-2).join(".")

/**
 * The hash of the endpoint's site, whatever its scheme, port and further labels; undefined if it is
 * a push service that serves many browsers: it is known, or the operator has named its origin.
 */
export const countedSite = (
  fanOutAllow: ReadonlyArray<string>,
  endpoint: string
): string | undefined => {
  const url = parseUrl(endpoint)
  return url === undefined || isKnown(url) || fanOutAllow.includes(url.origin)
    ? undefined
    : sha256(siteOf(url)).slice(0, siteChars)
}
