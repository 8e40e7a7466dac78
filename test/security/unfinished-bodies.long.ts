/**
 * Clients that send half a body each, and then nothing. What they have sent takes bounded memory
 * and leaves nothing behind, honest clients are served, and the others learn why they are not.
 */
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { bodiesBytesMax, networkBodiesBytesMax } from "../../http/limits.ts"
import { expectStatus, type Mailbox, metricValue, notification, openMailbox,
  send } from "../e2e/client.ts"
import { cleanUp, pause, type Service, start } from "../e2e/process.ts"
import { head, openRaw } from "../e2e/raw.ts"
import { allOfOne, eachOfItsOwn, halfDocument, halfUpload, HonestClient, type Opening,
  StalledClients } from "./stalled-clients.ts"

const clients = 2_000
/** Besides the bodies: connections, requests, and memory that is free but not returned. */
const besidesBytesMax = 100 * 1024 * 1024
const withinMs = 180_000

afterAll(cleanUp)

const startWithMailbox = async (
  env: Readonly<Record<string, string>> = {}
): Promise<[Service, Mailbox]> => {
  const service = await start({ env: { TRUSTED_PROXIES: "127.0.0.0/8", ...env } })
  return [service, await openMailbox(service.url, "target")]
}

/** The files of uploads that are not complete. */
const partialFiles = ({ dataDir }: Service): ReadonlyArray<string> =>
  readdirSync(join(dataDir, "blobs", "tmp"))

const kinds: ReadonlyArray<readonly [string, (mailbox: Mailbox) => Opening]> = [
  ["documents", halfDocument],
  ["uploads", () => halfUpload]
]

describe.concurrent("many clients with half a body", () => {
  it.each(kinds)("of %s take bounded memory, and leave others served", async (_, openingOf) => {
    const [service, mailbox] = await startWithMailbox()
    const honest = new HonestClient(service, mailbox)
    const before = await honest.memoryBytes()
    honest.begin()
    const stalled = new StalledClients(service.port)
    await stalled.lay(clients, openingOf(mailbox), eachOfItsOwn)
    await stalled.ended(withinMs)
    const { peakBytes } = await honest.end()
    expect(peakBytes - before).toBeLessThan(bodiesBytesMax + besidesBytesMax)
    expect(honest.requests).toBeGreaterThan(0)
    // Each learns why: it was too slow, or there was no room.
    const { 408: late = 0, 503: refused = 0, ...others } = stalled.counts
    expect([late + refused, others]).toEqual([clients, {}])
    expect(late).toBeGreaterThan(0)
    for (const answer of stalled.answers.values()) {
      expect(answer).toMatch(/\r\nRetry-After: \d+\r\n/)
      expect(answer).toMatch(/\r\nConnection: close\r\n/i)
      expect(answer).toContain("nothing was stored")
    }
    expect(partialFiles(service)).toEqual([])
    expect((await service.stop()).code).toBe(0)
  }, 600_000)

  it(
    "of one network leave others their half of the budget, and learn whose limit it is",
    async () => {
      const [service, { path }] = await startWithMailbox({ RATE_LIMIT_ADDRESS: "none" })
      const stalled = new StalledClients(service.port)
      const enough = 2 * networkBodiesBytesMax / (128 * 1024)
      await stalled.lay(enough, halfDocument({ path, password: "", shared: "" }), allOfOne)
      // A document and an upload of another network that arrive in pieces.
      for (const target of [path, "/content"]) {
        const body = notification("slow-but-honest").padEnd(400_000)
        const whole = target === path ? body.slice(0, 200_000) : body
        const { closed, received, socket } = await openRaw(service.port)
        socket.write(head(
          `POST ${target} HTTP/1.1`,
          "Host: a",
          "Connection: close",
          "Content-Type: application/xml",
          `Content-Length: ${whole.length}`,
          "X-Forwarded-For: 192.0.2.7"
        ))
        for (let at = 0; at < whole.length; at += 50_000) {
          socket.write(whole.slice(at, at + 50_000))
          await pause(20)
        }
        await closed
        expect(received()).toContain("HTTP/1.1 202 ")
      }
      await stalled.ended(withinMs)
      expect(stalled.answers.get("503")).toContain("the clients of 203.0.113.0/24")
      expect(stalled.answers.get("503")).toContain(`${networkBodiesBytesMax} bytes`)
      expect((await service.stop()).code).toBe(0)
    },
    600_000
  )
})

it("of a client that sends faster than the disk stores is stored, in bounded memory", async () => {
  const service = await start()
  const memoryBytes = () => metricValue(service.url, "restante_process_resident_memory_bytes")
  const before = await memoryBytes()
  const length = 10 * networkBodiesBytesMax
  const { closed, received, socket } = await openRaw(service.port)
  socket.write(head(
    "POST /content HTTP/1.1",
    "Host: a",
    "Connection: close",
    "Content-Type: text/plain",
    `Content-Length: ${length}`
  ))
  const piece = Buffer.alloc(1024 * 1024, "x")
  for (let sent = 0; sent < length && received() === ""; sent += piece.length) {
    await new Promise<void>((resolve) => void socket.write(piece, () => resolve()))
  }
  await closed
  expect(received()).toContain("HTTP/1.1 202 ")
  expect((await memoryBytes()) - before).toBeLessThan(besidesBytesMax)
  expect(partialFiles(service)).toEqual([])
  expect((await service.stop()).code).toBe(0)
}, 600_000)

interface Pieces {
  readonly count: number
  readonly bytes: number
  readonly everyMs: number
  /** Bytes that the header fields announce; the whole body unless given. */
  readonly announced?: number
}

/** Sends a request with its body in pieces, until the service answers or ends the connection. */
const sendSlowly = async (
  { port }: Service,
  target: string,
  { announced, bytes, count, everyMs }: Pieces,
  ...fields: ReadonlyArray<string>
): Promise<string> => {
  const { closed, received, socket } = await openRaw(port)
  socket.write(head(
    `POST ${target} HTTP/1.1`,
    "Host: a",
    "Connection: close",
    "Content-Type: application/xml",
    `Content-Length: ${announced ?? count * bytes}`,
    ...fields
  ))
  for (let sent = 0; sent < count && received() === ""; sent += 1) {
    if (socket.writable) socket.write("x".repeat(bytes))
    await pause(everyMs)
  }
  socket.end()
  await closed
  return received()
}

const aByteAtATime = { count: 10_000, bytes: 1, everyMs: 200 }

describe.concurrent("a slow body", () => {
  it(
    "is answered with 408 if it drips, and goes on for as long as it arrives steadily",
    async () => {
      const [service, { path }] = await startWithMailbox()
      const steady = { count: 60, bytes: 8 * 1024, everyMs: 500 }
      const [document, upload, silent, slow] = await Promise.all([
        sendSlowly(service, path, aByteAtATime),
        sendSlowly(service, "/content", aByteAtATime),
        sendSlowly(service, path, { ...aByteAtATime, bytes: 0, announced: 10_000 }),
        // 500 KB in more than the 20 s that a document has.
        sendSlowly(service, "/content", steady)
      ])
      expect(document).toContain("HTTP/1.1 408 ")
      expect(document).toContain("a document must be complete within 20 s")
      expect(upload).toContain("HTTP/1.1 408 ")
      expect(upload).toContain("4096 bytes a second within 20")
      expect(silent).toContain("HTTP/1.1 408 ")
      expect(slow).toContain("HTTP/1.1 202 ")
      expect((await service.stop()).code).toBe(0)
    },
    600_000
  )

  it("that was given up uses no quota, no key and no file", async () => {
    const kibibyte = 1024
    const [service, { path }] = await startWithMailbox({
      ANONYMOUS_BYTES_MAX: String(1024 * kibibyte)
    })
    const keys = ["unfinished-deposit-0123456789", "unfinished-content-0123456789"]
    const stalled = await Promise.all(
      [path, "/content"].map((target, n) =>
        sendSlowly(
          service,
          target,
          { ...aByteAtATime, count: 200 * kibibyte },
          `Idempotency-Key: ${keys[n]}`,
          "X-Forwarded-For: 192.0.2.7"
        )
      )
    )
    for (const answer of stalled) expect(answer).toContain("HTTP/1.1 408 ")
    expect(partialFiles(service)).toEqual([])
    const complete = (target: string, body: string, key = "") =>
      send(service.url, target, {
        method: "POST",
        body,
        headers: {
          "content-type": "application/xml",
          "idempotency-key": key,
          "x-forwarded-for": "192.0.2.7"
        }
      })
    expectStatus(await complete(path, notification("again"), keys[0]), 202)
    // The whole quota, but a little: the other upload has given its part back.
    expectStatus(await complete("/content", "x".repeat(1000 * kibibyte), keys[1]), 202)
    expect((await service.stop()).code).toBe(0)
  }, 600_000)
})
