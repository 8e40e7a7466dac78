import { connect } from "node:net"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { eventText } from "../../http/wire/event-stream.ts"
import type { Exchange } from "../../http/wire/exchange.ts"
import { ServerUnavailable } from "../../http/wire/native-module.ts"
import { BodyError, type HttpRequest } from "../../http/wire/request.ts"
import { listen, type Server } from "../../http/wire/server.ts"

const errors: Array<unknown> = []
const uploads: Array<string> = []
let server: Server
let base: string

async function* pieces(count: number, size: number): AsyncGenerator<Uint8Array> {
  for (let index = 0; index < count; index += 1) yield new Uint8Array(size).fill(97)
}

const receive = async (exchange: Exchange, limit: number): Promise<void> => {
  let size = 0
  try {
    for await (const chunk of exchange.stream(limit, () => "")) size += chunk.length
    exchange.reply({ status: 200, headers: [], body: String(size) })
  } catch (error) {
    const tag = error instanceof BodyError ? error.fault._tag : "unknown"
    uploads.push(tag)
    exchange.reply({ status: 413, headers: [], body: tag })
  }
}

const handler = (request: HttpRequest, exchange: Exchange): void => {
  switch (request.path) {
    case "/throw":
      throw new Error("on purpose")
    case "/bad-field":
      return exchange.reply({ status: 200, headers: [["X", "a\r\nSet-Cookie: b"]] })
    case "/page":
      return exchange.reply({ status: 200, headers: [["Content-Type", "text/html"]], body: "<p>" })
    case "/none":
      return exchange.reply({ status: 204, headers: [] })
    case "/stream":
      void exchange.replyStream(200, [], 5_000_000, pieces(50, 100_000))
      return
    case "/chunked":
      void exchange.replyStream(200, [], undefined, pieces(5, 100_000))
      return
    case "/short":
      void exchange.replyStream(200, [], 10, pieces(1, 3))
      return
    case "/events": {
      const stream = exchange.events([])
      stream?.send(eventText({ data: "a\nb", id: "7" }))
      return
    }
    case "/poll":
      exchange.onDrain(() => exchange.reply({ status: 200, headers: [], body: "drained" }))
      return
    case "/up":
      void receive(exchange, 1_000_000)
      return
    default:
      exchange.bytes(1000, () => "192.0.2.0/24", (body) => {
        const text = body instanceof Uint8Array ? Buffer.from(body).toString() : body._tag
        const echo = {
          method: request.method,
          path: request.path,
          query: request.query,
          x: request.headers.get("x"),
          address: request.remoteAddress,
          text
        }
        const status = body instanceof Uint8Array ? 200 : 413
        exchange.reply({
          status,
          headers: [["ETag", "\"é\"".replace("é", "e")]],
          body: JSON.stringify(echo)
        })
      })
  }
}

const start = () =>
  listen({
    host: "127.0.0.1",
    port: 0,
    handler,
    baseUrl: "http://h",
    onError: (error) => errors.push(error),
    corsOrigin: "*"
  })

/**
 * The answer to these bytes, until the connection ends or is silent; `next` is sent after the first
 * answer.
 */
const exchangeRaw = (sent: string, next = "", port = server.port): Promise<string> =>
  new Promise((resolve) => {
    let received = ""
    const socket = connect(port, "127.0.0.1", () => socket.write(sent))
    socket.on("data", (chunk) => {
      socket.setTimeout(400, () => socket.destroy())
      if (received === "" && next !== "") socket.write(next)
      received += chunk.toString("latin1")
    })
    socket.on("error", () => undefined)
    socket.on("close", () => resolve(received))
  })

const head = "HTTP/1.1\r\nHost: a\r\n"

describe("server", () => {
  beforeAll(async () => {
    server = await start()
    base = `http://127.0.0.1:${server.port}`
  })
  afterAll(() => server.drain(100))

  it("passes requests on as they are", async () => {
    const answer = await fetch(`${base}/a%2Fb?q=%20`, {
      method: "POST",
      body: "hé",
      headers: { X: "1" }
    })
    expect(await answer.json()).toEqual({
      method: "POST",
      path: "/a%2Fb",
      query: "q=%20",
      x: "1",
      address: "127.0.0.1",
      text: "hé"
    })
    expect(answer.headers.get("x-content-type-options")).toBe("nosniff")
    expect(answer.headers.get("referrer-policy")).toBe("no-referrer")
    expect(answer.headers.get("access-control-allow-origin")).toBe("*")
    expect(answer.headers.get("content-security-policy"))
      .toBe("sandbox; default-src 'none'; frame-ancestors 'none'")
    expect(answer.headers.get("cross-origin-resource-policy")).toBe("same-origin")
    const page = await fetch(`${base}/page`)
    expect(page.headers.get("content-security-policy")).toContain("default-src 'none'")
  })

  it("HEAD has the length and no body; 204 has neither", async () => {
    expect(await exchangeRaw(`HEAD /page ${head}\r\n`)).toMatch(
      /Content-Length: 3\r\nDate: [^\r]+\r\n\r\n$/
    )
    const none = await exchangeRaw(`GET /none ${head}\r\n`)
    expect(none).toContain("204 No Content")
    expect(none).not.toContain("Content-Length")
    expect(await exchangeRaw(`HEAD /stream ${head}\r\n`)).toMatch(
      /Content-Length: 5000000\r\nDate: [^\r]+\r\n\r\n$/
    )
  })

  it.each(["/page", "/stream"])("HEAD %s leaves the connection usable", async (path) => {
    const received = await exchangeRaw(`HEAD ${path} ${head}\r\n`, `GET /page ${head}\r\n`)
    expect(received.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(2)
    expect(received).toMatch(/Content-Length: 3\r\n\r\n<p>$/)
  })

  it("reads nothing after a HEAD or a 204 that ends the connection", async () => {
    const last = "Connection: keep-alive, close\r\n"
    for (const first of [`HEAD /page ${head}${last}\r\n`, `GET /none ${head}${last}\r\n`]) {
      const received = await exchangeRaw(first, `GET /page ${head}\r\n`)
      expect(received).toContain("Connection: close")
      expect(received.match(/HTTP\/1\.1/g)).toHaveLength(1)
    }
  })

  it.each<[string, string, string]>([
    ["two lengths", `POST / ${head}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`, "400"],
    [
      "length and coding",
      `POST / ${head}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      "400"
    ],
    ["a bad length", `POST / ${head}Content-Length: +1\r\n\r\na`, "400"],
    ["a bad chunk", `POST / ${head}Transfer-Encoding: chunked\r\n\r\nzz\r\n`, "400"],
    ["another coding", `POST / ${head}Transfer-Encoding: gzip\r\n\r\n`, "400"],
    ["a coding before chunked", `POST / ${head}Transfer-Encoding: gzip, chunked\r\n\r\n`, "501"],
    ["a large header block", `GET / ${head}X: ${"a".repeat(17_000)}\r\n\r\n`, "431"],
    ["a declared body over the limit", `POST / ${head}Content-Length: 100000\r\n\r\n`, "413"],
    [
      "a chunked body over the limit",
      `POST / ${head}Transfer-Encoding: chunked\r\n\r\n800\r\n${"a".repeat(2048)}`,
      "413"
    ]
  ])("refuses %s and closes", async (_, sent, status) => {
    const answer = await exchangeRaw(sent)
    expect(answer.slice(9, 12)).toBe(status)
    expect(answer).toContain("Connection: close")
  })

  it("reads bodies in pieces, chunked, and after 100-continue", async () => {
    const chunked = `POST / ${head}Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n`
    expect(await exchangeRaw(chunked)).toContain("\"text\":\"abc\"")
    expect(await exchangeRaw(`POST / ${head}Expect: 100-continue\r\nContent-Length: 1\r\n\r\n`))
      .toContain("100 Continue")
  })

  it("survives a handler that throws and a field that must not be", async () => {
    expect((await fetch(`${base}/throw`)).status).toBe(500)
    const bad = await fetch(`${base}/bad-field`)
    expect(bad.status).toBe(500)
    expect(bad.headers.get("set-cookie")).toBe(null)
    expect(errors).toHaveLength(2)
  })

  it("tells browsers what it refuses itself in text, as the origin may have no pages", async () => {
    const headers = { Accept: "text/html,application/xml;q=0.9,*/*;q=0.8" }
    const failed = await fetch(`${base}/throw`, { headers })
    errors.pop()
    expect([failed.status, failed.headers.get("content-type")])
      .toEqual([500, "text/plain; charset=utf-8"])
    const refused = await exchangeRaw(`GET / ${head}Accept: text/html\r\nExpect: tea\r\n\r\n`)
    expect(refused).toMatch(/^HTTP\/1\.1 417 [^]*Content-Type: text\/plain; charset=utf-8\r\n/)
    expect(refused).toContain("\r\n\r\n417 ")
  })

  it("streams out, by length and chunked, and cuts a body that is too short", async () => {
    expect((await (await fetch(`${base}/stream`)).arrayBuffer()).byteLength).toBe(5_000_000)
    expect((await (await fetch(`${base}/chunked`)).arrayBuffer()).byteLength).toBe(500_000)
    await expect((async () => (await fetch(`${base}/short`)).text())()).rejects.toThrow()
    expect(errors.pop()).toMatchObject({ _tag: "BrokenBody" })
  })

  it("streams in, within the limit, and fails clearly when cut off", async () => {
    const whole = await fetch(`${base}/up`, { method: "PUT", body: "a".repeat(900_000) })
    expect(await whole.text()).toBe("900000")
    const leaving = connect(server.port, "127.0.0.1", () => {
      leaving.write(`POST /up ${head}Content-Length: 1000\r\n\r\nabc`)
    })
    await expect.poll(() => server.inFlight()).toBe(1)
    leaving.destroy()
    await expect.poll(() => uploads.pop()).toBe("Aborted")
    const large = `POST /up ${head}Content-Length: 2000000\r\n\r\nabc`
    expect(await exchangeRaw(large)).toContain("413")
    expect(uploads.pop()).toBe("TooLarge")
    expect(server.inFlight()).toBe(0)
  })

  it("sends events", async () => {
    const text = await exchangeRaw(`GET /events ${head}\r\n`)
    expect(text).toContain("text/event-stream")
    expect(text).toContain("id: 7\ndata: a\ndata: b\n\n")
    expect(server.inFlight()).toBe(0)
  })

  it("reports that an address is in use", async () => {
    const repeated = listen({
      host: "127.0.0.1",
      port: server.port,
      handler,
      baseUrl: "",
      onError: () => undefined,
      corsOrigin: "*"
    })
    await expect(repeated).rejects.toBeInstanceOf(ServerUnavailable)
  })

  it("drains: answers current requests, ends streams, accepts no new ones", async () => {
    const other = await start()
    const poll = exchangeRaw(`GET /poll ${head}\r\n`, "", other.port)
    const events = exchangeRaw(`GET /events ${head}\r\n`, "", other.port)
    await expect.poll(() => other.inFlight()).toBe(2)
    await other.drain(1000)
    expect(await poll).toContain("drained")
    expect(await events).toMatch(/0\r\n\r\n$/)
    await expect(fetch(`http://127.0.0.1:${other.port}/`)).rejects.toThrow()
  })
})
