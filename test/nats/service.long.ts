/**
 * The built binary over NATS: one node that keeps everything through a restart; and three that
 * start at once, answer each for all, and stop or are killed under load.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import {
  asAdmin,
  basic,
  childOf,
  expectStatus,
  listMailbox,
  type Mailbox,
  notification,
  openMailbox,
  parseXml,
  postXml,
  send
} from "../e2e/client.ts"
import { closedPort } from "../e2e/faults.ts"
import { History } from "../e2e/history.ts"
import {
  cleanUp,
  eventually,
  launch,
  pause,
  type Service,
  start,
  temporaryFolder
} from "../e2e/process.ts"
import { type NatsServer, startServer } from "./servers.ts"

/** So long the nodes that are left may take to serve what a killed one had. */
const takenOverWithinMs = 30_000
const shownWithinMs = 15_000
const testMs = 120_000

const servers: Array<NatsServer> = []
const natsServer = async (): Promise<NatsServer> => {
  const server = await startServer()
  servers.push(server)
  return server
}
afterAll(async () => {
  cleanUp()
  await Promise.all(servers.map((server) => server.close()))
})

describe("one node", () => {
  it("does it all, and keeps it through a restart", async () => {
    const nats = await natsServer()
    const port = String(await closedPort())
    const base = `http://127.0.0.1:${port}`
    const dataDir = temporaryFolder()
    const env = {
      NATS_URL: nats.url,
      PORT: port,
      BASE_URL: base,
      OUTBOUND_ALLOW: "127.0.0.0/8",
      RETRY_SCHEDULE: "0s,200ms,200ms"
    }
    const first = await start({ dataDir, env })
    const name = readFileSync(join(dataDir, "node-id"), "utf8").trim()
    expect(first.output).toContain(`node ${name} of the cluster on NATS at ${nats.url}`)
    const history = new History()
    // The history asks at paths: the URIs given out begin with where the service listens.
    const made = expectStatus(
      await postXml(base, "/mailboxes", "<mailbox><name>own</name></mailbox>", asAdmin),
      201
    )
    const uri = made.headers.get("location") ?? ""
    const document = notification("to-own").replace("<item>", `<to>${uri}</to><item>`)
    const queued = expectStatus(await postXml(base, "/outgoing/admin", document, asAdmin), 202)
    const sent = await eventually(shownWithinMs, "it is sent", async () => {
      const location = queued.headers.get("location") ?? ""
      const shown = parseXml(expectStatus(await send("", location, { headers: asAdmin }), 200).text)
      return shown.attributes["status"] === "waiting" ? undefined : shown
    })
    expect(childOf(sent, "recipient").attributes).toMatchObject({ status: "success" })
    expect((await first.stop()).code).toBe(0)

    // From here on URIs begin as the history expects.
    const second = await start({ dataDir, env: { NATS_URL: nats.url } })
    const box = await history.open(second.url, "alice")
    if (box === undefined) throw new Error("no mailbox was made")
    for (let n = 0; n < 20; n += 1) await history.deposit(second.url, box, `n${n}`)
    await history.remove(second.url, box)
    const small = await history.publish(second.url, Buffer.from("small"))
    await history.publish(second.url, Buffer.alloc(300_000, "large"))
    if (small !== undefined) await history.overwrite(second.url, small, Buffer.from("other"))
    const session = await history.begin(second.url)
    if (session === undefined) throw new Error("no session was begun")
    await history.answer(second.url, session, "name", "Galahad")
    await history.once(second.url, "/mailboxes", "<mailbox><name>once</name></mailbox>", "once")
    expect((await second.stop()).code).toBe(0)

    const third = await start({ dataDir, env: { NATS_URL: nats.url } })
    expect(readFileSync(join(dataDir, "node-id"), "utf8").trim()).toBe(name)
    await history.verifyBox(third.url, box)
    for (const content of history.contents) await history.verifyContent(third.url, content)
    await history.verifySession(third.url, session)
    const [once] = history.keyed
    const again = await postXml(third.url, once?.path ?? "", once?.body ?? "", once?.headers)
    expect(again.text).toBe(once?.answer?.text)
    const own = await send(third.url, "/mailboxes/own", { headers: asAdmin })
    expect(expectStatus(own, 200).text).toContain("to-own")
    expectStatus(await send(third.url, "/readyz"), 200)
    await third.stop()
  }, testMs)

  it("says what keeps it from starting", async () => {
    const nats = await natsServer()
    const NATS_URL = nats.url
    const four = await start({ env: { NATS_URL, NODE_ID: "four" } })
    expect(four.output).toContain("node four of the cluster")
    await four.stop()
    const two = launch({ env: { NATS_URL, CLUSTER_BUCKETS: "2" } })
    expect((await two.end()).code).toBe(75)
    expect(two.output).toContain("4 buckets")
    expect(two.output).toContain("CLUSTER_BUCKETS")
    await nats.stop()
    const alone = launch({ env: { NATS_URL } })
    expect((await alone.end()).code).toBe(75)
    expect(alone.output).toContain(`NATS at ${NATS_URL} cannot be used`)
    expect(alone.output).not.toMatch(/ at .*:\d+:\d+/)
  }, testMs)
})

describe("three nodes", () => {
  let nodes: Array<Service> = []
  let nats: NatsServer
  const history = new History()

  const launchNode = (name: string): Service =>
    launch({ env: { NATS_URL: nats.url, NODE_ID: name, DRAIN_TIMEOUT: "15s" } })

  /** Any of those that run. */
  const anyUrl = (): string => {
    const node = nodes[Math.floor(Math.random() * nodes.length)]
    if (node === undefined) throw new Error("no node runs")
    return node.url
  }

  const urlOf = (at: number): string => nodes[at]?.url ?? ""

  beforeAll(async () => {
    nats = await natsServer()
    nodes = ["a", "b", "c"].map(launchNode)
    await Promise.all(nodes.map((node) => node.ready()))
  }, testMs)

  it("have one secret, although they started at once", async () => {
    const body = "<mailbox><name>keyed</name></mailbox>"
    const headers = { ...asAdmin, "idempotency-key": "\"at once\"" }
    const answers: Array<string> = []
    for (const { url } of nodes) {
      answers.push(expectStatus(await postXml(url, "/mailboxes", body, headers), 201).text)
    }
    expect(new Set(answers).size).toBe(1)
  })

  it("answer each for all: what one took, another shows at once", async () => {
    const mailbox = await openMailbox(anyUrl(), "shared")
    for (let n = 0; n < 30; n += 1) {
      const deposit = await postXml(anyUrl(), mailbox.path, notification(`s${n}`))
      expectStatus(deposit, 202)
      const listed = await listMailbox(anyUrl(), mailbox)
      expect(listed.at(-1)?.description).toBe(`s${n}`)
    }
    const content = await history.publish(urlOf(0), Buffer.alloc(200_000, "bytes"))
    if (content === undefined) throw new Error("nothing was published")
    await history.verifyContent(urlOf(1), content)
    const session = await history.begin(urlOf(0))
    if (session === undefined) throw new Error("no session was begun")
    expect(await history.answer(urlOf(1), session, "name", "Galahad")).toBe(true)
    await history.verifySession(urlOf(2), session)
  }, testMs)

  it("wake a long poll and feed a stream at another node", async () => {
    const mailbox = await openMailbox(anyUrl(), "followed")
    const headers = { authorization: basic("reader", mailbox.password) }
    const since = timeOf(await send(urlOf(1), mailbox.path, { headers }))
    const poll = send(urlOf(1), `${mailbox.path}?since=${encodeURIComponent(since)}`, {
      headers: { ...headers, prefer: "wait=15" }
    })
    const ending = new AbortController()
    const streamed = await fetch(urlOf(2) + mailbox.path, {
      headers: { ...headers, accept: "text/event-stream" },
      signal: ending.signal
    })
    expectStatus(await postXml(urlOf(0), mailbox.path, notification("followed-1")), 202)
    expect(expectStatus(await poll, 200).text).toContain("followed-1")
    let seen = ""
    for await (const part of streamed.body ?? []) {
      seen += Buffer.from(part).toString()
      if (seen.includes("followed-1")) break
    }
    ending.abort()
    expect(seen).toContain("followed-1")
  }, testMs)

  /** Deposits at whichever node runs, until told to end; what was acknowledged, and refusals. */
  const depositing = (mailboxes: ReadonlyArray<Mailbox>, prefix: string) => {
    const ending = new AbortController()
    const accepted = new Map<Mailbox, Set<string>>(mailboxes.map((one) => [one, new Set()]))
    const failures: Array<string> = []
    const clients = mailboxes.map(async (mailbox, at) => {
      for (let n = 0; !ending.signal.aborted; n += 1) {
        const text = `${prefix}${at}n${n}`
        const answer = await postXml(anyUrl(), mailbox.path, notification(text)).catch(() =>
          undefined
        )
        if (answer?.status === 202) accepted.get(mailbox)?.add(text)
        else if (answer !== undefined) failures.push(`${answer.status}: ${answer.text}`)
        await pause(5)
      }
    })
    const end = async () => {
      ending.abort()
      await Promise.all(clients)
    }
    return { accepted, failures, end }
  }

  const expectAll = async (accepted: ReadonlyMap<Mailbox, ReadonlySet<string>>) => {
    for (const [mailbox, texts] of accepted) {
      const listed = (await listMailbox(anyUrl(), mailbox)).map(({ description }) => description)
      const twice = listed.filter((text, n) => listed.indexOf(text) !== n)
      expect(twice, "what is there twice").toEqual([])
      const there = new Set(listed)
      expect([...texts].filter((text) => !there.has(text))).toEqual([])
      expect(texts.size).toBeGreaterThan(0)
    }
  }

  const openMany = (prefix: string): Promise<ReadonlyArray<Mailbox>> =>
    Promise.all(Array.from({ length: 6 }, (_, at) => openMailbox(anyUrl(), `${prefix}${at}`)))

  it("lose one to SIGTERM under deposits, and fail none", async () => {
    const load = depositing(await openMany("term"), "t")
    await pause(1_000)
    const leaving = nodes[1]
    if (leaving === undefined) throw new Error("no node runs")
    // It is asked until it does not listen any more.
    const gone = await leaving.stop()
    nodes = nodes.filter((node) => node !== leaving)
    await pause(1_000)
    await load.end()
    expect(gone).toEqual({ code: 0, signal: null })
    expect(load.failures).toEqual([])
    await expectAll(load.accepted)
  }, testMs)

  it("lose one to kill -9, and serve all again with nothing lost", async () => {
    nodes.push(await launchNode("b").ready())
    const mailboxes = await openMany("kill")
    const load = depositing(mailboxes, "k")
    await pause(1_500)
    const killed = nodes.shift()
    await killed?.kill()
    let round = 0
    await eventually(takenOverWithinMs, "every mailbox takes and shows", async () => {
      round += 1
      const asked = await Promise.all(
        nodes.flatMap(({ pid, url }) =>
          mailboxes.map(async (mailbox) => {
            const text = `again${round}by${pid}`
            const deposit = await postXml(url, mailbox.path, notification(text))
            const headers = { authorization: basic("reader", mailbox.password) }
            const listing = await send(url, mailbox.path, { headers })
            return deposit.status === 202 && listing.status === 200
          }).map((one) => one.catch(() => false))
        )
      )
      return asked.every(Boolean) ? true : undefined
    }, 200)
    await load.end()
    await expectAll(load.accepted)
    await history.verifyContent(anyUrl(), history.contents[0] ?? never())
  }, testMs)
})

const never = (): never => {
  throw new Error("nothing was published")
}

/** The time that a listing tells, which the next poll sends. */
const timeOf = (listing: { readonly status: number; readonly text: string }): string => {
  const time = parseXml(listing.text).attributes["time"]
  if (time === undefined) throw new Error(`no time in a ${listing.status}: ${listing.text}`)
  return time
}
