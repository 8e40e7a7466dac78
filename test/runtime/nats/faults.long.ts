/** Faults of the servers and of the connection during continuous commits. */
import { Effect, Layer } from "effect"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { address, shardOf } from "../../../runtime/actor/address.ts"
import { connection } from "../../../runtime/nats/connection/connection.ts"
import { natsStorage } from "../../../runtime/nats/storage/storage.ts"
import { Storage, type StorageApi } from "../../../runtime/ports/storage.ts"
import { fromLayer, type Harness } from "../../suites/harness.ts"
import { commitOf, itemsOf, run } from "../../suites/storage-probe.ts"
import { removeStreams } from "./backend.ts"
import { chaotic, type Odds } from "./chaos.ts"
import { type NatsCluster, type NatsServer, startCluster, startServer } from "./servers.ts"
import { Stepper, steppersOf, stepping, within } from "./steps.ts"

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

const nodeOn = (servers: ReadonlyArray<string>, buckets = 2): Promise<Harness<StorageApi>> =>
  fromLayer(
    Storage,
    Layer.provide(natsStorage({ buckets }), connection({ servers, name: "node" })),
    async () => {}
  )

const alice = address("mailbox", "alice")

/** Two nodes that repeatedly both believe to own the same actors. */
const rivalry = async (one: StorageApi, other: StorageApi): Promise<void> => {
  const all = Array.from({ length: 5 }, (_, at) => address("mailbox", `m${at}`))
  const kept = new Map(all.map(({ id }) => [id, new Map<number, string>()]))
  const rival = async (storage: StorageApi, name: string, of: typeof alice) => {
    for (let round = 0; round < 20; round++) {
      let { head, revision } = await run(storage.load(of))
      for (let step = 0; step < 6; step++) {
        const value = `${name} ${round} ${step}`
        const count = Math.random() < 0.7 ? 1 + Math.floor(Math.random() * 3) : 0
        const append = Array.from({ length: count }, (_, at) => ({ n: head + 1 + at, value }))
        const state = Math.random() < 0.3 ? value : undefined
        const change = { expected: revision, head: head + count, timer: step }
        const [outcome] = await run(storage.commit([commitOf({
          address: of,
          state,
          append,
          ...change
        })]))
        if (outcome?._tag !== "Committed") break
        revision = outcome.revision
        head += count
        for (const { n } of append) {
          expect(kept.get(of.id)?.has(n)).toBe(false)
          kept.get(of.id)?.set(n, value)
        }
      }
    }
  }
  await Promise.all(all.flatMap((of) => [rival(one, "one", of), rival(other, "other", of)]))
  for (const of of all) {
    const items = await run(one.read(of, 1, 10_000))
    const expected = [...kept.get(of.id) ?? []].sort(([a], [b]) => a - b)
    expect(items.map(({ n, value }) => [n, value])).toEqual(expected)
    expect((await run(one.load(of))).head).toBe(expected.length)
  }
}

describe("one server", () => {
  let server: NatsServer
  let nodes: ReadonlyArray<Harness<StorageApi>>
  let one: StorageApi
  let other: StorageApi
  beforeAll(async () => {
    server = await startServer()
  })
  afterAll(() => server.close())
  beforeEach(async () => {
    nodes = [await nodeOn([server.url]), await nodeOn([server.url])]
    const [first, second] = nodes
    if (first === undefined || second === undefined) throw new Error("no nodes")
    one = first.api
    other = second.api
  })
  afterEach(async () => {
    for (const node of nodes) await node.close()
    await removeStreams([server.url])
  })
  const commit = (storage: StorageApi, ...group: ReadonlyArray<Parameters<typeof commitOf>[0]>) =>
    run(storage.commit(group.map(commitOf)))
  const tagsOf = async (outcomes: ReturnType<typeof commit>) =>
    (await outcomes).map(({ _tag }) => _tag)
  const bare = { address: alice, expected: 0 }

  it("removes a stale commit from a batch, and stores the others", async () => {
    const all = Array.from({ length: 50 }, (_, at) => address("mailbox", `m${at}`))
    const states = await commit(one, ...all.map((of) => ({ address: of, state: "a" })))
    const revisions = states.map((outcome) => outcome._tag === "Committed" ? outcome.revision : 0)
    const [, , , ahead] = all
    await run(other.load(ahead ?? alice))
    await commit(other, { address: ahead ?? alice, expected: revisions[3] ?? 0, state: "b" })
    const tags = await tagsOf(commit(
      one,
      ...all.map((of, at) => ({ address: of, expected: revisions[at] ?? 0, state: "c", timer: at }))
    ))
    expect(tags).toEqual(all.map((_, at) => at === 3 ? "Conflict" : "Committed"))
    expect((await run(one.load(ahead ?? alice))).state).toBe("b")
  })

  const late: ReadonlyArray<Parameters<typeof commitOf>[0]> = [
    { append: [{ n: 2, value: "late" }] },
    { append: [{ n: 2, value: "late" }], timer: 3 },
    { timer: 3 },
    { state: "late", head: 1 },
    { state: "late", head: 2 },
    { state: null }
  ]
  it.each(late)("lets no owner that was succeeded commit %j", async (change) => {
    await commit(one, { ...bare, append: itemsOf(1, 1) })
    await run(other.load(alice))
    await commit(other, { ...bare, append: [{ n: 2, value: "the successor's" }], timer: 7 })
    expect(await tagsOf(commit(one, { ...bare, ...change }))).toEqual(["Conflict"])
    expect(await run(other.load(alice)))
      .toEqual({ state: undefined, revision: 0, head: 2, timer: 7 })
    expect((await run(other.read(alice, 1, 10))).map(({ value }) => value))
      .toEqual(["item 1", "the successor's"])
    expect((await run(other.timers(shardOf(alice), 10))).timers).toMatchObject([{ atMs: 7 }])
  })

  it("writes nothing for an owner that was succeeded and has nothing to change", async () => {
    await commit(one, { ...bare, append: itemsOf(1, 1) })
    await run(other.load(alice))
    await commit(other, { ...bare, timer: 7 })
    // It knows no timer. Whether it still holds the shard is for its lease to say.
    await commit(one, { ...bare, timer: null })
    expect((await run(other.timers(shardOf(alice), 10))).timers).toMatchObject([{ atMs: 7 }])
  })

  it("has one history when two nodes both believe to be the owner", () => rivalry(one, other))

  it("shows a successor the items that the former owner appended after its load", async () => {
    await commit(one, { ...bare, append: itemsOf(1, 1) })
    await run(other.load(alice))
    await commit(one, { ...bare, append: itemsOf(2, 2) })
    for (const change of [{ state: "b", head: 1 }, { append: itemsOf(2, 2) }]) {
      expect(await commit(other, { ...bare, ...change })).toMatchObject([
        { _tag: "Conflict", conflict: { _tag: "LogConflict", item: 2 } }
      ])
    }
    expect(await run(other.load(alice))).toMatchObject({ head: 2 })
  })

  it("continues after kill -9 of the server, with nothing lost and nothing twice", async () => {
    const steppers = steppersOf(one, 60)
    await stepping(
      steppers,
      (async () => {
        for (let round = 0; round < 3; round++) {
          await wait(200 + Math.random() * 100)
          await server.restart()
        }
        await wait(200)
      })()
    )
    for (const stepper of steppers) await stepper.check(other, true)
    expect(steppers.reduce((sum, { items }) => sum + items.length, 0)).toBeGreaterThan(60)
  })

  it("is not healthy, and answers in time, while the server is away", async () => {
    await server.stop()
    try {
      expect(await run(Effect.flip(one.health))).toMatchObject({ _tag: "StorageUnavailable" })
      const kept = await within(Effect.exit(one.commit([commitOf({ state: "a" })])), 500)
      expect(kept).toBeUndefined()
    } finally {
      await server.restart()
    }
    const stepper = new Stepper(one, "later")
    await stepper.step()
    await stepper.check()
    await run(one.health)
  })

  const odds: ReadonlyArray<readonly [string, Odds]> = [
    ["are lost", { lost: 0.2, unheard: 0, late: 0, lateMsMax: 0 }],
    ["are kept without a word", { lost: 0, unheard: 0.3, late: 0, lateMsMax: 0 }],
    ["arrive late", { lost: 0, unheard: 0, late: 0.2, lateMsMax: 400 }],
    ["do all of this", { lost: 0.08, unheard: 0.1, late: 0.1, lateMsMax: 300 }]
  ]
  it.each(odds)("stores every commit once when writes %s", async (_, odds) => {
    const layer = natsStorage({ buckets: 2 }).pipe(
      Layer.provide(chaotic(() => odds)),
      Layer.provide(connection({ servers: [server.url], name: "unlucky" }))
    )
    const unlucky = await fromLayer(Storage, layer, async () => {})
    const steppers = steppersOf(unlucky.api, 12)
    await Promise.all(steppers.map(async (stepper, at) => {
      for (let step = 0; step < 12; step++) {
        await stepper.step(at === 0 && step % 4 === 1 ? 1_200 : 1 + step % 3)
      }
    }))
    await wait(odds.lateMsMax + 100)
    for (const stepper of steppers) await stepper.check(other)
    await unlucky.close()
  }, 120_000)
})

describe("three servers", () => {
  let cluster: NatsCluster
  beforeAll(async () => {
    cluster = await startCluster(3)
  })
  afterAll(() => cluster.close())

  it("have one history when two nodes both believe to be the owner", async () => {
    const nodes = [await nodeOn(cluster.urls), await nodeOn(cluster.urls.toReversed())] as const
    await rivalry(nodes[0].api, nodes[1].api)
    for (const node of nodes) await node.close()
    await removeStreams(cluster.urls)
  })

  it(
    "continue when the leader steps down or dies; nothing is lost or repeated",
    async () => {
      const node = await nodeOn(cluster.urls)
      const other = await nodeOn(cluster.urls)
      const steppers = steppersOf(node.api, 40)
      await stepping(
        steppers,
        (async () => {
          await wait(300)
          for (const stream of ["KV_actors-0", "KV_actors-1", "KV_actors-0"]) {
            await cluster.stepDown(stream)
            await wait(400)
          }
          const leader = await cluster.leaderOf("KV_actors-1")
          await leader?.stop()
          await wait(9_000)
          await leader?.restart()
          await wait(1_000)
        })()
      )
      for (const stepper of steppers) await stepper.check(other.api, true)
      await node.close()
      await other.close()
    },
    90_000
  )
})
