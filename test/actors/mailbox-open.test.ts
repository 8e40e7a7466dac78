import { describe, expect, it } from "vitest"
import { type Block, hostsOf } from "../../actors/blocks.ts"
import { expiryReadRetryMs, mailboxBlocksMax, originBrowsersMax, readRangesMax,
  removedLocalDeliveriesMax, removedLocalDeliveryRetentionMs } from "../../actors/limits.ts"
import { decodeItem, encodeRemoval, itemRepeatKey } from "../../actors/mailbox/log-item.ts"
import { firstStartRequestId, type MailboxMessage, type MailboxState,
  reportsRequestId } from "../../actors/mailbox/protocol.ts"
import { nothingWaiting, savedWaiting, waitingBytesOf,
  withWaiting } from "../../actors/mailbox/waiting-bytes.ts"
import { address, isRefusal, type Variant } from "../../runtime/index.ts"
import { effectsOf, expectOnlyReply, expectRefused, hash, nowMs, testCells } from "./cells.ts"
import { absent, block, bob, changeSecrets, checkCreate, checkNotification, configure, create,
  decide, deposit, describeIt, destroy, destroyed, done, earlier, expire, fetched, list, markRead,
  markUnread, ms30Days, nobody, open, part, readHead, register, registrations, registrationSignal,
  remove, replace, retrieved, self, table, taskSignal, timerFired, unregister,
  watched } from "./mailbox-cells.ts"
import { defaultSettings } from "./mailbox-settings.ts"

const view = {
  owner: "alice",
  isOwner: false,
  settings: defaultSettings,
  createdAtMs: nowMs - 10,
  version: 1,
  head: 7,
  lastAtMs: nowMs - 5,
  removed: 0,
  fetched: 0,
  notifications: 7
}

const blocking = { ...open, blocks: [block] }
const alice = { account: "alice", admin: false }
const stranger = { account: "bob", admin: false }

/** The refusal of a deposit of a mailbox with this block; undefined if it is stored. */
const refusalOf = (
  fields: Partial<Block>,
  deposited: Partial<Variant<MailboxMessage, "Deposit">>
): string | undefined => {
  const state = { ...open, blocks: [{ ...block, ...fields }] }
  const { answer } = decide(state, { ...deposit, ...deposited })
  return isRefusal(answer) ? answer.detail : undefined
}

describe("a block", () => {
  it("refuses an account, a network or a host, until it ends", () => {
    const by = "the owner of this mailbox has blocked "
    expect(refusalOf({}, { account: "mordred" }))
      .toBe(`${by}the account mordred; this request stored nothing`)
    expect(refusalOf({}, { account: "arthur" })).toBeUndefined()
    expect(refusalOf({ untilMs: nowMs + 1 }, { account: "mordred" }))
      .toContain(`until ${new Date(nowMs + 1).toISOString()}`)
    expect(refusalOf({ untilMs: nowMs }, { account: "mordred" })).toBeUndefined()
    const network = "203.0.113.0/24"
    expect(refusalOf({ kind: "network", value: network }, { network })).toContain(network)
    expect(refusalOf({ kind: "network", value: network }, { network: "203.0.112.0/24" }))
      .toBeUndefined()
    const naming = (uri: string) =>
      refusalOf({ kind: "host", value: "evil.example" }, {
        fragment: `<item><description>evil.example</description>${uri}</item>`
      })
    expect(naming("<url>http://user@www.EVIL.example.:81/a</url>")).toContain("evil.example")
    expect(naming("<url>/here</url><from>https://evil.example</from>")).toContain("evil.example")
    expect(naming("<url>https://notevil.example/evil.example</url>")).toBeUndefined()
    expect(naming("<url>https://good.example/?https://evil.example/</url>")).toBeUndefined()
    expect(naming("<click>https://good.example/</click><url/>")).toBeUndefined()
  })

  it.each([
    "<url>http:///evil.example/x</url>",
    "<url>http:evil.example</url>",
    "<url>https:\\\\evil.example/</url>",
    "<url>//evil.example/x</url>",
    "<url>http://evil%2Eexample/</url>",
    "<url>http://a@b@evil.example/</url>",
    "<url>http://ev&amp;:@evil.example/</url>",
    "<url>http://\uff45vil\u3002example./</url>",
    "<url>ftp://EVIL.example/</url>",
    "<url>ht&#9;tp://evil.example/</url>",
    "<url>good</url><from>http:////evil.example</from>",
    "<url>good</url><click>https://evil.example/</click>",
    "<url>good</url><x:click xmlns:x=\"urn:x\">https://evil.example/</x:click>",
    "<url>good</url><click>http://<b/>evil<click>.</click>example/</click>",
    "<url>good</url><click><![CDATA[https://evil.example/]]></click>",
    "<url>good</url><click>https://ev<![CDATA[il.exa]]>mple/<![CDATA[</click>]]></click>",
    "<url>good</url><click><![CDATA[http://a&amp;b@evil.example/]]></click>",
    "<url>good</url><click>https://ev<!-- </click> -->il.example/<!-- > --></click>",
    "<url>good</url><click>https://&#000000101;vil.example/</click>",
    "<url>good</url><click>https://&#x00000000065;vil.example/</click>",
    "<url>good</url><click a=\"x>y\">https://evil.example/</click>",
    "<url>good</url><click a='/>' b=\"'>\">https://evil.example/</click>",
    "<!-- <click> --><url>good</url><click\n>https://evil.example/</click >",
    "<url>good</url><b c=\"/\"><click>https://evil.example/</click></b>"
  ])("of a host refuses it in every spelling that browsers read: %s", (links) => {
    const fragment = `<item><description>d</description>${links}</item>`
    expect(refusalOf({ kind: "host", value: "evil.example" }, { fragment }))
      .toContain("evil.example")
    expect(refusalOf({ kind: "host", value: "good.example" }, { fragment })).toBeUndefined()
    expect(hostsOf(fragment)).toEqual(["evil.example"])
  })
})

describe("the mailbox of the first start", () => {
  const first = { ...open, owner: "admin", requestId: firstStartRequestId }

  const byAdmin = { ...create, isAdmin: true }

  it.each([
    ["its owner", { ...create, owner: "admin" }],
    ["an admin", byAdmin]
  ])("is replaced by one that %s creates, while nobody has used it", (_who, message) => {
    const { answer, nextState } = decide(first, message, { head: 0 })
    expect(answer).toEqual({ _tag: "Created", version: 2, createdAtMs: nowMs, repeated: false })
    const { owner } = message
    expect(nextState)
      .toEqual({ ...open, owner, requestId: "r1", createdAtMs: nowMs, lastAtMs: nowMs, version: 2 })
  })

  it("is taken for any other account, used or not", () => {
    for (const head of [0, 1]) {
      expectRefused(decide(first, create, { head }), "Taken")
      expectRefused(decide(first, { ...create, isAdmin: false }, { head }), "Taken")
    }
  })

  it("is taken once it has been used or changed", () => {
    expectRefused(decide(first, byAdmin, { head: 1 }), "Taken")
    for (const used of [{ version: 2 }, { blocks: [block] }, { registrations: [part("one")] }]) {
      expectRefused(decide({ ...first, ...used }, byAdmin, { head: 0 }), "Taken")
    }
  })

  it("is the same for a repetition of that start's request", () => {
    const again = { ...create, owner: "admin", requestId: firstStartRequestId }
    expectOnlyReply(decide(first, again, { head: 0 }), {
      _tag: "Created",
      version: 1,
      createdAtMs: nowMs - 10,
      repeated: true
    })
  })
})

describe("a mailbox that the service has opened for failure reports", () => {
  const opened = { ...open, requestId: reportsRequestId }

  const useOf = (state: typeof open, head = 0) => {
    const { answer } = decide(state, { _tag: "Describe", reader: {} }, { head })
    return answer?._tag === "Described" && answer.view.forReports
  }

  it("is unused until something is in it, or it is changed", () => {
    expect([useOf(opened), useOf(open)]).toEqual(["unused", undefined])
    expect(useOf(opened, 1)).toBe("used")
    for (const used of [{ version: 2 }, { blocks: [block] }, { registrations: [part("one")] }]) {
      expect(useOf({ ...opened, ...used })).toBe("used")
    }
  })

  it("is not replaced by another one", () => {
    expectRefused(decide(opened, { ...create, isAdmin: true }, { head: 0 }), "Taken")
  })
})

describe("an open mailbox", () => {
  testCells({ Open: table.Open }, {
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
    "Open.CheckCreate": () => {
      expectOnlyReply(decide(open, checkCreate), { _tag: "Done" })
      expectRefused(decide(open, { ...checkCreate, requestId: "r2" }), "Taken")
      expectRefused(decide(open, { ...checkCreate, owner: "bob" }), "Taken")
      const first = { ...open, owner: "admin", requestId: firstStartRequestId }
      expectRefused(decide(first, checkCreate, { head: 0 }), "Taken")
      for (const mayReplace of [{ isAdmin: true }, { owner: "admin" }]) {
        const check = { ...checkCreate, ...mayReplace }
        expectOnlyReply(decide(first, check, { head: 0 }), { _tag: "Done" })
        expectRefused(decide(first, check, { head: 1 }), "Taken")
      }
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
      const waiting = withWaiting(nothingWaiting, 3, waitingBytesOf(decision.items?.[0] ?? ""))
      expect(decision.nextState).toEqual({ ...open, lastAtMs: nowMs, waiting })
      expect(decide(open, { ...deposit, account: "bob" }, { head: 2 }).nextState)
        .toEqual({ ...open, lastAtMs: nowMs })
      expect(decision.items?.map(decodeItem)).toEqual([{
        atMs: nowMs,
        idRandom: part("random"),
        digest: part("digest"),
        fragment: "<item/>"
      }])
      expect(decision.itemKeys).toEqual(decision.items?.map(itemRepeatKey))
      expect(decision.answer).toEqual({
        _tag: "Deposited",
        n: 3,
        repeated: false,
        idRandom: part("random")
      })
      const back = decide(open, deposit, { nowMs: nowMs - 1000 })
      expect(back.items?.map(decodeItem)).toMatchObject([{ atMs: open.lastAtMs }])
      const repeated = { _tag: "Deposited", n: 2, repeated: true }
      const findDuplicate = () => 2
      expectOnlyReply(decide(open, deposit, { head: 3, findDuplicate }), repeated)
      const first = { ...open, gone: [{ from: 2, to: 2 }], removed: 1 }
      expect(decide(first, deposit, { head: 3, findDuplicate }).answer)
        .toMatchObject({ n: 4, repeated: false })
      // The removal of the first one is forgotten, and the sender has not found it in the log.
      expect(decide(open, { ...deposit, missing: 2 }, { head: 2, findDuplicate }).answer)
        .toMatchObject({ n: 3, repeated: false })
      expectOnlyReply(
        decide(open, { ...deposit, missing: 1 }, { head: 3, findDuplicate }),
        repeated
      )
      // The item of an earlier attempt with the same key, though it is removed.
      const keyed = { ...deposit, key: "key".padEnd(43, "_") }
      expectOnlyReply(decide(first, keyed, { head: 3, findDuplicate }), {
        ...repeated,
        idRandom: part("random")
      })
      expect(decide(open, keyed, { head: 2, self }).signals).toEqual([
        { address: address("idempotency", `${self.id}=${keyed.key}`), hint: 3 }
      ])
      expectRefused(decide(open, deposit, { head: 3 }), "Full")
      const closed: MailboxState = {
        ...open,
        settings: { ...defaultSettings, deposit: "accounts" }
      }
      expectRefused(decide(closed, deposit), "Unauthenticated")
      expect(decide(closed, { ...deposit, account: "bob" }).answer).toMatchObject({ n: 1 })
      const relay = { ...deposit, idRandom: part("_relay") }
      const removedLocalDeliveries = [{ id: `a-${part("_relay")}`, atMs: nowMs }]
      const forgetful: MailboxState = { ...first, removedLocalDeliveries }
      const later = nowMs + removedLocalDeliveryRetentionMs
      expectOnlyReply(decide(forgetful, relay, { head: 3, nowMs: later - 1 }), {
        ...repeated,
        n: 10,
        idRandom: relay.idRandom
      })
      expect(decide(forgetful, relay, { head: 3, nowMs: later }).answer).toMatchObject({ n: 4 })
      const another = { ...relay, idRandom: part("_other") }
      expect(decide(forgetful, another, { head: 3 }).answer).toMatchObject({ n: 4 })
      expect(decision.signals).toBeUndefined()
      const eager = { ...defaultSettings, fetch: "eager", receipts: "received" } as const
      const full = decide({ ...watched, settings: eager }, deposit, { head: 35, self, nowMs })
      expectRefused(full, "Full")
      const after: MailboxState = { ...watched, settings: eager, removed: 33, events: 2 }
      expect(decide(after, deposit, { head: 35, self }).signals)
        .toEqual([registrationSignal(36), taskSignal("10-fetch"), taskSignal("10-received")])
      // The first deposit that brings content is recorded: removals then signal its task.
      const brings = { ...deposit, isInlined: true }
      const bringing = decide(open, brings, { head: 2, self })
      expect(bringing).toMatchObject({
        nextState: { ...open, lastAtMs: nowMs, inlined: 1, waiting: savedWaiting(waiting, 3) },
        durable: true
      })
      expect(bringing.signals).toEqual([taskSignal("3-inlined")])
      const next = decide({ ...open, inlined: 1 }, brings, { head: 2, self })
      expect([next.durable, next.signals]).toEqual([false, [taskSignal("3-inlined")]])
    },
    "Open.Replace": () => {
      const replaced = { n: 2, idRandom: earlier.idRandom }
      const known = { ...replace, replaced }
      // One commit removes the first one and stores this one, also in a full mailbox.
      const decision = decide(open, known, { head: 3, self })
      expect(decision.items?.map(decodeItem)).toMatchObject([{
        atMs: nowMs,
        idRandom: replace.idRandom,
        digest: replace.digest,
        fragment: replace.fragment,
        account: "bob"
      }])
      expect(decision.itemKeys).toEqual(decision.items?.map(itemRepeatKey))
      expect([decision.removals, decision.durable, decision.signals])
        .toEqual([[2], true, undefined])
      expect(decision.nextState).toEqual({
        ...open,
        lastAtMs: nowMs,
        removed: 1,
        gone: [{ from: 2, to: 2 }],
        removedLocalDeliveries: [{ id: `2-${earlier.idRandom}`, atMs: nowMs }]
      })
      const stored = { _tag: "Deposited", n: 4, repeated: false, idRandom: replace.idRandom }
      expect(decision.answer).toEqual(stored)
      // A late attempt of the first edition stores nothing.
      const late = { ...deposit, ...earlier, account: "bob" }
      const after = decision.nextState ?? open
      expectOnlyReply(decide(after, late, { head: 4 }), {
        _tag: "Deposited",
        n: 2,
        repeated: true,
        idRandom: earlier.idRandom
      })
      // Registrations learn of the removal and of the new one; a withdrawal has no content.
      const eager = { ...defaultSettings, fetch: "eager", receipts: "received" } as const
      const settled = { ...watched, settings: eager }
      const pushed = decide(settled, known, { head: 3, self })
      expect(pushed.items?.[0]).toBe(encodeRemoval(nowMs, [`2-${earlier.idRandom}`]))
      expect(pushed.answer).toEqual({ ...stored, n: 5 })
      expect(pushed.signals)
        .toEqual([
          registrationSignal(5),
          taskSignal("5-fetch"),
          taskSignal("5-received"),
          taskSignal("2-fetch")
        ])
      const withdrawn = decide(settled, { ...known, isWithdrawal: true }, { head: 3, self })
      expect(withdrawn.signals).toEqual([registrationSignal(5), taskSignal("2-fetch")])
      // A copy of the first one's content is removed with it.
      expect(decide({ ...open, fetched: 1 }, known, { head: 3, self }).signals)
        .toEqual([taskSignal("2-fetch")])
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
      expect(decision.timerAtMs).toBe(nowMs + ms30Days)
      expectOnlyReply(decide(after, retrieved(1, 3), { head: 3, nowMs: nowMs + 9 }), done)
      expectOnlyReply(decide(open, retrieved(1, 9)), done)
      const gone = { ...open, gone: [{ from: 1, to: 2 }], removed: 2 }
      expect(decide(gone, retrieved(1, 3), { head: 3 }).nextState)
        .toMatchObject({ retrieved: [{ from: 3, to: 3 }] })
      const telling: MailboxState = {
        ...gone,
        settings: { ...defaultSettings, receipts: "retrieved" },
        retrieved: [{ from: 3, to: 3, atMs: nowMs }]
      }
      const signaling = decide(telling, retrieved(1, 5), { head: 9, self })
      expect(signaling.signals).toEqual([taskSignal("4-retrieved"), taskSignal("5-retrieved")])
      const many = decide(telling, retrieved(1, 900), { head: 900, self })
      expect(many.signals?.length).toBe(256)
      expect(many.nextState).toMatchObject({ retrieved: [{ from: 3, to: 259 }] })
    },
    "Open.Remove": () => {
      const decision = decide(open, remove(2), { head: 3 })
      expect(decision.nextState).toEqual({ ...open, removed: 1, gone: [{ from: 2, to: 2 }] })
      expect(decision.removals).toEqual([2])
      expect(decision.answer).toEqual(done)
      expectRefused(decide(open, remove(4), { head: 3 }), "NotFound")
      expectRefused(decide(open, remove(0), { head: 3 }), "NotFound")
      const stranger: MailboxMessage = { _tag: "Remove", n: 1, idRandom: part("r"), reader: {} }
      expectRefused(decide(open, stranger), "Unauthenticated")
      const admin: MailboxMessage = {
        ...stranger,
        reader: { account: "admin", isAdmin: true }
      }
      expect(decide(open, admin, { head: 3 }).removals).toEqual([1])
      const gone = { ...open, gone: [{ from: 2, to: 2 }], removed: 1 }
      expectRefused(decide(gone, remove(2), { head: 3 }), "Gone")
      const idRandom = part("_relay")
      const relay = { ...remove(2), idRandom }
      const known = { id: `2-${idRandom}`, atMs: nowMs }
      expect(decide(open, relay, { head: 3 }).nextState).toMatchObject({
        removedLocalDeliveries: [known]
      })
      const old = { id: "1-old", atMs: nowMs - removedLocalDeliveryRetentionMs }
      const many = Array.from(
        { length: removedLocalDeliveriesMax },
        (_, at) => ({ ...known, atMs: nowMs - at })
      )
      for (
        const [before, after] of [[[old], [known]], [many, [...many.slice(1), known]]] as const
      ) {
        expect(decide({ ...open, removedLocalDeliveries: before }, relay, { head: 3 }).nextState)
          .toMatchObject({ removedLocalDeliveries: after })
      }
      const signaling = decide(watched, remove(2), { head: 3, self })
      expect(signaling.items).toEqual([encodeRemoval(nowMs, [`2-${part("random2")}`])])
      expect(signaling.removals).toEqual([2])
      expect(signaling.signals).toEqual([registrationSignal(4), taskSignal("2-fetch")])
      expect(signaling.nextState).toMatchObject({
        removed: 1,
        events: 1,
        lastAtMs: nowMs,
        retrieved: [{ from: 4, to: 4, atMs: nowMs }]
      })
    },
    "Open.Configure": () => {
      const signaling = decide(open, { ...configure, ifVersion: 1 })
      expect(signaling.nextState).toEqual({ ...open, settings: configure.settings, version: 2 })
      expect(signaling.answer).toEqual({ _tag: "Configured", version: 2 })
      expect(signaling.timerAtMs).toBeNull()
      const signed = decide({ ...open, webhookSecret: "old" }, configure).nextState
      expect(signed).toMatchObject({ webhookSecret: "old", version: 2 })
      for (const webhookSecret of ["sealed", null]) {
        expect(decide({ ...open, webhookSecret: "old" }, { ...configure, webhookSecret }).nextState)
          .toMatchObject({ settings: configure.settings, webhookSecret, version: 2 })
      }
      const read = { ...open, retrieved: [{ from: 1, to: 1, atMs: nowMs }] }
      const settings = { ...defaultSettings, retention: "PT1S", retentionMs: 1000 }
      expect(decide(read, { ...configure, settings }).timerAtMs).toBe(nowMs + 1000)
      expectRefused(decide(open, { ...configure, ifVersion: 2 }), "PreconditionFailed")
      const repeated = { ...configure, webhookSecret: "sealed", ifVersion: 1 }
      const changed = { ...open, settings: configure.settings, webhookSecret: "sealed", version: 2 }
      expect(decide(open, repeated).nextState).toEqual(changed)
      expectOnlyReply(decide(changed, repeated), { _tag: "Configured", version: 2 })
      for (const theirs of [{ webhookSecret: "other" }, { settings: defaultSettings }]) {
        const later = { ...changed, ...theirs, version: 3 }
        expectRefused(decide(later, repeated), "PreconditionFailed")
      }
      expectRefused(decide(open, { ...configure, caller: stranger }), "Forbidden")
      expectRefused(decide(open, { ...configure, caller: { ...bob, admin: true } }), "Forbidden")
      expectRefused(decide(open, { ...configure, caller: nobody }), "Unauthenticated")
    },
    "Open.ChangeSecrets": () => {
      const secrets = { passwordHash: hash("p2"), sharedHash: hash("s2"), secretsVersion: 1 }
      const changed = { ...open, ...secrets, version: 2 }
      // Registrations that an old secret allowed learn it.
      expect(decide(watched, changeSecrets).signals).toMatchObject([
        { address: { kind: "registration" }, hint: undefined }
      ])
      expect(decide(open, changeSecrets).nextState)
        .toEqual(changed)
      const repeated = { ...changeSecrets, ifVersion: 1 }
      expect(decide(open, repeated).nextState).toEqual(changed)
      expectOnlyReply(decide(changed, repeated), { _tag: "Configured", version: 2 })
      const theirs = { ...changed, version: 3, passwordHash: hash("p3") }
      expectRefused(decide(theirs, repeated), "PreconditionFailed")
      expectRefused(decide(open, { ...changeSecrets, caller: stranger }), "Forbidden")
      expectRefused(decide(open, { ...changeSecrets, caller: nobody }), "Unauthenticated")
    },
    "Open.Destroy": () => {
      const gone = { ...open, gone: [{ from: 2, to: 2 }], removed: 1 }
      const decision = decide(gone, destroy, { head: 3 })
      expect(decision.nextState).toEqual(destroyed)
      expect(decision.removals).toEqual([1, 3])
      expect(decision.timerAtMs).toBeNull()
      expect(decision.answer).toEqual(done)
      expect(decide(open, destroy, { head: 1200 })).toMatchObject({
        nextState: { left: [{ from: 501, to: 1200 }] },
        timerAtMs: nowMs
      })
      expect(decide(open, { ...destroy, caller: { ...bob, admin: true } }).answer).toEqual(done)
      expectRefused(decide(open, { ...destroy, caller: stranger }), "Forbidden")
      expectRefused(decide(open, { ...destroy, caller: nobody }), "Unauthenticated")
      expectRefused(decide(open, { ...destroy, ifVersion: 9 }), "PreconditionFailed")
      const signaling = decide(watched, destroy, { head: 2, self })
      expect(signaling.nextState).toEqual({ ...destroyed, fetched: 1 })
      expect(signaling.signals)
        .toEqual([taskSignal("1-fetch"), taskSignal("2-fetch"), registrationSignal()])
    },
    "Open.Register": () => {
      const signaling = decide(open, register, { head: 4 })
      expect(signaling.nextState).toEqual({ ...open, registrations: ["registration-1"] })
      expect(signaling.answer).toEqual(done)
      expectOnlyReply(decide(watched, register, { head: 4 }), done)
      expectRefused(decide(open, { ...register, reader: {} }), "Unauthenticated")
      const all = Array.from({ length: 256 }, (_, at) => `registration${at}`)
      expectRefused(decide({ ...open, registrations: all }, register), "Full")
      // Those of browsers at one origin that is no known push service.
      const browserOrigins = Array.from({ length: originBrowsersMax }, (_, at) => ({
        part: `browser${at}`,
        origin: "one"
      }))
      const browser = { ...register, origin: "one" }
      expect(decide(open, browser).nextState).toEqual({
        ...open,
        registrations: ["registration-1"],
        browserOrigins: [{ part: "registration-1", origin: "one" }]
      })
      const crowded = {
        ...open,
        registrations: browserOrigins.map(({ part }) => part),
        browserOrigins
      }
      expectRefused(decide(crowded, browser), "Full")
      expectOnlyReply(decide(crowded, { ...browser, id: "alice=browser3" }), done)
      for (const other of [{ ...browser, origin: "two" }, register]) {
        expect(decide(crowded, other).answer).toEqual(done)
      }
      const { nextState: left = open } = decide(crowded, {
        _tag: "Unregister",
        id: "alice=browser3"
      })
      expect(decide(left, browser).answer).toEqual(done)
      // A node of an earlier version has removed all of them, and kept their origins.
      const { nextState: kept } = decide({ ...crowded, registrations: [] }, browser)
      expect(kept).toMatchObject({
        browserOrigins: [{ part: "registration-1", origin: "one" }]
      })
    },
    "Open.Unregister": () => {
      const signaling = decide(watched, unregister)
      expect(signaling.nextState).toEqual({ ...watched, registrations: [] })
      expect(signaling.answer).toEqual(done)
      expectOnlyReply(decide(open, unregister), done)
    },
    "Open.ReadHead": () => {
      const reply = { _tag: "Head", head: 9, lastAtMs: nowMs - 5 }
      expectOnlyReply(decide(watched, readHead, { head: 9 }), reply)
      expectRefused(decide(open, readHead, { head: 9 }), "NotFound")
      const changed = { ...watched, secretsVersion: 2 }
      expectOnlyReply(decide(changed, readHead, { head: 9 }), reply)
      expectOnlyReply(decide(changed, { ...readHead, secretsVersion: 2 }, { head: 9 }), reply)
      expectRefused(decide(changed, { ...readHead, secretsVersion: 1 }, { head: 9 }), "Forbidden")
    },
    "Open.Registrations": () => {
      const ids = { _tag: "Registrations", ids: ["registration-1"] }
      expectOnlyReply(decide(watched, registrations({ account: "alice" })), ids)
      expectRefused(decide(watched, registrations({ account: "bob" })), "Forbidden")
    },
    "Open.Block": () => {
      const message: MailboxMessage = { _tag: "Block", caller: alice, block }
      const decision = decide(open, message)
      expect([decision.durable, decision.answer]).toEqual([true, { _tag: "Done" }])
      expect(decision.nextState).toEqual(blocking)
      // Again, and instead of those that have ended.
      expect(decide(blocking, message).nextState).toEqual(blocking)
      const ended = { ...block, id: "ended".padEnd(22, "_"), untilMs: nowMs }
      expect(decide({ ...open, blocks: [ended] }, message).nextState).toEqual(blocking)
      const many = Array.from({ length: mailboxBlocksMax }, (_, at) => ({
        ...block,
        id: String(at).padEnd(22, "_")
      }))
      expectRefused(decide({ ...open, blocks: many }, message), "Full")
      expectRefused(decide(open, { ...message, caller: stranger }), "Forbidden")
    },
    "Open.Unblock": () => {
      const message: MailboxMessage = { _tag: "Unblock", caller: alice, id: block.id }
      expect(decide(blocking, message).nextState).toEqual(open)
      expectRefused(decide(open, message), "NotFound")
      expectRefused(decide(blocking, { ...message, caller: stranger }), "Forbidden")
    },
    "Open.SetWebhookSecret": () => {
      const message = { _tag: "SetWebhookSecret", caller: alice, secret: "sealed" } as const
      const { answer, nextState } = decide(open, message)
      expect([answer, nextState]).toEqual([done, { ...open, webhookSecret: "sealed", version: 2 }])
      expectOnlyReply(decide(open, { ...message, secret: null }), done)
      expectRefused(decide(open, { ...message, caller: stranger }), "Forbidden")
      const signed = { ...open, webhookSecret: "sealed" }
      expectOnlyReply(decide(signed, describeIt, { head: 7 }), {
        _tag: "Described",
        view: { ...view, webhookSecret: "sealed" },
        mayRead: false
      })
      expect(decide(signed, { ...message, secret: null }).nextState)
        .toEqual({ ...open, version: 2 })
    },
    "Open.Blocks": () => {
      const message: MailboxMessage = { _tag: "Blocks", caller: alice }
      expectOnlyReply(decide(blocking, message), { _tag: "Blocks", blocks: [block] })
      const ended = { ...open, blocks: [{ ...block, untilMs: nowMs }] }
      expectOnlyReply(decide(ended, message), { _tag: "Blocks", blocks: [] })
      expectRefused(decide(open, { ...message, caller: { admin: true } }), "Unauthenticated")
    },
    "Open.MarkRead": () => {
      const read = [{ from: 2, to: 3 }]
      const decision = decide(open, markRead(2, 3), { head: 7 })
      expect(decision.nextState).toEqual({ ...open, read })
      expect(decision.answer).toEqual(done)
      const state = { ...open, read }
      // The shared password reads as the owner does, and all readers have the same marks.
      const shared = { secretHash: hash("shared") }
      expect(decide(state, list(shared), { head: 7 }).answer).toMatchObject({ view: { read } })
      expect(decide(state, markRead(1, 9, shared), { head: 7 }).nextState)
        .toEqual({ ...open, read: [{ from: 1, to: 7 }] })
      for (const nothing of [markRead(2, 3), markRead(8, 9), markRead(3, 2)]) {
        expectOnlyReply(decide(state, nothing, { head: 7 }), done)
      }
      expectRefused(decide(state, markRead(1, 2, { account: "bob" })), "Forbidden")
      expectRefused(decide(state, markRead(1, 2, {})), "Unauthenticated")
      // The view for others does not have them.
      expect(decide(state, describeIt, { head: 7 }).answer)
        .toEqual({ _tag: "Described", view, mayRead: false })
      const apart = Array.from({ length: readRangesMax }, (_, at) => ({
        from: 3 * at + 1,
        to: 3 * at + 2
      }))
      const full = decide({ ...open, read: apart }, markRead(4_000, 4_000), { head: 5_000 })
      const added = { from: 4_000, to: 4_000 }
      // The oldest marks are forgotten, or none where only removed notifications are between some.
      expect(full.nextState).toEqual({ ...open, read: [...apart.slice(1), added] })
      const higher = apart.map(({ from, to }) => ({ from: from + 9, to: to + 9 }))
      expect(decide({ ...open, read: higher }, markRead(1, 1), { head: 5_000 }).nextState)
        .toEqual({ ...open, read: [{ from: 1, to: 1 }, ...higher.slice(1)] })
      const between = { ...open, removed: 1, gone: [{ from: 6, to: 6 }], read: apart }
      const joined = [{ from: 1, to: 2 }, { from: 4, to: 8 }, ...apart.slice(3)]
      expect(decide(between, markRead(4_000, 4_000), { head: 5_000 }).nextState)
        .toEqual({ ...between, read: [...joined, added] })
      const prefix = { ...open, removed: 5, gone: [{ from: 1, to: 5 }], read: apart }
      expect(decide(prefix, markRead(4_000, 4_000), { head: 5_000 }).nextState)
        .toEqual({ ...prefix, read: [...apart.slice(2), added] })
    },
    "Open.MarkUnread": () => {
      const state = { ...open, read: [{ from: 1, to: 3 }] }
      const decision = decide(state, markUnread(2), { head: 7 })
      expect(decision.nextState)
        .toEqual({ ...open, read: [{ from: 1, to: 1 }, { from: 3, to: 3 }] })
      expect(decision.answer).toEqual(done)
      expectOnlyReply(decide(state, markUnread(4), { head: 7 }), done)
      expectRefused(decide(state, markUnread(2, { account: "bob" })), "Forbidden")
      expectRefused(decide(state, markUnread(2, {})), "Unauthenticated")
    },
    "Open.CopiesChanged": () => {
      expect(decide(open, fetched).nextState).toEqual({ ...open, fetched: 1 })
      expect(decide(watched, list({ account: "alice" })).answer)
        .toMatchObject({ view: { fetched: 1 } })
    },
    "Open.CheckNotification": () => {
      const state = {
        ...open,
        gone: [{ from: 1, to: 1 }],
        retrieved: [{ from: 1, to: 2, atMs: nowMs }]
      }
      const checked = (n: number) => decide(state, checkNotification(n), { head: 3 })
      const reply = (isStored: boolean, isRetrieved: boolean) => ({
        _tag: "NotificationChecked",
        isStored,
        isRetrieved
      })
      expectOnlyReply(checked(1), reply(false, true))
      expectOnlyReply(checked(2), reply(true, true))
      expectOnlyReply(checked(3), reply(true, false))
      expectOnlyReply(checked(4), reply(false, false))
    },
    "Open.Expire": () => {
      const old = { from: 1, to: 5, atMs: nowMs - ms30Days }
      const state: MailboxState = { ...watched, events: 1, retrieved: [old] }
      const found = expire({
        removed: [1, 2].map((n) => ({ n, idRandom: part(`random${n}`) })),
        events: [3],
        missing: [4]
      })
      const decision = decide(state, found, { head: 9, self })
      const ids = [1, 2].map((n) => `${n}-${part(`random${n}`)}`)
      expect(decision.items).toEqual([encodeRemoval(nowMs, ids)])
      expect(decision.removals).toEqual([1, 2, 3])
      expect(decision.timerAtMs).toBe(nowMs)
      expect(decision.signals)
        .toEqual([registrationSignal(10), taskSignal("1-fetch"), taskSignal("2-fetch")])
      const after = { ...old, from: 5 }
      expect(decision.nextState).toMatchObject({
        removed: 3,
        events: 1,
        retrieved: [after, { from: 10, to: 10 }]
      })
      const relay = expire({ removed: [{ n: 1, idRandom: part("_relay") }] })
      for (
        const [retentionMs, count] of [[removedLocalDeliveryRetentionMs - 1, 1], [
          ms30Days,
          0
        ]] as const
      ) {
        const settings = { ...defaultSettings, retentionMs }
        const { nextState } = decide({ ...open, settings, retrieved: [old] }, relay, { head: 9 })
        expect(nextState).toMatchObject({ removedLocalDeliveries: { length: count } })
      }
      const again = decide(decision.nextState ?? absent, found, { head: 10, self })
      expect(again.items).toBeUndefined()
      expect(again.removals).toEqual([])
      expect(again.nextState).toEqual(decision.nextState)
    },
    "Open.TimerFired": () => {
      expect(decide(open, timerFired)).toMatchObject({ nextState: undefined, timerAtMs: null })
      const old = { from: 1, to: 600, atMs: nowMs - ms30Days }
      const young = { from: 601, to: 700, atMs: nowMs - 1 }
      const first = decide({ ...open, retrieved: [old, young] }, timerFired, { head: 700 })
      expect(first.removals).toEqual(Array.from({ length: 500 }, (_, at) => at + 1))
      expect(first.timerAtMs).toBe(nowMs)
      expect(first.nextState).toEqual({
        ...open,
        removed: 500,
        gone: [{ from: 1, to: 500 }],
        retrieved: [{ ...old, from: 501 }, young]
      })
      const second = decide(first.nextState ?? absent, timerFired, { head: 700 })
      expect(second.removals?.length).toBe(100)
      expect(second.nextState).toMatchObject({ removed: 600, retrieved: [young] })
      expect(second.timerAtMs).toBe(nowMs - 1 + ms30Days)
      const short = { ...defaultSettings, retentionMs: removedLocalDeliveryRetentionMs - 1 }
      // Some removals are forgotten: an item that is gone must not be counted again.
      const forgetful: MailboxState = { ...open, removed: 2, gone: [{ from: 5, to: 5 }] }
      const byReading = [watched, { ...open, events: 1 }, { ...open, settings: short }, forgetful]
      for (const reading of byReading) {
        const read = decide({ ...reading, retrieved: [{ ...old, to: 2 }] }, timerFired, { head: 9 })
        expect(effectsOf(read)).toEqual({
          actions: [{ _tag: "ReadExpired", numbers: [1, 2] }],
          deferUntilMs: nowMs + expiryReadRetryMs
        })
      }
      const copies = { ...open, fetched: 1, retrieved: [old] }
      const expired = decide(copies, timerFired, { head: 700, self })
      expect(expired.removals?.length).toBe(250)
      expect(expired.signals?.length).toBe(250)
    }
  })
})
