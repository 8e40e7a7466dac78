/** One complete node of the service: its actors on a backend's ports, and its HTTP server. */
import { Effect, Exit, Layer, Logger, ManagedRuntime, Scope } from "effect"
import { behaviors, linksUnder, NodePauses, serviceFormat, Usage, UsageLedger,
  type UsageLimits } from "../../actors/index.ts"
import { makeOutbound, readerOf } from "../../actors/outbound/client.ts"
import { type AccessRecord, makeApplication } from "../../http/app.ts"
import { CredentialCache } from "../../http/auth/credentials/credential-cache.ts"
import { notificationDocuments } from "../../http/documents.ts"
import { DocumentParser } from "../../http/formats/xml/document-parser.ts"
import { NodeHistory } from "../../http/history/node-history.ts"
import { defaultDocumentLimits, sampleMs } from "../../http/limits.ts"
import type { ResourceHandler } from "../../http/pipeline/call.ts"
import { HttpMetrics } from "../../http/pipeline/http-metrics.ts"
import { BlockList } from "../../http/rates/block-list.ts"
import { Clients } from "../../http/rates/client-address.ts"
import { OpenAnswers } from "../../http/rates/open-answers.ts"
import type { PlaceLimits } from "../../http/rates/network-places.ts"
import type { DiskFloor } from "../../http/rates/disk-floor.ts"
import { makeRateLimiter, type RateLimits } from "../../http/rates/rate-limiter.ts"
import { RefusalCounter } from "../../http/rates/refusal-counter.ts"
import { RemoteReader } from "../../http/rates/remote-reader.ts"
import { ActorListings, DocsSearches, RowScans, TextSearches } from "../../http/rates/long-reads.ts"
import type { Route } from "../../http/pipeline/routing.ts"
import type { HttpSettings, Service, ShownSetting } from "../../http/pipeline/service.ts"
import { RowCaches } from "../../http/query-engine/row-cache.ts"
import { publishNodeFigures } from "../../http/resources/cluster/node-figures.ts"
import { listen } from "../../http/wire/server.ts"
import { recordedTexts } from "../../http/resources/cluster/shown-fields.ts"
import { Blobs, type Limits, observedStorageLayer, Placement, Recorder, Records, recordsUpTo,
  Storage, System, type Traces } from "../../runtime/index.ts"
import { testApplicationServerKey, testKeyring, testVapid } from "../actors/dependencies.ts"
import type { Backend } from "./backends.ts"
import { testDocumentation } from "./documentation-site.ts"

/** The wait before each delivery attempt in ms: five attempts for a recipient that fails. */
const schedule = [0, 50, 50, 100, 100]

/** One of each kind: with a value, without one, and a secret. */
const shownSettings: ReadonlyArray<ShownSetting> = [
  { name: "port", variable: "PORT", source: "environment PORT", value: "0", isSecret: false },
  { name: "baseUrl", variable: "BASE_URL", source: "unset", value: undefined, isSecret: false },
  {
    name: "adminToken",
    variable: "ADMIN_TOKEN",
    source: "environment ADMIN_TOKEN",
    value: undefined,
    isSecret: true
  },
  {
    name: "quotas.accountBytesMax",
    variable: "ACCOUNT_BYTES_MAX",
    source: "cluster.config.ts",
    value: "10GiB",
    isSecret: false
  }
]

/** A node that does not listen yet. */
export interface Node {
  readonly service: Service
  readonly placement: Placement["Service"]
  readonly run: <A, E>(effect: Effect.Effect<A, E>) => Promise<A>
  /** Listens on this port until the node is closed. */
  readonly serve: (
    port: number,
    routes: (service: Service) => ReadonlyArray<Route<ResourceHandler>>,
    onAccess: (access: AccessRecord) => void
  ) => Promise<void>
  /** Answers the requests that it has, and accepts no others. */
  readonly drain: () => Promise<void>
  readonly close: () => Promise<void>
}

/** What a test sets of a service; the rest has its default. */
export type TestSettings = Partial<HttpSettings> & {
  readonly rateLimits?: RateLimits
  readonly trustedProxies?: ReadonlyArray<string>
  readonly sessionRetentionMs?: number
  readonly diskFloor?: DiskFloor
  readonly traces?: Traces
  readonly anonymousRetentionMs?: number
  readonly quotas?: Partial<UsageLimits>
  readonly mailboxAnonymousBytesMax?: number
  readonly documentation?: Service["documentation"]
  /** Whether each node records messages and commits. */
  readonly inspector?: boolean
  readonly rowScans?: Partial<PlaceLimits>
  readonly actorListings?: Partial<PlaceLimits>
  readonly textSearches?: Partial<PlaceLimits>
  readonly docsSearches?: Partial<PlaceLimits>
  readonly openAnswers?: {
    readonly totalMax?: number
    readonly perNetworkMax?: number
    readonly recheckMs?: number
  }
}

interface Options {
  /** The base URL of all nodes. */
  readonly base: string
  readonly name: string
  readonly ports: Backend["nodes"][number]
  readonly limits: Partial<Limits>
  readonly settings: TestSettings
  readonly issuer: Service["issuer"]
}

const drainMs = 2_000

const quotas: UsageLimits = {
  anonymousBytesMax: 1024 ** 3,
  networkBytesMax: 1024 ** 3,
  accountBytesMax: 1024 ** 3
}

const usageLayer = (settings: TestSettings) =>
  Layer.effect(
    Usage,
    Effect.map(
      Effect.service(Records),
      (records) => new UsageLedger(records, { ...quotas, ...settings.quotas })
    )
  )

const layerOf = (
  { base, limits, ports, settings }: Options,
  outbound: Effect.Success<ReturnType<typeof makeOutbound>>,
  recorder: Recorder | undefined
) =>
  Layer.unwrap(Effect.gen(function*() {
    return System.layer({
      format: serviceFormat,
      behaviors: behaviors({
        blobs: yield* Blobs,
        records: yield* Records,
        usage: yield* Usage,
        keyring: testKeyring,
        outbound,
        links: linksUnder(base, settings.contentBaseUrl),
        ...settings.mailboxAnonymousBytesMax === undefined
          ? {}
          : { limits: { anonymousBytesMax: settings.mailboxAnonymousBytesMax } },
        documents: notificationDocuments,
        vapid: testVapid,
        schedule,
        retentionMs: 7 * 24 * 60 * 60 * 1000,
        auditRetentionMs: 365 * 24 * 60 * 60 * 1000,
        anonymousRetentionMs: settings.anonymousRetentionMs ?? 30 * 24 * 60 * 60 * 1000,
        sessionRetentionMs: settings.sessionRetentionMs ?? 30 * 24 * 60 * 60 * 1000,
        random: Math.random,
        traces: settings.traces
      }),
      limits,
      observer: recorder,
      traces: settings.traces
    })
  })).pipe(
    Layer.provideMerge(usageLayer(settings)),
    Layer.provideMerge(recordsUpTo(serviceFormat)),
    Layer.provideMerge(
      recorder === undefined
        ? Layer.effect(Storage, Effect.service(Storage))
        : observedStorageLayer(recorder.onCommit)
    ),
    Layer.provideMerge(ports),
    Layer.provideMerge(Logger.layer([]))
  )

/** Nothing observes by itself; each observation of a test takes a sample. */
const historyOf = (
  sources: Omit<ConstructorParameters<typeof NodeHistory>[0], "monotonicMs">
): NodeHistory => {
  let clockMs = 0
  return new NodeHistory({ ...sources, monotonicMs: () => (clockMs += sampleMs) })
}

export const startNode = async (options: Options): Promise<Node> => {
  const { base, name, settings } = options
  const nowMs = () => Date.now()
  const scope = Scope.makeUnsafe()
  const outbound = await Effect.runPromise(Scope.provide(
    makeOutbound({
      allow: ["127.0.0.0/8"],
      userAgent: "restante/0.0.0-test",
      nowMs,
      random: Math.random,
      traces: settings.traces
    }),
    scope
  ))
  const { rateLimits = {}, trustedProxies = [] } = settings
  const clients = new Clients(trustedProxies)
  const httpMetrics = new HttpMetrics()
  const credentialCache = new CredentialCache(nowMs)
  const recorder = settings.inspector === true ? new Recorder(nowMs, recordedTexts) : undefined
  const runtime = ManagedRuntime.make(layerOf(options, outbound, recorder))
  const records = await runtime.runPromise(Effect.service(Records))
  const system = await runtime.runPromise(Effect.service(System))
  const service: Service = {
    settings: {
      baseUrl: base,
      contentBaseUrl: undefined,
      version: "0.0.0-test",
      takesReferences: true,
      securityContact: "mailto:security@example.org",
      fanOutAllow: [],
      publish: "anyone",
      contentBytesMax: 1024 * 1024,
      retentionMs: 30 * 24 * 60 * 60 * 1000,
      corsOrigin: "*",
      ...settings
    },
    engine: (await runtime.runPromise(Effect.service(Storage))).engine,
    issuer: options.issuer,
    credentialCache,
    clients,
    openAnswers: new OpenAnswers(clients, settings.openAnswers),
    rowScans: new RowScans(clients, settings.rowScans),
    actorListings: new ActorListings(clients, settings.actorListings),
    pauses: new NodePauses(),
    textSearches: new TextSearches(clients, settings.textSearches),
    docsSearches: new DocsSearches(clients, settings.docsSearches),
    rateLimiter: makeRateLimiter(rateLimits, {
      credentialCache,
      clients,
      refused: httpMetrics.rateLimited
    }),
    system,
    blobs: await runtime.runPromise(Effect.service(Blobs)),
    records,
    usage: await runtime.runPromise(Effect.service(Usage)),
    documentParser: new DocumentParser(defaultDocumentLimits),
    documentation: settings.documentation ?? testDocumentation(),
    rowCaches: new RowCaches(records),
    remoteReader: new RemoteReader({
      forAnyone: (id) => readerOf(outbound, "public", { kind: "network", id }),
      forAccounts: (id) => readerOf(outbound, "allowed", { kind: "account", id }),
      clients,
      // No quota comes back, however slowly a machine sends the requests of a test.
      nowMs: () => 0
    }),
    blocks: new BlockList(records),
    auditRefusals: new RefusalCounter(),
    diskFloor: settings.diskFloor,
    startId: `${name}.test`,
    serviceKey: "the key of these tests",
    applicationServerKey: testApplicationServerKey,
    keyring: testKeyring,
    httpMetrics,
    traces: settings.traces,
    recorder,
    deliveries: outbound,
    history: historyOf({ system, httpMetrics, deliveries: outbound, nowMs }),
    archive: async function*() {
      yield Buffer.from("an archive\n")
    },
    shownSettings,
    metricsText: () => "",
    ready: Effect.void,
    nowMs
  }
  const stopFigures = publishNodeFigures(service)
  const errors: Array<unknown> = []
  let server: Awaited<ReturnType<typeof listen>> | undefined
  return {
    service,
    placement: await runtime.runPromise(Effect.service(Placement)),
    run: runtime.runPromise,
    serve: async (port, routes, onAccess) => {
      const handler = makeApplication(
        service,
        routes(service),
        (effect, observer) => void runtime.runCallback(effect, { onExit: observer }),
        onAccess
      )
      const onError = (error: unknown) => void errors.push(error)
      server = await listen({
        host: "127.0.0.1",
        port,
        baseUrl: base,
        handler,
        onError,
        corsOrigin: service.settings.corsOrigin
      })
    },
    drain: async () => server?.drain(drainMs),
    close: async () => {
      stopFigures()
      await server?.drain(drainMs)
      await runtime.dispose()
      await Effect.runPromise(Scope.close(scope, Exit.void))
      if (errors.length > 0) throw new AggregateError(errors, "requests broke")
    }
  }
}
