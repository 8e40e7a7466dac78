/**
 * The table of requests on plain sockets: the answer to each, whether its connection serves the
 * next request, and that the service never processes what follows a request after which it ends.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { expectStatus, linkOf, listMailbox, type Mailbox, notification, openMailbox, pathOf,
  send } from "../e2e/client.ts"
import { cleanUp, type Service, start, within } from "../e2e/process.ts"
import { head, openRaw, type RawConnection, smuggledInto, statusesOf } from "../e2e/raw.ts"
import { answered, hasRead } from "./answers.ts"
import { cases, reasons, type WireCase } from "./cases/index.ts"

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

const write = ({ socket }: RawConnection, bytes: string): void => {
  if (bytes !== "") socket.write(bytes, "latin1")
}

const ended = (name: string, { closed }: RawConnection): Promise<void> =>
  within(endsWithinMs, `${name}: the connection ends`, closed)

const finals = (statuses: ReadonlyArray<number>): ReadonlyArray<number> =>
  statuses.filter((status) => status >= 200)

const last = head("GET /problems/gone HTTP/1.1", "Host: a", "Connection: close")

/** Sends a row's bytes, and a request behind them if the connection serves one. */
const exchange = async (row: WireCase): Promise<string> => {
  const { bytes, isOpen = false, name, rest, statuses } = row
  const connection = await openRaw(service.port)
  const reading = { isHead: bytes.startsWith("HEAD ") }
  const count = finals(statuses).length
  const arrived = (some: number) =>
    within(endsWithinMs, `${name}: is answered`, answered(connection, some, reading))
  write(connection, bytes)
  if (rest !== undefined) {
    await hasRead(service.port)
    if (isOpen) await arrived(count - 1)
    expect([name, finals(statusesOf(connection.received())).length < Math.max(count, 2)])
      .toEqual([name, true])
    const [, opaque = ""] = /\r\nETag: "([^"]*)"/.exec(connection.received()) ?? []
    write(connection, rest.replace("{etag}", `"${opaque}"`).replace("{opaque}", opaque))
  }
  if (isOpen) {
    await arrived(count)
    write(connection, last)
  }
  await ended(name, connection)
  return connection.received()
}

/** Sends a row's bytes and a deposit behind them, in the same packet or when it was answered. */
const exchangeFollowed = async ({ bytes, name }: WireCase, isLater: boolean): Promise<string> => {
  const connection = await openRaw(service.port)
  const smuggled = smuggledInto(mailbox.path)
  write(connection, isLater ? bytes : bytes + smuggled)
  if (isLater) {
    await Promise.race([
      answered(connection, 1, { isHead: bytes.startsWith("HEAD ") }),
      hasRead(service.port)
    ])
    await hasRead(service.port)
    if (connection.socket.writable) write(connection, smuggled)
  }
  await ended(name, connection)
  return connection.received()
}

/** What follows the one exception is a request of its own. */
const closing = cases.filter(({ bytes, isOpen = false, reason, rest }) =>
  bytes !== "" && !isOpen && rest === undefined && reason !== reasons.pending
)

const toContent = "POST /content HTTP/1.1\r\n"

/** The same requests as deposits, so that a smuggled one would be visible in the mailbox. */
const deposits = (): ReadonlyArray<WireCase> =>
  closing.filter(({ bytes }) => bytes.startsWith(toContent)).map((row) => ({
    ...row,
    bytes: row.bytes.replace(
      toContent,
      `POST ${mailbox.path} HTTP/1.1\r\nContent-Type: application/xml\r\n`
    )
  }))

const publish = async (body = "first"): Promise<string> => {
  const answer = await send(service.url, "/content", { method: "POST", body })
  return linkOf(expectStatus(answer, 202), "edit")
}

/** Requests that end their connection, though their answers need no end to be complete. */
const withCompleteAnswers = async (): Promise<ReadonlyArray<WireCase>> => {
  const [put, removed, large] = [await publish(), await publish(), await publish("x".repeat(1e6))]
  const etag = (await send(service.url, "/problems/gone")).headers.get("etag") ?? ""
  const toClose = ["Host: a", "Connection: x, close"]
  const inChunks = (line: string) =>
    `${head(line, "Host: a", "Transfer-Encoding: chunked")}3\r\nnew\r\n0\r\n\r\n`
  const row = (status: number, bytes: string) => ({ name: bytes, statuses: [status], bytes })
  return [
    row(204, inChunks(`PUT ${put} HTTP/1.1`)),
    row(204, inChunks(`DELETE ${removed} HTTP/1.1`)),
    row(204, inChunks("OPTIONS / HTTP/1.1")),
    row(200, head("HEAD /livez HTTP/1.1", ...toClose)),
    row(304, head("GET /problems/gone HTTP/1.1", ...toClose, `If-None-Match: ${etag}`)),
    row(200, head(`GET ${large} HTTP/1.1`, ...toClose)),
    row(200, head(`HEAD ${large} HTTP/1.1`, ...toClose))
  ]
}

describe("the table", () => {
  const received = new Map<string, string>()
  let followed: ReadonlyArray<readonly [row: WireCase, received: string]>

  // Unfinished requests take as long as the service's timeout: send all of them concurrently.
  beforeAll(async () => {
    const behind = [...closing, ...deposits(), ...await withCompleteAnswers()]
    const [, all] = await Promise.all([
      Promise.all(cases.map(async (row) => received.set(row.name, await exchange(row)))),
      Promise.all(
        behind.flatMap((row) =>
          [false, true].map(async (isLater) => [row, await exchangeFollowed(row, isLater)] as const)
        )
      )
    ])
    followed = all
  })

  it("names each row once", () => {
    expect(received.size).toBe(cases.length)
  })

  it("has the answer to each request, and whether the connection serves the next one", () => {
    const statuses = cases.map(({ name }) => [name, ...statusesOf(received.get(name) ?? "")])
    expect(statuses).toEqual(
      cases.map(({ isOpen, name, statuses }) => [name, ...statuses, ...isOpen ? [200] : []])
    )
    for (const { isOpen, name } of cases) {
      if (isOpen) {
        expect([name, received.get(name)]).toEqual([
          name,
          expect.stringMatching(
            /<problem-type>/
          )
        ])
      }
    }
  })

  it("has what the answers contain", () => {
    for (const { has, lacks, name } of cases) {
      const text = received.get(name) ?? ""
      if (has !== undefined) expect([name, text]).toEqual([name, expect.stringMatching(has)])
      if (lacks !== undefined) expect([name, lacks.test(text)]).toEqual([name, false])
    }
  })

  it("has the bodies that are stored", async () => {
    const stored = cases.filter(({ stores }) => stores !== undefined)
    const bodies = await Promise.all(stored.map(async ({ name }) => {
      const [, uri = ""] = /\r\nlocation: (\S+)/i.exec(received.get(name) ?? "") ?? []
      return [name, expectStatus(await send(service.url, pathOf(uri)), 200).text]
    }))
    expect(bodies).toEqual(stored.map(({ name, stores }) => [name, stores]))
  })

  it("lets nothing through behind a request that ends its connection", async () => {
    expect(followed.length).toBeGreaterThan(500)
    for (const [{ name, statuses }, text] of followed) {
      expect([name, statusesOf(text).length <= Math.max(1, statuses.length)]).toEqual([name, true])
      expect([name, text.includes("/notifications/")]).toEqual([name, false])
    }
    expect(await listMailbox(service.url, mailbox)).toEqual([])
  })
})

describe("a body in chunks with trailer fields", () => {
  it("is not stored when its answer is 505", async () => {
    const trailers = "X-Checksum: abc\r\n\r\n"
    const inChunks = (line: string, body: string) =>
      `${head(line, "Host: a", "Content-Type: application/xml", "Transfer-Encoding: chunked")}`
      + `${body.length.toString(16)}\r\n${body}\r\n0\r\n${trailers}`
    const path = await publish()
    for (
      const bytes of [
        inChunks(`POST ${mailbox.path} HTTP/1.1`, notification("with-trailers")),
        inChunks(`PUT ${path} HTTP/1.1`, "second")
      ]
    ) {
      const connection = await openRaw(service.port)
      write(connection, bytes)
      await ended("trailers", connection)
      expect(statusesOf(connection.received())).toEqual([505])
    }
    await hasRead(service.port)
    const listed = await listMailbox(service.url, mailbox)
    expect(listed.filter(({ description }) => description === "with-trailers")).toEqual([])
    expect((await send(service.url, path)).text).toBe("first")
  })
})
