/** Connections to checked addresses; undici can open no others (protocol §5). */
import { promises as dns } from "node:dns"
import { readFile, stat } from "node:fs/promises"
import { connect as connectTcp, isIP, type Socket } from "node:net"
import { connect as connectTls, type TLSSocket } from "node:tls"
import type { buildConnector } from "undici"
import { addressesMax, type DeliveryLimits, watchedFileBytesMax,
  watchedFileCheckMs } from "../limits.ts"
import { type AddressRules, hostOf } from "./destination.ts"
import { connectionFailure, connectionFailureOf, connectTimedOut, ForbiddenAddress, nameFailureOf,
  nameTimedOut } from "./problems.ts"

export interface NameResolver {
  /** The addresses of a lower-case name without its last dot; rejects with ConnectionFailure. */
  readonly resolve: (name: string) => Promise<ReadonlyArray<string>>
  /** Cancels the requests to name servers. */
  readonly close: () => void
}

export interface NameResolverOptions {
  readonly limits: Pick<DeliveryLimits, "nameTimeoutMs" | "nameTries">
  /** Instead of the system's, as `127.0.0.1:53`. */
  readonly dnsServers?: ReadonlyArray<string> | undefined
  readonly hostsFile?: string | undefined
}

/** Reads a file again if it has changed; its text is empty if it is missing or too large. */
const watchedFile = (path: string): () => Promise<string> => {
  let text = ""
  let stamp = ""
  let checkedMs = -Infinity
  return async () => {
    if (performance.now() - checkedMs < watchedFileCheckMs) return text
    checkedMs = performance.now()
    try {
      const { ino, mtimeMs, size } = await stat(path)
      const now = `${ino} ${mtimeMs} ${size}`
      if (now === stamp) return text
      text = size <= watchedFileBytesMax ? await readFile(path, "utf8") : ""
      stamp = now
    } catch {
      text = ""
      stamp = ""
    }
    return text
  }
}

/** The addresses in a hosts file, by name (hosts(5)). */
export const parseHosts = (text: string): ReadonlyMap<string, ReadonlyArray<string>> => {
  const byName = new Map<string, Array<string>>()
  for (const line of text.split("\n")) {
    const [address = "", ...names] = (line.split("#", 1)[0] ?? "").trim().split(/\s+/)
    if (isIP(address) === 0) continue
    for (const name of names) {
      const key = name.toLowerCase().replace(/\.$/, "")
      const addresses = byName.get(key)
      addresses === undefined ? byName.set(key, [address]) : addresses.push(address)
    }
  }
  return byName
}

const systemServers = "/etc/resolv.conf"

const systemHosts = "/etc/hosts"

/**
 * Resolves names by `localhost`, the hosts file, and the name servers (c-ares). getaddrinfo would
 * occupy a thread of the pool and cannot be canceled. No search list is tried.
 */
export const makeNameResolver = (
  { dnsServers, hostsFile, limits }: NameResolverOptions
): NameResolver => {
  const hostsText = watchedFile(hostsFile ?? systemHosts)
  const serversText = dnsServers === undefined ? watchedFile(systemServers) : async () => ""
  let hosts = { text: "", byName: parseHosts("") }
  const makeResolver = () => {
    const made = new dns.Resolver({ timeout: limits.nameTimeoutMs, tries: limits.nameTries })
    if (dnsServers !== undefined) made.setServers(dnsServers)
    return made
  }
  let resolver: { readonly text: string; readonly of: dns.Resolver } | undefined

  const queryServers = async (name: string): Promise<ReadonlyArray<string>> => {
    const text = await serversText()
    if (resolver?.text !== text) resolver = { text, of: makeResolver() }
    const [six, four] = await Promise.allSettled([
      resolver.of.resolve6(name),
      resolver.of.resolve4(name)
    ])
    const found = [six, four].flatMap((answer) => answer.status === "fulfilled" ? answer.value : [])
    if (found.length > 0) return found
    const reasons = [four, six].map((answer) =>
      nameFailureOf((answer as PromiseRejectedResult).reason)
    )
    throw reasons.find(({ problem }) => problem !== "the name has no address") ?? reasons[0]
  }
  return {
    resolve: async (name) => {
      if (name === "localhost" || name.endsWith(".localhost")) return ["127.0.0.1", "::1"]
      const text = await hostsText()
      if (hosts.text !== text) hosts = { text, byName: parseHosts(text) }
      return hosts.byName.get(name) ?? queryServers(name)
    },
    close: () => resolver?.of.cancel()
  }
}

export interface Connector {
  readonly connect: buildConnector.connector
  /** How many connections are open or being opened. */
  readonly openCount: () => number
  /**
   * Whether all open connections to the origin lead to public addresses; false without one. A
   * name may resolve to different addresses, and undici does not report which connection it uses.
   */
  readonly isPublic: (origin: string) => boolean
  readonly close: () => void
}

export interface ConnectorOptions {
  readonly names: NameResolver
  readonly rules: AddressRules
  /** The rules of public addresses, whatever the operator allows. */
  readonly publicRules: AddressRules
  readonly limits: Pick<DeliveryLimits, "connectMs" | "nextAddressMs">
  /** Certificates that are trusted instead of the system's, as PEM. */
  readonly ca?: ReadonlyArray<string> | undefined
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

/** The first connection that opens; the next address is tried beside the earlier ones. */
const race = (
  addresses: ReadonlyArray<string>,
  port: number,
  nextMs: number,
  signal: AbortSignal,
  track: (socket: Socket) => void
): Promise<Socket> =>
  new Promise((resolve, reject) => {
    let next = 0
    let failed = 0
    let first: unknown
    let timer: NodeJS.Timeout | undefined
    const pending = new Set<Socket>()
    const attempt = (): void => {
      clearTimeout(timer)
      const host = addresses[next++]
      if (host === undefined || signal.aborted) return
      const socket = connectTcp({ host, port, noDelay: true, keepAlive: true, signal })
      track(socket)
      pending.add(socket)
      socket.once("connect", () => {
        clearTimeout(timer)
        next = addresses.length
        pending.delete(socket)
        for (const other of pending) other.destroy()
        resolve(socket)
      })
      socket.on("error", (error) => {
        first ??= error
        pending.delete(socket)
        if (++failed === addresses.length) reject(first)
        else attempt()
      })
      if (next < addresses.length) timer = setTimeout(attempt, nextMs)
    }
    attempt()
  })

/** TLS over a connection, verified for the name or address of the URI. */
const secured = (
  socket: Socket,
  host: string,
  ca: ReadonlyArray<string> | undefined
): Promise<TLSSocket> =>
  new Promise((resolve, reject) => {
    const secure = connectTls({
      socket,
      host,
      // An address is not a server name (RFC 6066 §3).
      ...isIP(host) === 0 ? { servername: host } : {},
      ...ca === undefined ? {} : { ca: [...ca] },
      ALPNProtocols: ["http/1.1"],
      // Set here so that no environment variable (NODE_TLS_REJECT_UNAUTHORIZED) disables it.
      rejectUnauthorized: true
    })
    const fail = (error: unknown): void => {
      socket.destroy()
      reject(error)
    }
    secure.once("error", fail)
    secure.once("close", () => reject(connectionFailureOf({ code: "ECONNRESET" })))
    secure.once("secureConnect", () => {
      secure.off("error", fail)
      resolve(secure)
    })
  })

/** The open connections of each origin, by whether their address is public. */
class OriginConnections {
  private readonly rules: AddressRules
  private readonly open = new Map<string, { public: number; other: number }>()

  constructor(rules: AddressRules) {
    this.rules = rules
  }

  /** Counts a connection until it is closed; no data comes from it after that. */
  add(origin: string, socket: Socket): void {
    const { remoteAddress = "" } = socket
    const kind = this.rules.permits(remoteAddress) ? "public" : "other"
    const counts = this.open.get(origin) ?? { public: 0, other: 0 }
    counts[kind] += 1
    this.open.set(origin, counts)
    socket.once("close", () => {
      counts[kind] -= 1
      if (counts.public + counts.other === 0) this.open.delete(origin)
    })
  }

  isPublic(origin: string): boolean {
    const counts = this.open.get(origin)
    return counts !== undefined && counts.public > 0 && counts.other === 0
  }
}

/** The addresses of a host that may be reached, in the order in which they are tried. */
const permittedAddresses = async (
  names: NameResolver,
  rules: AddressRules,
  host: string
): Promise<ReadonlyArray<string>> => {
  const found = isIP(host) === 0 ? await names.resolve(host) : [host]
  const addresses = found.filter(rules.permits)
  if (addresses.length === 0) throw new ForbiddenAddress()
  return interleaved(addresses)
}

/** The origin of a connection; undici gives an IPv6 address without its brackets. */
export const originOf = (
  { hostname, port, protocol }: Pick<buildConnector.Options, "hostname" | "port" | "protocol">
): string => {
  const authority = isIP(hostname) === 6 ? `[${hostname}]` : hostname
  return `${protocol}//${authority}${port === "" ? "" : `:${port}`}`
}

/** Resolves, checks, and connects to exactly the checked addresses. */
export const makeConnector = (
  { ca, limits, names, publicRules, rules }: ConnectorOptions
): Connector => {
  const connections = new OriginConnections(publicRules)
  const sockets = new Set<Socket>()
  const track = (socket: Socket): void => {
    sockets.add(socket)
    socket.once("close", () => sockets.delete(socket))
  }
  const open = async (
    { hostname, port, protocol }: buildConnector.Options,
    signal: AbortSignal,
    onResolved: () => void
  ): Promise<Socket> => {
    const host = hostOf(hostname)
    const isSecure = protocol === "https:"
    const addresses = await permittedAddresses(names, rules, host)
    onResolved()
    const number = port === "" ? isSecure ? 443 : 80 : Number(port)
    const socket = await race(addresses, number, limits.nextAddressMs, signal, track)
    const connected = isSecure ? await secured(socket, host, ca) : socket
    connections.add(originOf({ hostname, port, protocol }), connected)
    return connected
  }
  const connect: buildConnector.connector = (options, callback) => {
    const abort = new AbortController()
    let problem = nameTimedOut
    const timer = setTimeout(() => {
      abort.abort()
      callback(connectionFailure(problem), null)
    }, limits.connectMs)
    const onResolved = (): void => {
      problem = connectTimedOut
    }
    open(options, abort.signal, onResolved).then(
      (socket) => {
        clearTimeout(timer)
        abort.signal.aborted ? socket.destroy() : callback(null, socket)
      },
      (error: unknown) => {
        clearTimeout(timer)
        if (abort.signal.aborted) return
        abort.abort()
        callback(error instanceof ForbiddenAddress ? error : connectionFailureOf(error), null)
      }
    )
  }
  return {
    connect,
    openCount: () => sockets.size,
    isPublic: (origin) => connections.isPublic(origin),
    close: () => {
      for (const socket of sockets) socket.destroy()
    }
  }
}
