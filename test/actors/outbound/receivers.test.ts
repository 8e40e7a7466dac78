/** What a post comes to with receivers of every kind (protocol §1.3). */
import { Effect } from "effect"
import { gzipSync } from "node:zlib"
import { describe, expect, it, onTestFinished } from "vitest"
import { answering, cause, client, closedPort, connectionIsFree, receiver,
  speaking } from "./rig.ts"

const faulted = (problem: string) => ({ _tag: "RetryableFailure", problem })

describe("a receiver that answers", () => {
  it("gets the body with the caller's headers, and no others but its own", async () => {
    const at = await answering(202, { location: "../stored/1?x=1" })
    const { post } = await client()
    const headers = {
      "Content-Type": "application/xml",
      "Idempotency-Key": "k1",
      Authorization: "Basic x",
      Cookie: "a=b",
      "User-Agent": "other",
      Host: "other.test"
    }
    expect(await post(`${at.uri}/in/box?q#f`, { headers, body: "<é/>" })).toEqual({
      _tag: "Delivered",
      code: 202,
      location: `${at.uri}/stored/1?x=1`
    })
    expect(at.came).toEqual([{
      method: "POST",
      path: "/in/box?q",
      body: "<é/>",
      headers: {
        accept: "*/*",
        "accept-encoding": "identity",
        connection: "keep-alive",
        "content-length": "5",
        "content-type": "application/xml",
        host: `127.0.0.1:${at.port}`,
        "idempotency-key": "k1",
        "user-agent": "restante/test"
      }
    }])
  })

  it("may give a Location that is none of the web's, which is left out", async () => {
    const { post } = await client()
    for (
      const location of ["javascript:alert(1)", "http://u:p@example.com/", "http://[", "ftp:x"]
    ) {
      const at = await answering(201, { location })
      expect(await post(at.uri)).toEqual({ _tag: "Delivered", code: 201 })
    }
  })

  it.each([400, 401, 403, 404, 405, 410, 415, 422, 451])("%d ends it", async (code) => {
    const at = await answering(code, { "retry-after": "5" })
    const { post } = await client()
    expect(await post(at.uri)).toEqual({
      _tag: "PermanentFailure",
      code,
      problem: `answered ${code}`
    })
  })

  it.each([408, 425, 429, 500, 502, 503, 504, 599])("%d is tried again", async (code) => {
    const at = await answering(code, { "retry-after": "5" })
    const { post } = await client()
    const problem = `answered ${code}`
    expect(await post(at.uri)).toEqual({
      _tag: "RetryableFailure",
      code,
      problem,
      retryAfterMs: 5_000
    })
  })

  it.each(["soon", undefined])("409 with the Retry-After %s ends it", async (value) => {
    const at = await answering(409, value === undefined ? {} : { "retry-after": value })
    const { post } = await client()
    expect(await post(at.uri)).toEqual({
      _tag: "PermanentFailure",
      code: 409,
      problem: "answered 409"
    })
  })

  it("409 with a Retry-After is tried again: its Idempotency-Key is in use", async () => {
    const at = await answering(409, { "retry-after": "1" })
    const { post } = await client()
    expect(await post(at.uri)).toEqual({
      ...faulted("answered 409"),
      code: 409,
      retryAfterMs: 1_000
    })
  })

  it("429 may ask for any wait, of which a day is honored", async () => {
    const nowMs = Date.parse("Sun, 06 Nov 1994 08:49:37 GMT")
    const { post } = await client({ nowMs: () => nowMs })
    const waits: ReadonlyArray<readonly [string, number | undefined]> = [
      ["999999999999999999999999999999", 86_400_000],
      ["Fri, 31 Dec 9999 23:59:59 GMT", 86_400_000],
      ["Sun, 06 Nov 1994 08:50:37 GMT", 60_000],
      ["Sun Nov  6 08:50:37 1994", 60_000],
      ["Sun, 06 Nov 1994 08:48:37 GMT", 0],
      ["soon", undefined],
      ["-5", undefined]
    ]
    for (const [value, retryAfterMs] of waits) {
      const at = await answering(429, { "retry-after": value })
      expect(await post(at.uri)).toEqual({
        ...faulted("answered 429"),
        code: 429,
        ...retryAfterMs === undefined ? {} : { retryAfterMs }
      })
    }
  })

  it("after informational answers counts by its last", async () => {
    const hints = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".repeat(3)
    const { uri } = await speaking((socket) =>
      socket.once("data", () => socket.end(`${hints}HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n`))
    )
    const { post } = await client()
    expect(await post(uri)).toEqual({ _tag: "Delivered", code: 200 })
  })

  it("gets nothing when the request is no longer wanted", async () => {
    const at = await answering(204)
    const { outbound, post } = await client()
    const load = () => Effect.succeed(undefined)
    expect(await post(at.uri, { load })).toEqual({
      _tag: "PermanentFailure",
      problem: "no longer wanted"
    })
    expect(at.came).toEqual([])
    expect(outbound.metrics()).toMatchObject({ inFlight: 0, connections: 0 })
  })

  it("gets no header with a line break", async () => {
    const at = await answering(204)
    const { post } = await client()
    for (const headers of [{ "x-a": "b\r\nx-c: d" }, { "x-a\r\nx-c": "d" }, { "x a": "d" }]) {
      expect(await post(at.uri, { headers })).toEqual({
        _tag: "PermanentFailure",
        problem: "a header or the target cannot be sent"
      })
    }
    expect(at.came).toEqual([])
  })

  it("gets its requests on the connection that there is", async () => {
    const ports = new Set<number | undefined>()
    const at = await receiver((request, response) => {
      ports.add(request.socket.remotePort)
      response.writeHead(204).end()
    })
    const { outbound, post } = await client()
    for (let n = 0; n < 5; n++) {
      await post(at.uri)
      await connectionIsFree()
    }
    expect(ports.size).toBe(1)
    expect(outbound.metrics()).toMatchObject({
      outcomes: { Delivered: 5, PermanentFailure: 0, RetryableFailure: 0, Deferred: 0, Fetched: 0 },
      connections: 1,
      origins: 0
    })
  })
})

describe("no proxy variable counts", () => {
  it.each(["http_proxy", "HTTP_PROXY", "all_proxy"])("%s", async (name) => {
    const before = process.env[name]
    onTestFinished(() => {
      before === undefined ? delete process.env[name] : process.env[name] = before
    })
    process.env[name] = `http://127.0.0.1:${await closedPort()}`
    const at = await answering(204)
    const { post } = await client()
    expect(await post(at.uri)).toMatchObject({ _tag: "Delivered" })
  })
})

describe("a 2xx counts, whatever its body does:", () => {
  const head = "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"
  const delivered = { _tag: "Delivered", code: 200 }

  it("a byte now and then", async () => {
    const { uri } = await speaking((socket) => {
      socket.once("data", () => {
        socket.write(head)
        const drip = setInterval(() => socket.write("x"), 20)
        socket.once("close", () => clearInterval(drip))
      })
    })
    const { post } = await client()
    expect(await post(uri)).toEqual(delivered)
  })

  it("bytes without end, of which a few are read", async () => {
    let isClosed: (() => void) | undefined
    const closed = new Promise<void>((resolve) => {
      isClosed = resolve
    })
    const { uri } = await speaking((socket) => {
      const more = () => {
        while (!socket.destroyed && socket.write(Buffer.alloc(16_384)));
      }
      socket.once("data", () => socket.write("HTTP/1.1 200 OK\r\n\r\n", more))
      socket.on("drain", more)
      socket.once("close", () => isClosed?.())
    })
    const { post } = await client({ limits: { drainMs: 700 } })
    expect(await post(uri)).toEqual(delivered)
    await closed
  })

  it("a reset in its middle", async () => {
    const { uri } = await speaking((socket) =>
      socket.once("data", () => socket.write(`${head}xxx`, () => socket.resetAndDestroy()))
    )
    const { post } = await client()
    expect(await post(uri)).toEqual(delivered)
  })

  it("the end of the connection", async () => {
    const { uri } = await speaking((socket) => socket.once("data", () => socket.end(head)))
    const { post } = await client()
    expect(await post(uri)).toEqual(delivered)
  })

  it("a gzip bomb, which is not unpacked", async () => {
    const bomb = gzipSync(Buffer.alloc(50_000_000))
    const at = await receiver((_, response) => {
      response.writeHead(200, { "content-encoding": "gzip" }).end(bomb)
    })
    const { post } = await client()
    expect(await post(at.uri)).toEqual(delivered)
  })

  it("bad chunks", async () => {
    const { uri } = await speaking((socket) =>
      socket.once(
        "data",
        () => socket.end("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
      )
    )
    const { post } = await client()
    expect(await post(uri)).toEqual(delivered)
  })
})

it("a client that ends leaves nothing behind", async () => {
  const { uri } = await speaking(() => undefined)
  const { outbound } = await client()
  const cut = await Effect.runPromise(
    outbound.post({ uri, cause, headers: {}, body: "" }).pipe(Effect.timeoutOption(50))
  )
  expect(cut._tag).toBe("None")
  expect(outbound.metrics()).toMatchObject({ inFlight: 0, waiting: 0 })
})
