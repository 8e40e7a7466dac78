/**
 * Where a request comes from: the peer of its connection or, behind trusted proxies, the last
 * address in X-Forwarded-For that is not one of them.
 */
import { Result } from "effect"
import { IpNetwork, NetAddress } from "effect/net"
import { forwardedMax } from "../limits.ts"
import type { HttpRequest } from "../wire/index.ts"

type Origin = Pick<HttpRequest, "headers" | "remoteAddress">

/** The address in a text, perhaps with a port; IPv4 mapped to IPv6 becomes IPv4. */
const parseAddress = (text: string): NetAddress.IpAddress | undefined => {
  const bare = text.trim().replace(/^"|"$/g, "").replace(/^\[(.*)\](?::\d+)?$/, "$1")
  const parsed = NetAddress.ipFromString(bare.replace(/^([\d.]+):\d+$/, "$1"))
  return Result.isSuccess(parsed) ? NetAddress.toCanonical(parsed.success) : undefined
}

const parsedNetworks = new WeakMap<ReadonlyArray<string>, ReadonlyArray<IpNetwork.IpNetwork>>()

/** The networks of prefixes, which are parsed once for each array. */
const networksOf = (prefixes: ReadonlyArray<string>): ReadonlyArray<IpNetwork.IpNetwork> => {
  let networks = parsedNetworks.get(prefixes)
  if (networks === undefined) {
    networks = prefixes.map((prefix) => {
      const [text = "", bits] = prefix.split("/")
      const address = NetAddress.ipFromStringUnsafe(text)
      return IpNetwork.fromAddressUnsafe(address, Number(bits ?? NetAddress.width(address)))
    })
    parsedNetworks.set(prefixes, networks)
  }
  return networks
}

/** The client's address; undefined if that of the connection's peer is not known. */
const addressOf = (
  { headers, remoteAddress }: Origin,
  trustedProxies: ReadonlyArray<string>
): NetAddress.IpAddress | undefined => {
  let last = parseAddress(remoteAddress)
  if (last === undefined || trustedProxies.length === 0) return last
  const trusted = networksOf(trustedProxies)
  const hops = (headers.get("x-forwarded-for") ?? "").split(",").slice(-forwardedMax).toReversed()
  for (const hop of hops) {
    const near = last
    if (!trusted.some((network) => IpNetwork.contains(network, near))) break
    const address = parseAddress(hop)
    // A proxy writes valid addresses: the client wrote this one.
    if (address === undefined) break
    last = address
  }
  return last
}

const networkOf = (address: NetAddress.IpAddress, bits: number): string =>
  IpNetwork.format(IpNetwork.fromAddressUnsafe(address, bits))

/** The client's address. An IPv6 address becomes its /64: one client usually has all of it. */
export const clientAddress = (
  origin: Origin,
  trustedProxies: ReadonlyArray<string>
): string => {
  const address = addressOf(origin, trustedProxies)
  if (address === undefined) return origin.remoteAddress
  return NetAddress.isIpv4Address(address)
    ? NetAddress.formatIp(address)
    : networkOf(address, 64)
}

/** The client's network, which one party may have whole: /24 of IPv4, /48 of IPv6 (protocol §7). */
export const clientNetwork = (
  origin: Origin,
  trustedProxies: ReadonlyArray<string>
): string => {
  const address = addressOf(origin, trustedProxies)
  if (address === undefined) return origin.remoteAddress
  return networkOf(address, NetAddress.isIpv4Address(address) ? 24 : 48)
}

const loopbacks = ["127.0.0.0/8", "::1/128"]

/**
 * Whether the client is on this machine: it connects by loopback, and nothing says that it
 * forwards a request of another. Such clients are not limited (protocol §7).
 */
export const isLocalClient = ({ headers, remoteAddress }: Origin): boolean => {
  const address = parseAddress(remoteAddress)
  return address !== undefined && !headers.has("x-forwarded-for") && !headers.has("forwarded") &&
    networksOf(loopbacks).some((network) => IpNetwork.contains(network, address))
}
