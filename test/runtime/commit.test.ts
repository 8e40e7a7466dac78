/** One message: decided at once, committed in a group, replied to when durable. */
import { Effect } from "effect"
import { decodeStoredState } from "../../runtime/actor/format.ts"
import { afterEach, describe, expect, it } from "vitest"
import { makeMemoryStorage } from "../../runtime/memory/storage.ts"
import { at, probe, type Reply, type State } from "./probe.ts"
import { dies, dropAll, fails, hangs, isFull, keptAndHangs, scripted, start, turns } from "./rig.ts"

afterEach(dropAll)

const count = (reply: Reply | string): number =>
  typeof reply === "string" ? Number.NaN : reply.count
const add = { _tag: "Add", by: 1 } as const
const read = { _tag: "Read" } as const

describe("group commit", () => {
  it("writes the decisions of one turn of many actors as one group", async () => {
    const storage = scripted()
    const { ask } = await start({}, { storage })
    await Promise.all(["a", "b", "c"].map((id) => ask(at(id), add)))
    expect(storage.groups.map((group) => group.length)).toEqual([3])
  })

  it("merges the decisions of one actor: the later state wins, items add up", async () => {
    const storage = scripted()
    const { ask } = await start({}, { storage })
    await ask(at("a"), read)
    await Promise.all([
      ask(at("a"), add),
      ask(at("a"), { _tag: "Note", text: "x" }),
      ask(at("a"), { _tag: "Note", text: "y" }),
      ask(at("a"), add)
    ])
    expect(storage.groups.length).toBe(1)
    const [commit] = storage.groups[0] ?? []
    expect(commit?.append).toEqual([{ n: 1, value: "x" }, { n: 2, value: "y" }])
    expect(JSON.parse(decodeStoredState(commit?.state ?? "").text)).toMatchObject({ count: 2 })
    expect(commit?.head).toBe(2)
  })

  it("has at most one commit of an actor in flight, and merges later decisions", async () => {
    const storage = scripted()
    const { ask } = await start({ limits: { groupsInFlightMax: 4 } }, { storage })
    storage.gate.close()
    const replies = [ask(at("a"), add)]
    await turns()
    for (let more = 0; more < 5; more++) {
      replies.push(ask(at("a"), add))
      await turns(2)
    }
    expect(storage.groups.length).toBe(1)
    const other = ask(at("b"), add)
    await turns()
    expect(storage.groups.length).toBe(2)
    storage.gate.open()
    expect((await Promise.all(replies)).map(count)).toEqual([1, 2, 3, 4, 5, 6])
    expect(count(await other)).toBe(1)
    expect(storage.groups.length).toBe(3)
  })

  it("splits groups and commits at their limits, in order", async () => {
    const storage = scripted()
    const limits = { groupCommitsMax: 2, commitItemsMax: 3 }
    const { ask } = await start({ limits }, { storage })
    const notes = await Promise.all(
      Array.from({ length: 10 }, (_, n) => ask(at("a"), { _tag: "Note", text: `n${n}` }))
    )
    expect(notes.map((reply) => typeof reply === "string" ? reply : reply.head)).toEqual(
      [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    )
    await Promise.all(["b", "c", "d", "e", "f"].map((id) => ask(at(id), add)))
    for (const group of storage.groups) {
      expect(group.length).toBeLessThanOrEqual(2)
      for (const { append } of group) expect(append.length).toBeLessThanOrEqual(3)
    }
  })
})

describe("replies", () => {
  it("wait until all that they depend on is durable, reads and refusals too", async () => {
    const storage = scripted()
    const { ask } = await start({}, { storage })
    await ask(at("a"), read)
    storage.gate.close()
    const order: Array<string> = []
    const asked = [
      ask(at("a"), add).then((reply) => order.push(`added ${count(reply)}`)),
      ask(at("a"), read).then((reply) => order.push(`read ${count(reply)}`)),
      ask(at("a"), { _tag: "Refuse" }).then((reply) => order.push(`refused ${String(reply)}`))
    ]
    await turns()
    const later = ask(at("a"), read).then((reply) => order.push(`then ${count(reply)}`))
    await turns()
    expect(order).toEqual([])
    storage.gate.open()
    await Promise.all([...asked, later])
    expect(order).toEqual(["added 1", "read 1", "refused No", "then 1"])
  })

  it("of a read with nothing pending do not wait for a commit", async () => {
    const storage = scripted()
    const { ask } = await start({}, { storage })
    expect(await ask(at("a"), read)).toEqual({ count: 0, head: 0 })
    expect(storage.groups.length).toBe(0)
  })

  it("that throw in their receiver affect no other actor", async () => {
    const storage = scripted()
    const { ask, logs, system } = await start({}, { storage })
    system.askByCallback(at("a"), add, () => {
      throw new Error("a receiver's own")
    })
    const replies = [ask(at("a"), add), ask(at("b"), add)]
    expect((await Promise.all(replies)).map(count)).toEqual([2, 1])
    expect(count(await ask(at("a"), add))).toBe(3)
    expect(logs.join()).toContain("a defect that does not restart the actor")
  })

  it("may send the next ask: the order is preserved and the stack does not grow", async () => {
    const { system } = await start()
    const seen: Array<number> = []
    await new Promise<void>((resolve) => {
      const next = (left: number): void =>
        system.askByCallback(at("a"), left % 100 === 0 ? add : read, (_, reply) => {
          seen.push(count(reply as Reply)) // a probe's
          left === 0 ? resolve() : next(left - 1)
        })
      next(20_000)
    })
    expect(seen.length).toBe(20_001)
    expect(seen).toEqual([...seen].sort((one, other) => one - other))
  })
})

describe("a commit that is lost", () => {
  it("is decided again, in order, invisibly to callers", async () => {
    const storage = scripted()
    const { ask } = await start({}, { storage })
    storage.acts.push(fails)
    const texts = ["a", "b", "c", "d"]
    const first = texts.slice(0, 2).map((text) => ask(at("a"), { _tag: "Note", text }))
    await turns(1)
    const then = texts.slice(2).map((text) => ask(at("a"), { _tag: "Note", text }))
    expect(await Promise.all([...first, ...then])).toEqual(
      [1, 2, 3, 4].map((head) => ({ count: 0, head }))
    )
    const log = await Effect.runPromise(storage.read(at("a"), 1, 10))
    expect(log.map(({ value }) => value)).toEqual(texts)
  })

  it("is an error while the store is away; the actor recovers with the store", async () => {
    const storage = scripted()
    const { ask } = await start({ limits: { reloadDelayMs: 1 } }, { storage })
    storage.acts.push(fails, fails, fails)
    expect(await ask(at("a"), add)).toBe("StorageUnavailable")
    expect(count(await ask(at("a"), add))).toBe(1)
  })

  it("on a full disk fails at once; reads continue", async () => {
    const storage = scripted()
    const { ask } = await start({ limits: { reloadDelayMs: 1 } }, { storage })
    await ask(at("a"), add)
    storage.acts.push(isFull)
    const asked = [ask(at("a"), add), ask(at("a"), read)]
    expect(await Promise.all(asked)).toEqual(["StorageFull", { count: 1, head: 0 }])
    expect(storage.groups.length).toBe(2)
    expect(count(await ask(at("a"), add))).toBe(2)
  })

  it("without an answer fails its callers at the deadline, and is not decided twice", async () => {
    const storage = scripted()
    const limits = { storageDeadlineMs: 60, reloadDelayMs: 1 }
    const { ask } = await start({ limits }, { storage })
    storage.acts.push(keptAndHangs, hangs, dies)
    expect(await ask(at("a"), add)).toBe("StorageUnavailable")
    expect(await ask(at("a"), read)).toEqual({ count: 1, head: 0 })
    expect(await ask(at("a"), add)).toBe("StorageUnavailable")
    expect(await ask(at("a"), add)).toBe("StorageUnavailable")
    expect(count(await ask(at("a"), add))).toBe(2)
  })

  it("with fewer outcomes than commits fails only those without one", async () => {
    const storage = scripted()
    const { ask } = await start({}, { storage })
    await Promise.all([ask(at("a"), read), ask(at("b"), read)])
    storage.acts.push((group, inner) => inner.commit(group.slice(0, 1)))
    expect(await Promise.all([ask(at("a"), add), ask(at("b"), add)])).toEqual([
      { count: 1, head: 0 },
      "StorageUnavailable"
    ])
  })
})

describe("loading", () => {
  it("that fails or hangs is retried, then reported, and leaves no activation", async () => {
    const storage = scripted()
    const limits = { storageDeadlineMs: 20, reloadDelayMs: 1 }
    const { ask, system } = await start({ limits }, { storage })
    storage.loads.act = () => Effect.never
    expect(await ask(at("a"), add)).toBe("StorageUnavailable")
    expect(storage.loads.count).toBe(3)
    expect(system.snapshot().activations.get("probe")).toEqual({ active: 0, queued: 0 })
    storage.loads.act = () => Effect.die(new Error("the store's own defect"))
    expect(await ask(at("a"), add)).toBe("StorageUnavailable")
    expect(system.snapshot().metrics.of("probe").restarts).toBe(0)
    storage.loads.act = undefined
    expect(count(await ask(at("a"), add))).toBe(1)
  })
})

describe("overload", () => {
  it("rejects messages above the inbox limit, only for that actor", async () => {
    const storage = scripted()
    const { ask } = await start({ limits: { inboxMax: 3 } }, { storage })
    storage.gate.close()
    const asked = [1, 2, 3, 4].map(() => ask(at("a"), add))
    const other = ask(at("b"), add)
    expect(await asked[3]).toBe("Overloaded")
    storage.gate.open()
    expect((await Promise.all(asked.slice(0, 3))).map(count)).toEqual([1, 2, 3])
    expect(count(await other)).toBe(1)
    expect(count(await ask(at("a"), add))).toBe(4)
  })
})

describe("removing an actor", () => {
  it("leaves nothing; the next message finds a new actor", async () => {
    const storage = scripted(makeMemoryStorage())
    const { ask } = await start({}, { storage })
    await ask(at("a"), { _tag: "Note", text: "x" })
    await ask(at("a"), add)
    const asked = [
      ask(at("a"), add),
      ask(at("a"), { _tag: "Vanish" }),
      ask(at("a"), add),
      ask(at("a"), { _tag: "Note", text: "x" })
    ]
    expect(await Promise.all(asked)).toEqual([
      { count: 2, head: 1 },
      { count: 2, head: 1 },
      { count: 1, head: 0 },
      { count: 1, head: 1 }
    ])
    await ask(at("a"), { _tag: "Vanish" })
    expect(await Effect.runPromise(storage.load(at("a")))).toMatchObject({
      state: undefined,
      head: 0
    })
    expect(await Effect.runPromise(storage.read(at("a"), 1, 9))).toEqual([])
  })
})

describe("the log", () => {
  it("is recalled on activation, by key and within its window", async () => {
    const storage = makeMemoryStorage()
    const before = await start({}, { storage })
    for (const text of ["a", "b", "c", "d"]) await before.ask(at("a"), { _tag: "Note", text })
    expect(await before.ask(at("a"), { _tag: "Note", text: "b" })).toMatchObject({ seen: 2 })
    await before.drop()
    const { ask } = await start({}, { storage })
    expect(await ask(at("a"), { _tag: "Note", text: "d" })).toMatchObject({ seen: 4 })
    expect(await ask(at("a"), { _tag: "Note", text: "a" })).toEqual({ count: 0, head: 5 })
  })

  it("takes the key of an item from the cell, without reading it from the item", async () => {
    const keyed: Array<string> = []
    const recall = {
      items: 3,
      keyOf: (value: string) => {
        keyed.push(value)
        return value
      },
      restore: (state: State) => state
    }
    const { ask } = await start({ behaviors: [{ ...probe(), recall }] })
    for (const text of ["given", "x"]) await ask(at("a"), { _tag: "Note", text })
    expect(keyed).toEqual(["x"])
    expect(await ask(at("a"), { _tag: "Note", text: "given" })).toMatchObject({ seen: 1 })
    expect(await ask(at("a"), { _tag: "Note", text: "x" })).toMatchObject({ seen: 2 })
  })

  it("preserves its head when its items are removed", async () => {
    const storage = makeMemoryStorage()
    const before = await start({}, { storage })
    await Promise.all(["a", "b"].map((text) => before.ask(at("a"), { _tag: "Note", text })))
    await before.ask(at("a"), { _tag: "Trim", upTo: 2 })
    await before.drop()
    const { ask } = await start({}, { storage })
    expect(await ask(at("a"), { _tag: "Note", text: "c" })).toEqual({ count: 0, head: 3 })
  })
})
