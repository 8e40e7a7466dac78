/** Where the servers of a cluster run, so that each can be cut off: here, as processes. */
import { type NatsCluster, type NatsServer, startCluster } from "../nats/servers.ts"
import { type Proxy, startProxy } from "./proxy.ts"

export const serverCount = 3

export interface Site {
  readonly cluster: NatsCluster
  /** Cuts a server off from the other servers; its clients still reach it. */
  readonly cutFromServers: (server: NatsServer) => Promise<void>
  /** Cuts a server off from its clients; `links` is what is between them and it. */
  readonly cutFromClients: (server: NatsServer, links: ReadonlyArray<Proxy>) => Promise<void>
  /** Whatever a server was cut off from reaches it again. */
  readonly heal: (server: NatsServer, links: ReadonlyArray<Proxy>) => Promise<void>
  readonly close: () => Promise<void>
}

/** Proxies for the routes between servers; `of(at)` has all that lead to or from server `at`. */
class Routes {
  private readonly all: Array<
    { readonly from: number; readonly to: number; readonly proxy: Proxy }
  > = []

  readonly routed = async (ports: ReadonlyArray<number>) => {
    for (const from of ports.keys()) {
      for (const [to, port] of ports.entries()) {
        if (from !== to) this.all.push({ from, to, proxy: await startProxy(port) })
      }
    }
    return (from: number) =>
      this.all.filter((route) => route.from === from).map(({ proxy }) => proxy.port)
  }

  of(at: number): ReadonlyArray<Proxy> {
    return this.all.filter(({ from, to }) => from === at || to === at).map(({ proxy }) => proxy)
  }

  close(): void {
    for (const { proxy } of this.all) proxy.close()
  }
}

/** Servers as processes of this machine, with proxies on their routes. */
export const asProcesses = async (): Promise<Site> => {
  const routes = new Routes()
  const cluster = await startCluster(serverCount, { routed: routes.routed })
  const routesOf = (server: NatsServer) => routes.of(cluster.servers.indexOf(server))
  return {
    cluster,
    cutFromServers: async (server) => {
      for (const route of routesOf(server)) route.cut()
    },
    cutFromClients: async (_, links) => {
      for (const link of links) link.cut()
    },
    heal: async (server, links) => {
      for (const proxy of [...routesOf(server), ...links]) proxy.heal()
    },
    close: async () => {
      routes.close()
      await cluster.close()
    }
  }
}
