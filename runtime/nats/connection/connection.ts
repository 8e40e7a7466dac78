/**
 * The connection to NATS that storage, transport, blobs, records and placement share, with a
 * request of its own: one subscription takes all replies, and headers are sent as they are. That
 * costs about a sixth of the client's own request in CPU time.
 */
import { jetstream, jetstreamManager } from "@nats-io/jetstream"
import { type Authenticator, connect, type ConnectionOptions, credsAuthenticator,
  type NatsConnection, nkeyAuthenticator, type Status,
  type TlsOptions } from "@nats-io/transport-node"
import { Context, Effect, Layer, Schema } from "effect"
import { readFileSync } from "node:fs"
import { StorageUnavailable } from "../../actor/index.ts"
import { connectTimeoutMs, pingIntervalMs, pingsOutMax, readTimeoutMs, reconnectWaitMs,
  repeatedErrorLogMs, replicasCluster } from "../../limits.ts"
import { type NatsApi, rawHeaders, type ReadBarrier, Requests, resendUntilAnswered,
  retryUntilDeadline } from "./requests.ts"

type ReconnectPolicy = Required<
  Pick<ConnectionOptions, "reconnectDelayHandler" | "reconnectToServer">
>

/**
 * Dials the servers in turn, each after RECONNECT_WAIT_MS at the soonest, by the monotonic clock
 * `nowMs`. For one connection.
 */
export const reconnectPolicy = (nowMs = () => performance.now()): ReconnectPolicy => {
  const dialledMs = new Map<string, number>()
  const lastOf = ({ hostname, port }: { readonly hostname: string; readonly port: number }) =>
    dialledMs.get(`${hostname}:${port}`) ?? -Infinity
  return {
    // What the client itself waits is over, whatever its clock says.
    reconnectDelayHandler: () => -Infinity,
    reconnectToServer: (servers) => {
      // In the client's order where neither was dialled.
      const [server] = servers.toSorted((one, other) => {
        const [before, after] = [lastOf(one), lastOf(other)]
        return before === after ? 0 : before - after
      })
      if (server === undefined) return null
      const delay = Math.max(0, lastOf(server) + reconnectWaitMs - nowMs())
      dialledMs.set(`${server.hostname}:${server.port}`, nowMs() + delay)
      return { server, delay }
    }
  }
}

/* What becomes of a connection, for the log of who runs the node. */

class ConnectionEvents {
  private isLost = false
  private readonly toldMs = new Map<string, number>()

  /** What is to be logged of this, if anything; failed attempts to connect again are not. */
  of(status: Status): Effect.Effect<void> {
    switch (status.type) {
      case "disconnect":
        if (this.isLost) return Effect.void
        this.isLost = true
        return Effect.logWarning(`the connection to NATS at ${status.server} was lost`)
      case "reconnect":
        this.isLost = false
        return Effect.logInfo(`connected to NATS at ${status.server} again`)
      case "error":
        return this.isNews(status.error.name)
          ? Effect.logError(`NATS: ${status.error.message}`)
          : Effect.void
      default:
        return Effect.void
    }
  }

  /** A user without rights is told so upon every message. */
  private isNews(name: string): boolean {
    const nowMs = performance.now()
    const isOld = nowMs - (this.toldMs.get(name) ?? -Infinity) < repeatedErrorLogMs
    if (!isOld) this.toldMs.set(name, nowMs)
    return !isOld
  }
}

/** Logs what becomes of the connection, until it is closed. */
export const logConnectionEvents = (nc: NatsConnection): Effect.Effect<void> =>
  Effect.map(Effect.context<never>(), (context) => {
    const run = Effect.runForkWith(context)
    const tidings = new ConnectionEvents()
    void (async () => {
      for await (const status of nc.status()) run(tidings.of(status))
    })()
  })

type Sending = Pick<NatsApi, "request">

interface Acknowledgement {
  readonly seq?: number
  readonly error?: { readonly description: string }
}

class StreamBarriers {
  private readonly sending: Sending
  private readonly subject: string
  private flying: Promise<ReadBarrier> | undefined
  private next: Promise<ReadBarrier> | undefined

  constructor(sending: Sending, subject: string) {
    this.sending = sending
    this.subject = subject
  }

  /** One that is sent from now on. */
  make(): Promise<ReadBarrier> {
    if (this.flying === undefined) return this.fly()
    this.next ??= this.flying.then(() => undefined, () => undefined).then(() => {
      this.next = undefined
      return this.fly()
    })
    return this.next
  }

  private fly(): Promise<ReadBarrier> {
    const flying = this.send().finally(() => {
      if (this.flying === flying) this.flying = undefined
    })
    this.flying = flying
    return flying
  }

  /** Any of several marks will do: one is sent again and again while nobody leads. */
  private send(): Promise<ReadBarrier> {
    const { subject } = this
    return retryUntilDeadline(() =>
      resendUntilAnswered(async () => {
        const reply = await this.sending.request(subject, "", undefined, readTimeoutMs)
        // The servers' own answer to a publish.
        const { error, seq } = JSON.parse(reply.string()) as Acknowledgement
        if (seq === undefined) throw new Error(`${subject}: ${error?.description}`)
        return { subject, seq }
      })
    )
  }
}

/** The marks of one node, of which each stream has one. */
export class ReadBarriers {
  private readonly sending: Sending
  private readonly node: string
  private readonly marks = new Map<string, StreamBarriers>()

  /** `node`: the connection's name; the mark is written over at each use. */
  constructor(sending: Sending, node: string) {
    this.sending = sending
    this.node = node.replace(/[^A-Za-z0-9_-]/g, "_")
  }

  of(stream: string): Promise<ReadBarrier> {
    const known = this.marks.get(stream)
    const subject = `$${stream.replace("_", ".")}._seen.${this.node}`
    const marks = known ?? new StreamBarriers(this.sending, subject)
    if (known === undefined) this.marks.set(stream, marks)
    return marks.make()
  }
}

/*
 * Which server is dialled next, and when. The client's own pace goes by the wall clock: after that
 * was set back by an hour it would dial no server for an hour.
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
  /** File of decentralised credentials (JWT and seed). */
  readonly credsFile?: string
  readonly tls?: { readonly caFile?: string; readonly certFile?: string; readonly keyFile?: string }
  /** Copies of each stream that is made; three where the servers are a cluster, else one. */
  readonly replicas?: number
}

/** The connection; one for each node. */
export class Nats extends Context.Service<Nats, NatsApi>()("restante/runtime/nats/Nats") {}

/** The servers are older than 2.12, which brought atomic batches. */
export class NatsTooOld extends Schema.TaggedError<NatsTooOld>()("NatsTooOld", {
  found: Schema.String,
  wanted: Schema.String
}) {}

/** The oldest servers with atomic batch publish. */
export const oldestVersion = [2, 12] as const

export const isTooOld = (version: string): boolean => {
  const [major = 0, minor = 0] = version.split(".").map((part) => Number.parseInt(part, 10))
  // A version that cannot be read (NaN) is none that is known to be new enough.
  return !(major > oldestVersion[0] || (major === oldestVersion[0] && minor >= oldestVersion[1]))
}

const authenticatorOf = (options: NatsOptions): Authenticator | undefined => {
  if (options.credsFile !== undefined) return credsAuthenticator(readFileSync(options.credsFile))
  if (options.nkeySeed === undefined) return undefined
  return nkeyAuthenticator(new TextEncoder().encode(options.nkeySeed))
}

const tlsOf = ({ tls }: NatsOptions): TlsOptions | undefined =>
  tls === undefined ? undefined : { ...tls }

const connectionOptions = (options: NatsOptions): ConnectionOptions => {
  const authenticator = authenticatorOf(options)
  const tls = tlsOf(options)
  return {
    servers: [...options.servers],
    name: options.name,
    timeout: connectTimeoutMs,
    maxReconnectAttempts: -1,
    ...reconnectPolicy(),
    pingInterval: pingIntervalMs,
    maxPingOut: pingsOutMax,
    ignoreAuthErrorAbort: true,
    noAsyncTraces: true,
    ...(options.user === undefined ? {} : { user: options.user }),
    ...(options.pass === undefined ? {} : { pass: options.pass }),
    ...(options.token === undefined ? {} : { token: options.token }),
    ...(authenticator === undefined ? {} : { authenticator }),
    ...(tls === undefined ? {} : { tls })
  }
}

const unavailable = (error: unknown): StorageUnavailable =>
  new StorageUnavailable({
    detail: `NATS: ${error instanceof Error ? error.message : String(error)}`
  })

/**
 * Copies of a stream by default. A cluster is taken to be one of three servers or more, however
 * many of them are there just now: a stream made too early would keep one copy for ever.
 */
const replicasFor = (nc: NatsConnection): number => isSingleServer(nc) ? 1 : replicasCluster

const isSingleServer = (nc: NatsConnection): boolean => (nc.info?.cluster ?? "") === ""

/**
 * Fails with what keeps this node out. Servers tell of each other before they say who may come in:
 * the client, which tries each that it knows once, is told of it anew by the next one, and would
 * be refused by a cluster for ever. So it hears of no others before it was let in once.
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
  const requests = new Requests(nc)
  const asking: Pick<NatsApi, "request" | "requestMany" | "publish"> = {
    request: (...request) => requests.request(...request),
    requestMany: (...question) => requests.requestMany(...question),
    publish: (subject, data, headersText) =>
      nc.publish(
        subject,
        data,
        headersText === undefined ? undefined : { headers: rawHeaders(headersText) }
      )
  }
  const confirmations = new ReadBarriers(asking, options.name)
  return {
    ...asking,
    nc,
    js: jetstream(nc),
    jsm: await jetstreamManager(nc, { checkAPI: false }),
    replicas: options.replicas ?? replicasFor(nc),
    readBarrier: async (stream) => isSingleServer(nc) ? undefined : confirmations.of(stream)
  }
}

/** Connects, and closes with the layer; reconnects for ever meanwhile. */
export const connection = (
  options: NatsOptions
): Layer.Layer<Nats, StorageUnavailable | NatsTooOld> =>
  Layer.effect(
    Nats,
    Effect.acquireRelease(
      Effect.flatMap(
        Effect.tryPromise({ try: () => open(options), catch: unavailable }),
        (opened): Effect.Effect<NatsApi, NatsTooOld> =>
          opened instanceof NatsTooOld
            ? Effect.fail(opened)
            : Effect.as(logConnectionEvents(opened.nc), opened)
      ),
      ({ nc }) => Effect.promise(() => nc.close().catch(() => undefined))
    )
  )
