/** nginx, HAProxy and Caddy with TLS before a service, configured as docs/how-to/proxy.md says. */
import { spawnSync } from "node:child_process"
import { createHash, randomBytes } from "node:crypto"
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import type { IncomingHttpHeaders, IncomingMessage } from "node:http"
import { Agent, request, type RequestOptions } from "node:https"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { asAdmin, basic, notification } from "../e2e/client.ts"
import { cleanUp, eventually, pause, type Service, start, temporaryFolder } from "../e2e/process.ts"
import { freePorts } from "../runtime/nats/servers.ts"
import { fileOf, metricsSpellings, type Proxy, startProxy } from "./proxies.ts"

const base = "https://post.example.org"
const readyWithinMs = 120_000
/** Longer than the service keeps an idle connection. */
const idleMs = 12_000
const longPollSeconds = 60
const uploadBytes = 100 * 1024 * 1024
/** The address that sends wrong tokens; the proxy itself is at 127.0.0.1. */
const guesser = "127.0.0.2"
const neighbor = "127.0.0.3"
const guessesMax = 40

afterAll(cleanUp)

interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly bytes: Buffer
}

describe.each(["nginx", "haproxy", "caddy"] as const)("%s", (name) => {
  let service: Service
  let proxy: Proxy
  let port = 0
  const agent = new Agent({ keepAlive: true })

  const ask = (path: string, options: RequestOptions = {}, body?: Buffer | string) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const asked = request({
        ...{ host: "127.0.0.1", port, path, agent, method: body === undefined ? "GET" : "POST" },
        ...{ servername: "post.example.org", rejectUnauthorized: false, ...options },
        headers: { host: `post.example.org:${port}`, ...options.headers }
      }, resolve)
      asked.on("error", reject).end(body)
    })

  const whole = async (
    path: string,
    options: RequestOptions = {},
    body?: Buffer | string
  ): Promise<Answer> => {
    const answer = await ask(path, options, body)
    const chunks: Array<Buffer> = []
    // A response without an encoding reads as buffers.
    for await (const chunk of answer) chunks.push(chunk as Buffer)
    const { headers, statusCode: status = 0 } = answer
    return { status, headers, bytes: Buffer.concat(chunks) }
  }

  const pathOf = ({ headers }: Answer): string => String(headers.location).slice(base.length)
  const xml = { "content-type": "application/xml" }
  const deposit = (mailbox: string, text: string) =>
    whole(mailbox, { headers: xml }, notification(text))
  const open = async (slug: string): Promise<{ path: string; shared: string }> => {
    const made = await whole("/mailboxes", { headers: { ...asAdmin, slug } }, "")
    expect(made.status).toBe(201)
    const [, shared = ""] = /<shared href="([^"]*)"/.exec(made.bytes.toString()) ?? []
    expect(shared).toContain(base)
    return { path: pathOf(made), shared: shared.slice(base.length) }
  }

  /** Everything that the proxy has written. */
  const logs = (): string =>
    readdirSync(proxy.folder).filter((file) => file.endsWith(".log"))
      .map((file) => readFileSync(join(proxy.folder, file), "utf8"))
      .join("") + proxy.running.output

  beforeAll(async () => {
    const lines = fileOf("restante.env").trim().split("\n")
    const env = Object.fromEntries(lines.map((line) => line.split("=")))
    service = await start({ env })
    const [tls = 0, plain = 0] = await freePorts(2)
    port = tls
    proxy = startProxy(name, { service: service.port, tls, plain })
    await eventually(readyWithinMs, "the proxy passes requests on", async () => {
      if (proxy.running.isOver) throw new Error(proxy.running.output)
      const answer = await whole("/readyz").catch(() => undefined)
      return answer?.status === 200 ? true : undefined
    })
  })

  afterAll(async () => {
    agent.destroy()
    await proxy.running.stop()
    if (!service.isOver) await service.stop()
  })

  it("passes on URIs, problems and secrets in paths, but not /metrics", async () => {
    const { shared } = await open("secret")
    const read = await whole(shared)
    expect(read.status).toBe(200)
    expect(read.bytes.toString()).toContain(`href="${base}/mailboxes/secret`)
    expect(read.headers["strict-transport-security"]).toBe("max-age=31536000")
    expect((await whole(shared.replace("~", "%7E"))).status).toBe(200)
    expect((await whole("/mailboxes/nobody")).headers["content-type"]).toMatch("problem+xml")
    expect((await whole("/metrics")).status).toBe(404)
    expect((await whole("/%6detrics")).status).toBe(404)
    const [, secret = ""] = shared.split("~")
    expect(secret.length).toBeGreaterThan(20)
    await expect.poll(logs).toContain("/mailboxes/secret")
    for (const hidden of [secret, asAdmin.authorization]) expect(logs()).not.toContain(hidden)
  })

  it("keeps the metrics inside, whatever the way to write their path", async () => {
    for (const path of metricsSpellings) {
      const { bytes, status } = await whole(path, { headers: asAdmin })
      const isShown = bytes.toString().includes("restante_http")
      expect([path, status >= 400, isShown]).toEqual([path, true, false])
    }
    const own = await fetch(`${service.url}/metrics`, { headers: asAdmin })
    expect(await own.text()).toContain("restante_http")
  })

  it("tells a live stream each event at once", async () => {
    const { path } = await open("live")
    const stream = await ask(path, { headers: { ...asAdmin, accept: "text/event-stream" } })
    let reported = ""
    stream.setEncoding("utf8").on("data", (text: string) => reported += text).on("error", () => {})
    for (const text of ["one", "two", "three"]) {
      expect((await deposit(path, text)).status).toBe(202)
      await expect.poll(() => reported, { timeout: 60_000 }).toContain(`<description>${text}</`)
    }
    stream.destroy()
  })

  it("takes and gives 100 MiB without keeping them", async () => {
    const content = randomBytes(uploadBytes)
    const headers = { "content-type": "application/octet-stream" }
    const published = await whole("/content", { headers }, content)
    // If the machine is too busy, the problem says which limit it was.
    const problem = published.status === 202 ? "" : published.bytes.toString()
    expect([published.status, problem]).toEqual([202, ""])
    const { bytes } = await whole(pathOf(published))
    const sum = (data: Buffer) => createHash("sha256").update(data).digest("hex")
    expect(sum(bytes)).toBe(sum(content))
    const files = readdirSync(proxy.folder, { recursive: true, encoding: "utf8" })
    const large = files.filter((file) => statSync(join(proxy.folder, file)).size > 1_000_000)
    expect(large).toEqual([])
    expect(logs()).not.toContain("buffered to a temporary file")
  })

  it("says whose wrong tokens they are, whatever they say themselves", async () => {
    const guess = (localAddress: string, token: string) =>
      whole("/accounts/admin", {
        localAddress,
        agent: false,
        headers: {
          authorization: basic("admin", token),
          "x-forwarded-for": `10.0.0.${token.length}, 192.0.2.${token.slice(5)}`
        }
      })
    const statuses: Array<number> = []
    for (let n = 0; n < guessesMax; n++) statuses.push((await guess(guesser, `guess${n}`)).status)
    expect(statuses[0]).toBe(401)
    expect(statuses.at(-1)).toBe(429)
    expect((await guess(neighbor, "guess1")).status).toBe(401)
  })

  it("allows a long poll of a minute, and idle connections", async () => {
    const { path } = await open("silent")
    const headers = { ...asAdmin, prefer: `wait=${longPollSeconds}` }
    const poll = whole(path, { headers })
    await pause(idleMs)
    // On a connection that was idle for longer than the service keeps one.
    for (const slug of ["after-1", "after-2"]) await open(slug)
    const answer = await poll
    expect(answer.status).toBe(200)
    expect(answer.headers["preference-applied"]).toBe(`wait=${longPollSeconds}`)
  })

  it("keeps secrets out of its logs when the service is away, too", async () => {
    await service.stop()
    const answer = await whole("/mailboxes/away~a-secret-of-somebody", { headers: asAdmin })
    expect(answer.status).toBe(name === "haproxy" ? 503 : 502)
    await expect.poll(logs).toContain("/mailboxes/away")
    for (const hidden of ["a-secret-of-somebody", asAdmin.authorization]) {
      expect(logs()).not.toContain(hidden)
    }
  })
})

it("is a Caddyfile for a cluster too, with the lines that the page replaces", () => {
  const [before = "", after = ""] = fileOf("Caddyfile").split(/\t@inside[^]*?\n\t}\n/)
  expect(after).toContain("log")
  const folder = temporaryFolder()
  const file = join(folder, "Caddyfile")
  writeFileSync(file, before + fileOf("Caddyfile.cluster") + after)
  const adapted = spawnSync("caddy", ["adapt", "--adapter", "caddyfile", "--config", file], {
    encoding: "utf8",
    env: { PATH: process.env["PATH"], HOME: folder }
  })
  expect(adapted.status, adapted.stderr).toBe(0)
  const routes = adapted.stdout
  const inside = routes.indexOf("\"path\":[\"/metrics\"]")
  expect(inside).toBeGreaterThan(0)
  expect(routes.indexOf("\"dial\":\"node-1:8080\"")).toBeGreaterThan(inside)
})
