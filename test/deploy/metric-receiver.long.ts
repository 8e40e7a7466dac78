/** A real Prometheus, built from Go modules, receives metrics by OTLP: they are `/metrics`. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { stringify } from "yaml"
import { asAdmin, expectStatus, notification, postXml, send } from "../e2e/client.ts"
import { cleanUp, eventually, Running, type Service, start,
  temporaryFolder } from "../e2e/process.ts"
import { freePorts } from "../runtime/nats/servers.ts"
import { goBuildWithinMs, goProgram } from "./go-programs.ts"
import { at, listAt, treeAt } from "./sources.ts"

const prometheusModule = "github.com/prometheus/prometheus/cmd/prometheus"
/** Prometheus 3.16. */
const prometheusVersion = "v0.316.0"
/** Without the clients of clouds, which discover what to scrape and are most of the program. */
const prometheusTags = ["remove_all_sd"]
const withinMs = 120_000

/** What the conventions call otherwise than `/metrics` does, as Prometheus writes it. */
const conventionalNames: Readonly<Record<string, string>> = {
  restante_process_resident_memory_bytes: "process_memory_usage_bytes",
  restante_process_uptime_seconds: "process_uptime_seconds",
  method: "http_request_method",
  route: "http_route"
}
const requestDuration = /^restante_http_request_duration_seconds/

/** The labels that Prometheus makes of the resource. */
const ofResource = ["__name__", "instance", "job"]

let receiver: Running
let origin = ""
const ports = new Map<string, number>()

const startOne = async (protocol: string): Promise<Service> => {
  const [metrics = 0] = await freePorts(1)
  const service = await start({
    env: {
      METRICS_LISTEN: `127.0.0.1:${metrics}`,
      OTEL_EXPORTER_OTLP_ENDPOINT: `${origin}/api/v1/otlp`,
      OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
      OTEL_METRIC_EXPORT_INTERVAL: "1000",
      OTEL_SERVICE_NAME: protocol,
      OTEL_TRACES_EXPORTER: "none"
    }
  })
  ports.set(protocol, metrics)
  return service
}

beforeAll(async () => {
  const binary = await goProgram(prometheusModule, prometheusVersion, prometheusTags)
  const [port = 0] = await freePorts(1)
  origin = `http://127.0.0.1:${port}`
  const folder = temporaryFolder()
  writeFileSync(join(folder, "prometheus.yaml"), stringify({ scrape_configs: [] }))
  receiver = new Running(binary, [
    `--config.file=${join(folder, "prometheus.yaml")}`,
    `--storage.tsdb.path=${join(folder, "data")}`,
    `--web.listen-address=127.0.0.1:${port}`,
    "--web.enable-otlp-receiver"
  ], {})
  await eventually(withinMs, "Prometheus is ready", async () => {
    if (receiver.isOver) throw new Error(receiver.output)
    const answer = await fetch(`${origin}/-/ready`).catch(() => undefined)
    return answer?.status === 200 ? true : undefined
  })
}, goBuildWithinMs)

afterAll(cleanUp)

type Samples = ReadonlyMap<string, number>

/** One name for a sample, whichever of both writes it. */
const keyOf = (name: string, labels: ReadonlyArray<readonly [string, string]>): string => {
  const renamed = labels.map(([label, value]) => [
    conventionalNames[label] ?? label,
    label === "le" ? String(value === "+Inf" ? Infinity : Number(value)) : value
  ])
  const conventional = conventionalNames[name]
    ?? name.replace(requestDuration, "http_server_request_duration_seconds")
  return JSON.stringify([conventional, ...renamed.toSorted()])
}

/** The samples of `/metrics`, and the names of those that only a gauge may change. */
const rendered = async (port: number) => {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  const samples = new Map<string, number>()
  const gauges = [...text.matchAll(/^# TYPE (\w+) gauge$/gm)].map(([, name = ""]) => name)
  for (const [, name = "", labels = "", value] of text.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm)) {
    const pairs = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, label = "", one = ""]) =>
      [label, one] as const
    )
    samples.set(keyOf(name, pairs), Number(value))
  }
  return { samples, gauges: gauges.map((name) => conventionalNames[name] ?? name) }
}

/** The samples that Prometheus has of a service. */
const receivedOf = async (job: string): Promise<Samples> => {
  const search = new URLSearchParams({ query: `{job="${job}", __name__!="target_info"}` })
  const answer: unknown = await (await fetch(`${origin}/api/v1/query?${search}`)).json()
  return new Map(
    listAt(answer, "data", "result").map((one) => {
      const labels = Object.entries(treeAt(one, "metric")).map(([label, value]) =>
        [label, String(value)] as const
      )
      const name = String(at(one, "metric", "__name__"))
      const own = labels.filter(([label]) => !ofResource.includes(label))
      return [keyOf(name, own), Number(at(one, "value", 1))]
    })
  )
}

const counted = (samples: Samples, gauges: ReadonlyArray<string>) =>
  [...samples].filter(([key]) => !gauges.some((name) => key.startsWith(`["${name}"`))).toSorted()

it.each(["http/protobuf", "http/json"])("receives what /metrics has by %s", async (protocol) => {
  const service = await startOne(protocol)
  const document = "<mailbox><name>measured</name></mailbox>"
  expectStatus(await postXml(service.url, "/mailboxes", document, asAdmin), 201)
  for (let n = 0; n < 5; n++) {
    const sent = notification(`measured-${n}`)
    expectStatus(await postXml(service.url, "/mailboxes/measured", sent), 202)
  }
  expectStatus(await send(service.url, "/mailboxes/measured", { headers: asAdmin }), 200)
  expectStatus(await send(service.url, "/mailboxes/absent"), 404)
  const port = ports.get(protocol) ?? 0
  const { received, shown } = await eventually(withinMs, "the same values", async () => {
    const now = await rendered(port)
    const then = await receivedOf(protocol)
    const [one, other] = [now.samples, then].map((samples) => counted(samples, now.gauges))
    return JSON.stringify(one) === JSON.stringify(other)
      ? { received: then, shown: now }
      : undefined
  }, 500)
  // A gauge may have changed since, but each of them came.
  expect([...received.keys()].toSorted()).toEqual([...shown.samples.keys()].toSorted())
  const deposits = [
    ["http_request_method", "POST"],
    ["http_route", "/mailboxes/{mailbox}"],
    ["status", "2xx"]
  ] as const
  expect(received.get(keyOf("restante_http_requests_total", deposits))).toBe(5)
  expect(received.get(keyOf("process_memory_usage_bytes", []))).toBeGreaterThan(1_000_000)
  expect(received.size).toBeGreaterThan(100)
  expect(service.output).not.toContain("the collector at")
  expect(receiver.output).not.toContain("Warnings translating OTLP metrics")
  await service.stop()
})
