/** NATS servers of the tests' own: processes on free loopback ports, each with its folder. */
import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream"
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

/** Servers without a leader answer nobody: they are asked again soon. */
const ASK_MS = 500

const PORT_MIN = 11_000

const PORT_MAX = 20_000

export interface ServerOptions {
  /** Lines added to the configuration: accounts, TLS, limits. */
  readonly extra?: string
  /** Lines added within `jetstream { … }`, as `sync_interval: always`. */
  readonly jetstream?: string
  /**
   * Given the ports at which the servers take each other's routes, the ports by which each of them
   * (by its number) gets at the others: those of proxies. Servers then tell nobody of others.
   */
  readonly routed?: (
    ports: ReadonlyArray<number>
  ) => Promise<(from: number) => ReadonlyArray<number>>
  /** What a client must present; how readiness is asked too. */
  readonly user?: string
  readonly pass?: string
}

export interface NatsServer {
  readonly url: string
  readonly port: number
  /** Ends the process and waits for it: SIGKILL by default. */
  readonly stop: (signal?: NodeJS.Signals) => Promise<void>
  /** Sends a signal, and does not wait for what comes of it: SIGSTOP, SIGCONT. */
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

export interface NatsCluster {
  readonly servers: ReadonlyArray<NatsServer>
  readonly urls: ReadonlyArray<string>
  /** The server that leads a stream now. */
  readonly leaderOf: (stream: string) => Promise<NatsServer | undefined>
  /** Whether every stream has its leader, and every copy all that the leader has. */
  readonly isHealthy: () => Promise<boolean>
  /** Lets another server lead a stream. */
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

/** Whether nobody listens at this port of the loopback address. */
const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once("error", () => resolve(false))
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)))
  })

/**
 * Ports that nobody listens on, all different. Below those that a system gives to connections
 * (32768 and up on Linux) and those of the services under test (`../http/harness.ts`), so that none
 * is taken while its server is stopped.
 */
export const freePorts = async (count: number): Promise<ReadonlyArray<number>> => {
  const ports = new Set<number>()
  while (ports.size < count) {
    const port = randomInt(PORT_MIN, PORT_MAX)
    if (!ports.has(port) && await isFree(port)) ports.add(port)
  }
  return [...ports]
}

const exited = (child: ChildProcess): boolean =>
  child.exitCode !== null || child.signalCode !== null

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Ends what is left when the tests' process ends, however it ends. */
const running = new Set<ChildProcess>()

process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL")
})

interface Described {
  readonly port: number
  readonly config: string
  readonly options: ServerOptions
}

/** Whether a server takes clients at this loopback port. */
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
 * Where a server listens to others (`host:port`), and where it finds them. When these are the only
 * ways to them, nobody listens at the port that it tells of itself. `more` is taken as it is.
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

/** What servers are together, once they have elected a leader of their meta data. */
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
    isHealthy: () =>
      ask(async (jsm) => {
        const streams = await jsm.streams.list().next()
        return streams.every(({ cluster }) =>
          cluster?.leader !== undefined &&
          (cluster.replicas ?? []).every(({ current, offline }) => current && offline !== true)
        )
      }).catch(() => false),
    stepDown: (stream) =>
      ask(async (_, nc) => {
        await nc.request(`$JS.API.STREAM.LEADER.STEPDOWN.${stream}`, "", { timeout: 5_000 })
      }),
    close: async () => {
      await Promise.all(servers.map((server) => server.close()))
    }
  }
}

/** A cluster, with a leader of its meta data elected, and its servers' processes. */
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
