/**
 * The service as its clients see it: a real server on a free port over ports in memory or upon
 * RocksDB, with an account `admin`, and readers of what it answers.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Exit, Layer, Logger, ManagedRuntime, Scope } from "effect"
import { makeOutbound } from "../../actors/delivery/client.ts"
import { readerOf } from "../../actors/delivery/reader.ts"
import { behaviours, linksUnder } from "../../actors/index.ts"
import { bootstrap, type Bootstrapped } from "../../http/accounts/index.ts"
import { type Access, application } from "../../http/app.ts"
import type { Handler } from "../../http/call.ts"
import { documents } from "../../http/documents.ts"
import { HttpMeasures } from "../../http/inside/measures.ts"
import type { Route } from "../../http/routing.ts"
import { listen } from "../../http/server.ts"
import type { HttpSettings, Service } from "../../http/service.ts"
import { Throttle } from "../../http/throttle.ts"
import { childOf, type Element, parseText } from "../../http/xml.ts"
import { embedded } from "../../runtime/embedded/index.ts"
import { alone, Blobs, Records, System } from "../../runtime/index.ts"
import { memoryBlobs } from "../../runtime/ports/memory-blobs.ts"
import { memoryRecords } from "../../runtime/ports/memory-records.ts"
import { memoryStorage } from "../../runtime/ports/memory-storage.ts"
import { memoryTransport } from "../../runtime/ports/memory-transport.ts"

/** The wait before each attempt at another service: a recipient that faults is tried five times. */
export const schedule = [0, 50, 50, 100, 100]

export const adminToken = "the-admins-token-of-these-tests"

/** A running service. */
export interface Harness {
  /** The base URL, without a slash at its end. */
  readonly base: string
  readonly service: Service
  readonly bootstrapped: Bootstrapped
  /** What was answered so far. */
  readonly accesses: ReadonlyArray<Access>
  /** A request to a path or an absolute URI; redirects are not followed. */
  readonly send: (method: string, path: string, options?: Sending) => Promise<Answered>
  readonly run: <A, E>(effect: Effect.Effect<A, E>) => Promise<A>
  readonly close: () => Promise<void>
}

export interface Sending {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  /** Content-Type; XML unless said. */
  readonly type?: string
  /** `name:token` for Basic. */
  readonly basic?: string
  readonly accept?: string
}

/** An answer, read to its end. */
export class Answered {
  readonly status: number
  readonly headers: Headers
  readonly text: string

  constructor(status: number, headers: Headers, text: string) {
    this.status = status
    this.headers = headers
    this.text = text
  }

  /** A field that must be there. */
  header(name: string): string {
    const value = this.headers.get(name)
    if (value === null) throw new Error(`no ${name} in a ${this.status}: ${this.text}`)
    return value
  }

  get etag(): string {
    return this.header("etag")
  }

  /** The body's root element. */
  get xml(): Element {
    const parsed = parseText(this.text)
    if (!parsed.ok) throw new Error(`${parsed.fault.detail}: ${this.text}`)
    return parsed.value
  }

  /** The text of a child element of the root. */
  child(name: string): string | undefined {
    const child = childOf(this.xml, name)
    return child === undefined ? undefined : child.children.join("")
  }

  get json(): unknown {
    return JSON.parse(this.text)
  }
}

/** Below the ports that the system gives out, a range for each worker: none takes another's. */
const portsEach = 500
let nextPort = 0

const freePort = (): Promise<number> => {
  const worker = Number(process.env["VITEST_POOL_ID"] ?? 0) % 20
  const port = 20_000 + worker * portsEach + nextPort++ % portsEach
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once("error", () => resolve(freePort()))
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(port)))
  })
}

const sending = (base: string): Harness["send"] => async (method, path, options = {}) => {
  const headers = new Headers(options.headers)
  if (options.basic !== undefined) {
    headers.set("Authorization", `Basic ${Buffer.from(options.basic).toString("base64")}`)
  }
  if (options.accept !== undefined) headers.set("Accept", options.accept)
  if (options.body !== undefined) headers.set("Content-Type", options.type ?? "application/xml")
  const response = await fetch(path.startsWith("/") ? base + path : path, {
    method,
    headers,
    redirect: "manual",
    ...options.body === undefined ? {} : { body: options.body as string }
  })
  return new Answered(response.status, response.headers, await response.text())
}

/** Every port in memory, or upon RocksDB in a folder of its own: each suite runs on both. */
const backend = () => {
  if (process.env["TEST_BACKEND"] !== "embedded") {
    const ports = Layer.mergeAll(memoryStorage, memoryTransport, memoryBlobs, memoryRecords, alone)
    return { ports, folder: undefined }
  }
  const folder = mkdtempSync(join(tmpdir(), "restante-http-"))
  // A store that does not open breaks the test, as it should.
  return { ports: Layer.merge(Layer.orDie(embedded(folder)), alone), folder }
}

/** Starts a service with these resources. */
export const startService = async (
  routes: (service: Service) => ReadonlyArray<Route<Handler>>,
  settings: Partial<HttpSettings> = {},
  operator: { readonly adminToken: string | undefined } = { adminToken }
): Promise<Harness> => {
  const port = await freePort()
  const base = `http://127.0.0.1:${port}`
  const { folder, ports } = backend()
  const arriving = new Set<string>()
  const scope = Scope.makeUnsafe()
  const outbound = await Effect.runPromise(Scope.provide(
    makeOutbound({
      allow: ["127.0.0.0/8"],
      userAgent: "restante/0.0.0-test",
      nowMs: () => Date.now(),
      random: Math.random
    }),
    scope
  ))
  const layer = Layer.unwrap(Effect.gen(function*() {
    return System.layer({
      behaviours: behaviours({
        blobs: yield* Blobs,
        records: yield* Records,
        outbound,
        links: linksUnder(base),
        documents,
        schedule,
        keepMs: 7 * 24 * 60 * 60 * 1000,
        arriving,
        random: Math.random
      })
    })
  })).pipe(Layer.provideMerge(ports), Layer.provideMerge(Logger.layer([])))
  const runtime = ManagedRuntime.make(layer)
  const nowMs = () => Date.now()
  const service: Service = {
    settings: {
      baseUrl: base,
      version: "0.0.0-test",
      publish: "anyone",
      contentBytesMax: 1024 * 1024,
      retentionMs: 30 * 24 * 60 * 60 * 1000,
      corsOrigin: "*",
      ...settings
    },
    system: await runtime.runPromise(Effect.service(System)),
    blobs: await runtime.runPromise(Effect.service(Blobs)),
    records: await runtime.runPromise(Effect.service(Records)),
    readOutside: readerOf(outbound),
    arriving,
    start: "sole.test",
    serviceKey: "the key of these tests",
    throttle: new Throttle(nowMs),
    measures: new HttpMeasures(),
    metrics: () => "",
    ready: Effect.void,
    nowMs
  }
  const bootstrapped = await runtime.runPromise(bootstrap(service, operator.adminToken))
  const accesses: Array<Access> = []
  const handler = application(
    service,
    routes(service),
    (effect, observer) => void runtime.runCallback(effect, { onExit: observer }),
    (access) => void accesses.push(access)
  )
  const errors: Array<unknown> = []
  const server = await listen({
    host: "127.0.0.1",
    port,
    baseUrl: base,
    handler,
    onError: (error) => void errors.push(error)
  })
  const close = async (): Promise<void> => {
    await server.drain(2_000)
    await runtime.dispose()
    await Effect.runPromise(Scope.close(scope, Exit.void))
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
    if (errors.length > 0) throw new AggregateError(errors, "requests broke")
  }
  const send = sending(base)
  return { base, service, bootstrapped, accesses, send, run: runtime.runPromise, close }
}
