/** Asks across nodes: two systems share one transport and own half of the shards each. */
import { Effect, Fiber } from "effect"
import { afterEach, describe, expect, it } from "vitest"
import { decodeReply, encodeAskFailure, encodeReply } from "../../runtime/actor/envelope.ts"
import { ownsAll, type PlacementApi } from "../../runtime/cluster/placement.ts"
import { type Address, shardOf } from "../../runtime/index.ts"
import { makeMemoryStorage } from "../../runtime/memory/storage.ts"
import { makeMemoryTransport } from "../../runtime/memory/transport.ts"
import { at, probe } from "./probe.ts"
import { dropAll, type Rig, scripted, start, turns, until } from "./rig.ts"
import { requestOf } from "../suites/request.ts"

afterEach(dropAll)

const add = { _tag: "Add", by: 1 } as const
const read = { _tag: "Read" } as const

/** A placement whose shards a test moves. */
const movable = (owned: ReadonlyArray<number>) => {
  const shards = new Set(owned)
  let taken: (shard: number) => void = () => {}
  let lost: (shard: number) => Promise<void> = () => Promise.resolve()
  const placement: PlacementApi = {
    ...ownsAll,
    owns: (shard) => shards.has(shard),
    follow: (onTaken, onLost) => {
      taken = onTaken
      lost = onLost
      for (const shard of shards) taken(shard)
      return () => {}
    }
  }
  return {
    placement,
    take: (shard: number) => {
      shards.add(shard)
      taken(shard)
    },
    lose: (shard: number): Promise<void> => {
      shards.delete(shard)
      return lost(shard)
    }
  }
}

const all = Array.from({ length: 256 }, (_, shard) => shard)
const even = all.filter((shard) => shard % 2 === 0)
const odd = all.filter((shard) => shard % 2 === 1)

const twoNodes = async () => {
  const storage = scripted()
  const transport = makeMemoryTransport()
  const one = movable(even)
  const other = movable(odd)
  const limits = { askDeadlineMs: 200 }
  const nodes: [Rig, Rig] = [
    await start({ limits }, { storage, transport, placement: one.placement }),
    await start({ limits }, { storage, transport, placement: other.placement })
  ]
  return { storage, transport, one, other, nodes }
}

const resident = ({ system }: Rig): number =>
  system.snapshot().activations.get("probe")?.active ?? 0

const owned = (parity: number): Address => {
  for (let n = 0;; n++) if (shardOf(at(`p${n}`)) % 2 === parity) return at(`p${n}`)
}

describe("an ask of another node's actor", () => {
  it("reaches it from any node, and returns its replies and refusals", async () => {
    const { nodes: [one, other] } = await twoNodes()
    for (const to of [owned(0), owned(1)]) {
      expect(await one.ask(to, add)).toEqual({ count: 1, head: 0 })
      expect(await other.ask(to, add)).toEqual({ count: 2, head: 0 })
      expect(await other.ask(to, { _tag: "Refuse" })).toBe("No")
    }
    expect([resident(one), resident(other)]).toEqual([1, 1])
  })

  it("returns its failures unchanged", async () => {
    const { nodes: [one] } = await twoNodes()
    expect(await one.ask(owned(1), { _tag: "Break" })).toBe("ActorDefect")
    const failure = await Effect.runPromise(Effect.flip(one.system.ask(owned(1), {
      _tag: "Nonsense"
    })))
    expect(failure).toMatchObject({ _tag: "UnknownMessage", detail: "no message of a probe" })
  })

  it("without an owner or an answer in time fails accordingly", async () => {
    const { nodes: [one, other], storage } = await twoNodes()
    storage.gate.close()
    expect(await one.ask(owned(1), add)).toBe("AskTimeout")
    storage.gate.open()
    await other.drop()
    expect(await one.ask(owned(1), add)).toBe("NoOwner")
  })

  it("with a message that is no JSON fails without an answer lost", async () => {
    const { nodes: [one] } = await twoNodes()
    const endless: Record<string, unknown> & { _tag: string } = { _tag: "Add" }
    endless["itself"] = endless
    const fiber = Effect.runFork(Effect.flip(one.system.ask(owned(1), endless)))
    expect(await Effect.runPromise(Fiber.join(fiber))).toMatchObject({ _tag: "NoOwner" })
  })
})

describe("a message from outside", () => {
  const send = async (envelope: string, reply?: unknown): Promise<unknown> => {
    const transport = makeMemoryTransport()
    const behavior = probe()
    const behaviors = [{
      ...behavior,
      ...reply === undefined ? {} : { initial: { _tag: "Idle", count: reply } }
    }]
    await start({ behaviors }, { transport })
    return JSON.parse(await Effect.runPromise(requestOf(transport, at("a"), envelope, 1_000)))
  }

  it("is JSON and decoded by its behavior", async () => {
    expect(await send("{\"_tag\":\"Add\",\"by\":2}")).toEqual({
      _tag: "Reply",
      reply: { count: 2, head: 0 }
    })
  })

  it("that is unreadable is answered with UnknownMessage", async () => {
    for (const envelope of ["", "{", "null", "[]", "7", "{}", "{\"_tag\":\"constructor\"}"]) {
      expect(await send(envelope)).toMatchObject({
        _tag: "Failure",
        failure: { _tag: "UnknownMessage", key: "probe/a" }
      })
    }
  })

  it("whose reply is no JSON is indeterminate: the actor may have changed", async () => {
    expect(await send("{\"_tag\":\"Read\"}", 1n)).toMatchObject({
      _tag: "Failure",
      failure: { _tag: "AskTimeout" }
    })
  })
})

describe("the answer's envelope", () => {
  it("that is none is a failure, not a defect", () => {
    for (const text of ["", "{", "null", "{\"_tag\":\"Reply\"", "{\"_tag\":\"Other\"}"]) {
      expect(decodeReply("probe/a", text)).toMatchObject({
        failure: { _tag: "UnknownMessage", key: "probe/a" }
      })
    }
    const unheard = "{\"_tag\":\"Failure\",\"failure\":{\"_tag\":\"Unheard\"}}"
    expect(decodeReply("probe/a", unheard)).toMatchObject({ failure: { _tag: "UnknownMessage" } })
  })

  it("encodes any JSON reply, and none", () => {
    for (const reply of [null, 0, "", [], { _tag: "Refused", reason: "No" }, undefined]) {
      expect(decodeReply("probe/a", encodeReply(reply))).toMatchObject({ success: reply })
    }
  })

  it("encodes every failure", async () => {
    const errors = await import("../../runtime/actor/errors.ts")
    const key = "probe/a"
    const failures = [
      new errors.ActorDefect({ key }),
      new errors.AskTimeout({ key, deadlineMs: 1 }),
      new errors.NoOwner({ key, retryAfterMs: 2 }),
      new errors.Overloaded({ key, retryAfterMs: 3 }),
      new errors.Quarantined({ key, retryAfterMs: 4 }),
      new errors.StorageCorrupted({ detail: "d" }),
      new errors.StorageFull({ detail: "f" }),
      new errors.StorageUnavailable({ detail: "u" }),
      new errors.UnknownMessage({ key, detail: "m" })
    ]
    for (const failure of failures) {
      const answer = decodeReply(key, encodeAskFailure(failure))
      expect(answer).toMatchObject({ failure: { ...failure } })
      expect("failure" in answer && answer.failure instanceof failure.constructor).toBe(true)
    }
  })
})

describe("a shard that moves", () => {
  it("ends its actors here; waiting asks fail, decisions are committed", async () => {
    const { nodes: [one, other], one: first, other: second, storage } = await twoNodes()
    const to = owned(0)
    await one.ask(to, add)
    storage.gate.close()
    const decided = one.ask(to, add)
    await turns()
    const gone = first.lose(shardOf(to))
    expect(await one.ask(to, add)).toBe("NoOwner")
    storage.gate.open()
    expect(await decided).toEqual({ count: 2, head: 0 })
    await gone
    second.take(shardOf(to))
    expect(await one.ask(to, add)).toEqual({ count: 3, head: 0 })
    expect([resident(one), resident(other)]).toEqual([0, 1])
  })

  it("and returns has the other node's changes, also in a read", async () => {
    const { nodes: [one, other], one: first, other: second } = await twoNodes()
    const to = owned(0)
    await one.ask(to, add)
    await first.lose(shardOf(to))
    second.take(shardOf(to))
    await other.ask(to, add)
    await second.lose(shardOf(to))
    first.take(shardOf(to))
    expect(await one.ask(to, read)).toEqual({ count: 2, head: 0 })
  })

  it("fires its timers at its new owner, and only there", async () => {
    const { nodes: [one, other], one: first, other: second, storage } = await twoNodes()
    const to = owned(0)
    await one.ask(to, { _tag: "SetTimer", atMs: Date.now() + 150 })
    expect(one.system.snapshot().timers).toBe(1)
    void first.lose(shardOf(to))
    expect(one.system.snapshot().timers).toBe(0)
    second.take(shardOf(to))
    expect(other.system.snapshot().timers).toBe(1)
    await until(async () =>
      (await Effect.runPromise(storage.timers(shardOf(to), 1))).timers.length === 0
    )
    expect(resident(one)).toBe(0)
  })

  it("is served while its timers cannot be read; they fire later", async () => {
    const inner = makeMemoryStorage()
    const before = await start({}, { storage: inner })
    await before.ask(at("a"), { _tag: "SetTimer", atMs: Date.now() })
    await before.drop()
    let refusals = 256
    const storage = {
      ...inner,
      timers: (shard: number, limit: number) =>
        Effect.suspend(() =>
          refusals-- > 0 ? Effect.die(new Error("not yet")) : inner.timers(shard, limit)
        )
    }
    const { ask, system } = await start({ limits: { timerRetryMs: 20 } }, { storage })
    expect(await ask(at("b"), add)).toEqual({ count: 1, head: 0 })
    await until(() => system.snapshot().metrics.of("probe").decisions > 1)
  })
})

describe("watching", () => {
  it("reports each commit, with the durable head", async () => {
    const { nodes: [one, other], storage } = await twoNodes()
    const to = owned(0)
    await one.ask(to, read)
    const heard: Array<string> = []
    const end = other.system.watch(to, (hint) => heard.push(hint))
    storage.gate.close()
    const first = one.ask(to, { _tag: "Note", text: "x" })
    await turns()
    const second = one.ask(to, { _tag: "Note", text: "y" })
    await turns()
    expect(heard).toEqual([])
    storage.gate.open()
    await Promise.all([first, second])
    await until(() => heard.length === 2)
    expect(heard).toEqual(["1", "2"])
    end()
    await one.ask(to, { _tag: "Note", text: "z" })
    await turns()
    expect(heard.length).toBe(2)
  })
})
