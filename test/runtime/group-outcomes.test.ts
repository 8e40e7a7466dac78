/** Each commit of a group settles by itself, and each stream of the store has bounds of its own. */
import { Effect } from "effect"
import { afterEach, describe, expect, it } from "vitest"
import { type Address, shardOf } from "../../runtime/actor/address.ts"
import { isIndeterminate, StorageFull, StorageUnavailable,
  ValueTooLarge } from "../../runtime/actor/errors.ts"
import { ownsAll, type PlacementApi } from "../../runtime/cluster/placement.ts"
import { withLeaseGuard } from "../../runtime/commit/lease-guard.ts"
import { errorOf } from "../../runtime/definition/errors.ts"
import type { Peers } from "../../runtime/index.ts"
import { makeMemoryStorage } from "../../runtime/memory/storage.ts"
import type { Commit, CommitOutcome, StorageApi } from "../../runtime/ports/storage.ts"
import { commitOf } from "../suites/storage-probe.ts"
import { at, probe, type Reply } from "./probe.ts"
import { type Act, dropAll, type Rig, scripted, start, turns, until } from "./rig.ts"

afterEach(dropAll)

const add = { _tag: "Add", by: 1 } as const
const read = { _tag: "Read" } as const
const count = (reply: Reply | string): number =>
  typeof reply === "string" ? Number.NaN : reply.count

/** Writes the group, reports the outcomes of these members, and hangs. */
const reportsOnly = (...members: ReadonlyArray<number>): Act => (group, inner, report) =>
  Effect.flatMap(inner.commit(group), (outcomes) => {
    for (const member of members) {
      const outcome = outcomes[member]
      if (outcome !== undefined) report?.(member, outcome)
    }
    return Effect.never
  })

describe("a commit of a group", () => {
  it("is answered when the store reports it; the deadline touches the others only", async () => {
    const storage = scripted()
    const limits = { storageDeadlineMs: 300, reloadDelayMs: 1 }
    const { ask } = await start({ limits }, { storage })
    await Promise.all(["a", "b", "c"].map((id) => ask(at(id), read)))
    storage.acts.push(reportsOnly(1, 2))
    const unreported = ask(at("a"), add)
    expect((await Promise.all([ask(at("b"), add), ask(at("c"), add)])).map(count)).toEqual([1, 1])
    expect(await unreported).toBe("StorageUnavailable")
    expect(storage.groups.map((group) => group.length)).toEqual([3])
    expect(count(await ask(at("a"), read))).toBe(1)
  })

  it("that is refused is decided again, alone", async () => {
    const storage = scripted()
    const { ask } = await start({ limits: { reloadDelayMs: 1 } }, { storage })
    await Promise.all(["a", "b"].map((id) => ask(at(id), read)))
    const failure = new StorageUnavailable({ detail: "as scripted" })
    storage.acts.push((group, inner) =>
      Effect.map(inner.commit(group.slice(0, 1)), (outcomes): Array<CommitOutcome> => [
        ...outcomes,
        { _tag: "Refused", failure }
      ])
    )
    expect((await Promise.all([ask(at("a"), add), ask(at("b"), add)])).map(count)).toEqual([1, 1])
    expect(storage.groups.map((group) => group.length)).toEqual([2, 1])
  })

  it("is indeterminate alone when its shard was lost while it was written", async () => {
    const lost = at("b")
    let isLost = false
    const placement: PlacementApi = {
      ...ownsAll,
      heldClaim: (shard) => isLost && shard === shardOf(lost) ? undefined : 1
    }
    const inner = makeMemoryStorage()
    const storage = withLeaseGuard({
      ...inner,
      commit: (group, report) =>
        Effect.map(inner.commit(group), (outcomes) => {
          isLost = true
          outcomes.forEach((outcome, member) => report?.(member, outcome))
          return outcomes
        })
    }, placement)
    const group = ["a", "b", "c"].map((id) => commitOf({ address: at(id), state: "s" }))
    const reported: Array<string> = []
    const commit = storage.commit(group, (_, { _tag }) => reported.push(_tag))
    const tags = ["Committed", "Indeterminate", "Committed"]
    expect((await Effect.runPromise(commit)).map(({ _tag }) => _tag)).toEqual(tags)
    expect(reported).toEqual(tags)
    // What is decided after the loss is not written.
    const next = await Effect.runPromise(storage.commit(group))
    expect(next.map(({ _tag }) => _tag)).toEqual(["Conflict", "Conflict", "Conflict"])
    expect(next[1]).toMatchObject({ conflict: { actual: Number.NaN } })
  })

  const fates = [["Indeterminate", true], ["Refused", false]] as const
  it.each(fates)("says whether a full store may have kept it: %s", async (_tag, mayBeStored) => {
    const failure = new StorageFull({ detail: "no room" })
    const storage: StorageApi = {
      ...makeMemoryStorage(),
      commit: (group) => Effect.succeed(group.map(() => ({ _tag, failure })))
    }
    const { system } = await start({}, { storage })
    const failed = await Effect.runPromise(Effect.flip(system.ask(at("a"), add)))
    expect(failed).toMatchObject({ _tag: "StorageFull", detail: "no room" })
    expect(isIndeterminate(failed)).toBe(mayBeStored)
    expect(errorOf("probe/a", failed).outcome).toBe(mayBeStored ? "indeterminate" : "unchanged")
  })

  const afterPause = [["continues", 1, "Committed"], ["does not", 2, "Indeterminate"]] as const
  it.each(afterPause)("waits after a pause until the claim %s", async (_, claim, tag) => {
    let held: number | undefined = 1
    let decide = () => {}
    const placement: PlacementApi = {
      ...ownsAll,
      isLeaseValid: () => held !== undefined,
      heldClaim: () => held,
      awaitLeaseDecision: () => new Promise((resolve) => decide = resolve)
    }
    const inner = makeMemoryStorage()
    const storage = withLeaseGuard({
      ...inner,
      commit: (group, report) =>
        Effect.map(inner.commit(group), (outcomes) => {
          held = undefined
          outcomes.forEach((outcome, member) => report?.(member, outcome))
          return outcomes
        })
    }, placement)
    const reported: Array<string> = []
    const commit = storage.commit(
      [commitOf({ address: at("a"), state: "s" })],
      (_, outcome) => reported.push(outcome._tag)
    )
    const ended = Effect.runPromise(commit)
    await turns()
    expect(reported).toEqual([])
    held = claim
    decide()
    expect((await ended).map(({ _tag }) => _tag)).toEqual([tag])
    expect(reported).toEqual([tag])
  })
})

/** Actors of two streams, by the parity of their shards. */
const streamOf = (shard: number): number => shard % 2
const ofStream = (stream: number, actors: number): ReadonlyArray<string> =>
  Array.from({ length: 1_000 }, (_, n) => `m${n}`)
    .filter((id) => streamOf(shardOf(at(id))) === stream)
    .slice(0, actors)

describe("a stream that does not answer", () => {
  const even = ofStream(0, 6)
  const odd = ofStream(1, 6)
  /** Commits to the odd stream wait. */
  const stalling = (groups: Array<ReadonlyArray<Commit>>): StorageApi => {
    const inner = makeMemoryStorage()
    return {
      ...inner,
      streamOf,
      commit: (group) => {
        groups.push(group)
        return group.some(({ address }) => streamOf(shardOf(address)) === 1)
          ? Effect.never
          : inner.commit(group)
      }
    }
  }

  it("delays no commit of another stream, and shares no group with it", async () => {
    const groups: Array<ReadonlyArray<Commit>> = []
    const { ask } = await start({}, { storage: stalling(groups) })
    const settled: Array<string> = []
    for (const id of odd) void ask(at(id), add).then(() => settled.push(id))
    for (let round = 1; round <= 20; round++) {
      const replies = await Promise.all(even.map((id) => ask(at(id), add)))
      expect(replies.map(count)).toEqual(even.map(() => round))
    }
    expect(settled).toEqual([])
    for (const group of groups) {
      expect(new Set(group.map(({ address }) => streamOf(shardOf(address)))).size).toBe(1)
    }
  })

  it("has a bounded number of commits in flight", async () => {
    const groups: Array<ReadonlyArray<Commit>> = []
    const limits = { groupsInFlightMax: 100, commitsInFlightMax: 3 }
    const { ask } = await start({ limits }, { storage: stalling(groups) })
    for (const id of odd) {
      void ask(at(id), add)
      await turns(2)
    }
    expect(groups.map((group) => group.length)).toEqual([1, 1, 1])
    expect(count(await ask(at(even[0] ?? ""), add))).toBe(1)
  })

  it.each(["timers", "load"] as const)("delays no timer of another by %s", async (call) => {
    const inner = makeMemoryStorage()
    const ids = [...ofStream(1, 20), ...ofStream(0, 1)]
    const commits = ids.map((id) => commitOf({ address: at(id), timer: 1 }))
    await Effect.runPromise(inner.commit(commits))
    /** One kind of call waits, for the odd stream. */
    const stalls = <A, E>(
      of: typeof call,
      shard: number,
      read: Effect.Effect<A, E>
    ): Effect.Effect<A, E> => of === call && streamOf(shard) === 1 ? Effect.never : read
    const storage: StorageApi = {
      ...inner,
      streamOf,
      load: (address) => stalls("load", shardOf(address), inner.load(address)),
      timers: (shard, ...where) => stalls("timers", shard, inner.timers(shard, ...where))
    }
    const { system } = await start({ limits: { timersInFlightMax: 10 } }, { storage })
    const [last = ""] = ids.slice(-1)
    await until(async () => {
      const { timers } = await Effect.runPromise(inner.timers(shardOf(at(last)), 100))
      return timers.length === 0
    })
    expect(system.snapshot().timersInFlight).toBe(call === "load" ? 10 : 0)
  }, 5_000)
})

describe("a commit that is too large for the store", () => {
  const tooLarge = new ValueTooLarge({ detail: "as scripted" })
  const appendsLarge = ({ append }: Commit): boolean =>
    append.some(({ value }) => value === "large")
  /** Refuses these commits. */
  const storage = (isTooLarge = appendsLarge) => {
    const inner = makeMemoryStorage()
    return {
      ...inner,
      commit: ((group) =>
        Effect.forEach(group, (commit) =>
          isTooLarge(commit)
            ? Effect.succeed<CommitOutcome>({ _tag: "Refused", failure: tooLarge })
            : Effect.map(
              inner.commit([commit]),
              ([outcome]) => outcome ?? { _tag: "Indeterminate" }
            ))) satisfies StorageApi["commit"]
    }
  }
  const note = (text: string) => ({ _tag: "Note", text }) as const
  const limits = { restartDelayMs: 1, restartDelayMaxMs: 1, timerRetryMs: 1 }
  const quarantines = ({ system }: Rig): number => system.snapshot().quarantined.length

  it("fails the message that made it so, and no other", async () => {
    const { ask, logs, system } = await start({}, { storage: storage() })
    await ask(at("a"), read)
    const texts = ["a", "large", "b", "c"]
    const replies = await Promise.all(texts.map((text) => ask(at("a"), note(text))))
    expect(replies).toMatchObject([{ head: 1 }, "ValueTooLarge", { head: 2 }, { head: 3 }])
    expect(system.snapshot().metrics.of("probe").restarts).toBe(0)
    expect(logs.join()).toContain("as scripted")
  })

  it("quarantines no actor, however often clients ask for one", async () => {
    const rig = await start({ limits }, { storage: storage() })
    const { ask } = rig
    for (let tries = 0; tries < 6; tries++) {
      expect(await ask(at("a"), note("large"))).toBe("ValueTooLarge")
    }
    expect(await ask(at("a"), note("a"))).toMatchObject({ head: 1 })
    expect(quarantines(rig)).toBe(0)
    expect(rig.system.snapshot().metrics.of("probe").restarts).toBe(0)
  })

  it("quarantines no actor that another actor asks for one", async () => {
    const work = (_: string, self: Address, peers: Peers) =>
      Effect.as(Effect.ignore(peers.ask(at("a"), note("large"))), note(self.id))
    const rig = await start({ behaviors: [probe(work)], limits }, { storage: storage() })
    for (let tries = 0; tries < 6; tries++) {
      await rig.ask(at("b"), { _tag: "Work", name: "w", retryAtMs: Date.now() + 60_000 })
    }
    await until(async () => (await rig.ask(at("b"), read) as Reply).head > 0)
    expect(await rig.ask(at("a"), note("a"))).toMatchObject({ head: 1 })
    expect(quarantines(rig)).toBe(0)
  })

  it("quarantines an actor whose own timer decides on one again and again", async () => {
    const hasFired = ({ state }: Commit): boolean =>
      state?.includes("wokenMs") === true && !state.includes("\"wokenMs\":[]")
    const rig = await start({ limits }, { storage: storage(hasFired) })
    await rig.ask(at("a"), { _tag: "SetTimer", atMs: Date.now() })
    await until(() => quarantines(rig) === 1)
    expect(await rig.ask(at("a"), read)).toBe("Quarantined")
  })

  it("quarantines an actor to which its own effects report one", async () => {
    const work = () => Effect.succeed(note("large"))
    const rig = await start({ behaviors: [probe(work)], limits }, { storage: storage() })
    const retryAtMs = Date.now() + 60_000
    for (let tries = 1; tries <= 5; tries++) {
      await rig.ask(at("a"), { _tag: "Work", name: "w", retryAtMs })
      await until(() => rig.system.snapshot().metrics.of("probe").restarts === tries)
    }
    expect(quarantines(rig)).toBe(1)
  })
})
