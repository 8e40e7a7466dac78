/** Many timers of one shard: all fire, once, and no load of them costs more than its page. */
import { Effect } from "effect"
import { afterEach, expect, it, vi } from "vitest"
import { shardOf } from "../../runtime/index.ts"
import { makeMemoryStorage } from "../../runtime/memory/storage.ts"
import type { StorageApi } from "../../runtime/ports/storage.ts"
import { commitOf } from "../suites/storage-probe.ts"
import { at } from "./probe.ts"
import { dropAll, start } from "./rig.ts"

afterEach(dropAll)

const count = 100_000

it("fires 100,000 timers of a shard, in order of time, by short loads", async () => {
  const inner = makeMemoryStorage()
  for (let first = 0; first < count; first += 1_000) {
    const group = Array.from({ length: 1_000 }, (_, n) => {
      // A tenth of them share one time, the others are spread over ten seconds.
      const nth = first + n
      return commitOf({
        address: at(`a=${nth}`),
        timer: nth % 10 === 0 ? 500 : nth * 7_919 % 10_000
      })
    })
    await Effect.runPromise(inner.commit(group))
  }
  let loads = 0
  let listed = 0
  const storage: StorageApi = {
    ...inner,
    timers: (shard, limit, from, untilMs) =>
      Effect.map(inner.timers(shard, limit, from, untilMs), (page) => {
        loads++
        listed += page.timers.length
        return page
      })
  }
  const limits = { timersInFlightMax: 2_000, timerBatchMax: 2_000, shardTimersMax: 2_000 }
  const rig = await start({ limits }, { storage })
  await vi.waitFor(async () => {
    expect((await Effect.runPromise(inner.timers(shardOf(at("a")), 1))).timers).toEqual([])
  }, { timeout: 60_000, interval: 50 })
  expect(rig.system.snapshot().metrics.of("probe").decisions).toBe(count)
  // Each load takes up the last one: nothing is read twice but what is in delivery.
  expect(listed).toBeLessThan(2 * count)
  expect(loads).toBeLessThan(count / 100)
}, 120_000)
