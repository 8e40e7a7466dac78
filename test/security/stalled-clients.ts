/** Clients that begin a request and then send nothing, and an honest one beside them. */
import { type ChildProcess, fork } from "node:child_process"
import { connect, type Socket } from "node:net"
import { fileURLToPath } from "node:url"
import { type Mailbox, metricValue } from "../e2e/client.ts"
import { eventually, type Service } from "../e2e/process.ts"
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

/** What an honest client has experienced. */
interface Honest {
  readonly requests: number
  /** Of all requests since {@link HonestClient.measure}. */
  readonly p99Ms: number
  /** The largest resident memory of the service. */
  readonly peakBytes: number
}

/** A message of `honest-client.mjs`. */
type Report =
  | { readonly isOver: false; readonly requests: number }
  | (Honest & { readonly isOver: true; readonly failure?: string })

const program = new URL("honest-client.mjs", import.meta.url)

/** An honest client, which deposits and reads the listing: each request must succeed. */
export class HonestClient {
  private readonly service: Service
  private readonly mailbox: Mailbox
  private child: ChildProcess | undefined
  private ending: Promise<Honest> | undefined
  /** Requests so far. */
  requests = 0

  constructor(service: Service, mailbox: Mailbox) {
    this.service = service
    this.mailbox = mailbox
  }

  /** Resident memory of the service. */
  memoryBytes(): Promise<number> {
    return metricValue(this.service.url, memoryMetric)
  }

  begin(): void {
    const { mailbox, service } = this
    const child = fork(fileURLToPath(program), [service.url, mailbox.path, mailbox.password])
    this.child = child
    this.ending = new Promise((resolve, reject) => {
      child.on("message", (report: Report) => {
        this.requests = report.requests
        if (!report.isOver) return
        if (report.failure === undefined) resolve(report)
        else reject(new Error(report.failure))
      })
      child.once("exit", (code) => reject(new Error(`the honest client ended: ${code}`)))
    })
    // Until `end` waits for it.
    this.ending.catch(() => undefined)
  }

  /** Its waits count from now on. */
  measure(): void {
    this.child?.send("measure")
  }

  /** Ends; fails with the first request that failed. */
  async end(): Promise<Honest> {
    if (this.child === undefined || this.ending === undefined) throw new Error("it did not begin")
    if (this.child.connected) this.child.send("end")
    return this.ending
  }
}
