/** Fences: two systems that both believe to own every shard, over one storage. */
import { Effect } from "effect"
import { afterEach, describe, expect, it } from "vitest"
import { makeMemoryStorage } from "../../runtime/memory/storage.ts"
import type { Commit, StorageApi } from "../../runtime/ports/storage.ts"
import { at, type Reply } from "./probe.ts"
import { dropAll, start } from "./rig.ts"

afterEach(dropAll)

const add = { _tag: "Add", by: 1 } as const
const countOf = (reply: Reply | string): number =>
  typeof reply === "string" ? Number.NaN : reply.count

/** The same store without fences: every expected revision is taken as the actual one. */
const unfenced = (inner: StorageApi): StorageApi => ({
  ...inner,
  commit: (group) =>
    Effect.gen(function*() {
      const blind: Array<Commit> = []
      for (const commit of group) {
        const { head, revision } = yield* inner.load(commit.address)
        const append = commit.append.map(({ value }, n) => ({ n: head + n + 1, value }))
        blind.push({ ...commit, expected: revision, append })
      }
      return yield* inner.commit(blind)
    })
})

/** Adds from two systems at once; returns the acknowledged count and the stored one. */
const race = async (storage: StorageApi) => {
  const limits = { decisionAttemptsMax: 1_000 }
  const nodes = [await start({ limits }, { storage }), await start({ limits }, { storage })]
  const replies: Array<Reply | string> = []
  for (let round = 0; round < 20; round++) {
    replies.push(...await Promise.all(nodes.map(({ ask }) => ask(at("a"), add))))
  }
  await dropAll()
  const after = await start({}, { storage })
  const acknowledged = replies.filter((reply) => typeof reply !== "string")
  const kept = countOf(await after.ask(at("a"), { _tag: "Read" }))
  return { acknowledged: acknowledged.map(countOf), kept }
}

describe("two owners of one actor", () => {
  it("lose no update, and no two get the same answer", async () => {
    const { acknowledged, kept } = await race(makeMemoryStorage())
    expect(acknowledged.length).toBe(40)
    expect(kept).toBe(40)
    expect(new Set(acknowledged).size).toBe(40)
  })

  it("would lose updates without the fence, so the test above is effective", async () => {
    const { acknowledged, kept } = await race(unfenced(makeMemoryStorage()))
    expect(kept).toBeLessThan(acknowledged.length)
  })

  it("append each under its own number", async () => {
    const storage = makeMemoryStorage()
    const limits = { decisionAttemptsMax: 100 }
    const nodes = [await start({ limits }, { storage }), await start({ limits }, { storage })]
    const texts = Array.from({ length: 20 }, (_, n) => `t${n}`)
    const replies = await Promise.all(
      texts.map((text, n) => nodes[n % 2]?.ask(at("a"), { _tag: "Note", text }))
    )
    const log = await Effect.runPromise(storage.read(at("a"), 1, 100))
    expect(log.map(({ value }) => value).sort()).toEqual([...texts].sort())
    for (const [n, reply] of replies.entries()) {
      const head = typeof reply === "object" ? reply.head : 0
      expect(log[head - 1]).toEqual({ n: head, value: texts[n] })
    }
  })

  it("may not append to an actor that the other has changed", async () => {
    const storage = makeMemoryStorage()
    const [stale, owner] = [await start({}, { storage }), await start({}, { storage })]
    await stale.ask(at("a"), { _tag: "Note", text: "x" })
    await owner.ask(at("a"), { _tag: "Stiffen" })
    expect(await stale.ask(at("a"), { _tag: "Note", text: "y" })).toBe("Rigid")
    expect((await Effect.runPromise(storage.read(at("a"), 1, 9))).length).toBe(1)
  })

  it("may not set the timer of an actor that the other has changed", async () => {
    const storage = makeMemoryStorage()
    const [stale, owner] = [await start({}, { storage }), await start({}, { storage })]
    await stale.ask(at("a"), add)
    await owner.ask(at("a"), { _tag: "Stiffen" })
    expect(await stale.ask(at("a"), { _tag: "SetTimer", atMs: 1e15 })).toBe("Rigid")
  })
})
