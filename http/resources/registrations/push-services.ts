/** Push services of browsers, and the origins of others, which are counted (protocol §1.4). */
import { parseUrl, sha256 } from "../../../actors/index.ts"

/** The push services of Chrome and Edge, Firefox, Safari and earlier Edge, with what is below. */
const knownHosts = [
  "fcm.googleapis.com",
  "jmt17.google.com",
  "push.services.mozilla.com",
  "push.apple.com",
  "notify.windows.com"
]

/** Characters of an origin's hash: those of one mailbox only must differ. */
const originChars = 16

const isKnown = ({ hostname, port, protocol }: URL): boolean =>
  protocol === "https:" && port === "" &&
  knownHosts.some((host) => hostname === host || hostname.endsWith(`.${host}`))

/**
 * The hash of the endpoint's origin; undefined if it is a push service that serves many browsers:
 * it is known, or the operator has named it.
 */
export const countedOrigin = (
  fanOutAllow: ReadonlyArray<string>,
  endpoint: string
): string | undefined => {
  const url = parseUrl(endpoint)
  return url === undefined || isKnown(url) || fanOutAllow.includes(url.origin)
    ? undefined
    : sha256(url.origin).slice(0, originChars)
}
