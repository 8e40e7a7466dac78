/** Which IP addresses outbound requests may reach (protocol §5). Pure. */
import { Result } from "effect"
import { IpNetwork, NetAddress } from "effect/net"

/** The judgement over addresses. */
export interface AddressRules {
  /** Whether a numeric address, without brackets, may be connected to; false for all else. */
  readonly permits: (address: string) => boolean
  /** Whether the operator has allowed it by name of its prefix. */
  readonly allows: (address: string) => boolean
}

const networks = (...prefixes: ReadonlyArray<string>): ReadonlyArray<IpNetwork.IpNetwork> =>
  prefixes.map(IpNetwork.fromStringUnsafe)

/** IANA special-purpose registry (RFC 6890 and successors), and what clouds put among the rest. */
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
  "168.63.129.16/32" // a cloud's inner services at a public address
)

/** All of IPv6 is forbidden but global unicast, and of that these. */
const globalUnicast = IpNetwork.fromStringUnsafe("2000::/3")
const forbidden6 = networks(
  "2001::/23", // IETF protocol assignments with Teredo, ORCHID and benchmarks
  "2001:db8::/32", // documentation
  "3fff::/20" // documentation
)

/** Networks whose addresses hold an IPv4 address, by its first octet's place. */
const embedding: ReadonlyArray<readonly [network: IpNetwork.IpNetwork, at: number]> = [
  [IpNetwork.fromStringUnsafe("::ffff:0:0/96"), 12], // IPv4-mapped
  [IpNetwork.fromStringUnsafe("64:ff9b::/96"), 12], // NAT64
  [IpNetwork.fromStringUnsafe("2002::/16"), 2] // 6to4
]
/** Forms that nobody should use: only for an IPv4 address that is allowed by name. */
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
 * The rules with what the operator allows: prefixes or addresses. An IPv4 prefix also allows the
 * IPv6 forms of its addresses. A text that is no prefix is a defect.
 */
export const addressRules = (allow: ReadonlyArray<string>): AddressRules => {
  const allowed = allow.map((text) => {
    const network = parsePrefix(text)
    if (network === undefined) throw new RangeError(`outbound.allow: ${text} is no IP prefix`)
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
