/** Timers of commits that the store stores or acknowledges late. */
import { Effect } from "effect"
import { afterEach, describe, expect, it } from "vitest"
import { address, become, type Behavior, refuse, shardOf, stay } from "../../runtime/index.ts"
import { makeMemoryStorage } from "../../runtime/memory/storage.ts"
import type { StorageApi } from "../../runtime/ports/storage.ts"
import { at } from "./probe.ts"
import { dropAll, type Rig, scripted, start, turns } from "./rig.ts"
import { at as tried, doing, scriptedActor, type State } from "./scripted-actor.ts"

afterEach(dropAll)

const timersOf = async (storage: StorageApi) =>
  (await Effect.runPromise(storage.timers(shardOf(at("a")), 1_000))).timers

interface Sleeper {
  readonly _tag: "Awake" | "Asleep"
}

type SleeperMessage = { readonly _tag: "Sleep"; readonly untilMs: number } | {
  readonly _tag: "TimerFired"
}

/** An actor whose timer changes nothing while it is active. */
const sleeper: Behavior<Sleeper, SleeperMessage, null, never> = {
  kind: "sleeper",
  initial: { _tag: "Awake" },
  table: {
    Awake: {
      Sleep: (_, { untilMs }) => become<Sleeper>({ _tag: "Asleep" }).setTimer(untilMs).reply(null),
      TimerFired: () => stay()
    },
    Asleep: { Sleep: () => refuse("Asleep"), TimerFired: () => become<Sleeper>({ _tag: "Awake" }) }
  },
  encode: ({ _tag }) => _tag,
  decode: (text) => ({ _tag: text === "Asleep" ? text : "Awake" }),
  decodeMessage: (input) => input as SleeperMessage, // only the test sends it some
  timerMessage: { _tag: "TimerFired" },
  perform: () => Effect.void
}
const sleeping = address("sleeper", "a")

/** Advances virtual time in small steps, so that its effects can run in between. */
const pass = async (rig: Rig, ms: number): Promise<void> => {
  for (let left = ms; left > 0; left -= 10) {
    await rig.pass(Math.min(10, left))
    await turns(3)
  }
}

/** The next commit is not answered; the result stores it. */
const storesLate = (storage: ReturnType<typeof scripted>): () => void => {
  let keep = () => {}
  storage.acts.push((group, inner) => {
    keep = () => void Effect.runSync(inner.commit(group))
    return Effect.never
  })
  return () => keep()
}

describe("a timer", () => {
  it("fires although its commit was stored long after its deadline", async () => {
    const storage = scripted()
    const limits = {
      storageDeadlineMs: 50,
      reloadDelayMs: 1,
      idleMs: 1_000,
      sweepMs: 100,
      lateCommitRescanMs: 500,
      timersRescanMs: 1_000_000
    }
    const behaviors = [sleeper]
    const rig = await start({ behaviors, limits }, { storage, virtualTime: true })
    const keep = storesLate(storage)
    let failure: unknown
    rig.system.askByCallback(
      sleeping,
      { _tag: "Sleep", untilMs: 20 },
      (failed) => failure = failed?._tag
    )
    await turns()
    await pass(rig, 60)
    expect(failure).toBe("StorageUnavailable")
    // The timer fires early, has no effect, and is cleared.
    await pass(rig, 300)
    const { state } = await Effect.runPromise(storage.load(sleeping))
    expect(state).toBeUndefined()
    keep()
    expect(await timersOf(storage)).toEqual([{ address: sleeping, atMs: 20 }])
    await pass(rig, 1_200)
    expect(await timersOf(storage)).toEqual([])
  })

  it("fires once the store reports that it has settled its commit, without a sweep", async () => {
    let onSettled: (shard: number) => void = () => {}
    let followers = 0
    const storage = scripted({
      ...makeMemoryStorage(),
      followLateCommits: (listener) => {
        onSettled = listener
        followers++
        return () => followers--
      }
    })
    const limits = { storageDeadlineMs: 50, reloadDelayMs: 1, sweepMs: 60_000 }
    const behaviors = [sleeper]
    const rig = await start({ behaviors, limits }, { storage, virtualTime: true })
    const keep = storesLate(storage)
    rig.system.askByCallback(sleeping, { _tag: "Sleep", untilMs: 20 }, () => {})
    await turns()
    await pass(rig, 300)
    keep()
    await pass(rig, 300)
    expect(await timersOf(storage)).toHaveLength(1)
    onSettled(shardOf(sleeping))
    await pass(rig, 100)
    expect(await timersOf(storage)).toEqual([])
    await rig.drop()
    expect(followers).toBe(0)
  })

  it("signal is not lost when a commit from before it is answered after it", async () => {
    const inner = makeMemoryStorage()
    const answers: Array<() => void> = []
    // Groups are stored in order; the test determines when they are answered.
    const storage: StorageApi = {
      ...inner,
      commit: (group) =>
        Effect.flatMap(
          inner.commit(group),
          (outcomes) =>
            Effect.as(
              Effect.promise(() => new Promise<void>((resolve) => answers.push(resolve))),
              outcomes
            )
        )
    }
    const limits = { groupsInFlightMax: 2 }
    const rig = await start({ limits }, { storage, virtualTime: true })
    // The actor clears its own timer.
    const own = rig.ask(at("a=b"), { _tag: "Worked" })
    await turns()
    const others = rig.ask(at("a"), { _tag: "Signal", id: "a=b" })
    await turns()
    answers[1]?.()
    await others
    answers[0]?.()
    await own
    expect(await timersOf(storage)).toMatchObject([{ address: at("a=b"), atMs: 0 }])
    await pass(rig, 100)
    answers[2]?.()
    await turns()
    expect(await timersOf(storage)).toEqual([])
  })

  it("signal reaches an actor that defers its own timer once durable, not before", async () => {
    const storage = scripted()
    const { behavior, firedAtMs } = scriptedActor({
      hold: () => stay<State>().deferTimer(100_000).reply("held"),
      poke: () => stay<State>().signal(tried("a")).reply("poked")
    })
    const rig = await start({ behaviors: [behavior] }, { storage, virtualTime: true })
    storage.gate.close()
    const poked = doing(rig, "poke", "a=b")
    await turns()
    expect(await doing(rig, "hold")).toBe("held")
    await pass(rig, 300)
    expect(firedAtMs).toEqual([])
    storage.gate.open()
    expect(await poked).toBe("poked")
    await pass(rig, 300)
    expect(firedAtMs.length).toBe(1)
  })
})
