import { array, assert, constantFrom, oneof, property, record } from "fast-check"
import { describe, expect, it } from "vitest"
import { cabinet } from "../../actors/cabinet/actor.ts"
import { cabinetTable as table } from "../../actors/cabinet/decide.ts"
import type { CabinetContent, CabinetMessage, CabinetReply,
  CabinetState } from "../../actors/cabinet/protocol.ts"
import { cabinetMailboxesMax } from "../../actors/limits.ts"
import { address, type Variant } from "../../runtime/index.ts"
import { decider, expectOnlyReply, expectRefused, hash, nowMs, testCells } from "./cells.ts"
import { Model } from "./model.ts"

const decide = decider<CabinetState, CabinetMessage, CabinetReply>(table)

const mailboxes = [{ name: "news", secretHash: hash("s") }, { name: "mail" }]
const query = { contains: "Grail" }
const contents: CabinetContent = { title: "All", mailboxes, query }
const absent: CabinetState = { _tag: "Absent" }
const removed: CabinetState = { _tag: "Removed" }
const kept: Variant<CabinetState, "Active"> = {
  _tag: "Active",
  owner: "alice",
  requestId: "r1",
  createdAtMs: nowMs,
  ...contents,
  version: 1
}
const view = { owner: "alice", createdAtMs: nowMs, version: 1, ...contents }

const owner = { account: "alice", admin: false }
const stranger = { account: "bob", admin: false }
const admin = { account: "root", admin: true }
const nobody = { admin: false }
const create: CabinetMessage = { _tag: "Create", requestId: "r1", owner: "alice", contents }
const describeIt: CabinetMessage = { _tag: "Describe", caller: owner }
const replace: Variant<CabinetMessage, "Replace"> = {
  _tag: "Replace",
  requestId: "r2",
  caller: owner,
  contents
}
const remove: CabinetMessage = { _tag: "Remove", caller: owner }
const timerFired: CabinetMessage = { _tag: "TimerFired" }

const many = Array.from({ length: cabinetMailboxesMax + 1 }, (_, at) => ({ name: `m${at}` }))
const unfit: ReadonlyArray<CabinetContent> = [
  { mailboxes: [] },
  { mailboxes: many },
  { mailboxes: [{ name: "a" }, { name: "a" }] }
]

const refusesAll = (state: CabinetState, reason: string) => ({
  Describe: () => expectRefused(decide(state, describeIt), reason),
  Replace: () => expectRefused(decide(state, replace), reason),
  Remove: () => expectRefused(decide(state, remove), reason),
  TimerFired: () => expectOnlyReply(decide(state, timerFired), undefined)
})
const rows = { absent: refusesAll(absent, "NotFound"), removed: refusesAll(removed, "Gone") }

describe("the cabinet's table", () => {
  testCells(table, {
    "Absent.Create": () => {
      const decision = decide(absent, create)
      expect(decision.nextState).toEqual(kept)
      expect(decision.durable).toBe(true)
      expect(decision.answer).toEqual({ _tag: "Created", view })
      const bare: CabinetContent = { mailboxes: [{ name: "mail" }] }
      expect(decide(absent, { ...create, contents: bare }).answer).toEqual({
        _tag: "Created",
        view: { owner: "alice", createdAtMs: nowMs, version: 1, mailboxes: [{ name: "mail" }] }
      })
      for (const bad of unfit) {
        expectRefused(decide(absent, { ...create, contents: bad }), "Invalid")
      }
      const most = { mailboxes: many.slice(1) }
      expect(decide(absent, { ...create, contents: most }).durable).toBe(true)
    },
    "Absent.Describe": rows.absent.Describe,
    "Absent.Replace": rows.absent.Replace,
    "Absent.Remove": rows.absent.Remove,
    "Absent.TimerFired": rows.absent.TimerFired,

    "Active.Create": () => {
      expectOnlyReply(decide(kept, create), { _tag: "Created", view })
      expectRefused(decide(kept, { ...create, requestId: "r2" }), "Taken")
      expectRefused(decide(kept, { ...create, owner: "bob" }), "Taken")
    },
    "Active.Describe": () => {
      expectOnlyReply(decide(kept, describeIt), { _tag: "Described", view })
      for (const caller of [stranger, admin]) {
        expectRefused(decide(kept, { _tag: "Describe", caller }), "Forbidden")
      }
      expectRefused(decide(kept, { _tag: "Describe", caller: nobody }), "Unauthenticated")
    },
    "Active.Replace": () => {
      const next: CabinetContent = {
        mailboxes: [{ name: "news" }, { name: "mail", secretHash: hash("m") }, { name: "more" }]
      }
      const decision = decide(kept, { ...replace, contents: next, ifVersion: 1 })
      const known = { owner: "alice", createdAtMs: nowMs, version: 2 }
      // The right to news is kept; title and query are what the new contents say: none.
      const after = {
        ...known,
        mailboxes: [mailboxes[0], { name: "mail", secretHash: hash("m") }, { name: "more" }]
      }
      expect(decision.nextState).toEqual({
        _tag: "Active",
        requestId: "r1",
        replacedBy: "r2",
        ...after
      })
      expect(decision.durable).toBe(true)
      expect(decision.answer).toEqual({ _tag: "Replaced", view: after })
      expectRefused(decide(kept, { ...replace, caller: stranger }), "Forbidden")
      expectRefused(decide(kept, { ...replace, caller: admin }), "Forbidden")
      expectRefused(decide(kept, { ...replace, caller: nobody }), "Unauthenticated")
      expectRefused(decide(kept, { ...replace, ifVersion: 2 }), "PreconditionFailed")
      const replaced = decision.nextState ?? absent
      const repeated = { ...replace, contents: next, ifVersion: 1 }
      expectOnlyReply(decide(replaced, repeated), { _tag: "Replaced", view: after })
      const others = decide(replaced, { ...replace, requestId: "r3" }).nextState ?? absent
      expectRefused(decide(others, repeated), "PreconditionFailed")
      for (const bad of unfit) {
        expectRefused(decide(kept, { ...replace, contents: bad }), "Invalid")
      }
    },
    "Active.Remove": () => {
      for (const caller of [owner, admin]) {
        const decision = decide(kept, { _tag: "Remove", caller, ifVersion: 1 })
        expect(decision.nextState).toEqual(removed)
        expect(decision.durable).toBe(true)
        expect(decision.answer).toEqual({ _tag: "Done" })
      }
      expectRefused(decide(kept, { _tag: "Remove", caller: stranger }), "Forbidden")
      expectRefused(decide(kept, { _tag: "Remove", caller: nobody }), "Unauthenticated")
      expectRefused(decide(kept, { ...remove, ifVersion: 2 }), "PreconditionFailed")
    },
    "Active.TimerFired": () => expectOnlyReply(decide(kept, timerFired), undefined),

    "Removed.Create": () => expectRefused(decide(removed, create), "Gone"),
    "Removed.Describe": rows.removed.Describe,
    "Removed.Replace": rows.removed.Replace,
    "Removed.Remove": rows.removed.Remove,
    "Removed.TimerFired": rows.removed.TimerFired
  })
})

describe("a cabinet", () => {
  const names = constantFrom("a", "b", "c")
  const lists = array(
    record({ name: names, secret: constantFrom(undefined, "s1", "s2") }),
    { minLength: 1, maxLength: 4 }
  )
  const commands = array(oneof({ weight: 5, arbitrary: lists }, constantFrom("restart" as const)))

  it("keeps a right as long as its mailbox is listed, in any order of changes and restarts", () => {
    assert(
      property(commands, (sequence) => {
        const actor = new Model(cabinet)
        const first: CabinetContent = { mailboxes: [{ name: "a" }] }
        actor.send({ _tag: "Create", requestId: "r1", owner: "alice", contents: first }, nowMs)
        let rights = new Map<string, string | undefined>([["a", undefined]])
        for (const command of sequence) {
          if (command === "restart") {
            actor.restart()
            continue
          }
          const listed = new Map(command.map(({ name, secret }) => [name, secret]))
          const next = [...listed].map(([name, secret]) => ({
            name,
            ...secret === undefined ? {} : { secretHash: hash(secret) }
          }))
          actor.send({ _tag: "Replace", caller: owner, contents: { mailboxes: next } }, nowMs)
          rights = new Map([...listed].map(([name, secret]) => [
            name,
            secret === undefined ? rights.get(name) : hash(secret)
          ]))
          const reply = actor.send(describeIt, nowMs)
          expect(reply).toMatchObject({
            view: {
              mailboxes: [...rights].map(([name, secretHash]) =>
                secretHash === undefined ? { name } : { name, secretHash }
              )
            }
          })
        }
      })
    )
  })

  it("refuses what is no message or record of it", () => {
    const bad = [
      { ...create, contents: { mailboxes: [{ name: "Not A Name" }] } },
      { ...create, contents: { mailboxes: [{ name: "a", secretHash: "the secret itself" }] } },
      { _tag: "Describe" }
    ]
    for (const message of bad) expect(() => cabinet.decodeMessage(message)).toThrow()
    const self = address("cabinet", "one")
    expect(cabinet.decode(cabinet.encode(kept, 1, self), 1, self)).toEqual(kept)
  })
})
