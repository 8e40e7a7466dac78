/** A TCP proxy between two processes, which can cut, stall and heal what is between them. */
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net"

export interface Proxy {
  readonly port: number
  /** Breaks every connection off, and takes no new one. */
  readonly cut: () => void
  /** Passes nothing on, and breaks nothing off: as a cable does that was pulled. */
  readonly stall: () => void
  /** Passes on again what comes, and what had come meanwhile. */
  readonly heal: () => void
  readonly close: () => void
}

class TcpProxy implements Proxy {
  readonly server: Server
  private readonly target: number
  private readonly sockets = new Set<Socket>()
  private state: "whole" | "cut" | "stalled" = "whole"

  constructor(target: number) {
    this.target = target
    this.server = createServer({ noDelay: true }, (client) => this.take(client))
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port // of a TCP server that listens
  }

  readonly cut = (): void => {
    this.state = "cut"
    for (const socket of this.sockets) socket.resetAndDestroy()
  }

  readonly stall = (): void => {
    this.state = "stalled"
    for (const socket of this.sockets) socket.pause()
  }

  readonly heal = (): void => {
    this.state = "whole"
    for (const socket of this.sockets) socket.resume()
  }

  readonly close = (): void => {
    this.cut()
    this.server.close()
  }

  private take(client: Socket): void {
    if (this.state === "cut") return void client.resetAndDestroy()
    const other = connect({ port: this.target, host: "127.0.0.1", noDelay: true })
    this.pass(client, other)
    this.pass(other, client)
  }

  /** No pipe: it would resume by itself what is paused here. */
  private pass(from: Socket, to: Socket): void {
    this.sockets.add(from)
    from.on("data", (bytes: Buffer) => {
      if (!to.write(bytes) && this.state === "whole") {
        from.pause()
        to.once("drain", () => {
          if (this.state === "whole") from.resume()
        })
      }
    })
    from.on("error", () => to.destroy())
    from.on("close", () => {
      this.sockets.delete(from)
      to.destroy()
    })
    if (this.state === "stalled") from.pause()
  }
}

/** A proxy on a free loopback port before another one. */
export const startProxy = (target: number): Promise<Proxy> =>
  new Promise((resolve, reject) => {
    const proxy = new TcpProxy(target)
    proxy.server.once("error", reject)
    proxy.server.listen(0, "127.0.0.1", () => resolve(proxy))
  })
