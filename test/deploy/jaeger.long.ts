/** A real Jaeger, built from Go modules, reads the spans of two services, in both forms of OTLP. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { stringify } from "yaml"
import { asAdmin, expectStatus, notification, postXml } from "../e2e/client.ts"
import { closedPort } from "../e2e/faults.ts"
import { cleanUp, eventually, Running, type Service, start,
  temporaryFolder } from "../e2e/process.ts"
import { freePorts } from "../runtime/nats/servers.ts"
import { goBuildWithinMs, goProgram } from "./go-programs.ts"
import { at, listAt } from "./sources.ts"

const jaegerModule = "github.com/jaegertracing/jaeger/cmd/jaeger"
const jaegerVersion = "v1.76.0"
const withinMs = 120_000

const configuration = (otlp: number, query: number, grpc: number) => ({
  service: {
    extensions: ["jaeger_storage", "jaeger_query"],
    pipelines: { traces: { receivers: ["otlp"], exporters: ["jaeger_storage_exporter"] } },
    telemetry: { metrics: { level: "none" } }
  },
  extensions: {
    jaeger_storage: { backends: { kept: { memory: { max_traces: 10_000 } } } },
    jaeger_query: {
      storage: { traces: "kept" },
      http: { endpoint: `127.0.0.1:${query}` },
      grpc: { endpoint: `127.0.0.1:${grpc}` }
    }
  },
  receivers: { otlp: { protocols: { http: { endpoint: `127.0.0.1:${otlp}` } } } },
  exporters: { jaeger_storage_exporter: { trace_storage: "kept" } }
})

let jaeger: Running
let api = ""
let here: Service
let there: Service

const startOne = async (name: string, endpoint: string, protocol: string): Promise<Service> => {
  const port = String(await closedPort())
  return start({
    env: {
      PORT: port,
      BASE_URL: `http://127.0.0.1:${port}`,
      OUTBOUND_ALLOW: "127.0.0.0/8",
      OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
      OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
      OTEL_SERVICE_NAME: name,
      OTEL_METRICS_EXPORTER: "none"
    }
  })
}

beforeAll(async () => {
  const binary = await goProgram(jaegerModule, jaegerVersion)
  const [otlp = 0, query = 0, grpc = 0] = await freePorts(3)
  const file = join(temporaryFolder(), "jaeger.yaml")
  writeFileSync(file, stringify(configuration(otlp, query, grpc)))
  jaeger = new Running(binary, ["--config", file], {})
  api = `http://127.0.0.1:${query}/api`
  await eventually(withinMs, "Jaeger answers", async () => {
    if (jaeger.isOver) throw new Error(jaeger.output)
    const isUp = await fetch(`${api}/services`).then((response) => response.ok, () => false)
    return isUp ? true : undefined
  })
  const endpoint = `http://127.0.0.1:${otlp}`
  here = await startOne("here", endpoint, "http/protobuf")
  there = await startOne("there", endpoint, "http/json")
}, goBuildWithinMs)

afterAll(cleanUp)

interface ShownSpan {
  readonly id: string
  readonly name: string
  readonly parent: string | undefined
  readonly service: unknown
  readonly tags: Readonly<Record<string, unknown>>
}

/** The spans of a trace, as Jaeger shows them. */
const spansOf = async (traceId: string): Promise<ReadonlyArray<ShownSpan>> => {
  const response = await fetch(`${api}/traces/${traceId}`)
  if (response.status === 404) return []
  const answer: unknown = await response.json()
  return listAt(answer, "data").flatMap((trace) =>
    listAt(trace, "spans").map((span): ShownSpan => {
      const parent = at(span, "references", 0, "spanID")
      return {
        id: String(at(span, "spanID")),
        name: String(at(span, "operationName")),
        parent: parent === undefined ? undefined : String(parent),
        service: at(trace, "processes", String(at(span, "processID")), "serviceName"),
        tags: Object.fromEntries(
          listAt(span, "tags").map((tag) => [String(at(tag, "key")), at(tag, "value")])
        )
      }
    })
  )
}

it("shows a notification from its request to the commit at the other service", async () => {
  const document = "<mailbox><name>traced</name></mailbox>"
  const made = expectStatus(await postXml(there.url, "/mailboxes", document, asAdmin), 201)
  const mailbox = made.headers.get("location") ?? ""
  const traceId = "5e".repeat(16)
  const sent = notification("traced").replace("<item>", `<to>${mailbox}</to><item>`)
  const traceparent = `00-${traceId}-${"ab".repeat(8)}-01`
  const queued = await postXml(here.url, "/outgoing/admin", sent, { ...asAdmin, traceparent })
  expectStatus(queued, 202)
  const spans = await eventually(withinMs, "the whole trace", async () => {
    const found = await spansOf(traceId)
    const isWhole = found.some(({ name, service }) =>
      name === "commit mailbox" && service === "there"
    )
    return isWhole && found.some(({ name }) => name === "relay") ? found : undefined
  })
  const named = (name: string) => spans.find((span) => span.name === name)
  const chain = [
    "POST /outgoing/{account}",
    "relay",
    "POST",
    "POST /mailboxes/{mailbox}",
    "commit mailbox"
  ].map(named)
  expect(chain.map((span) => span?.service)).toEqual(["here", "here", "here", "there", "there"])
  expect(chain.map((span) => span?.parent))
    .toEqual(["ab".repeat(8), ...chain.slice(0, -1).map((span) => span?.id)])
  expect(named("POST /mailboxes/{mailbox}")?.tags).toMatchObject({
    "http.request.method": "POST",
    "http.route": "/mailboxes/{mailbox}",
    "http.response.status_code": 202,
    "url.path": "/mailboxes/traced",
    "span.kind": "server"
  })
  for (const service of [here, there]) expect(service.output).not.toContain("the collector at")
})
