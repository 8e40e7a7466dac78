import { describe, expect } from "vitest"
import { attemptLeaseMs, failureReportLeaseMs, idempotencyRetentionMs,
  keyedRetriesMax } from "../../actors/limits.ts"
import type { NotificationMessage, NotificationState } from "../../actors/notification/protocol.ts"
import { effectsOf, expectOnlyReply, expectRefused, nowMs, testCells } from "./cells.ts"
import { absent, addressed, admin, attempted, begun, create, decide, deleting, delivered, depositOf,
  describing, document, ended, faulted, following, nobody, note, notes, one, other, owner, refused,
  reloaded, removed, report, reported, reporting, retentionMs, retrying, settled, stateOf, table,
  timerFired, two, uri, where } from "./notification-cells.ts"

const reportLeaseEndMs = nowMs + failureReportLeaseMs

const text = "A notification was not delivered to https://example.org/…: answered 410."

const heldBack = { _tag: "AttemptHeld", recipient: 0, attempt: 1 } as const

const release = { _tag: "Release" } as const

/** For messages that only the account itself and admins may send. */
const expectGuarded = (
  state: NotificationState,
  message: (caller: typeof owner | typeof nobody) => NotificationMessage
): void => {
  expectRefused(decide(state, message(other)), "Forbidden")
  expectRefused(decide(state, message(nobody)), "Unauthenticated")
}

describe("the notification's table", () => {
  testCells(table, {
    "Absent.Create": () => {
      const decision = decide(absent, create([uri(0), uri(1)]))
      expect(decision.answer).toEqual({ _tag: "Created", createdAtMs: nowMs, repeated: false })
      expect(decision.items).toEqual([document])
      expect(decision.durable).toBe(true)
      expect(decision.timerAtMs).toBe(nowMs)
      expect(decision.deferUntilMs).toBe(nowMs + attemptLeaseMs)
      expect(decision.actions?.[1]).toEqual({
        _tag: "Attempt",
        recipient: 1,
        attempt: 1,
        to: uri(1),
        traceId: "0".repeat(31) + "1",
        account: "alice",
        document,
        chars: document.length
      })
      expectRefused(decide(absent, create([])), "Invalid")
      expectRefused(decide(absent, { ...create([uri(0)]), document: "<item/>" }), "Invalid")
    },
    "Absent.Describe": () => expectRefused(decide(absent, describing(owner)), "NotFound"),
    "Absent.Attempted": () =>
      expect(effectsOf(decide(absent, attempted(delivered)))).toBeUndefined(),
    "Absent.AttemptHeld": () => expect(effectsOf(decide(absent, heldBack))).toBeUndefined(),
    "Absent.Release": () => expectRefused(decide(absent, release), "NotFound"),
    "Absent.FailureReportAddressed": () =>
      expect(effectsOf(decide(absent, addressed))).toBeUndefined(),
    "Absent.FailureReportSettled": () => expect(effectsOf(decide(absent, settled))).toBeUndefined(),
    "Absent.Retry": () => expectRefused(decide(absent, retrying(owner)), "NotFound"),
    "Absent.FollowUp": () => expectRefused(decide(absent, following(owner)), "NotFound"),
    "Absent.Delete": () => expectRefused(decide(absent, deleting(owner)), "NotFound"),
    "Absent.TimerFired": () =>
      expect(effectsOf(decide(absent, timerFired))).toEqual({ timerAtMs: null }),
    "Queued.Create": () => {
      const repeated = { _tag: "Created", createdAtMs: nowMs, repeated: true }
      expectOnlyReply(decide(one, create([uri(0)])), repeated)
      expectRefused(decide(one, { ...create([uri(0)]), requestId: "r2" }), "Taken")
      expectRefused(decide(one, { ...create([uri(0)]), account: "bob" }), "Taken")
    },
    "Queued.Describe": () => {
      const { account, createdAtMs, recipients, version } = one
      const view = { account, createdAtMs, status: "waiting", recipients, count: 1, version }
      expectOnlyReply(decide(one, describing(owner)), { _tag: "Described", view })
      expectOnlyReply(decide(one, describing(admin)), { _tag: "Described", view })
      const message = { _tag: "Describe", caller: owner, max: 1 } as const
      const first = { ...view, recipients: two.recipients.slice(0, 1), count: 2 }
      expectOnlyReply(decide(two, message), { _tag: "Described", view: first })
      expectGuarded(one, describing)
    },
    "Queued.Attempted": () => {
      const decision = decide(one, attempted(delivered))
      expect(stateOf(decision)).toMatchObject({ endedAtMs: nowMs, version: 2, cleaned: 1 })
      expect(stateOf(decision).recipients).toEqual([
        {
          to: uri(0),
          status: "success",
          attempts: 1,
          tries: 1,
          lastAtMs: nowMs,
          code: 202,
          location: uri(9)
        }
      ])
      expect(decision.timerAtMs).toBe(nowMs + retentionMs)
      expect(notes(decision)).toEqual([note("sent")])
      for (const late of [attempted(faulted, 0, 2), attempted(faulted, 7)]) {
        expect(effectsOf(decide(one, late))).toBeUndefined()
      }
      expect(effectsOf(decide(ended, attempted(delivered, 0, 2)))).toBeUndefined()
    },
    "Queued.AttemptHeld": () => {
      const decision = decide(one, heldBack)
      expect(stateOf(decision)).toMatchObject({ version: 2, running: [], holds: [{ atMs: nowMs }] })
      for (const late of [{ ...heldBack, attempt: 2 }, { ...heldBack, recipient: 7 }]) {
        expect(effectsOf(decide(one, late))).toBeUndefined()
      }
      expect(effectsOf(decide(ended, heldBack))).toBeUndefined()
    },
    "Queued.Release": () => {
      const decision = decide(stateOf(decide(one, heldBack)), release)
      expect(decision.answer).toEqual({ _tag: "Done" })
      expect(begun(decision)).toEqual([0])
      expectOnlyReply(decide(one, release), { _tag: "Done" })
    },
    "Queued.FailureReportAddressed": () => {
      const waiting = stateOf(decide(two, reported(), reporting))
      const first = {
        ...report,
        description: `${text} So far 1 of 2 recipients has failed; its page shows all.`
      }
      expect(waiting).toMatchObject({ failureReportUntilMs: reportLeaseEndMs })
      const decision = decide(waiting, addressed, reporting)
      expect(decision.actions).toEqual([depositOf(first)])
      expect([decision.durable, decision.timerAtMs]).toEqual([true, nowMs])
      expect(stateOf(decision).failureReport).toMatchObject({ to: { mailbox: "box" } })
      // The mailbox stays, whatever the account has chosen since.
      expect(effectsOf(decide(stateOf(decision), addressed, reporting))).toBeUndefined()
      expect(effectsOf(decide(ended, addressed, reporting))).toBeUndefined()
      // After the end, too.
      const last = stateOf(decide(one, reported(), reporting))
      const rest = decide(last, addressed, reporting)
      expect(rest.actions).toEqual([depositOf(report)])
      expect([rest.timerAtMs, rest.deferUntilMs]).toEqual([nowMs, reportLeaseEndMs])
    },
    "Queued.FailureReportSettled": () => {
      const decision = decide(one, reported(), reporting)
      expect(decision.actions).toEqual([report, note("failed")])
      expect([decision.durable, decision.timerAtMs]).toEqual([true, nowMs])
      expect(decision.deferUntilMs).toBe(reportLeaseEndMs)
      const waiting = stateOf(decision)
      expect(effectsOf(decide(waiting, { ...settled, atMs: 1 }, reporting))).toBeUndefined()
      const done = decide(waiting, settled, reporting)
      expect(stateOf(done).failureReport).toEqual({ atMs: nowMs })
      expect(stateOf(done)).not.toHaveProperty("failureReportUntilMs")
      expect([done.durable, done.timerAtMs]).toEqual([true, nowMs + retentionMs])
      expect(effectsOf(decide(stateOf(done), settled, reporting))).toBeUndefined()
      // Before the end, the attempts go on.
      const open = decide(stateOf(decide(two, reported(), reporting)), settled, reporting)
      expect([begun(open), open.durable, open.timerAtMs]).toEqual([[], true, nowMs])
    },
    "Queued.Retry": () => {
      const decision = decide(ended, retrying(admin))
      expect(decision.answer).toEqual({ _tag: "Retried", recipients: 1, isRepeated: false })
      expect(stateOf(decision).endedAtMs).toBeUndefined()
      expect(stateOf(decision).recipients).toMatchObject([
        { status: "retry", attempts: 1, tries: 0, nextAtMs: nowMs, problem: "answered 410" }
      ])
      expect(stateOf(decision).version).toBe(3)
      expect(decision.timerAtMs).toBe(nowMs)
      expect(decision.deferUntilMs).toBe(nowMs + attemptLeaseMs)
      expect(decision.actions).toMatchObject([
        { _tag: "Attempt", attempt: 2, document: undefined },
        note("waiting")
      ])
      const nothing = { _tag: "Retried", recipients: 0, isRepeated: false }
      expectOnlyReply(decide(one, retrying(owner)), nothing)
      // The answer to the first request is lost, and the recipient is tried and fails once more.
      const request = { ...retrying(owner), requestId: "first" } as NotificationMessage
      const retried = stateOf(decide(ended, request))
      const failed = stateOf(decide(retried, attempted(refused, 0, 2)))
      for (const state of [retried, failed]) {
        expectOnlyReply(decide(state, request), { ...nothing, isRepeated: true })
      }
      for (const late of [retrying(owner), { ...request, requestId: "second" }]) {
        expectOnlyReply(decide(retried, late as NotificationMessage), nothing)
      }
      // Other retries in between, with a key or without, do not make it forget the first one.
      const retry = (state: NotificationState, more: { readonly requestId?: string }) => {
        const message = { ...retrying(owner), ...more } as NotificationMessage
        const tried = stateOf(decide(state, message))
        const { attempts = 0 } = tried.recipients[0] ?? {}
        return stateOf(decide(tried, attempted(refused, 0, attempts + 1)))
      }
      let last = retry(failed, {})
      for (let n = 1; n < keyedRetriesMax; n++) last = retry(last, { requestId: `later ${n}` })
      expectOnlyReply(decide(last, request), { ...nothing, isRepeated: true })
      const next = retry(last, { requestId: "next" })
      expect(next.retries).toHaveLength(keyedRetriesMax)
      expect(decide(next, request).answer).toMatchObject({ recipients: 1, isRepeated: false })
      // The same key stands for a new request after its retention.
      const later = decide(failed, request, { nowMs: nowMs + idempotencyRetentionMs })
      expect(later.answer).toMatchObject({ recipients: 1, isRepeated: false })
      expectGuarded(ended, retrying)
    },
    "Queued.FollowUp": () => {
      const second = "<notification><item>2</item></notification>"
      const sent = stateOf(decide(one, attempted(delivered)))
      const decision = decide(sent, following(owner, second), { head: 1 })
      expect(decision.answer).toEqual({ _tag: "FollowedUp", isRepeated: false })
      expect(decision.items).toEqual([second])
      const next = stateOf(decision)
      const followUps = [{ kind: "replacement", requestId: "f1", atMs: nowMs, item: 2 }]
      expect(next).toMatchObject({ followUps, version: 3, chars: second.length })
      expect(next.endedAtMs).toBeUndefined()
      expect(next.recipients).toEqual([{
        to: uri(0),
        status: "waiting",
        attempts: 1,
        tries: 0,
        lastAtMs: nowMs,
        nextAtMs: nowMs,
        delivered: { edition: 0, location: uri(9) }
      }])
      expect(decision.timerAtMs).toBe(nowMs)
      expect(decision.deferUntilMs).toBe(nowMs + attemptLeaseMs)
      expect(decision.actions).toMatchObject([
        {
          _tag: "Attempt",
          attempt: 2,
          document: second,
          followUp: {
            edition: 1,
            item: 2,
            isWithdrawal: false,
            isKnown: true,
            location: uri(9),
            earlierItem: 1
          }
        },
        note("waiting"),
        { _tag: "MarkRevised", edition: 1 }
      ])
      expectGuarded(one, following)
      // An admin withdraws, and sends in nobody else's name.
      expect(decide(one, following(admin), { head: 1 }).answer).toMatchObject({ isRepeated: false })
      expectRefused(decide(one, following(admin, second)), "Forbidden")
      expectRefused(decide(one, following(owner, "<item/>")), "Invalid")
    },
    "Queued.Delete": () => {
      const decision = decide(one, deleting(owner), { head: 1 })
      expect(decision.answer).toEqual({ _tag: "Done" })
      expect(effectsOf(decision)).toEqual({
        nextState: removed,
        removals: [1],
        timerAtMs: null,
        actions: [note(null)]
      })
      const version = (
        ifVersion: number
      ): NotificationMessage => ({ ...deleting(owner), ifVersion } as NotificationMessage)
      expectRefused(decide(one, version(7)), "PreconditionFailed")
      expect(decide(one, version(1), { head: 1 }).nextState).toEqual(removed)
      expectGuarded(one, deleting)
    },
    "Queued.TimerFired": () => {
      const decision = decide(reloaded(two), timerFired)
      expect(begun(decision)).toEqual([0, 1])
      expect(decision.durable).toBe(false)
      expect(decision.timerAtMs).toBeUndefined()
      expect(decision.deferUntilMs).toBe(nowMs + attemptLeaseMs)
      const early = where(reloaded(two), { nextAtMs: nowMs + 7 })
      expect(effectsOf(decide(early, timerFired))).toMatchObject({ timerAtMs: nowMs + 7 })
      expect(begun(decide(early, timerFired))).toEqual([])
      expect(decide(ended, timerFired).timerAtMs).toBe(nowMs + retentionMs)
      const over = decide(ended, timerFired, { head: 1, nowMs: nowMs + retentionMs })
      expect(over.nextState).toEqual({ ...removed, removedAtMs: nowMs + retentionMs })
      expect(over.removals).toEqual([1])
      expect(over.timerAtMs).toBe(null)
      expect(notes(over)).toEqual([note(null)])
    },
    "Removed.Create": () => expectRefused(decide(removed, create([uri(0)])), "Taken"),
    "Removed.Describe": () => {
      expectRefused(decide(removed, describing(owner)), "Gone")
      expectGuarded(removed, describing)
    },
    "Removed.AttemptHeld": () => expect(effectsOf(decide(removed, heldBack))).toBeUndefined(),
    "Removed.Release": () => expectRefused(decide(removed, release), "Gone"),
    "Removed.Attempted": () =>
      expect(effectsOf(decide(removed, attempted(delivered)))).toBeUndefined(),
    "Removed.FailureReportAddressed": () =>
      expect(effectsOf(decide(removed, addressed))).toBeUndefined(),
    "Removed.FailureReportSettled": () =>
      expect(effectsOf(decide(removed, settled))).toBeUndefined(),
    "Removed.Retry": () => {
      expectRefused(decide(removed, retrying(admin)), "Gone")
      expectGuarded(removed, retrying)
    },
    "Removed.FollowUp": () => {
      expectRefused(decide(removed, following(owner)), "Gone")
      expectGuarded(removed, following)
    },
    "Removed.Delete": () => {
      expectRefused(decide(removed, deleting(owner)), "Gone")
      expectGuarded(removed, deleting)
    },
    "Removed.TimerFired": () =>
      expect(effectsOf(decide(removed, timerFired))).toEqual({ timerAtMs: null })
  })
})
