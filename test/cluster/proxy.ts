/** A TCP proxy between two processes, which can cut, stall, mute and heal their connections. */
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net"

export type Direction = "there" | "back"

export interface Proxy {
  readonly port: number
  /** Resets every connection, and accepts no new one. */
  readonly cut: () => void
  /** Forwards nothing and keeps the connections open, like a network cable that was pulled. */
  readonly stall: () => void
  /** The same in one direction only: from the client to the server, or back. */
  readonly mute: (direction: Direction) => void
  /** Forwards again, also the bytes that arrived meanwhile. */
  readonly heal: () => void
  readonly close: () => void
}

class TcpProxy implements Proxy {
  readonly server: Server
  private readonly target: number
  /** Direction of the bytes that each socket receives. */
  private readonly sockets = new Map<Socket, Direction>()
  private isCut = false
  private readonly stalled = new Set<Direction>()

  constructor(target: number) {
    this.target = target
    this.server = createServer({ noDelay: true }, (client) => this.take(client))
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port // a TCP server's address is an object
  }

  readonly cut = (): void => {
    this.isCut = true
    for (const socket of this.sockets.keys()) socket.resetAndDestroy()
  }

  readonly stall = (): void => {
    this.mute("there")
    this.mute("back")
  }

  readonly mute = (direction: Direction): void => {
    this.stalled.add(direction)
    for (const [socket, goes] of this.sockets) if (goes === direction) socket.pause()
  }

  readonly heal = (): void => {
    this.isCut = false
    this.stalled.clear()
    for (const socket of this.sockets.keys()) socket.resume()
  }

  readonly close = (): void => {
    this.cut()
    this.server.close()
  }

  private take(client: Socket): void {
    if (this.isCut) return void client.resetAndDestroy()
    const other = connect({ port: this.target, host: "127.0.0.1", noDelay: true })
    this.pass(client, other, "there")
    this.pass(other, client, "back")
  }

  /** `pipe` would resume a socket that this proxy has paused. */
  private pass(from: Socket, to: Socket, direction: Direction): void {
    this.sockets.set(from, direction)
    from.on("data", (bytes: Buffer) => {
      if (!to.write(bytes) && !this.stalled.has(direction)) {
        from.pause()
        to.once("drain", () => {
          if (!this.stalled.has(direction)) from.resume()
        })
      }
    })
    from.on("error", () => to.destroy())
    from.on("close", () => {
      this.sockets.delete(from)
      to.destroy()
    })
    if (this.stalled.has(direction)) from.pause()
  }
}

/** Starts a proxy on a free loopback port for a target port. */
export const startProxy = (target: number): Promise<Proxy> =>
  new Promise((resolve, reject) => {
    const proxy = new TcpProxy(target)
    proxy.server.once("error", reject)
    proxy.server.listen(0, "127.0.0.1", () => resolve(proxy))
  })
