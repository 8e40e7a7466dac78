/** Which URIs outbound requests may ask (protocol §5). Pure. */
import { isIP } from "node:net"
import type { AddressRules } from "./addresses.ts"
import { rememberedTargetsMax, rememberedUriCharsMax, uriCharsMax } from "./limits.ts"
import { notAllowed } from "./problems.ts"

/** Where a request goes. */
export interface Destination {
  readonly url: URL
  /** Scheme, host and port, as lanes and connections are kept by. */
  readonly origin: string
  /** Path and query, as they are sent. */
  readonly path: string
}

/** A URI that is not asked, and why not. */
export interface NoDestination {
  readonly problem: string
}

/** Ports of other protocols, which a request must not speak to (Fetch Standard §2.9). */
const blockedPorts: ReadonlySet<number> = new Set([
  0,
  1,
  7,
  9,
  11,
  13,
  15,
  17,
  19,
  20,
  21,
  22,
  23,
  25,
  37,
  42,
  43,
  53,
  69,
  77,
  79,
  87,
  95,
  101,
  102,
  103,
  104,
  109,
  110,
  111,
  113,
  115,
  117,
  119,
  123,
  135,
  137,
  139,
  143,
  161,
  179,
  389,
  427,
  465,
  512,
  513,
  514,
  515,
  526,
  530,
  531,
  532,
  540,
  548,
  554,
  556,
  563,
  587,
  601,
  636,
  989,
  990,
  993,
  995,
  1719,
  1720,
  1723,
  2049,
  3659,
  4045,
  4190,
  5060,
  5061,
  6000,
  6566,
  6665,
  6666,
  6667,
  6668,
  6669,
  6679,
  6697,
  10080
])

/** A URL's host name without the brackets of an IPv6 address and without the last dot. */
export const hostOf = (hostname: string): string =>
  hostname.startsWith("[") ? hostname.slice(1, -1) : hostname.replace(/\.$/, "")

/** An operator who allows an address answers for its ports. */
const isPortAllowed = (host: string, port: number, rules: AddressRules): boolean =>
  !blockedPorts.has(port) ||
  (port !== 0 && rules.allows(host === "localhost" ? "127.0.0.1" : host))

/** Parsed once: `URL.canParse` before it would do all the work twice. */
const parsed = (uri: string): URL | undefined => {
  try {
    return new URL(uri)
  } catch {
    return undefined
  }
}

/**
 * Judges a URI. The URL parser has made one form of every spelling of an IPv4 address, so that a
 * literal is judged here; a name is judged by the addresses it leads to, when connecting.
 */
export const destinationOf = (uri: string, rules: AddressRules): Destination | NoDestination => {
  if (uri.length > uriCharsMax) return { problem: "the URI is too long" }
  const url = parsed(uri)
  if (url === undefined) return { problem: "the URI is not valid" }
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    return { problem: "the URI is neither http nor https" }
  }
  if (url.username !== "" || url.password !== "") return { problem: "the URI has credentials" }
  const host = hostOf(url.hostname)
  if (host === "") return { problem: "the URI is not valid" }
  if (url.port !== "" && !isPortAllowed(host, Number(url.port), rules)) {
    return { problem: "the port is not allowed" }
  }
  if (isIP(host) !== 0 && !rules.permits(host)) return { problem: notAllowed }
  if (url.hash !== "") url.hash = ""
  return { url, origin: url.origin, path: url.pathname + url.search }
}

/** Targets that were judged lately, since many requests go to few: in two generations. */
export class DestinationCache {
  readonly #rules: AddressRules
  #known = new Map<string, Destination | NoDestination>()
  #before = new Map<string, Destination | NoDestination>()

  constructor(rules: AddressRules) {
    this.#rules = rules
  }

  of(uri: string): Destination | NoDestination {
    const known = this.#known.get(uri)
    if (known !== undefined) return known
    const target = this.#before.get(uri) ?? destinationOf(uri, this.#rules)
    if (uri.length > rememberedUriCharsMax) return target
    if (this.#known.size >= rememberedTargetsMax) {
      this.#before = this.#known
      this.#known = new Map()
    }
    this.#known.set(uri, target)
    return target
  }
}
