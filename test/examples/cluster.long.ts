/**
 * The examples on three nodes and three NATS servers. In each test one node, a process of its own
 * with the package `@restante/runtime`, is killed while its actors work.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { fileURLToPath } from "node:url"
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest"
import { chatRoom } from "../../examples/chat-room/index.ts"
import { deviceTwin } from "../../examples/device-twin/index.ts"
import { leaderboard } from "../../examples/leaderboard/index.ts"
import { type ActorNode, ActorUnavailable, OutcomeUnknown, startNode } from "../../runtime/main.ts"
import { nats } from "../../runtime/nats/main.ts"
import { startCluster } from "../runtime/nats/servers.ts"
import { exampleActors, limiter, rate } from "./actors.ts"

const processFile = fileURLToPath(new URL("../../dist/test/examples/process.js", import.meta.url))

/** So many that some are on each node. */
const ids = Array.from({ length: 24 }, (_, at) => `id-${at}`)

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** The other services: a step of an order is done once for each key. */
class Outside {
  readonly done: Array<string> = []
  readonly runs: Array<string> = []
  private readonly keys = new Set<string>()
  private readonly server: Server = createServer((request, response) => {
    let body = ""
    request.setEncoding("utf8").on("data", (text: string) => void (body += text))
    request.on("end", () => {
      this.take((request.url ?? "").slice(1), body)
      response.end("true")
    })
  })

  private take(path: string, body: string): void {
    if (path === "run") return void this.runs.push(body)
    const { cart, key } = JSON.parse(body)
    if (!this.keys.has(key)) this.done.push(`${path} ${cart}`)
    this.keys.add(key)
  }

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.server.listen(0, "127.0.0.1", resolve))
    // A server that listens on a port has an address with it.
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`
  }

  stop(): void {
    this.server.close()
    this.server.closeAllConnections()
  }
}

const outside = new Outside()
let servers: Awaited<ReturnType<typeof startCluster>>
let actors: ReturnType<typeof exampleActors>
let nodes: ReadonlyArray<ActorNode> = []
let third: ChildProcess | undefined
let url = ""

beforeAll(async () => {
  servers = await startCluster()
  url = await outside.start()
  actors = exampleActors(url)
  const start = (node: string) =>
    startNode({ actors: actors.all, store: nats(servers.urls, { node }) })
  nodes = await Promise.all(["first", "second"].map(start))
})

afterAll(async () => {
  await Promise.all(nodes.map((node) => node.stop()))
  outside.stop()
  await servers.close()
})

const ownersNow = () => new Set(nodes[0]?.system.cluster().owners)

beforeEach(async () => {
  third = spawn(process.execPath, [processFile, "third", url, ...servers.urls], {
    stdio: ["ignore", "ignore", "inherit"]
  })
  await expect.poll(ownersNow).toEqual(new Set(["first", "second", "third"]))
})

afterEach(() => killThird())

const killThird = async (): Promise<void> => {
  const killed = third
  third = undefined
  if (killed === undefined) return
  expect(killed.exitCode).toBeNull()
  const gone = new Promise((resolve) => killed.once("exit", resolve))
  killed.kill("SIGKILL")
  await gone
}

/** Asks by the first and the second node in turn, until there is an answer. */
const asking = () => {
  let turn = 0
  return async <A>(ask: (node: ActorNode) => Promise<A>): Promise<A> => {
    for (;;) {
      const node = nodes[turn++ % nodes.length]
      if (node === undefined) throw new Error("no node runs")
      try {
        return await ask(node)
      } catch (error) {
        const isPassing = error instanceof ActorUnavailable || error instanceof OutcomeUnknown
        if (!isPassing) throw error
        await wait(100)
      }
    }
  }
}

/** Does something for all ids, kills the third node meanwhile, and does the rest. */
const forAll = async <A>(
  before: (id: string) => Promise<unknown>,
  rest: (id: string) => Promise<A>
): Promise<ReadonlyArray<A>> => {
  await Promise.all(ids.map(before))
  const [results] = await Promise.all([Promise.all(ids.map(rest)), killThird()])
  return results
}

it("a rate limiter gives no more permits than its limit", async () => {
  const ask = asking()
  const take = (id: string) => ask((node) => node.ask(limiter(id), { _tag: "Take" }))
  const given = new Map<string, number>()
  const count = async (id: string) => {
    const { isGiven } = await take(id)
    if (isGiven) given.set(id, (given.get(id) ?? 0) + 1)
    return isGiven
  }
  await forAll(count, async (id) => {
    while (await count(id));
  })
  for (const id of ids) expect(given.get(id) ?? 0).toBeLessThanOrEqual(rate.limit)
  // A permit is lost with its answer; most answers came.
  expect([...given.values()].filter((count) => count === rate.limit)).not.toEqual([])
})

it("a shopping cart is charged and shipped once", async () => {
  const ask = asking()
  const put = { _tag: "Put", sku: "tea", count: 2, cents: 350 } as const
  const { carts } = actors
  await forAll(
    (id) => ask((node) => node.ask(carts(id), put)),
    (id) => ask((node) => node.ask(carts(id), { _tag: "Order" }))
  )
  for (const id of ids) {
    await expect.poll(() => ask((node) => node.ask(carts(id), { _tag: "Look" }))).toBe("shipped")
  }
  const steps = ids.flatMap((id) => [`charge ${id}`, `reserve ${id}`, `ship ${id}`])
  expect(outside.done.toSorted()).toEqual(steps.toSorted())
})

it("a chat room shows who is present, and has each text once", async () => {
  const ask = asking()
  const name = "ann"
  const enter = (id: string) => ask((node) => node.ask(chatRoom(id), { _tag: "Enter", name }))
  const say = { _tag: "Say", name, text: "Tea?", key: "key-1" } as const
  const said = await forAll(enter, async (id) => {
    // The takeover may have lasted longer than the room waits for a sign of life.
    await enter(id)
    return ask((node) => node.ask(chatRoom(id), say))
  })
  expect(said).toEqual(ids.map(() => 1))
  for (const id of ids) {
    const texts: Array<string> = []
    await ask((node) => node.ask(chatRoom(id), say))
    for await (const { item } of nodes[0]?.log(chatRoom(id), { follow: false }) ?? []) {
      texts.push(item.text)
    }
    expect(texts).toEqual(["Tea?"])
    await enter(id)
    expect(await ask((node) => node.ask(chatRoom(id), { _tag: "Who" }))).toEqual([name])
    await ask((node) => node.ask(chatRoom(id), { _tag: "Leave", name }))
    expect(await ask((node) => node.ask(chatRoom(id), { _tag: "Who" }))).toEqual([])
  }
})

it("a job has all of its ticks, and runs none twice", async () => {
  const ask = asking()
  const { jobs } = actors
  const everyMs = 1_000
  const start = { _tag: "Start", everyMs, missed: "all" } as const
  const started = await forAll(
    (id) => ask((node) => node.ask(jobs(id), start)),
    (id) => ask((node) => node.ask(jobs(id), { _tag: "Look" }))
  )
  for (const [at, id] of ids.entries()) {
    const firstMs = (started[at]?.startedMs ?? 0) + everyMs
    const due: Array<number> = []
    for await (const { item } of nodes[0]?.log(jobs(id)) ?? []) {
      if (due.push(item.dueMs) === 5) break
    }
    expect(due).toEqual([0, 1, 2, 3, 4].map((tick) => firstMs + tick * everyMs))
  }
  await Promise.all(ids.map((id) => ask((node) => node.ask(jobs(id), { _tag: "Stop" }))))
  expect(outside.runs.length).toBeGreaterThan(2 * ids.length)
  expect(new Set(outside.runs).size).toBe(outside.runs.length)
})

it("a device twin loses no change, and comes in sync", async () => {
  const ask = asking()
  const settings = { brightness: 40 }
  const desire = { _tag: "Desire", settings, ifVersion: 0 } as const
  const report = { _tag: "Report", settings, version: 1, sequence: 1 } as const
  const versioned = { version: 1, settings }
  const reported = await forAll(
    (id) => ask((node) => node.ask(deviceTwin(id), desire)),
    (id) => ask((node) => node.ask(deviceTwin(id), report))
  )
  const inSync = { desired: versioned, reported: versioned, isInSync: true }
  expect(reported).toEqual(ids.map(() => inSync))
  const again = await Promise.all(ids.map((id) => ask((node) => node.ask(deviceTwin(id), desire))))
  expect(again).toEqual(ids.map(() => expect.objectContaining({ reason: "Changed" })))
})

it("a leaderboard counts each score once", async () => {
  const ask = asking()
  const scoreOf = (id: string, key: string) =>
    ask((node) => node.ask(leaderboard(id), { _tag: "Score", player: "ann", points: 2, key }))
  await forAll((id) => scoreOf(id, "first"), (id) => scoreOf(id, "second"))
  for (const id of ids) {
    await scoreOf(id, "first")
    const top = await ask((node) => node.ask(leaderboard(id), { _tag: "Top", count: 3 }))
    expect(top).toEqual({ total: 4, best: [{ player: "ann", points: 4 }] })
  }
})
