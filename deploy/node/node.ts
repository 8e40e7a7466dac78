/**
 * The composition of one node: its store, the actor system, HTTP. It runs until it is interrupted,
 * then drains: other nodes take over its actors, requests in progress are answered, commits and
 * effects end, and the store is closed.
 */
import { Effect, Layer } from "effect"
import { statfs } from "node:fs/promises"
import { setTimeout as sleep } from "node:timers/promises"
import { DroppedRequests, type Keyring, NodePauses, serviceFormat, Usage, UsageLedger,
  Vapid } from "../../actors/index.ts"
import { type OutboundService, readerOf } from "../../actors/outbound/index.ts"
import { ActorListings, assertNative, BlockList, bootstrap, Clients, countRequest, CredentialCache,
  DiskFloor, DocsSearches, DocumentParser, type FirstMailbox, HttpMetrics, keepPublishingFigures,
  listen, makeApplication, makeMetricFamilies, makeMetricsText, makeRateLimiter, NodeHistory,
  OpenAnswers, openFirstMailbox, operatorAccount, randomId, type Rate, recordedTexts,
  RefusalCounter, RemoteReader, resourceTable, retryLoads, RowCaches, RowScans, ServerUnavailable,
  type Service, type ShownSetting, type SpillSettings, sweepQueries, sweepRequests,
  sweepReservations, TextSearches, watchLoads } from "../../http/index.ts"
import { Blobs, observedStorageLayer, Placement, Recorder, Records, recordsUpTo, Storage,
  type StorageFailure, StorageUnavailable, StoreContents, System,
  type Transport } from "../../runtime/index.ts"
import { archiveOf } from "../archive/index.ts"
import { backend, failpoint, groupLimits, isClustered, nodeNameOf,
  type Ports } from "../backend/index.ts"
import { behaviorsOf, outboundOf } from "../behaviors.ts"
import { documentation } from "../documentation.ts"
import { keyringOfNode, type SecretKeyUnusable, serviceKeyOf } from "../secret-key/index.ts"
import { adminTokenOf, baseUrlOf, isSecretSetting, type LoadedSettings, type NodeSettings,
  resolvedOn, type ResolvedSetting, storageLocation } from "../settings/index.ts"
import { startTelemetry, type Telemetry } from "../telemetry/index.ts"
import { version } from "../version.ts"
import { issuerOf } from "./issuer.ts"
import { serveMetrics } from "./metrics-listener.ts"
import { orphanRemoval } from "./orphan-removal.ts"
import { type HeldPort, holdPort } from "./port.ts"
import { readinessOf } from "./readiness.ts"
import { reportSlowStart, type StartProgress } from "./start-progress.ts"

/** The longest interval at which the node looks for idle actors. */
const sweepMsMax = 5_000

const corsOriginOf = (settings: NodeSettings): string | undefined =>
  settings.corsOrigin === "none" ? undefined : settings.corsOrigin

/** Services that the actors and HTTP share, beside the stores. */
interface Shared {
  readonly baseUrl: string
  /** The node's name, the same at each start. */
  readonly node: string
  readonly resolved: ReadonlyArray<ResolvedSetting>
  readonly outbound: OutboundService
  readonly droppedRequests: DroppedRequests
  readonly issuer: Service["issuer"]
  readonly telemetry: Telemetry
  /** Records what passes through the node; undefined: nothing does, and nothing observes it. */
  readonly recorder: Recorder | undefined
  /** Encrypts stored secrets. */
  readonly keyring: Keyring
  /** Identifies the service to push services, once the service's key has been read. */
  readonly vapid: Vapid
}

const systemLayer = (
  settings: NodeSettings,
  { baseUrl, droppedRequests, keyring, outbound, recorder, telemetry, vapid }: Shared
) =>
  Layer.unwrap(Effect.gen(function*() {
    const step = failpoint(process.env["RESTANTE_FAILPOINT"])
    return System.layer({
      format: serviceFormat,
      behaviors: behaviorsOf(settings, baseUrl, {
        blobs: yield* Blobs,
        records: yield* Records,
        usage: yield* Usage,
        keyring,
        outbound,
        droppedRequests,
        vapid,
        traces: telemetry.traces
      }),
      traces: telemetry.traces,
      observer: recorder,
      limits: {
        ...groupLimits(settings),
        residentActorsMax: settings.activationsMax,
        inboxMax: settings.inboxMax,
        idleMs: settings.idleTimeout,
        sweepMs: Math.min(settings.idleTimeout, sweepMsMax),
        drainMs: settings.drainTimeout
      },
      ...step === undefined ? {} : { step }
    })
  }))

/** The ledger of what owners have stored. */
const usageLayer = (settings: NodeSettings) =>
  Layer.effect(
    Usage,
    Effect.map(Effect.service(Records), (records) =>
      new UsageLedger(records, {
        anonymousBytesMax: settings.anonymousBytesMax,
        networkBytesMax: settings.anonymousNetworkBytesMax,
        accountBytesMax: settings.accountBytesMax
      }))
  )

/** The storage as it is, or with commits that the recorder gets. */
const storageLayer = ({ recorder }: Shared): Layer.Layer<Storage, never, Storage> =>
  recorder === undefined
    ? Layer.effect(Storage, Effect.service(Storage))
    : observedStorageLayer(recorder.onCommit)

/** All layers below HTTP, for these settings. */
const nodeLayer = (settings: NodeSettings, shared: Shared) =>
  systemLayer(settings, shared).pipe(
    Layer.provideMerge(usageLayer(settings)),
    Layer.provideMerge(recordsUpTo(serviceFormat)),
    Layer.provideMerge(storageLayer(shared)),
    Layer.provideMerge(backend(settings, shared.node, shared.keyring))
  )

/** What a node prints when it begins to serve. */
export interface ServingNode {
  readonly baseUrl: string
  readonly host: string
  readonly port: number
  /** The location of the node's store, for people. */
  readonly location: string
  /** The database of an embedded store, for people; undefined in a cluster. */
  readonly engine: string | undefined
  /** The node's name in its cluster; undefined without a cluster. */
  readonly node: string | undefined
  /** The admin's token, when this start generated it. */
  readonly adminToken: string | undefined
  /** The mailbox that this start opened, since it is the first one. */
  readonly firstMailbox: FirstMailbox | undefined
}

/** What only the first start of a service makes, and shows. */
type FirstStart = Pick<ServingNode, "adminToken" | "firstMailbox">

/**
 * Time for which a stopping node of a cluster still accepts requests, at least, while `/readyz`
 * fails: load balancers check every second, or every 500 ms and take it out at the second failure.
 */
const stopNoticeMs = 2_000

/**
 * Hands the actors over to other nodes, for `timeoutMs` at most. HTTP continues, since it reaches
 * the actors on any node, until load balancers had time to notice.
 */
const handOver = (placement: Placement["Service"], timeoutMs: number): Effect.Effect<void> =>
  Effect.promise(async () => {
    const left = placement.leave()
    if (left === undefined) return
    const noticed = sleep(Math.min(stopNoticeMs, timeoutMs))
    await Promise.all([noticed, Promise.race([left, sleep(timeoutMs, undefined, { ref: false })])])
  })

const limitOf = (rate: Rate | "none"): Rate | undefined => rate === "none" ? undefined : rate

const httpSettingsOf = (settings: NodeSettings, baseUrl: string): Service["settings"] => ({
  baseUrl,
  contentBaseUrl: settings.contentBaseUrl,
  version,
  takesReferences: settings.sessionReferences === "on",
  securityContact: settings.securityContact,
  publish: settings.contentPublish,
  contentBytesMax: settings.contentBytesMax,
  retentionMs: settings.retention,
  corsOrigin: corsOriginOf(settings),
  fanOutAllow: settings.fanoutAllow
})

/** What a service knows of its clients, and how much they may do. */
const limitsOfClients = (
  settings: NodeSettings,
  outbound: OutboundService,
  { rateLimited }: HttpMetrics,
  warn: (text: string) => void
): Pick<
  Service,
  | "actorListings"
  | "clients"
  | "credentialCache"
  | "docsSearches"
  | "openAnswers"
  | "rateLimiter"
  | "remoteReader"
  | "rowScans"
  | "textSearches"
> => {
  const credentialCache = new CredentialCache()
  const clients = new Clients(settings.trustedProxies, settings.host, (address) =>
    warn(
      `${address} forwards requests of others, and TRUSTED_PROXIES does not name it: all clients ` +
        "behind it count as one. If it is your proxy, name it there"
    ))
  const rateLimits = {
    address: limitOf(settings.rateLimitAddress),
    account: limitOf(settings.rateLimitAccount)
  }
  return {
    clients,
    credentialCache,
    openAnswers: new OpenAnswers(clients),
    rowScans: new RowScans(clients),
    actorListings: new ActorListings(clients),
    textSearches: new TextSearches(clients),
    docsSearches: new DocsSearches(clients),
    rateLimiter: makeRateLimiter(rateLimits, { credentialCache, clients, refused: rateLimited }),
    remoteReader: new RemoteReader({
      forAnyone: (id) => readerOf(outbound, "public", { kind: "network", id }),
      forAccounts: (id) => readerOf(outbound, "allowed", { kind: "account", id }),
      clients
    })
  }
}

/** The floor of the disk that an embedded store is on; the servers of a cluster have their own. */
const diskFloorOf = (settings: NodeSettings): DiskFloor | undefined =>
  isClustered(settings)
    ? undefined
    : new DiskFloor(settings.diskFreeMin, async () => {
      const { bavail, blocks, bsize } = await statfs(settings.dataDir)
      return { freeBytes: bavail * bsize, totalBytes: blocks * bsize }
    })

const shownSetting = ({ setting, source, text }: ResolvedSetting): ShownSetting => {
  const { key: name, variable } = setting
  const isSecret = isSecretSetting(setting)
  return { name, variable, source, value: isSecret ? undefined : text, isSecret }
}

/** What `/metrics` and the export of metrics read. */
const metricsSourcesOf = (
  { droppedRequests, outbound, telemetry }: Shared,
  { diskFloor, httpMetrics, nowMs, system, usage }: Pick<
    Service,
    "diskFloor" | "httpMetrics" | "nowMs" | "system" | "usage"
  >
): Parameters<typeof makeMetricFamilies>[0] => ({
  system,
  httpMetrics,
  nowMs,
  delivery: outbound.metrics,
  droppedRequests,
  diskFloor,
  usage,
  droppedSpans: telemetry.droppedSpans
})

const makeService = Effect.fnUntraced(function*(
  settings: NodeSettings,
  shared: Shared,
  httpMetrics: HttpMetrics
): Effect.fn.Return<
  Service,
  StorageFailure | SecretKeyUnusable,
  System | Usage | Exclude<Ports, Transport>
> {
  const { baseUrl, issuer, keyring, node, outbound, resolved, vapid } = shared
  const system = yield* System
  const storage = yield* Storage
  const records = yield* Records
  const placement = yield* Placement
  const blobs = yield* Blobs
  const contents = yield* StoreContents
  const kind = isClustered(settings) ? "nats" : "embedded"
  const nowMs = () => Date.now()
  const monotonicMs = () => performance.now()
  const diskFloor = diskFloorOf(settings)
  const usage = yield* Usage
  const serviceKey = yield* serviceKeyOf(records, keyring)
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const warn = (text: string): void => void run(Effect.logWarning(text))
  return {
    settings: httpSettingsOf(settings, baseUrl),
    ...limitsOfClients(settings, outbound, httpMetrics, warn),
    engine: storage.engine,
    issuer,
    system,
    blobs,
    records,
    usage,
    documentParser: new DocumentParser(settings),
    documentation: documentation(),
    rowCaches: new RowCaches(records),
    pauses: new NodePauses(),
    blocks: new BlockList(records),
    auditRefusals: new RefusalCounter(),
    startId: `${node}.${randomId()}`,
    serviceKey,
    applicationServerKey: vapid.useServiceKey(serviceKey),
    keyring,
    diskFloor,
    shownSettings: resolved.map(shownSetting),
    metricsText: makeMetricsText(
      metricsSourcesOf(shared, { system, httpMetrics, nowMs, diskFloor, usage })
    ),
    traces: shared.telemetry.traces,
    httpMetrics,
    history: new NodeHistory({ system, httpMetrics, deliveries: outbound, nowMs, monotonicMs }),
    deliveries: outbound,
    recorder: shared.recorder,
    archive: () => archiveOf({ kind, contents, blobs }),
    ready: readinessOf({ placement, storage, records, system }),
    nowMs
  }
})

const asUnavailable = (cause: unknown): ServerUnavailable =>
  cause instanceof ServerUnavailable
    ? cause
    : new ServerUnavailable("Address", String(cause), cause)

/** Uploads wait in the folder of data: our containers write nowhere else. */
const spillsOf = ({ dataDir }: NodeSettings, { diskFloor }: Service): SpillSettings => ({
  path: dataDir,
  isDiskLow: () => diskFloor?.isBelow === true
})

const listening = (
  settings: NodeSettings,
  port: number,
  baseUrl: string,
  handler: ReturnType<typeof makeApplication>,
  spills: SpillSettings,
  { clients }: Service,
  onError: (error: unknown) => void
) =>
  Effect.tryPromise({
    try: () =>
      listen({
        host: settings.host,
        port,
        baseUrl,
        handler,
        corsOrigin: corsOriginOf(settings),
        spills,
        networkOf: (request) => clients.clientOf(request).network,
        onError
      }),
    catch: asUnavailable
  })

/** Begins what a node does at intervals; the space of the disk is read before the first request. */
const keepWatch = Effect.fnUntraced(function*(service: Service) {
  const { diskFloor, history, usage } = service
  yield* Effect.forkScoped(watchLoads(service))
  for (const sweep of [sweepQueries, sweepRequests, sweepReservations]) {
    yield* Effect.forkScoped(sweep(service))
  }
  yield* Effect.forkScoped(usage.watchAnonymous)
  yield* Effect.forkScoped(history.keep)
  if (diskFloor === undefined) return
  yield* diskFloor.check
  yield* Effect.forkScoped(diskFloor.watch)
})

/** The service is of use without this mailbox. */
const firstMailboxOf = (service: Service) =>
  Effect.catch(
    openFirstMailbox(service, operatorAccount),
    ({ _tag }) =>
      Effect.as(
        Effect.logWarning(
          `the mailbox inbox may not be open (${_tag}): look for it, or create it yourself`
        ),
        undefined
      )
  )

/** What the store needs before the first request. */
const prepareStore = Effect.fnUntraced(function*(
  settings: NodeSettings,
  service: Service,
  progress: StartProgress
) {
  progress.step = "adds the account admin"
  const { created, token } = yield* bootstrap(service, adminTokenOf(settings)).pipe(
    Effect.mapError((failure) => new StorageUnavailable({ detail: `no admin: ${failure._tag}` }))
  )
  // The rows of an accepted file must be in the table before the first request.
  progress.step = "reads accepted files of customers"
  if (!isClustered(settings)) yield* retryLoads(service)
  const firstMailbox = created ? yield* firstMailboxOf(service) : undefined
  const first: FirstStart = { adminToken: token, firstMailbox }
  return first
})

/** Serves with the provided layers until it is interrupted. */
const serveOver = Effect.fnUntraced(function*(
  settings: NodeSettings,
  { port, release }: HeldPort,
  shared: Shared,
  progress: StartProgress,
  onServing: (serving: ServingNode) => void
) {
  const { baseUrl } = shared
  const placement = yield* Placement
  progress.step = "reads its keys from the store"
  const httpMetrics = new HttpMetrics()
  const service = yield* makeService(settings, shared, httpMetrics)
  const first = yield* prepareStore(settings, service, progress)
  progress.step = "reads the space of the disk, and begins to listen"
  yield* keepWatch(service)
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const handler = makeApplication(
    service,
    resourceTable(service),
    (effect, observer) => run(effect).addObserver(observer),
    (access) => {
      const { durationMs, method, route, status } = access
      countRequest(httpMetrics.forRoute(method, route), status, durationMs)
      run(Effect.logDebug("request", access))
    }
  )
  // Its last export is after the drain.
  yield* shared.telemetry.exportMetrics(makeMetricFamilies(metricsSourcesOf(shared, service)))
  const listens = listening(
    settings,
    port,
    baseUrl,
    handler,
    spillsOf(settings, service),
    service,
    (error) => void run(Effect.logError("a request failed", error))
  )
  yield* Effect.acquireRelease(
    Effect.andThen(release, listens),
    (server) =>
      handOver(placement, settings.drainTimeout).pipe(
        Effect.andThen(Effect.promise(() => server.drain(settings.drainTimeout))),
        Effect.andThen(service.system.drain)
      )
  )
  yield* serveMetrics(settings.metricsListen, service.metricsText)
  yield* keepPublishingFigures(service)
  yield* Effect.forkScoped(orphanRemoval(isClustered(settings), service, placement))
  onServing({
    baseUrl,
    host: settings.host,
    port,
    location: storageLocation(settings),
    engine: isClustered(settings) ? undefined : service.engine,
    node: isClustered(settings) ? shared.node : undefined,
    ...first
  })
  return yield* Effect.never
})

/**
 * Serves until interrupted. Calls `onServing` once, when it accepts requests. Fails with a
 * BackendFailure, IssuerUnusable or ServerUnavailable.
 */
export const runNode = (loaded: LoadedSettings, onServing: (serving: ServingNode) => void) =>
  Effect.scoped(Effect.gen(function*() {
    const { settings } = loaded
    // A first start that cannot serve must not generate a token that is never printed.
    yield* Effect.try({ try: assertNative, catch: asUnavailable })
    const progress: StartProgress = { step: "reads its settings and keys" }
    const reporting = yield* Effect.forkScoped(reportSlowStart(progress))
    const held = yield* holdPort(settings.host, settings.port)
    const baseUrl = baseUrlOf(settings, held.port)
    const node = yield* nodeNameOf(settings)
    const telemetry = yield* startTelemetry(settings, node)
    const shared: Shared = {
      baseUrl,
      resolved: resolvedOn(loaded, held.port),
      node,
      telemetry,
      outbound: yield* outboundOf(settings.outboundAllow, undefined, telemetry.traces),
      droppedRequests: new DroppedRequests(),
      recorder: settings.inspector === "on" ? new Recorder(Date.now, recordedTexts) : undefined,
      issuer: yield* issuerOf(settings),
      keyring: yield* keyringOfNode(settings),
      vapid: new Vapid([settings.securityContact, baseUrl])
    }
    progress.step = "opens the store"
    const served = (serving: ServingNode): void => {
      reporting.interruptUnsafe()
      onServing(serving)
    }
    return yield* Effect.scoped(serveOver(settings, held, shared, progress, served)).pipe(
      Effect.provide(nodeLayer(settings, shared))
    )
  }))
