/**
 * The connection to NATS that storage, transport, blobs, records and placement share, with a
 * request of its own: one subscription takes all replies, and headers are sent as they are. That
 * costs about a sixth of the client's own request in CPU time.
 */
import { readFileSync } from "node:fs"
import {
  jetstream,
  type JetStreamClient,
  type JetStreamManager,
  jetstreamManager
} from "@nats-io/jetstream"
import {
  type Authenticator,
  connect,
  type ConnectionOptions,
  credsAuthenticator,
  type Msg,
  type NatsConnection,
  nkeyAuthenticator,
  type TlsOptions
} from "@nats-io/transport-node"
import { Context, Effect, Layer, Schema } from "effect"
import { StorageUnavailable } from "../errors.ts"
import { type ReadBarrier, ReadBarriers } from "./confirmed.ts"
import { dialling } from "./dialling.ts"
import { connectMs, pingIntervalMs, pingsOutMax, replicasCluster } from "./limits.ts"
import { rawHeaders, Requests } from "./requests.ts"
import { logConnectionEvents } from "./tidings.ts"

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

export interface NatsApi {
  readonly nc: NatsConnection
  readonly js: JetStreamClient
  readonly jsm: JetStreamManager
  /** Copies that a stream made now is to have. */
  readonly replicas: number
  /**
   * Publishes and takes one reply in the connection's own inbox. `headersText` is whole:
   * `NATS/1.0\r\nName: value\r\n\r\n`. Rejects with {@link NoReply} at the time limit (whether the
   * message arrived is unknown), at once where nobody listens, and when the connection closes.
   */
  readonly request: (
    subject: string,
    data: Uint8Array | string,
    headersText: string | undefined,
    timeoutMs: number
  ) => Promise<Msg>
  /** Publishes and takes all replies up to one with a status; rejects as `request` does. */
  readonly replies: (
    subject: string,
    data: string,
    timeoutMs: number
  ) => Promise<ReadonlyArray<Msg>>
  /**
   * A message in the stream that a majority has stored since the call; undefined where the server
   * is alone, and its word is the last one.
   */
  readonly confirmed: (stream: string) => Promise<ReadBarrier | undefined>
  /** Publishes without a reply. */
  readonly send: (subject: string, data: Uint8Array | string, headersText?: string) => void
}

/** The connection; one for each node. */
export class Nats extends Context.Service<Nats, NatsApi>()("restante/runtime/nats/Nats") {}

/** The servers are older than 2.12, which brought atomic batches. */
export class NatsTooOld extends Schema.TaggedError<NatsTooOld>()("NatsTooOld", {
  found: Schema.String,
  wanted: Schema.String
}) {}

/** The oldest servers with atomic batch publish. */
export const OLDEST = [2, 12] as const

export const isTooOld = (version: string): boolean => {
  const [major = 0, minor = 0] = version.split(".").map((part) => Number.parseInt(part, 10))
  // A version that cannot be read (NaN) is none that is known to be new enough.
  return !(major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]))
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
    timeout: connectMs,
    maxReconnectAttempts: -1,
    ...dialling(),
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
const replicasFor = (nc: NatsConnection): number => isAlone(nc) ? 1 : replicasCluster

const isAlone = (nc: NatsConnection): boolean => (nc.info?.cluster ?? "") === ""

/**
 * Fails with what keeps this node out. Servers tell of each other before they say who may come in:
 * the client, which tries each that it knows once, is told of it anew by the next one, and would
 * be refused by a cluster for ever. So it hears of no others before it was let in once.
 */
const assertLetIn = async (options: ConnectionOptions): Promise<void> => {
  const nc = await connect({ ...options, ignoreClusterUpdates: true, reconnect: false })
  await nc.close()
}

const open = async (options: NatsOptions): Promise<NatsApi | NatsTooOld> => {
  await assertLetIn(connectionOptions(options))
  const nc = await connect(connectionOptions(options))
  const version = nc.info?.version ?? "unknown"
  if (isTooOld(version)) {
    await nc.close()
    return new NatsTooOld({ found: version, wanted: OLDEST.join(".") })
  }
  const requests = new Requests(nc)
  const asking: Pick<NatsApi, "request" | "replies" | "send"> = {
    request: (...request) => requests.request(...request),
    replies: (...question) => requests.replies(...question),
    send: (subject, data, headersText) =>
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
    confirmed: async (stream) => isAlone(nc) ? undefined : confirmations.of(stream)
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
