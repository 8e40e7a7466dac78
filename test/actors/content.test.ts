import { describe, expect } from "vitest"
import { contentTable } from "../../actors/content/decide.ts"
import { type ContentAction, type ContentMessage, type ContentReply, type ContentState,
  decodeReceipt, encodeReceipt, type LinkFinding,
  receiptKeyOf } from "../../actors/content/protocol.ts"
import { blobRemovalRetryMs, contentLinksMax, inlinedCheckMs, linkCheckRetryMs, linkRefreshMs,
  linksOverflowMs, receiptsMax, retentionParts, staleBlobsMax } from "../../actors/limits.ts"
import type { Variant } from "../../runtime/index.ts"
import { decider, expectOnlyReply, expectRefused, hash, nowMs, testCells } from "./cells.ts"

const retentionMs = 30 * 86_400_000
const table = contentTable(retentionMs)
const decide = decider<ContentState, ContentMessage, ContentReply, ContentAction>(table)

const bodyOf = (blobId: string) => ({
  blobId,
  type: "text/plain",
  lengthBytes: 5,
  digest: `sha-${blobId}`
})
const absent: ContentState = { _tag: "Absent" }
const kept: Variant<ContentState, "Published"> = {
  _tag: "Published",
  requestId: "r1",
  body: bodyOf("b1"),
  lastModifiedMs: nowMs,
  generation: 1,
  editHash: hash("edit"),
  passwordHash: hash("password"),
  owner: "alice",
  stale: []
}
const open: Variant<ContentState, "Published"> = {
  _tag: "Published",
  requestId: "r1",
  body: bodyOf("b1"),
  lastModifiedMs: nowMs,
  generation: 1,
  editHash: hash("edit"),
  stale: []
}
/** Content of an anonymous client, to which a notification links. */
const key = { mailbox: "bob", idRandom: hash("one").slice(0, 22) }
const other = { mailbox: "bob", idRandom: hash("two").slice(0, 22) }
const noted = (of: typeof key, atMs = nowMs) => ({ ...of, fromMs: atMs, toMs: atMs })
const linked: Variant<ContentState, "Published"> = { ...open, links: [noted(key)] }
/** Content that came in that notification. */
const inlined: Variant<ContentState, "Published"> = {
  ...kept,
  isInlined: true,
  links: [noted(key)],
  checkAtMs: nowMs + inlinedCheckMs
}
const link = (of: typeof key & { readonly afterN?: number }): ContentMessage => ({
  _tag: "Link",
  ...of
})
const unlink = (of: typeof key): ContentMessage => ({ _tag: "Unlink", ...of })
const linksChecked = (found: LinkFinding, toMs = nowMs): ContentMessage => ({
  _tag: "LinksChecked",
  checks: [{ ...key, toMs, found }]
})
const ended: LinkFinding = { _tag: "Ended" }
const forgottenAtMs = nowMs + retentionMs
const removed: Variant<ContentState, "Removed"> = { _tag: "Removed", stale: [], receiptsLeft: 0 }

const publish: Variant<ContentMessage, "Publish"> = {
  _tag: "Publish",
  requestId: "r1",
  body: bodyOf("b1"),
  editHash: hash("edit"),
  passwordHash: hash("password"),
  owner: "alice"
}
const edit = { editHash: hash("edit") }
const wrongEdit = { editHash: hash("wrong") }
const password = { passwordHash: hash("password") }
const describeBy = (access: object): ContentMessage => ({ _tag: "Describe", access })
const authorize = (access: object): ContentMessage => ({ _tag: "Authorize", access })
const overwrite: Variant<ContentMessage, "Overwrite"> = {
  _tag: "Overwrite",
  access: edit,
  body: bodyOf("b2")
}
const remove: Variant<ContentMessage, "Remove"> = { _tag: "Remove", access: edit }
const withdraw: ContentMessage = { _tag: "Withdraw", requestId: "r1" }
const receipt = (access: object): Variant<ContentMessage, "Receipt"> => ({
  _tag: "Receipt",
  access,
  value: "<receipt/>"
})
const blobsRemoved = (...blobIds: Array<string>): ContentMessage => ({
  _tag: "BlobsRemoved",
  blobIds
})
const holds = (blobId: string): ContentMessage => ({ _tag: "HasBlob", blobId })
const measure: Variant<ContentMessage, "Measure"> = { _tag: "Measure" }
/** What counts of the content, as the service's ledger learns it. */
const keptBody = { _tag: "Body", blobId: "b1", generation: 1, lengthBytes: 5 }
const nothing = { _tag: "Removed" }
const timerFired: ContentMessage = { _tag: "TimerFired" }
const retryAtMs = nowMs + blobRemovalRetryMs

const refusesAll = (state: ContentState, reason: string) => ({
  Describe: () => expectRefused(decide(state, describeBy(edit)), reason),
  Authorize: () => expectRefused(decide(state, authorize(edit)), reason),
  Overwrite: () => expectRefused(decide(state, overwrite), reason),
  Remove: () => expectRefused(decide(state, remove), reason),
  Receipt: () => expectRefused(decide(state, receipt(edit)), reason),
  Link: () => expectRefused(decide(state, link(key)), reason),
  Unlink: () => expectRefused(decide(state, unlink(key)), reason),
  LinksChecked: () => expectOnlyReply(decide(state, linksChecked(ended)), undefined)
})
const whenAbsent = refusesAll(absent, "NotFound")
const whenRemoved = refusesAll(removed, "Gone")

/** Who may not edit, and why. */
const editRights = (by: (access: object) => ContentMessage) => {
  expectRefused(decide(kept, by({})), "Unauthenticated")
  expectRefused(decide(kept, by(password)), "Unauthenticated")
  expectRefused(decide(kept, by(wrongEdit)), "NotFound")
  expectRefused(decide(kept, by({ account: "bob" })), "Forbidden")
  expectRefused(decide(open, by({ account: "bob" })), "Forbidden")
}

describe("the content's table", () => {
  testCells(table, {
    "Absent.Publish": () => {
      const decision = decide(absent, publish)
      expect(decision.nextState).toEqual(kept)
      expect(decision.durable).toBe(true)
      expect(decision.actions).toEqual([{ _tag: "CountBody", stored: keptBody }])
      expect(decision.answer).toEqual({ _tag: "Published", body: bodyOf("b1"), generation: 1 })
      const { passwordHash: _password, owner: _owner, ...anybody } = publish
      expect(decide(absent, anybody)).toMatchObject({
        nextState: open,
        timerAtMs: nowMs + retentionMs
      })
      expect(decision.timerAtMs).toBeUndefined()
      expect(decide(absent, { ...publish, inlinedIn: key }))
        .toMatchObject({ nextState: inlined, timerAtMs: nowMs + inlinedCheckMs })
      expect(decide(absent, { ...publish, inlinedIn: { ...key, afterN: 4 } }).nextState)
        .toEqual({ ...inlined, links: [{ ...noted(key), afterN: 4 }] })
    },
    "Absent.Describe": whenAbsent.Describe,
    "Absent.Authorize": whenAbsent.Authorize,
    "Absent.Overwrite": whenAbsent.Overwrite,
    "Absent.Remove": whenAbsent.Remove,
    "Absent.Receipt": whenAbsent.Receipt,
    "Absent.Link": whenAbsent.Link,
    "Absent.Unlink": whenAbsent.Unlink,
    "Absent.LinksChecked": whenAbsent.LinksChecked,
    // It was not published yet, and is not any more.
    "Absent.Withdraw": () => {
      const decision = decide(absent, withdraw)
      expect(decision)
        .toMatchObject({ nextState: removed, durable: true, answer: { _tag: "Done" } })
      // A ledger that was restored without the content may count it.
      expect(decision.actions).toEqual([{ _tag: "CountBody", stored: { _tag: "Removed" } }])
    },
    // A commit: it fails if the store has more than the actor knows.
    "Absent.HasBlob": () => {
      const decision = decide(absent, holds("b1"))
      expect(decision.answer).toEqual({ _tag: "HasBlob", hasBlob: false })
      expect(decision.removesActor).toBe(true)
    },
    // A commit, as above.
    "Absent.Measure": () => {
      const decision = decide(absent, measure)
      expect(decision.answer)
        .toEqual({ _tag: "Measured", stored: { _tag: "Absent" }, summary: undefined })
      expect(decision.removesActor).toBe(true)
    },
    "Absent.BlobsRemoved": () => expectOnlyReply(decide(absent, blobsRemoved("b1")), undefined),
    "Absent.TimerFired": () => expectOnlyReply(decide(absent, timerFired), undefined),

    "Published.Publish": () => {
      // A repetition brings other bytes; the reply names those that are held.
      const again = { ...publish, body: bodyOf("b9") }
      const held = { _tag: "Published", body: bodyOf("b1"), generation: 1 }
      expectOnlyReply(decide(kept, again), held)
      expectRefused(decide(kept, { ...publish, requestId: "r2" }), "Taken")
      // The content of one more notification; of too many: the sender publishes it again.
      expectOnlyReply(decide(inlined, { ...publish, inlinedIn: key }), held)
      const more = decide(inlined, { ...publish, inlinedIn: other })
      expect(more.nextState).toEqual({ ...inlined, links: [noted(key), noted(other)] })
      expect(more.answer).toEqual(held)
      const full = { ...inlined, links: Array.from({ length: contentLinksMax }, () => noted(key)) }
      expectOnlyReply(decide(full, { ...publish, inlinedIn: other }), { _tag: "PublishedOnce" })
    },
    "Published.Link": () => {
      expect(decide(open, link(key))).toMatchObject({
        nextState: linked,
        durable: true,
        answer: { _tag: "Done" }
      })
      expectOnlyReply(decide(linked, link(key)), { _tag: "Done" })
      const later = nowMs + linkRefreshMs
      expect(decide(linked, link(key), { nowMs: later }).nextState)
        .toEqual({ ...linked, links: [{ ...noted(key), toMs: later }] })
      // A search begins after the number that was first noted, or a lower one after a restore.
      const numbered = { ...open, links: [{ ...noted(key), afterN: 4 }] }
      expect(decide(open, link({ ...key, afterN: 4 })).nextState).toEqual(numbered)
      for (const afterN of [{}, { afterN: 5 }]) {
        expectOnlyReply(decide(numbered, link({ ...key, ...afterN })), { _tag: "Done" })
        expect(decide(numbered, link({ ...key, ...afterN }), { nowMs: later }).nextState)
          .toEqual({ ...numbered, links: [{ ...noted(key), afterN: 4, toMs: later }] })
      }
      expect(decide(numbered, link({ ...key, afterN: 3 })).nextState)
        .toEqual({ ...numbered, links: [{ ...noted(key), afterN: 3 }] })
      expectOnlyReply(decide(linked, link({ ...key, afterN: 3 })), { _tag: "Done" })
      // Its owner keeps it: that costs no commit.
      expectOnlyReply(decide(kept, link(key)), { _tag: "Done" })
      const full = { ...open, links: Array.from({ length: contentLinksMax }, () => noted(key)) }
      expect(decide(full, link(other)).nextState)
        .toEqual({ ...full, keptUntilMs: nowMs + linksOverflowMs })
    },
    "Published.Unlink": () => {
      expectOnlyReply(decide(kept, unlink(key)), { _tag: "Done" })
      expectOnlyReply(decide(linked, unlink(other)), { _tag: "Done" })
      expect(decide(linked, unlink(key)).nextState).toEqual({ ...open, links: [] })
      const expired = decide(linked, unlink(key), { nowMs: nowMs + retentionMs })
      expect(expired.nextState).toMatchObject({ _tag: "Removed" })
      const both = { ...inlined, links: [noted(key), noted(other)] }
      expect(decide(both, unlink(other)).nextState).toEqual(inlined)
      expect(decide(inlined, unlink(key), { head: 2 })).toMatchObject({
        nextState: { ...removed, stale: ["b1"], forgetAtMs: forgottenAtMs },
        removals: [2, 1],
        actions: [{ _tag: "RemoveBlobs", blobIds: ["b1"] }],
        answer: { _tag: "Done" }
      })
    },
    "Published.LinksChecked": () => {
      const atMs = nowMs + retentionMs
      const check = (state: ContentState, found: LinkFinding, toMs = nowMs) =>
        decide(state, linksChecked(found, toMs), { nowMs: atMs })
      expect(check(linked, ended).nextState).toMatchObject({ _tag: "Removed" })
      const nextAtMs = atMs + retentionMs / retentionParts
      expect(check(linked, { _tag: "Kept", n: 7 })).toMatchObject({
        nextState: { ...linked, links: [{ ...noted(key), n: 7 }], checkAtMs: nextAtMs },
        timerAtMs: nextAtMs
      })
      expect(check(linked, { _tag: "Unknown", afterN: 9 }).nextState)
        .toMatchObject({ links: [{ ...noted(key), afterN: 9 }] })
      // It was noted again while the check ran.
      expect(check(linked, ended, nowMs - 1).nextState).toMatchObject({ links: [noted(key)] })
      // It was read meanwhile.
      const read = { ...linked, lastReadMs: atMs - 1 }
      expect(check(read, ended)).toMatchObject({
        nextState: { _tag: "Published", links: [] },
        timerAtMs: atMs - 1 + retentionMs
      })
      expect(check(inlined, ended).nextState).toMatchObject({ _tag: "Removed" })
      expect(check(inlined, { _tag: "Kept", n: 7 }).timerAtMs).toBe(atMs + retentionMs)
    },
    "Published.Describe": () => {
      const view = { body: bodyOf("b1"), lastModifiedMs: nowMs, hasPassword: true }
      const seen = { _tag: "Described", view }
      for (const access of [password, edit, { account: "alice" }]) {
        expectOnlyReply(decide(kept, describeBy(access)), seen)
      }
      expectRefused(decide(kept, describeBy({})), "Unauthenticated")
      expectRefused(decide(kept, describeBy({ account: "bob" })), "Unauthenticated")
      expectRefused(decide(kept, describeBy({ passwordHash: hash("no") })), "Unauthenticated")
      expectRefused(decide(kept, describeBy(wrongEdit)), "NotFound")
      expectRefused(decide(open, describeBy(wrongEdit)), "NotFound")
      const preview = (access: object): ContentMessage => ({
        _tag: "Describe",
        access,
        isPreview: true
      })
      expectOnlyReply(decide(inlined, preview(password)), seen)
      expectRefused(decide(inlined, preview({})), "Unauthenticated")
      // A preview must not keep anonymous content longer.
      expectOnlyReply(
        decide(linked, preview({}), { nowMs: nowMs + retentionMs }),
        decide(linked, describeBy({})).answer
      )
      expect(decide(open, describeBy({})).answer)
        .toMatchObject({ view: { hasPassword: false } })
      // A read of anonymous content is recorded, but not each of them.
      const partMs = retentionMs / retentionParts
      for (const state of [open, { ...open, lastReadMs: nowMs }]) {
        expectOnlyReply(
          decide(state, describeBy({}), { nowMs: nowMs + partMs - 1 }),
          decide(open, describeBy({})).answer
        )
        expect(decide(state, describeBy({}), { nowMs: nowMs + partMs })).toMatchObject({
          nextState: { ...open, lastReadMs: nowMs + partMs },
          durable: true
        })
      }
      expectRefused(decide(open, describeBy(wrongEdit), { nowMs: nowMs + partMs }), "NotFound")
      for (const state of [kept, inlined]) {
        const read = decide(state, describeBy(password), { nowMs: nowMs + partMs })
        expectOnlyReply(read, seen)
      }
    },
    "Published.Authorize": () => {
      expectOnlyReply(decide(kept, authorize(edit)), { _tag: "Done" })
      expectOnlyReply(decide(kept, authorize({ account: "alice" })), { _tag: "Done" })
      editRights(authorize)
      const admin = { account: "admin", isAdmin: true }
      expectRefused(decide(kept, authorize(admin)), "Forbidden")
      const removing: ContentMessage = { _tag: "Authorize", access: admin, toRemove: true }
      expectOnlyReply(decide(kept, removing), { _tag: "Done" })
      editRights((access) => ({ _tag: "Authorize", access, toRemove: true }))
    },
    "Published.Overwrite": () => {
      // The message was decided before; another one has replaced its body since.
      const replaced: ContentState = { ...kept, body: bodyOf("b3"), generation: 3, stale: ["b2"] }
      expectOnlyReply(decide(replaced, overwrite), { _tag: "Overwritten" })
      const decision = decide(kept, { ...overwrite, ifDigest: "sha-b1" }, { nowMs: nowMs + 2005 })
      expect(decision.nextState).toEqual({
        ...kept,
        body: bodyOf("b2"),
        generation: 2,
        lastModifiedMs: nowMs + 2005,
        stale: ["b1"]
      })
      const stored = { _tag: "Body", blobId: "b2", generation: 2, lengthBytes: 5 }
      expect(decision.actions).toEqual([{ _tag: "RemoveBlobs", blobIds: ["b1"], stored }])
      expect(decision.timerAtMs).toBe(retryAtMs + 2005)
      expect(decision.answer).toEqual({ _tag: "Overwritten" })
      // Another body has another date, in whole seconds, also when it comes at once.
      const nextSecondMs = (Math.floor(nowMs / 1000) + 1) * 1000
      expect(decide(kept, overwrite, { nowMs: nowMs - 5 }).nextState)
        .toMatchObject({ lastModifiedMs: nextSecondMs })
      expectOnlyReply(decide(kept, { ...overwrite, body: bodyOf("b1") }), { _tag: "Overwritten" })
      expectRefused(decide(kept, { ...overwrite, ifDigest: "sha-b0" }), "PreconditionFailed")
      const stale = Array.from({ length: staleBlobsMax }, (_, at) => `s${at}`)
      expectRefused(decide({ ...kept, stale }, overwrite), "Busy")
      editRights((access) => ({ ...overwrite, access }))
    },
    "Published.Remove": () => {
      const decision = decide({ ...kept, stale: ["b0"] }, remove, { head: 2 })
      expect(decision.nextState).toEqual({ _tag: "Removed", stale: ["b0", "b1"], receiptsLeft: 0 })
      expect(decision.removals).toEqual([2, 1])
      expect(decision.actions).toEqual([{
        _tag: "RemoveBlobs",
        blobIds: ["b0", "b1"],
        stored: nothing
      }])
      expect(decision.timerAtMs).toBe(retryAtMs)
      expect(decision.answer).toEqual({ _tag: "Done" })
      expect(decide(kept, remove, { head: 1000 })).toMatchObject({
        nextState: { receiptsLeft: 500 },
        timerAtMs: nowMs
      })
      expectRefused(decide(kept, { ...remove, ifDigest: "sha-b0" }), "PreconditionFailed")
      editRights((access) => ({ ...remove, access }))
      const byAdmin = { ...remove, access: { account: "admin", isAdmin: true } }
      expect(decide(kept, byAdmin).nextState).toMatchObject({ _tag: "Removed" })
    },
    "Published.Withdraw": () => {
      const decision = decide({ ...kept, stale: ["b0"] }, withdraw, { head: 2 })
      expect(decision).toMatchObject({
        nextState: { _tag: "Removed", stale: ["b0", "b1"], receiptsLeft: 0 },
        removals: [2, 1],
        actions: [{ _tag: "RemoveBlobs", blobIds: ["b0", "b1"], stored: nothing }],
        timerAtMs: retryAtMs,
        answer: { _tag: "Done" }
      })
      expectRefused(decide({ ...kept, requestId: "r2" }, withdraw), "NotFound")
    },
    "Published.Receipt": () => {
      const decision = decide(kept, receipt(password), { head: 4 })
      expect(decision.nextState).toBeUndefined()
      expect(decision.items?.map(decodeReceipt)).toEqual([{ atMs: nowMs, value: "<receipt/>" }])
      expect(decision.answer).toEqual({ _tag: "Received", n: 5 })
      const requestId = "request".padEnd(22, "_")
      const keyed = { ...receipt(password), requestId }
      const [item = ""] = decide(kept, keyed, { head: 4 }).items ?? []
      expect(decodeReceipt(item)).toEqual({ atMs: nowMs, value: "<receipt/>" })
      // V8 copies 12 characters; a longer key would keep the whole item in memory.
      expect([receiptKeyOf(item), receiptKeyOf(encodeReceipt(nowMs, "a b\nc", undefined))])
        .toEqual([requestId.slice(0, 12), undefined])
      expect(decide(kept, keyed, { head: 4 }).itemKeys).toEqual([receiptKeyOf(item)])
      const findDuplicate = (key: string) => key === receiptKeyOf(item) ? 2 : undefined
      const repeated = { head: receiptsMax, findDuplicate }
      expectOnlyReply(decide(kept, keyed, repeated), { _tag: "Received", n: 2 })
      expectRefused(decide(kept, receipt(password), { head: receiptsMax }), "Full")
      expectRefused(decide(kept, receipt({})), "Unauthenticated")
      expectRefused(decide(kept, receipt(wrongEdit)), "NotFound")
      expect(decide(open, receipt({})).answer).toMatchObject({ n: 1 })
      const dryRun = { ...keyed, isDryRun: true }
      expectOnlyReply(decide(kept, dryRun, { head: 4 }), { _tag: "Done" })
      expectOnlyReply(decide(kept, dryRun, repeated), { _tag: "Received", n: 2 })
      expectRefused(decide(kept, dryRun, { head: receiptsMax }), "Full")
      expectRefused(decide(kept, { ...dryRun, access: {} }), "Unauthenticated")
    },
    "Published.BlobsRemoved": () => {
      const state: ContentState = { ...kept, stale: ["b0", "b3"] }
      const part = decide(state, blobsRemoved("b0"))
      expect(part).toMatchObject({ nextState: { ...kept, stale: ["b3"] }, timerAtMs: retryAtMs })
      const all = decide(state, blobsRemoved("b0", "b3"))
      expect(all).toMatchObject({ nextState: kept, timerAtMs: null, durable: true })
      expectOnlyReply(decide(state, blobsRemoved("b9")), undefined)
    },
    "Published.HasBlob": () => {
      const state: ContentState = { ...kept, stale: ["b0"] }
      for (const id of [kept.body.blobId, "b0"]) {
        expectOnlyReply(decide(state, holds(id)), { _tag: "HasBlob", hasBlob: true })
      }
      expect(decide(state, holds("b9"))).toMatchObject({
        answer: { _tag: "HasBlob", hasBlob: false },
        nextState: state,
        durable: true
      })
    },
    "Published.Measure": () => {
      const summary = { type: "text/plain", lengthBytes: 5, lastModifiedMs: nowMs, owner: "alice" }
      const measured = { _tag: "Measured", stored: keptBody, summary }
      expectOnlyReply(decide(kept, measure), measured)
      expect(decide(kept, { ...measure, isCertain: true }))
        .toMatchObject({ answer: measured, nextState: kept, durable: true })
      const { owner: _, ...anonymous } = summary
      const expiring = { ...anonymous, expiresAtMs: nowMs + retentionMs }
      expectOnlyReply(decide(open, measure), { ...measured, summary: expiring })
    },
    "Published.TimerFired": () => {
      expect(decide(kept, timerFired)).toMatchObject({ nextState: undefined, timerAtMs: null })
      const again = decide({ ...kept, stale: ["b0"] }, timerFired)
      expect(again.actions).toEqual([{ _tag: "RemoveBlobs", blobIds: ["b0"], stored: keptBody }])
      expect(again.timerAtMs).toBe(retryAtMs)
      const late = { nowMs: nowMs + retentionMs, head: 1 }
      expect(decide(open, timerFired, late)).toMatchObject({
        nextState: { ...removed, stale: ["b1"], forgetAtMs: late.nowMs + retentionMs },
        removals: [1]
      })
      const read = { ...open, lastReadMs: nowMs + 5 }
      expect(decide(read, timerFired, late)).toMatchObject({ timerAtMs: late.nowMs + 5 })
      for (const state of [linked, inlined]) {
        const checking = decide(state, timerFired, late)
        expect(checking.nextState).toBeUndefined()
        expect(checking.timerAtMs).toBeUndefined()
        expect(checking.deferUntilMs).toBe(late.nowMs + linkCheckRetryMs)
        expect(checking.actions).toEqual([{
          _tag: "CheckLinks",
          links: [noted(key)],
          isInlined: state === inlined,
          nowMs: late.nowMs
        }])
      }
      expect(decide(inlined, timerFired).timerAtMs).toBe(nowMs + inlinedCheckMs)
    },

    "Removed.Publish": () => expectOnlyReply(decide(removed, publish), { _tag: "PublishedOnce" }),
    "Removed.Describe": whenRemoved.Describe,
    "Removed.Authorize": whenRemoved.Authorize,
    "Removed.Overwrite": whenRemoved.Overwrite,
    "Removed.Remove": whenRemoved.Remove,
    "Removed.Receipt": whenRemoved.Receipt,
    "Removed.Link": whenRemoved.Link,
    "Removed.Unlink": whenRemoved.Unlink,
    "Removed.LinksChecked": whenRemoved.LinksChecked,
    "Removed.Withdraw": () => {
      const decision = decide(removed, withdraw)
      expect(decision).toMatchObject({ durable: false, answer: { _tag: "Done" } })
      expect(decision.actions).toEqual([{ _tag: "CountBody", stored: { _tag: "Removed" } }])
      // Bytes count until they are removed.
      expectOnlyReply(decide({ ...removed, stale: ["b1"] }, withdraw), { _tag: "Done" })
    },
    "Removed.BlobsRemoved": () => {
      const state: ContentState = { ...removed, stale: ["b1", "b2"] }
      expect(decide(state, blobsRemoved("b1", "b2")))
        .toMatchObject({ nextState: removed, timerAtMs: null })
      expect(decide(state, blobsRemoved("b1"))).toMatchObject({ timerAtMs: retryAtMs })
      expect(decide({ ...state, receiptsLeft: 3 }, blobsRemoved("b1")))
        .toMatchObject({ timerAtMs: nowMs })
      expectOnlyReply(decide(removed, blobsRemoved("b1")), undefined)
    },
    "Removed.HasBlob": () => {
      const state: ContentState = { ...removed, stale: ["b1"] }
      expectOnlyReply(decide(state, holds("b1")), { _tag: "HasBlob", hasBlob: true })
      expect(decide(state, holds("b2"))).toMatchObject({
        answer: { _tag: "HasBlob", hasBlob: false },
        nextState: state,
        durable: true
      })
    },
    "Removed.Measure": () => {
      const measured = { _tag: "Measured", stored: nothing, summary: undefined }
      expectOnlyReply(decide(removed, measure), measured)
      expect(decide(removed, { ...measure, isCertain: true }))
        .toMatchObject({ answer: measured, nextState: removed, durable: true })
    },
    "Removed.TimerFired": () => {
      expect(decide(removed, timerFired)).toMatchObject({ nextState: undefined, timerAtMs: null })
      const decision = decide({ ...removed, stale: ["b1"], receiptsLeft: 600 }, timerFired)
      expect(decision.removals?.length).toBe(500)
      expect(decision).toMatchObject({
        nextState: { receiptsLeft: 100 },
        timerAtMs: nowMs,
        actions: [{ _tag: "RemoveBlobs", blobIds: ["b1"], stored: nothing }]
      })
      const last = decide({ ...removed, receiptsLeft: 2 }, timerFired)
      expect(last).toMatchObject({ nextState: removed, removals: [2, 1], timerAtMs: null })
      // What strangers have published leaves no tombstone for ever.
      const forgotten = { ...removed, forgetAtMs: forgottenAtMs }
      expect(decide(forgotten, timerFired).timerAtMs).toBe(forgottenAtMs)
      expect(decide(forgotten, timerFired, { nowMs: forgottenAtMs }).removesActor).toBe(true)
      expect(decide({ ...forgotten, stale: ["b1"] }, blobsRemoved("b1")).timerAtMs)
        .toBe(forgottenAtMs)
    }
  })
})
