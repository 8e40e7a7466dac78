/** A TCP proxy between two processes, which can cut, stall, mute and heal what is between them. */
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net"

export type Direction = "there" | "back"

export interface Proxy {
  readonly port: number
  /** Breaks every connection off, and takes no new one. */
  readonly cut: () => void
  /** Passes nothing on, and breaks nothing off: as a cable does that was pulled. */
  readonly stall: () => void
  /** The same in one direction only: from the client to the server, or back. */
  readonly mute: (direction: Direction) => void
  /** Passes on again what comes, and what had come meanwhile. */
  readonly heal: () => void
  readonly close: () => void
}

class TcpProxy implements Proxy {
  readonly server: Server
  private readonly target: number
  /** By what comes out of each, the way that it goes. */
  private readonly sockets = new Map<Socket, Direction>()
  private isCut = false
  private readonly stalled = new Set<Direction>()

  constructor(target: number) {
    this.target = target
    this.server = createServer({ noDelay: true }, (client) => this.take(client))
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port // of a TCP server that listens
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

  /** No pipe: it would resume by itself what is paused here. */
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

/** A proxy on a free loopback port before another one. */
export const startProxy = (target: number): Promise<Proxy> =>
  new Promise((resolve, reject) => {
    const proxy = new TcpProxy(target)
    proxy.server.once("error", reject)
    proxy.server.listen(0, "127.0.0.1", () => resolve(proxy))
  })
