/** Malformed HTTP, request smuggling, noise and slow clients, on bare sockets. */
import { createHash } from "node:crypto"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import {
  asAdmin,
  expectStatus,
  listMailbox,
  type Mailbox,
  measure,
  notification,
  openMailbox,
  postXml,
  send
} from "./client.ts"
import { cleanUp, eventually, pause, type Service, start } from "./process.ts"
import { head, open, speak, statusesOf, type Wire } from "./raw.ts"

const slowClients = 1_000
const dripMs = 1_000
const honestRequests = 40
/** The longest that an honest client may wait while slow ones hold their connections. */
const honestMs = 2_000
const memory = "restante_process_resident_memory_bytes"
const keptBytesMax = 96 * 1024 * 1024

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

const smuggled = (): string => {
  const body = notification("smuggled")
  return head(
    `POST ${mailbox.path} HTTP/1.1`,
    "Host: a",
    "Content-Type: application/xml",
    `Content-Length: ${body.length}`
  ) + body
}

/** Framing on which two readers could disagree; `rest` follows the block as its body may. */
const ambiguous: ReadonlyArray<{
  readonly name: string
  readonly fields: ReadonlyArray<string>
  readonly rest?: string
}> = [
  {
    name: "Content-Length with Transfer-Encoding",
    fields: ["Content-Length: 4", "Transfer-Encoding: chunked"],
    rest: "0\r\n\r\n"
  },
  {
    name: "Transfer-Encoding with Content-Length",
    fields: ["Transfer-Encoding: chunked", "Content-Length: 5"],
    rest: "0\r\n\r\n"
  },
  { name: "two Content-Lengths", fields: ["Content-Length: 0", "Content-Length: 5"] },
  {
    name: "two Content-Lengths, the other first",
    fields: ["Content-Length: 5", "Content-Length: 0"]
  },
  { name: "a list of lengths", fields: ["Content-Length: 0, 5"] },
  { name: "a signed length", fields: ["Content-Length: +5"] },
  { name: "a negative length", fields: ["Content-Length: -1"] },
  { name: "a hexadecimal length", fields: ["Content-Length: 0x5"] },
  { name: "an endless length", fields: [`Content-Length: ${"9".repeat(30)}`] },
  { name: "another coding", fields: ["Transfer-Encoding: xchunked"] },
  { name: "a coding before chunked", fields: ["Transfer-Encoding: gzip, chunked"] },
  { name: "chunked twice", fields: ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"] },
  {
    name: "chunked and identity",
    fields: ["Transfer-Encoding: chunked", "Transfer-Encoding: identity"]
  },
  { name: "a space before the colon", fields: ["Content-Length : 5"] },
  { name: "a folded line", fields: ["X-A: b", " Content-Length: 5"] },
  { name: "a chunk of no size", fields: ["Transfer-Encoding: chunked"], rest: "zz\r\n\r\n" },
  {
    name: "a chunk of too many digits",
    fields: ["Transfer-Encoding: chunked"],
    rest: "fffffffffffffffff\r\n\r\n"
  },
  { name: "a negative chunk", fields: ["Transfer-Encoding: chunked"], rest: "-1\r\n\r\n" }
]

describe("framing", () => {
  it.each(ambiguous)("lets nothing through behind $name", async ({ fields, rest = "" }) => {
    for (const request of ["POST /content HTTP/1.1", `POST ${mailbox.path} HTTP/1.1`]) {
      const received = await speak(service.port, [
        head(request, "Host: a", "Content-Type: application/xml", ...fields) + rest + smuggled()
      ])
      const statuses = statusesOf(received)
      expect(statuses.filter((status) => status < 400)).toEqual([])
      expect(statuses.length).toBeLessThanOrEqual(1)
    }
    const listed = await listMailbox(service.url, mailbox)
    expect(listed.filter(({ description }) => description === "smuggled")).toEqual([])
  })

  it.each([
    ["no method", " / HTTP/1.1"],
    ["no version", "GET /"],
    ["HTTP/0.9", "GET /\r\n"],
    ["HTTP/1.0", "GET / HTTP/1.0"],
    ["HTTP/2 in clear text", "PRI * HTTP/2.0"],
    ["an authority only", "CONNECT a.test:443 HTTP/1.1"],
    ["a method of noise", `${"A".repeat(3_000)} / HTTP/1.1`],
    ["NUL in the target", "GET /\0 HTTP/1.1"],
    ["CR in the target", "GET /\rX: y HTTP/1.1"],
    ["bytes above ASCII in the target", "GET /\u00e9\u00ff HTTP/1.1"]
  ])("answers %s with a refusal or not at all", async (_, line) => {
    const received = await speak(service.port, [head(line, "Host: a")])
    for (const status of statusesOf(received)) expect(status).toBeGreaterThanOrEqual(400)
  })

  it("answers pipelined requests in order, whole", async () => {
    const get = (path: string) => head(`GET ${path} HTTP/1.1`, "Host: a")
    const received = await speak(service.port, [get("/livez") + get("/nowhere") + get("/livez")])
    expect(statusesOf(received)).toEqual([200, 404, 200])
  })
})

describe("header fields", () => {
  it("refuses a header block that is too large", async () => {
    const block = head("GET / HTTP/1.1", "Host: a", `X-Long: ${"x".repeat(20_000)}`)
    expect(statusesOf(await speak(service.port, [block]))).toEqual([431])
    const many = Array.from({ length: 2_000 }, (_, n) => `X-${n}: some value`)
    for (
      const pieces of [
        [head("GET / HTTP/1.1", "Host: a", ...many)],
        ["GET / HTTP/1.1\r\nHost: a\r\nX: ", "x".repeat(9_000), "x".repeat(9_000), "\r\n\r\n"]
      ]
    ) {
      const statuses = statusesOf(await speak(service.port, pieces))
      expect(statuses.filter((status) => status !== 431)).toEqual([])
    }
  })

  it("refuses a path that is too long", async () => {
    const received = await speak(service.port, [
      head(`GET /${"x".repeat(15_000)} HTTP/1.1`, "Host: a")
    ])
    for (const status of statusesOf(received)) expect(status).toBeGreaterThanOrEqual(400)
  })

  it.each([
    ["Content-Type", "text/plain\rX-Evil: 1"],
    ["Content-Type", "text/plain\nX-Evil: 1"],
    ["Content-Disposition", "inline; filename=\"a\rX-Evil: 1\""],
    ["Content-Disposition", "inline; filename=\"a\u0000\""],
    ["Message-Password", "0123456789abcdef\rX-Evil: 1"],
    ["Idempotency-Key", "\"a\rX-Evil: 1\""]
  ])("never gives out a line break that came in %s", async (name, value) => {
    const received = await speak(service.port, [
      head("POST /content HTTP/1.1", "Host: a", "Content-Length: 1", `${name}: ${value}`) + "x"
    ])
    expect(received).not.toMatch(/[\r\n]X-Evil/i)
    const [, path] = /\r\nlocation: http:\/\/post\.test(\S+)/i.exec(received) ?? []
    if (path === undefined) return
    const served = await speak(service.port, [head(`GET ${path} HTTP/1.1`, "Host: a")])
    expect(served).not.toMatch(/[\r\n]X-Evil/i)
  })

  it("never gives out a line break that came in a name or title", async () => {
    const slug = "evil%0d%0aX-Evil:%201"
    const headers = { ...asAdmin, slug }
    const named = await send(service.url, "/mailboxes", { method: "POST", headers })
    expect(named.status).toBe(422)
    const titled = "<mailbox><name>titled</name><title>a&#13;&#10;X-Evil: 1</title></mailbox>"
    const made = await postXml(service.url, "/mailboxes", titled, asAdmin)
    expect([201, 422]).toContain(made.status)
    expect(made.headers.has("x-evil")).toBe(false)
  })
})

/** Noise that is the same in every run. */
const noise = (n: number, length: number): Buffer => {
  const blocks: Array<Buffer> = []
  for (let at = 0; at * 64 < length; at += 1) {
    blocks.push(createHash("sha512").update(`${n} ${at}`).digest())
  }
  return Buffer.concat(blocks).subarray(0, length)
}

describe("noise", () => {
  it("outlives random bytes and mutated requests", async () => {
    const valid = Buffer.from(smuggled().replaceAll("smuggled", "mutation"))
    await Promise.all(Array.from({ length: 150 }, async (_, n) => {
      const random = noise(n, 64)
      const mutated = Buffer.from(valid)
      for (let change = 0; change < 3; change += 1) {
        mutated[random.readUInt16BE(change * 2) % mutated.length] = random[10 + change] ?? 0
      }
      await speak(service.port, [n % 3 === 0 ? noise(n, 2_000) : mutated], 150)
    }))
    expect(service.isOver).toBe(false)
    expectStatus(await send(service.url, "/readyz"), 200)
    for (const { description } of await listMailbox(service.url, mailbox)) {
      expect(description).toHaveLength("mutation".length)
    }
  }, 60_000)
})

/** Drips one byte after the other until it is told to stop or is thrown out. */
const drip = ({ socket }: Wire, bytes: string): () => void => {
  let at = 0
  const timer = setInterval(() => {
    if (socket.writable) socket.write(bytes[at++ % bytes.length] ?? "a")
  }, dripMs)
  return () => {
    clearInterval(timer)
    socket.destroy()
  }
}

describe("slow clients", () => {
  it(`answers an honest client beside ${slowClients} slow ones, and throws those out`, async () => {
    const before = await measure(service.url, memory)
    const wires = await Promise.all(Array.from({ length: slowClients }, () => open(service.port)))
    const stops = wires.map((wire, n) => {
      if (n % 3 === 0) wire.socket.write("GET / HTTP/1.1\r\nHost: a\r\nX: ")
      else if (n % 3 === 1) {
        const fields = ["Host: a", "Content-Type: application/xml", "Content-Length: 100000"]
        wire.socket.write(head(`POST ${mailbox.path} HTTP/1.1`, ...fields))
      } else wire.socket.write(head("POST /content HTTP/1.1", "Host: a", "Content-Length: 100000"))
      return drip(wire, "x")
    })
    const waits: Array<number> = []
    for (let n = 0; n < honestRequests; n += 1) {
      const startedMs = performance.now()
      const document = notification(`honest-${n}`)
      expectStatus(await postXml(service.url, mailbox.path, document), 202)
      waits.push(performance.now() - startedMs)
      await pause(50)
    }
    expect(Math.max(...waits)).toBeLessThan(honestMs)
    // None may hold its connection for ever.
    let left = wires.length
    for (const { closed } of wires) void closed.then(() => left--)
    await eventually(
      45_000,
      "the slow ones are thrown out",
      () => left === 0 ? true : undefined,
      250
    )
    for (const stop of stops) stop()
    const honest = (await listMailbox(service.url, mailbox)).filter(({ description }) =>
      description.startsWith("honest-")
    )
    expect(honest).toHaveLength(honestRequests)
    await eventually(20_000, "memory returns", async () => {
      const now = await measure(service.url, memory)
      return now - before < keptBytesMax ? true : undefined
    }, 500)
    expect(service.isOver).toBe(false)
  }, 120_000)
})
