/** A node whose shards move: asks wait, accepted messages end first, effects are abandoned. */
import { Effect } from "effect"
import { afterEach, describe, expect, it } from "vitest"
import { ownsAll, type PlacementApi } from "../../runtime/cluster/placement.ts"
import { type Address, shardOf } from "../../runtime/index.ts"
import { makeMemoryStorage } from "../../runtime/memory/storage.ts"
import { makeMemoryTransport } from "../../runtime/memory/transport.ts"
import type { ShardTenure } from "../../runtime/ports/index.ts"
import { at, probe } from "./probe.ts"
import { dropAll, scripted, start, turns, until } from "./rig.ts"

afterEach(dropAll)

const add = { _tag: "Add", by: 1 } as const
const to: Address = at("a")
const shard = shardOf(to)

/** A placement of one shard, moved by the test. */
const movable = (owned: boolean) => {
  let owns = owned
  let inTime = true
  let holds = true
  let claim = 0
  let taken: Parameters<PlacementApi["follow"]>[0] = () => {}
  let lost: (shard: number) => Promise<void> = () => Promise.resolve()
  let leave: () => Promise<void> | undefined = () => undefined
  const placement: PlacementApi = {
    ...ownsAll,
    owns: (asked) => asked === shard && owns,
    isLeaseValid: () => inTime,
    heldClaim: () => inTime && holds ? claim : undefined,
    follow: (onTaken, onLost) => {
      taken = onTaken
      lost = onLost
      if (owns) taken(shard, undefined)
      return () => {}
    },
    leave: () => leave()
  }
  return {
    placement,
    take: (tenure?: ShardTenure) => {
      owns = true
      claim = tenure?.claim ?? 0
      taken(shard, tenure)
    },
    lose: () => {
      owns = false
      return lost(shard)
    },
    lapse: () => void (inTime = false),
    /** The node was disconnected while another took the shard, and is back. */
    comeBack: () => {
      inTime = true
      holds = false
    },
    onLeave: (run: () => Promise<void>) => void (leave = run)
  }
}

const nodes = async (limits = {}, virtualTime = false) => {
  const transport = makeMemoryTransport()
  const storage = scripted()
  const one = movable(true)
  const other = movable(false)
  return {
    storage,
    one,
    other,
    first: await start({ limits }, { transport, storage, placement: one.placement, virtualTime }),
    second: await start({ limits }, { transport, storage, placement: other.placement, virtualTime })
  }
}

describe("an ask while its shard moves", () => {
  it("waits for the next owner, here or elsewhere", async () => {
    const { first, one, other, second } = await nodes()
    await first.ask(to, add)
    await one.lose()
    const asked = [first.ask(to, add), second.ask(to, add)]
    await new Promise((resolve) => setTimeout(resolve, 50))
    other.take()
    const replies = await Promise.all(asked)
    expect(replies).toContainEqual({ count: 2, head: 0 })
    expect(replies).toContainEqual({ count: 3, head: 0 })
  })

  it("is tried at once when this node takes the shard", async () => {
    const { one, first } = await nodes({ unownedRetryMs: 9_000, unownedRetryMaxMs: 9_000 })
    await one.lose()
    const asked = first.ask(to, add)
    await turns()
    one.take()
    expect(await asked).toEqual({ count: 1, head: 0 })
  })

  it("fails without a next owner, with too many waiting asks, and at a stop", async () => {
    const { first, second, one } = await nodes({ askDeadlineMs: 100, unownedAsksMax: 1 })
    await one.lose()
    const waits = first.ask(to, add)
    await turns()
    expect(await first.ask(to, add)).toBe("NoOwner")
    expect(await waits).toBe("NoOwner")
    const stopped = second.ask(to, add)
    await turns()
    await second.drop()
    expect(await stopped).toBe("NoOwner")
  })
})

describe("a drain", () => {
  it("waits for the asks of this node that another one is to answer", async () => {
    const { first, one, other } = await nodes()
    await one.lose()
    const asked = first.ask(to, add)
    await turns()
    let isOver = false
    const draining = Effect.runPromise(first.system.drain).then(() => isOver = true)
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(isOver).toBe(false)
    other.take()
    expect(await asked).toEqual({ count: 1, head: 0 })
    await draining
  })
})

describe("a released shard", () => {
  it("is released once its accepted messages are answered and durable", async () => {
    const { first, one, storage } = await nodes()
    await first.ask(to, add)
    storage.gate.close()
    const taken = [first.ask(to, add), first.ask(to, add)]
    await turns()
    let gone = false
    const losing = one.lose().then(() => gone = true)
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(gone).toBe(false)
    storage.gate.open()
    const [second, third] = await Promise.all(taken)
    expect([second, third]).toEqual([{ count: 2, head: 0 }, { count: 3, head: 0 }])
    await losing
    expect(first.system.snapshot().activations.get("probe")?.active).toBe(0)
  })

  it("is released after the time limit; the next owner decides the rest", async () => {
    const inner = makeMemoryStorage()
    let opens = () => {}
    const opened = new Promise<void>((resolve) => opens = resolve)
    const slow = {
      ...inner,
      load: (of: Address) => Effect.andThen(Effect.promise(() => opened), inner.load(of))
    }
    const transport = makeMemoryTransport()
    const one = movable(true)
    const other = movable(false)
    const limits = { handoffMs: 30 }
    await start({ limits }, { transport, storage: slow, placement: one.placement })
    const second = await start({ limits }, {
      transport,
      storage: inner,
      placement: other.placement
    })
    const asked = second.ask(to, add)
    await turns()
    await one.lose()
    other.take()
    expect(await asked).toEqual({ count: 1, head: 0 })
    opens()
    await turns()
    expect(await second.ask(to, { _tag: "Read" })).toEqual({ count: 1, head: 0 })
  })

  it("is read again by its next owner, which finds late commits of an earlier one", async () => {
    const deadlines = { storageDeadlineMs: 20, reloadDelayMs: 1 }
    const limits = { ...deadlines, sweepMs: 1_000, lateCommitRescanMs: 1_000 }
    const { first, one, other, second, storage } = await nodes(limits, true)
    let keep = () => {}
    storage.acts.push((group, inner) => {
      keep = () => void Effect.runSync(inner.commit(group))
      return Effect.never
    })
    const asked = first.ask(to, { _tag: "SetTimer", atMs: 5 })
    await turns()
    await first.pass(20)
    expect(await asked).toBe("StorageUnavailable")
    await one.lose()
    other.take({ claim: 2, after: 1, orphaned: false })
    await turns()
    expect(second.system.snapshot().timers).toBe(0)
    keep()
    const { timers } = await Effect.runPromise(storage.timers(shard, 10))
    expect(timers).toHaveLength(1)
    for (let left = 3; left > 0; left--) {
      await second.pass(1_000)
      await turns()
    }
    const found = await Effect.runPromise(storage.timers(shard, 10))
    expect(found.timers).toEqual([])
  })

  it("leaves its effects to the next owner, and no actor restarts for it", async () => {
    const interrupted: Array<string> = []
    const behaviors = [{
      ...probe(),
      perform: () =>
        Effect.onInterrupt(Effect.never, () =>
          Effect.sync(() => {
            interrupted.push("x")
          }))
    }]
    const one = movable(true)
    const rig = await start({ behaviors }, { placement: one.placement })
    await rig.ask(to, { _tag: "Work", name: "x", retryAtMs: 1e15 })
    await turns()
    await one.lose()
    await until(() => interrupted.length === 1)
    expect(rig.system.snapshot().metrics.of("probe").restarts).toBe(0)
    one.take()
    await rig.ask(to, { _tag: "Work", name: "y", retryAtMs: 1e15 })
    await turns()
    await one.lose()
    await until(() => interrupted.length === 2)
  })
})

describe("a node that may have lost its shards without knowing", () => {
  it("acknowledges no commit that ends then, and writes no more", async () => {
    const { first, one, storage } = await nodes({ storageDeadlineMs: 5_000, reloadDelayMs: 1 })
    await first.ask(to, add)
    storage.gate.close()
    const late = first.ask(to, add)
    await until(() => storage.groups.length === 2)
    one.lapse()
    storage.gate.open()
    expect(await late).toBe("StorageUnavailable")
    expect(await first.ask(to, add)).toBe("StorageUnavailable")
    expect(storage.groups).toHaveLength(2)
    expect(await Effect.runPromise(storage.load(to))).toMatchObject({ revision: 2 })
  })
})

describe("a node that is back after others could take its shards", () => {
  it("acknowledges no earlier commit, and continues no actor", async () => {
    const { first, one, storage } = await nodes({ handoffMs: 60_000 })
    await first.ask(to, add)
    storage.gate.close()
    const [late, next] = [first.ask(to, add), first.ask(to, { _tag: "Note", text: "x" })]
    await until(() => storage.groups.length === 2)
    one.comeBack()
    const lost = one.lose()
    storage.gate.open()
    expect(await late).toBe("StorageUnavailable")
    expect(await next).toBe("StorageUnavailable")
    await lost
    expect(storage.groups).toHaveLength(2)
  })

  it("writes nothing of such a shard, and all of the others", async () => {
    const storage = scripted()
    const mine = to
    const other = ["b", "c", "d"].map(at).find((one) => shardOf(one) !== shard) ?? to
    const placement: PlacementApi = {
      ...ownsAll,
      heldClaim: (asked) => asked === shardOf(other) ? undefined : 0
    }
    const rig = await start({ limits: { reloadDelayMs: 1 } }, { storage, placement })
    const replies = await Promise.all([rig.ask(mine, add), rig.ask(other, add)])
    expect(replies).toEqual([{ count: 1, head: 0 }, "StorageUnavailable"])
    expect(storage.groups.flat().map(({ address }) => address)).toEqual([mine])
  })
})

describe("a node that drains", () => {
  it("hands its shards over first, and accepts messages meanwhile", async () => {
    const { first, one, other } = await nodes()
    let handOver = () => {}
    one.onLeave(async () => {
      await new Promise<void>((resolve) => handOver = resolve)
      await one.lose()
      other.take()
    })
    const drained = Effect.runPromise(first.system.drain)
    expect(await first.ask(to, add)).toEqual({ count: 1, head: 0 })
    handOver()
    await drained
    expect(await first.ask(to, add)).toEqual({ count: 2, head: 0 })
  })

  it("waits for others up to its limit", async () => {
    const { first, one } = await nodes({ drainMs: 30 })
    one.onLeave(() => new Promise(() => {}))
    await Effect.runPromise(first.system.drain)
    expect(await first.ask(to, add)).toBe("Overloaded")
  })
})
