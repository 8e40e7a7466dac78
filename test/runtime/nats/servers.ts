/** NATS servers for tests: processes on free loopback ports, each with a folder. */
import { type JetStreamManager, jetstreamManager, type StreamInfo } from "@nats-io/jetstream"
import { connect, type NatsConnection } from "@nats-io/transport-node"
import { type ChildProcess, spawn } from "node:child_process"
import { randomInt } from "node:crypto"
import { existsSync } from "node:fs"
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"

const START_MS = 20_000

const POLL_MS = 20

/** Servers without a leader do not answer, so the request is repeated after this time. */
const ASK_MS = 500

const PORT_MIN = 11_000

/** Ports of each worker. Workers share none: a port that is found free is bound only later. */
const PORTS_EACH = 450

/** The first port is random, because another run of the tests may be active. */
let nextPort = randomInt(PORTS_EACH)

export interface ServerOptions {
  /** Lines added to the configuration: accounts, TLS, limits. */
  readonly extra?: string
  /** Lines added within `jetstream { … }`, as `sync_interval: always`. */
  readonly jetstream?: string
  /**
   * Receives the route ports of all servers. Returns, for each server by index, the ports of the
   * proxies to the others. The servers then advertise no addresses of each other.
   */
  readonly routed?: (
    ports: ReadonlyArray<number>
  ) => Promise<(from: number) => ReadonlyArray<number>>
  /** The credentials of clients; readiness checks use them too. */
  readonly user?: string
  readonly pass?: string
}

export interface NatsServer {
  readonly url: string
  readonly port: number
  /** Ends the process and waits for it: SIGKILL by default. */
  readonly stop: (signal?: NodeJS.Signals) => Promise<void>
  /** Sends a signal without waiting for its effect: SIGSTOP, SIGCONT. */
  readonly signal: (signal: NodeJS.Signals) => Promise<void>
  /** Starts the process on the same folder and port, ending one that runs. */
  readonly restart: () => Promise<void>
  /** Ends the process and removes its folder. */
  readonly close: () => Promise<void>
}

export interface ServerProcess extends NatsServer {
  readonly folder: string
  /** Of the process that runs now; undefined when none does. */
  readonly pid: number | undefined
}

/** What is wrong with the replicas of all streams now, each named with its stream. */
export interface ReplicaHealth {
  /** Streams without a leader, replicas without a connection, or why the servers do not say. */
  readonly unavailable: ReadonlyArray<string>
  /** Replicas that have not acknowledged what their leader has applied, and by how much. */
  readonly behind: ReadonlyMap<string, string>
}

const replicaHealth = (streams: ReadonlyArray<StreamInfo>): ReplicaHealth => {
  const unavailable: Array<string> = []
  const behind = new Map<string, string>()
  for (const { cluster, config } of streams) {
    if (cluster?.leader === undefined) unavailable.push(`${config.name} without a leader`)
    for (const { active, current, lag = 0, name, offline } of cluster?.replicas ?? []) {
      const replica = `${config.name} at ${name}`
      if (offline === true) unavailable.push(replica)
      if (!current) behind.set(replica, `by ${lag}, last seen ${Math.round(active / 1e6)} ms ago`)
    }
  }
  return { unavailable, behind }
}

export interface NatsCluster {
  readonly servers: ReadonlyArray<NatsServer>
  readonly urls: ReadonlyArray<string>
  /** The server that leads a stream now. */
  readonly leaderOf: (stream: string) => Promise<NatsServer | undefined>
  readonly health: () => Promise<ReplicaHealth>
  /** Makes another server the leader of a stream. */
  readonly stepDown: (stream: string) => Promise<void>
  readonly close: () => Promise<void>
}

/** `NATS_SERVER`, or `nats-server` on the path. */
export const serverBinary = (): string => {
  const named = process.env["NATS_SERVER"]
  if (named !== undefined) return named
  const folders = (process.env["PATH"] ?? "").split(delimiter)
  const found = folders.map((folder) => join(folder, "nats-server")).find(existsSync)
  if (found === undefined) throw new Error("no nats-server on the path, nor NATS_SERVER")
  return found
}

/** Whether this loopback port is free. */
export const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once("error", () => resolve(false))
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)))
  })

/**
 * Different free ports. They are below the ephemeral ports (32768 and up on Linux) and the ports of
 * the services under test (`../http/harness.ts`), so that a stopped server's port stays free.
 */
export const freePorts = async (count: number): Promise<ReadonlyArray<number>> => {
  const worker = Number(process.env["VITEST_POOL_ID"] ?? 0) % 20
  const ports: Array<number> = []
  while (ports.length < count) {
    const port = PORT_MIN + worker * PORTS_EACH + nextPort++ % PORTS_EACH
    if (await isFree(port)) ports.push(port)
  }
  return ports
}

const exited = (child: ChildProcess): boolean =>
  child.exitCode !== null || child.signalCode !== null

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Kills the remaining servers when the test process ends. */
const running = new Set<ChildProcess>()

process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL")
})

interface Described {
  readonly port: number
  readonly config: string
  readonly options: ServerOptions
}

/** Whether a server accepts clients at this loopback port. */
export const takesClients = (port: number, { pass, user }: ServerOptions = {}): Promise<boolean> =>
  connect({
    servers: [`127.0.0.1:${port}`],
    timeout: 1_000,
    reconnect: false,
    ...(user === undefined ? {} : { user }),
    ...(pass === undefined ? {} : { pass })
  }).then((nc) => nc.close().then(() => true), () => false)

const launch = async (folder: string, { config, options, port }: Described) => {
  const file = join(folder, "nats.conf")
  await writeFile(file, config)
  const logFile = join(folder, "server.log")
  const child = spawn(serverBinary(), ["-c", file, "-l", logFile], { stdio: "ignore" })
  running.add(child)
  child.once("exit", () => running.delete(child))
  const untilMs = Date.now() + START_MS
  for (;;) {
    if (exited(child)) throw new Error(`nats-server ended:\n${await readFile(logFile, "utf8")}`)
    if (await takesClients(port, options)) return child
    if (Date.now() > untilMs) throw new Error("nats-server does not answer")
    await wait(POLL_MS)
  }
}

const serverAt = async (described: (folder: string) => Described): Promise<ServerProcess> => {
  const folder = await mkdtemp(join(tmpdir(), "restante-nats-"))
  const description = described(folder)
  let child: ChildProcess | undefined = await launch(folder, description)
  let starting: Promise<ChildProcess> | undefined
  const stop = async (signal: NodeJS.Signals = "SIGKILL") => {
    // `restart` reports a start that fails.
    await starting?.catch(() => undefined)
    const ending = child
    child = undefined
    if (ending === undefined || exited(ending)) return
    const gone = new Promise((resolve) => ending.once("exit", resolve))
    ending.kill(signal)
    await gone
  }
  return {
    url: `nats://127.0.0.1:${description.port}`,
    port: description.port,
    folder,
    get pid() {
      return child?.pid
    },
    stop,
    signal: async (signal) => void child?.kill(signal),
    restart: async () => {
      await stop()
      starting = launch(folder, description)
      child = await starting
    },
    close: async () => {
      await stop()
      await rm(folder, { recursive: true, force: true })
    }
  }
}

export const configOf = (
  folder: string,
  listen: string,
  name: string,
  options: ServerOptions,
  cluster = ""
): string => `
server_name: "${name}"
listen: "${listen}"
jetstream { store_dir: "${folder}", ${options.jetstream ?? ""} }
${cluster}
${options.extra ?? ""}
`

/**
 * The route options of a server: its address (`host:port`) and the others' addresses. With proxies
 * the server advertises a port that is not in use. `more` is added unchanged.
 */
export const clusterBlock = (
  listen: string,
  routes: ReadonlyArray<string>,
  areOnlyWays: boolean,
  more = ""
): string => {
  const hidden = areOnlyWays ? `no_advertise: true, advertise: "127.0.0.1:1",` : ""
  const urls = routes.map((route) => `"nats://${route}"`).join(", ")
  return `cluster { name: restante, listen: "${listen}", ${hidden} ${more} routes: [${urls}] }`
}

/** One server. */
export const startServer = async (options: ServerOptions = {}): Promise<ServerProcess> => {
  const [port = 0] = await freePorts(1)
  const config = (folder: string) => configOf(folder, `127.0.0.1:${port}`, "n1", options)
  return serverAt((folder) => ({ port, options, config: config(folder) }))
}

/** The names of the servers, once they have elected a leader of their metadata. */
export const clusterOf = async (
  servers: ReadonlyArray<NatsServer>,
  options: ServerOptions = {}
): Promise<NatsCluster> => {
  const urls = servers.map(({ url }) => url)
  const ask = async <A>(
    question: (jsm: JetStreamManager, nc: NatsConnection) => Promise<A>,
    timeoutMs = 5_000
  ) => {
    const nc = await connect({
      servers: [...urls],
      ...(options.user === undefined ? {} : { user: options.user }),
      ...(options.pass === undefined ? {} : { pass: options.pass })
    })
    try {
      return await question(await jetstreamManager(nc, { checkAPI: false, timeout: timeoutMs }), nc)
    } finally {
      await nc.close()
    }
  }
  const untilMs = Date.now() + START_MS
  const isThere = () => ask((jsm) => jsm.getAccountInfo().then(() => true, () => false), ASK_MS)
  while (!await isThere()) {
    if (Date.now() > untilMs) throw new Error("the cluster elects no leader")
    await wait(POLL_MS)
  }
  return {
    servers,
    urls,
    leaderOf: (stream) =>
      ask(async (jsm) => {
        const { cluster } = await jsm.streams.info(stream)
        const at = Number(cluster?.leader?.slice(1) ?? 0) - 1
        return servers[at]
      }),
    health: () =>
      ask(async (jsm) => replicaHealth(await jsm.streams.list().next())).catch((
        cause: unknown
      ) => ({
        unavailable: [String(cause)],
        behind: new Map()
      })),
    stepDown: (stream) =>
      ask(async (_, nc) => {
        await nc.request(`$JS.API.STREAM.LEADER.STEPDOWN.${stream}`, "", { timeout: 5_000 })
      }),
    close: async () => {
      await Promise.all(servers.map((server) => server.close()))
    }
  }
}

/** A cluster with an elected metadata leader, and the processes of its servers. */
export const startCluster = async (
  size = 3,
  options: ServerOptions = {}
): Promise<NatsCluster & { readonly processes: ReadonlyArray<ServerProcess> }> => {
  const ports = await freePorts(2 * size)
  const routePorts = ports.slice(size)
  const routed = await options.routed?.(routePorts)
  const routesOf = (at: number) => (routed?.(at) ?? routePorts).map((port) => `127.0.0.1:${port}`)
  const servers = await Promise.all(
    ports.slice(0, size).map((port, at) =>
      serverAt((folder) => {
        const listen = `127.0.0.1:${ports[size + at]}`
        const cluster = clusterBlock(listen, routesOf(at), routed !== undefined)
        const config = configOf(folder, `127.0.0.1:${port}`, `n${at + 1}`, options, cluster)
        return { port, options, config }
      })
    )
  )
  return { ...await clusterOf(servers, options), processes: servers }
}
