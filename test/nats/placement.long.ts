/** Three nodes in one process over NATS: who asks anywhere is answered, whoever comes and goes. */
import { Context, Exit, Layer, Logger, Scope } from "effect"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import type { AskFailure } from "../../runtime/errors.ts"
import {
  clustered,
  Placement,
  shardOf,
  Storage,
  System,
  type SystemApi
} from "../../runtime/index.ts"
import { connection, Nats } from "../../runtime/nats/connection.ts"
import { natsRegistry } from "../../runtime/nats/registry.ts"
import { natsStorage } from "../../runtime/nats/storage.ts"
import { natsTransport } from "../../runtime/nats/transport.ts"
import { makeMemoryStorage } from "../../runtime/ports/memory-storage.ts"
import { at, type Message, probe, type Reply } from "../runtime/probe.ts"
import { run } from "../suites/storage-probe.ts"
import { type NatsServer, startCluster, startServer } from "./servers.ts"

interface Node {
  readonly system: SystemApi
  readonly placement: Placement["Service"]
  /** Stops in good order. */
  readonly leave: () => Promise<void>
  /** Is cut from its servers where it stands. */
  readonly vanish: () => Promise<void>
  readonly ask: (id: string, message: Message) => Promise<Reply | string>
}

let server: NatsServer
/** What all nodes of a test store to. */
let storage: Layer.Layer<Storage, unknown, Nats>
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

/** Nodes are given up sooner than in earnest. */
const limits = { ttlMs: 4_000, refreshMs: 500, marginMs: 1_000, refreshDeadlineMs: 500 }

const start = async (name: string, url = server.url): Promise<Node> => {
  const scope = await run(Scope.make())
  const nats = connection({ servers: [url], name })
  const ports = Layer.mergeAll(
    storage,
    natsTransport,
    Layer.provide(clustered({ node: name, limits }), natsRegistry)
  ).pipe(Layer.provideMerge(nats))
  const system = System.layer({ behaviours: [probe()] })
  const layer = Layer.provideMerge(system, ports).pipe(Layer.provide(Logger.layer([])))
  const context = await run(Layer.buildWithScope(layer, scope))
  const api = Context.get(context, System)
  let left = false
  const node: Node = {
    system: api,
    placement: Context.get(context, Placement),
    leave: async () => {
      if (left) return
      left = true
      await run(api.drain)
      await run(Scope.close(scope, Exit.void))
    },
    vanish: async () => {
      left = true
      await Context.get(context, Nats).nc.close()
      await run(Scope.close(scope, Exit.void))
    },
    ask: (id, message) =>
      new Promise((resolve) => {
        api.askWith(at(id), message, (failure: AskFailure | undefined, reply) => {
          resolve(failure === undefined ? reply as Reply : failure._tag) // a probe replies so
        })
      })
  }
  nodes.push(node)
  return node
}

const shards = Array.from({ length: 256 }, (_, shard) => shard)

/** Each shard is owned by one of the nodes, and each node owns some. */
const settled = (among: ReadonlyArray<Node>): Promise<void> =>
  expect.poll(() => {
    const owners = shards.map((shard) => among.filter(({ placement }) => placement.owns(shard)))
    return owners.every(({ length }) => length === 1) &&
      among.every((node) => owners.some(([owner]) => owner === node))
  }, { timeout: 25_000, interval: 20 }).toBe(true)

const add: Message = { _tag: "Add", by: 1 }
const ids = Array.from({ length: 100 }, (_, n) => `actor-${n}`)

/** Asks every actor again and again, of any node that is there; what failed, and how many not. */
const load = (among: () => ReadonlyArray<Node>) => {
  const failures: Array<string> = []
  const counts = new Map<string, number>()
  let going = true
  const one = async (id: string, turn: number): Promise<void> => {
    if (!going) return
    const there = among()
    const answer = await there[turn % there.length]?.ask(id, add)
    if (typeof answer === "object") counts.set(id, (counts.get(id) ?? 0) + 1)
    else failures.push(`${id}: ${answer}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
    return one(id, turn + 1)
  }
  const all = Promise.all(ids.map(one))
  return async () => {
    going = false
    await all
    return { failures, counts }
  }
}

describe("three nodes", () => {
  it("share the shards, and each asks every actor", async () => {
    const [a, b, c] = [await start("a"), await start("b"), await start("c")]
    await settled(nodes)
    for (const [turn, { ask }] of [a, b, c].entries()) {
      const replies = await Promise.all(ids.map((id) => ask(id, add)))
      expect(replies).toEqual(ids.map(() => ({ count: turn + 1, head: 0 })))
    }
    const resident = nodes.map(({ system }) => system.snapshot().resident.get("probe")?.active ?? 0)
    const share = nodes.map(({ placement }) =>
      ids.filter((id) => placement.owns(shardOf(at(id)))).length
    )
    expect(resident).toEqual(share)
    const view = b.system.cluster()
    expect(view.nodes.map(({ node }) => node).sort()).toEqual(["a", "b", "c"])
    expect(view.owners.every((owner) => owner !== undefined)).toBe(true)
  })

  it("answer every ask while nodes join, leave and come back, and count each once", async () => {
    await start("a")
    await settled(nodes)
    let there: ReadonlyArray<Node> = nodes
    const stop = load(() => there)
    const joined = [await start("b"), await start("c")]
    await settled(nodes)
    there = [...nodes]
    const [a] = nodes
    // Who asks it is elsewhere by then; it answers others all the same.
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

  it("serve the shards of one that vanished, once its time is over", async () => {
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
    await b.ask(id, { _tag: "WakeAt", atMs: Date.now() + 1_500 })
    expect(a.system.snapshot().wakeUps).toBe(1)
    await a.leave()
    nodes = [b]
    expect(b.system.snapshot().wakeUps).toBe(1)
    await expect.poll(() => b.system.snapshot().wakeUps, { timeout: 5_000 }).toBe(0)
  })
})

describe("three nodes on three servers", () => {
  it("answer every ask over a rolling restart, and keep what they answered", async () => {
    const cluster = await startCluster(3)
    storage = natsStorage()
    const names = ["a", "b", "c"]
    const begin = (n: number) => start(names[n] ?? "", cluster.urls[n])
    for (const n of names.keys()) await begin(n)
    await settled(nodes)
    let there: ReadonlyArray<Node> = nodes
    const stop = load(() => there)
    for (const n of names.keys()) {
      const [leaving, ...others] = nodes
      there = others
      await leaving?.leave()
      nodes = others
      await begin(n)
      await settled(nodes)
    }
    const { counts, failures } = await stop()
    expect(failures).toEqual([])
    const read = (id: string) => nodes[0]?.ask(id, { _tag: "Read" })
    for (const id of ids) expect(await read(id)).toMatchObject({ count: counts.get(id) })
    await Promise.all(nodes.map(({ leave }) => leave()))
    await cluster.close()
  }, 120_000)
})
