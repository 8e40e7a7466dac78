/** Where the servers of a cluster run, and how to cut each off. Here they run as processes. */
import { rm } from "node:fs/promises"
import { join } from "node:path"
import { type NatsCluster, type NatsServer, startCluster } from "../runtime/nats/servers.ts"
import { type Proxy, startProxy } from "./proxy.ts"

export const serverCount = 3

export interface Site {
  readonly cluster: NatsCluster
  /** Cuts a server off from the other servers; its clients still reach it. */
  readonly cutFromServers: (server: NatsServer) => Promise<void>
  /** Cuts a server off from its clients; `links` are the proxies between them. */
  readonly cutFromClients: (server: NatsServer, links: ReadonlyArray<Proxy>) => Promise<void>
  /** Undoes every cut of a server. */
  readonly heal: (server: NatsServer, links: ReadonlyArray<Proxy>) => Promise<void>
  readonly close: () => Promise<void>
}

/** More faults, of servers that are processes of this machine. */
export interface ProcessSite extends Site {
  /** Drops the messages from a server to the other servers; the other direction still works. */
  readonly mute: (server: NatsServer) => Promise<void>
  /** Restarts a server without its stored data. */
  readonly wipe: (server: NatsServer) => Promise<void>
}

/** Proxies for the routes between servers; `of(at)` has all routes of server `at`. */
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

  /** Drops the bytes from server `at` to the others. */
  mute(at: number): void {
    for (const { from, proxy, to } of this.all) {
      if (from === at) proxy.mute("there")
      if (to === at) proxy.mute("back")
    }
  }

  close(): void {
    for (const { proxy } of this.all) proxy.close()
  }
}

/** Servers as processes of this machine, with proxies on their routes. */
export const startProcesses = async (): Promise<ProcessSite> => {
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
    mute: async (server) => routes.mute(cluster.servers.indexOf(server)),
    wipe: async (server) => {
      await server.stop()
      const found = cluster.processes[cluster.servers.indexOf(server)]
      if (found === undefined) throw new Error("no server of this cluster")
      await rm(join(found.folder, "jetstream"), { recursive: true })
      await server.restart()
    },
    close: async () => {
      routes.close()
      await cluster.close()
    }
  }
}
