/** Connections to checked addresses: undici asks for them, and gets no others (protocol §5). */
import { connect as connectTcp, isIP, type Socket } from "node:net"
import { connect as connectTls, type TLSSocket } from "node:tls"
import type { buildConnector } from "undici"
import type { AddressRules } from "./addresses.ts"
import { addressesMax, type DeliveryLimits } from "./limits.ts"
import type { Names } from "./names.ts"
import { fault, faultOf, ForbiddenAddress, nameInTime, notConnectedInTime } from "./problems.ts"
import { hostOf } from "./target.ts"

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
