/** Removed items leave nothing on NATS once all earlier items are removed too. */
import { jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { afterAll, afterEach, beforeAll, expect, it } from "vitest"
import { shardOf } from "../../../runtime/actor/address.ts"
import type { LogItem } from "../../../runtime/actor/behavior.ts"
import { natsStorage } from "../../../runtime/nats/storage/storage.ts"
import { type Commit, Storage, type StorageApi } from "../../../runtime/ports/storage.ts"
import { randomOf } from "../../disk/seeds.ts"
import type { Harness } from "../../suites/harness.ts"
import { alice, commitOf, itemsOf, revisionOf, run } from "../../suites/storage-probe.ts"
import { onNats } from "./backend.ts"
import { type NatsServer, startServer } from "./servers.ts"

let server: NatsServer

beforeAll(async () => {
  server = await startServer()
})

afterAll(() => server.close())

let harness: Harness<StorageApi>

afterEach(() => harness.close())

/** One actor, as an activation of the runtime writes it; `reopen` is another one. */
const opened = async () => {
  harness = await onNats(Storage, natsStorage({ buckets: 1 }), () => [server.url])()
  let expected = 0
  let head = 0
  const keep = async (changes: Partial<Commit>): Promise<void> => {
    const commit = commitOf({ expected, head, ...changes })
    expected = revisionOf((await run(harness.api.commit([commit])))[0])
  }
  return {
    append: async (count: number): Promise<void> => {
      const append = itemsOf(head + 1, head + count)
      head += count
      await keep(head === count ? { append, state: "first" } : { append })
    },
    remove: (...numbers: ReadonlyArray<number>) => keep({ state: "less", remove: numbers }),
    reopen: async () => {
      harness = await harness.reopen()
      await run(harness.api.load(alice))
    },
    read: (from = 1): Promise<ReadonlyArray<LogItem>> => run(harness.api.read(alice, from, 1_000))
  }
}

/** Numbers of the log's keys on the servers. */
const keys = async (): Promise<ReadonlyArray<number>> => {
  const nc = await connect({ servers: server.url })
  try {
    const jsm = await jetstreamManager(nc)
    const log = `$KV.actors.${shardOf(alice)}.${alice.kind}.${alice.id}.log.`
    const { state } = await jsm.streams.info("KV_actors", { subjects_filter: `${log}*` })
    return Object.keys(state.subjects ?? {}).map((key) => Number(key.slice(log.length)))
  } finally {
    await nc.close()
  }
}

/** Markers expire after a while. */
const expectKeys = (numbers: ReadonlyArray<number>) =>
  expect.poll(keys, { timeout: 60_000, interval: 500 }).toEqual(numbers)

it("stores nothing for items that were removed from the beginning on", async () => {
  const mailbox = await opened()
  for (let n = 0; n < 30; n += 1) await mailbox.append(1)
  await mailbox.append(12)
  for (let n = 1; n <= 40; n += 1) await mailbox.remove(n)
  expect(await mailbox.read()).toEqual(itemsOf(41, 42))
  await expectKeys([31])
  await mailbox.reopen()
  await mailbox.append(1)
  await mailbox.remove(42, 41, 43)
  await expectKeys([])
  // The server has some items again; readers ignore them.
  await server.restart()
  await expect.poll(() => mailbox.read().catch(() => undefined), { timeout: 60_000 }).toEqual([])
  await mailbox.append(1)
  expect(await mailbox.read()).toEqual(itemsOf(44, 44))
})

it("stores a marker for items that were removed after an item, until it is removed", async () => {
  const mailbox = await opened()
  for (let n = 0; n < 600; n += 20) {
    for (let one = 0; one < 4; one += 1) await mailbox.append(5)
  }
  for (let n = 600; n > 1; n -= 1) if (n % 50 > 0) await mailbox.remove(n)
  const left = [1, ...Array.from({ length: 12 }, (_, at) => 50 * (at + 1))]
  expect((await mailbox.read()).map(({ n }) => n)).toEqual(left)
  // Longer than markers take to expire.
  await new Promise((resolve) => setTimeout(resolve, 12_000))
  expect(await keys()).toHaveLength(120)
  await server.restart()
  const numbers = async () => (await mailbox.read()).map(({ n }) => n)
  await expect.poll(() => numbers().catch(() => undefined), { timeout: 60_000 }).toEqual(left)
  await mailbox.remove(...left.filter((n) => n <= 550))
  await mailbox.reopen()
  expect(await numbers()).toEqual([600])
  await mailbox.remove(600)
  await mailbox.append(1)
  await mailbox.remove(601)
  await expectKeys([])
})

it.each(["a", "b", "c"])(
  "equals a list of items for any removals: %s",
  async (seed) => {
    const random = randomOf(seed)
    const below = (count: number) => Math.floor(random() * count)
    const mailbox = await opened()
    let left: Array<LogItem> = []
    let head = 0
    const takes: ReadonlyArray<() => Promise<void>> = [
      async () => {
        const count = 1 + below(20)
        left.push(...itemsOf(head + 1, head + count))
        head += count
        await mailbox.append(count)
      },
      // From the beginning on, or anywhere.
      async () => {
        const from = below(2) === 0 ? 0 : below(left.length)
        const gone = left.slice(from, from + 1 + below(12)).map(({ n }) => n)
        left = left.filter(({ n }) => !gone.includes(n))
        if (gone.length > 0) await mailbox.remove(...gone)
      },
      mailbox.reopen
    ]
    await takes[0]?.()
    for (let step = 0; step < 120; step += 1) {
      await takes[[0, 0, 0, 1, 1, 1, 1, 1, 2][below(9)] ?? 0]?.()
      const from = below(2) === 0 ? 1 : 1 + below(head)
      expect(await mailbox.read(from), `step ${step}`).toEqual(left.filter(({ n }) => n >= from))
    }
    await mailbox.remove(...left.map(({ n }) => n))
    expect(await mailbox.read()).toEqual([])
  }
)
