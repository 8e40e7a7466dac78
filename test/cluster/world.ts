/**
 * A cluster as it is deployed: nodes of the built binary on three NATS servers, each node behind
 * proxies of its own, and the servers' routes behind proxies too, so that anything can be cut off.
 */
import { type NatsCluster, type NatsServer, startCluster } from "../nats/servers.ts"
import { launch, type Service, temporaryFolder } from "../e2e/process.ts"
import { type Proxy, startProxy } from "./proxy.ts"

/** One node, over all its starts. */
export interface ClusterNode {
  readonly name: string
  readonly dataDir: string
  /** What is between it and each of the servers. */
  readonly links: ReadonlyArray<Proxy>
  service: Service
}

const serverCount = 3

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

export class World {
  readonly nodes: Array<ClusterNode> = []
  readonly cluster: NatsCluster
  private readonly routes: Routes
  private readonly env: Readonly<Record<string, string>>
  private readonly services: Array<Service> = []

  private constructor(
    cluster: NatsCluster,
    routes: Routes,
    env: Readonly<Record<string, string>>
  ) {
    this.cluster = cluster
    this.routes = routes
    this.env = env
  }

  /** Servers and these nodes, all of which start at once. */
  static async start(
    names: ReadonlyArray<string>,
    env: Readonly<Record<string, string>> = {}
  ): Promise<World> {
    const routes = new Routes()
    const cluster = await startCluster(serverCount, { routed: routes.routed })
    const world = new World(cluster, routes, env)
    await Promise.all(names.map((name) => world.join(name)))
    return world
  }

  /** A node that was not there before. */
  async join(name: string): Promise<ClusterNode> {
    const dataDir = temporaryFolder()
    const links = await Promise.all(this.cluster.servers.map(({ port }) => startProxy(port)))
    const node = { name, dataDir, links, service: this.launch(name, dataDir, links) }
    await node.service.ready()
    this.nodes.push(node)
    return node
  }

  /** The same node again. */
  async restart(node: ClusterNode): Promise<void> {
    node.service = this.launch(node.name, node.dataDir, node.links)
    await node.service.ready()
  }

  /** Forgets a node that has ended for good. */
  forget(node: ClusterNode): void {
    this.nodes.splice(this.nodes.indexOf(node), 1)
    for (const link of node.links) link.close()
  }

  /** Where the nodes listen, without those that are left out. */
  urls(...without: ReadonlyArray<ClusterNode>): ReadonlyArray<string> {
    return this.nodes
      .filter((node) => !without.includes(node) && !node.service.isOver)
      .filter(({ service }) => service.listening !== undefined)
      .map(({ service }) => service.url)
  }

  /** The server that leads a stream. */
  async leaderOf(stream: string): Promise<NatsServer> {
    const leader = await this.cluster.leaderOf(stream)
    if (leader === undefined) throw new Error(`${stream} has no leader`)
    return leader
  }

  /** The last of what every process wrote that has been a node, for a test that fails. */
  get logs(): string {
    return this.services.map(({ output }) => output.slice(-3_000)).join("\n")
  }

  /** What is between a server and the other servers. */
  routesOf(server: NatsServer): ReadonlyArray<Proxy> {
    return this.routes.of(this.cluster.servers.indexOf(server))
  }

  /** Ends all but the nodes, which end with the test's process or its `cleanUp`. */
  async close(): Promise<void> {
    await Promise.all(this.nodes.map(({ service }) => service.kill()))
    for (const { links } of this.nodes) for (const link of links) link.close()
    this.routes.close()
    await this.cluster.close()
  }

  private launch(name: string, dataDir: string, links: ReadonlyArray<Proxy>): Service {
    const NATS_URL = links.map(({ port }) => `nats://127.0.0.1:${port}`).join(",")
    const service = launch({ dataDir, env: { NATS_URL, NODE_ID: name, ...this.env } })
    this.services.push(service)
    return service
  }
}
