/** A collector of OpenTelemetry that keeps what it gets as OTLP in JSON. */
import type { ServerResponse } from "node:http"
import { type Received, startReceiver } from "../http/receiver.ts"

/** An attribute; the exporter writes one of these. */
interface Attribute {
  readonly key: string
  readonly value: {
    readonly stringValue?: string
    readonly intValue?: number | string
    readonly doubleValue?: number
    readonly boolValue?: boolean
  }
}

/** A span as it is sent. */
export interface SentSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: number
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: ReadonlyArray<Attribute>
  readonly events: ReadonlyArray<unknown>
  readonly status: { readonly code: number; readonly message?: string }
}

interface SentPoint {
  readonly attributes: ReadonlyArray<Attribute>
  readonly asDouble?: number
  readonly count?: number
  readonly sum?: number
  readonly bucketCounts?: ReadonlyArray<number>
  readonly explicitBounds?: ReadonlyArray<number>
}

/** A metric as it is sent. */
export interface SentMetric {
  readonly name: string
  readonly unit?: string
  readonly sum?: { readonly isMonotonic: boolean; readonly dataPoints: ReadonlyArray<SentPoint> }
  readonly gauge?: { readonly dataPoints: ReadonlyArray<SentPoint> }
  readonly histogram?: { readonly dataPoints: ReadonlyArray<SentPoint> }
}

interface Resource {
  readonly attributes: ReadonlyArray<Attribute>
}

interface TracesMessage {
  readonly resourceSpans: ReadonlyArray<{
    readonly resource: Resource
    readonly scopeSpans: ReadonlyArray<{ readonly spans: ReadonlyArray<SentSpan> }>
  }>
}

interface MetricsMessage {
  readonly resourceMetrics: ReadonlyArray<{
    readonly resource: Resource
    readonly scopeMetrics: ReadonlyArray<{ readonly metrics: ReadonlyArray<SentMetric> }>
  }>
}

export interface TestCollector {
  /** Without a slash at its end. */
  readonly origin: string
  readonly received: ReadonlyArray<Received>
  /** The spans so far. */
  readonly spans: () => ReadonlyArray<SentSpan>
  /** The metrics of each export of a service so far, the oldest first. */
  readonly exportsOf: (service: string) => ReadonlyArray<ReadonlyArray<SentMetric>>
  /** The attributes of the resource of the first message to this path. */
  readonly resourceOf: (path: string) => Readonly<Record<string, unknown>>
  readonly close: () => Promise<void>
}

/** The attributes as an object. */
export const valuesOf = (attributes: ReadonlyArray<Attribute>): Readonly<Record<string, unknown>> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))

/** Starts a collector on loopback; `answer` answers each request, by default with 200. */
export const startCollector = async (
  answer: (received: Received, response: ServerResponse) => void = (_, response) =>
    void response.writeHead(200, { "content-type": "application/json" }).end("{}")
): Promise<TestCollector> => {
  const { close, origin, received } = await startReceiver(answer)
  /** The messages to this path; the exporter writes them so. */
  const messages = <Message>(at: string): ReadonlyArray<Message> =>
    received.filter(({ path }) => path === at).map(({ body }) => JSON.parse(body) as Message)
  const traces = () => messages<TracesMessage>("/v1/traces").flatMap((one) => one.resourceSpans)
  const metrics = () =>
    messages<MetricsMessage>("/v1/metrics").flatMap((one) => one.resourceMetrics)
  return {
    origin,
    received,
    close,
    spans: () => traces().flatMap(({ scopeSpans }) => scopeSpans).flatMap(({ spans }) => spans),
    exportsOf: (service) =>
      metrics().filter(({ resource }) => valuesOf(resource.attributes)["service.name"] === service)
        .map(({ scopeMetrics }) => scopeMetrics.flatMap((one) => one.metrics)),
    resourceOf: (path) => {
      const [first] = path === "/v1/traces" ? traces() : metrics()
      return valuesOf(first?.resource.attributes ?? [])
    }
  }
}
