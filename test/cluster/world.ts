/**
 * A cluster as it is deployed: nodes of the built binary on three NATS servers. Each node has its
 * own proxies, and each server can be cut off from the others.
 */
import { eventually, launch, type Service, temporaryFolder } from "../e2e/process.ts"
import type { FaultTarget } from "../faults/fault.ts"
import { type NatsCluster, type NatsServer, type ReplicaHealth,
  takesClients } from "../runtime/nats/servers.ts"
import { type Proxy, startProxy } from "./proxy.ts"
import { type ProcessSite, type Site, startProcesses } from "./site.ts"

/** One node, over all its restarts. */
export interface ClusterNode {
  readonly name: string
  readonly dataDir: string
  /** The proxies between it and each of the servers. */
  readonly links: ReadonlyArray<Proxy>
  service: Service
}

/** Busy servers may elect a new leader at any time. */
const leaderWithinMs = 120_000

/** In the order of a cluster's servers. */
const serverNames = ["n1", "n2", "n3"]

/** Options for starting a node. */
type EnvOf = (name: string) => Readonly<Record<string, string>>

export class World<Place extends Site = ProcessSite> implements FaultTarget {
  readonly nodes: Array<ClusterNode> = []
  /** Clients do not use these nodes, as a balancer avoids nodes that are not ready. */
  readonly leftOut = new Set<ClusterNode>()
  readonly site: Place
  private readonly env: EnvOf
  private readonly services: Array<Service> = []

  private constructor(site: Place, env: EnvOf) {
    this.site = site
    this.env = env
  }

  /** Starts servers as processes, and these nodes, all at once. */
  static async start(names: ReadonlyArray<string>, env: EnvOf): Promise<World> {
    return World.at(await startProcesses(), names, env)
  }

  /** Starts the nodes with servers that run elsewhere. */
  static async at<Place extends Site>(
    site: Place,
    names: ReadonlyArray<string>,
    env: EnvOf
  ): Promise<World<Place>> {
    const world = new World(site, env)
    await Promise.all(names.map((name) => world.join(name)))
    return world
  }

  get cluster(): NatsCluster {
    return this.site.cluster
  }

  /** Adds a node. */
  async join(name: string): Promise<ClusterNode> {
    const dataDir = temporaryFolder()
    const links = await Promise.all(this.cluster.servers.map(({ port }) => startProxy(port)))
    const node = { name, dataDir, links, service: this.launch(name, dataDir, links) }
    await node.service.ready()
    this.nodes.push(node)
    return node
  }

  /** Starts a stopped node again. */
  async restart(node: ClusterNode): Promise<void> {
    node.service = this.launch(node.name, node.dataDir, node.links)
    await node.service.ready()
  }

  /** Removes a node that has ended for good. */
  forget(node: ClusterNode): void {
    this.nodes.splice(this.nodes.indexOf(node), 1)
    for (const link of node.links) link.close()
  }

  /** URLs of the nodes that clients use. */
  readonly urls = (): ReadonlyArray<string> =>
    this.nodes
      .filter((node) => !this.leftOut.has(node) && !node.service.isOver)
      .filter(({ service }) => service.listening !== undefined)
      .map(({ service }) => service.url)

  readonly health = (): Promise<ReplicaHealth> => this.cluster.health()

  readonly stepDown = (stream: string): Promise<void> => this.cluster.stepDown(stream)

  readonly restartServer = async (name: string): Promise<void> => {
    await this.cluster.servers[serverNames.indexOf(name)]?.restart()
  }

  /** The server that leads a stream; waits for an election. */
  leaderOf(stream: string): Promise<NatsServer> {
    const leader = () => this.cluster.leaderOf(stream).catch(() => undefined)
    return eventually(leaderWithinMs, `${stream} has a leader`, leader)
  }

  /** The last output of every process that was a node, for a failed test. */
  get logs(): string {
    return this.services.map(({ output }) => output.slice(-3_000)).join("\n")
  }

  /** Cuts a server off from the other servers; nodes still reach it. */
  cutFromServers(server: NatsServer): Promise<void> {
    return this.site.cutFromServers(server)
  }

  /** Cuts a server off from the other servers and from the nodes. */
  async cutOff(server: NatsServer): Promise<void> {
    await this.site.cutFromServers(server)
    await this.site.cutFromClients(server, this.linksTo(server))
  }

  /** Heals or cuts the connections between nodes and one server. */
  async isReached(server: NatsServer): Promise<boolean> {
    const ways = await Promise.all(this.linksTo(server).map(({ port }) => takesClients(port)))
    return ways.includes(true)
  }

  /** Undoes {@link cutFromServers} and {@link cutOff}. */
  heal(server: NatsServer): Promise<void> {
    return this.site.heal(server, this.linksTo(server))
  }

  /** Ends everything but the nodes, which end with the test's process or its `cleanUp`. */
  async close(): Promise<void> {
    await Promise.all(this.nodes.map(({ service }) => service.kill()))
    for (const { links } of this.nodes) for (const link of links) link.close()
    await this.site.close()
  }

  private linksTo(server: NatsServer): ReadonlyArray<Proxy> {
    const at = this.cluster.servers.indexOf(server)
    return this.nodes.flatMap(({ links }) => links.slice(at, at + 1))
  }

  private launch(name: string, dataDir: string, links: ReadonlyArray<Proxy>): Service {
    const NATS_URL = links.map(({ port }) => `nats://127.0.0.1:${port}`).join(",")
    const service = launch({ dataDir, env: { NATS_URL, NODE_ID: name, ...this.env(name) } })
    this.services.push(service)
    return service
  }
}
