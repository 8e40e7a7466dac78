import type { Msg } from "@nats-io/transport-node"
import { Effect, Layer, Result } from "effect"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { address, shardOf } from "../../../runtime/actor/address.ts"
import { giveUpMs } from "../../../runtime/limits.ts"
import { natsBlobs } from "../../../runtime/nats/blobs/blobs.ts"
import { connection, Nats } from "../../../runtime/nats/connection/connection.ts"
import { NoReply } from "../../../runtime/nats/connection/requests.ts"
import { natsRecords } from "../../../runtime/nats/records/records.ts"
import { natsRegistry } from "../../../runtime/nats/registry/registry.ts"
import { natsStorage } from "../../../runtime/nats/storage/storage.ts"
import type { BucketFailure } from "../../../runtime/nats/stream/buckets.ts"
import { Storage } from "../../../runtime/ports/storage.ts"
import { alice, commitOf, itemsOf, revisionOf, run,
  signalRevisionsOf } from "../../suites/storage-probe.ts"
import { storageSuite } from "../../suites/storage.ts"
import { onNats, removeStreams } from "./backend.ts"
import { interceptRequests } from "./intercepted-requests.ts"
import { type NatsCluster, type NatsServer, startCluster, startServer } from "./servers.ts"

/** All that makes or checks streams at the start of a node. */
const ports: ReadonlyArray<Layer.Layer<never, BucketFailure, Nats>> = [
  natsStorage(),
  natsRecords,
  natsBlobs(),
  natsRegistry
]

interface Deaf {
  instead: ((write: () => Promise<unknown>) => Promise<unknown>) | undefined
  /** So many writes before it are heard. */
  heard: number
}

/** A node that does not hear of a write: what it is to miss happens `instead` of it, once. */
const deafNats = () => {
  const deaf: Deaf = { instead: undefined, heard: 0 }
  const layer = interceptRequests("$KV.", async (ask, subject) => {
    const { instead } = deaf
    if (instead === undefined || deaf.heard-- > 0) return ask()
    deaf.instead = undefined
    await instead(ask)
    throw new NoReply(subject, "timeout")
  })
  return { deaf, layer }
}

describe("one server", () => {
  let server: NatsServer
  beforeAll(async () => {
    server = await startServer()
  })
  afterAll(() => server.close())
  const urls = () => [server.url]
  storageSuite("JetStream", onNats(Storage, natsStorage(), urls))

  it("shows later writes of other nodes", async () => {
    const open = onNats(Storage, natsStorage(), urls)
    const [before, now] = [await open(), await open()]
    const note = async ({ api }: typeof now, expected: number, n: number) => {
      const commit = { expected, head: n, state: `${n}`, append: itemsOf(n, n) }
      return revisionOf((await run(api.commit([commitOf(commit)])))[0])
    }
    const first = await note(before, 0, 1)
    await run(now.api.load(alice))
    await note(now, first, 2)
    expect(await run(before.api.read(alice, 1, 10))).toEqual(itemsOf(1, 2))
    expect(await run(before.api.read(alice, 2, 10))).toEqual(itemsOf(2, 2))
    await before.close()
    await now.close()
  })

  it("reports a commit as indeterminate if another may have overwritten it", async () => {
    const { deaf, layer } = deafNats()
    const mine = await onNats(Storage, Layer.provide(natsStorage(), layer), urls)()
    const other = await onNats(Storage, natsStorage(), urls)()
    const written = async ({ api }: typeof mine, changes: Parameters<typeof commitOf>[0]) =>
      (await run(api.commit([commitOf(changes)])))[0]
    const next = async (changes: Parameters<typeof commitOf>[0]) => {
      const { revision: expected } = await run(other.api.load(alice))
      return written(other, { ...changes, expected })
    }
    let expected = revisionOf(await written(mine, { expected: 0, head: 0, state: "1" }))

    // Kept, and written over before anybody could look.
    deaf.instead = async (write) => {
      await write()
      expected = revisionOf(await next({ head: 0, state: "3" }))
    }
    expect(await written(mine, { expected, head: 0, state: "2" })).toEqual({
      _tag: "Indeterminate"
    })

    // Not kept, as is seen: the other has the state as it was.
    await run(mine.api.load(alice))
    deaf.instead = () => next({ state: undefined, append: itemsOf(1, 1) })
    expect(await written(mine, { expected, head: 0, state: "4" })).toMatchObject({
      _tag: "Conflict"
    })

    // A write of the state moves no items.
    expected = revisionOf(await next({ head: 1, state: "5" }))
    await run(mine.api.load(alice))
    deaf.instead = async (write) => {
      await write()
      expected = revisionOf(await next({ head: 2, state: "7" }))
    }
    const appended = await written(mine, {
      expected,
      head: 2,
      state: "6",
      append: itemsOf(2, 2)
    })
    expect(appended).toMatchObject({ _tag: "Committed" })
    // What was decided on it since is not: the other's state is another.
    const stale = { expected: revisionOf(appended), head: 2, state: "8" }
    expect(await written(mine, stale)).toMatchObject({ _tag: "Conflict" })
    expect(await run(mine.api.load(alice))).toMatchObject({ state: "7", revision: expected })
    expect(await written(mine, { expected, head: 2, state: "9" })).toMatchObject({
      _tag: "Committed"
    })
    await mine.close()
    await other.close()
  })

  it("reports a commit of many batches as indeterminate, too", async () => {
    const { deaf, layer } = deafNats()
    const mine = await onNats(Storage, Layer.provide(natsStorage(), layer), urls)()
    const other = await onNats(Storage, natsStorage(), urls)()
    const next = async (changes: Parameters<typeof commitOf>[0]) => {
      const { revision: expected } = await run(other.api.load(alice))
      await run(other.api.commit([commitOf({ ...changes, expected })]))
    }
    const many = commitOf({ expected: 0, head: 20_000, state: "1", append: itemsOf(1, 20_000) })
    // The cap, three batches of items; then the step by which it counts.
    deaf.heard = 4
    deaf.instead = async (write) => {
      await write()
      await next({ head: 20_000, state: "2" })
    }
    expect(await run(mine.api.commit([many]))).toEqual([{ _tag: "Indeterminate" }])
    expect(await run(other.api.load(alice))).toMatchObject({ state: "2", head: 20_000 })
    // Before that step it is certain.
    const { revision: expected } = await run(mine.api.load(alice))
    const more = commitOf({
      expected,
      head: 40_000,
      state: "3",
      append: itemsOf(20_001, 40_000)
    })
    deaf.heard = 1
    deaf.instead = () => next({ head: 20_000, state: "4" })
    expect(await run(mine.api.commit([more]))).toMatchObject([{ _tag: "Conflict" }])
    expect(await run(other.api.load(alice))).toMatchObject({ state: "4", head: 20_000 })
    await mine.close()
    await other.close()
  })

  it("refuses a text above max_payload for good, and stores the rest of its group", async () => {
    const { api, close } = await onNats(Storage, natsStorage(), urls)()
    const text = "x".repeat(1_100_000)
    const group = [{ state: text }, { append: [{ n: 1, value: text }] }, { state: "a" }]
    const reported: Array<string> = []
    const commit = api.commit(
      group.map((changes, n) => commitOf({ ...changes, address: address("mailbox", `m${n}`) })),
      (index, { _tag }) => reported.push(`${index} ${_tag}`)
    )
    const refused = { _tag: "Refused", failure: { _tag: "ValueTooLarge" } }
    expect(await run(commit)).toMatchObject([refused, refused, { _tag: "Committed" }])
    expect(reported).toEqual(["0 Refused", "1 Refused", "2 Committed"])
    await close()
  })

  const fates = ["stored", "lost", "late"] as const
  it.each(fates)("preserves a signal when a commit without a timer is resent: %s", async (fate) => {
    const { deaf, layer } = deafNats()
    const { api, close } = await onNats(Storage, Layer.provide(natsStorage(), layer), urls)()
    const push = address("registration", "alice=1")
    const signal = async () => {
      const { revision: expected } = await run(api.load(alice))
      const change = { expected, signals: [{ address: push, atMs: Date.now() }] }
      const [revision] = signalRevisionsOf((await run(api.commit([commitOf(change)])))[0])
      return revision
    }
    const consumedSignal = await signal()
    const created = commitOf({ address: push, state: "a", timer: 1 })
    const expected = revisionOf((await run(api.commit([created])))[0])
    // The first batch of the registration is not acknowledged. The mailbox's signal overtakes what
    // is sent of it again.
    let next: number | undefined
    let late: (() => Promise<unknown>) | undefined
    deaf.instead = async (write) => {
      if (fate === "stored") await write()
      if (fate === "late") late = write
      next = await signal()
    }
    const ended = commitOf({
      address: push,
      expected,
      state: "b",
      timer: null,
      consumedSignal
    })
    expect(await run(api.commit([ended]))).toMatchObject([{ _tag: "Committed" }])
    await late?.().catch(() => undefined)
    expect((await run(api.timers(shardOf(alice), 10))).timers).toMatchObject([
      { address: push, signalRevision: next }
    ])
    expect(await run(api.load(push))).toMatchObject({ state: "b" })
    await close()
  })

  it("detects a stored commit that a server rejected", async () => {
    let refuses = false
    const refusing = interceptRequests("$KV.", async (ask) => {
      const answer = await ask()
      if (!refuses) return answer
      refuses = false
      const error = { code: 400, err_code: 10_071, description: "wrong last sequence" }
      return { string: () => JSON.stringify({ error }) } as Msg // all that is read of it
    })
    const { api, close } = await onNats(Storage, Layer.provide(natsStorage(), refusing), urls)()
    const revised = async (changes: Parameters<typeof commitOf>[0]) => {
      refuses = true
      return revisionOf((await run(api.commit([commitOf(changes)])))[0])
    }
    const first = await revised({ expected: 0, head: 0, state: "1" })
    const second = await revised({ expected: first, head: 1, state: "2", append: itemsOf(1, 1) })
    await revised({ expected: second, head: 2, append: itemsOf(2, 2) })
    expect(refuses).toBe(false)
    expect(await run(api.read(alice, 1, 10))).toEqual(itemsOf(1, 2))
    await close()
  })

  it("reads one moment of an actor, also if its late commit arrives meanwhile", async () => {
    let late: (() => Promise<unknown>) | undefined
    let isHeld = false
    const steps: Array<string> = []
    let record: Promise<unknown> = Promise.resolve()
    const delaying = interceptRequests("$", async (ask, subject, data) => {
      if (isHeld && subject.startsWith("$KV.")) {
        isHeld = false
        late = ask
        throw new NoReply(subject, "timeout")
      }
      if (late === undefined || !subject.includes(".MSG.GET.")) return ask()
      if (String(data).includes(".state\"")) {
        steps.push("record")
        const answer = ask()
        record = answer
        return answer
      }
      // The commit arrives between the reads of the record and of the item.
      await record
      steps.push("commit")
      const arrive = late
      late = undefined
      await arrive()
      return ask()
    })
    const { api, close } = await onNats(Storage, Layer.provide(natsStorage(), delaying), urls)()
    const of = address("mailbox", "one-moment")
    const commit = async (changes: Parameters<typeof commitOf>[0]) =>
      revisionOf((await run(api.commit([commitOf({ address: of, ...changes })])))[0])
    const first = await commit({ expected: 0, head: 0, state: "1" })
    isHeld = true
    const second = await commit({ expected: first, head: 1, state: "2", append: itemsOf(1, 1) })
    expect(steps).toEqual(["record", "commit"])
    expect(await run(api.load(of))).toMatchObject({ state: "2", head: 1, revision: second })
    // Its owner goes on without a conflict.
    await commit({ expected: second, head: 2, append: itemsOf(2, 2) })
    await close()
  })

  it.each([true, false])(
    "reads whether a late rejected commit was stored: %s",
    async (isStored) => {
      const steps = ["no leader", "rejected"]
      let skippedMs = 0
      const now = performance.now.bind(performance)
      const clock = vi.spyOn(performance, "now").mockImplementation(() => now() + skippedMs)
      const electing = interceptRequests("$KV.", async (ask, subject) => {
        const step = steps.shift()
        if (step === undefined) return ask()
        if (step === "no leader") throw new NoReply(subject, "no responders")
        if (isStored) await ask()
        // The election took this long.
        skippedMs = giveUpMs + 1
        const error = { code: 400, err_code: 10_071, description: "wrong last sequence" }
        return { string: () => JSON.stringify({ error }) } as Msg // all that is read of it
      })
      const { api, close } = await onNats(Storage, Layer.provide(natsStorage(), electing), urls)()
      const commit = commitOf({ expected: 0, head: 1, state: "1", append: itemsOf(1, 1) })
      const outcomes = await run(api.commit([commit])).finally(() => clock.mockRestore())
      expect(steps).toEqual([])
      expect(outcomes).toMatchObject([
        isStored
          ? { _tag: "Committed" }
          : { _tag: "Refused", failure: { _tag: "StorageUnavailable" } }
      ])
      expect(await run(api.load(alice))).toMatchObject(
        isStored ? { state: "1", head: 1 } : { revision: 0, head: 0 }
      )
      await close()
    }
  )

  it("sends a lost commit again only while no other node can own its actor", async () => {
    const { deaf, layer } = deafNats()
    const { api, close } = await onNats(Storage, Layer.provide(natsStorage(), layer), urls)()
    const lostOnce = (isHeld: boolean) => {
      deaf.instead = async () => {}
      const commit = commitOf({ expected: 0, head: 0, state: "1" })
      return run(api.commit([commit], undefined, () => isHeld))
    }
    expect(await lostOnce(false)).toMatchObject([{ _tag: "Indeterminate" }])
    expect((await run(api.load(alice))).revision).toBe(0)
    expect(await lostOnce(true)).toMatchObject([{ _tag: "Committed" }])
    expect((await run(api.load(alice))).state).toBe("1")
    await close()
  })

  it("reads again whether a rejected commit was stored", async () => {
    let refuses = false
    let unknown = 0
    const errorOf = (error: object) => {
      const reply = { string: () => JSON.stringify({ error }) }
      return reply as Msg // all that is read of it
    }
    const restarted = interceptRequests("$", async (ask, subject) => {
      if (subject.startsWith("$JS.API.STREAM.MSG.GET.") && unknown > 0) {
        unknown--
        return errorOf({ code: 404, err_code: 10_059, description: "stream not found" })
      }
      const answer = await ask()
      if (!refuses || !subject.startsWith("$KV.")) return answer
      refuses = false
      unknown = 3
      return errorOf({ code: 400, err_code: 10_071, description: "wrong last sequence" })
    })
    const { api, close } = await onNats(Storage, Layer.provide(natsStorage(), restarted), urls)()
    const first = commitOf({ expected: 0, head: 0, state: "1" })
    const expected = revisionOf((await run(api.commit([first])))[0])
    refuses = true
    const commit = commitOf({ expected, head: 0, state: "2" })
    expect(await run(api.commit([commit]))).toMatchObject([{ _tag: "Committed" }])
    expect([refuses, unknown]).toEqual([false, 0])
    await close()
  })

  it("does not restore removed items when the server is killed later", async () => {
    const { api, close } = await onNats(Storage, natsStorage(), urls)()
    const keep = async (changes: Parameters<typeof commitOf>[0]) =>
      revisionOf((await run(api.commit([commitOf(changes)])))[0])
    let expected = 0
    for (const head of [1, 2, 3]) {
      expected = await keep({ expected, head, state: `${head}`, append: itemsOf(head, head) })
    }
    await keep({ expected, head: 3, state: "removed", remove: [2] })
    // Longer than markers take to expire.
    await new Promise((resolve) => setTimeout(resolve, 12_000))
    await server.restart()
    const numbers = async () => (await run(api.read(alice, 1, 10))).map(({ n }) => n)
    await expect.poll(() => numbers().catch(() => undefined), { timeout: 60_000 }).toEqual([1, 3])
    await close()
  })

  it.each([
    ["KV_actors-1", { allow_msg_ttl: true }, "allow_atomic false"],
    ["KV_records", { allow_atomic: true, allow_msg_ttl: true, max_age: 6e10 }, "max_age 6"],
    ["KV_blobs", { allow_atomic: true, allow_msg_ttl: true, storage: "memory" }, "storage memory"],
    ["KV_cluster", {}, "allow_msg_ttl false"]
  ])("takes no stream %s that was made by hand with other settings", async (name, made, said) => {
    const nats = connection({ servers: urls(), name: "test" })
    const open = Effect.scoped(Effect.gen(function*() {
      const { request } = yield* Nats
      const config = { name, subjects: [`$KV.${name.slice(3)}.>`], max_msgs_per_subject: 1 }
      const text = JSON.stringify({ ...config, discard: "new", allow_direct: true, ...made })
      const call = `$JS.API.STREAM.CREATE.${name}`
      const answer = yield* Effect.promise(() => request(call, text, undefined, 60_000))
      expect(answer.json()).not.toHaveProperty("error")
      // In turn: no port is interrupted, as a stream may still be made afterwards.
      return yield* Effect.forEach(ports, (port) => Effect.result(Layer.build(port)))
    }))
    const opened = await run(Effect.provide(open, nats)).finally(() => removeStreams(urls()))
    expect(opened.filter(Result.isFailure)).toMatchObject([
      { failure: { detail: expect.stringContaining(`${name} has ${said}`) } }
    ])
  })

  it("retains the number of buckets of a new cluster", async () => {
    const open = (buckets?: number) =>
      Effect.runPromiseExit(Effect.provide(
        Effect.void,
        natsStorage(buckets === undefined ? {} : { buckets }).pipe(
          Layer.provide(connection({ servers: urls(), name: "test" }))
        )
      ))
    for (const made of [1, 3]) {
      expect((await open(made))._tag).toBe("Success")
      expect((await open())._tag).toBe("Success")
      expect(JSON.stringify(await open(2))).toMatch(`"found":"${made} buckets, 256 shards"`)
      await removeStreams(urls())
    }
    expect((await open(65))._tag).toBe("Failure")
  })
})

describe("three servers", () => {
  let cluster: NatsCluster
  beforeAll(async () => {
    cluster = await startCluster(3)
  })
  afterAll(() => cluster.close())
  const urls = () => cluster.urls
  storageSuite("JetStream, three copies", onNats(Storage, natsStorage({ buckets: 2 }), urls))
})
