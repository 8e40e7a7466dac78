/**
 * nginx and HAProxy of Debian, configured as docs/how-to/proxy.md says, with one connection to the
 * service for the requests that follow each other.
 */
import type { IncomingHttpHeaders } from "node:http"
import { Agent, request, type RequestOptions } from "node:https"
import { connect as connectTls } from "node:tls"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { fileOf, metricsSpellings, type Proxy, startProxy } from "../docs/proxies.ts"
import { asAdmin, basic, listMailbox, type Mailbox, notification,
  openMailbox } from "../e2e/client.ts"
import { cleanUp, eventually, publicUrl, type Service, start } from "../e2e/process.ts"
import { head, statusesOf } from "../e2e/raw.ts"
import { closeReceivers, receiver } from "../e2e/receivers.ts"
import { freePorts } from "../runtime/nats/servers.ts"
import { type ConnectionCounter, countConnectionsTo } from "./connection-counter.ts"

const startsWithinMs = 120_000
/** The service refuses a document of this size unread, and ends the connection. */
const tooLargeBytes = 4 * 1024 * 1024
const rounds = 3
const guessesMax = 40

const xml = { "content-type": "application/xml" }

interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

type Options = RequestOptions & { readonly body?: string | Buffer }

let service: Service
beforeAll(async () => {
  const lines = fileOf("restante.env").trim().split("\n")
  const env = Object.fromEntries(lines.map((line) => line.split("=")))
  service = await start({ env: { ...env, BASE_URL: publicUrl } })
})
afterAll(async () => {
  await service.kill()
  closeReceivers()
  cleanUp()
})

describe.each([["nginx", 2], ["haproxy", 4]] as const)("%s", (name, subnet) => {
  let proxy: Proxy
  let counter: ConnectionCounter
  let port = 0
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })

  const send = (path: string, { body, ...options }: Options = {}): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const sent = request({
        ...{ host: "127.0.0.1", port, path, agent, method: body === undefined ? "GET" : "POST" },
        ...{ servername: "post.example.org", rejectUnauthorized: false, ...options }
      }, (answer) => {
        let text = ""
        answer.setEncoding("utf8").on("data", (part: string) => text += part).on("error", reject)
        answer.on("end", () => {
          resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text })
        })
      })
      sent.on("error", reject).end(body)
    })

  const deposit = (mailbox: Mailbox, text: string, options: RequestOptions = {}) =>
    send(mailbox.path, { ...options, headers: xml, body: notification(text) })

  const textsIn = async (mailbox: Mailbox) =>
    (await listMailbox(service.url, mailbox)).map(({ description }) => description)

  beforeAll(async () => {
    counter = await countConnectionsTo(service.port)
    const [tls = 0, plain = 0] = await freePorts(2)
    port = tls
    proxy = startProxy(name, { service: counter.port, tls, plain, upstreams: 1 })
    await eventually(startsWithinMs, "the proxy passes requests on", async () => {
      if (proxy.running.isOver) throw new Error(proxy.running.output)
      const answer = await send("/readyz").catch(() => undefined)
      return answer?.status === 200 ? true : undefined
    })
  })
  afterAll(async () => {
    agent.destroy()
    await proxy.running.stop()
    await counter.close()
  })

  /** Publishes content; returns its path, its entity tag and the password to change it. */
  const publish = async (): Promise<{ readonly path: string; readonly etag: string }> => {
    const published = await send("/content", {
      headers: { ...asAdmin, "content-type": "text/plain" },
      body: "content"
    })
    expect(published.status).toBe(202)
    const path = new URL(published.headers.location ?? "").pathname
    const { headers: { etag = "" } } = await send(path)
    expect(etag).not.toBe("")
    return { path, etag }
  }

  it("reuses its connection after HEAD, 204 and 304", async () => {
    const mailbox = await openMailbox(service.url, `${name}-reused`)
    const content = await publish()
    const headers = { authorization: basic("reader", mailbox.password) }
    const plain = { ...asAdmin, "content-type": "text/plain" }
    const steps: ReadonlyArray<readonly [status: number, path: string, options: Options]> = [
      [200, mailbox.path, { method: "HEAD", headers }],
      [200, mailbox.path, { headers }],
      [200, content.path, { method: "HEAD" }],
      [404, "/mailboxes/nobody", { method: "HEAD" }],
      [304, content.path, { headers: { "if-none-match": content.etag } }],
      [304, content.path, { method: "HEAD", headers: { "if-none-match": content.etag } }],
      [204, mailbox.path, { method: "OPTIONS" }],
      [204, content.path, { method: "PUT", headers: plain, body: "content" }],
      [400, mailbox.path, { headers: xml, body: "<notification>" }],
      [200, content.path, {}]
    ]
    const before = counter.connections()
    const sent: Array<string> = []
    for (let round = 0; round < rounds; round++) {
      for (const [at, [status, path, options]] of steps.entries()) {
        const answer = await send(path, options)
        expect([at, answer.status, answer.text]).toEqual([at, status, answer.text])
        sent.push(`text-${round}-${at}`)
        const after = await deposit(mailbox, `text-${round}-${at}`)
        expect([at, after.status, after.text]).toEqual([at, 202, after.text])
      }
    }
    expect(await textsIn(mailbox)).toEqual(sent)
    expect(counter.connections()).toBe(before)
  })

  it("takes another connection after an answer that ends one", async () => {
    const mailbox = await openMailbox(service.url, `${name}-ended`)
    const body = Buffer.alloc(tooLargeBytes)
    const chunked = { ...xml, "transfer-encoding": "chunked" }
    const steps: ReadonlyArray<readonly [status: number, path: string, options: Options]> = [
      [413, mailbox.path, { headers: xml, body }],
      [413, mailbox.path, { headers: chunked, body }],
      [404, "/nowhere", { headers: chunked, body }]
    ]
    const sent: Array<string> = []
    for (let round = 0; round < rounds; round++) {
      for (const [at, [status, path, options]] of steps.entries()) {
        const before = counter.connections()
        // nginx ends the client's connection, too.
        const refused = await send(path, { agent: false, ...options })
        expect([at, refused.status, refused.text]).toEqual([at, status, refused.text])
        for (const which of ["first", "second"]) {
          sent.push(`${which}-${round}-${at}`)
          const after = await deposit(mailbox, `${which}-${round}-${at}`)
          expect([after.status, after.text]).toEqual([202, after.text])
        }
        expect(counter.connections()).toBeGreaterThan(before)
      }
    }
    expect(await textsIn(mailbox)).toEqual(sent)
  })

  /** What a connection receives for these bytes, until the proxy ends it. */
  const untilClosed = (bytes: string): Promise<string> =>
    new Promise((resolve) => {
      const socket = connectTls({ port, host: "127.0.0.1", rejectUnauthorized: false })
      let received = ""
      socket.on("data", (part) => received += part.toString("latin1"))
      // A reset is a valid reaction, too.
      socket.on("error", () => undefined).on("close", () => resolve(received))
      socket.write(Buffer.from(bytes, "latin1"))
    })

  it("lets no smuggled request through", async () => {
    const mailbox = await openMailbox(service.url, `${name}-target`)
    const last = head("GET /problems/gone HTTP/1.1", "Host: a", "Connection: close")
    let answered = 0
    for (const [at, bytes] of smuggling(mailbox.path).entries()) {
      const statuses = statusesOf(await untilClosed(bytes + last))
      answered += statuses.filter((status) => status === 202).length
      const victim = await deposit(mailbox, `victim-${at}`)
      expect([bytes, victim.status, victim.text]).toEqual([bytes, 202, victim.text])
    }
    const texts = await textsIn(mailbox)
    const victims = texts.filter((text) => text.startsWith("victim-"))
    expect(victims).toEqual(smuggling("").map((_, at) => `victim-${at}`))
    // What the proxy takes as a request of its own is answered, and is not smuggled.
    expect(texts.length - victims.length).toBe(answered)
  })

  it("passes on live streams and long polls at once", async () => {
    const mailbox = await openMailbox(service.url, `${name}-live`)
    const authorization = basic("reader", mailbox.password)
    const of = { host: "127.0.0.1", port, path: mailbox.path, rejectUnauthorized: false }
    let reported = ""
    const stream = request({ ...of, headers: { authorization, accept: "text/event-stream" } })
    stream.on("response", (answer) => {
      answer.setEncoding("utf8").on("data", (part: string) => reported += part)
      answer.on("error", () => undefined)
    }).on("error", () => undefined).end()
    await expect.poll(() => reported).toContain(":")
    expect((await deposit(mailbox, "first")).status).toBe(202)
    await expect.poll(() => reported).toContain("<description>first</")
    const { headers: { etag = "" } } = await send(mailbox.path, { headers: { authorization } })
    const poll = send(mailbox.path, {
      agent: false,
      headers: { authorization, prefer: "wait=60", "if-none-match": etag }
    })
    expect((await deposit(mailbox, "second")).status).toBe(202)
    expect((await poll).text).toContain("<description>second</")
    await expect.poll(() => reported).toContain("<description>second</")
    stream.destroy()
  })

  it("keeps the metrics inside, whatever the way to write their path", async () => {
    for (const path of metricsSpellings) {
      const { status, text } = await send(path, { headers: asAdmin })
      expect([path, status >= 400, text.includes("restante_http")]).toEqual([path, true, false])
    }
    const own = await fetch(`${service.url}/metrics`, { headers: asAdmin })
    expect(await own.text()).toContain("restante_http")
  })

  it("passes on Host, and no X-Forwarded-Host of a client", async () => {
    const seen = await receiver(({ headers: { host, "x-forwarded-host": forwarded } }, response) =>
      response.end(JSON.stringify([host, forwarded ?? null]))
    )
    const [tls = 0, plain = 0] = await freePorts(2)
    const { running } = startProxy(name, { service: Number(new URL(seen).port), tls, plain })
    const host = "content.example.net"
    const headers = { host, "x-forwarded-host": "post.example.org" }
    const text = await eventually(startsWithinMs, "the proxy passes the request on", async () => {
      if (running.isOver) throw new Error(running.output)
      const answer = await send("/", { port: tls, agent: false, headers }).catch(() => undefined)
      return answer?.status === 200 ? answer.text : undefined
    })
    await running.stop()
    expect(JSON.parse(text)).toEqual([host, null])
  })

  it("names the client whose wrong tokens count, whatever the client sends", async () => {
    const guess = async (localAddress: string, token: string) => {
      const authorization = basic("admin", token)
      const forwarded = { "x-forwarded-for": `10.0.0.${token.length}, 192.0.2.${token.slice(5)}` }
      const headers = { authorization, ...forwarded }
      return (await send("/accounts/admin", { localAddress, agent: false, headers })).status
    }
    const statuses: Array<number> = []
    for (let n = 0; n < guessesMax; n++) {
      statuses.push(await guess(`127.0.${subnet}.1`, `guess${n}`))
    }
    expect([statuses[0], statuses.at(-1)]).toEqual([401, 429])
    expect(await guess(`127.0.${subnet}.2`, "guess1")).toBe(401)
  })
})

/** Forms of Transfer-Encoding that one reader honors and another may ignore. */
const codings: ReadonlyArray<string> = [
  "Transfer-Encoding: chunked",
  "Transfer-Encoding : chunked",
  "Transfer-Encoding:\tchunked",
  "Transfer-Encoding: \x0bchunked",
  "Transfer-Encoding: xchunked",
  "Transfer-Encoding: \"chunked\"",
  "Transfer-Encoding: chunked, identity",
  "Transfer-Encoding: identity, chunked",
  "Transfer-Encoding: chunked\r\nTransfer-Encoding: cow",
  "Transfer-Encoding: cow\r\nTransfer-Encoding: chunked",
  "Transfer-Encoding:\r\n chunked",
  "X: y\nTransfer-Encoding: chunked",
  "Transfer_Encoding: chunked",
  "Content-Length: 0",
  "Content-Length : 0"
]

/**
 * Requests that hide a deposit from a reader of the length behind that of the chunks (CL.TE), and
 * the other way (TE.CL). Each is whole for both readers.
 */
const smuggling = (path: string): ReadonlyArray<string> => {
  const first = (...fields: ReadonlyArray<string>) =>
    head(`POST ${path} HTTP/1.1`, "Host: a", "Content-Type: application/xml", ...fields)
  return codings.flatMap((coding, at) =>
    ([["length", "chunks"], ["chunks", "length"]] as const).flatMap((order) => {
      const body = notification(`smuggled-${at}-${order[0]}`)
      const hidden = first(`Content-Length: ${body.length}`) + body
      const size = `${hidden.length.toString(16)}\r\n`
      const ofChunks = `0\r\n\r\n${hidden}`
      const ofLength = `${size}${hidden}\r\n0\r\n\r\n`
      const fields = (bytes: number) =>
        order.map((field) => field === "chunks" ? coding : `Content-Length: ${bytes}`)
      return [
        first(...fields(ofChunks.length)) + ofChunks,
        first(...fields(size.length)) + ofLength
      ]
    })
  )
}
