/**
 * Ten thousand slow clients. The service serves honest clients as fast as a service without slow
 * ones does, and in the end it disconnects the slow ones.
 */
import { execFileSync } from "node:child_process"
import { connect, type Socket } from "node:net"
import { afterAll, expect, it } from "vitest"
import { expectStatus, listMailbox, type Mailbox, metricValue, notification, openMailbox,
  postXml } from "../e2e/client.ts"
import { cleanUp, eventually, pause, type Service, start } from "../e2e/process.ts"
import { head } from "../e2e/raw.ts"

const slowClientsMax = 10_000
/** File descriptors that this process, or the service, needs for other things. */
const otherFiles = 2_000
/** Clients that connect at the same time: fewer than the backlog of the listening socket. */
const connectingMax = 200
/** One of this many clients drips: it sends a byte each second. */
const dripEvery = 10
const dripMs = 1_000
const honestRequests = 100
/** Largest p99 with slow clients: a multiple of the other service's p99, plus a constant. */
const slowerAtMost = 10
const slackMs = 5_000
const memory = "restante_process_resident_memory_bytes"
/** Memory for each slow client, and for all other things. */
const clientBytesMax = 20 * 1024
const besidesBytesMax = 128 * 1024 * 1024
/** A disconnected client reconnects after this time. */
const awayMs = 1_000
/** A busy machine needs longer. */
const withinMs = 120_000

afterAll(cleanUp)

/** Node.js raises its soft limit of descriptors to the hard one, and so does the service. */
const filesMax = (): number => {
  const text = execFileSync("sh", ["-c", "ulimit -Hn"], { encoding: "utf8" }).trim()
  return text === "unlimited" ? Number.POSITIVE_INFINITY : Number(text)
}

/** The bytes that a slow client sends before it is silent, or drips. */
const openings = (mailbox: Mailbox): ReadonlyArray<string> => [
  "",
  "GET / HTTP/1.1\r\nHost: a\r\nX: ",
  head(
    `POST ${mailbox.path} HTTP/1.1`,
    "Host: a",
    "Content-Type: application/xml",
    "Content-Length: 100000"
  ),
  head("POST /content HTTP/1.1", "Host: a", "Content-Length: 100000"),
  `${head("POST /content HTTP/1.1", "Host: a", "Transfer-Encoding: chunked")}ffff\r\n`
]

/**
 * Slow clients that keep connecting: those that the service disconnects come back, until the siege
 * is lifted. On a busy machine they are disconnected about as fast as they can connect, so that
 * fewer than all are connected at once.
 */
class Siege {
  private readonly port: number
  private readonly openings: ReadonlyArray<string>
  private readonly sockets = new Set<Socket>()
  private readonly drip: NodeJS.Timeout
  private readonly waiting: Array<number> = []
  private connecting = 0
  private lifted = false
  /** The number of connections so far. */
  connected = 0
  /** The number of disconnected clients so far. */
  disconnected = 0
  /** The largest number of clients that were connected at once. */
  most = 0

  constructor(port: number, openings: ReadonlyArray<string>) {
    this.port = port
    this.openings = openings
    let round = 0
    // Not all at once, which is not realistic.
    this.drip = setInterval(() => {
      round += 1
      let n = 0
      for (const socket of this.sockets) {
        n += 1
        if ((n + round) % dripEvery === 0 && socket.writable) socket.write("x")
      }
    }, dripMs)
  }

  get size(): number {
    return this.sockets.size
  }

  /** Lets a client connect, once fewer than {@link connectingMax} others do. */
  private open(n: number): void {
    if (this.lifted) return
    if (this.connecting >= connectingMax) {
      this.waiting.push(n)
      return
    }
    this.connecting += 1
    const socket = connect({ host: "127.0.0.1", port: this.port })
    socket.on("error", () => undefined)
    socket.on("connect", () => {
      this.connected += 1
      this.sockets.add(socket)
      this.most = Math.max(this.most, this.size)
      socket.write(this.openings[n % this.openings.length] ?? "")
      this.openNext()
    })
    socket.on("close", () => {
      if (this.sockets.delete(socket)) this.disconnected += 1
      else this.openNext()
      setTimeout(() => this.open(n), awayMs)
    })
    socket.resume()
  }

  private openNext(): void {
    this.connecting -= 1
    const next = this.waiting.shift()
    if (next !== undefined) this.open(next)
  }

  lay(clients: number): void {
    for (let n = 0; n < clients; n += 1) this.open(n)
  }

  /** From now on disconnected clients do not reconnect. */
  lift(): void {
    this.lifted = true
  }

  end(): void {
    clearInterval(this.drip)
    for (const socket of this.sockets) socket.destroy()
  }
}

const p99 = (waits: ReadonlyArray<number>): number =>
  waits.toSorted((a, b) => a - b)[Math.ceil(waits.length * 0.99) - 1] ?? 0

const timed = async (service: Service, mailbox: Mailbox, text: string): Promise<number> => {
  const startedMs = performance.now()
  expectStatus(await postXml(service.url, mailbox.path, notification(text)), 202)
  return performance.now() - startedMs
}

const startWithMailbox = async (): Promise<[Service, Mailbox]> => {
  const service = await start()
  return [service, await openMailbox(service.url, "target")]
}

it("10,000 slow clients leave honest ones served, and are thrown out", async () => {
  const slowClients = Math.min(slowClientsMax, filesMax() - otherFiles)
  if (slowClients < slowClientsMax) console.warn(`only ${slowClients}: raise the limit on files`)
  expect(slowClients).toBeGreaterThan(1_000)
  // Other load of the machine slows down both services.
  const [[besieged, target], [calm, other]] = await Promise.all([
    startWithMailbox(),
    startWithMailbox()
  ])
  const before = await metricValue(besieged.url, memory)
  const siege = new Siege(besieged.port, openings(target))
  siege.lay(slowClients)
  await eventually(
    withinMs,
    "as many have connected, and most are there",
    () => siege.connected >= slowClients && siege.size > slowClients / 2 || undefined
  )
  const expectMemory = async (): Promise<void> => {
    const moreBytes = (await metricValue(besieged.url, memory)) - before
    expect(moreBytes).toBeLessThan(besidesBytesMax + siege.most * clientBytesMax)
  }
  await expectMemory()
  const waits: Record<"besieged" | "calm", Array<number>> = { besieged: [], calm: [] }
  for (let n = 0; n < honestRequests; n += 1) {
    const [slow, fast] = await Promise.all([
      timed(besieged, target, `honest-${n}`),
      timed(calm, other, `honest-${n}`)
    ])
    waits.besieged.push(slow)
    waits.calm.push(fast)
    await pause(5)
  }
  expect(siege.size).toBeGreaterThan(slowClients / 2)
  expect(p99(waits.besieged)).toBeLessThan(slowerAtMost * p99(waits.calm) + slackMs)
  siege.lift()
  // No client may keep its connection forever.
  await eventually(withinMs, "all are disconnected", () => siege.size === 0 || undefined, 100)
  expect(siege.disconnected).toBeGreaterThanOrEqual(slowClients * 0.8)
  siege.end()
  expect(await listMailbox(besieged.url, target)).toHaveLength(honestRequests)
  await expectMemory()
  await Promise.all([besieged.kill(), calm.kill()])
}, 600_000)
