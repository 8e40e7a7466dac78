/**
 * The exporters of a node: traces and metrics by Effect's own OTLP exporter, to the collector of
 * `OTEL_EXPORTER_OTLP_ENDPOINT`. Without that setting the node records no span.
 */
import { ConfigProvider, Effect, Redacted, type Scope } from "effect"
import { HttpClient } from "effect/http"
import { OtlpExporter, OtlpResource, OtlpSerialization, OtlpTracer } from "effect/observability"
import type { MetricFamily } from "../../http/index.ts"
import type { Traces } from "../../runtime/index.ts"
import { exportsEndMs, spanBatchMax, spanExportMs } from "../limits.ts"
import type { NodeSettings } from "../settings/index.ts"
import { version } from "../version.ts"
import { collectorClient } from "./collector.ts"
import { metricsData } from "./metric-export.ts"
import { makeTraces, SpanQueue } from "./span-export.ts"

export interface Telemetry {
  /** Undefined: the node exports no traces. */
  readonly traces: Traces | undefined
  /** The spans that the collector did not take. */
  readonly droppedSpans: { readonly total: number }
  /** Exports the metrics at an interval, and once more when the scope ends. */
  readonly exportMetrics: (
    families: () => ReadonlyArray<MetricFamily>
  ) => Effect.Effect<void, never, Scope.Scope>
}

/** What both exporters send, and how. */
interface Exports {
  readonly settings: NodeSettings
  /** Without a slash at its end. */
  readonly endpoint: string
  readonly headers: Readonly<Record<string, string>> | undefined
  readonly resource: {
    readonly serviceName: string
    readonly serviceVersion: string
    readonly attributes: Readonly<Record<string, string>>
  }
  readonly serialization: OtlpSerialization.OtlpSerialization["Service"]
}

const off: Telemetry = {
  traces: undefined,
  droppedSpans: { total: 0 },
  exportMetrics: () => Effect.void
}

const defaultServiceName = "restante"

const resourceOf = (settings: NodeSettings, node: string): Exports["resource"] => {
  const { otelResourceAttributes = {}, otelServiceName } = settings
  const { "service.name": named, "service.version": serviceVersion = version, ...attributes } =
    otelResourceAttributes
  return {
    serviceName: otelServiceName ?? named ?? defaultServiceName,
    serviceVersion,
    attributes: { "service.instance.id": node, ...attributes }
  }
}

/** Only the settings count: Effect reads some of these variables, too, and dies of a wrong one. */
const withoutEnvironment = Effect.provideService(
  ConfigProvider.ConfigProvider,
  ConfigProvider.fromUnknown({})
)

const originOf = (endpoint: string): string => new URL(endpoint).origin

const exportTraces = Effect.fnUntraced(function*(
  { endpoint, headers, resource, serialization, settings }: Exports,
  queue: SpanQueue
): Effect.fn.Return<Traces, never, Scope.Scope> {
  /** The spans of each batch under way. */
  const counts = new WeakMap<object, number>()
  const counted: Exports["serialization"] = {
    ...serialization,
    traces: (data) => {
      const body = serialization.traces(data)
      counts.set(
        body,
        data.resourceSpans.flatMap(({ scopeSpans }) => scopeSpans)
          .reduce((sum, { spans }) => sum + spans.length, 0)
      )
      return body
    }
  }
  const client = collectorClient("spans", originOf(endpoint), (body, isTaken) => {
    queue.settle(counts.get(body) ?? 0, isTaken)
  })
  const tracer = yield* OtlpTracer.make({
    url: `${endpoint}/v1/traces`,
    resource,
    headers,
    exportInterval: spanExportMs,
    maxBatchSize: spanBatchMax,
    shutdownTimeout: exportsEndMs
  }).pipe(
    Effect.provideService(HttpClient.HttpClient, client),
    Effect.provideService(OtlpSerialization.OtlpSerialization, counted),
    Effect.provide(OtlpExporter.layerFlusher),
    withoutEnvironment
  )
  return makeTraces(tracer, settings, queue)
})

const nanosOf = (ms: number): string => String(BigInt(Math.round(ms)) * 1_000_000n)

/** Effect's exporter, on the node's own counters: nothing is counted a second time. */
const exportMetrics = (
  { endpoint, headers, resource, serialization, settings }: Exports,
  families: () => ReadonlyArray<MetricFamily>
): Effect.Effect<void, never, Scope.Scope> => {
  const startTimeUnixNano = nanosOf(Date.now() - process.uptime() * 1_000)
  const scope = { name: defaultServiceName, version }
  const made = OtlpResource.make(resource)
  const body = () => {
    const times = { startTimeUnixNano, timeUnixNano: nanosOf(Date.now()) }
    const data = metricsData(families(), made, scope, times)
    return [serialization.metrics(data), Effect.void] as const
  }
  return OtlpExporter.make({
    label: "OtlpMetrics",
    url: `${endpoint}/v1/metrics`,
    headers,
    exportInterval: settings.otelMetricExportInterval,
    maxBatchSize: "disabled",
    exportEmpty: true,
    body,
    shutdownTimeout: exportsEndMs
  }).pipe(
    Effect.provideService(
      HttpClient.HttpClient,
      collectorClient("metrics", originOf(endpoint), () => {})
    ),
    Effect.provide(OtlpExporter.layerFlusher),
    Effect.asVoid
  )
}

/** Begins to export what the settings select; `node` identifies the process. */
export const startTelemetry = Effect.fnUntraced(function*(
  settings: NodeSettings,
  node: string
): Effect.fn.Return<Telemetry, never, Scope.Scope> {
  const { otelExporterOtlpEndpoint: endpoint, otelExporterOtlpHeaders: headers } = settings
  const { otelExporterOtlpProtocol: protocol, otelMetricsExporter, otelTracesExporter } = settings
  if (endpoint === undefined) return off
  const serialization = yield* Effect.service(OtlpSerialization.OtlpSerialization).pipe(
    Effect.provide(
      protocol === "http/json" ? OtlpSerialization.layerJson : OtlpSerialization.layerProtobuf
    )
  )
  const exported: Exports = {
    settings,
    endpoint,
    headers: headers === undefined ? undefined : Redacted.value(headers),
    resource: resourceOf(settings, node),
    serialization
  }
  const queue = new SpanQueue()
  return {
    traces: otelTracesExporter === "none" ? undefined : yield* exportTraces(exported, queue),
    droppedSpans: queue.dropped,
    exportMetrics: otelMetricsExporter === "none"
      ? off.exportMetrics
      : (families) => exportMetrics(exported, families)
  }
})
