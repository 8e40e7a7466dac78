/**
 * 10,000 connections that each send half a request, and then nothing. The service stays under 150
 * MB above the idle process, and above one that has served the honest clients alone. The figures
 * are printed, one line for each case; the honest clients' p99 is one of them and no more.
 */
import { afterAll, expect, it } from "vitest"
import { type Mailbox, openMailbox } from "../e2e/client.ts"
import { cleanUp, eventually, start } from "../e2e/process.ts"
import { allOfOne, eachOfItsOwn, halfDocument, halfHeaderBlock, halfSmallUpload, halfUpload,
  HonestClient, type Opening, StalledClients } from "./stalled-clients.ts"

const clients = 10_000
const aboveBytesMax = 150_000_000
/** Honest requests before the others begin: an idle process has less memory than a warm one. */
const warmRequests = 600
const withinMs = 180_000

type From = (n: number) => ReadonlyArray<string>

const none: From = () => []

const rows: ReadonlyArray<readonly [string, string, (mailbox: Mailbox) => Opening, From]> = [
  ["document", "10,000 networks", halfDocument, eachOfItsOwn],
  ["document", "one network", halfDocument, allOfOne],
  ["document", "this machine", halfDocument, none],
  ["upload", "10,000 networks", () => halfUpload, eachOfItsOwn],
  ["upload of 20 kB", "10,000 networks", () => halfSmallUpload, eachOfItsOwn],
  ["header block", "this machine", () => halfHeaderBlock, none]
]

const megabytes = (bytes: number): number => Math.round(bytes / 1e6)

afterAll(cleanUp)

it.each(rows)("half a %s each, from %s", async (what, where, openingOf, from) => {
  const service = await start({ env: { TRUSTED_PROXIES: "127.0.0.0/8" } })
  const mailbox = await openMailbox(service.url, "target")
  const honest = new HonestClient(service, mailbox)
  const idleBytes = await honest.memoryBytes()
  honest.begin()
  await eventually(
    withinMs,
    "the process is warm",
    () => honest.requests > warmRequests || undefined
  )
  const warmBytes = await honest.memoryBytes()
  honest.measure()
  const stalled = new StalledClients(service.port)
  await stalled.lay(clients, openingOf(mailbox), from)
  await stalled.ended(withinMs)
  const { p99Ms, peakBytes } = await honest.end()
  const ends = Object.entries(stalled.counts).map(([status, n]) => `${status}: ${n}`).join(", ")
  console.log(
    `half a ${what} from ${where}, ${clients} connections: ` +
      `${megabytes(peakBytes - idleBytes)} MB above idle (${megabytes(idleBytes)} MB), ` +
      `${megabytes(peakBytes - warmBytes)} MB above warm (${megabytes(warmBytes)} MB), ` +
      `honest p99 ${Math.round(p99Ms)} ms; ${ends}`
  )
  expect(peakBytes - idleBytes).toBeLessThan(aboveBytesMax)
  expect(peakBytes - warmBytes).toBeLessThan(aboveBytesMax)
  expect((await service.stop()).code).toBe(0)
}, 600_000)
