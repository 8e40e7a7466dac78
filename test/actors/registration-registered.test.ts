import { describe, expect } from "vitest"
import { failingMaxMs, registeringMaxMs, registrationLeaseMs, secretOverlapMs, testsPerMinuteMax,
  unavailableRetryMs } from "../../actors/limits.ts"
import type { RegistrationState } from "../../actors/registration/protocol.ts"
import { effectsOf, expectOnlyReply, expectRefused, nowMs, testCells } from "./cells.ts"
import { absent, active, addressed, asked, away, callback, create, decide, deferred, delivered,
  describeIt, detached, expectBegun, expectEnd, expectNothing, expectUndone, faulted, found,
  hubCreate, leaseEndMs, look, looking, pause, paused, push, pushed, pushing, readSecrets, refused,
  type Registered, rejected, rejecting, remove, report, reporting, revoked, rotate, settled,
  skipped, subscribed, suspended, table, tested, testIt, timerFired, toPush, unsubscribe,
  unverified, update, verified, verify, verifying } from "./registration-cells.ts"

/** Suspended, and looking whether its mailbox is still there. */
const looksOn: Registered = {
  ...suspended,
  running: { kind: "check", untilMs: leaseEndMs }
}

describe("a registration", () => {
  testCells({ Registered: table.Registered }, {
    "Registered.Create": () => {
      const again = decide(active, create)
      expect(again.answer).toMatchObject({ _tag: "Created", repeated: true })
      expectNothing(again)
      expectRefused(decide(active, { ...create, requestId: "other" }), "Taken")
      expectRefused(decide(active, hubCreate), "Taken")
      const renewed = decide(subscribed, hubCreate)
      expectBegun(renewed, { ...verify, challenge: "c2", leaseSeconds: 60 })
      expect(renewed.nextState).toMatchObject({
        status: "active",
        secrets: [{ value: "hub" }],
        cursor: 3,
        intent: { secret: "hub2", leaseSeconds: 60 }
      })
      expectRefused(decide(subscribed, { ...hubCreate, topicFormat: "atom" }), "Taken")
      const ofFeed = decide({ ...subscribed, topicFormat: "atom" }, {
        ...hubCreate,
        topicFormat: "atom"
      })
      const verifyFeed = { ...verify, topicFormat: "atom", challenge: "c2", leaseSeconds: 60 }
      expectBegun(ofFeed, verifyFeed)
      const first = decide({ ...subscribed, status: "unverified" }, hubCreate)
      expect(first.nextState).toMatchObject({ cursor: 9 })
    },
    "Registered.Unsubscribe": () => {
      const decision = decide(subscribed, unsubscribe)
      expectBegun(decision, { ...verify, mode: "unsubscribe", challenge: "c3" })
      expect(decision.nextState).toMatchObject({ status: "active" })
      expect(decision.answer).toEqual({ _tag: "Done" })
      expectRefused(decide(active, unsubscribe), "Invalid")
    },
    "Registered.Describe": () => {
      const rotated = { value: "whsec_0", untilMs: nowMs + 9 }
      const decision = decide(
        { ...toPush, secrets: [{ value: "s" }, rotated], nextAtMs: nowMs + 5, tries: 2 },
        describeIt
      )
      expectOnlyReply(decision, {
        _tag: "Described",
        view: {
          form: "native",
          callback,
          account: "alice",
          createdAtMs: nowMs,
          status: "active",
          version: 1,
          cursor: 3,
          attempts: 2,
          nextAtMs: nowMs + 5,
          rotatedUntilMs: nowMs + 9
        }
      })
    },
    "Registered.ReadSecrets": () => {
      const rotated = { value: "whsec_0", untilMs: nowMs + 9 }
      const ended = { value: "whsec_x", untilMs: nowMs }
      const secrets = [{ value: "whsec_1" }, rotated, ended]
      expectOnlyReply(decide({ ...active, secrets }, readSecrets), {
        _tag: "Secrets",
        secrets: ["whsec_1", "whsec_0"]
      })
    },
    "Registered.Update": () => {
      const lifted = decide(suspended, update)
      expectBegun(lifted, push)
      expect(lifted.nextState).toMatchObject({
        status: "active",
        tries: 0,
        version: 2,
        checkAgain: true
      })
      expect(lifted.nextState).not.toHaveProperty("failingSinceMs")
      // What waits for its next attempt is pushed at once.
      const waits: Registered = { ...toPush, tries: 3, nextAtMs: nowMs + 3_600_000 }
      const now = decide(waits, update)
      expectBegun(now, push)
      expect(now.nextState).toMatchObject({ status: "active", tries: 0, pushing: 8 })
      expect(now.nextState).not.toHaveProperty("nextAtMs")
      // A repetition is recognized also after another change, which does not matter to it.
      const rotated = decide(lifted.nextState ?? absent, rotate).nextState ?? absent
      const repeated = decide(rotated, { ...update, ifVersion: 1 })
      expect(repeated.answer).toMatchObject({ _tag: "Described", view: { version: 3 } })
      expectNothing(repeated)
      const other = { ...update, challenge: "c5" }
      expectRefused(decide(rotated, { ...other, ifVersion: 1 }), "PreconditionFailed")
      const others = decide(rotated, other).nextState ?? absent
      expectRefused(decide(others, { ...update, ifVersion: 1 }), "PreconditionFailed")
      const updated = decide({ ...unverified, intent: { ...asked, tries: 5 } }, update)
      expectBegun(updated, { ...verify, challenge: "c4" })
      const moved = decide(pushing, { ...update, callback: "http://example.org/other" })
      expectBegun(moved, { ...verify, callback: "http://example.org/other", challenge: "c4" })
      expect(moved.nextState).toMatchObject({ status: "unverified", cursor: 3 })
      expect(moved.nextState).not.toHaveProperty("pushing")
      // What a test has found out at the previous callback is not shown, but its rate is bounded.
      const startsMs = Array.from({ length: testsPerMinuteMax }, () => nowMs)
      const testing = { ...active, test: { id: "t1", startsMs } }
      for (const test of [testing.test, { ...testing.test, outcome: delivered, durationMs: 12 }]) {
        const elsewhere = { ...update, callback: "http://example.org/other" }
        const { nextState: other = absent } = decide({ ...active, test }, elsewhere)
        expect(other).toMatchObject({ status: "unverified" })
        expect(other).toHaveProperty("test", { startsMs })
        expect(decide(other, describeIt).answer).toHaveProperty("view.test", undefined)
        expectNothing(decide(other, tested))
        const { nextState: verifiedThere = absent } = decide(other, verified(delivered, "c4"))
        expectNothing(decide(verifiedThere, tested))
        expect(decide(verifiedThere, testIt).answer).toMatchObject({ _tag: "TooManyTests" })
        const later = decide(verifiedThere, testIt, { nowMs: nowMs + 60_000 })
        expect(later.actions).toHaveLength(1)
      }
      expect(decide(testing, update).nextState).toMatchObject({ test: testing.test })
      // From another position: what was on its way does not count.
      const replayed = decide({ ...pushing, checkAgain: true }, { ...update, cursor: 1 })
      expectBegun(replayed, { ...look, from: 1 })
      const again = replayed.nextState ?? absent
      expect(again).toMatchObject({ status: "active", cursor: 1, version: 2 })
      expect(again).not.toHaveProperty("pushing")
      expectNothing(decide(again, found(8)))
      // The same changes and more: only a push from the new position counts.
      const looked = decide(again, { ...found(8), from: 1 })
      expectBegun(looked, { ...push, from: 1 })
      const { nextState: repeating = absent } = looked
      expectNothing(decide(repeating, pushed(delivered)))
      expectNothing(decide(repeating, skipped))
      const arrived = decide(repeating, { ...pushed(delivered), from: 1 })
      expect(arrived.nextState).toMatchObject({ cursor: 8 })
      expectRefused(decide(active, { ...update, ifVersion: 9 }), "PreconditionFailed")
      expectRefused(decide(subscribed, { ...update, callback: "http://other.org" }), "Invalid")
    },
    "Registered.Pause": () => {
      const decision = decide(pushing, { ...pause, ifVersion: 1 })
      expect(decision.answer).toMatchObject({ _tag: "Described", view: { status: "paused" } })
      expect(decision.actions).toBeUndefined()
      const held: Registered = { ...pushing, status: "paused", version: 2 }
      expect(decision.nextState).toEqual(held)
      // A repetition changes nothing, and a change of another version is refused.
      const repeated = decide(held, { ...pause, ifVersion: 1 })
      expect(repeated.answer).toMatchObject({ _tag: "Described", view: { version: 2 } })
      expectNothing(repeated)
      expectRefused(decide(active, { ...pause, ifVersion: 9 }), "PreconditionFailed")
      expectRefused(decide(unverified, pause), "Invalid")
      expectRefused(decide({ ...pushing, mailboxGone: true }, pause), "Gone")
      // What was on its way still counts; a failure is not repeated.
      const arrived = decide(held, pushed(delivered))
      expect(arrived.nextState).toMatchObject({ status: "paused", cursor: 8 })
      const checking: Registered = { ...held, running: { kind: "check", untilMs: leaseEndMs } }
      expectBegun(decide(checking, pushed(delivered)), { ...look, from: 8, readsChanges: false })
      for (const outcome of [faulted, refused, deferred]) {
        const failed = decide(held, pushed(outcome))
        expect(failed.timerAtMs).toBeNull()
        expect(failed.actions).toBeUndefined()
        // The mailbox has signaled meanwhile: it may have been removed.
        const again = decide({ ...held, checkAgain: true }, pushed(outcome))
        expectBegun(again, { ...look, readsChanges: false })
        // A check that has begun since still counts.
        expectNothing(decide(checking, pushed(outcome)))
      }
      const retried = decide({ ...toPush, nextAtMs: nowMs + 60_000 }, pause)
      expect(retried.nextState).not.toHaveProperty("nextAtMs")
      const gone = { _tag: "PermanentFailure", code: 410, problem: "gone" } as const
      expectEnd(decide({ ...held, version: 1 }, pushed(gone)))
      // Nothing is pushed, whatever the mailbox signals; its end is noticed.
      expectBegun(decide(paused, timerFired, { hint: 4 }), { ...look, readsChanges: false })
      expectEnd(decide({ ...looking, status: "paused" }, found(3, false, true)))
      const resumed = decide({ ...paused, pushing: 8 }, update)
      expectBegun(resumed, push)
      expect(resumed.nextState).toMatchObject({ status: "active", version: 2 })
      // A subscriber that renews its lease does not end the pause.
      const renewing: Registered = { ...paused, form: "websub", intent: asked }
      expect(decide(renewing, verified(delivered)).nextState).toMatchObject({ status: "paused" })
    },
    "Registered.Rotate": () => {
      const decision = decide(active, rotate)
      const older = { value: "whsec_1", untilMs: nowMs + secretOverlapMs }
      expect(decision.nextState)
        .toEqual({ ...active, version: 2, secrets: [{ value: "whsec_2" }, older] })
      const later = decide(decision.nextState ?? absent, { _tag: "Rotate", secret: "whsec_3" }, {
        nowMs: nowMs + secretOverlapMs
      })
      expect(later.nextState).toMatchObject({
        secrets: [{ value: "whsec_3" }, { value: "whsec_2", untilMs: nowMs + 2 * secretOverlapMs }]
      })
      // A repetition does not make a secret current again that another request has replaced.
      const repeated = decide(later.nextState ?? absent, { ...rotate, ifVersion: 1 })
      expect(repeated.answer).toMatchObject({ _tag: "Described", view: { version: 3 } })
      expectNothing(repeated)
      const expired = decide(later.nextState ?? absent, { ...rotate, ifVersion: 1 }, {
        nowMs: nowMs + 2 * secretOverlapMs
      })
      expectRefused(expired, "PreconditionFailed")
      expectRefused(decide(subscribed, rotate), "Invalid")
    },
    "Registered.Test": () => {
      const sent = {
        _tag: "SendTest",
        id: "t1",
        form: "native",
        callback,
        account: "alice",
        secrets: ["whsec_1"],
        from: 3,
        untilMs: leaseEndMs
      }
      // Also while pushes are held back: it shows whether they can go on. It takes no timer away.
      for (const state of [active, pushing, suspended, paused]) {
        const decision = decide(state, testIt)
        expect(decision.actions).toEqual([sent])
        expect([decision.timerAtMs, decision.deferUntilMs]).toEqual([undefined, undefined])
        expect(decision.nextState).toEqual({ ...state, test: { id: "t1", startsMs: [nowMs] } })
        expect(decision.answer).toMatchObject({
          view: { version: 1, test: { status: "pending", startedAtMs: nowMs } }
        })
      }
      expectRefused(decide(unverified, testIt), "OutOfOrder")
      expectRefused(decide({ ...active, mailboxGone: true }, testIt), "Gone")
      // The keys of a browser are not in an archive.
      expectRefused(decide({ ...active, form: "webpush", secrets: [] }, testIt), "Invalid")
      // A repetition, and another one while it runs, send nothing.
      const begun = decide(active, testIt).nextState ?? absent
      for (const id of ["t1", "t2"]) {
        const repeated = decide(begun, { ...testIt, id })
        expectNothing(repeated)
        expect(repeated.answer).toMatchObject({ view: { test: { id: "t1" } } })
      }
      // Its node has ended before the answer.
      const lost = { ...active, test: { id: "t1", startsMs: [nowMs - registrationLeaseMs] } }
      expect(decide(lost, describeIt).answer).toMatchObject({
        view: { test: { status: "unknown" } }
      })
      expect(decide(lost, { ...testIt, id: "t2" }).actions).toHaveLength(1)
      const many = Array.from({ length: testsPerMinuteMax }, (_, n) => nowMs - 59_999 + n)
      const outcome = delivered
      const tooMany = decide({ ...active, test: { id: "t0", startsMs: many, outcome } }, testIt)
      expectOnlyReply(tooMany, { _tag: "TooManyTests", untilMs: nowMs + 1 })
      const [, ...later] = many
      const startsMs = [nowMs - 60_000, ...later]
      const next = decide({ ...active, test: { id: "t0", startsMs, outcome } }, testIt)
      expect(next.nextState).toMatchObject({ test: { id: "t1", startsMs: [...later, nowMs] } })
      // A clock that was set back holds nothing back.
      const ahead = many.map((ms) => ms + 100_000)
      const after = decide({ ...active, test: { id: "t0", startsMs: ahead, outcome } }, testIt)
      expect(after.actions).toHaveLength(1)
      // The mailbox had too many: the same request may be repeated.
      const excess = { id: "t1", startsMs: [nowMs], outcome: deferred, isExcess: true }
      const repeated = decide({ ...active, test: excess }, testIt)
      expect(repeated.actions).toHaveLength(1)
      expect(repeated.nextState).toHaveProperty("test", { id: "t1", startsMs: [nowMs, nowMs] })
    },
    "Registered.Tested": () => {
      const begun = { ...suspended, test: { id: "t1", startsMs: [nowMs] } }
      const { answer, nextState, ...others } = decide(begun, tested)
      // Neither success nor failure of the pushes: status, cursor, tries and timer stay.
      const { outcome } = tested
      expect(nextState).toEqual({ ...begun, test: { ...begun.test, outcome, durationMs: 12 } })
      expect([answer, others.actions, others.timerAtMs]).toEqual([undefined, undefined, undefined])
      const seen = (result: typeof outcome) => {
        const state = decide(begun, { ...tested, outcome: result }).nextState ?? absent
        return decide(state, describeIt).answer
      }
      expect(seen(outcome)).toMatchObject({
        view: { status: "suspended", test: { status: "delivered", code: 204, durationMs: 12 } }
      })
      const excess = decide(begun, { ...tested, outcome: deferred, isExcess: true }).nextState
      expect(decide(excess ?? absent, describeIt).answer).toMatchObject({
        view: {
          test: {
            status: "failed",
            problem: expect.stringContaining("too many tests"),
            excessUntilMs: nowMs + 700
          }
        }
      })
      expect(seen(refused)).toMatchObject({
        view: { attempts: 30, test: { status: "failed", code: 404, problem: "not found" } }
      })
      expect(seen(deferred)).toMatchObject({
        view: { test: { status: "failed", problem: expect.stringContaining("held back until") } }
      })
      expectNothing(decide(nextState ?? absent, { ...tested, outcome: refused }))
      expectNothing(decide(begun, { ...tested, id: "t0" }))
      expectNothing(decide(active, tested))
    },
    "Registered.Delete": () => {
      const decision = decide(pushing, { ...remove, ifVersion: 1 })
      expectEnd(decision)
      expect(decision.answer).toEqual({ _tag: "Done" })
      expectUndone(decide(pushing, { ...remove, isUndo: true }))
      const reason = "the subscription has been removed"
      expectEnd(decide(subscribed, remove), { _tag: "Deny", callback, account: "alice", reason })
      expectUndone(decide(subscribed, { ...remove, isUndo: true }))
      // The request that made it does not make it again; another request does.
      const ended = decision.nextState ?? absent
      expectRefused(decide(ended, create), "Gone")
      expect(decide(ended, { ...create, requestId: "r2" }).nextState).toMatchObject({ version: 2 })
      expectRefused(decide(active, { ...remove, ifVersion: 9 }), "PreconditionFailed")
    },
    "Registered.Verified": () => {
      const echoed = decide(verifying, verified(delivered))
      expectBegun(echoed, look)
      expect(echoed.nextState)
        .toEqual({ ...active, lastAtMs: nowMs, code: 200, running: looking.running })
      expectNothing(decide(verifying, verified(delivered, "old")))
      const no = decide(verifying, verified(refused))
      expect(no.nextState).toMatchObject({ status: "unverified", code: 404, problem: "not found" })
      expect(no.timerAtMs).toBeNull()
      const retry = decide(verifying, verified(faulted))
      expect(retry.timerAtMs).toBe(nowMs + 5_000)
      expect(retry.nextState).toMatchObject({ intent: { tries: 1, nextAtMs: nowMs + 5_000 } })
      const last = { ...verifying, intent: { ...asked, tries: 4, nextAtMs: nowMs } }
      expect(decide(last, verified(faulted)).timerAtMs).toBeNull()
      expect(decide(verifying, verified(deferred)).timerAtMs).toBe(nowMs + 700)
      const intent = { ...asked, leaseSeconds: 60, secret: "hub2", nextAtMs: nowMs }
      const renewed = decide({ ...subscribed, intent }, verified(delivered))
      expect(renewed.nextState)
        .toMatchObject({ secrets: [{ value: "hub2" }], leaseUntilMs: nowMs + 60_000 })
      const goesOn = decide({ ...subscribed, intent }, verified(refused))
      expect(goesOn.nextState).toMatchObject({ status: "active", secrets: [{ value: "hub" }] })
      const leaving: RegistrationState = {
        ...subscribed,
        intent: { ...intent, mode: "unsubscribe" }
      }
      expectEnd(decide(leaving, verified(delivered)))
      expect(decide(leaving, verified(refused)).nextState).not.toHaveProperty("intent")
      // An answer of a WebSub subscriber is final; a native callback may be behind a busy proxy.
      const busy = { ...faulted, code: 503 }
      const asWebsub = decide({ ...verifying, form: "websub" }, verified(busy))
      expect([asWebsub.timerAtMs, asWebsub.nextState]).toEqual([
        nowMs + failingMaxMs,
        expect.objectContaining({ status: "unverified", code: 503 })
      ])
      // It ends then, and its callback gets no denial; another request verifies it again.
      const rejected = asWebsub.nextState ?? absent
      const later = decide(rejected, timerFired, { nowMs: nowMs + failingMaxMs })
      expect([later.nextState?._tag, later.actions]).toEqual(["Removed", [{ _tag: "Detach" }]])
      expectEnd(decide(rejected, remove))
      for (const retried of [hubCreate, update]) {
        expect(decide(rejected, retried).nextState).not.toHaveProperty("leaseUntilMs")
      }
      expect(decide({ ...subscribed, intent }, verified(busy)).nextState)
        .not.toHaveProperty("intent")
      expect(decide(verifying, verified(busy)).timerAtMs).toBe(nowMs + 5_000)
      expect(decide({ ...verifying, form: "websub" }, verified(faulted)).timerAtMs)
        .toBe(nowMs + 5_000)
    },
    "Registered.Checked": () => {
      const decision = decide(looking, found(8))
      expectBegun(decision, push)
      expect(decision.nextState).toEqual(pushing)
      expect(decide(looking, found(8, true)).nextState).toEqual({ ...pushing, checkAgain: true })
      expect(effectsOf(decide(looking, found(3)))).toEqual({ nextState: active, timerAtMs: null })
      expectBegun(decide({ ...looking, checkAgain: true }, found(3)), look)
      expectNothing(decide(active, found(8)))
      expectNothing(decide({ ...active, running: { kind: "check", untilMs: 1 } }, found(8)))
      const gone = decide(looking, found(3, false, true))
      expectBegun(gone, { ...push, upTo: 3, mailboxGone: true })
      expectEnd(decide(looksOn, found(3, false, true)))
      // A topic has no document of a removed mailbox: the subscription is denied.
      const deny = {
        _tag: "Deny",
        callback,
        account: "alice",
        reason: "the mailbox has been removed"
      } as const
      const websub: Registered = { ...looking, form: "websub", topicFormat: "rss" }
      expectEnd(decide(websub, found(3, false, true)), { ...deny, topicFormat: "rss" })
      const during: Registered = { ...pushing, form: "websub" }
      expectEnd(decide(during, found(3, false, true)), deny)
    },
    "Registered.Pushed": () => {
      const decision = decide({ ...pushing, failingSinceMs: 1, tries: 2 }, pushed(delivered))
      const after = { ...active, cursor: 8, lastAtMs: nowMs, code: 200 }
      expect(decision.nextState).toEqual(after)
      expect(decision.timerAtMs).toBeNull()
      const lookOn = { ...look, from: 8 }
      expectBegun(decide({ ...pushing, checkAgain: true }, pushed(delivered)), lookOn)
      expectBegun(decide(toPush, pushed(delivered)), lookOn)
      expectNothing(decide(pushing, pushed(delivered, 7)))
      expectNothing(decide({ ...pushing, callback: "http://other.org" }, pushed(delivered)))
      expectNothing(decide(suspended, pushed(delivered)))
      for (const outcome of [faulted, refused]) {
        const retry = decide({ ...pushing, tries: 7 }, pushed(outcome))
        expect(retry.timerAtMs).toBe(nowMs + 60_000)
        expect(retry.nextState).toMatchObject({ tries: 8, pushing: 8, failingSinceMs: nowMs })
      }
      expect(decide(pushing, pushed(faulted)).timerAtMs).toBe(nowMs + 5_000)
      const late = { ...pushing, tries: 1, failingSinceMs: nowMs - failingMaxMs }
      const given = decide(late, pushed(faulted))
      expect(given.nextState).toMatchObject({ status: "suspended", pushing: 8 })
      expect(given.timerAtMs).toBeNull()
      expectBegun(decide({ ...late, checkAgain: true }, pushed(faulted)), {
        ...look,
        readsChanges: false
      })
      const waits = decide(pushing, pushed(deferred))
      expect(waits.nextState).toEqual({ ...toPush, nextAtMs: nowMs + 700 })
      expect(waits.timerAtMs).toBe(nowMs + 700)
      expectEnd(decide(pushing, pushed({ _tag: "PermanentFailure", code: 410, problem: "gone" })))
      const last: Registered = { ...pushing, mailboxGone: true }
      for (const outcome of [delivered, refused]) expectEnd(decide(last, pushed(outcome)))
    },
    "Registered.FailureReportAddressed": () => {
      const waiting = decide(rejecting, pushed(rejected), reporting).nextState ?? absent
      const decision = decide(waiting, addressed, reporting)
      const to = { account: "alice", mailbox: "box" }
      expectBegun(decision, { ...report, to })
      const next = decision.nextState ?? absent
      expect(next).toMatchObject({ failureReport: { atMs: nowMs, to }, status: "suspended" })
      // The mailbox stays, whatever the account has chosen since.
      expectNothing(decide(next, addressed, reporting))
      expectNothing(decide(active, addressed, reporting))
    },
    "Registered.FailureReportSettled": () => {
      const decision = decide(rejecting, pushed(rejected), reporting)
      expectBegun(decision, report)
      const waiting = decision.nextState ?? absent
      expectNothing(decide(waiting, { ...settled, atMs: nowMs - 1 }, reporting))
      const done = decide(waiting, settled, reporting)
      expect(done.nextState).toMatchObject({ status: "suspended", failureReport: { atMs: nowMs } })
      expect(done.nextState).not.toHaveProperty("failureReport.description")
      expect(done.nextState).not.toHaveProperty("failureReportUntilMs")
      expect([done.durable, done.timerAtMs, done.actions]).toEqual([true, null, undefined])
      expectNothing(decide(done.nextState ?? absent, settled, reporting))
    },
    "Registered.Skipped": () => {
      const decision = decide({ ...pushing, tries: 2, failingSinceMs: 1 }, skipped)
      expect(decision.nextState).toEqual({ ...active, cursor: 8 })
      expect(decision.timerAtMs).toBeNull()
      expectBegun(decide({ ...pushing, checkAgain: true }, skipped), { ...look, from: 8 })
      expectNothing(decide(pushing, { ...skipped, upTo: 7 }))
      expectNothing(decide(toPush, skipped))
    },
    "Registered.Detached": () => {
      expect(decide(looking, detached).timerAtMs).toBe(nowMs + unavailableRetryMs)
      expectUndone(decide({ ...looking, createdAtMs: nowMs - registeringMaxMs }, detached))
      expectNothing(decide({ ...active, createdAtMs: 0 }, detached))
    },
    "Registered.Revoked": () => {
      const allowed = { secretsVersion: 1 }
      for (const state of [pushing, toPush, suspended, looking, unverified]) {
        expectEnd(decide({ ...state, ...allowed }, revoked))
      }
      // The owner has made it, or it was renewed in the meantime.
      expectNothing(decide(pushing, revoked))
      expectNothing(decide({ ...pushing, secretsVersion: 2 }, revoked))
      // Whoever chooses the callback is the one that must be allowed.
      const moved = { ...update, callback: `${callback}/2` }
      expect(decide(active, { ...moved, ...allowed }).nextState).toMatchObject(allowed)
      expect(decide(active, { ...update, ...allowed }).nextState)
        .not.toHaveProperty("secretsVersion")
      expect(decide({ ...active, ...allowed }, moved).nextState)
        .not.toHaveProperty("secretsVersion")
      const theirs = { ...subscribed, ...allowed }
      expect(decide(theirs, { ...hubCreate, secretsVersion: 2 }).nextState)
        .toMatchObject({ secretsVersion: 2 })
      expect(decide(theirs, hubCreate).nextState).not.toHaveProperty("secretsVersion")
      expect(decide(subscribed, { ...hubCreate, ...allowed }).nextState)
        .not.toHaveProperty("secretsVersion")
      expectBegun(decide({ ...toPush, ...allowed }, timerFired), { ...push, ...allowed })
      expectBegun(decide({ ...active, ...allowed }, timerFired), { ...look, ...allowed })
      // A push that waits is not made sooner, and need not be waited for.
      const waiting = { ...toPush, ...allowed, nextAtMs: leaseEndMs + 9 }
      const checking = { ...look, ...allowed, readsChanges: false }
      expectBegun(decide(waiting, timerFired), checking)
      const begun = { ...waiting, running: { kind: "check", untilMs: leaseEndMs } } as const
      expect(decide(begun, found(3)).timerAtMs).toBe(waiting.nextAtMs)
      // The push is due by now: after it, what the check has not read is looked for.
      const due = decide({ ...begun, nextAtMs: nowMs }, found(3))
      expectBegun(due, { ...push, ...allowed })
      expect(due.nextState).toMatchObject({ checkAgain: true })
      expect(decide(begun, away).nextState).toMatchObject({ nextAtMs: waiting.nextAtMs })
    },
    "Registered.Unavailable": () => {
      expect(effectsOf(decide(looking, away)))
        .toEqual({ nextState: active, timerAtMs: nowMs + unavailableRetryMs })
      const later = decide(pushing, away)
      expect(later.nextState).toEqual({ ...toPush, nextAtMs: nowMs + unavailableRetryMs })
      expectNothing(decide(active, away))
    },
    "Registered.TimerFired": () => {
      expectBegun(decide(active, timerFired), look)
      expectBegun(decide(toPush, timerFired), push)
      expect(decide(toPush, timerFired).nextState).toEqual({ ...pushing, checkAgain: true })
      // One item has come, the next one: no need to look.
      const next = decide(active, timerFired, { hint: active.cursor + 1 })
      expectBegun(next, { ...push, upTo: active.cursor + 1 })
      expect(next).toMatchObject({ durable: true, timerAtMs: nowMs, deferUntilMs: leaseEndMs })
      for (const hint of [active.cursor, active.cursor + 2]) {
        expectBegun(decide(active, timerFired, { hint }), look)
      }
      expectBegun(decide(toPush, timerFired, { hint: active.cursor + 1 }), push)
      const during = decide(pushing, timerFired)
      expect(effectsOf(during))
        .toEqual({ nextState: { ...pushing, checkAgain: true }, deferUntilMs: leaseEndMs })
      const lost = { ...looking, running: { kind: "check", untilMs: nowMs } } as const
      expectBegun(decide(lost, timerFired), look)
      const early: RegistrationState = { ...toPush, nextAtMs: nowMs + 9 }
      expect(decide(early, timerFired)).toMatchObject({ timerAtMs: nowMs + 9, actions: undefined })
      expectBegun(decide(suspended, timerFired), { ...look, readsChanges: false })
      expectBegun(decide(unverified, timerFired), verify, { ...look, readsChanges: false })
      expectEnd(decide({ ...subscribed, leaseUntilMs: nowMs }, timerFired))
      const leased = decide({ ...subscribed, leaseUntilMs: nowMs + 5 }, timerFired)
      expect(leased.deferUntilMs).toBe(nowMs + 5)
    }
  })
})
