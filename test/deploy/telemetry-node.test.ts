/** What nodes with a collector export: traces over a relay and a push, and what /metrics has. */
import { afterAll, beforeAll, expect, it } from "vitest"
import { type Answer, asAdmin, expectStatus, mailboxOf, notification, postXml,
  send } from "../e2e/client.ts"
import { closedPort } from "../e2e/faults.ts"
import { adminToken, cleanUp, eventually, type Service, start } from "../e2e/process.ts"
import { closeReceivers, echoes, type Received, receiver } from "../e2e/receivers.ts"
import { type SentMetric, type SentSpan, startCollector, type TestCollector,
  valuesOf } from "./collector.ts"

const withinMs = 120_000
const text = "the-text-of-the-notification"
const callbackToken = "the-token-of-the-callback"

let collector: TestCollector
let here: Service
let there: Service
const services: Array<Service> = []

const startOne = async (name: string): Promise<Service> => {
  const port = String(await closedPort())
  const service = await start({
    env: {
      PORT: port,
      BASE_URL: `http://127.0.0.1:${port}`,
      OUTBOUND_ALLOW: "127.0.0.0/8",
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.origin,
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_SERVICE_NAME: name,
      OTEL_METRIC_EXPORT_INTERVAL: "1000"
    }
  })
  services.push(service)
  return service
}

beforeAll(async () => {
  collector = await startCollector()
  here = await startOne("here")
  there = await startOne("there")
})
afterAll(async () => {
  closeReceivers()
  cleanUp()
  await collector.close()
})

/** A mailbox at a service: its absolute URI, and the secrets of it. */
const open = async (service: Service, name: string) => {
  const document = `<mailbox><name>${name}</name></mailbox>`
  const made: Answer = expectStatus(
    await postXml(service.url, "/mailboxes", document, asAdmin),
    201
  )
  return { uri: made.headers.get("location") ?? "", ...mailboxOf(made) }
}

/** The first span that satisfies a condition, when the collector has it. */
const spanOf = (what: string, isIt: (span: SentSpan) => boolean): Promise<SentSpan> =>
  eventually(withinMs, what, () => collector.spans().find(isIt))

const isBelow = (name: string, above: SentSpan) => (span: SentSpan): boolean =>
  span.name === name && span.traceId === above.traceId && span.parentSpanId === above.spanId

it("follows a notification over a relay to the other service, and a push from there", async () => {
  const pushes: Array<Received> = []
  const origin = await receiver((received, response) => {
    if (echoes(received, response)) return
    pushes.push(received)
    response.writeHead(204).end()
  })
  const mailbox = await open(there, "followed")
  const callback = `<registration><callback>${origin}/?token=${callbackToken}</callback>` +
    "</registration>"
  const registered = await postXml(
    there.url,
    `${new URL(mailbox.uri).pathname}/registrations`,
    callback,
    asAdmin
  )
  const registration = new URL(expectStatus(registered, 201).headers.get("location") ?? "")
  await eventually(withinMs, "the callback is verified", async () => {
    const { text } = await send(there.url, registration.pathname, { headers: asAdmin })
    return text.includes("status=\"active\"") ? true : undefined
  })
  const document = notification(text).replace("<item>", `<to>${mailbox.uri}</to><item>`)
  expectStatus(await postXml(here.url, "/outgoing/admin", document, asAdmin), 202)

  const sent = await spanOf("the request", ({ name }) => name === "POST /outgoing/{account}")
  expect(sent.parentSpanId).toBeUndefined()
  const relay = await spanOf("the relay", isBelow("relay", sent))
  const hop = await spanOf("its request", isBelow("POST", relay))
  expect(valuesOf(hop.attributes)).toEqual({
    "http.request.method": "POST",
    "server.address": "127.0.0.1",
    "server.port": Number(new URL(mailbox.uri).port),
    "http.response.status_code": 202
  })
  const deposit = await spanOf("the deposit", isBelow("POST /mailboxes/{mailbox}", hop))
  expect(valuesOf(deposit.attributes)).toMatchObject({
    "url.path": "/mailboxes/followed",
    "http.response.status_code": 202
  })
  await spanOf("the commit", isBelow("commit mailbox", deposit))

  const [pushed] = await eventually(
    withinMs,
    "a push",
    () => pushes.length > 0 ? pushes : undefined
  )
  const [, traceId, spanId] = String(pushed?.headers["traceparent"]).split("-")
  const pushHop = await spanOf(
    "the request of the push",
    (span) => span.traceId === traceId && span.spanId === spanId
  )
  const push = await spanOf("the push", ({ spanId }) => spanId === pushHop.parentSpanId)
  expect([push.name, push.parentSpanId]).toEqual(["push", undefined])

  const all = collector.received.map(({ body }) => body).join("\n")
  expect(all).toContain("/mailboxes/followed")
  const secret = mailbox.shared.split("~")[1] ?? ""
  for (const one of [adminToken, mailbox.password, secret, text, callbackToken]) {
    expect([one.length > 5, all.includes(one)], one).toEqual([true, false])
  }
})

/** The names of /metrics that the conventions of OpenTelemetry name otherwise. */
const conventional: Readonly<Record<string, string>> = {
  "http.server.request.duration": "restante_http_request_duration_seconds",
  "process.memory.usage": "restante_process_resident_memory_bytes",
  "process.uptime": "restante_process_uptime_seconds"
}

const suffixes: Readonly<Record<string, string>> = { s: "_seconds", By: "_bytes" }

/** The name that a collector which serves Prometheus makes of a metric. */
const prometheusName = ({ name, sum, unit }: SentMetric): string => {
  const suffix = suffixes[unit ?? ""] ?? ""
  const whole = `${name.replaceAll(".", "_")}${suffix}${sum === undefined ? "" : "_total"}`
  return conventional[name] ?? whole
}

const labelOf: Readonly<Record<string, string>> = {
  "http.request.method": "method",
  "http.route": "route"
}

const seriesOf = (name: string, labels: Readonly<Record<string, unknown>>): string => {
  const pairs = Object.entries(labels).map(([label, value]) =>
    `${labelOf[label] ?? label}="${String(value)}"`
  )
  return `${name}{${pairs.sort().join(",")}}`
}

/** The series of an export, as /metrics has them. */
const exportedSeries = (metrics: ReadonlyArray<SentMetric>): ReadonlyMap<string, number> =>
  new Map(metrics.flatMap((metric): ReadonlyArray<readonly [string, number]> => {
    const name = prometheusName(metric)
    const { gauge, histogram, sum } = metric
    if (histogram === undefined) {
      return (sum ?? gauge)?.dataPoints.map(({ asDouble = Number.NaN, attributes }) =>
        [seriesOf(name, valuesOf(attributes)), asDouble] as const
      ) ?? []
    }
    return histogram.dataPoints.flatMap((point) => {
      const { attributes, bucketCounts = [], count = Number.NaN, explicitBounds = [], sum = 0 } =
        point
      const labels = valuesOf(attributes)
      let below = 0
      const buckets = [...explicitBounds, "+Inf"].map((bound, at) => {
        below += bucketCounts[at] ?? Number.NaN
        return [seriesOf(`${name}_bucket`, { ...labels, le: bound }), below] as const
      })
      return [
        ...buckets,
        [seriesOf(`${name}_sum`, labels), sum] as const,
        [seriesOf(`${name}_count`, labels), count] as const
      ]
    })
  }))

/** The series of the text of /metrics. */
const scrapedSeries = async (): Promise<ReadonlyMap<string, number>> => {
  const { text } = await send(here.url, "/metrics", { headers: asAdmin })
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"))
  return new Map(lines.map((line) => {
    const [, name = "", inside = "", value = ""] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
    const labels = [...inside.matchAll(/(\w+)="([^"]*)"/g)].map(([, label = "", text = ""]) =>
      [label, text] as const
    )
    return [seriesOf(name, Object.fromEntries(labels)), Number(value)] as const
  }))
}

/** Series that change in one direction only, or never: equal before and after means unchanged. */
const isSteady = (series: string): boolean =>
  /_(?:total|bucket|sum|count)\{/.test(series) ||
  /^restante_(?:cluster_members|shards_owned|anonymous_content_limit_bytes)\{/.test(series)

it("exports what /metrics has, with the same values", async () => {
  await send(here.url, "/livez")
  const before = await scrapedSeries()
  const count = collector.exportsOf("here").length
  // The node may have read the figures of the next export already, but not those of the second.
  const second = await eventually(
    withinMs,
    "two exports",
    () => collector.exportsOf("here")[count + 1]
  )
  const after = await scrapedSeries()
  const exported = exportedSeries(second)
  const names = (series: Iterable<string>) =>
    new Set([...series].map((one) => one.replace(/\{.*$/, "")))
  const has = names(exported.keys())
  expect([...names(before.keys())].filter((name) => !has.has(name))).toEqual([])
  const steady = [...before].filter(([series, value]) =>
    isSteady(series) && after.get(series) === value
  )
  expect(steady.length).toBeGreaterThan(100)
  expect(steady.map(([series]) => [series, exported.get(series)])).toEqual(steady)
})

it("ends in time, and has sent what it had", async () => {
  expectStatus(await send(here.url, "/problems"), 200)
  for (const service of services) expect((await service.stop()).code).toBe(0)
  const last = collector.spans().find(({ name }) => name === "GET /problems")
  expect(last).toBeDefined()
  for (const service of services) expect(service.output).not.toContain("the collector at")
})
