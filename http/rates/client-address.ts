/**
 * Where requests come from: the peer of the connection or, behind trusted proxies, the last
 * address in X-Forwarded-For that is not one of them.
 */
import { Result } from "effect"
import { IpNetwork, NetAddress } from "effect/net"
import { LRUCache } from "lru-cache"
import { forwardedMax, knownAddressesMax } from "../limits.ts"
import type { HttpRequest } from "../wire/index.ts"

/** The client of a request. */
export interface ClientAddress {
  /** Its address. An IPv6 address becomes its /64: one client usually has all of it. */
  readonly address: string
  /** Its network, which one party may have whole: /24 of IPv4, /48 of IPv6 (protocol §7). */
  readonly network: string
  /**
   * Whether it is on this machine: it connects by loopback, and nothing says that it forwards the
   * request of another. Such clients are not limited (protocol §7).
   */
  readonly isLocal: boolean
}

/** An address as it is written, and what follows from it. */
interface KnownAddress extends ClientAddress {
  readonly isTrusted: boolean
}

/** The address in a text, perhaps with a port; IPv4 mapped to IPv6 becomes IPv4. */
const parseAddress = (text: string): NetAddress.IpAddress | undefined => {
  const bare = text.trim().replace(/^"|"$/g, "").replace(/^\[(.*)\](?::\d+)?$/, "$1")
  const parsed = NetAddress.ipFromString(bare.replace(/^([\d.]+):\d+$/, "$1"))
  return Result.isSuccess(parsed) ? NetAddress.toCanonical(parsed.success) : undefined
}

const parseNetwork = (prefix: string): IpNetwork.IpNetwork => {
  const [text = "", bits] = prefix.split("/")
  const address = NetAddress.ipFromStringUnsafe(text)
  return IpNetwork.fromAddressUnsafe(address, Number(bits ?? NetAddress.width(address)))
}

const networkOf = (address: NetAddress.IpAddress, bits: number): string =>
  IpNetwork.format(IpNetwork.fromAddressUnsafe(address, bits))

/** The network (/24, /48) of an address or prefix in a text; undefined for another text. */
export const networkOfText = (text: string): string | undefined => {
  const [written = "", bits = ""] = text.split("/")
  const address = parseAddress(written)
  if (address === undefined) return undefined
  const isPrefix = /^\d{1,3}$/.test(bits) && Number(bits) <= NetAddress.width(address)
  if (text.includes("/") && !isPrefix) return undefined
  return networkOf(address, NetAddress.isIpv4Address(address) ? 24 : 48)
}

/** So many networks of peers are reported that forward requests and are no trusted proxies. */
const forwardersReportedMax = 4

const loopbacks = ["127.0.0.0/8", "::1/128"].map(parseNetwork)

export class Clients {
  private readonly trusted: ReadonlyArray<IpNetwork.IpNetwork>
  /** By the text of the address; null for one that is none. */
  private readonly known: LRUCache<string, { readonly address: KnownAddress | null }>
  /** The only peer of a server that listens on a loopback address. */
  private readonly thisMachine: ClientAddress | undefined
  /** Networks of reported peers. */
  private readonly reported = new Set<string>()
  private readonly onForwarder: (address: string) => void

  /**
   * `listensOn`: the address on which the server listens. `onForwarder` gets the address of a peer
   * that forwards requests and is no trusted proxy, once for each of a few networks: all clients
   * behind such a proxy count as one.
   */
  constructor(
    trustedProxies: ReadonlyArray<string>,
    listensOn = "",
    onForwarder: (address: string) => void = () => {}
  ) {
    this.onForwarder = onForwarder
    this.trusted = trustedProxies.map(parseNetwork)
    this.known = new LRUCache({ max: knownAddressesMax })
    const own = this.read(listensOn)
    this.thisMachine = own?.isLocal === true ? own : undefined
  }

  /** The client of a request. */
  clientOf(request: Pick<HttpRequest, "headers" | "remoteAddress">): ClientAddress {
    const { headers } = request
    const forwarded = headers.get("x-forwarded-for")
    const isForwarded = forwarded !== undefined || headers.has("forwarded")
    // To ask for the peer's address costs a twentieth of a deposit.
    if (!isForwarded && this.thisMachine !== undefined) return this.thisMachine
    const { remoteAddress } = request
    const peer = this.read(remoteAddress)
    if (peer === undefined) {
      // The client has left, and the connection no longer has an address.
      const network = remoteAddress === "" ? "unknown" : remoteAddress
      return { address: remoteAddress, network, isLocal: false }
    }
    if (!isForwarded) return peer
    if (!peer.isTrusted) this.report(peer)
    const { address, network } = peer.isTrusted ? this.behind(peer, forwarded ?? "") : peer
    return { address, network, isLocal: false }
  }

  /** Whether the peer of the connection is a trusted proxy. */
  isTrustedProxy({ remoteAddress }: Pick<HttpRequest, "remoteAddress">): boolean {
    return this.read(remoteAddress)?.isTrusted === true
  }

  private report({ address, network }: KnownAddress): void {
    if (this.reported.has(network) || this.reported.size >= forwardersReportedMax) return
    this.reported.add(network)
    this.onForwarder(address)
  }

  /** The last address that is not a trusted proxy's. */
  private behind(peer: KnownAddress, forwarded: string): KnownAddress {
    let last = peer
    for (const hop of forwarded.split(",").slice(-forwardedMax).toReversed()) {
      const address = this.read(hop)
      // A proxy writes valid addresses: the client wrote this one.
      if (address === undefined) return last
      last = address
      if (!last.isTrusted) return last
    }
    return last
  }

  private read(text: string): KnownAddress | undefined {
    let known = this.known.get(text)
    if (known === undefined) {
      const address = parseAddress(text)
      known = { address: address === undefined ? null : this.describe(address) }
      this.known.set(text, known)
    }
    return known.address ?? undefined
  }

  private describe(address: NetAddress.IpAddress): KnownAddress {
    const isWithin = (networks: ReadonlyArray<IpNetwork.IpNetwork>) =>
      networks.some((network) => IpNetwork.contains(network, address))
    const isIpv4 = NetAddress.isIpv4Address(address)
    return {
      address: isIpv4 ? NetAddress.formatIp(address) : networkOf(address, 64),
      network: networkOf(address, isIpv4 ? 24 : 48),
      isLocal: isWithin(loopbacks),
      isTrusted: isWithin(this.trusted)
    }
  }
}
