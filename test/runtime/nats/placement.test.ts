/** Three nodes in one process over NATS: every ask is answered while nodes join and leave. */
import { connect } from "@nats-io/transport-node"
import { Layer } from "effect"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { withTraceContext } from "../../../http/trace-context.ts"
import { RequestHeaders } from "../../../http/wire/request.ts"
import type { ProcessName } from "../../../runtime/cluster/member-entry.ts"
import { shardOf, Storage } from "../../../runtime/index.ts"
import { makeMemoryStorage } from "../../../runtime/memory/storage.ts"
import { run } from "../../suites/storage-probe.ts"
import { at } from "../probe.ts"
import { add, ids, load, type Node, settled, start as startNode, type Started } from "./nodes.ts"
import { type NatsServer, startServer } from "./servers.ts"

let server: NatsServer

let storage: Started["storage"]

let nodes: Array<Node>

beforeEach(async () => {
  server = await startServer()
  storage = Layer.succeed(Storage, makeMemoryStorage())
  nodes = []
})

afterEach(async () => {
  await Promise.all(nodes.map(({ leave }) => leave()))
  await server.close()
})

const start = async (name: string, process?: ProcessName): Promise<Node> => {
  const as = process === undefined ? {} : { process }
  const node = await startNode({ name, storage, url: server.url, ...as })
  nodes.push(node)
  return node
}

describe("three nodes", () => {
  it("share the shards, and each asks every actor", async () => {
    const [a, b, c] = [await start("a"), await start("b"), await start("c")]
    await settled(nodes)
    for (const [turn, { ask }] of [a, b, c].entries()) {
      const replies = await Promise.all(ids.map((id) => ask(id, add)))
      expect(replies).toEqual(ids.map(() => ({ count: turn + 1, head: 0 })))
    }
    const resident = nodes.map(({ system }) =>
      system.snapshot().activations.get("probe")?.active ?? 0
    )
    const share = nodes.map(({ placement }) =>
      ids.filter((id) => placement.owns(shardOf(at(id)))).length
    )
    expect(resident).toEqual(share)
    const view = b.system.cluster()
    expect(view.nodes.map(({ node }) => node).sort()).toEqual(["a", "b", "c"])
    expect(view.owners.every((owner) => owner !== undefined)).toBe(true)
  })

  it("answer every ask once while nodes join, leave and return", async () => {
    await start("a")
    await settled(nodes)
    let there: ReadonlyArray<Node> = nodes
    const stop = load(() => there)
    const joined = [await start("b"), await start("c")]
    await settled(nodes)
    there = [...nodes]
    const [a] = nodes
    // The asker has moved by then; the node still answers others.
    there = joined
    await a?.leave()
    nodes = joined
    await settled(nodes)
    await start("a")
    await settled(nodes)
    there = nodes
    await new Promise((resolve) => setTimeout(resolve, 200))
    const { counts, failures } = await stop()
    expect(failures).toEqual([])
    for (const id of ids) {
      const read = await nodes[0]?.ask(id, { _tag: "Read" })
      expect(read).toMatchObject({ count: counts.get(id) })
    }
  })

  it("serve the shards of a killed node once its membership has expired", async () => {
    const [a, b] = [await start("a"), await start("b"), await start("c")]
    await settled(nodes)
    await Promise.all(ids.map((id) => b.ask(id, add)))
    const rest = nodes.filter((node) => node !== a)
    await a.vanish()
    nodes = rest
    // Asks of its shards wait for their next owners.
    const replies = await Promise.all(ids.map((id) => b.ask(id, add)))
    expect(replies).toEqual(ids.map(() => ({ count: 2, head: 0 })))
    await settled(rest)
  })

  it("wake at one node only what another was to wake", async () => {
    const [a, b] = [await start("a"), await start("b")]
    await settled(nodes)
    const id = ids.find((one) => a.placement.owns(shardOf(at(one)))) ?? ""
    // Later than the other node has left, on a busy machine too.
    await b.ask(id, { _tag: "SetTimer", atMs: Date.now() + 10_000 })
    expect(a.system.snapshot().timers).toBe(1)
    await a.leave()
    nodes = [b]
    expect(b.system.snapshot().timers).toBe(1)
    await expect.poll(() => b.system.snapshot().timers, { timeout: 60_000 }).toBe(0)
  })
})

it("sends the trace of a request to the actor's owner and to listeners", async () => {
  const [a, b] = [await start("a"), await start("b")]
  await settled(nodes)
  const traces: Array<string | undefined> = []
  const nc = await connect({ servers: [server.url] })
  nc.subscribe("restante.probe.>", {
    callback: (_, { headers }) => void traces.push(headers?.get("traceparent"))
  })
  await nc.flush()
  const id = ids.find((one) => a.placement.owns(shardOf(at(one)))) ?? ""
  const traceparent = `00-${"ab".repeat(16)}-${"cd".repeat(8)}-01`
  const headers = new RequestHeaders(["traceparent", traceparent])
  const request = { method: "GET", path: "/", query: "", headers, remoteAddress: "127.0.0.1" }
  expect(await run(withTraceContext(request, b.system.ask(at(id), add)))).toEqual({
    count: 1,
    head: 0
  })
  await expect.poll(() => traces).toEqual([traceparent])
  await nc.close()
})

describe("a node's name", () => {
  const here = (pid: number): ProcessName => ({ host: "a machine of the test", pid })

  it("is denied to a second process while the first lives and serves", async () => {
    const first = await start("a", here(1))
    await settled(nodes)
    await expect(start("a", here(2))).rejects.toMatchObject({ _tag: "NodeNameTaken", node: "a" })
    expect(await first.ask("one", add)).toEqual({ count: 1, head: 0 })
    expect(first.placement.isLeaseValid()).toBe(true)
  })

  it("passes to the next process after a kill, with all shards", async () => {
    const first = await start("a", here(1))
    await settled(nodes)
    expect(await first.ask("one", add)).toEqual({ count: 1, head: 0 })
    await first.vanish()
    nodes = []
    const second = await start("a", here(2))
    await settled(nodes)
    expect(await second.ask("one", add)).toEqual({ count: 2, head: 0 })
  })
})
