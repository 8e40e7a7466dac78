/** What a node exports by OTLP: form and bounds, the samplers, a collector that is not there. */
import { Effect, Exit, Logger, Result, Scope } from "effect"
import { afterEach, describe, expect, it } from "vitest"
import { spanBatchMax, spansHeldMax } from "../../deploy/limits.ts"
import { type LoadedSettings, loadSettings } from "../../deploy/settings/settings.ts"
import { isSampled, type SamplerSettings } from "../../deploy/telemetry/span-export.ts"
import { startTelemetry, type Telemetry } from "../../deploy/telemetry/telemetry.ts"
import { parseTraceparent, type Traces } from "../../runtime/index.ts"
import { closedPort } from "../e2e/faults.ts"
import { eventually } from "../e2e/process.ts"
import { startCollector, type TestCollector, valuesOf } from "./collector.ts"

const withinMs = 60_000
const credentials = "api-key=the-secret-of-the-collector"

const closing: Array<() => Promise<unknown>> = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

const collectorAt = async (
  ...answer: Parameters<typeof startCollector>
): Promise<TestCollector> => {
  const collector = await startCollector(...answer)
  closing.push(collector.close)
  return collector
}

interface Started {
  readonly telemetry: Telemetry
  readonly traces: Traces
  readonly logs: ReadonlyArray<string>
  /** Ends the exporters, as a node that stops does. */
  readonly stop: () => Promise<void>
  readonly run: <A>(effect: Effect.Effect<A, never, Scope.Scope>) => Promise<A>
}

const settingsOf = (variables: Readonly<Record<string, string>>): LoadedSettings["settings"] =>
  Result.getOrThrow(loadSettings(variables)).settings

const noTraces: Traces = {
  begin: () => {
    throw new Error("the node exports no traces")
  }
}

/** Starts the exporters of a node. */
const started = async (
  endpoint: string,
  variables: Readonly<Record<string, string>> = {}
): Promise<Started> => {
  const logs: Array<string> = []
  const logger = Logger.make(({ message }) => void logs.push(String(message)))
  const scope = Scope.makeUnsafe()
  const run: Started["run"] = (effect) =>
    Effect.runPromise(Scope.provide(effect, scope).pipe(Effect.provide(Logger.layer([logger]))))
  const settings = settingsOf({
    OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
    OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
    OTEL_EXPORTER_OTLP_HEADERS: credentials,
    ...variables
  })
  const telemetry = await run(startTelemetry(settings, "node-1"))
  const stop = () => Effect.runPromise(Scope.close(scope, Exit.void))
  closing.push(stop)
  return { telemetry, traces: telemetry.traces ?? noTraces, logs, stop, run }
}

const record = ({ begin }: Traces, count: number): void => {
  for (let left = count; left > 0; left--) {
    begin({ name: "one", kind: "internal", parent: undefined })?.end({ n: left })
  }
}

describe("what a collector gets", () => {
  it("is nothing by default", async () => {
    const run = startTelemetry(settingsOf({}), "node-1")
    const { droppedSpans, traces } = await Effect.runPromise(Effect.scoped(run))
    expect([traces, droppedSpans.total]).toEqual([undefined, 0])
  })

  it("are the spans, with their parents, at the latest when the node stops", async () => {
    const collector = await collectorAt()
    const { stop, telemetry, traces } = await started(`${collector.origin}/`, {
      OTEL_SERVICE_NAME: "post",
      OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test%20bed,service.name=other"
    })
    const client = `00-${"ab".repeat(16)}-${"cd".repeat(8)}-01`
    const above = traces.begin({ name: "above", kind: "server", parent: client })
    const below = traces.begin({ name: "below", kind: "client", parent: above?.traceparent })
    below?.end({ count: 3 }, "StorageFull")
    above?.end({ "http.route": "/mailboxes/{mailbox}", "http.response.status_code": 202 })
    above?.end({ twice: true })
    await stop()
    const [first, second, ...more] = collector.spans()
    expect(more).toEqual([])
    expect(first).toMatchObject({ name: "below", kind: 3, traceId: "ab".repeat(16) })
    expect(second).toMatchObject({
      name: "above",
      kind: 2,
      traceId: "ab".repeat(16),
      parentSpanId: "cd".repeat(8),
      status: { code: 1 }
    })
    expect(first?.parentSpanId).toBe(second?.spanId)
    expect(first?.spanId).toBe(parseTraceparent(below?.traceparent ?? "")?.spanId)
    expect(valuesOf(first?.attributes ?? [])).toEqual({ count: 3, "error.type": "StorageFull" })
    expect(first?.status).toEqual({ code: 2, message: "StorageFull" })
    // A stack would show the folders of the installation.
    expect(JSON.stringify(first?.events)).not.toMatch(/ at |\.[jt]s\b/)
    expect(valuesOf(second?.attributes ?? [])).toEqual({
      "http.route": "/mailboxes/{mailbox}",
      "http.response.status_code": 202
    })
    const { endTimeUnixNano = "0", startTimeUnixNano = "" } = second ?? {}
    expect(BigInt(endTimeUnixNano) >= BigInt(startTimeUnixNano)).toBe(true)
    expect(collector.resourceOf("/v1/traces")).toMatchObject({
      "service.name": "post",
      "service.instance.id": "node-1",
      "deployment.environment.name": "test bed"
    })
    expect(collector.received.map(({ headers, path }) => [path, headers["api-key"]]))
      .toEqual([["/v1/traces", "the-secret-of-the-collector"]])
    expect(telemetry.droppedSpans.total).toBe(0)
  })

  it("is sent in protobuf by default", async () => {
    const collector = await collectorAt()
    const { stop, traces } = await started(collector.origin, {
      OTEL_EXPORTER_OTLP_PROTOCOL: "",
      OTEL_METRICS_EXPORTER: "none"
    })
    record(traces, 1)
    await stop()
    expect(collector.received.map(({ headers, path }) => [path, headers["content-type"]]))
      .toEqual([["/v1/traces", "application/x-protobuf"]])
  })

  it("has no metric without data points, of which receivers warn", async () => {
    const collector = await collectorAt()
    const { run, stop, telemetry } = await started(collector.origin, {
      OTEL_TRACES_EXPORTER: "none"
    })
    const family = { about: "Some", type: "counter" } as const
    await run(telemetry.exportMetrics(() => [
      { ...family, name: "empty", samples: [] },
      { ...family, name: "counted", samples: [[{}, 3]] }
    ]))
    await stop()
    const sent = collector.exportsOf("restante").at(-1) ?? []
    expect(sent.map(({ name }) => name)).toEqual(["restante.counted"])
  })

  it("is without traces or metrics if the settings say so", async () => {
    const collector = await collectorAt()
    const { run, stop, telemetry } = await started(collector.origin, {
      OTEL_TRACES_EXPORTER: "none",
      OTEL_METRICS_EXPORTER: "none"
    })
    expect(telemetry.traces).toBeUndefined()
    await run(telemetry.exportMetrics(() => []))
    await stop()
    expect(collector.received).toEqual([])
  })
})

describe("a sampler", () => {
  const low = "ab".repeat(9) + "0".repeat(14)
  const high = "ab".repeat(9) + "f".repeat(14)
  const by = (otelTracesSampler: SamplerSettings["otelTracesSampler"]): SamplerSettings => ({
    otelTracesSampler,
    otelTracesSamplerArg: 0.5
  })
  const parent = (sampled: boolean) => ({ traceId: low, spanId: "cd".repeat(8), sampled })

  it.each(
    [
      ["always_on", [true, true, true, true]],
      ["always_off", [false, false, false, false]],
      ["traceidratio", [true, false, true, true]],
      ["parentbased_always_on", [true, true, true, false]],
      ["parentbased_always_off", [false, false, true, false]],
      ["parentbased_traceidratio", [true, false, true, false]]
    ] as const
  )("%s selects by the id, the ratio and the parent", (name, selected) => {
    expect([
      isSampled(by(name), low, undefined),
      isSampled(by(name), high, undefined),
      isSampled(by(name), low, parent(true)),
      isSampled(by(name), low, parent(false))
    ]).toEqual(selected)
  })

  it("selects that share of new traces, and nothing below what it has not selected", async () => {
    const collector = await collectorAt()
    const { traces } = await started(collector.origin, {
      OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
      OTEL_TRACES_SAMPLER_ARG: "0.25"
    })
    const start = { name: "one", kind: "server", parent: undefined } as const
    const begun = Array.from({ length: 4_000 }, () => traces.begin(start))
    const share = begun.filter((span) => span !== undefined).length / begun.length
    expect(share).toBeGreaterThan(0.2)
    expect(share).toBeLessThan(0.3)
    const parent = `00-${low}-${"cd".repeat(8)}-00`
    expect(traces.begin({ ...start, parent })).toBeUndefined()
    expect(traces.begin({ ...start, parent: "00-1-2-01" })).toBeUndefined()
  })
})

describe("a collector", () => {
  it("that is not there costs spans, which are counted, and one line of the log", async () => {
    const { logs, stop, telemetry, traces } = await started(
      `http://127.0.0.1:${await closedPort()}`
    )
    record(traces, spanBatchMax)
    await eventually(
      withinMs,
      "the first batch is dropped",
      () => telemetry.droppedSpans.total === spanBatchMax ? true : undefined
    )
    record(traces, spanBatchMax)
    await eventually(
      withinMs,
      "the second batch is dropped",
      () => telemetry.droppedSpans.total === 2 * spanBatchMax ? true : undefined
    )
    expect(logs).toEqual([expect.stringMatching(/does not take spans: .*ECONNREFUSED/)])
    expect(logs.join()).not.toContain("the-secret-of-the-collector")
    await stop()
  })

  it("that takes spans again is logged once, and gets the next ones", async () => {
    let status = 400
    const collector = await collectorAt((_, response) => void response.writeHead(status).end())
    const { logs, telemetry, traces } = await started(collector.origin)
    record(traces, spanBatchMax)
    await eventually(withinMs, "the batch is refused", () => logs[0])
    expect(telemetry.droppedSpans.total).toBe(spanBatchMax)
    expect(collector.received).toHaveLength(1)
    status = 200
    record(traces, spanBatchMax)
    await eventually(withinMs, "the batch is taken", () => logs[1])
    expect(logs).toEqual([
      expect.stringContaining("does not take spans: it answers 400"),
      expect.stringContaining("takes spans again")
    ])
    expect(telemetry.droppedSpans.total).toBe(spanBatchMax)
  })

  it("that answers 503 gets the same batch again", async () => {
    const collector = await collectorAt((_, response) => {
      response.writeHead(collector.received.length < 2 ? 503 : 200).end()
    })
    const { stop, telemetry, traces } = await started(collector.origin)
    record(traces, spanBatchMax)
    await eventually(withinMs, "a repetition", () => collector.received[1])
    await stop()
    expect(collector.received[0]?.body).toBe(collector.received[1]?.body)
    expect(telemetry.droppedSpans.total).toBe(0)
  })

  it("that redirects gets nothing, and nobody else gets the headers", async () => {
    const other = await collectorAt()
    const collector = await collectorAt((_, response) =>
      void response.writeHead(307, { location: `${other.origin}/v1/traces` }).end()
    )
    const { logs, telemetry, traces } = await started(collector.origin)
    record(traces, spanBatchMax)
    await eventually(withinMs, "the batch is dropped", () => logs[0])
    expect([telemetry.droppedSpans.total, other.received]).toEqual([spanBatchMax, []])
  })

  it("that never answers holds up neither memory nor the end of the node", async () => {
    const collector = await collectorAt(() => {})
    const { stop, telemetry, traces } = await started(collector.origin)
    record(traces, spansHeldMax + 100)
    expect(telemetry.droppedSpans.total).toBe(100)
    await eventually(withinMs, "a request", () => collector.received[0])
    await stop()
  })
})

describe("the settings of telemetry", () => {
  it.each([
    { OTEL_EXPORTER_OTLP_ENDPOINT: "127.0.0.1:4317" },
    { OTEL_EXPORTER_OTLP_ENDPOINT: "http://user:word@collector.test" },
    { OTEL_EXPORTER_OTLP_HEADERS: "the-secret-of-the-collector" },
    { OTEL_EXPORTER_OTLP_HEADERS: "api-key=the-secret-of-the-collector%0d%0aHost: other" },
    { OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" },
    { OTEL_RESOURCE_ATTRIBUTES: "a=%zz" },
    { OTEL_TRACES_SAMPLER: "jaeger_remote" },
    { OTEL_TRACES_SAMPLER_ARG: "1.5" },
    { OTEL_METRIC_EXPORT_INTERVAL: "1s" }
  ])("end the start if they are wrong, without a secret in the message: %o", (variables) => {
    const loaded = loadSettings(variables)
    const message = Result.isFailure(loaded) ? loaded.failure.message : ""
    expect(message).toContain(Object.keys(variables)[0])
    expect(message).not.toContain("the-secret-of-the-collector")
  })

  it("show no header", () => {
    const loaded = loadSettings({ OTEL_EXPORTER_OTLP_HEADERS: credentials })
    const { resolved } = Result.getOrThrow(loaded)
    const headers = resolved.find(({ setting }) => setting.key === "otel.headers")
    expect([headers?.text, headers?.setting.flag]).toEqual(["<set>", undefined])
    expect(JSON.stringify(Result.getOrThrow(loaded))).not.toContain("the-secret-of-the-collector")
  })
})
