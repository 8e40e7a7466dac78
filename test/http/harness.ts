/**
 * Starts the service as clients see it: a real server on a free port, on the project's backend,
 * with an account `admin`. In a cluster every request goes to a node chosen at random.
 */
import type { Effect } from "effect"
import { randomInt } from "node:crypto"
import { createServer } from "node:net"
import type { AccessRecord } from "../../http/app.ts"
import { childOf, type Element, parseText } from "../../http/formats/xml/index.ts"
import type { ResourceHandler } from "../../http/pipeline/call.ts"
import type { Route } from "../../http/pipeline/routing.ts"
import type { Service } from "../../http/pipeline/service.ts"
import { openapiDocument } from "../../http/resource-table.ts"
import { bootstrap, type Bootstrapped } from "../../http/resources/accounts/bootstrap.ts"
import { openBackend } from "./backends.ts"
import { anyOf, balance } from "./balancer.ts"
import { Contract } from "./contract.ts"
import { type Node, startNode, type TestSettings } from "./nodes.ts"

export const adminToken = "the-admins-token-of-these-tests"

/** A running service. */
export interface Harness {
  /** The base URL, without a slash at its end. */
  readonly base: string
  /** The base URL of each node. */
  readonly nodes: ReadonlyArray<string>
  /** The service of the first node. */
  readonly service: Service
  /** The services of all nodes. */
  readonly services: ReadonlyArray<Service>
  readonly bootstrapped: Bootstrapped
  /** The access log so far. */
  readonly accesses: ReadonlyArray<AccessRecord>
  /** The service's OpenAPI document: `send` fails if an answer differs from it. */
  readonly contract: Contract
  /** A request to a path or an absolute URI; redirects are not followed. */
  readonly send: (method: string, path: string, options?: Sending) => Promise<Answered>
  readonly run: <A, E>(effect: Effect.Effect<A, E>) => Promise<A>
  readonly close: () => Promise<void>
}

export interface Sending {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  /** Content-Type; XML by default. */
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

  /** A header field; throws if it is missing. */
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

/**
 * Each worker has a range of ports, below those that the system assigns. It begins at a random port
 * of its range, since another run of the tests may be active.
 */
const portsEach = 500
let nextPort = randomInt(portsEach)

const freePort = (): Promise<number> => {
  const worker = Number(process.env["VITEST_POOL_ID"] ?? 0) % 20
  const port = 20_000 + worker * portsEach + nextPort++ % portsEach
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once("error", () => resolve(freePort()))
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(port)))
  })
}

/** Sends to a random node; `base` is the start of the URIs in answers. */
const sending = (
  base: string,
  ports: ReadonlyArray<number>,
  contract: Contract
): Harness["send"] =>
async (method, path, options = {}) => {
  const headers = new Headers(options.headers)
  if (options.basic !== undefined) {
    headers.set("Authorization", `Basic ${Buffer.from(options.basic).toString("base64")}`)
  }
  if (options.accept !== undefined) headers.set("Accept", options.accept)
  if (options.body !== undefined) headers.set("Content-Type", options.type ?? "application/xml")
  const own = path.startsWith(`${base}/`) ? path.slice(base.length) : path
  const node = `http://127.0.0.1:${anyOf(ports)}`
  const response = await fetch(own.startsWith("/") ? node + own : own, {
    method,
    headers,
    redirect: "manual",
    ...options.body === undefined ? {} : { body: options.body as string }
  })
  const answered = new Answered(response.status, response.headers, await response.text())
  const { host, pathname } = new URL(response.url)
  if (ports.some((port) => host === `127.0.0.1:${port}`)) {
    const faults = contract.faults({ method, path: pathname, ...answered })
    if (faults.length > 0) {
      const { status, text } = answered
      const summary = `${method} ${pathname} answered ${status}, unlike /openapi.json: `
      throw new Error(`${summary}${faults.join("; ")}\n${text.slice(0, 2000)}`)
    }
  }
  return answered
}

/** Starts a service with these resources. */
export const startService = async (
  routes: (service: Service) => ReadonlyArray<Route<ResourceHandler>>,
  settings: TestSettings = {},
  operator: { readonly adminToken: string | undefined } = { adminToken },
  issuer: () => Promise<Service["issuer"]> = async () => undefined
): Promise<Harness> => {
  const front = await freePort()
  const base = `http://127.0.0.1:${front}`
  const { discard, limits, nodes: backends, settled } = openBackend()
  // One after the other: a stream that two nodes create at once has no leader for a while.
  const nodes: Array<Node> = []
  for (const [at, ports] of backends.entries()) {
    nodes.push(
      await startNode({
        base,
        name: `node-${at}`,
        ports,
        limits,
        settings,
        issuer: await issuer()
      })
    )
  }
  const [first] = nodes
  if (first === undefined) throw new Error("the backend has no node")
  await settled(nodes.map(({ placement }) => placement))
  const bootstrapped = await first.run(bootstrap(first.service, operator.adminToken))
  const accesses: Array<AccessRecord> = []
  const ports: Array<number> = []
  for (const { serve } of nodes) {
    const port = nodes.length === 1 ? front : await freePort()
    await serve(port, routes, (access) => void accesses.push(access))
    ports.push(port)
  }
  const document = openapiDocument(first.service.settings)
  const contract = new Contract(document, routes(first.service))
  const balancer = nodes.length === 1 ? undefined : await balance(front, () => ports)
  return {
    base,
    nodes: ports.map((port) => `http://127.0.0.1:${port}`),
    service: first.service,
    services: nodes.map(({ service }) => service),
    bootstrapped,
    accesses,
    contract,
    send: sending(base, ports, contract),
    run: first.run,
    close: async () => {
      // The last answers of a node may need an actor of another one.
      await Promise.all(nodes.map(({ drain }) => drain()))
      const closed = await Promise.allSettled(nodes.map(({ close }) => close()))
      await balancer?.close()
      await discard()
      for (const one of closed) if (one.status === "rejected") throw one.reason
    }
  }
}
