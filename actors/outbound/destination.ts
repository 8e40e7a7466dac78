/** Destinations of outbound requests: permitted addresses, ports and URIs (protocol §5). Pure. */
import { Result } from "effect"
import { IpNetwork, NetAddress } from "effect/net"
import { LRUCache } from "lru-cache"
import { isIP } from "node:net"
import { cachedUriCharsMax, destinationsCachedMax, uriCharsMax } from "../limits.ts"
import { parseUrl } from "../parse-url.ts"
import { notAllowed, portNotAllowed } from "./problems.ts"

/** Which addresses are permitted. */
export interface AddressRules {
  /** Whether a numeric address, without brackets, may be connected to; false for other texts. */
  readonly permits: (address: string) => boolean
  /** Whether the operator has allowed its prefix. */
  readonly allows: (address: string) => boolean
}

const networks = (...prefixes: ReadonlyArray<string>): ReadonlyArray<IpNetwork.IpNetwork> =>
  prefixes.map(IpNetwork.fromStringUnsafe)

/** IANA special-purpose registry (RFC 6890 and successors), and addresses of cloud services. */
const forbidden4 = networks(
  "0.0.0.0/8", // this network
  "10.0.0.0/8", // private
  "100.64.0.0/10", // carrier-grade NAT, metadata of one cloud
  "127.0.0.0/8", // loopback
  "169.254.0.0/16", // link-local, metadata of most clouds
  "172.16.0.0/12", // private
  "192.0.0.0/24", // IETF protocol assignments
  "192.0.2.0/24", // documentation
  "192.88.99.0/24", // 6to4 relays
  "192.168.0.0/16", // private
  "198.18.0.0/15", // benchmarks
  "198.51.100.0/24", // documentation
  "203.0.113.0/24", // documentation
  "224.0.0.0/4", // multicast
  "240.0.0.0/4", // reserved, broadcast
  "168.63.129.16/32" // internal services of one cloud
)

/** IPv6 is forbidden except for global unicast without these networks. */
const globalUnicast = IpNetwork.fromStringUnsafe("2000::/3")

const forbidden6 = networks(
  "2001::/23", // IETF protocol assignments with Teredo, ORCHID and benchmarks
  "2001:db8::/32", // documentation
  "3fff::/20" // documentation
)

/** Networks whose addresses embed an IPv4 address, with the offset of its first octet. */
const embedding: ReadonlyArray<readonly [network: IpNetwork.IpNetwork, at: number]> = [
  [IpNetwork.fromStringUnsafe("::ffff:0:0/96"), 12], // IPv4-mapped
  [IpNetwork.fromStringUnsafe("64:ff9b::/96"), 12], // NAT64
  [IpNetwork.fromStringUnsafe("2002::/16"), 2] // 6to4
]

/** IPv4-compatible addresses are deprecated: permitted only if the IPv4 address is allowed. */
const compatible = IpNetwork.fromStringUnsafe("::/96")

const within = (list: ReadonlyArray<IpNetwork.IpNetwork>, address: NetAddress.IpAddress): boolean =>
  list.some((network) => IpNetwork.contains(network, address))

const ipv4At = (octets: ReadonlyArray<number>, at: number): NetAddress.Ipv4Address =>
  NetAddress.ipv4FromBytesUnsafe(Uint8Array.from(octets.slice(at, at + 4)))

/** The IPv4 address of an ISATAP interface identifier (RFC 5214 §6.1). */
const isatap = (octets: ReadonlyArray<number>): NetAddress.Ipv4Address | undefined =>
  (octets[8] === 0 || octets[8] === 2) && octets[9] === 0 && octets[10] === 0x5e &&
    octets[11] === 0xfe
    ? ipv4At(octets, 12)
    : undefined

/** A prefix such as `10.0.0.0/8`, or one address; undefined when it is neither. */
export const parsePrefix = (text: string): IpNetwork.IpNetwork | undefined => {
  const network = text.includes("/")
    ? IpNetwork.fromString(text)
    : Result.flatMap(
      NetAddress.ipFromString(text),
      (address) => IpNetwork.make(address, NetAddress.width(address))
    )
  return Result.isSuccess(network) ? network.success : undefined
}

/**
 * The rules, with the prefixes and addresses that the operator allows. An IPv4 prefix also allows
 * the IPv6 forms of its addresses. An invalid prefix is a defect.
 */
export const addressRules = (allow: ReadonlyArray<string>): AddressRules => {
  const allowed = allow.map((text) => {
    const network = parsePrefix(text)
    if (network === undefined) {
      throw new RangeError(`outbound.allow: ${text} is not an IP prefix or address`)
    }
    return network
  })
  const permits4 = (address: NetAddress.Ipv4Address): boolean =>
    within(allowed, address) || !within(forbidden4, address)
  const permits6 = (address: NetAddress.Ipv6Address): boolean => {
    if (within(allowed, address)) return true
    const octets = NetAddress.ipv6ToOctets(address)
    const embeds = embedding.find(([network]) => IpNetwork.contains(network, address))
    if (embeds !== undefined) return permits4(ipv4At(octets, embeds[1]))
    if (IpNetwork.contains(compatible, address)) return within(allowed, ipv4At(octets, 12))
    if (!IpNetwork.contains(globalUnicast, address) || within(forbidden6, address)) return false
    const site = isatap(octets)
    return site === undefined || permits4(site)
  }
  return {
    allows: (text) => {
      const parsed = NetAddress.ipFromString(text)
      return Result.isSuccess(parsed) && within(allowed, parsed.success)
    },
    permits: (text) => {
      const parsed = NetAddress.ipFromString(text)
      if (Result.isFailure(parsed)) return false
      const address = parsed.success
      return NetAddress.isIpv4Address(address) ? permits4(address) : permits6(address)
    }
  }
}

/** A URI that a request may be sent to. */
export interface Destination {
  readonly url: URL
  /** Scheme, host and port: the key of connections and of the origin limiter. */
  readonly origin: string
  /** Path and query. */
  readonly path: string
}

/** A URI that no request may be sent to, and why. */
export interface ForbiddenDestination {
  readonly problem: string
}

/** Ports of other protocols that a request must not reach (Fetch Standard §2.9). */
const blockedPorts: ReadonlySet<number> = new Set(
  ("1 7 9 11 13 15 17 19 20 21 22 23 25 37 42 43 53 69 77 79 87 95 101 102 103 104 109 110 " +
    "111 113 115 117 119 123 135 137 139 143 161 179 389 427 465 512 513 514 515 526 530 531 " +
    "532 540 548 554 556 563 587 601 636 989 990 993 995 1719 1720 1723 2049 3659 4045 4190 " +
    "5060 5061 6000 6566 6665 6666 6667 6668 6669 6679 6697 10080")
    .split(" ").map(Number)
)

/** A URL's host name without the brackets of an IPv6 address and without the last dot. */
export const hostOf = (hostname: string): string =>
  hostname.startsWith("[") ? hostname.slice(1, -1) : hostname.replace(/\.$/, "")

/** Why a port may not be reached, if it may not. */
const portProblem = (host: string, port: number, rules: AddressRules): string | undefined => {
  if (port === 0) return "the port is not valid"
  const isAllowed = !blockedPorts.has(port) ||
    rules.allows(host === "localhost" ? "127.0.0.1" : host)
  return isAllowed ? undefined : portNotAllowed
}

/**
 * Checks a URI. The URL parser normalizes every spelling of an IPv4 address, so a literal address
 * is checked here. A name is checked by the addresses that it resolves to, when connecting.
 */
export const destinationOf = (
  uri: string,
  rules: AddressRules
): Destination | ForbiddenDestination => {
  if (uri.length > uriCharsMax) return { problem: "the URI is too long" }
  const url = parseUrl(uri)
  if (url === undefined) return { problem: "the URI is not valid" }
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    return { problem: "the URI is neither http nor https" }
  }
  if (url.username !== "" || url.password !== "") return { problem: "the URI has credentials" }
  const host = hostOf(url.hostname)
  if (host === "") return { problem: "the URI is not valid" }
  const problem = url.port === "" ? undefined : portProblem(host, Number(url.port), rules)
  if (problem !== undefined) return { problem }
  if (isIP(host) !== 0 && !rules.permits(host)) return { problem: notAllowed }
  if (url.hash !== "") url.hash = ""
  return { url, origin: url.origin, path: url.pathname + url.search }
}

/** The destinations of recent URIs, since many requests go to few of them. */
export class DestinationCache {
  private readonly rules: AddressRules
  private readonly recent = new LRUCache<string, Destination | ForbiddenDestination>({
    max: destinationsCachedMax
  })

  constructor(rules: AddressRules) {
    this.rules = rules
  }

  get(uri: string): Destination | ForbiddenDestination {
    const cached = this.recent.get(uri)
    if (cached !== undefined) return cached
    const destination = destinationOf(uri, this.rules)
    if (uri.length <= cachedUriCharsMax) this.recent.set(uri, destination)
    return destination
  }
}
