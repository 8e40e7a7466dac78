/** What a mailbox decides on a follow-up, beside what replaces a notification that it has. */
import { describe, expect, it } from "vitest"
import { followUpsMax, removedLocalDeliveriesMax,
  removedLocalDeliveryRetentionMs } from "../../actors/limits.ts"
import { repeatKey } from "../../actors/mailbox/log-item.ts"
import { expectOnlyReply, expectRefused, nowMs } from "./cells.ts"
import { block, decide, deposit, earlier, open, part, replace } from "./mailbox-cells.ts"

const replaced = { n: 2, idRandom: earlier.idRandom }
const known = { ...replace, replaced }
const standing = {
  _tag: "Deposited",
  n: 2,
  repeated: true,
  idRandom: earlier.idRandom
}
const gone = { ...open, gone: [{ from: 2, to: 2 }], removed: 1 }
const itemOf = (digest: string, n: number) => (key: string): number | undefined =>
  key === repeatKey(digest) ? n : undefined

describe("a follow-up at a mailbox", () => {
  it("first learns which item it replaces, and changes nothing then", () => {
    const findDuplicate = itemOf(earlier.digest, 2)
    const located = { _tag: "Located", n: 2, idRandom: earlier.idRandom }
    expectOnlyReply(decide(open, replace, { head: 2, findDuplicate }), located)
  })

  it("names the last edition that the mailbox has", () => {
    const last = { digest: part("last"), idRandom: part("_last") }
    const findDuplicate = (key: string) => key === repeatKey(last.digest) ? 3 : 2
    const message = { ...replace, digest: part("x"), earlier: [last, earlier] }
    const found = (key: string) => key === repeatKey(part("x")) ? undefined : findDuplicate(key)
    expectOnlyReply(decide(open, message, { head: 3, findDuplicate: found }), {
      _tag: "Located",
      n: 3,
      idRandom: last.idRandom
    })
  })

  it("stays away from a mailbox whose reader has removed the first one", () => {
    expectOnlyReply(decide(gone, known, { head: 2 }), standing)
    expectOnlyReply(decide(open, { ...known, isMissing: true }, { head: 2 }), standing)
    const findDuplicate = itemOf(earlier.digest, 2)
    expectOnlyReply(decide(gone, replace, { head: 2, findDuplicate }), standing)
    const removedLocalDeliveries = [{ id: `2-${earlier.idRandom}`, atMs: nowMs }]
    const remembering = { ...open, removedLocalDeliveries }
    expectOnlyReply(decide(remembering, replace, { head: 2 }), standing)
    expectOnlyReply(decide(remembering, { ...replace, isWithdrawal: true }, { head: 2 }), standing)
    const later = nowMs + removedLocalDeliveryRetentionMs
    expect(decide(remembering, replace, { head: 2, nowMs: later }).answer)
      .toMatchObject({ n: 3, repeated: false })
  })

  it("replaces an edition between, of which the relay has got no reply", () => {
    const between = { digest: part("between"), idRandom: part("_between") }
    const message = { ...known, isMissing: true, earlier: [between, earlier] }
    const findDuplicate = itemOf(between.digest, 3)
    const located = { _tag: "Located", n: 3, idRandom: between.idRandom }
    expectOnlyReply(decide(gone, message, { head: 3, findDuplicate }), located)
    const removed = { ...gone, gone: [{ from: 2, to: 3 }], removed: 2 }
    const missing = { ...standing, n: 3, idRandom: between.idRandom }
    expectOnlyReply(decide(removed, message, { head: 3, findDuplicate }), missing)
    const again = { ...message, replaced: { n: 3, idRandom: between.idRandom } }
    expectOnlyReply(decide(gone, again, { head: 3, findDuplicate }), missing)
  })

  it("that was late replaces nothing after the next one, though its number is forgotten", () => {
    const after = decide(open, { ...known, digest: part("next") }, { head: 2 }).nextState
    if (after?._tag !== "Open") throw new Error("the mailbox is not open")
    expectOnlyReply(decide({ ...after, gone: [] }, known, { head: 3 }), standing)
  })

  it("is stored once, however often it is repeated", () => {
    const again = { _tag: "Deposited", n: 3, repeated: true, idRandom: replace.idRandom }
    const findDuplicate = itemOf(replace.digest, 3)
    expectOnlyReply(decide(open, replace, { head: 3, findDuplicate }), again)
    expectOnlyReply(decide(gone, known, { head: 3, findDuplicate }), again)
    const missing = { ...known, isMissing: true }
    expectOnlyReply(decide(gone, missing, { head: 3, findDuplicate }), again)
    const removedLocalDeliveries = [{ id: `3-${replace.idRandom}`, atMs: nowMs }]
    expectOnlyReply(decide({ ...gone, removedLocalDeliveries }, known, { head: 3 }), again)
  })

  it("is a notification of its own where the first one never came, and keeps that one out", () => {
    const decision = decide(open, replace, { head: 2 })
    expect(decision.answer).toMatchObject({ n: 3, repeated: false })
    expect([decision.durable, decision.removals]).toEqual([true, undefined])
    const after = decision.nextState ?? open
    const late = { ...deposit, ...earlier, account: "bob" }
    const { answer, items } = decide(after, late, { head: 3 })
    expect(answer).toMatchObject({ _tag: "Deposited", repeated: true })
    expect(items).toBeUndefined()
    expectRefused(decide(open, replace, { head: 3 }), "Full")
  })

  it("withdraws nothing where the first one never came, and keeps it out", () => {
    const decision = decide(open, { ...replace, isWithdrawal: true }, { head: 0 })
    expect(decision.answer).toEqual({ _tag: "Done" })
    expect(decision.items).toBeUndefined()
    const late = { ...deposit, ...earlier, account: "bob" }
    expect(decide(decision.nextState ?? open, late, { head: 0 }).items).toBeUndefined()
  })

  it("replaces nothing for a blocked sender, nor what is not there", () => {
    expectRefused(decide({ ...open, blocks: [block] }, { ...known, account: "mordred" }), "Blocked")
    expectRefused(decide(open, known, { head: 1 }), "Invalid")
  })

  it("is unread and not retrieved, whatever the first one was", () => {
    const read = [{ from: 1, to: 2 }]
    const retrieved = [{ from: 1, to: 2, atMs: nowMs }]
    const { nextState } = decide({ ...open, read, retrieved }, known, { head: 2 })
    expect(nextState).toMatchObject({ read, retrieved })
  })

  it("leaves room for other removed local deliveries", () => {
    expect(followUpsMax).toBeLessThan(removedLocalDeliveriesMax / 4)
  })

  it("is not what a deposit with the same elements is", () => {
    const forged = { ...deposit, fragment: "<item><replaces>2</replaces></item>", account: "bob" }
    const { nextState, removals } = decide(open, forged, { head: 2 })
    expect(removals).toBeUndefined()
    expect(nextState).toMatchObject({ removed: 0, gone: [] })
  })
})
