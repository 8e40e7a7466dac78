/** Clients that begin a request and then send nothing, and honest ones beside them. */
import { connect, type Socket } from "node:net"
import { basic, expectStatus, type Mailbox, metricValue, notification, postXml,
  send } from "../e2e/client.ts"
import { eventually, pause, type Service } from "../e2e/process.ts"
import { head } from "../e2e/raw.ts"

const memoryMetric = "restante_process_resident_memory_bytes"

/** Connections that start together: fewer than the backlog of the listening socket. */
const openedTogether = 100

const documentBytes = 256 * 1024

/** A field with the address of client `n`, each of another network, for a trusted proxy. */
export const eachOfItsOwn = (n: number): ReadonlyArray<string> => [
  `X-Forwarded-For: 100.${64 + (n >> 8)}.${n & 255}.7`
]

/** The same of one network. */
export const allOfOne = (n: number): ReadonlyArray<string> => [
  `X-Forwarded-For: 203.0.113.${n % 250}`
]

/** What a stalled client sends: client `n` has the fields `from(n)`. */
export type Opening = (n: number, from: (n: number) => ReadonlyArray<string>) => string | Buffer

const begun = (line: string, bytes: number): Opening => (n, from) =>
  Buffer.concat([
    Buffer.from(head(
      line,
      "Host: a",
      "Content-Type: application/xml",
      `Content-Length: ${bytes}`,
      ...from(n)
    )),
    Buffer.alloc(bytes / 2, "x")
  ])

export const halfDocument = ({ path }: Mailbox): Opening =>
  begun(`POST ${path} HTTP/1.1`, documentBytes)

export const halfUpload: Opening = begun("POST /content HTTP/1.1", documentBytes)

/** Small enough for the store to have it in memory. */
export const halfSmallUpload: Opening = begun("POST /content HTTP/1.1", 20_000)

export const halfHeaderBlock: Opening = () => `GET / HTTP/1.1\r\nHost: a\r\nX: ${"x".repeat(8_000)}`

/** Connections of stalled clients, and what the service answered to them. */
export class StalledClients {
  private readonly port: number
  private readonly sockets = new Set<Socket>()
  private readonly ends = new Map<string, number>()
  /** One answer of each status. */
  readonly answers = new Map<string, string>()

  constructor(port: number) {
    this.port = port
  }

  /** How many connections ended with each status, or with none. */
  get counts(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.ends)
  }

  get open(): number {
    return this.sockets.size
  }

  private begin(bytes: string | Buffer): Promise<void> {
    return new Promise((resolve) => {
      const socket = connect({ host: "127.0.0.1", port: this.port })
      this.sockets.add(socket)
      let received = ""
      socket.on("error", () => undefined)
      socket.on("data", (chunk) => {
        received += chunk.toString("latin1")
      })
      socket.on("close", () => {
        this.sockets.delete(socket)
        const status = /^HTTP\/1\.1 (\d+)/.exec(received)?.[1] ?? "none"
        this.ends.set(status, (this.ends.get(status) ?? 0) + 1)
        this.answers.set(status, received)
        resolve()
      })
      socket.write(bytes, () => resolve())
    })
  }

  async lay(
    clients: number,
    opening: Opening,
    from: (n: number) => ReadonlyArray<string>
  ): Promise<void> {
    for (let at = 0; at < clients; at += openedTogether) {
      const some = Math.min(openedTogether, clients - at)
      await Promise.all(Array.from({ length: some }, (_, n) => this.begin(opening(at + n, from))))
    }
  }

  /** Waits until the service has ended every connection. */
  async ended(withinMs: number): Promise<void> {
    await eventually(withinMs, "every connection has ended", () => this.open === 0 || undefined)
  }

  end(): void {
    for (const socket of this.sockets) socket.destroy()
  }
}

const percentile = (values: ReadonlyArray<number>, share: number): number =>
  values.toSorted((a, b) => a - b)[Math.ceil(values.length * share) - 1] ?? 0

/** Honest clients: each deposits and reads the listing, which must always succeed. */
export class HonestClients {
  private readonly service: Service
  private readonly mailbox: Mailbox
  private readonly waitsMs: Array<number> = []
  private over = false
  private running: Promise<void> | undefined
  private failure: unknown
  private peakBytes = 0
  /** Honest requests so far. */
  requests = 0

  constructor(service: Service, mailbox: Mailbox) {
    this.service = service
    this.mailbox = mailbox
  }

  private async timed(request: () => Promise<unknown>): Promise<void> {
    const startedMs = performance.now()
    await request()
    this.waitsMs.push(performance.now() - startedMs)
    this.requests += 1
  }

  private async once(n: number): Promise<void> {
    const { mailbox, service } = this
    const fields = { "x-forwarded-for": "198.51.100.9" }
    const authorization = basic("reader", mailbox.password)
    await this.timed(async () => {
      const text = notification(`honest-${n}`)
      expectStatus(await postXml(service.url, mailbox.path, text, fields), 202)
    })
    await this.timed(async () => {
      const headers = { ...fields, authorization }
      expectStatus(await send(service.url, `${mailbox.path}?limit=20`, { headers }), 200)
    })
    this.peakBytes = Math.max(this.peakBytes, await this.memoryBytes())
    await pause(20)
  }

  /** Resident memory of the service. */
  memoryBytes(): Promise<number> {
    return metricValue(this.service.url, memoryMetric)
  }

  begin(): void {
    this.running = (async () => {
      for (let n = 0; !this.over; n += 1) await this.once(n)
    })().catch((error: unknown) => {
      this.failure = error
    })
  }

  /** Ends; fails with the first honest request that failed. */
  async end(): Promise<{ readonly peakBytes: number; readonly p99Ms: number }> {
    this.over = true
    await this.running
    if (this.failure !== undefined) throw this.failure
    return { peakBytes: this.peakBytes, p99Ms: percentile(this.waitsMs, 0.99) }
  }
}
