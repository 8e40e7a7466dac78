/**
 * The connection to NATS that storage, transport, blobs, records and the registry of a node share.
 */
import { jetstream, type JetStreamClient, type JetStreamManager,
  jetstreamManager } from "@nats-io/jetstream"
import { type Authenticator, connect, type ConnectionOptions, credsAuthenticator,
  type NatsConnection, nkeyAuthenticator, type Status } from "@nats-io/transport-node"
import { Context, Effect, Layer, Schema } from "effect"
import { readFileSync } from "node:fs"
import { StorageUnavailable } from "../../actor/index.ts"
import { connectTimeoutMs, headerReserveBytes, pingIntervalMs, pingsOutMax, reconnectWaitMs,
  repeatedErrorLogMs, replicasCluster } from "../../limits.ts"
import { type ReadBarrier, ReadBarriers } from "./read-barriers.ts"
import { Requests } from "./requests.ts"
import { TurnWrites } from "./turn-writes.ts"

/**
 * Which servers a node connects to, and by which credentials: a user with a password, a token, an
 * nkey, or a file; or none.
 */
export interface NatsOptions {
  /** `nats://host:port` or `tls://host:port`, any server of the cluster. */
  readonly servers: ReadonlyArray<string>
  /** Shown by the servers' monitoring. */
  readonly name: string
  readonly user?: string
  readonly pass?: string
  readonly token?: string
  /** Seed of an nkey, `SU…`. */
  readonly nkeySeed?: string
  /** File of decentralized credentials (JWT and seed). */
  readonly credsFile?: string
  /** TLS is required of every server where this is set, also when it is empty. */
  readonly tls?: { readonly caFile?: string; readonly certFile?: string; readonly keyFile?: string }
  /** Connects only to `servers`, and not to others that these announce. */
  readonly ignoreAnnounced?: boolean
  /** Replicas of each new stream; by default three where the servers are a cluster, else one. */
  readonly replicas?: number
}

/** A connection to NATS, which all ports of a node share. */
export interface NatsApi {
  readonly nc: NatsConnection
  /** Publishes all messages of one turn of the event loop in one write. */
  readonly writes: TurnWrites
  readonly js: JetStreamClient
  readonly jsm: JetStreamManager
  /** Replicas of a new stream. */
  readonly replicas: number
  /**
   * Publishes and returns the reply. `headersText` is a whole header block:
   * `NATS/1.0\r\nName: value\r\n\r\n`. Rejects with NoReply at the time limit (whether the message
   * arrived is unknown), at once when nobody is subscribed, and when the connection is lost.
   */
  readonly request: Requests["request"]
  /** Publishes and returns all replies up to one with a status; rejects as `request` does. */
  readonly requestMany: Requests["requestMany"]
  /**
   * A message in the stream that a majority has stored since the call; undefined where there is
   * only one server, which needs no read barrier.
   */
  readonly readBarrier: (stream: string) => Promise<ReadBarrier | undefined>
  /** Bytes of a message's data that certainly fit beside its headers; the servers limit them. */
  readonly dataBytesMax: () => number
  /** Publishes without a reply. */
  readonly publish: (subject: string, data: Uint8Array | string, headersText?: string) => void
  /** False while the connection is lost. */
  readonly isConnected: () => boolean
}

/** The connection; one for each node. */
export class Nats extends Context.Service<Nats, NatsApi>()("restante/runtime/nats/Nats") {}

/** The servers are older than 2.12, which brought atomic batches. */
export class NatsTooOld extends Schema.TaggedError<NatsTooOld>()("NatsTooOld", {
  found: Schema.String,
  wanted: Schema.String
}) {}

const oldestVersion = [2, 12] as const

export const isTooOld = (version: string): boolean => {
  const [oldestMajor, oldestMinor] = oldestVersion
  const [major = 0, minor = 0] = version.split(".").map((part) => Number.parseInt(part, 10))
  // An unreadable version (NaN) counts as too old.
  return !(major > oldestMajor || (major === oldestMajor && minor >= oldestMinor))
}

type ReconnectPolicy = Required<
  Pick<ConnectionOptions, "reconnectDelayHandler" | "reconnectToServer">
>

/**
 * Connects to the servers in turn, to each at most every `reconnectWaitMs` by the monotonic clock
 * `nowMs`. The client's own policy uses the wall clock: after that was set back by an hour, it
 * would try no server for an hour. For one connection.
 */
export const reconnectPolicy = (nowMs = () => performance.now()): ReconnectPolicy => {
  const triedMs = new Map<string, number>()
  const lastTry = ({ hostname, port }: { readonly hostname: string; readonly port: number }) =>
    triedMs.get(`${hostname}:${port}`) ?? -Infinity
  return {
    // The policy chooses by `nowMs`, so the client adds no delay.
    reconnectDelayHandler: () => -Infinity,
    reconnectToServer: (servers) => {
      // Servers that were never tried stay in the client's order.
      const [server] = servers.toSorted((one, other) => {
        const [before, after] = [lastTry(one), lastTry(other)]
        return before === after ? 0 : before - after
      })
      if (server === undefined) return null
      const delay = Math.max(0, lastTry(server) + reconnectWaitMs - nowMs())
      triedMs.set(`${server.hostname}:${server.port}`, nowMs() + delay)
      return { server, delay }
    }
  }
}

/** Chooses what to log of a connection's events; failed reconnects are not logged. */
class ConnectionLog {
  private isLost = false
  private readonly loggedMs = new Map<string, number>()

  log(status: Status): Effect.Effect<void> {
    switch (status.type) {
      case "disconnect":
        if (this.isLost) return Effect.void
        this.isLost = true
        return Effect.logWarning(`the connection to NATS at ${status.server} was lost`)
      case "reconnect":
        this.isLost = false
        return Effect.logInfo(`connected to NATS at ${status.server} again`)
      case "error":
        return this.isRepeated(status.error.name)
          ? Effect.void
          : Effect.logError(`NATS: ${status.error.message}`)
      default:
        return Effect.void
    }
  }

  /** A user without permissions gets an error for every message. */
  private isRepeated(name: string): boolean {
    const nowMs = performance.now()
    const isRepeated = nowMs - (this.loggedMs.get(name) ?? -Infinity) < repeatedErrorLogMs
    if (!isRepeated) this.loggedMs.set(name, nowMs)
    return isRepeated
  }
}

/** Logs the events of the connection until it is closed. */
const logConnectionEvents = (nc: NatsConnection): Effect.Effect<void> =>
  Effect.map(Effect.context<never>(), (context) => {
    const run = Effect.runForkWith(context)
    const log = new ConnectionLog()
    void (async () => {
      for await (const status of nc.status()) run(log.log(status))
    })()
  })

const authenticatorOf = (options: NatsOptions): Authenticator | undefined => {
  if (options.credsFile !== undefined) return credsAuthenticator(readFileSync(options.credsFile))
  if (options.nkeySeed === undefined) return undefined
  return nkeyAuthenticator(new TextEncoder().encode(options.nkeySeed))
}

const connectionOptions = (options: NatsOptions): ConnectionOptions => {
  const authenticator = authenticatorOf(options)
  const { ignoreAnnounced = false, name, pass, servers, tls, token, user } = options
  return {
    servers: [...servers],
    name,
    ignoreClusterUpdates: ignoreAnnounced,
    timeout: connectTimeoutMs,
    maxReconnectAttempts: -1,
    ...reconnectPolicy(),
    pingInterval: pingIntervalMs,
    maxPingOut: pingsOutMax,
    ignoreAuthErrorAbort: true,
    noAsyncTraces: true,
    ...(user === undefined ? {} : { user }),
    ...(pass === undefined ? {} : { pass }),
    ...(token === undefined ? {} : { token }),
    ...(authenticator === undefined ? {} : { authenticator }),
    ...(tls === undefined ? {} : { tls: { ...tls } })
  }
}

const isSingleServer = (nc: NatsConnection): boolean => (nc.info?.cluster ?? "") === ""

/**
 * Fails when the servers do not admit this node. Servers announce each other before they
 * authenticate: the client, which tries each known server once, would learn of the next server
 * again and again, and be refused by a cluster for ever. So the first connection ignores
 * announced servers.
 */
const assertAdmitted = async (options: ConnectionOptions): Promise<void> => {
  const nc = await connect({ ...options, ignoreClusterUpdates: true, reconnect: false })
  await nc.close()
}

const open = async (options: NatsOptions): Promise<NatsApi | NatsTooOld> => {
  await assertAdmitted(connectionOptions(options))
  const nc = await connect(connectionOptions(options))
  const version = nc.info?.version ?? "unknown"
  if (isTooOld(version)) {
    await nc.close()
    return new NatsTooOld({ found: version, wanted: oldestVersion.join(".") })
  }
  return {
    ...streamAccess(nc, options),
    js: jetstream(nc),
    jsm: await jetstreamManager(nc, { checkAPI: false })
  }
}

/**
 * Requests and read barriers on a connection: all that storage uses of {@link NatsApi}. The
 * simulation puts them on a separate connection.
 */
export const streamAccess = (
  nc: NatsConnection,
  { name, replicas }: Pick<NatsOptions, "name" | "replicas">
): Omit<NatsApi, "js" | "jsm"> => {
  const writes = new TurnWrites(nc)
  const requests = new Requests(nc, writes)
  const barriers = new ReadBarriers(requests, name)
  return {
    nc,
    writes,
    // Not by the servers of this moment: a stream that is made too early would keep one replica.
    replicas: replicas ?? (isSingleServer(nc) ? 1 : replicasCluster),
    request: (...request) => requests.request(...request),
    requestMany: (...request) => requests.requestMany(...request),
    publish: (subject, data, headersText) => {
      writes.publish(subject, data, headersText === undefined ? {} : { headersText })
    },
    dataBytesMax: () => (nc.info?.max_payload ?? Infinity) - headerReserveBytes,
    readBarrier: async (stream) => isSingleServer(nc) ? undefined : barriers.create(stream),
    isConnected: () => requests.isConnected
  }
}

const asUnavailable = (error: unknown): StorageUnavailable =>
  new StorageUnavailable({
    detail: `NATS: ${error instanceof Error ? error.message : String(error)}`
  })

/** Connects, reconnects for ever, and closes with the layer. */
export const connection = (
  options: NatsOptions
): Layer.Layer<Nats, StorageUnavailable | NatsTooOld> =>
  Layer.effect(
    Nats,
    Effect.acquireRelease(
      Effect.flatMap(
        Effect.tryPromise({ try: () => open(options), catch: asUnavailable }),
        (opened): Effect.Effect<NatsApi, NatsTooOld> =>
          opened instanceof NatsTooOld
            ? Effect.fail(opened)
            : Effect.as(logConnectionEvents(opened.nc), opened)
      ),
      ({ nc, writes }) =>
        Effect.promise(() => {
          writes.flush()
          return nc.close().catch(() => undefined)
        })
    )
  )
