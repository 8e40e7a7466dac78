/**
 * Runs compose.yaml as processes with its settings: three NATS servers with nats.conf, three nodes,
 * the load balancer. Only ports and folders differ.
 */
import { afterAll, beforeAll, expect, it } from "vitest"
import { basic, expectStatus, listMailbox, type Mailbox, mailboxOf, notification, postXml,
  send } from "../e2e/client.ts"
import { cleanUp, eventually, keyFile, launch, publicUrl, Running, type Service,
  temporaryFolder } from "../e2e/process.ts"
import { stream } from "../http/streams.ts"
import { freePorts, serverBinary } from "../runtime/nats/servers.ts"
import { balancerConfiguration, natsConfiguration } from "./servers.ts"
import { compose, listAt, wordAt } from "./sources.ts"
import { toolOf } from "./tools.ts"

const readyWithinMs = 120_000
/** The binary's exit code when NATS cannot be used. */
const notNow = 75
const adminToken = "compose-admin-token-0123456789"
const secretKey = Buffer.alloc(32, "compose").toString("base64")
const names = compose({ ADMIN_TOKEN: "?", NATS_PASSWORD: "?", ROUTE_PASSWORD: "?" })
const serverNames = names.names("nats-")
const nodeNames = names.names("restante-")

/** Host and port in compose.yaml, and their replacement here. */
const places = new Map<string, number>()
const placed = (text: string): string =>
  text.replace(/(nats-\d):(\d+)/g, (whole) => `127.0.0.1:${places.get(whole)}`)

const servers = new Map<string, Running>()
const nodes = new Map<string, Service>()
let balancer: Running
let base: string

const admin = { authorization: basic("admin", adminToken) }

const startServers = (cluster: ReturnType<typeof compose>, monitors: ReadonlyArray<number>) => {
  for (const [index, name] of serverNames.entries()) {
    const [client = 0, routes = 0] = [places.get(`${name}:4222`), places.get(`${name}:6222`)]
    const monitor = monitors[index] ?? 0
    const file = natsConfiguration(temporaryFolder(), { client, routes, monitor })
    const environment = Object.fromEntries(
      Object.entries(cluster.environmentOf(name)).map(([key, value]) => [key, placed(value)])
    )
    servers.set(name, new Running(serverBinary(), ["-c", file], environment))
  }
}

/** The request of the containers' health check. */
const healthy = async (name: string, port: number): Promise<true | undefined> => {
  const server = servers.get(name)
  if (server?.isOver === true) throw new Error(server.output)
  const test = listAt(names.services, name, "healthcheck", "test").map(String)
  const url = test.at(-1)?.replace(":8222", `:${port}`) ?? ""
  return fetch(url).then((response) => response.ok ? true : undefined, () => undefined)
}

const environments = new Map<string, Readonly<Record<string, string>>>()

/** Starts a node, and restarts it while NATS is unavailable, like `restart: unless-stopped`. */
const serves = async (name: string): Promise<Service> => {
  expect(wordAt(names.services, name, "restart")).toBe("unless-stopped")
  for (;;) {
    const node = launch({ env: environments.get(name) ?? {} })
    nodes.set(name, node)
    const isReady = await node.ready().then(() => true, async (error: unknown) => {
      if (!node.isOver || (await node.end()).code !== notNow) throw error
      return false
    })
    if (isReady) return node
  }
}

beforeAll(async () => {
  const ports = await freePorts(serverNames.length * 3 + nodeNames.length + 1)
  const take = () => {
    const [port = 0] = ports.slice(places.size)
    return port
  }
  for (const name of serverNames) {
    for (const port of [4222, 6222, 8222]) places.set(`${name}:${port}`, take())
  }
  for (const name of nodeNames) places.set(name, take())
  places.set("balancer", take())
  base = `http://127.0.0.1:${places.get("balancer")}`
  const cluster = compose({
    ADMIN_TOKEN: adminToken,
    NATS_PASSWORD: "12e4#of-nodes",
    ROUTE_PASSWORD: "34routes",
    BASE_URL: publicUrl
  })
  const monitors = serverNames.map((name) => places.get(`${name}:8222`) ?? 0)
  startServers(cluster, monitors)
  for (const [index, name] of serverNames.entries()) {
    const port = monitors[index] ?? 0
    await eventually(readyWithinMs, `${name} is healthy`, () => healthy(name, port))
  }
  for (const name of nodeNames) {
    const environment = cluster.environmentOf(name)
    environments.set(name, {
      ...environment,
      NATS_URL: placed(environment["NATS_URL"] ?? ""),
      SECRET_KEY_FILE: keyFile(secretKey),
      PORT: String(places.get(name))
    })
  }
  const ofNodes = Object.fromEntries(nodeNames.map((name) => [name, places.get(name) ?? 0]))
  const file = balancerConfiguration(temporaryFolder(), places.get("balancer") ?? 0, ofNodes)
  balancer = new Running(toolOf("haproxy"), ["-db", "-f", file], {})
  await Promise.all(nodeNames.map((name) => serves(name)))
  await eventually(readyWithinMs, "the balancer has a node", async () => {
    if (balancer.isOver) throw new Error(balancer.output)
    return (await send(base, "/readyz")).status === 200 ? true : undefined
  })
})

afterAll(cleanUp)

const open = async (name: string): Promise<Mailbox> => {
  const document = `<mailbox><name>${name}</name></mailbox>`
  return mailboxOf(expectStatus(await postXml(base, "/mailboxes", document, admin), 201))
}

/** URLs of the nodes that still run, and of the load balancer. */
const left = (): ReadonlyArray<string> => [
  ...[...nodes.values()].filter((node) => !node.isOver).map(({ url }) => url),
  base
]

const described = async (at: string, mailbox: Mailbox): Promise<ReadonlyArray<string>> =>
  (await listMailbox(at, mailbox)).map(({ description }) => description).sort()

it("serves at every node, and through the load balancer, what any accepted", async () => {
  const mailbox = await open("everywhere")
  const urls = left()
  const sent: Array<string> = []
  for (const [index, url] of urls.entries()) {
    expectStatus(await postXml(url, mailbox.path, notification(`from-${index}`)), 202)
    sent.push(`from-${index}`)
    for (const other of urls) expect(await described(other, mailbox)).toEqual(sent)
  }
})

it("keeps secrets of paths out of the load balancer's log", async () => {
  const { shared } = await open("secret")
  for (const path of [shared, shared.replace("~", "%7E")]) {
    expectStatus(await send(base, `${path}?of=somebody`), 200)
  }
  await expect.poll(() => balancer.output).toMatch(/GET \/mailboxes\/secret~ 200 [^]*secret~ 200/)
  const [, secret = ""] = shared.split("~")
  expect(secret.length).toBeGreaterThan(20)
  for (const hidden of [secret, "somebody"]) expect(balancer.output).not.toContain(hidden)
})

it("has a load balancer that keeps the metrics inside", async () => {
  for (const path of ["/metrics", "/%6detrics?a=b"]) {
    expectStatus(await send(base, path, { headers: admin }), 404)
  }
})

it("forwards live streams at once, and trusts no X-Forwarded headers", async () => {
  const mailbox = await open("live")
  const live = await stream(`${base}${mailbox.path}`, `reader:${mailbox.password}`)
  const next = live.next()
  const headers = { "x-forwarded-host": "evil.test", "x-forwarded-for": "203.0.113.9" }
  const answer = await postXml(base, mailbox.path, notification("live"), headers)
  expect(expectStatus(answer, 202).headers.get("location")).toContain(
    `${publicUrl}${mailbox.path}/`
  )
  expect((await next)?.data).toContain("live")
  live.close()
})

/** Makes deposits one after the other until stopped; repeats a refused one where allowed. */
const sending = (mailbox: Mailbox, retried: ReadonlyArray<number> = []) => {
  const sent: Array<string> = []
  const ending = new AbortController()
  const all = (async () => {
    for (let number = 1000; !ending.signal.aborted;) {
      const answer = await postXml(base, mailbox.path, notification(`item-${number}`))
      if (retried.includes(answer.status)) continue
      expectStatus(answer, 202)
      sent.push(`item-${number}`)
      number += 1
    }
  })()
  // The error is reported to the caller that waits for more, or for the end.
  all.catch(() => ending.abort())
  const continues = async () => {
    const before = sent.length
    const more = eventually(
      readyWithinMs,
      "deposits continue",
      () => sent.length > before + 20 || ending.signal.aborted ? true : undefined
    )
    await Promise.race([more, all])
  }
  const ended = async () => {
    ending.abort()
    await all
    return sent
  }
  return { continues, ended }
}

it("stops a node gracefully, without a failed request", async () => {
  const mailbox = await open("leaving")
  const { continues, ended } = sending(mailbox)
  await continues()
  const [name = ""] = nodeNames
  const node = nodes.get(name)
  const stopped = node?.stop()
  const { url = "" } = node ?? {}
  const isDown = `Server nodes/${name} is DOWN`
  await eventually(
    readyWithinMs,
    "the balancer knows",
    () => balancer.output.includes(isDown) ? true : undefined
  )
  expectStatus(await postXml(url, mailbox.path, notification("item-last")), 202)
  expect(await stopped).toEqual({ code: 0, signal: null })
  await continues()
  const accepted = [...await ended(), "item-last"]
  for (const one of left()) expect(await described(one, mailbox)).toEqual(accepted)
})

it("stops a server by the signal of compose.yaml, and loses nothing", async () => {
  const mailbox = await open("served")
  // Writes wait while other servers become leaders of its streams.
  const { continues, ended } = sending(mailbox, [503])
  await continues()
  const [name = ""] = serverNames
  const signal = wordAt(names.services, name, "stop_signal")
  expect(signal).toBe("SIGUSR2")
  servers.get(name)?.child.kill("SIGUSR2")
  await servers.get(name)?.end()
  await continues()
  const accepted = await ended()
  for (const url of left()) expect(await described(url, mailbox)).toEqual(accepted)
})
