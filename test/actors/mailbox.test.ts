import { describe, expect, it } from "vitest"
import { mailbox } from "../../actors/mailbox/actor.ts"
import { mailboxTable } from "../../actors/mailbox/decide.ts"
import { decodeItem } from "../../actors/mailbox/item.ts"
import { defaultSettings } from "../../actors/mailbox/protocol.ts"
import type { Message, Reply, State } from "../../actors/mailbox/protocol.ts"
import type { Member } from "../../runtime/index.ts"
import { decider, expectOnlyReply, expectRefused, hash, nowMs, testCells } from "./cells.ts"

const table = mailboxTable({ notificationsMax: 3 })
const decide = decider<State, Message, Reply>(table)
const ms30Days = defaultSettings.retentionMs

const absent: State = { _tag: "Absent" }
const open: Member<State, "Open"> = {
  _tag: "Open",
  owner: "alice",
  requestId: "r1",
  createdAtMs: nowMs - 10,
  settings: defaultSettings,
  passwordHash: hash("password"),
  sharedHash: hash("shared"),
  version: 1,
  lastAtMs: nowMs - 5,
  removed: 0,
  gone: [],
  retrieved: []
}
const destroyed: State = { _tag: "Destroyed", destroyedAtMs: nowMs, left: [] }

const create: Message = {
  _tag: "Create",
  requestId: "r1",
  owner: "alice",
  settings: defaultSettings,
  passwordHash: hash("password"),
  sharedHash: hash("shared")
}
const part = (of: string): string => of.padEnd(22, "_")
const deposit = {
  _tag: "Deposit",
  fragment: "<item/>",
  digest: part("digest"),
  idRandom: part("random")
} as const
const alice = { account: "alice", admin: false }
const bob = { account: "bob", admin: false }
const nobody = { admin: false }
const list = (reader: Member<Message, "List">["reader"]): Message => ({ _tag: "List", reader })
const describeIt: Message = { _tag: "Describe", reader: {} }
const retrieved = (from: number, to: number): Message => ({ _tag: "Retrieved", from, to })
const remove = (n: number): Message => ({ _tag: "Remove", n, reader: { account: "alice" } })
const configure: Member<Message, "Configure"> = {
  _tag: "Configure",
  caller: alice,
  settings: { ...defaultSettings, title: "Post" }
}
const changeSecrets: Member<Message, "ChangeSecrets"> = {
  _tag: "ChangeSecrets",
  caller: alice,
  passwordHash: hash("p2"),
  sharedHash: hash("s2")
}
const destroy: Member<Message, "Destroy"> = { _tag: "Destroy", caller: alice }
const wakeUp: Message = { _tag: "WakeUp" }
const done = { _tag: "Done" }

const refusesAll = (state: State, reason: string) => ({
  Describe: () => expectRefused(decide(state, describeIt), reason),
  Deposit: () => expectRefused(decide(state, deposit), reason),
  List: () => expectRefused(decide(state, list({ account: "alice" })), reason),
  Retrieved: () => expectRefused(decide(state, retrieved(1, 2)), reason),
  Remove: () => expectRefused(decide(state, remove(1)), reason),
  Configure: () => expectRefused(decide(state, configure), reason),
  ChangeSecrets: () => expectRefused(decide(state, changeSecrets), reason),
  Destroy: () => expectRefused(decide(state, destroy), reason)
})
const whenAbsent = refusesAll(absent, "NotFound")
const whenDestroyed = refusesAll(destroyed, "Gone")

const view = {
  owner: "alice",
  isOwner: false,
  settings: defaultSettings,
  createdAtMs: nowMs - 10,
  version: 1,
  head: 7,
  lastAtMs: nowMs - 5,
  removed: 0
}

describe("the mailbox's table", () => {
  testCells(table, {
    "Absent.Create": () => {
      const decision = decide(absent, create)
      expect(decision.nextState).toEqual({ ...open, createdAtMs: nowMs, lastAtMs: nowMs })
      expect(decision.durable).toBe(true)
      expect(decision.answer)
        .toEqual({ _tag: "Created", version: 1, createdAtMs: nowMs, repeated: false })
    },
    "Absent.Describe": whenAbsent.Describe,
    "Absent.Deposit": whenAbsent.Deposit,
    "Absent.List": whenAbsent.List,
    "Absent.Retrieved": whenAbsent.Retrieved,
    "Absent.Remove": whenAbsent.Remove,
    "Absent.Configure": whenAbsent.Configure,
    "Absent.ChangeSecrets": whenAbsent.ChangeSecrets,
    "Absent.Destroy": whenAbsent.Destroy,
    "Absent.WakeUp": () => expectOnlyReply(decide(absent, wakeUp), undefined),

    "Open.Create": () => {
      expectOnlyReply(decide(open, create), {
        _tag: "Created",
        version: 1,
        createdAtMs: nowMs - 10,
        repeated: true
      })
      expectRefused(decide(open, { ...create, requestId: "r2" }), "Taken")
      expectRefused(decide(open, { ...create, owner: "bob" }), "Taken")
    },
    "Open.Describe": () => {
      const seen = { _tag: "Described", view, mayRead: false }
      expectOnlyReply(decide(open, describeIt, { head: 7 }), seen)
      const reader = { secretHash: hash("shared") }
      expectOnlyReply(decide(open, { _tag: "Describe", reader }, { head: 7 }), {
        ...seen,
        mayRead: true
      })
    },
    "Open.Deposit": () => {
      const decision = decide(open, deposit, { head: 2 })
      expect(decision.durable).toBe(false)
      expect(decision.nextState).toEqual({ ...open, lastAtMs: nowMs })
      expect(decision.items?.map(decodeItem)).toEqual([{
        atMs: nowMs,
        idRandom: part("random"),
        digest: part("digest"),
        fragment: "<item/>"
      }])
      expect(decision.answer).toEqual({
        _tag: "Deposited",
        n: 3,
        repeated: false,
        idRandom: part("random"),
        atMs: nowMs
      })
      const back = decide(open, deposit, { nowMs: nowMs - 1000 })
      expect(back.answer).toMatchObject({ atMs: open.lastAtMs })
      const repeated = { _tag: "Deposited", n: 2, repeated: true }
      const recent = () => 2
      expectOnlyReply(decide(open, deposit, { head: 3, recent }), repeated)
      const first = { ...open, gone: [{ from: 2, to: 2 }], removed: 1 }
      expect(decide(first, deposit, { head: 3, recent }).answer)
        .toMatchObject({ n: 4, repeated: false })
      expectRefused(decide(open, deposit, { head: 3 }), "Full")
      const closed: State = { ...open, settings: { ...defaultSettings, deposit: "accounts" } }
      expectRefused(decide(closed, deposit), "Unauthenticated")
      expect(decide(closed, { ...deposit, account: "bob" }).answer).toMatchObject({ n: 1 })
    },
    "Open.List": () => {
      const listed = { _tag: "Listed", view }
      expectOnlyReply(decide(open, list({ secretHash: hash("password") }), { head: 7 }), listed)
      expectOnlyReply(decide(open, list({ secretHash: hash("shared") }), { head: 7 }), listed)
      expectOnlyReply(decide(open, list({ account: "alice" }), { head: 7 }), {
        _tag: "Listed",
        view: { ...view, isOwner: true }
      })
      expectRefused(decide(open, list({})), "Unauthenticated")
      expectRefused(decide(open, list({ secretHash: hash("wrong") })), "Unauthenticated")
      expectRefused(decide(open, list({ account: "bob" })), "Forbidden")
    },
    "Open.Retrieved": () => {
      const decision = decide(open, retrieved(1, 9), { head: 3 })
      const after = { ...open, retrieved: [{ from: 1, to: 3, atMs: nowMs }] }
      expect(decision.nextState).toEqual(after)
      expect(decision.wakeAtMs).toBe(nowMs + ms30Days)
      expectOnlyReply(decide(after, retrieved(1, 3), { head: 3, nowMs: nowMs + 9 }), done)
      expectOnlyReply(decide(open, retrieved(1, 9)), done)
      const gone = { ...open, gone: [{ from: 1, to: 2 }], removed: 2 }
      expect(decide(gone, retrieved(1, 3), { head: 3 }).nextState)
        .toMatchObject({ retrieved: [{ from: 3, to: 3 }] })
    },
    "Open.Remove": () => {
      const decision = decide(open, remove(2), { head: 3 })
      expect(decision.nextState).toEqual({ ...open, removed: 1, gone: [{ from: 2, to: 2 }] })
      expect(decision.removals).toEqual([2])
      expect(decision.answer).toEqual(done)
      expectRefused(decide(open, remove(4), { head: 3 }), "NotFound")
      expectRefused(decide(open, remove(0), { head: 3 }), "NotFound")
      expectRefused(decide(open, { _tag: "Remove", n: 1, reader: {} }), "Unauthenticated")
      const gone = { ...open, gone: [{ from: 2, to: 2 }], removed: 1 }
      expectRefused(decide(gone, remove(2), { head: 3 }), "Gone")
    },
    "Open.Configure": () => {
      const decision = decide(open, { ...configure, ifVersion: 1 })
      expect(decision.nextState).toEqual({ ...open, settings: configure.settings, version: 2 })
      expect(decision.answer).toEqual({ _tag: "Configured", version: 2 })
      expect(decision.wakeAtMs).toBeNull()
      const read = { ...open, retrieved: [{ from: 1, to: 1, atMs: nowMs }] }
      const settings = { ...defaultSettings, retention: "PT1S", retentionMs: 1000 }
      expect(decide(read, { ...configure, settings }).wakeAtMs).toBe(nowMs + 1000)
      expectRefused(decide(open, { ...configure, ifVersion: 2 }), "PreconditionFailed")
      expectRefused(decide(open, { ...configure, caller: bob }), "Forbidden")
      expectRefused(decide(open, { ...configure, caller: { ...bob, admin: true } }), "Forbidden")
      expectRefused(decide(open, { ...configure, caller: nobody }), "Unauthenticated")
    },
    "Open.ChangeSecrets": () => {
      expect(decide(open, changeSecrets).nextState)
        .toEqual({ ...open, version: 2, passwordHash: hash("p2"), sharedHash: hash("s2") })
      expectRefused(decide(open, { ...changeSecrets, caller: bob }), "Forbidden")
      expectRefused(decide(open, { ...changeSecrets, caller: nobody }), "Unauthenticated")
    },
    "Open.Destroy": () => {
      const gone = { ...open, gone: [{ from: 2, to: 2 }], removed: 1 }
      const decision = decide(gone, destroy, { head: 3 })
      expect(decision.nextState).toEqual(destroyed)
      expect(decision.removals).toEqual([1, 3])
      expect(decision.wakeAtMs).toBeNull()
      expect(decision.answer).toEqual(done)
      expect(decide(open, destroy, { head: 1200 })).toMatchObject({
        nextState: { left: [{ from: 501, to: 1200 }] },
        wakeAtMs: nowMs
      })
      expect(decide(open, { ...destroy, caller: { ...bob, admin: true } }).answer).toEqual(done)
      expectRefused(decide(open, { ...destroy, caller: bob }), "Forbidden")
      expectRefused(decide(open, { ...destroy, caller: nobody }), "Unauthenticated")
      expectRefused(decide(open, { ...destroy, ifVersion: 9 }), "PreconditionFailed")
    },
    "Open.WakeUp": () => {
      expect(decide(open, wakeUp)).toMatchObject({ nextState: undefined, wakeAtMs: null })
      const old = { from: 1, to: 600, atMs: nowMs - ms30Days }
      const young = { from: 601, to: 700, atMs: nowMs - 1 }
      const first = decide({ ...open, retrieved: [old, young] }, wakeUp, { head: 700 })
      expect(first.removals).toEqual(Array.from({ length: 500 }, (_, at) => at + 1))
      expect(first.wakeAtMs).toBe(nowMs)
      expect(first.nextState).toEqual({
        ...open,
        removed: 500,
        gone: [{ from: 1, to: 500 }],
        retrieved: [{ ...old, from: 501 }, young]
      })
      const second = decide(first.nextState ?? absent, wakeUp, { head: 700 })
      expect(second.removals?.length).toBe(100)
      expect(second.nextState).toMatchObject({ removed: 600, retrieved: [young] })
      expect(second.wakeAtMs).toBe(nowMs - 1 + ms30Days)
    },

    "Destroyed.Create": () => expectRefused(decide(destroyed, create), "Taken"),
    "Destroyed.Describe": whenDestroyed.Describe,
    "Destroyed.Deposit": whenDestroyed.Deposit,
    "Destroyed.List": whenDestroyed.List,
    "Destroyed.Retrieved": whenDestroyed.Retrieved,
    "Destroyed.Remove": whenDestroyed.Remove,
    "Destroyed.Configure": whenDestroyed.Configure,
    "Destroyed.ChangeSecrets": whenDestroyed.ChangeSecrets,
    "Destroyed.Destroy": whenDestroyed.Destroy,
    "Destroyed.WakeUp": () => {
      expect(decide(destroyed, wakeUp)).toMatchObject({ nextState: undefined, wakeAtMs: null })
      const left = [{ from: 1, to: 2 }, { from: 5, to: 600 }]
      const decision = decide({ _tag: "Destroyed", destroyedAtMs: nowMs, left }, wakeUp)
      expect(decision.removals?.length).toBe(500)
      expect(decision).toMatchObject({
        nextState: { left: [{ from: 503, to: 600 }] },
        wakeAtMs: nowMs
      })
    }
  })
})

describe("the mailbox's binding", () => {
  const { decodeMessage, encode, decode } = mailbox({ notificationsMax: 3 })
  it("keeps a state through its record", () => {
    for (const state of [absent, open, destroyed]) expect(decode(encode(state))).toEqual(state)
  })
  it("refuses what is no record or message of a mailbox", () => {
    expect(() => decode("{\"_tag\":\"Ajar\"}")).toThrow()
    expect(() => decodeMessage({ ...deposit, sudo: true })).toThrow()
    expect(() => decodeMessage({ ...deposit, idRandom: "a b\nc" })).toThrow()
    expect(() => decodeMessage({ _tag: "Constructor" })).toThrow()
  })
})
