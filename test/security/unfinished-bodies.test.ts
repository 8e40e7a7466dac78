/**
 * Clients that send half a document each, and then nothing. What they have sent takes bounded
 * memory, honest clients are served, and the others learn why they are not.
 */
import { connect, type Socket } from "node:net"
import { afterAll, expect, it } from "vitest"
import { bodiesBytesMax } from "../../http/limits.ts"
import { expectStatus, listMailbox, metricValue, notification, openMailbox,
  postXml } from "../e2e/client.ts"
import { cleanUp, start } from "../e2e/process.ts"
import { head } from "../e2e/raw.ts"

const clients = 3_000
const openedTogether = 100
const documentBytes = 256 * 1024
const halfBytes = documentBytes / 2
/** Besides the bodies: connections, and memory that is free but not returned. */
const besidesBytesMax = 86 * 1024 * 1024
const honestRequests = 50
const memory = "restante_process_resident_memory_bytes"

afterAll(cleanUp)

it("take bounded memory, and leave honest clients served", async () => {
  const service = await start()
  const mailbox = await openMailbox(service.url, "target")
  const before = await metricValue(service.url, memory)
  const opening = head(
    `POST ${mailbox.path} HTTP/1.1`,
    "Host: a",
    "Content-Type: application/xml",
    `Content-Length: ${documentBytes}`
  )
  const half = Buffer.alloc(halfBytes, "x")
  const sockets: Array<Socket> = []
  const answers: Array<string> = []
  const open = () =>
    new Promise<void>((resolve) => {
      const socket = connect({ host: "127.0.0.1", port: service.port })
      sockets.push(socket)
      socket.on("error", () => resolve())
      socket.on("data", (chunk) => void answers.push(chunk.toString("latin1")))
      socket.on("close", () => resolve())
      socket.write(opening)
      socket.write(half, () => resolve())
    })
  let peakBytes = 0
  let honest = 0
  for (let sent = 0; sent < clients; sent += openedTogether) {
    await Promise.all(Array.from({ length: openedTogether }, open))
    if (honest < honestRequests) {
      honest += 1
      const deposited = postXml(service.url, mailbox.path, notification(`honest-${honest}`))
      expectStatus(await deposited, 202)
    }
    peakBytes = Math.max(peakBytes, await metricValue(service.url, memory) - before)
  }
  expect(peakBytes).toBeLessThan(bodiesBytesMax + besidesBytesMax)
  // More than the budget has arrived: some were refused, or given up, with the reason.
  expect(clients * halfBytes).toBeGreaterThan(2 * bodiesBytesMax)
  const statuses = new Set(answers.map((answer) => /^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]))
  expect([...statuses].filter((status) => status !== undefined).toSorted())
    .toEqual(expect.arrayContaining(["503"]))
  expect(answers.find((answer) => answer.includes(" 503 "))).toContain("Retry-After")
  for (const socket of sockets) socket.destroy()
  expect(await listMailbox(service.url, mailbox)).toHaveLength(honest)
  expect((await service.stop()).code).toBe(0)
}, 300_000)
