/** The contract of the contents port: it returns everything that was written, exactly once. */
import { type Context, Effect, type Layer, ManagedRuntime } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Address, address, keyOf } from "../../runtime/actor/address.ts"
import { type ActorPart, StoreContents,
  type StoreContentsApi } from "../../runtime/ports/contents.ts"
import { Records } from "../../runtime/ports/records.ts"
import { type Commit, Storage, type StorageApi } from "../../runtime/ports/storage.ts"
import { commitOf } from "./commit.ts"

/** One actor, joined from its parts. */
interface Whole extends Pick<ActorPart, "state" | "head" | "timer" | "steady"> {
  readonly items: ReadonlyArray<string>
}

const numbered = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, at) => ({ n: from + at, value: `item ${from + at}` }))

const itemTexts = (from: number, to: number) =>
  numbered(from, to).map(({ n, value }) => `${n} ${value}`)

/** Joins the parts; fails if the parts of an actor are not consecutive. */
const joinParts = async (
  parts: ReturnType<StoreContentsApi["actors"]>,
  between?: (of: Address) => Promise<void>
) => {
  const found = new Map<string, Whole>()
  let collected = new Map<number, string>()
  let current: string | undefined
  for await (const part of parts) {
    const key = keyOf(part.address)
    expect(found.has(key), `${key} twice`).toBe(false)
    expect([undefined, key]).toContain(current)
    for (const { n, value } of part.items) {
      expect(collected.has(n), `${key} ${n} twice`).toBe(false)
      collected.set(n, `${n} ${value}`)
    }
    if (part._tag === "Items") {
      current = key
      await between?.(part.address)
      continue
    }
    for (const n of part.removed) collected.delete(n)
    const { head, state, steady, timer } = part
    found.set(key, { head, state, steady, timer, items: [...collected.values()] })
    collected = new Map()
    current = undefined
  }
  expect(current).toBeUndefined()
  return found
}

/** Runs against one store, which is empty at first; `discard` deletes it. */
export const contentsSuite = <E>(
  name: string,
  make: () => Layer.Layer<StoreContents | Storage | Records, E>,
  discard: () => Promise<void>
): void => {
  describe(`contents: ${name}`, () => {
    let runtime: ManagedRuntime.ManagedRuntime<StoreContents | Storage | Records, E>
    let storage: StorageApi
    let contents: StoreContentsApi
    beforeAll(async () => {
      runtime = ManagedRuntime.make(make())
      const get = <Id extends StoreContents | Storage | Records, Api>(key: Context.Key<Id, Api>) =>
        runtime.runPromise(key)
      storage = await get(Storage)
      contents = await get(StoreContents)
    })
    afterAll(async () => {
      await runtime.dispose()
      await discard()
    })

    const commit = async (one: Partial<Commit> & Pick<Commit, "address">): Promise<number> => {
      const { revision } = await Effect.runPromise(storage.load(one.address))
      const full = commitOf({ expected: revision, ...one })
      const [outcome] = await Effect.runPromise(storage.commit([full]))
      if (outcome?._tag !== "Committed") throw new Error(`conflict: ${JSON.stringify(outcome)}`)
      return outcome.revision
    }
    const one = async (of: Address) => (await joinParts(contents.actor(of))).get(keyOf(of))

    it("is empty at first", async () => {
      expect((await joinParts(contents.actors())).size).toBe(0)
      for await (const record of contents.records()) expect(record).toBeUndefined()
      expect(await one(address("box", "none"))).toBeUndefined()
    })

    it("returns every actor once, with its log, its head and its timer", async () => {
      const expected = new Map<string, Whole>()
      const steady = true
      for (let n = 0; n < 40; n++) {
        const of = address("plain", `p${n}`)
        await commit({ address: of, state: `state ${n} \n "é€`, timer: n % 2 === 0 ? n : null })
        const timer = n % 2 === 0 ? n : undefined
        expected.set(keyOf(of), { state: `state ${n} \n "é€`, head: 0, timer, items: [], steady })
      }
      const gaps = address("box", "gaps")
      await commit({ address: gaps, state: "a", head: 9, append: numbered(3, 9) })
      await commit({ address: gaps, state: "b", head: 12, remove: [4, 9] })
      const left = [...itemTexts(3, 3), ...itemTexts(5, 8)]
      expected.set(keyOf(gaps), { state: "b", head: 12, timer: undefined, items: left, steady })
      const ahead = address("box", "ahead")
      await commit({ address: ahead, state: "s", head: 0 })
      for (let n = 1; n <= 6; n++) await commit({ address: ahead, append: numbered(n, n) })
      const items = itemTexts(1, 6)
      expected.set(keyOf(ahead), { state: "s", head: 6, timer: undefined, items, steady })
      const long = address("box", "long")
      for (let from = 1; from <= 1_200; from += 300) {
        await commit({
          address: long,
          state: "l",
          head: from + 299,
          append: numbered(from, from + 299)
        })
      }
      await commit({ address: long, state: "m", head: 1_200, remove: [1, 2, 700] })
      const many = [...itemTexts(3, 699), ...itemTexts(701, 1_200)]
      expected.set(keyOf(long), { state: "m", head: 1_200, timer: undefined, items: many, steady })
      const withoutState = address("box", "bare")
      await commit({ address: withoutState, append: numbered(1, 3), timer: 7 })
      const few = itemTexts(1, 3)
      expected.set(keyOf(withoutState), { state: undefined, head: 3, timer: 7, items: few, steady })
      const signaled = address("background-task", "p0=signaled")
      await commit({
        address: address("plain", "p0"),
        signals: [{ address: signaled, atMs: 5 }]
      })
      expected.set(keyOf(signaled), { state: undefined, head: 0, timer: 5, items: [], steady })
      const removed = address("box", "gone")
      await commit({ address: removed, state: "x", head: 2, append: numbered(1, 2), timer: 1 })
      await commit({ address: removed, state: null })
      const recreated = address("box", "again")
      await commit({ address: recreated, state: "x", head: 5, append: numbered(1, 5) })
      await commit({ address: recreated, state: null })
      await commit({ address: recreated, state: "y", head: 1, append: [{ n: 1, value: "item 1" }] })
      expected.set(keyOf(recreated), {
        state: "y",
        head: 1,
        timer: undefined,
        items: itemTexts(1, 1),
        steady
      })
      const found = await joinParts(contents.actors())
      expect(new Map([...found].sort())).toEqual(new Map([...expected].sort()))
      expect(await one(long)).toEqual(expected.get(keyOf(long)))
      expect(await one(removed)).toBeUndefined()
    })

    it("returns the actors of the first kinds before all others, each actor once", async () => {
      for (const kind of ["a", "z"]) {
        for (const id of ["1", "2"]) await commit({ address: address(kind, id), state: id })
      }
      const all = await joinParts(contents.actors())
      const ordered = [...await joinParts(contents.actors(["z", "none", "a"]))]
      expect(ordered.slice(0, 4).map(([key]) => key.split("/")[0])).toEqual(["z", "z", "a", "a"])
      expect(new Map(ordered.toSorted())).toEqual(new Map([...all].toSorted()))
    })

    it("omits actors of the first kinds that begin while the others are read", async () => {
      const parts = contents.actors(["z"])
      let seen = 0
      for await (const { address: { id, kind } } of parts) {
        if (seen++ === 2) await commit({ address: address("z", "late"), state: "late" })
        expect([kind, id]).not.toEqual(["z", "late"])
      }
      expect((await one(address("z", "late")))?.state).toBe("late")
    })

    it("returns an actor that had only a signal, and gets a state meanwhile", async () => {
      const [early, late] = [address("task", "p1=a"), address("task", "p1=b")]
      await commit({ address: address("task", "p1=z"), state: "z" })
      await commit({
        address: address("plain", "p1"),
        signals: [early, late].map((of) => ({ address: of, atMs: 5 }))
      })
      for (const first of [["task"], []]) {
        const found: Array<string> = []
        for await (const { address: of } of contents.actors(first)) {
          found.push(keyOf(of))
          // The records of the kind have been listed by now.
          if (of.id === "p1=z") await commit({ address: early, state: "a", timer: 9 })
        }
        const tasks = found.filter((key) => key.startsWith("task/"))
        expect(tasks.toSorted()).toEqual(["task/p1=a", "task/p1=b", "task/p1=z"])
        await commit({ address: early, state: null })
        await commit({ address: address("plain", "p1"), signals: [{ address: early, atMs: 5 }] })
      }
    })

    it("returns the ids of the actors of a kind that have a state", async () => {
      const ids: Array<string> = []
      for await (const page of contents.ids("z")) ids.push(...page)
      expect(ids.toSorted()).toEqual(["1", "2", "late"])
    })

    it("returns a consistent snapshot of an actor that changes meanwhile", async () => {
      const of = address("busy", "b")
      for (const from of [1, 301, 601]) {
        await commit({
          address: of,
          state: "0",
          head: from + 299,
          append: numbered(from, from + 299)
        })
      }
      await commit({ address: of, state: "0", head: 2_000 })
      let rounds = 0
      const whole = (await joinParts(contents.actor(of), async () => {
        if (rounds++ > 1) return
        // Removes items that were returned already, and appends others.
        await commit({
          address: of,
          state: `${rounds}`,
          head: 1_999 + rounds,
          remove: [rounds, rounds + 10]
        })
        await commit({
          address: of,
          state: `${rounds}`,
          head: 2_000 + rounds,
          append: numbered(2_000 + rounds, 2_000 + rounds)
        })
      })).get(keyOf(of))
      expect(rounds).toBeGreaterThan(1)
      const items = [
        ...itemTexts(3, 10),
        ...itemTexts(13, 900),
        ...itemTexts(2_001, 2_002)
      ]
      expect(whole).toEqual({ state: "2", head: 2_002, timer: undefined, items, steady: true })
    })

    it("returns every record of every table", async () => {
      const records = await runtime.runPromise(Records)
      const changes = Array.from({ length: 600 }, (_, n) => ({
        table: n % 3 === 0 ? "one" : "two",
        key: `owner/${n}/é ü`,
        value: `value ${n}`
      }))
      await Effect.runPromise(records.write(changes))
      await Effect.runPromise(records.write([
        { table: "one", key: "owner/0/é ü", value: null },
        { table: "two", key: "owner/1/é ü", value: "later" }
      ]))
      const found = new Map<string, string>()
      for await (const { key, table, value } of contents.records()) {
        expect(found.has(`${table} ${key}`)).toBe(false)
        found.set(`${table} ${key}`, value)
      }
      expect(found.size).toBe(599)
      expect(found.get("two owner/1/é ü")).toBe("later")
      expect(found.get("one owner/3/é ü")).toBe("value 3")
    })
  })
}
