/** What an outgoing mailbox decides on its pauses, and the release of what waits for one. */
import { Deferred, Effect } from "effect"
import { describe, expect, it } from "vitest"
import { pausedOriginsMax, relayPausesFreshMs, releasePage, releasePassesMax, releasePassMs,
  releaseRetryMs } from "../../actors/limits.ts"
import { outgoingMailbox } from "../../actors/outgoing-mailbox/actor.ts"
import { outgoingMailboxTable } from "../../actors/outgoing-mailbox/decide.ts"
import { NodePauses } from "../../actors/outgoing-mailbox/pauses.ts"
import { type OutgoingMailboxAction, type OutgoingMailboxMessage, type OutgoingMailboxReply,
  type OutgoingMailboxState, type Pauses } from "../../actors/outgoing-mailbox/protocol.ts"
import { cursorOf } from "../../actors/record-keys.ts"
import { address, AskTimeout, type Peers } from "../../runtime/index.ts"
import { decider, effectsOf, expectOnlyReply, expectRefused, nowMs, testCells } from "./cells.ts"
import { Model } from "./model.ts"

const self = address("outgoing-mailbox", "alice")
const decideBy = decider<
  OutgoingMailboxState,
  OutgoingMailboxMessage,
  OutgoingMailboxReply,
  OutgoingMailboxAction
>(outgoingMailboxTable)
const decide: typeof decideBy = (state, message, context = {}) =>
  decideBy(state, message, { self, ...context })

const owner = { account: "alice", admin: false }
const admin = { account: "root", admin: true }
const other = { account: "mallory", admin: false }
const receiver = "https://receiver.example"
const second = "https://second.example"

type Known = Extract<OutgoingMailboxState, { readonly _tag: "Known" }>

const replacing = (
  isPaused: boolean,
  origins: ReadonlyArray<string> = [],
  caller: typeof owner = owner
): Extract<OutgoingMailboxMessage, { readonly _tag: "Replace" }> => ({
  _tag: "Replace",
  caller,
  isPaused,
  origins
})
const describing = (caller: typeof owner): OutgoingMailboxMessage => ({ _tag: "Describe", caller })
const removing = (caller: typeof owner): OutgoingMailboxMessage => ({ _tag: "Remove", caller })
const admitting = (bytes: number, caller: typeof owner = owner): OutgoingMailboxMessage => ({
  _tag: "Admit",
  caller,
  bytes,
  bytesMax: 100
})
const timerFired: OutgoingMailboxMessage = { _tag: "TimerFired" }
const released = (
  more: Partial<Extract<OutgoingMailboxMessage, { readonly _tag: "PageReleased" }>> = {}
): OutgoingMailboxMessage => ({ _tag: "PageReleased", version: 2, pass: 1, ...more })
const described = (view: Pauses) => ({ _tag: "Described", view })

const absent: OutgoingMailboxState = { _tag: "Absent" }
const removed: OutgoingMailboxState = { _tag: "Removed" }
const paused: Known = { _tag: "Known", pausedAtMs: nowMs, origins: [], version: 1 }
const resumed: Known = {
  _tag: "Known",
  origins: [],
  version: 2,
  release: { version: 2, pass: 1 }
}

const expectGuarded = (
  state: OutgoingMailboxState,
  message: (caller: typeof owner) => OutgoingMailboxMessage
): void => expectRefused(decide(state, message(other)), "Forbidden")

describe("the outgoing mailbox's table", () => {
  testCells(outgoingMailboxTable, {
    "Absent.Describe": () => {
      const none = described({ origins: [], version: 0 })
      expectOnlyReply(decide(absent, describing(owner)), none)
      expectOnlyReply(decide(absent, describing(admin)), none)
      expectGuarded(absent, describing)
    },
    "Absent.Replace": () => {
      const decision = decide(absent, replacing(true))
      expect(decision.nextState).toEqual(paused)
      const view = { pausedAtMs: nowMs, origins: [], version: 1 }
      expect(decision.answer).toEqual(described(view))
      expect(decision.timerAtMs).toBe(null)
      expect(decision.actions).toEqual([{ _tag: "NotePauses", pauses: view }])
      expectOnlyReply(decide(absent, replacing(false)), described({ origins: [], version: 0 }))
      expectGuarded(absent, (caller) => replacing(true, [], caller))
    },
    "Absent.Admit": () => {
      expectOnlyReply(decide(absent, admitting(101)), { _tag: "Done" })
      expectGuarded(absent, (caller) => admitting(1, caller))
    },
    "Absent.Remove": () => expectOnlyReply(decide(absent, removing(owner)), { _tag: "Done" }),
    "Absent.PageReleased": () => expect(effectsOf(decide(absent, released()))).toBeUndefined(),
    "Absent.TimerFired": () => expect(effectsOf(decide(absent, timerFired))).toBeUndefined(),
    "Known.Describe": () => {
      expectOnlyReply(
        decide(paused, describing(owner)),
        described({ pausedAtMs: nowMs, origins: [], version: 1 })
      )
      expectGuarded(paused, describing)
    },
    "Known.Replace": () => {
      const decision = decide(paused, replacing(false), { nowMs: nowMs + 9 })
      expect(decision.nextState).toEqual(resumed)
      expect(decision.timerAtMs).toBe(nowMs + 9)
      // A repetition changes nothing, also with the version before.
      expectOnlyReply(
        decide(paused, { ...replacing(true), ifVersion: 0 }),
        described({ pausedAtMs: nowMs, origins: [], version: 1 })
      )
      expectRefused(decide(paused, { ...replacing(false), ifVersion: 0 }), "PreconditionFailed")
      const many = Array.from({ length: pausedOriginsMax + 1 }, (_, at) => `https://${at}.example`)
      expectRefused(decide(paused, replacing(true, many)), "Invalid")
      expectGuarded(paused, (caller) => replacing(false, [], caller))
    },
    "Known.Admit": () => {
      const first = decide(paused, admitting(60))
      expect(first.nextState).toEqual({ ...paused, waitingBytes: 60 })
      expect(first.answer).toEqual({ _tag: "Done" })
      const waiting = first.nextState as Known
      expectOnlyReply(decide(waiting, admitting(41)), { _tag: "NoRoom", usedBytes: 60 })
      expect(decide(waiting, admitting(40)).nextState).toMatchObject({ waitingBytes: 100 })
      // It is no change of the pauses, and a release that is left goes on.
      const partly: Known = { ...resumed, origins: [{ origin: second, atMs: nowMs }] }
      const decision = decide(partly, admitting(5))
      expect(decision.nextState).toEqual({ ...partly, waitingBytes: 5 })
      expect(decision.timerAtMs).toBeUndefined()
      // Nothing is paused: nothing waits for a pause.
      expectOnlyReply(decide(resumed, admitting(101)), { _tag: "Done" })
      expectGuarded(paused, (caller) => admitting(1, caller))
    },
    "Known.Remove": () => {
      const decision = decide(resumed, removing(owner))
      expect([decision.nextState, decision.timerAtMs]).toEqual([removed, null])
      expectGuarded(paused, removing)
    },
    "Known.PageReleased": () => {
      // What waits counts until no pause is left and all of it was released.
      const waiting: Known = { ...resumed, waitingBytes: 9 }
      expect(decide(waiting, released()).nextState).not.toHaveProperty("waitingBytes")
      const rest = decide(waiting, released({ next: "alice/1" })).nextState
      expect(rest).toMatchObject({ waitingBytes: 9 })
      const partly: Known = { ...waiting, origins: [{ origin: second, atMs: nowMs }] }
      expect(decide(partly, released()).nextState).toMatchObject({ waitingBytes: 9 })
      const next = decide(resumed, released({ next: "alice/1" }))
      expect(next.nextState).toEqual({
        ...resumed,
        release: { version: 2, pass: 1, after: "alice/1" }
      })
      expect(next.timerAtMs).toBe(nowMs)
      const end = decide(resumed, released())
      expect([end.nextState, end.timerAtMs]).toEqual([
        { _tag: "Known", origins: [], version: 2 },
        null
      ])
      for (const late of [{ version: 1 }, { pass: 2 }, { after: "alice/1" }]) {
        expect(effectsOf(decide(resumed, released(late)))).toBeUndefined()
      }
      expect(effectsOf(decide(paused, released()))).toBeUndefined()
    },
    "Known.TimerFired": () => {
      const decision = decide(resumed, timerFired)
      expect(decision.actions).toEqual([{ _tag: "ReleasePage", version: 2, pass: 1 }])
      expect(decision.deferUntilMs).toBe(nowMs + releaseRetryMs)
      expect(effectsOf(decide(paused, timerFired))).toBeUndefined()
    },
    "Removed.Describe": () => expectRefused(decide(removed, describing(owner)), "Gone"),
    "Removed.Replace": () => expectRefused(decide(removed, replacing(true)), "Gone"),
    "Removed.Admit": () => expectRefused(decide(removed, admitting(1)), "Gone"),
    "Removed.Remove": () => expectOnlyReply(decide(removed, removing(owner)), { _tag: "Done" }),
    "Removed.PageReleased": () => expect(effectsOf(decide(removed, released()))).toBeUndefined(),
    "Removed.TimerFired": () => expect(effectsOf(decide(removed, timerFired))).toBeUndefined()
  })
})

const stateOf = (decision: ReturnType<typeof decide>): Known => {
  const { nextState } = decision
  if (nextState?._tag !== "Known") throw new Error("nothing was stored")
  return nextState
}

describe("paused origins", () => {
  const one = stateOf(decide(absent, replacing(false, [receiver])))

  it("keep since when they are paused, and count once each", () => {
    const more = decide(one, replacing(false, [receiver, second, second]), { nowMs: nowMs + 5 })
    expect(stateOf(more)).toEqual({
      _tag: "Known",
      origins: [{ origin: receiver, atMs: nowMs }, { origin: second, atMs: nowMs + 5 }],
      version: 2
    })
    expect(more.timerAtMs).toBe(null)
  })

  it("release what waits once one of them ends, but not while all relays are paused", () => {
    expect(stateOf(decide(one, replacing(false))).release).toEqual({ version: 2, pass: 1 })
    const all = stateOf(decide(one, replacing(true, [receiver])))
    const lifted = stateOf(decide(all, replacing(true)))
    expect(lifted.release).toBeUndefined()
    expect(stateOf(decide(lifted, replacing(false))).release).toEqual({ version: 4, pass: 1 })
  })

  it("a pause of all ends a release under way, with which the resumption begins again", () => {
    const releasing = stateOf(decide(one, replacing(false)))
    const again = decide(releasing, replacing(true))
    expect([stateOf(again).release, again.timerAtMs]).toEqual([undefined, null])
    // Another change leaves a release to do.
    expect(stateOf(decide(releasing, replacing(false, [second]))).release)
      .toEqual({ version: 3, pass: 1 })
  })
})

describe("a pass that has found some unavailable", () => {
  it("is followed by another one after a while, so many times", () => {
    const partial = stateOf(decide(resumed, released({ next: "alice/1", isPartial: true })))
    expect(partial.release).toMatchObject({ isPartial: true })
    const end = decide(partial, released({ after: "alice/1" }))
    expect(stateOf(end).release).toEqual({ version: 2, pass: 2 })
    expect(end.timerAtMs).toBe(nowMs + releasePassMs)
    const last = { ...resumed, release: { version: 2, pass: releasePassesMax } }
    const over = decide(last, released({ pass: releasePassesMax, isPartial: true }))
    expect([stateOf(over).release, over.timerAtMs]).toEqual([undefined, null])
  })
})

/** The listing and the actors of an account with so many notifications. */
const makeWorld = (count: number) => {
  const keys = Array.from({ length: count }, (_, at) => `alice/${cursorOf(nowMs + at, `n${at}`)}`)
  const values = new Map(keys.map((key) => [key, "waiting"]))
  const asked: Array<string> = []
  const unavailable = new Set<string>()
  const peers: Peers = {
    ask: ({ id }) =>
      Effect.suspend(() => {
        asked.push(id)
        return unavailable.has(id)
          ? Effect.fail(new AskTimeout({ key: id, deadlineMs: 1 }))
          : Effect.succeed({ _tag: "Done" })
      }),
    read: () => Effect.succeed([])
  }
  const behavior = outgoingMailbox({
    records: {
      range: (_table, { after, limit, prefix = "", reverse = false }) =>
        Effect.sync(() => {
          const sorted = [...values.keys()].filter((key) => key.startsWith(prefix)).toSorted()
          if (reverse) sorted.reverse()
          const from = after === undefined ? 0 : sorted.indexOf(after) + 1
          return sorted.slice(from, from + limit).map((key) => ({
            key,
            value: values.get(key) ?? ""
          }))
        })
    }
  }, new NodePauses())
  const actor = new Model(behavior, self)
  const perform = async (isLost: boolean): Promise<void> => {
    const action = actor.actions.shift()
    if (action === undefined) return
    const result = await Effect.runPromise(behavior.perform(action, self, peers))
    if (result !== undefined && !isLost) actor.send(result, nowMs)
  }
  return { actor, asked, keys, perform, unavailable, values }
}

describe("a release", () => {
  const resume = (count: number) => {
    const world = makeWorld(count)
    world.actor.send(replacing(true), nowMs)
    world.actor.send(replacing(false), nowMs)
    world.actor.actions = []
    return world
  }

  it("asks each notification that may wait, the oldest first, whatever is lost", async () => {
    const count = 2 * releasePage + 3
    const { actor, asked, keys, perform, values } = resume(count)
    values.set(keys[0] ?? "", "sent")
    let atMs = nowMs
    for (let step = 0; actor.timerAtMs !== null; step++) {
      expect(step).toBeLessThan(100)
      actor.fireTimer(atMs)
      // A result is lost, and then the actor is.
      if (step === 1) await perform(true)
      else if (step === 3) actor.restart()
      else await perform(false)
      atMs += releaseRetryMs
    }
    expect(actor.state).toMatchObject({ _tag: "Known", origins: [], version: 2 })
    expect(actor.state).not.toHaveProperty("release")
    expect(new Set(asked).size).toBe(count - 1)
    expect(asked[0]).toBe("n1")
    expect(asked.at(-1)).toBe(`n${count - 1}`)
  })

  it("comes back for one that was unavailable", async () => {
    const { actor, asked, perform, unavailable } = resume(2)
    unavailable.add("n1")
    actor.fireTimer(nowMs)
    await perform(false)
    expect(actor.timerAtMs).toBe(nowMs + releasePassMs)
    unavailable.clear()
    actor.fireTimer(nowMs + releasePassMs)
    await perform(false)
    expect(actor.timerAtMs).toBe(null)
    expect(asked).toEqual(["n0", "n1", "n0", "n1"])
  })
})

describe("what a node knows of pauses", () => {
  const to = `${receiver}:443/inbox`
  const held = { _tag: "Held" as const }

  /** A node, and what its outgoing mailbox has paused. */
  const makeNode = () => {
    const pauses = new NodePauses()
    const known: { pauses: Pauses; asks: number } = {
      pauses: { origins: [], version: 0 },
      asks: 0
    }
    const peers: Peers = {
      ask: () =>
        Effect.sync(() => {
          known.asks += 1
          return described(known.pauses)
        }),
      read: () => Effect.succeed([])
    }
    const find = (uri = to) => Effect.runPromise(pauses.find(peers, "alice", uri))
    const findCurrent = () => Effect.runPromise(pauses.findCurrent(peers, "alice", to))
    return { find, findCurrent, known, pauses }
  }

  it("holds back all relays, or those to an origin, whatever its spelling", async () => {
    const { find, known, pauses } = makeNode()
    expect(await find()).toBeUndefined()
    const origins = [{ origin: receiver, atMs: nowMs }]
    pauses.note("alice", { origins, version: 1 }, Date.now())
    expect(await find("https://RECEIVER.example/inbox")).toEqual({ ...held, origin: receiver })
    for (const uri of [`${second}/inbox`, "http://receiver.example/", `${receiver}:444/`]) {
      expect(await find(uri)).toBeUndefined()
    }
    pauses.note("alice", { pausedAtMs: nowMs, origins, version: 2 }, Date.now())
    expect(await find()).toEqual(held)
    expect(known.asks).toBe(1)
  })

  it("asks once for many attempts, and after a failure not at once again", async () => {
    const pauses = new NodePauses()
    let asks = 0
    const waiting = Deferred.makeUnsafe<void>()
    const peers: Peers = {
      ask: (_to, _message) => {
        asks += 1
        return asks === 1
          ? Effect.as(Deferred.await(waiting), described({ origins: [], version: 0 }))
          : Effect.fail(new AskTimeout({ key: "k", deadlineMs: 1 }))
      },
      read: () => Effect.succeed([])
    }
    const find = (account: string) => Effect.runPromiseExit(pauses.find(peers, account, to))
    const many = Array.from({ length: 100 }, () => find("alice"))
    Deferred.doneUnsafe(waiting, Effect.void)
    expect(new Set((await Promise.all(many)).map(({ _tag }) => _tag))).toEqual(new Set(["Success"]))
    expect(asks).toBe(1)
    for (let round = 0; round < 3; round++) expect((await find("bob"))._tag).toBe("Failure")
    expect(asks).toBe(2)
  })

  it("asks again after a while, and whenever it must not be mistaken", async () => {
    const { find, findCurrent, known, pauses } = makeNode()
    await find()
    known.pauses = { pausedAtMs: nowMs, origins: [], version: 1 }
    expect(await find()).toBeUndefined()
    expect(await findCurrent()).toEqual(held)
    expect([await find(), known.asks]).toEqual([held, 2])
    // What is known is too old, or of a clock that was set back since.
    for (const atMs of [Date.now() - relayPausesFreshMs, Date.now() + relayPausesFreshMs]) {
      pauses.note("alice", known.pauses, atMs)
      const { asks } = known
      await find()
      expect(known.asks).toBe(asks + 1)
    }
  })

  it("keeps a later version than a reply that comes late has", async () => {
    const { find, known, pauses } = makeNode()
    pauses.note("alice", { pausedAtMs: nowMs, origins: [], version: 2 }, Date.now())
    pauses.note("alice", { origins: [], version: 1 }, Date.now())
    expect([await find(), known.asks]).toEqual([held, 0])
  })
})
