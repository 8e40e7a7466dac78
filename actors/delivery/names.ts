/** Names to addresses: `localhost`, the hosts file, and the name servers by c-ares. */
import { promises as dns } from "node:dns"
import { readFile, stat } from "node:fs/promises"
import { isIP } from "node:net"
import type { DeliveryLimits } from "./limits.ts"
import { settingsBytesMax, settingsFreshMs } from "./limits.ts"
import { nameFaultOf } from "./problems.ts"

export interface Names {
  /** The addresses of a name in lower case without its last dot; rejects with OutboundFault. */
  readonly resolve: (name: string) => Promise<ReadonlyArray<string>>
  /** Gives up what is being asked. */
  readonly close: () => void
}

export interface NamesOptions {
  readonly limits: Pick<DeliveryLimits, "nameMs" | "nameTries">
  /** Instead of the system's, as `127.0.0.1:53`. */
  readonly dnsServers?: ReadonlyArray<string>
  readonly hostsFile?: string
}

/** The text of a file, read again when it has changed; empty without one, or when too large. */
const followedFile = (path: string): () => Promise<string> => {
  let text = ""
  let stamp = ""
  let lookedMs = -Infinity
  return async () => {
    if (performance.now() - lookedMs < settingsFreshMs) return text
    lookedMs = performance.now()
    try {
      const { ino, mtimeMs, size } = await stat(path)
      const now = `${ino} ${mtimeMs} ${size}`
      if (now === stamp) return text
      text = size <= settingsBytesMax ? await readFile(path, "utf8") : ""
      stamp = now
    } catch {
      text = ""
      stamp = ""
    }
    return text
  }
}

/** The addresses by name of a hosts file (hosts(5)). */
export const parseHosts = (text: string): ReadonlyMap<string, ReadonlyArray<string>> => {
  const byName = new Map<string, Array<string>>()
  for (const line of text.split("\n")) {
    const [address = "", ...names] = (line.split("#", 1)[0] ?? "").trim().split(/\s+/)
    if (isIP(address) === 0) continue
    for (const name of names) {
      const key = name.toLowerCase().replace(/\.$/, "")
      const there = byName.get(key)
      there === undefined ? byName.set(key, [address]) : there.push(address)
    }
  }
  return byName
}

const systemServers = "/etc/resolv.conf"
const systemHosts = "/etc/hosts"

/**
 * Name resolution without getaddrinfo, which occupies a thread of the pool and cannot be given up.
 * Names are taken to be whole: no search list is tried.
 */
export const makeNames = ({ dnsServers, hostsFile, limits }: NamesOptions): Names => {
  const hostsText = followedFile(hostsFile ?? systemHosts)
  const serversText = dnsServers === undefined ? followedFile(systemServers) : async () => ""
  let hosts = { text: "", byName: parseHosts("") }
  const makeResolver = () => {
    const made = new dns.Resolver({ timeout: limits.nameMs, tries: limits.nameTries })
    if (dnsServers !== undefined) made.setServers(dnsServers)
    return made
  }
  let resolver: { readonly text: string; readonly of: dns.Resolver } | undefined

  const askServers = async (name: string): Promise<ReadonlyArray<string>> => {
    const text = await serversText()
    if (resolver?.text !== text) resolver = { text, of: makeResolver() }
    const [six, four] = await Promise.allSettled([
      resolver.of.resolve6(name),
      resolver.of.resolve4(name)
    ])
    const found = [six, four].flatMap((answer) => answer.status === "fulfilled" ? answer.value : [])
    if (found.length > 0) return found
    const reasons = [four, six].map((answer) =>
      nameFaultOf((answer as PromiseRejectedResult).reason)
    )
    throw reasons.find(({ problem }) => problem !== "the name has no address") ?? reasons[0]
  }
  return {
    resolve: async (name) => {
      if (name === "localhost" || name.endsWith(".localhost")) return ["127.0.0.1", "::1"]
      const text = await hostsText()
      if (hosts.text !== text) hosts = { text, byName: parseHosts(text) }
      return hosts.byName.get(name) ?? askServers(name)
    },
    close: () => resolver?.of.cancel()
  }
}
