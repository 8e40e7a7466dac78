import { array, assert, constantFrom, nat, property, record } from "fast-check"
import { describe, expect, it } from "vitest"
import { account } from "../../actors/account/actor.ts"
import { accountTable as table } from "../../actors/account/decide.ts"
import type { Message, Reply, State } from "../../actors/account/protocol.ts"
import { accountTokensMax } from "../../actors/limits.ts"
import type { Member } from "../../runtime/index.ts"
import {
  decider,
  effectsOf,
  expectOnlyReply,
  expectRefused,
  hash,
  nowMs,
  testCells
} from "./cells.ts"
import { Model } from "./model.ts"

const decide = decider<State, Message, Reply>(table)

const tokenOf = (id: string) => ({ id, hash: hash(id), createdAtMs: nowMs })
const absent: State = { _tag: "Absent" }
const removed: State = { _tag: "Removed" }
const alice: Member<State, "Active"> = {
  _tag: "Active",
  name: "alice",
  requestId: "r1",
  createdAtMs: nowMs,
  roles: ["quotes"],
  tokens: [tokenOf("t1")],
  founder: false,
  version: 1
}
const founder: Member<State, "Active"> = {
  ...alice,
  name: "admin",
  requestId: "",
  roles: ["admin"],
  tokens: [tokenOf("t0")],
  founder: true
}

const admin = { account: "admin", admin: true }
const self = { account: "alice", admin: false }
const bob = { account: "bob", admin: false }
const nobody = { admin: false }

const bootstrap = (id: string, enforced: boolean): Message => ({
  _tag: "Bootstrap",
  name: "admin",
  tokenId: id,
  tokenHash: hash(id),
  enforced
})
const create: Member<Message, "Create"> = {
  _tag: "Create",
  caller: admin,
  requestId: "r1",
  name: "alice",
  roles: ["quotes"],
  tokenId: "t1",
  tokenHash: hash("t1")
}
const describeIt: Member<Message, "Describe"> = { _tag: "Describe", caller: self }
const authenticate = (id: string): Message => ({ _tag: "Authenticate", tokenHash: hash(id) })
const addToken: Member<Message, "AddToken"> = {
  _tag: "AddToken",
  caller: self,
  tokenId: "t2",
  tokenHash: hash("t2"),
  replacesAll: false
}
const removeToken: Member<Message, "RemoveToken"> = {
  _tag: "RemoveToken",
  caller: self,
  tokenId: "t1"
}
const setRoles: Member<Message, "SetRoles"> = {
  _tag: "SetRoles",
  caller: admin,
  roles: ["customers"]
}
const remove: Member<Message, "Remove"> = { _tag: "Remove", caller: admin }
const wakeUp: Message = { _tag: "WakeUp" }
const done = { _tag: "Done" }
const view = {
  name: "alice",
  roles: ["quotes"],
  createdAtMs: nowMs,
  tokens: [{ id: "t1", createdAtMs: nowMs }],
  founder: false,
  version: 1
}

const refusesAll = (state: State, reason: string) => ({
  Describe: () => expectRefused(decide(state, describeIt), reason),
  Authenticate: () => expectRefused(decide(state, authenticate("t1")), "Unauthenticated"),
  AddToken: () => expectRefused(decide(state, addToken), reason),
  RemoveToken: () => expectRefused(decide(state, removeToken), reason),
  SetRoles: () => expectRefused(decide(state, setRoles), reason),
  Remove: () => expectRefused(decide(state, remove), reason),
  WakeUp: () => expectOnlyReply(decide(state, wakeUp), undefined)
})
const whenAbsent = refusesAll(absent, "NotFound")
const whenRemoved = refusesAll(removed, "Gone")

const adminOnly = (message: Extract<Message, { readonly caller: unknown }>, state: State) => {
  expectRefused(decide(state, { ...message, caller: nobody }), "Unauthenticated")
  expectRefused(decide(state, { ...message, caller: bob }), "Forbidden")
}

describe("the account's table", () => {
  testCells(table, {
    "Absent.Bootstrap": () => {
      const decision = decide(absent, bootstrap("t0", false))
      expect(decision.nextState).toEqual(founder)
      expect(decision.answer).toEqual({ _tag: "Bootstrapped", created: true, tokenKept: true })
    },
    "Absent.Create": () => {
      const decision = decide(absent, create)
      expect(decision.nextState).toEqual(alice)
      expect(decision.durable).toBe(true)
      expect(decision.answer).toEqual({ _tag: "Created", view, repeated: false })
      adminOnly(create, absent)
    },
    "Absent.Describe": whenAbsent.Describe,
    "Absent.Authenticate": whenAbsent.Authenticate,
    "Absent.AddToken": whenAbsent.AddToken,
    "Absent.RemoveToken": whenAbsent.RemoveToken,
    "Absent.SetRoles": whenAbsent.SetRoles,
    "Absent.Remove": whenAbsent.Remove,
    "Absent.WakeUp": whenAbsent.WakeUp,

    "Active.Bootstrap": () => {
      const reply = { _tag: "Bootstrapped", created: false }
      expectOnlyReply(decide(founder, bootstrap("t0", true)), { ...reply, tokenKept: true })
      expectOnlyReply(decide(founder, bootstrap("t9", false)), { ...reply, tokenKept: false })
      const added = decide(founder, bootstrap("t9", true))
      expect(added.nextState)
        .toEqual({ ...founder, version: 2, tokens: [tokenOf("t0"), tokenOf("t9")] })
      expect(added.answer).toEqual({ ...reply, tokenKept: true })
      const old = { ...founder, tokens: [{ ...tokenOf("t9"), hash: hash("old") }] }
      expect(decide(old, bootstrap("t9", true)).nextState)
        .toEqual({ ...founder, version: 2, tokens: [tokenOf("t9")] })
      const tokens = Array.from({ length: accountTokensMax }, (_, at) => tokenOf(`x${at}`))
      expect(decide({ ...founder, tokens }, bootstrap("t9", true)).nextState)
        .toMatchObject({ tokens: [...tokens.slice(1), tokenOf("t9")] })
    },
    "Active.Create": () => {
      expectOnlyReply(decide(alice, create), { _tag: "Created", view, repeated: true })
      expectRefused(decide(alice, { ...create, requestId: "r2" }), "Taken")
      expectRefused(decide(founder, { ...create, requestId: "" }), "Taken")
      adminOnly(create, alice)
    },
    "Active.Describe": () => {
      expectOnlyReply(decide(alice, describeIt), { _tag: "Described", view })
      expect(decide(alice, { ...describeIt, caller: admin }).answer).toMatchObject({ view })
      adminOnly(describeIt, alice)
    },
    "Active.Authenticate": () => {
      expectOnlyReply(decide(alice, authenticate("t1")), {
        _tag: "Authenticated",
        account: "alice",
        roles: ["quotes"]
      })
      expectRefused(decide(alice, authenticate("t2")), "Unauthenticated")
    },
    "Active.AddToken": () => {
      const both = { ...alice, version: 2, tokens: [tokenOf("t1"), tokenOf("t2")] }
      expect(decide(alice, addToken).nextState).toEqual(both)
      expect(decide(alice, { ...addToken, caller: admin }).nextState).toEqual(both)
      expect(decide(alice, { ...addToken, replacesAll: true }).nextState)
        .toEqual({ ...both, tokens: [tokenOf("t2")] })
      expectOnlyReply(decide(both, addToken), done)
      expectRefused(decide(both, { ...addToken, tokenHash: hash("other") }), "Taken")
      const tokens = Array.from({ length: accountTokensMax }, (_, at) => tokenOf(`x${at}`))
      expectRefused(decide({ ...alice, tokens }, addToken), "Full")
      adminOnly(addToken, alice)
    },
    "Active.RemoveToken": () => {
      expect(decide(alice, removeToken).nextState).toEqual({ ...alice, version: 2, tokens: [] })
      expectRefused(decide(alice, { ...removeToken, tokenId: "t9" }), "NotFound")
      expectRefused(decide(alice, { ...removeToken, ifVersion: 9 }), "PreconditionFailed")
      adminOnly(removeToken, alice)
    },
    "Active.SetRoles": () => {
      expect(decide(alice, setRoles).nextState)
        .toEqual({ ...alice, version: 2, roles: ["customers"] })
      expectRefused(decide(founder, setRoles), "LastAdmin")
      expect(decide(founder, { ...setRoles, roles: ["admin", "quotes"] }).answer).toEqual(done)
      expectRefused(decide(alice, { ...setRoles, caller: self }), "Forbidden")
      adminOnly(setRoles, alice)
    },
    "Active.Remove": () => {
      const decision = decide(alice, remove)
      expect(decision.nextState).toEqual(removed)
      expect(decision.answer).toEqual(done)
      expectRefused(decide(founder, remove), "LastAdmin")
      expectRefused(decide(alice, { ...remove, ifVersion: 9 }), "PreconditionFailed")
      expectRefused(decide(alice, { ...remove, caller: self }), "Forbidden")
      adminOnly(remove, alice)
    },
    "Active.WakeUp": () => expect(effectsOf(decide(alice, wakeUp))).toBeUndefined(),

    "Removed.Bootstrap": () => expectRefused(decide(removed, bootstrap("t0", true)), "Gone"),
    "Removed.Create": () => expectRefused(decide(removed, create), "Taken"),
    "Removed.Describe": whenRemoved.Describe,
    "Removed.Authenticate": whenRemoved.Authenticate,
    "Removed.AddToken": whenRemoved.AddToken,
    "Removed.RemoveToken": whenRemoved.RemoveToken,
    "Removed.SetRoles": whenRemoved.SetRoles,
    "Removed.Remove": whenRemoved.Remove,
    "Removed.WakeUp": whenRemoved.WakeUp
  })
})

describe("an account", () => {
  it("knows exactly its tokens in any interleaving of changes and restarts", () => {
    const commands = array(
      record({ does: constantFrom("add", "replace", "remove", "restart"), token: nat(20) }),
      { maxLength: 60 }
    )
    assert(
      property(commands, (sequence) => {
        const actor = new Model(account)
        actor.send({ ...create, tokenId: "t0", tokenHash: hash("t0") }, nowMs)
        let tokens = new Set(["t0"])
        for (const { does, token } of sequence) {
          const id = `t${token}`
          if (does === "restart") actor.restart()
          else if (does === "remove") {
            actor.send({ ...removeToken, tokenId: id }, nowMs)
            tokens.delete(id)
          } else {
            const replacesAll = does === "replace"
            const known = tokens.has(id)
            actor.send({ ...addToken, tokenId: id, tokenHash: hash(id), replacesAll }, nowMs)
            if (!known && replacesAll) tokens = new Set([id])
            else if (tokens.size < accountTokensMax) tokens.add(id)
          }
          for (let at = 0; at <= 20; at++) {
            const reply = actor.send(authenticate(`t${at}`), nowMs)
            expect(reply).toMatchObject(
              tokens.has(`t${at}`) ? { account: "alice" } : { reason: "Unauthenticated" }
            )
          }
        }
      })
    )
  })
})
