/**
 * The servers of a cluster in containers. Each has a network for its clients, which publishes its
 * port on this machine. All share one network for their routes. To cut a server off, the test
 * disconnects its container from a network.
 */
import { GenericContainer, getContainerRuntimeClient, Wait } from "testcontainers"
import type { Docker } from "../docker/daemon.ts"
import { inImage } from "../docker/image.ts"
import { eventually, within } from "../e2e/process.ts"
import { clusterBlock, clusterOf, configOf, freePorts, type NatsServer,
  takesClients } from "../runtime/nats/servers.ts"
import { serverCount, type Site } from "./site.ts"

const doneWithinMs = 120_000

type Client = Awaited<ReturnType<typeof getContainerRuntimeClient>>
type Container = ReturnType<Client["container"]["getById"]>
type Network = Awaited<ReturnType<Client["network"]["create"]>>

const done = <A>(what: string, promise: Promise<A>) => within(doneWithinMs, what, promise)

/** A network; this machine reaches it unless it is internal. */
const createNetwork = async (
  { label }: Docker,
  name: string,
  isInternal: boolean
): Promise<Network> => {
  const client = await getContainerRuntimeClient()
  return client.network.create({
    Name: `restante-${label.value}-${name}`,
    Driver: "bridge",
    Internal: isInternal,
    Labels: { [label.name]: label.value },
    Options: { "com.docker.network.bridge.host_binding_ipv4": "127.0.0.1" }
  })
}

/** Disconnects a container from a network, or connects it. */
const leave = (network: Network, id: string): Promise<unknown> =>
  done("a container leaves a network", network.disconnect({ Container: id, Force: true }))

const enter = (network: Network, id: string, Aliases: Array<string>): Promise<unknown> =>
  done(
    "a container enters a network",
    network.connect({ Container: id, EndpointConfig: { Aliases } })
  )

interface Described {
  readonly docker: Docker
  readonly image: string
  /** The port for clients on this machine. */
  readonly port: number
  readonly clients: Network
  /** The other networks that it joins before it starts, and its name there. */
  readonly others?: readonly [Network, alias: string]
  readonly config: string
}

/** In its networks from its start. It resolves no name from outside of them. */
class ServerContainer extends GenericContainer {
  private readonly others: Described["others"]

  constructor({ clients, config, docker: { label }, image, others, port }: Described) {
    super(image)
    this.others = others
    this.hostConfig.Dns = ["127.0.0.1"]
    this.withNetworkMode(clients.id)
      .withExposedPorts({ container: inImage.port, host: port })
      .withCopyContentToContainer([{ content: config, target: inImage.config }])
      .withLabels({ [label.name]: label.value })
      .withWaitStrategy(Wait.forLogMessage("Server is ready"))
      .withStartupTimeout(doneWithinMs)
  }

  protected override async containerCreated(id: string): Promise<void> {
    if (this.others !== undefined) await enter(this.others[0], id, [this.others[1]])
  }
}

const startContainer = async (described: Described): Promise<Container> => {
  const started = await new ServerContainer(described).start()
  const client = await getContainerRuntimeClient()
  return client.container.getById(started.getId())
}

const takesClientsSoon = (port: number) =>
  eventually(
    doneWithinMs,
    "a server in a container takes clients",
    async () => await takesClients(port) || undefined
  )

/** A server in a container; SIGSTOP and SIGCONT affect the whole container. */
const serverIn = (container: Container, port: number): NatsServer => {
  const stop = async (signal: NodeJS.Signals = "SIGKILL") => {
    const { State } = await container.inspect()
    if (!State.Running) return
    const over = container.wait()
    await container.kill({ signal })
    await done("a container ends", over)
  }
  return {
    url: `nats://127.0.0.1:${port}`,
    port,
    stop,
    signal: async (signal) => {
      if (signal === "SIGSTOP") await done("a container is paused", container.pause())
      else if (signal === "SIGCONT") await done("a container goes on", container.unpause())
      else await container.kill({ signal })
    },
    restart: async () => {
      await stop()
      await done("a container starts", container.start())
      await takesClientsSoon(port)
    },
    close: () => done("a container is gone", container.remove({ force: true, v: true }))
  }
}

/** Starts and removes a single server; fails where containers cannot run or be reached. */
export const tryContainer = async (docker: Docker, image: string): Promise<void> => {
  const [port = 0] = await freePorts(1)
  const clients = await createNetwork(docker, "tried", false)
  const config = `listen: "0.0.0.0:${inImage.port}"`
  const container = await startContainer({ docker, image, port, clients, config })
  await takesClientsSoon(port)
  await container.remove({ force: true, v: true })
  await clients.remove()
}

/**
 * A server that joins the network again may have another address. Only a ping shows the others that
 * the old address is dead, which takes more than a minute by default.
 */
const pings = `ping_interval: "2s", ping_max: 2,`

const routeName = (at: number): string => `route-n${at + 1}`

const configAt = (at: number): string => {
  const others = Array.from({ length: serverCount }, (_, other) => other)
    .filter((other) => other !== at)
    .map((other) => `${routeName(other)}:${inImage.routePort}`)
  const cluster = clusterBlock(`0.0.0.0:${inImage.routePort}`, others, true, pings)
  return configOf(inImage.data, `0.0.0.0:${inImage.port}`, `n${at + 1}`, {}, cluster)
}

interface Placed {
  readonly server: NatsServer
  readonly container: Container
  readonly clients: Network
  readonly alias: string
  /** The networks that it is disconnected from. */
  readonly left: Set<Network>
}

const place = async (
  options: Pick<Described, "docker" | "image" | "port">,
  at: number,
  routes: Network
): Promise<Placed> => {
  const clients = await createNetwork(options.docker, `clients-n${at + 1}`, false)
  const alias = routeName(at)
  const config = configAt(at)
  const container = await startContainer({ ...options, clients, others: [routes, alias], config })
  const { port } = options
  return { server: serverIn(container, port), container, clients, alias, left: new Set() }
}

/** Three servers in containers of this image. */
export const startContainers = async (docker: Docker, image: string): Promise<Site> => {
  const routes = await createNetwork(docker, "routes", true)
  const ports = await freePorts(serverCount)
  const all = await Promise.all(ports.map((port, at) => place({ docker, image, port }, at, routes)))
  const placed = (server: NatsServer): Placed => {
    const found = all.find((one) => one.server === server)
    if (found === undefined) throw new Error("no server of these containers")
    return found
  }
  const cut = async ({ container, left }: Placed, network: Network) => {
    if (left.has(network)) return
    left.add(network)
    await leave(network, container.id)
  }
  return {
    cluster: await clusterOf(all.map(({ server }) => server)),
    cutFromServers: (server) => cut(placed(server), routes),
    cutFromClients: (server) => cut(placed(server), placed(server).clients),
    heal: async (server) => {
      const { alias, container, left } = placed(server)
      for (const network of left) {
        await enter(network, container.id, network === routes ? [alias] : [])
      }
      left.clear()
    },
    close: async () => {
      await Promise.all(all.map(({ server }) => server.close()))
      await Promise.all([routes, ...all.map(({ clients }) => clients)].map((one) => one.remove()))
    }
  }
}
