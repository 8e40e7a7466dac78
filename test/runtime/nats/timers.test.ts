/** Timers in order of time on JetStream: their keys move with the actor, and none is left over. */
import { connect } from "@nats-io/transport-node"
import { Layer } from "effect"
import fc from "fast-check"
import { afterAll, afterEach, beforeAll, expect, it, onTestFinished, vi } from "vitest"
import { shardOf } from "../../../runtime/index.ts"
import { natsStorage } from "../../../runtime/nats/storage/storage.ts"
import { blocksNear, coveringBlocks } from "../../../runtime/nats/storage/stored-timers.ts"
import { bucketNamed, timerKey } from "../../../runtime/nats/stream/index.ts"
import { Storage, type StorageApi, type TimerCursor } from "../../../runtime/ports/storage.ts"
import { commitOf, conflictOf, revisionOf, run } from "../../suites/storage-probe.ts"
import { at } from "../probe.ts"
import { dropAll, start } from "../rig.ts"
import { onNats } from "./backend.ts"
import { interceptRequests } from "./intercepted-requests.ts"
import { type NatsServer, startServer } from "./servers.ts"

let server: NatsServer
beforeAll(async () => {
  server = await startServer()
})
afterAll(() => server.close())
afterEach(dropAll)

const open = onNats(Storage, natsStorage({ buckets: 1 }), () => [server.url])
const actor = at("a")
const soonMs = 600_000

/** A node's store; both nodes have the same streams. */
const openNode = async (): Promise<StorageApi> => {
  const { api, close } = await open()
  onTestFinished(close)
  return api
}

const timesOf = async (storage: StorageApi): Promise<ReadonlyArray<number>> =>
  (await run(storage.timers(shardOf(actor), 100))).timers.map(({ atMs }) => atMs)

/** Keys of the actor's timer in the stream that are no markers, or whose markers do not expire. */
const settled = (storage: StorageApi) => expect.poll(() => timesOf(storage))

it("covers all places once, in order, with blocks of powers of ten", () => {
  const place = fc.nat({ max: 10 ** 9 })
  const first = fc.constantFrom(1, 100, 10_000, Infinity)
  fc.assert(fc.property(place, place, first, (one, other, most) => {
    const [from, end] = one < other ? [one, other] : [other, one]
    let next = from
    let steps = 0
    for (const step of coveringBlocks(from, end, most)) {
      steps++
      expect(step.length).toBeLessThanOrEqual(most === Infinity ? 18 : 28)
      for (const { place: begins, places } of step) {
        expect(begins).toBe(next)
        expect(begins % places).toBe(0)
        next += places
      }
    }
    expect(next).toBe(end)
    expect(steps).toBeLessThanOrEqual(most === Infinity ? 20 : 30)
  }))
})

it("covers all places once, in order, with blocks that are smallest at the present", () => {
  const placesOf = (ms: number) => ms * 100
  const time = fc.nat({ max: 20_000 }).map((n) => n * 100_000)
  const now = fc.nat({ max: 2_000_000_000 })
  fc.assert(fc.property(now, time, time, (nowMs, one, other) => {
    const [from, end] = one < other ? [one, other] : [other, one]
    let next = placesOf(from)
    let steps = 0
    for (const step of blocksNear(nowMs, next, placesOf(end))) {
      steps++
      for (const { place: begins, places } of step) {
        expect(begins).toBe(next)
        expect(begins % places).toBe(0)
        next += places
        const isWithin = (ms: number) => begins < placesOf(nowMs + ms) && next > placesOf(nowMs)
        if (isWithin(100_000)) expect(places).toBeLessThanOrEqual(placesOf(10_000))
        if (isWithin(1_200_000)) expect(places).toBeLessThanOrEqual(placesOf(100_000))
      }
    }
    expect(next).toBe(placesOf(end))
    expect(steps).toBeLessThanOrEqual(50)
  }))
})

it("moves with its actor to another node, and the last owner changes nothing more", async () => {
  const [before, after] = [await openNode(), await openNode()]
  const [first] = await run(before.commit([commitOf({ address: actor, state: "a", timer: 1_000 })]))
  const { revision, timer } = await run(after.load(actor))
  expect([revision, timer]).toEqual([revisionOf(first), 1_000])
  await run(after.commit([commitOf({ address: actor, expected: revision, timer: 2_000 })]))
  const late = commitOf({ address: actor, expected: revision, timer: 3_000, firedTimer: 2_000 })
  expect(conflictOf((await run(before.commit([late])))[0])).toBeDefined()
  await settled(after).toEqual([2_000])
  expect(await run(before.load(actor))).toMatchObject({ state: "a", timer: 2_000 })
})

it("removes a key that was left over, once it has fired, and keeps the timer", async () => {
  const storage = await openNode()
  const timer = Date.now() + soonMs
  await run(storage.commit([commitOf({ address: actor, timer })]))
  const nc = await connect({ servers: [server.url] })
  const bucket = bucketNamed("actors")
  for (const id of ["a", "a=gone"]) nc.publish(timerKey(bucket, at(id), 5_000), "")
  await nc.flush()
  await nc.close()
  await settled(storage).toEqual([5_000, 5_000, timer])
  const rig = await start({}, { storage })
  await settled(storage).toEqual([timer])
  const { decisions } = rig.system.snapshot().metrics.of("probe")
  expect(decisions).toBe(2)
  expect(rig.system.snapshot().earliestTimerMs).toBe(timer)
})

/** A node's store that counts the names that servers list for it, with 6,000 timers of a shard. */
const openCounting = async (firstMs: number, everyMs: number) => {
  const listed = { names: 0 }
  const counting = interceptRequests("$JS.API.STREAM.INFO.", async (ask) => {
    const reply = await ask()
    listed.names += reply.string().split("\":1").length - 1
    return reply
  })
  const layer = Layer.provide(natsStorage({ buckets: 1 }), counting)
  const { api: storage, close } = await onNats(Storage, layer, () => [server.url])()
  onTestFinished(close)
  for (let n = 0; n < 6_000; n += 500) {
    const group = Array.from({ length: 500 }, (_, index) => n + index)
    await run(
      storage.commit(
        group.map((nth) => commitOf({ address: at(`a=${nth}`), timer: firstMs + nth * everyMs }))
      )
    )
  }
  const idsOf = (first: number) => Array.from({ length: pageMax }, (_, n) => `a=${first + n}`)
  return { idsOf, listed, load: (from?: TimerCursor) => run(storage.timers(shard, pageMax, from)) }
}

const pageMax = 200
const shard = shardOf(actor)

it("lists few timers beyond the page that a load returns", async () => {
  const { idsOf, listed, load } = await openCounting(2_000_000_000_000, 250)
  let page = await load()
  listed.names = 0
  for (let loads = 1; loads <= 20; loads++) {
    page = await load(page.next)
    expect(page.timers.map(({ address: { id } }) => id)).toEqual(idsOf(loads * pageMax))
  }
  expect(listed.names).toBeLessThan(4 * 20 * pageMax)
})

it("lists few timers when it loads from the beginning, the first time and later", async () => {
  const firstMs = Date.now()
  const { idsOf, listed, load } = await openCounting(firstMs, 20)
  // A slow machine takes seconds to store the timers, so the time of the loads is set.
  const now = vi.spyOn(Date, "now")
  onTestFinished(() => now.mockRestore())
  for (const aheadMs of [5_000, 1_000, 5_000, 9_000, 13_000]) {
    now.mockReturnValue(firstMs - aheadMs)
    listed.names = 0
    const page = await load()
    expect(page.timers.map(({ address: { id } }) => id)).toEqual(idsOf(0))
    // Each block of ten seconds has 500.
    expect(listed.names).toBeLessThan(2_000)
  }
})
