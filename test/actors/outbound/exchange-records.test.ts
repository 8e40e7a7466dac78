/** What an attempt has exchanged, for whoever has to find out why it fails. */
import { Effect } from "effect"
import { once } from "node:events"
import type { Socket } from "node:net"
import { createServer } from "node:https"
import { gzipSync } from "node:zlib"
import { Agent } from "undici"
import { describe, expect, it, onTestFinished } from "vitest"
import { answerSampleBytesMax, recordedHeaderCharsMax,
  recordedHeadersMax } from "../../../actors/limits.ts"
import { makeConnector } from "../../../actors/outbound/connector.ts"
import { addressRules } from "../../../actors/outbound/destination.ts"
import { exchange } from "../../../actors/outbound/exchange.ts"
import type { ExchangeRecord, OutboundPost, Reach } from "../../../actors/outbound/protocol.ts"
import * as certificates from "./certificates.ts"
import { answering, cause, client, closedPort, listening, patient, quick, receiver,
  speaking } from "./rig.ts"

/** What a post to the URI exchanges, hop by hop. */
const recordsOf = async (
  uri: string,
  more: Partial<OutboundPost> = {},
  answersOf: Reach = "allowed"
): Promise<ReadonlyArray<ExchangeRecord>> => {
  const { outbound } = await client({ limits: patient, nowMs: () => 5_000 })
  const records: Array<ExchangeRecord> = []
  const observer = { answersOf, record: (record: ExchangeRecord) => void records.push(record) }
  const content = { headers: { "Content-Type": "text/plain" }, body: "hello" }
  await Effect.runPromise(outbound.post({ uri, cause, ...content, observer, ...more }))
  return records
}

const recordOf = async (...options: Parameters<typeof recordsOf>): Promise<ExchangeRecord> => {
  const [record, ...others] = await recordsOf(...options)
  if (record === undefined) throw new Error("nothing was exchanged")
  expect(others).toEqual([])
  return record
}

describe("an attempt that is observed", () => {
  it("tells what was sent and what was answered, without credentials and cookies", async () => {
    const at = await answering(500, {
      "content-type": "text/plain",
      "set-cookie": "session=1",
      "x-request-id": "r7"
    }, "no such table: hooks\n")
    const record = await recordOf(at.uri, {
      headers: { "Content-Type": "text/plain", "Webhook-Id": "msg_1", "Message-Password": "p" },
      authorization: "vapid t=1"
    })
    expect(record).toMatchObject({ beganAtMs: 5_000, code: 500 })
    expect(Object.fromEntries(record.requestHeaders)).toEqual({
      accept: "*/*",
      "accept-encoding": "identity",
      "content-type": "text/plain",
      "user-agent": "restante/test",
      "webhook-id": "msg_1"
    })
    expect(at.came[0]?.headers).toMatchObject({ authorization: "vapid t=1" })
    const { answer } = record
    expect(answer).toMatchObject({ bytes: 21, text: "no such table: hooks\n" })
    const headers = Object.fromEntries(answer?.headers ?? [])
    expect(headers).toMatchObject({ "content-type": "text/plain", "x-request-id": "r7" })
    expect(headers).not.toHaveProperty("set-cookie")
  })

  it("keeps the first 4 KiB of a long answer, and no half of a character", async () => {
    const body = `${"a".repeat(answerSampleBytesMax - 1)}é and more`
    const at = await answering(404, {}, body)
    expect((await recordOf(at.uri)).answer).toMatchObject({
      text: "a".repeat(answerSampleBytesMax - 1),
      bytes: Buffer.byteLength(body),
      isCut: true
    })
  })

  it.each([
    ["no UTF-8", Buffer.from([0x63, 0xe9, 0x21]), {}],
    ["binary", Buffer.from("a\0b"), {}],
    ["compressed", gzipSync("hello"), { "content-encoding": "gzip" }]
  ])("has the length of a body that is %s only", async (_, body, headers) => {
    const at = await answering(400, headers, body)
    const { answer } = await recordOf(at.uri)
    expect(answer).toMatchObject({ bytes: body.length })
    expect(answer).not.toHaveProperty("text")
  })

  it("has no signature with which the request can be sent again", async () => {
    const at = await answering(500)
    const { requestHeaders } = await recordOf(at.uri, {
      headers: {
        "Webhook-Signature": "v1,abcdefghijklmnop= v1a,qrstuvwxyz",
        "X-Hub-Signature": "sha256=0123456789abcdef"
      }
    })
    expect(at.came[0]?.headers["webhook-signature"]).toBe("v1,abcdefghijklmnop= v1a,qrstuvwxyz")
    expect(Object.fromEntries(requestHeaders)).toMatchObject({
      "webhook-signature": "v1,abcdefgh… v1a,qrstuvwx…",
      "x-hub-signature": "sha256=01234567…"
    })
  })

  it("bounds headers in number and in characters", async () => {
    const many = await receiver((_, response) => {
      for (let at = 0; at < 3 * recordedHeadersMax; at++) response.setHeader(`x-${at}`, "1")
      response.end()
    })
    expect((await recordOf(many.uri)).answer?.headers).toHaveLength(recordedHeadersMax)
    const long = await answering(200, { "x-long": "1".repeat(3 * recordedHeaderCharsMax) })
    const headers = (await recordOf(long.uri)).answer?.headers ?? []
    expect(headers.flat().join("").length).toBe(recordedHeaderCharsMax)
  })

  it("has no answer if none came, and the last hop if it was redirected", async () => {
    const record = await recordOf(`http://127.0.0.1:${await closedPort()}/`)
    expect(record).not.toHaveProperty("code")
    expect(record).not.toHaveProperty("answer")
    expect(Object.fromEntries(record.requestHeaders)).toHaveProperty("content-type")
    const end = await answering(503, {}, "busy")
    const start = await answering(307, { location: end.uri }, "there")
    const records = await recordsOf(start.uri)
    expect(records.map(({ answer, code }) => [code, answer?.text])).toEqual([
      [307, "there"],
      // Of another origin, whose address is not public.
      [503, undefined]
    ])
  })

  it("is as whole of a success as of a failure, and of the last hop", async () => {
    const fine = await answering(202, { "x-id": "1" }, "thank you")
    const turned = await answering(307, { location: fine.uri }, "there")
    expect(await recordsOf(fine.uri)).toMatchObject([{ code: 202, answer: { text: "thank you" } }])
    const [first, last] = await recordsOf(turned.uri)
    expect(first).toMatchObject({ code: 307, answer: { text: "there" } })
    expect(last).toMatchObject({ code: 202, redirects: 1 })
    expect(last).not.toHaveProperty("answer")
    expect(last?.requestHeaders.length).toBeGreaterThan(0)
  })

  it("has no answer of a mailbox at another origin that a page has named", async () => {
    const inside = await answering(500, {}, "the operator's own")
    const page = await receiver((request, response) => {
      if (request.method === "POST") response.writeHead(405).end("no post")
      else response.writeHead(200, { Link: `<${inside.uri}>; rel=mailbox` }).end()
    })
    const records = await recordsOf(page.uri, { discovers: true })
    expect(records.map(({ answer, code, redirects }) => [code, answer?.text, redirects])).toEqual([
      [405, "no post", undefined],
      [500, undefined, undefined]
    ])
    const same = await receiver((request, response) => {
      if (request.method !== "POST") {
        response.writeHead(200, { Link: "</box>; rel=mailbox" }).end()
      } else response.writeHead(request.url === "/box" ? 500 : 405).end("mine")
    })
    const own = await recordsOf(same.uri, { discovers: true })
    expect(own.map(({ answer, code }) => [code, answer?.text])).toEqual([[405, "mine"], [
      500,
      "mine"
    ]])
  })

  it("ends no later for a body that never ends", async () => {
    const at = await speaking((socket) => {
      socket.once("data", () => socket.write("HTTP/1.1 500 No\r\nContent-Length: 99\r\n\r\nslow"))
    })
    const { outbound } = await client({ limits: { ...quick, ...patient } })
    let record: ExchangeRecord | undefined
    const observer = {
      answersOf: "allowed" as const,
      record: (last: ExchangeRecord) => {
        record = last
      }
    }
    const post = { uri: at.uri, cause, headers: {}, body: "", observer }
    // The read ends after the time of a drain, far below that of the attempt.
    expect(await Effect.runPromise(outbound.post(post))).toMatchObject({ code: 500 })
    expect(record?.answer).toMatchObject({ text: "slow", bytes: 4 })
  })

  it("is recorded for a GET that fails, too", async () => {
    const at = await answering(403, {}, "who are you?")
    const { outbound } = await client({ limits: patient })
    const texts: Array<string | undefined> = []
    const observer = {
      answersOf: "allowed" as const,
      record: ({ answer }: ExchangeRecord) => void texts.push(answer?.text)
    }
    await Effect.runPromise(outbound.get({ uri: at.uri, cause, bytesMax: 9, observer }))
    expect(texts).toEqual(["who are you?"])
  })

  it.each([
    ["announces it", (body: string) => ({ "content-length": String(body.length) })],
    ["does not", () => ({})]
  ])("has the start of a body that a GET does not take, if the answer %s", async (_, headersOf) => {
    const body = "0123456789abcdef".repeat(1280)
    const at = await receiver((_request, response) => {
      response.writeHead(200, headersOf(body))
      // The sample comes in two parts.
      response.write(body.slice(0, 20))
      setTimeout(() => response.end(body.slice(20)), 20)
    })
    const { outbound } = await client({ limits: { ...patient, drainMs: 40_000 } })
    const answers: Array<ExchangeRecord["answer"]> = []
    const observer = {
      answersOf: "allowed" as const,
      record: ({ answer }: ExchangeRecord) => void answers.push(answer)
    }
    const get = { uri: at.uri, cause, bytesMax: 9, observer }
    expect(await Effect.runPromise(outbound.get(get))).toEqual({
      _tag: "PermanentFailure",
      problem: "larger than 9 bytes"
    })
    expect(answers).toMatchObject([{ text: body.slice(0, answerSampleBytesMax), isCut: true }])
  })

  it("has what came of a body that is too large and breaks off", async () => {
    const at = await speaking((socket) => {
      socket.once("data", () => {
        socket.end("HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\nthe start")
      })
    })
    const { outbound } = await client({ limits: patient })
    const texts: Array<string | undefined> = []
    const observer = {
      answersOf: "allowed" as const,
      record: ({ answer }: ExchangeRecord) => void texts.push(answer?.text)
    }
    const get = { uri: at.uri, cause, bytesMax: 4, observer }
    expect(await Effect.runPromise(outbound.get(get))).toMatchObject({ _tag: "PermanentFailure" })
    expect(texts).toEqual(["the start"])
  })
})

describe("the answer of an address that is not public", () => {
  it("is not recorded if only those of public ones are seen", async () => {
    const at = await answering(500, { "x-inside": "1" }, "the operator's own")
    const record = await recordOf(at.uri, {}, "public")
    expect(record).toMatchObject({ code: 500 })
    expect(record).not.toHaveProperty("answer")
  })

  /** A connector for which these addresses are the public ones. */
  const connectorTo = (publicPrefix: string, found: ReadonlyArray<string> = ["127.0.0.1"]) => {
    const connector = makeConnector({
      limits: { connectMs: 20_000, nextAddressMs: 250 },
      names: { resolve: () => Promise.resolve(found), close: () => undefined },
      rules: addressRules(["127.0.0.0/8"]),
      publicRules: addressRules([publicPrefix]),
      ca: [certificates.authority]
    })
    onTestFinished(() => connector.close())
    const connect = (hostname: string, port: number) =>
      new Promise<Socket>((resolve, reject) => {
        const options = { hostname, port: String(port), protocol: "http:" }
        connector.connect(
          options,
          (error, socket) => socket === null ? reject(error) : resolve(socket)
        )
      })
    return { connector, connect }
  }

  it("is that of an origin with one open connection to such an address", async () => {
    const { port } = await answering(200)
    const origin = `http://name.test:${port}`
    const { connect, connector } = connectorTo("127.0.0.0/8")
    expect(connector.isPublic(origin)).toBe(false)
    const socket = await connect("name.test", port)
    expect(connector.isPublic(origin)).toBe(true)
    socket.destroy()
    await once(socket, "close")
    expect(connector.isPublic(origin)).toBe(false)

    const everywhere = await receiver((_, response) => response.end(), "0.0.0.0")
    const found = ["127.0.0.2"]
    const mixed = connectorTo("127.0.0.2/32", found)
    const at = `http://name.test:${everywhere.port}`
    await mixed.connect("name.test", everywhere.port)
    expect(mixed.connector.isPublic(at)).toBe(true)
    found[0] = "127.0.0.1"
    const inside = await mixed.connect("name.test", everywhere.port)
    expect(mixed.connector.isPublic(at)).toBe(false)
    inside.destroy()
    await once(inside, "close")
    expect(mixed.connector.isPublic(at)).toBe(true)
  })

  /** The text of an answer that is sampled if its address is public. */
  const sampled = async (origin: string, publicPrefix: string) => {
    const { connector } = connectorTo(publicPrefix)
    const agent = new Agent({ connect: connector.connect })
    onTestFinished(() => agent.destroy())
    const samples = () => connector.isPublic(origin)
    const bounds = { keep: "nothing", bytesMax: 9, samples } as const
    const request = { origin, path: "/", method: "POST", headers: {}, body: "", ...bounds } as const
    const limits = { attemptMs: 20_000, drainMs: 20_000 }
    const result = await Effect.runPromise(exchange(agent, request, 20_000, false, limits))
    if (result._tag === "Failed") throw new Error(result.outcome.problem)
    return result.sample && Buffer.from(result.sample.bytes).toString()
  }

  it("is told from that of a public one, with TLS or without, also on a last request", async () => {
    const { uri } = await answering(500, { connection: "close" }, "plain")
    const { good: cert, key } = certificates
    const server = createServer({ key, cert }, (_, response) => {
      response.writeHead(500, { connection: "close" }).end("secured")
    })
    const port = await listening(server)
    for (
      const [origin, text] of [
        [uri, "plain"],
        [`https://good.test:${port}`, "secured"],
        [`https://good.test.:${port}`, "secured"],
        [`https://127.0.0.1:${port}`, "secured"]
      ] as const
    ) {
      expect([origin, await sampled(origin, "127.0.0.0/8")]).toEqual([origin, text])
      expect([origin, await sampled(origin, "127.0.0.2/32")]).toEqual([origin, undefined])
    }
  })
})
