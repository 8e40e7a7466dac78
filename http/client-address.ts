/** Which address a request comes from, for counting: behind proxies, what trusted ones say. */
import { BlockList, isIP, isIPv6 } from "node:net"
import { forwardedMax } from "./limits.ts"
import type { HttpRequest } from "./request.ts"

type Family = "ipv4" | "ipv6"

/** One spelling of an address; IPv4 in IPv6 is IPv4. Undefined for what is none. */
const plain = (text: string): string | undefined => {
  const bare = text.trim().replace(/^"|"$/g, "").replace(/^\[(.*)\](?::\d+)?$/, "$1")
  const address = /^\d+\.\d+\.\d+\.\d+:\d+$/.test(bare) ? bare.replace(/:\d+$/, "") : bare
  if (isIP(address) === 0 || address.includes("%")) return undefined
  if (!isIPv6(address)) return address
  // The URL parser writes the shortest form (RFC 5952).
  const short = new URL(`http://[${address}]`).hostname.slice(1, -1)
  const mapped = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(short)
  if (mapped === null) return short
  const [high = 0, low = 0] = mapped.slice(1).map((part) => Number.parseInt(part, 16))
  return [high >> 8, high & 255, low >> 8, low & 255].join(".")
}

const familyOf = (address: string): Family => address.includes(":") ? "ipv6" : "ipv4"

const lists = new WeakMap<ReadonlyArray<string>, BlockList>()

const listOf = (prefixes: ReadonlyArray<string>): BlockList => {
  const known = lists.get(prefixes)
  if (known !== undefined) return known
  const list = new BlockList()
  for (const prefix of prefixes) {
    const [address = "", bits] = prefix.split("/")
    const family = familyOf(address)
    list.addSubnet(address, Number(bits ?? (family === "ipv6" ? 128 : 32)), family)
  }
  lists.set(prefixes, list)
  return list
}

/** Whoever has one address of an IPv6 network has all of its /64. */
const network = (address: string): string => {
  if (!address.includes(":")) return address
  const [head = "", tail] = address.split("::")
  const front = head === "" ? [] : head.split(":")
  const back = tail === undefined || tail === "" ? [] : tail.split(":")
  const zeros = Array.from({ length: Math.max(0, 8 - front.length - back.length) }, () => "0")
  return `${[...front, ...zeros, ...back].slice(0, 4).join(":")}::/64`
}

/**
 * The client's address: the connection's other end, or where that is a trusted proxy the last one
 * in X-Forwarded-For that is none. An IPv6 address stands for its /64.
 */
export const clientOf = (
  { headers, remoteAddress }: Pick<HttpRequest, "headers" | "remoteAddress">,
  trustedProxies: ReadonlyArray<string>
): string => {
  const near = plain(remoteAddress)
  if (near === undefined) return remoteAddress
  if (trustedProxies.length === 0) return network(near)
  const trusted = listOf(trustedProxies)
  const isTrusted = (address: string) => trusted.check(address, familyOf(address))
  const hops = (headers.get("x-forwarded-for") ?? "").split(",").slice(-forwardedMax).toReversed()
  let last = near
  for (const hop of hops) {
    if (!isTrusted(last)) break
    const address = plain(hop)
    // What a proxy did not write as an address was not written by a proxy.
    if (address === undefined) break
    last = address
  }
  return network(last)
}
