import { describe, expect, it } from "vitest"
import { mailbox } from "../../actors/mailbox/actor.ts"
import type { MailboxState } from "../../actors/mailbox/protocol.ts"
import { expectOnlyReply, expectRefused, nowMs, testCells } from "./cells.ts"
import { address } from "../../runtime/index.ts"
import { absent, block, changeSecrets, checkCreate, checkNotification, configure, create, decide,
  deposit, describeIt, destroy, destroyed, expire, fetched, list, markRead, markUnread, open,
  readHead, register, registrations, remove, replace, retrieved, table, timerFired,
  unregister } from "./mailbox-cells.ts"

const ownerCaller = { account: "alice", admin: false }

const refusesAll = (state: MailboxState, reason: string) => ({
  Describe: () => expectRefused(decide(state, describeIt), reason),
  Deposit: () => expectRefused(decide(state, deposit), reason),
  Replace: () => expectRefused(decide(state, replace), reason),
  List: () => expectRefused(decide(state, list({ account: "alice" })), reason),
  Retrieved: () => expectRefused(decide(state, retrieved(1, 2)), reason),
  Remove: () => expectRefused(decide(state, remove(1)), reason),
  Configure: () => expectRefused(decide(state, configure), reason),
  ChangeSecrets: () => expectRefused(decide(state, changeSecrets), reason),
  Destroy: () => expectRefused(decide(state, destroy), reason),
  Register: () => expectRefused(decide(state, register), reason),
  Unregister: () => expectRefused(decide(state, unregister), reason),
  ReadHead: () => expectRefused(decide(state, readHead), reason),
  Registrations: () => expectRefused(decide(state, registrations({})), reason),
  MarkRead: () => expectRefused(decide(state, markRead(1, 2)), reason),
  MarkUnread: () => expectRefused(decide(state, markUnread(1)), reason),
  CopiesChanged: () => expectRefused(decide(state, fetched), reason),
  CheckNotification: () => expectRefused(decide(state, checkNotification(1)), reason),
  Block: () => expectRefused(decide(state, { _tag: "Block", caller: ownerCaller, block }), reason),
  Unblock: () =>
    expectRefused(decide(state, { _tag: "Unblock", caller: ownerCaller, id: block.id }), reason),
  Blocks: () => expectRefused(decide(state, { _tag: "Blocks", caller: ownerCaller }), reason),
  SetWebhookSecret: () =>
    expectRefused(
      decide(state, { _tag: "SetWebhookSecret", caller: ownerCaller, secret: null }),
      reason
    ),
  Expire: () => expectOnlyReply(decide(state, expire({})), undefined)
})
const whenAbsent = refusesAll(absent, "NotFound")
const whenDestroyed = refusesAll(destroyed, "Gone")

describe("a mailbox that is not open", () => {
  testCells({ Absent: table.Absent, Destroyed: table.Destroyed }, {
    "Absent.Create": () => {
      const decision = decide(absent, create)
      expect(decision.nextState).toEqual({ ...open, createdAtMs: nowMs, lastAtMs: nowMs })
      expect(decision.durable).toBe(true)
      expect(decision.answer)
        .toEqual({ _tag: "Created", version: 1, createdAtMs: nowMs, repeated: false })
    },
    "Absent.CheckCreate": () => expectOnlyReply(decide(absent, checkCreate), { _tag: "Done" }),
    "Absent.Describe": whenAbsent.Describe,
    "Absent.Deposit": whenAbsent.Deposit,
    "Absent.Replace": whenAbsent.Replace,
    "Absent.List": whenAbsent.List,
    "Absent.Retrieved": whenAbsent.Retrieved,
    "Absent.MarkRead": whenAbsent.MarkRead,
    "Absent.MarkUnread": whenAbsent.MarkUnread,
    "Absent.Remove": whenAbsent.Remove,
    "Absent.Configure": whenAbsent.Configure,
    "Absent.ChangeSecrets": whenAbsent.ChangeSecrets,
    "Absent.Destroy": whenAbsent.Destroy,
    "Absent.Register": whenAbsent.Register,
    "Absent.Unregister": whenAbsent.Unregister,
    "Absent.ReadHead": whenAbsent.ReadHead,
    "Absent.Registrations": whenAbsent.Registrations,
    "Absent.CopiesChanged": whenAbsent.CopiesChanged,
    "Absent.CheckNotification": whenAbsent.CheckNotification,
    "Absent.Block": whenAbsent.Block,
    "Absent.Unblock": whenAbsent.Unblock,
    "Absent.Blocks": whenAbsent.Blocks,
    "Absent.SetWebhookSecret": whenAbsent.SetWebhookSecret,
    "Absent.Expire": whenAbsent.Expire,
    "Absent.TimerFired": () => expectOnlyReply(decide(absent, timerFired), undefined),

    "Destroyed.Create": () => expectRefused(decide(destroyed, create), "Taken"),
    "Destroyed.CheckCreate": () => expectRefused(decide(destroyed, checkCreate), "Taken"),
    "Destroyed.Describe": whenDestroyed.Describe,
    "Destroyed.Deposit": whenDestroyed.Deposit,
    "Destroyed.Replace": whenDestroyed.Replace,
    "Destroyed.List": whenDestroyed.List,
    "Destroyed.Retrieved": whenDestroyed.Retrieved,
    "Destroyed.MarkRead": whenDestroyed.MarkRead,
    "Destroyed.MarkUnread": whenDestroyed.MarkUnread,
    "Destroyed.Remove": whenDestroyed.Remove,
    "Destroyed.Configure": whenDestroyed.Configure,
    "Destroyed.ChangeSecrets": whenDestroyed.ChangeSecrets,
    "Destroyed.Destroy": whenDestroyed.Destroy,
    "Destroyed.Register": whenDestroyed.Register,
    "Destroyed.Unregister": whenDestroyed.Unregister,
    "Destroyed.ReadHead": whenDestroyed.ReadHead,
    "Destroyed.Registrations": whenDestroyed.Registrations,
    "Destroyed.CopiesChanged": whenDestroyed.CopiesChanged,
    "Destroyed.CheckNotification": whenDestroyed.CheckNotification,
    "Destroyed.Block": whenDestroyed.Block,
    "Destroyed.Unblock": whenDestroyed.Unblock,
    "Destroyed.Blocks": whenDestroyed.Blocks,
    "Destroyed.SetWebhookSecret": whenDestroyed.SetWebhookSecret,
    "Destroyed.Expire": whenDestroyed.Expire,
    "Destroyed.TimerFired": () => {
      expect(decide(destroyed, timerFired)).toMatchObject({ nextState: undefined, timerAtMs: null })
      const left = [{ from: 1, to: 2 }, { from: 5, to: 600 }]
      const decision = decide({ ...destroyed, left }, timerFired)
      expect(decision.removals?.length).toBe(500)
      expect(decision).toMatchObject({
        nextState: { left: [{ from: 503, to: 600 }] },
        timerAtMs: nowMs
      })
    }
  })
})

describe("the mailbox's binding", () => {
  const self = address("mailbox", "alice")
  const { decodeMessage, encode, decode } = mailbox({ notificationsMax: 3, anonymousBytesMax: 1e9 })
  it("keeps a state through its record", () => {
    for (const state of [absent, open, destroyed]) {
      expect(decode(encode(state, 1, self), 1, self)).toEqual(state)
    }
  })
  it("reads the records that it wrote before it knew of registrations", () => {
    const { events, fetched, inlined, registrations, ...older } = open
    expect([events, fetched, inlined, registrations]).toEqual([0, 0, 0, []])
    expect(decode(JSON.stringify(older), 1, self)).toEqual(open)
    const tombstone = { _tag: "Destroyed", destroyedAtMs: nowMs, left: [] }
    expect(decode(JSON.stringify(tombstone), 1, self)).toEqual(destroyed)
  })
  it("refuses what is no record or message of a mailbox", () => {
    expect(() => decode("{\"_tag\":\"Ajar\"}", 1, self)).toThrow()
    expect(() => decodeMessage({ ...deposit, idRandom: "a b\nc" })).toThrow()
    expect(() => decodeMessage({ _tag: "Constructor" })).toThrow()
  })
})
