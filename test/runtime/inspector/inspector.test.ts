/** The inspector of a node: what it shows, now and in the past, and which requests it answers. */
import { Effect, Layer } from "effect"
import { request as httpRequest } from "node:http"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { InspectorStartFailed, type NodeWithInspector,
  startInspectedNode } from "../../../runtime/inspector/index.ts"
import { Storage, type StorageApi } from "../../../runtime/index.ts"
import { ActorFailed, memory, type Store } from "../../../runtime/main.ts"
import { at, listAt, textOf, wordAt } from "../../deploy/sources.ts"
import { startForDevelopment } from "./example.ts"
import { auction, closesAtMs, fragile } from "./inspected-actors.ts"

interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
  readonly text: string
}

/** `fetch` sends no Host of one's choice. */
const request = (
  url: string,
  { headers = {}, method = "GET" }: { readonly headers?: object; readonly method?: string } = {}
): Promise<Reply> =>
  new Promise((resolve, reject) => {
    const options = { method, headers: { ...headers }, agent: false }
    const sent = httpRequest(url, options, (response) => {
      const { headers, statusCode: status = 0 } = response
      let text = ""
      response.setEncoding("utf8").on("data", (part: string) => text += part)
        .on("end", () => resolve({ status, headers, text }))
    })
    sent.on("error", reject).end()
  })

/** A store that commits nothing until it is opened. */
const gated = (inner: Store): { readonly store: Store; readonly open: () => void } => {
  let open = () => {}
  const gate = new Promise<void>((resolve) => open = resolve)
  const waiting = Effect.map(Storage, (storage): StorageApi => ({
    ...storage,
    commit: (...commit) => Effect.andThen(Effect.promise(() => gate), storage.commit(...commit))
  }))
  const ports = Layer.provideMerge(Layer.effect(Storage, waiting), inner.ports)
  return { store: { ...inner, ports }, open: () => open() }
}

const store = memory()
let node: NodeWithInspector

const get = (path: string) => request(new URL(path, node.inspectorUrl).href)
const document = async (path: string): Promise<unknown> => {
  const { status, text } = await get(`/api${path}`)
  expect([path, status, text]).toEqual([path, 200, text])
  return JSON.parse(text)
}

const lamp = auction("lamp")

beforeAll(async () => {
  // What an earlier process has stored is not recorded.
  const before = await startInspectedNode({ actors: [auction], store }, { port: 0 })
  await before.ask(auction("old"), { _tag: "Bid", amount: 1, by: "ann" })
  await before.ask(auction("old"), { _tag: "Bid", amount: 2, by: "ben" })
  await before.stop()
  node = await startInspectedNode({ actors: [auction, fragile], store }, { port: 0 })
  await node.ask(lamp, { _tag: "Bid", amount: 5, by: "ann" })
  await node.ask(lamp, { _tag: "Bid", amount: 3, by: "<b>ben</b>" })
  await node.ask(lamp, { _tag: "Bid", amount: 7, by: "ben" })
  await expect(node.ask(fragile("cup"), { _tag: "Touch" })).rejects.toThrow(ActorFailed)
})

afterAll(() => node.stop())

describe("now, the inspector shows", () => {
  it("the actors by kind", async () => {
    const kinds = listAt(await document("/"), "kinds")
    expect(kinds).toContainEqual(
      { kind: "auction", inMemory: 1, waiting: 0, decisions: 3, refusals: 1, restarts: 0 }
    )
    expect(kinds.map((one) => at(one, "kind"))).toEqual(["auction", "fragile"])
    expect(await document("/actors/auction")).toEqual({ kind: "auction", ids: ["lamp", "old"] })
  })

  it("state, log and timer of an actor, and whether it is in memory", async () => {
    const actor = await document("/actors/auction/lamp")
    expect(JSON.parse(wordAt(actor, "state"))).toMatchObject({ _tag: "Open", best: 7, by: "ben" })
    expect(JSON.parse(wordAt(actor, "stateBefore"))).toMatchObject({ best: 5, by: "ann" })
    expect(at(actor, "timerMs")).toBe(closesAtMs)
    expect(at(actor, "inspection", "isLoaded")).toBe(true)
    expect(at(actor, "inspection", "queued")).toBe(0)
    expect(listAt(actor, "log").map((item) => [at(item, "n"), at(item, "value")])).toEqual([
      [1, "{\"by\":\"ann\",\"amount\":5}"],
      [2, "{\"by\":\"ben\",\"amount\":7}"]
    ])
    expect(listAt(actor, "log").every((item) => typeof at(item, "atMs") === "number")).toBe(true)
  })

  it("an actor that is not in memory, without loading it", async () => {
    const actor = await document("/actors/auction/old")
    expect(at(actor, "inspection", "isLoaded")).toBe(false)
    expect(JSON.parse(wordAt(actor, "state"))).toMatchObject({ best: 2 })
    expect(listAt(actor, "log").map((item) => at(item, "atMs"))).toEqual([undefined, undefined])
    expect(await document("/actors/auction/none")).toMatchObject({ state: null, head: 0, log: [] })
  })

  it("the last fault of an actor", async () => {
    const actor = await document("/actors/fragile/cup")
    expect(at(actor, "inspection", "restarts")).toBe(1)
    expect(wordAt(actor, "inspection", "fault")).toMatch(/^Error at /)
  })

  it("the messages with their outcomes, the newest first", async () => {
    const messages = listAt(await document("/messages"), "messages")
    expect(messages.map((one) => [at(one, "tag"), at(one, "outcome")])).toEqual([
      ["Touch", "failed"],
      ["Bid", "replied"],
      ["Bid", "refused"],
      ["Bid", "replied"]
    ])
    expect(messages[1]).toMatchObject({
      kind: "auction",
      id: "lamp",
      content: "{\"_tag\":\"Bid\",\"amount\":7,\"by\":\"ben\"}",
      isFromTimer: false,
      result: "7"
    })
    expect(messages.map((one) => at(one, "result"))).toEqual([
      "ActorDefect",
      "7",
      "TooLow: the best bid is 5",
      "5"
    ])
    const own = listAt(await document("/messages?kind=fragile"), "messages")
    expect(own.map((one) => at(one, "tag"))).toEqual(["Touch"])
  })
})

describe("while it happens, the inspector shows", () => {
  it("a message of a timer", async () => {
    await node.ask(auction("brief"), { _tag: "Bid", amount: 1, by: "ann" })
    await node.ask(auction("brief"), { _tag: "CloseAt", atMs: Date.now() })
    const newest = async () => {
      const [message] = listAt(await document("/actors/auction/brief"), "messages")
      return { tag: at(message, "tag"), outcome: at(message, "outcome") }
    }
    await expect.poll(newest).toEqual({ tag: "Due", outcome: "replied" })
    const [due, asked] = listAt(await document("/actors/auction/brief"), "messages")
    expect([at(due, "isFromTimer"), at(asked, "isFromTimer")]).toEqual([true, false])
    expect((await get("/actors/auction/brief")).text).toContain("by a timer")
  })

  it("the queue of an actor whose commit is on its way", async () => {
    const { open, store } = gated(memory())
    const gatedNode = await startInspectedNode({ actors: [auction], store }, { port: 0 })
    const asked = gatedNode.ask(lamp, { _tag: "Bid", amount: 1, by: "ann" })
    const shown = async (): Promise<unknown> =>
      JSON.parse((await request(`${gatedNode.inspectorUrl}api/actors/auction/lamp`)).text)
    const waiting = await shown()
    expect(at(waiting, "inspection")).toMatchObject({
      queued: 1,
      waiting: [{ message: "Bid", count: 1 }]
    })
    expect(listAt(waiting, "messages").map((one) => at(one, "outcome"))).toEqual(["waiting"])
    expect(at(waiting, "recordedCommits")).toBe(0)
    open()
    await asked
    const done = await shown()
    expect(at(done, "inspection", "queued")).toBe(0)
    expect(listAt(done, "messages").map((one) => at(one, "outcome"))).toEqual(["replied"])
    expect(at(done, "recordedCommits")).toBe(1)
    await gatedNode.stop()
  })
})

describe("in the past, the inspector shows", () => {
  it("an actor after each recorded commit", async () => {
    const now = await document("/actors/auction/lamp")
    const back = at(now, "links", "previous", "commit")
    const actor = await document(`/actors/auction/lamp?commit=${String(back)}`)
    expect(JSON.parse(wordAt(actor, "state"))).toMatchObject({ best: 5, by: "ann" })
    expect(at(actor, "stateBefore")).toBeUndefined()
    expect(at(actor, "head")).toBe(1)
    expect(listAt(actor, "log")).toHaveLength(1)
    expect(listAt(actor, "messages")).toHaveLength(1)
    expect(at(actor, "timerMs")).toBe(closesAtMs)
    expect(at(actor, "links", "previous")).toBeUndefined()
    const next = at(actor, "links", "next", "commit")
    const later = await document(`/actors/auction/lamp?commit=${String(next)}`)
    expect(wordAt(later, "state")).toBe(wordAt(now, "state"))
    expect(at(later, "links", "next")).toBeUndefined()
    expect(await document("/actors/auction/lamp?item=2")).toEqual(later)
  })

  it("the log up to an item that is older than the recording, and no state", async () => {
    const actor = await document("/actors/auction/old?item=1")
    expect(listAt(actor, "log").map((item) => at(item, "n"))).toEqual([1])
    expect(at(actor, "state")).toBeUndefined()
    expect(at(actor, "links")).toMatchObject({ next: { item: 2 }, isPast: true })
    expect(at(actor, "messages")).toEqual([])
    const { text } = await get("/actors/auction/old?item=1")
    expect(text).toContain("the state of that time is not known")
  })

  it("the last 50 items of a log, also where they are long", async () => {
    const books = auction("books")
    const by = "x".repeat(200_000)
    for (let amount = 1; amount <= 60; amount++) {
      await node.ask(books, { _tag: "Bid", amount, by: amount > 50 ? by : "ann" })
    }
    const log = listAt(await document("/actors/auction/books"), "log")
    expect(log.map((item) => at(item, "n"))).toEqual(Array.from({ length: 50 }, (_, n) => n + 11))
    expect(wordAt(log, 49, "value")).toHaveLength(4 * 1024 + 1)
    const state = await document("/actors/auction/books")
    expect([at(state, "state"), Number(at(state, "stateChars")) > 200_000]).toEqual([
      undefined,
      true
    ])
    expect((await get("/actors/auction/books")).text).toContain("too many to be shown")
  })

  it("that an actor was closed and removed", async () => {
    const vase = auction("vase")
    await node.ask(vase, { _tag: "Bid", amount: 1, by: "ann" })
    await node.ask(vase, { _tag: "Close" })
    await node.ask(vase, { _tag: "Remove" })
    const now = await document("/actors/auction/vase")
    expect([at(now, "state"), at(now, "head"), at(now, "recordedCommits")]).toEqual([null, 0, 3])
    const closed = String(at(now, "links", "previous", "commit"))
    const actor = await document(`/actors/auction/vase?commit=${closed}`)
    expect(JSON.parse(wordAt(actor, "state"))).toMatchObject({ _tag: "Closed" })
    expect(at(actor, "timerMs")).toBeNull()
    const { text } = await get(`/actors/auction/vase?commit=${closed}`)
    expect(text).toContain("wrote the state")
  })
})

describe("its server", () => {
  it("has a page for each document, which escapes what actors hold", async () => {
    const paths = ["/", "/messages", "/messages?kind=auction", "/actors/auction"]
    for (const path of [...paths, "/actors/auction/lamp", "/actors/auction/lamp?item=1"]) {
      const { headers, status, text } = await get(path)
      expect([path, status]).toEqual([path, 200])
      expect(headers["content-type"]).toBe("text/html; charset=utf-8")
      expect(text).not.toContain("<b>ben")
    }
    expect((await get("/messages")).text).toContain("&lt;b&gt;ben&lt;/b&gt;")
  })

  it("lets a page load nothing from elsewhere, and no page frame it", async () => {
    const { headers, text } = await get("/")
    expect(headers["content-security-policy"]).toMatch(/^default-src 'none'; script-src 'self';/)
    expect(headers["content-security-policy"]).toContain("frame-ancestors 'none'")
    expect(headers["cross-origin-resource-policy"]).toBe("same-origin")
    expect(headers["cache-control"]).toBe("no-store")
    const assets = [...text.matchAll(/(?:href|src)="(\/[\w-]+\.\w+)"/g)].map(([, path]) => path)
    expect(assets).toEqual(["/icon.svg", "/style.css", "/script.js"])
    for (const path of assets) expect((await get(path ?? "")).status).toBe(200)
  })

  it.each([
    ["localhost", 200],
    ["localhost:1234", 200],
    ["[::1]:8090", 200],
    ["rebound.example", 403],
    ["127.0.0.1.example:8090", 403],
    ["a b", 403]
  ])("answers a request for the host %j with %d", async (host, status) => {
    const { status: answered, text } = await request(`${node.inspectorUrl}api/messages`, {
      headers: { host }
    })
    expect(answered).toBe(status)
    if (status === 403) expect(text).toMatch(/^The inspector answers only .* option `hosts`\.\n$/)
  })

  it("changes nothing", async () => {
    const { headers, status } = await request(node.inspectorUrl, { method: "POST" })
    expect([status, headers["allow"]]).toEqual([405, "GET, HEAD"])
    const head = await request(node.inspectorUrl, { method: "HEAD" })
    expect([head.status, head.text]).toEqual([200, ""])
  })

  it.each([
    ["/nowhere", /nothing is at \/nowhere/],
    ["/actors/shop", /no actors of the kind shop: it has auction, fragile/],
    ["/actors/auction/lamp?commit=999", /commit 999 is not recorded/],
    ["/actors/auction/lamp?item=9", /the log has no item 9: its last one is 2/],
    ["/actors/auction/lamp?item=x", /item=x is no number/]
  ])("has nothing at %s, and says why", async (path, message) => {
    for (const prefix of ["", "/api"]) {
      const { status, text } = await get(prefix + path)
      expect(status).toBe(404)
      expect(text).toMatch(message)
    }
  })

  it("opens an actor by its id, of a kind only", async () => {
    const { headers, status } = await get("/actors/auction?id=lamp")
    expect([status, headers["location"]]).toEqual([303, "/actors/auction/lamp"])
    const elsewhere = await get("/.//elsewhere.example?id=lamp")
    expect([elsewhere.status, elsewhere.headers["location"]]).toEqual([404, undefined])
  })

  it("does not start on a port that is taken, and stops the node again", async () => {
    const { port } = new URL(node.inspectorUrl)
    const starting = startInspectedNode({ actors: [], store: memory() }, { port: Number(port) })
    await expect(starting).rejects.toThrow(InspectorStartFailed)
    await expect(starting).rejects.toThrow(/cannot listen on 127\.0\.0\.1:\d+: .* another port/)
  })

  it("does not start on what is no port", async () => {
    const starting = startInspectedNode({ actors: [], store: memory() }, { port: 70_000 })
    await expect(starting).rejects.toThrow(InspectorStartFailed)
  })

  it.each(["127.0.0.2", "0.0.0.0"])("answers at its URL when it listens on %s", async (host) => {
    const other = await startInspectedNode({ actors: [], store: memory() }, { host, port: 0 })
    expect((await request(other.inspectorUrl)).status).toBe(200)
    await other.stop()
  })

  it("starts as its README says", async () => {
    const names = [
      ["../../../runtime/main.ts", "@restante/runtime"],
      ["../../../runtime/inspector/index.ts", "@restante/runtime/inspector"],
      ["./inspected-actors.ts", "./auction.ts"]
    ] as const
    const example = names.reduce(
      (text, [path, name]) => text.replace(path, name),
      textOf("test/runtime/inspector/example.ts")
    )
    expect(textOf("runtime/inspector/README.md")).toContain(`\`\`\`ts\n${example}\`\`\``)
    const started = await startForDevelopment(0)
    expect((await request(started.inspectorUrl)).status).toBe(200)
    await started.stop()
  })

  it("ends with its node", async () => {
    const other = await startInspectedNode({ actors: [], store: memory() }, {
      port: 0,
      hosts: ["dev.example"]
    })
    const headers = { host: "dev.example" }
    expect((await request(other.inspectorUrl, { headers })).status).toBe(200)
    await other.stop()
    await expect(request(other.inspectorUrl)).rejects.toThrow("ECONNREFUSED")
  })
})
