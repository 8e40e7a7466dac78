/**
 * Recipients with every kind of fault beside a healthy one: the status that the sender sees for
 * each, and that none delays another.
 */
import { gzipSync } from "node:zlib"
import { afterAll, expect, it } from "vitest"
import { asAdmin, expectStatus, type Node, parseXml, pathOf, postXml, send } from "./client.ts"
import { closedPort, closeFaults, fullBacklog, rawServer, sendSlowly } from "./faults.ts"
import { cleanUp, eventually, type Service, start } from "./process.ts"
import { closeReceivers, receiver } from "./receivers.ts"

const endsWithinMs = 120_000
const dayMs = 24 * 60 * 60 * 1000
/** Largest extension of a retry wait. */
const jitter = 1.2

afterAll(() => {
  closeFaults()
  closeReceivers()
  cleanUp()
})

type RecipientAttributes = Readonly<Record<string, string | undefined>>

interface Fault {
  readonly name: string
  readonly uri: string
  readonly expected: RecipientAttributes
}

const wholeHead = "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"
const success = { status: "success", attempts: "1", code: "200", problem: undefined }
const retryStatus = (problem: string, code?: string): RecipientAttributes => ({
  status: "retry",
  attempts: "1",
  code,
  problem
})
const failedStatus = (problem: string, code?: string): RecipientAttributes => ({
  ...retryStatus(problem, code),
  status: "failed"
})

const answering = (status: number, headers: Readonly<Record<string, string>>, body?: Buffer) =>
  receiver((_, response) => {
    response.writeHead(status, headers).end(body)
  })

/** Peers that never complete the head of a response. */
const silent = async (): Promise<ReadonlyArray<Fault>> => [
  {
    name: "connecting hangs",
    uri: await fullBacklog(),
    expected: retryStatus("could not connect in time")
  },
  {
    name: "nobody listens",
    uri: `http://127.0.0.1:${await closedPort()}`,
    expected: retryStatus("connection refused")
  },
  {
    name: "no answer",
    uri: await rawServer(() => undefined),
    expected: retryStatus("no answer in time")
  },
  {
    name: "a dripping head",
    uri: await rawServer((socket) => {
      socket.once("data", () => socket.write("HTTP/1.1 200 OK\r\nX-Long: "))
      sendSlowly(socket, "x", 500)
    }),
    expected: retryStatus("no answer in time")
  },
  {
    name: "a reset before the answer",
    uri: await rawServer((socket) => socket.once("data", () => socket.resetAndDestroy())),
    expected: retryStatus("the connection was reset")
  },
  {
    name: "an answer that is none",
    uri: await rawServer((socket) =>
      socket.once("data", () => socket.end("SSH-2.0-OpenSSH_9\r\n"))
    ),
    expected: retryStatus("the answer is not valid HTTP")
  }
]

/** Peers whose head has status 200 and whose body is bad: only the head counts. */
const garrulous = async (): Promise<ReadonlyArray<Fault>> => [
  {
    name: "a body of one byte a second",
    uri: await rawServer((socket) => {
      socket.once("data", () => socket.write(wholeHead))
      sendSlowly(socket, "x", 1_000)
    }),
    expected: success
  },
  {
    name: "an endless body",
    uri: await rawServer((socket) => {
      const more = () => {
        while (!socket.destroyed && socket.write(Buffer.alloc(16_384)));
      }
      socket.once("data", () => socket.write("HTTP/1.1 200 OK\r\n\r\n", more))
      socket.on("drain", more)
    }),
    expected: success
  },
  {
    name: "a reset in the middle of the body",
    uri: await rawServer((socket) =>
      socket.once("data", () => socket.write(`${wholeHead}xxx`, () => socket.resetAndDestroy()))
    ),
    expected: success
  },
  {
    name: "200, then the end",
    uri: await rawServer((socket) => socket.once("data", () => socket.end(wholeHead))),
    expected: success
  },
  {
    name: "a gzip bomb",
    uri: await answering(200, { "content-encoding": "gzip" }, gzipSync(Buffer.alloc(50_000_000))),
    expected: success
  }
]

/** Peers that respond with a refusal or a hostile redirect. */
const misleading = async (): Promise<ReadonlyArray<Fault>> => [
  {
    name: "a redirect loop",
    uri: await answering(307, { location: "/" }),
    expected: failedStatus("too many redirects", "307")
  },
  {
    name: "a redirect into a private network",
    uri: await answering(307, { location: "http://10.0.0.1/" }),
    expected: failedStatus(
      "the address is not allowed: it is not public, and OUTBOUND_ALLOW does not permit it"
    )
  },
  {
    name: "a redirect that changes the method",
    uri: await answering(302, { location: "/" }),
    expected: failedStatus("answered 302, a redirect that is not followed", "302")
  },
  {
    name: "429 until the end of time, in seconds",
    uri: await answering(429, { "retry-after": "9".repeat(30) }),
    expected: retryStatus("answered 429", "429")
  },
  {
    name: "429 until the end of time, as a date",
    uri: await answering(429, { "retry-after": "Fri, 31 Dec 9999 23:59:59 GMT" }),
    expected: retryStatus("answered 429", "429")
  },
  { name: "410", uri: await answering(410, {}), expected: failedStatus("answered 410", "410") },
  { name: "500", uri: await answering(500, {}), expected: retryStatus("answered 500", "500") }
]

const queue = async (service: Service, to: ReadonlyArray<string>): Promise<string> => {
  const document = `<notification>${to.map((uri) => `<to>${uri}</to>`).join("")}<item>` +
    "<description>x</description><url>http://sender.test/x</url></item></notification>"
  const queued = await postXml(service.url, "/outgoing/admin", document, asAdmin)
  return pathOf(expectStatus(queued, 202).headers.get("location"))
}

const recipients = async (
  service: Service,
  path: string
): Promise<ReadonlyMap<string, Node["attributes"]>> => {
  const { text } = expectStatus(await send(service.url, path, { headers: asAdmin }), 200)
  return new Map(
    parseXml(text).children.map(({ attributes }) => [attributes["href"] ?? "", attributes])
  )
}

it("shows the status of each, and delivers to the healthy one meanwhile", async () => {
  const service = await start({
    env: { OUTBOUND_ALLOW: "127.0.0.0/8", RETRY_SCHEDULE: "0s,1h" }
  })
  const faults = [...await silent(), ...await garrulous(), ...await misleading()]
  const healthy = await answering(202, { location: "/stored/1" })
  // The healthy recipient is the last one.
  const path = await queue(service, [...faults.map(({ uri }) => uri), healthy])
  const at = await eventually(endsWithinMs, "the healthy one has it", async () => {
    const all = await recipients(service, path)
    return all.get(healthy)?.["status"] === "success" ? all : undefined
  })
  expect(at.get(healthy)).toMatchObject({ code: "202", location: `${healthy}/stored/1` })
  const pending = [...at.values()].filter(({ status }) => status === "waiting")
  expect(pending.length, "others are still being tried").toBeGreaterThan(0)
  const actual = await eventually(endsWithinMs, "all have been tried", async () => {
    const all = await recipients(service, path)
    return [...all.values()].some(({ status }) => status === "waiting") ? undefined : all
  })
  const wrong: Array<unknown> = []
  for (const { name, expected, uri } of faults) {
    const { attempts, code, last = "", next, problem, status } = actual.get(uri) ?? {}
    const found = { status, attempts, code, problem }
    if (JSON.stringify(found) !== JSON.stringify({ ...found, ...expected })) {
      wrong.push({ name, found, expected })
    }
    if (status !== "retry") expect(next, `${name} is tried again`).toBeUndefined()
    else {
      const waitMs = Date.parse(next ?? "") - Date.parse(last)
      expect(waitMs, `${name} waits for a day at the most`).toBeLessThanOrEqual(dayMs * jitter)
    }
  }
  expect(wrong).toEqual([])
  const head = await send(service.url, path, { method: "HEAD", headers: asAdmin })
  expect(head.headers.get("notification-status")).toMatch(/^waiting; success=6; retry=9; failed=4$/)
  expectStatus(await send(service.url, path, { method: "DELETE", headers: asAdmin }), 204)
  expectStatus(await send(service.url, path, { headers: asAdmin }), 410)
  expectStatus(await send(service.url, "/readyz"), 200)
  expect((await service.stop()).code).toBe(0)
  expect(service.output).not.toMatch(/ERROR|unhandled/i)
})

it("gives up when the schedule is over, and says why", async () => {
  const service = await start({
    env: { OUTBOUND_ALLOW: "127.0.0.0/8", RETRY_SCHEDULE: "0s,50ms,50ms" }
  })
  const refusing = `http://127.0.0.1:${await closedPort()}`
  const overloaded = await answering(503, { "retry-after": "0" })
  const healthy = await answering(200, {})
  const path = await queue(service, [refusing, overloaded, healthy])
  const actual = await eventually(endsWithinMs, "it ends", async () => {
    const all = await recipients(service, path)
    return [...all.values()].every(({ status = "" }) => /success|failed/.test(status))
      ? all
      : undefined
  })
  expect(actual.get(refusing)).toMatchObject({
    status: "failed",
    attempts: "3",
    problem: "connection refused"
  })
  expect(actual.get(overloaded)).toMatchObject({ status: "failed", attempts: "3", code: "503" })
  expect(actual.get(healthy)).toMatchObject({ status: "success", attempts: "1", code: "200" })
  const listed = await send(service.url, "/outgoing/admin?status=failed", { headers: asAdmin })
  expect(pathOf(parseXml(listed.text).children[0]?.attributes["href"] ?? null)).toBe(path)
  await service.stop()
})
