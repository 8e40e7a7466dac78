/** Connections to checked addresses: undici asks for them, and gets no others (protocol §5). */
import { promises as dns } from "node:dns"
import { readFile, stat } from "node:fs/promises"
import { connect as connectTcp, isIP, type Socket } from "node:net"
import { connect as connectTls, type TLSSocket } from "node:tls"
import type { buildConnector } from "undici"
import { addressesMax, type DeliveryLimits, settingsBytesMax, settingsFreshMs } from "../limits.ts"
import { type AddressRules, hostOf } from "./destination.ts"
import { fault, faultOf, ForbiddenAddress, nameFaultOf, nameInTime,
  notConnectedInTime } from "./problems.ts"

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

/* Names to addresses: `localhost`, the hosts file, and the name servers by c-ares. */

export interface Connector {
  readonly connect: buildConnector.connector
  /** Connections that are open or being made. */
  readonly open: () => number
  readonly close: () => void
}

export interface ConnectorOptions {
  readonly names: Names
  readonly rules: AddressRules
  readonly limits: Pick<DeliveryLimits, "connectMs" | "nextAddressMs">
  /** Certificates that are trusted instead of the system's, as PEM. */
  readonly ca?: ReadonlyArray<string>
}

/** One IPv6, one IPv4 and so on (RFC 8305 §4), the first few. */
const interleaved = (addresses: ReadonlyArray<string>): ReadonlyArray<string> => {
  const six = addresses.filter((address) => isIP(address) === 6)
  const four = addresses.filter((address) => isIP(address) === 4)
  const pairs = Array.from(
    { length: Math.max(six.length, four.length) },
    (_, at) => [six[at], four[at]]
  )
  return pairs.flat().filter((address) => address !== undefined).slice(0, addressesMax)
}

/** What can be given up at any time: sockets that are being tried, and the timers beside them. */
class Undertaking {
  readonly #undo = new Set<() => void>()
  ended = false

  /** What `undo` has to do when it ends; gives what takes that back. */
  with(undo: () => void): () => void {
    this.#undo.add(undo)
    return () => this.#undo.delete(undo)
  }

  end(): void {
    this.ended = true
    for (const undo of this.#undo) undo()
    this.#undo.clear()
  }
}

/** The first connection that comes about, each next address tried beside the ones before. */
const race = (
  addresses: ReadonlyArray<string>,
  port: number,
  nextMs: number,
  under: Undertaking,
  track: (socket: Socket) => void
): Promise<Socket> =>
  new Promise((resolve, reject) => {
    let next = 0
    let failed = 0
    let first: unknown
    let timer: NodeJS.Timeout | undefined
    const others = new Map<Socket, () => void>()
    under.with(() => clearTimeout(timer))
    const attempt = (): void => {
      clearTimeout(timer)
      const host = addresses[next++]
      if (host === undefined || under.ended) return
      const socket = connectTcp({ host, port, noDelay: true, keepAlive: true })
      track(socket)
      const release = under.with(() => socket.destroy())
      others.set(socket, release)
      socket.once("connect", () => {
        clearTimeout(timer)
        next = addresses.length
        others.delete(socket)
        for (const other of others.keys()) other.destroy()
        release()
        resolve(socket)
      })
      socket.on("error", (error) => {
        first ??= error
        others.delete(socket)
        if (++failed === addresses.length) reject(first)
        else attempt()
      })
      if (next < addresses.length) timer = setTimeout(attempt, nextMs)
    }
    attempt()
  })

/** TLS over a connection, verified for the name or address that was asked for. */
const secured = (
  socket: Socket,
  host: string,
  ca: ReadonlyArray<string> | undefined,
  under: Undertaking
): Promise<TLSSocket> =>
  new Promise((resolve, reject) => {
    const release = under.with(() => socket.destroy())
    const secure = connectTls({
      socket,
      host,
      // An address is no server name (RFC 6066 §3).
      ...isIP(host) === 0 ? { servername: host } : {},
      ...ca === undefined ? {} : { ca: [...ca] },
      ALPNProtocols: ["http/1.1"],
      // Said here so that no environment variable says otherwise.
      rejectUnauthorized: true
    })
    const fail = (error: unknown): void => {
      socket.destroy()
      reject(error)
    }
    secure.once("error", fail)
    secure.once("close", () => reject(faultOf({ code: "ECONNRESET" })))
    secure.once("secureConnect", () => {
      secure.off("error", fail)
      release()
      resolve(secure)
    })
  })

/** Resolves, checks, and connects to exactly the checked addresses. */
export const makeConnector = ({ ca, limits, names, rules }: ConnectorOptions): Connector => {
  const sockets = new Set<Socket>()
  const track = (socket: Socket): void => {
    sockets.add(socket)
    socket.once("close", () => sockets.delete(socket))
  }
  const permitted = async (host: string): Promise<ReadonlyArray<string>> => {
    const found = isIP(host) === 0 ? await names.resolve(host) : [host]
    const addresses = found.filter(rules.permits)
    if (addresses.length === 0) throw new ForbiddenAddress()
    return interleaved(addresses)
  }
  const open = async (
    { hostname, port, protocol }: buildConnector.Options,
    under: Undertaking,
    resolved: () => void
  ): Promise<Socket> => {
    const host = hostOf(hostname)
    const secure = protocol === "https:"
    const addresses = await permitted(host)
    resolved()
    const number = port === "" ? secure ? 443 : 80 : Number(port)
    const socket = await race(addresses, number, limits.nextAddressMs, under, track)
    return secure ? await secured(socket, host, ca, under) : socket
  }
  const connect: buildConnector.connector = (options, callback) => {
    const under = new Undertaking()
    let late = nameInTime
    const timer = setTimeout(() => {
      under.end()
      callback(fault(late), null)
    }, limits.connectMs)
    const resolved = (): void => {
      late = notConnectedInTime
    }
    open(options, under, resolved).then(
      (socket) => {
        clearTimeout(timer)
        under.ended ? socket.destroy() : callback(null, socket)
      },
      (error: unknown) => {
        clearTimeout(timer)
        if (under.ended) return
        under.end()
        callback(error instanceof ForbiddenAddress ? error : faultOf(error), null)
      }
    )
  }
  return {
    connect,
    open: () => sockets.size,
    close: () => {
      for (const socket of sockets) socket.destroy()
    }
  }
}
