/**
 * Request smuggling and malformed HTTP/1.1 on plain sockets: the answer to each request, the end of
 * the connection, and that the service never processes the bytes after it as a request.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { listMailbox, type Mailbox, openMailbox } from "../e2e/client.ts"
import { cleanUp, type Service, start, within } from "../e2e/process.ts"
import { head, openRaw, smuggledInto, statusesOf } from "../e2e/raw.ts"
import { type FramingCase, lenient, malformed, undetected, unusual } from "./malformed.ts"

/** The service ends an unfinished request after 10 s; a busy machine needs longer. */
const endsWithinMs = 120_000

let service: Service
let mailbox: Mailbox

beforeAll(async () => {
  service = await start()
  mailbox = await openMailbox(service.url, "target")
})
afterAll(async () => {
  await service.kill()
  cleanUp()
})

const smuggled = (): string => smuggledInto(mailbox.path)

/** The bytes of the answer, until the service ended the connection. */
const untilClosed = async (name: string, bytes: string): Promise<string> => {
  const { closed, received, socket } = await openRaw(service.port)
  socket.write(Buffer.from(bytes, "latin1"))
  await within(endsWithinMs, `${name}: the connection ends`, closed)
  return received()
}

const answersTo = async (rows: ReadonlyArray<FramingCase>, suffix = "") =>
  Object.fromEntries(
    await Promise.all(rows.map(async ({ bytes, name }) => {
      const received = await untilClosed(name, bytes + suffix)
      return [name, received] as const
    }))
  )

type Answers = Awaited<ReturnType<typeof answersTo>>

const statusesByName = (answers: Answers) =>
  Object.fromEntries(
    Object.entries(answers).map(([name, received]) => [name, statusesOf(received)])
  )
const wanted = (rows: ReadonlyArray<FramingCase>) =>
  Object.fromEntries(rows.map(({ name, statuses }) => [name, statuses]))

const closing = [...malformed, ...lenient]

/** The same requests as deposits, so that a smuggled one would be visible in the mailbox. */
const toMailbox = (): ReadonlyArray<FramingCase> =>
  closing.filter(({ bytes }) => bytes.startsWith("POST /content HTTP/1.1\r\n")).map((one) => ({
    ...one,
    bytes: one.bytes.replace(
      "POST /content HTTP/1.1\r\n",
      `POST ${mailbox.path} HTTP/1.1\r\nContent-Type: application/xml\r\n`
    )
  }))

describe("framing", () => {
  let alone: Answers
  let followed: ReadonlyArray<Answers>

  // Unfinished requests take as long as the service's timeout: send all of them concurrently.
  beforeAll(async () => {
    const deposits = toMailbox()
    expect(deposits.length).toBeGreaterThan(50)
    const all = await Promise.all([
      answersTo(closing),
      answersTo(closing, smuggled()),
      answersTo(deposits, smuggled())
    ])
    alone = all[0]
    followed = all.slice(1)
  })

  it("refuses what two readers could take for different things, and ends", () => {
    const statuses = Object.entries(statusesByName(alone)).slice(0, malformed.length)
    expect(Object.fromEntries(statuses)).toEqual(wanted(malformed))
  })

  it("ends after a chunked body, and where it was asked to", () => {
    const statuses = Object.entries(statusesByName(alone)).slice(malformed.length)
    expect(Object.fromEntries(statuses)).toEqual(wanted(lenient))
  })

  it("lets nothing through behind any of them, to whatever they were sent", async () => {
    for (const answers of followed) {
      for (const [name, received] of Object.entries(answers)) {
        expect([name, statusesOf(received).length <= 1]).toEqual([name, true])
        expect([name, received.includes("/notifications/")]).toEqual([name, false])
      }
    }
    expect(await listMailbox(service.url, mailbox)).toEqual([])
  })

  it("has one fault that is known, of the native parser", async () => {
    expect(statusesOf(await untilClosed(undetected.name, undetected.bytes))).toEqual(
      undetected.statuses
    )
  })

  it("answers unusual valid requests, and the next request", async () => {
    for (const { bytes, name, statuses } of unusual) {
      const last = head("GET /problems/gone HTTP/1.1", "Host: a", "Connection: close")
      const received = await untilClosed(name, bytes + last)
      expect([name, statusesOf(received)]).toEqual([name, [...statuses, 200]])
      expect(received).toContain("<problem-type>")
    }
  })

  it("answers pipelined requests in order, whole", async () => {
    const get = (path: string, ...fields: ReadonlyArray<string>) =>
      head(`GET ${path} HTTP/1.1`, "Host: a", ...fields)
    const requests = get("/livez") + get("/nowhere") + get("/livez", "Connection: close")
    const received = await untilClosed("three requests", requests)
    expect(statusesOf(received)).toEqual([200, 404, 200])
  })
})
