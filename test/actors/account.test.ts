import { describe, expect } from "vitest"
import { accountTable as table } from "../../actors/account/decide.ts"
import { ownedText } from "../../actors/account/owned-removal.ts"
import type { AccountAction, AccountMessage, AccountReply,
  AccountState } from "../../actors/account/protocol.ts"
import type { FailureCause } from "../../actors/failure-reports/admission.ts"
import { accountTokensMax, auditedChangesPerDayMax, auditedRevocationsPerDayMax,
  auditedSignOutsPerDayMax, browserSessionIdleMs, browserSessionLifetimeMs, browserSessionsMax,
  browserSessionTouchMs, failureReportsPerHourMax, ownedRemovalRetryMs, readersReportsPerDayMax,
  tokenRemovalRetryMs, tokenUseIntervalMs } from "../../actors/limits.ts"
import type { Variant } from "../../runtime/index.ts"
import { decider, effectsOf, expectOnlyReply, expectRefused, hash, nowMs,
  testCells } from "./cells.ts"

const decide = decider<AccountState, AccountMessage, AccountReply, AccountAction>(table)

const tokenOf = (id: string) => ({ id, hash: hash(id), createdAtMs: nowMs })
const absent: AccountState = { _tag: "Absent" }
const removed: AccountState = { _tag: "Removed" }
const alice: Variant<AccountState, "Active"> = {
  _tag: "Active",
  name: "alice",
  requestId: "r1",
  createdAtMs: nowMs,
  roles: ["quotes"],
  tokens: [tokenOf("t1")],
  founder: false,
  version: 1
}
const rights = { scopes: ["read"] as const, mailbox: "box" }
const about = { label: "ci", expiresAtMs: nowMs + 60_000 }
const expiring = { ...tokenOf("t3"), ...about }
const brief: Variant<AccountState, "Active"> = {
  ...alice,
  version: 2,
  tokens: [...alice.tokens, expiring]
}
const founder: Variant<AccountState, "Active"> = {
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

const bootstrap = (id: string, enforced: boolean): AccountMessage => ({
  _tag: "Bootstrap",
  name: "admin",
  tokenId: id,
  tokenHash: hash(id),
  enforced
})
const create: Variant<AccountMessage, "Create"> = {
  _tag: "Create",
  caller: admin,
  requestId: "r1",
  name: "alice",
  roles: ["quotes"],
  tokenId: "t1",
  tokenHash: hash("t1")
}
const describeIt: Variant<AccountMessage, "Describe"> = { _tag: "Describe", caller: self }
const authenticate = (id: string): AccountMessage => ({ _tag: "Authenticate", tokenHash: hash(id) })
const recordUse = (id: string): AccountMessage => ({ _tag: "RecordUse", tokenHash: hash(id) })
type CountChange = Variant<AccountMessage, "CountChange">
const countChange: CountChange = { _tag: "CountChange" }
const countRevocation: CountChange = { _tag: "CountChange", kind: "revocation" }
const countSignOut: CountChange = { _tag: "CountChange", kind: "sign-out" }
const day = Math.floor(nowMs / 86_400_000)
const changedTimes = (count: number, onDay = day): AccountState => ({
  ...alice,
  changes: { day: onDay, count }
})
const addToken: Variant<AccountMessage, "AddToken"> = {
  _tag: "AddToken",
  caller: self,
  tokenId: "t2",
  tokenHash: hash("t2")
}
const removeToken: Variant<AccountMessage, "RemoveToken"> = {
  _tag: "RemoveToken",
  caller: self,
  tokenId: "t1"
}
const remove: Variant<AccountMessage, "Remove"> = { _tag: "Remove", caller: admin }
const removeTokens: Variant<AccountMessage, "RemoveTokens"> = { _tag: "RemoveTokens", caller: self }

const sessionOf = (id: string, createdAtMs = nowMs, usedAtMs = createdAtMs) => ({
  id,
  hash: hash(`secret-${id}`),
  tokenHash: hash("t1"),
  createdAtMs,
  usedAtMs,
  from: "192.0.2.1",
  agent: "Lynx"
})
const signedIn: Variant<AccountState, "Active"> = { ...alice, browserSessions: [sessionOf("s1")] }
const addSession: Variant<AccountMessage, "AddBrowserSession"> = {
  _tag: "AddBrowserSession",
  sessionId: "s1",
  sessionHash: hash("secret-s1"),
  tokenHash: hash("t1"),
  from: "192.0.2.1",
  agent: "Lynx"
}
const bySession = (id: string, secret = `secret-${id}`): AccountMessage => ({
  _tag: "AuthenticateBrowser",
  sessionId: id,
  sessionHash: hash(secret)
})
const touch = (sessionId: string): AccountMessage => ({ _tag: "TouchBrowserSession", sessionId })
const endSession: Variant<AccountMessage, "RemoveBrowserSession"> = {
  _tag: "RemoveBrowserSession",
  caller: self,
  sessionId: "s1"
}
const endSessions: Variant<AccountMessage, "RemoveBrowserSessions"> = {
  _tag: "RemoveBrowserSessions",
  caller: self
}
const authenticated = {
  _tag: "Authenticated",
  account: "alice",
  roles: ["quotes"],
  token: { id: "t1", createdAtMs: nowMs },
  isUseDue: false
}
const chooseMailbox = (
  mailbox?: string
): Variant<AccountMessage, "ChooseReportsMailbox"> => ({
  _tag: "ChooseReportsMailbox",
  caller: self,
  ...mailbox === undefined ? {} : { mailbox }
})
const admitReport = (id: string, cause: FailureCause = "outgoing"): AccountMessage => ({
  _tag: "AdmitFailureReport",
  id,
  cause
})
const reported = (
  count: number,
  atMs = nowMs,
  mailbox = "box",
  cause: FailureCause = "outgoing"
): Variant<AccountState, "Active"> => ({
  ...alice,
  failureReports: {
    mailbox,
    admitted: Array.from({ length: count }, (_, n) => ({ id: `n${n}`, atMs, cause }))
  }
})
const admit: AccountMessage = { _tag: "Admit", name: "alice" }
const forgotten = (
  ...tokenIds: ReadonlyArray<string>
): Variant<AccountMessage, "TokenRecordsRemoved"> => ({
  _tag: "TokenRecordsRemoved",
  tokenIds
})
const timerFired: AccountMessage = { _tag: "TimerFired" }
const done = { _tag: "Done" }
const view = {
  name: "alice",
  roles: ["quotes"],
  createdAtMs: nowMs,
  tokens: [{ id: "t1", createdAtMs: nowMs }],
  browserSessions: [],
  version: 1,
  reportsUndecided: true
}

const refusesAll = (state: AccountState, reason: string) => ({
  Describe: () => expectRefused(decide(state, describeIt), reason),
  Authenticate: () => expectRefused(decide(state, authenticate("t1")), "Unauthenticated"),
  RecordUse: () => expectOnlyReply(decide(state, recordUse("t1")), done),
  CountChange: () => expectRefused(decide(state, countChange), "Unauthenticated"),
  ChooseReportsMailbox: () => expectRefused(decide(state, chooseMailbox("box")), reason),
  AdmitFailureReport: () => expectRefused(decide(state, admitReport("n0")), reason),
  AddToken: () => expectRefused(decide(state, addToken), reason),
  RemoveToken: () => expectRefused(decide(state, removeToken), reason),
  RemoveTokens: () => expectRefused(decide(state, removeTokens), reason),
  AddBrowserSession: () => expectRefused(decide(state, addSession), "Unauthenticated"),
  AuthenticateBrowser: () => expectRefused(decide(state, bySession("s1")), "Unauthenticated"),
  TouchBrowserSession: () => expectRefused(decide(state, touch("s1")), reason),
  RemoveBrowserSession: () => expectRefused(decide(state, endSession), reason),
  RemoveBrowserSessions: () => expectRefused(decide(state, endSessions), reason),
  TokenRecordsRemoved: () => expectOnlyReply(decide(state, forgotten("t1")), undefined),
  Remove: () => expectRefused(decide(state, remove), reason),
  TimerFired: () => expectOnlyReply(decide(state, timerFired), undefined)
})
const owned = {
  account: "alice",
  startedAtMs: nowMs,
  passAtMs: nowMs,
  kind: "outgoing",
  found: 0,
  deleted: 0
} as const
const deleting: AccountState = { _tag: "Removed", owned }
const page: Variant<AccountMessage, "OwnedRemoved"> = {
  _tag: "OwnedRemoved",
  kind: "outgoing",
  found: 3,
  deleted: 2
}

const whenAbsent = refusesAll(absent, "NotFound")
const whenRemoved = refusesAll(removed, "Gone")

const adminOnly = (
  message: Extract<AccountMessage, { readonly caller: unknown }>,
  state: AccountState
) => {
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
      expect(decide(absent, { ...create, ...rights }).nextState)
        .toEqual({ ...alice, tokens: [{ ...tokenOf("t1"), ...rights }] })
      // The caller opens the mailbox for its failure reports, or it has refused them.
      const named = decide(absent, { ...create, reportsMailbox: "reports-1" })
      const failureReports = { mailbox: "reports-1", admitted: [] }
      expect(named.nextState).toEqual({ ...alice, failureReports })
      const { reportsUndecided: _, ...decided } = view
      expect(named.answer).toEqual({
        _tag: "Created",
        view: { ...decided, failureReports: "reports-1" },
        repeated: false
      })
      const refused = decide(absent, { ...create, reportsMailbox: null })
      expect(refused.nextState).toEqual({ ...alice, failureReports: { admitted: [] } })
      expect(refused.answer).toEqual({ _tag: "Created", view: decided, repeated: false })
      // A timer removes the first token when it has expired.
      const { expiresAtMs } = about
      const expires = decide(absent, { ...create, expiresAtMs })
      expect(expires.nextState)
        .toEqual({ ...alice, tokens: [{ ...tokenOf("t1"), expiresAtMs }] })
      expect([decision.timerAtMs ?? null, expires.timerAtMs]).toEqual([null, expiresAtMs])
      adminOnly(create, absent)
    },
    "Absent.Describe": whenAbsent.Describe,
    "Absent.Authenticate": whenAbsent.Authenticate,
    "Absent.RecordUse": whenAbsent.RecordUse,
    "Absent.CountChange": whenAbsent.CountChange,
    "Absent.ChooseReportsMailbox": whenAbsent.ChooseReportsMailbox,
    "Absent.AdmitFailureReport": whenAbsent.AdmitFailureReport,
    "Absent.Admit": () => {
      const decision = decide(absent, admit)
      expect(decision.nextState)
        .toEqual({ ...alice, requestId: "", roles: [], tokens: [] })
      expect([decision.durable, decision.answer]).toEqual([true, { _tag: "Admitted" }])
    },
    "Absent.AddToken": whenAbsent.AddToken,
    "Absent.RemoveToken": whenAbsent.RemoveToken,
    "Absent.RemoveTokens": whenAbsent.RemoveTokens,
    "Absent.AddBrowserSession": whenAbsent.AddBrowserSession,
    "Absent.AuthenticateBrowser": whenAbsent.AuthenticateBrowser,
    "Absent.TouchBrowserSession": whenAbsent.TouchBrowserSession,
    "Absent.RemoveBrowserSession": whenAbsent.RemoveBrowserSession,
    "Absent.RemoveBrowserSessions": whenAbsent.RemoveBrowserSessions,
    "Absent.TokenRecordsRemoved": whenAbsent.TokenRecordsRemoved,
    "Absent.Remove": whenAbsent.Remove,
    "Absent.OwnedRemoved": () => expectOnlyReply(decide(absent, page), undefined),
    "Absent.TimerFired": whenAbsent.TimerFired,

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
      // The account keeps one revoked token of the id, until a removal has kept the new records.
      const gone = { ...tokenOf("t0"), expiresAtMs: 0 }
      expect(decide({ ...founder, tokens: [gone, gone] }, bootstrap("t0", true)).nextState)
        .toEqual({ ...founder, version: 2, tokens: [gone, tokenOf("t0")] })
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
      // Neither hash is shown.
      expect(decide(signedIn, describeIt).answer).toEqual({
        _tag: "Described",
        view: {
          ...view,
          browserSessions: [{
            id: "s1",
            tokenId: "t1",
            createdAtMs: nowMs,
            usedAtMs: nowMs,
            expiresAtMs: nowMs + browserSessionIdleMs,
            from: "192.0.2.1",
            agent: "Lynx"
          }]
        }
      })
      expectOnlyReply(decide(alice, describeIt), { _tag: "Described", view })
      expect(decide(alice, { ...describeIt, caller: admin }).answer).toMatchObject({ view })
      adminOnly(describeIt, alice)
    },
    "Active.Authenticate": () => {
      expectOnlyReply(decide(alice, authenticate("t1")), {
        _tag: "Authenticated",
        account: "alice",
        roles: ["quotes"],
        token: { id: "t1", createdAtMs: nowMs },
        isUseDue: true
      })
      expectRefused(decide(alice, authenticate("t2")), "Unauthenticated")
      const last = { nowMs: expiring.expiresAtMs - 1 }
      const over = { nowMs: expiring.expiresAtMs }
      expect(decide(brief, authenticate("t3"), last).answer).toMatchObject({ account: "alice" })
      expectRefused(decide(brief, authenticate("t3"), over), "Unauthenticated")
      expect(decide(brief, authenticate("t1"), over).answer).toMatchObject({ account: "alice" })
    },
    "Active.RecordUse": () => {
      const used = { ...alice, tokens: [{ ...tokenOf("t1"), usedAtMs: nowMs }] }
      const decision = decide(alice, recordUse("t1"))
      // The version stays: a use refuses no conditional change.
      expect(decision.nextState).toEqual(used)
      expect(decision.answer).toEqual(done)
      const early = { nowMs: nowMs + tokenUseIntervalMs - 1 }
      expectOnlyReply(decide(used, recordUse("t1"), early), done)
      expect(decide(used, authenticate("t1"), early).answer).toMatchObject({ isUseDue: false })
      const later = { nowMs: nowMs + tokenUseIntervalMs }
      expect(decide(used, authenticate("t1"), later).answer).toMatchObject({ isUseDue: true })
      expect(decide(used, recordUse("t1"), later).nextState)
        .toEqual({ ...alice, tokens: [{ ...tokenOf("t1"), usedAtMs: later.nowMs }] })
      expectOnlyReply(decide(alice, recordUse("t9")), done)
      const over = { nowMs: expiring.expiresAtMs }
      expectOnlyReply(decide(brief, recordUse("t3"), over), done)
    },
    "Active.ChooseReportsMailbox": () => {
      const chosen = decide(alice, { ...chooseMailbox("box"), ifVersion: 1 })
      expect(chosen.nextState).toEqual({ ...reported(0), version: 2 })
      expect(chosen.answer).toEqual(done)
      const next = chosen.nextState ?? absent
      expect(decide(next, describeIt).answer).toMatchObject({ view: { failureReports: "box" } })
      // A repetition changes nothing, and what was admitted counts for another mailbox, too.
      expectOnlyReply(decide(next, { ...chooseMailbox("box"), ifVersion: 1 }), done)
      expect(decide(reported(3), chooseMailbox("other")).nextState)
        .toEqual({ ...reported(3, nowMs, "other"), version: 2 })
      const { admitted } = reported(3).failureReports ?? {}
      expect(decide(reported(3), chooseMailbox()).nextState)
        .toEqual({ ...alice, failureReports: { admitted }, version: 2 })
      expectRefused(decide(alice, { ...chooseMailbox("box"), ifVersion: 9 }), "PreconditionFailed")
      expectRefused(decide(alice, { ...chooseMailbox("box"), caller: bob }), "Forbidden")
      expect(decide(alice, { ...chooseMailbox("box"), caller: admin }).answer).toEqual(done)
    },
    "Active.AdmitFailureReport": () => {
      const rejected = { _tag: "FailureReportRejected" }
      const admitted = { _tag: "FailureReportAdmitted", isLast: false }
      expectOnlyReply(decide(alice, admitReport("n0")), rejected)
      const first = decide(reported(0), admitReport("n0"))
      expect(first.answer).toEqual(admitted)
      // No view has it: it refuses no conditional change.
      expect([first.nextState, first.durable]).toEqual([reported(1), true])
      // A repetition gets the same reply, also when the hour has had its reports.
      expectOnlyReply(decide(reported(1), admitReport("n0")), admitted)
      const most = failureReportsPerHourMax
      expect(decide(reported(most - 1), admitReport("last")).answer)
        .toEqual({ ...admitted, isLast: true })
      expectOnlyReply(decide(reported(most), admitReport("more")), rejected)
      expectOnlyReply(decide(reported(most), admitReport("n0")), admitted)
      expectOnlyReply(decide(reported(most), admitReport(`n${most - 1}`)), {
        ...admitted,
        isLast: true
      })
      const hour = 3_600_000
      const later = decide(reported(most, nowMs - hour), admitReport("n"))
      expect(later.nextState).toEqual({
        ...alice,
        failureReports: { mailbox: "box", admitted: [{ id: "n", atMs: nowMs, cause: "outgoing" }] }
      })
      // The clock was ahead, and was set back.
      expect(decide(reported(most, nowMs + hour), admitReport("n")).answer).toEqual(admitted)
      // What readers of the mailboxes cause has a share of its own, for a day.
      const few = readersReportsPerDayMax
      const readers = reported(few, nowMs - hour, "box", "reader")
      expectOnlyReply(decide(readers, admitReport("more", "reader")), rejected)
      expect(decide(readers, admitReport("own", "registration")).answer).toEqual(admitted)
      const dayBefore = reported(few, nowMs - 24 * hour, "box", "reader")
      expect(decide(dayBefore, admitReport("more", "reader")).answer).toEqual(admitted)
      // A share that is used up holds back no other one.
      expect(decide(reported(most), admitReport("own", "registration")).answer).toEqual(admitted)
    },
    "Active.CountChange": () => {
      const counted = (state: AccountState, message = countChange, atMs = nowMs) => {
        const decision = decide(state, message, { nowMs: atMs })
        expect(decision.answer).toEqual({ _tag: "ChangeCounted" })
        // A restart must not give the account its changes again.
        expect(decision.durable).toBe(true)
        return decision.nextState
      }
      const most = auditedChangesPerDayMax
      expect(counted(alice)).toEqual(changedTimes(1))
      expect(counted(changedTimes(most - 1))).toEqual(changedTimes(most))
      const spent = { _tag: "ChangesSpent", count: most, untilMs: (day + 1) * 86_400_000 }
      expectOnlyReply(decide(changedTimes(most), countChange), spent)
      const endOfDay = { nowMs: spent.untilMs - 1 }
      expectOnlyReply(decide(changedTimes(most), countChange, endOfDay), spent)
      expect(counted(changedTimes(most), countChange, spent.untilMs))
        .toEqual(changedTimes(1, day + 1))
      // The clock was ahead, and was set back.
      expect(counted(changedTimes(most, day + 400))).toEqual(changedTimes(1))
      // A sign-out may follow, and makes no room for other changes.
      expect(counted(changedTimes(most), countSignOut)).toEqual(changedTimes(most + 1))
      expectOnlyReply(decide(changedTimes(most + 1), countChange), { ...spent, count: most + 1 })
      const all = most + auditedSignOutsPerDayMax
      expectOnlyReply(decide(changedTimes(all), countSignOut), { ...spent, count: all })
      // No other change takes the room of revocations.
      const revokedTimes = (revocations: number): AccountState => (
        { ...alice, changes: { day, count: all, revocations } }
      )
      expect(counted(changedTimes(all), countRevocation)).toEqual(revokedTimes(1))
      const last = revokedTimes(auditedRevocationsPerDayMax)
      const allRevoked = { ...spent, count: auditedRevocationsPerDayMax }
      expectOnlyReply(decide(last, countRevocation), allRevoked)
    },
    "Active.Admit": () => {
      expectOnlyReply(decide(alice, admit), { _tag: "Admitted" })
      expectRefused(decide(founder, { ...admit, name: "admin" }), "Unauthenticated")
    },
    "Active.AddToken": () => {
      const both = { ...alice, version: 2, tokens: [tokenOf("t1"), tokenOf("t2")] }
      expect(decide(alice, addToken).nextState).toEqual(both)
      expect(decide(alice, { ...addToken, caller: admin }).nextState).toEqual(both)
      expectOnlyReply(decide(both, addToken), done)
      expect(decide(alice, { ...addToken, ...rights }).nextState)
        .toEqual({ ...both, tokens: [tokenOf("t1"), { ...tokenOf("t2"), ...rights }] })
      expectRefused(decide(both, { ...addToken, tokenHash: hash("other") }), "Taken")
      // A repetition finds its token, or that others have changed the tokens since.
      expectOnlyReply(decide(both, { ...addToken, ifVersion: 1 }), done)
      expect(decide(alice, { ...addToken, ifVersion: 1 }).nextState).toEqual(both)
      expectRefused(decide(alice, { ...addToken, ifVersion: 9 }), "PreconditionFailed")
      const without = { ...both, tokens: [tokenOf("t1"), { ...tokenOf("t2"), expiresAtMs: 0 }] }
      expectRefused(decide(without, { ...addToken, ifVersion: 1 }), "PreconditionFailed")
      expectRefused(decide(without, addToken), "Gone")
      const tokens = Array.from({ length: accountTokensMax }, (_, at) => tokenOf(`x${at}`))
      expectRefused(decide({ ...alice, tokens }, addToken), "Full")
      const wished = { ...addToken, tokenId: "t3", tokenHash: hash("t3"), ...about }
      const added = decide(alice, wished)
      expect([added.nextState, added.timerAtMs]).toEqual([brief, about.expiresAtMs])
      expect(decide(brief, { ...wished, ...addToken, expiresAtMs: nowMs + 9 }).timerAtMs)
        .toBe(nowMs + 9)
      expect(decide(brief, addToken).timerAtMs).toBeUndefined()
      // Expired ones leave room, until there are too many that nobody could remove.
      const over = { nowMs: about.expiresAtMs }
      const gone = Array.from({ length: accountTokensMax }, (_, at) => ({
        ...tokenOf(`x${at}`),
        ...about
      }))
      expect(decide({ ...alice, tokens: gone }, addToken, over).answer).toEqual(done)
      const crowded = [...gone, ...gone.map((one) => ({ ...one, id: `y${one.id}` }))]
      expectRefused(decide({ ...alice, tokens: crowded }, addToken, over), "Full")
      adminOnly(addToken, alice)
    },
    "Active.RemoveToken": () => {
      const decision = decide(alice, removeToken)
      const tokens = [{ ...tokenOf("t1"), expiresAtMs: 0 }]
      const revoked = { ...alice, version: 2, tokens }
      // The timer removes the records of the token; until then the account does not forget it.
      expect([decision.nextState, decision.timerAtMs]).toEqual([revoked, 0])
      expect(decision.answer).toEqual(done)
      expect(effectsOf(decide(revoked, timerFired))).toMatchObject({
        actions: [{ tokens: [{ id: "t1" }] }]
      })
      expect(decide(revoked, forgotten("t1")).nextState).toEqual({
        ...alice,
        version: 3,
        tokens: []
      })
      expectRefused(decide(revoked, removeToken), "NotFound")
      expectRefused(decide(alice, { ...removeToken, tokenId: "t9" }), "NotFound")
      expectRefused(decide(alice, { ...removeToken, ifVersion: 9 }), "PreconditionFailed")
      adminOnly(removeToken, alice)
    },
    "Active.RemoveTokens": () => {
      const decision = decide(brief, removeTokens)
      const tokens = brief.tokens.map((token) => ({ ...token, expiresAtMs: 0 }))
      expect(decision.nextState).toEqual({ ...brief, version: 3, tokens })
      const revoked = { _tag: "Revoked", tokenIds: ["t1", "t3"] }
      expect([decision.answer, decision.timerAtMs]).toEqual([revoked, 0])
      expectOnlyReply(decide({ ...brief, version: 3, tokens }, removeTokens), revoked)
      expectOnlyReply(decide({ ...alice, tokens: [] }, removeTokens), {
        _tag: "Revoked",
        tokenIds: []
      })
      expectRefused(decide(alice, { ...removeTokens, ifVersion: 9 }), "PreconditionFailed")
      adminOnly(removeTokens, alice)
    },
    "Active.AddBrowserSession": () => {
      const added = decide(alice, addSession)
      expect([added.nextState, added.answer]).toEqual([signedIn, authenticated])
      expect([added.durable, added.timerAtMs]).toEqual([true, nowMs + browserSessionIdleMs])
      expectOnlyReply(decide(signedIn, addSession), authenticated)
      expectRefused(decide(signedIn, { ...addSession, sessionHash: hash("other") }), "Taken")
      expectRefused(decide(alice, { ...addSession, tokenHash: hash("t9") }), "Unauthenticated")
      expectRefused(
        decide(brief, { ...addSession, tokenHash: hash("t3") }, { nowMs: about.expiresAtMs }),
        "Unauthenticated"
      )
      // Of too many the oldest goes, whatever it was used for.
      const many = Array.from({ length: browserSessionsMax }, (_, at) => sessionOf(`x${at}`))
      expect(decide({ ...alice, browserSessions: many }, addSession).nextState)
        .toEqual({ ...alice, browserSessions: [...many.slice(1), sessionOf("s1")] })
    },
    "Active.AuthenticateBrowser": () => {
      const at = (ms: number) => ({ nowMs: nowMs + ms })
      expectOnlyReply(decide(signedIn, bySession("s1")), authenticated)
      expectOnlyReply(decide(signedIn, bySession("s1"), at(browserSessionTouchMs)), {
        ...authenticated,
        isUseDue: true
      })
      expectRefused(decide(signedIn, bySession("s1", "wrong")), "Unauthenticated")
      expectRefused(decide(signedIn, bySession("s2")), "Unauthenticated")
      expectRefused(decide(alice, bySession("s1")), "Unauthenticated")
      expectRefused(decide(signedIn, bySession("s1"), at(browserSessionIdleMs)), "Unauthenticated")
      // In use all the time, it ends with its life.
      const begunMs = nowMs - browserSessionLifetimeMs
      const old = { ...alice, browserSessions: [sessionOf("s1", begunMs + 1, nowMs)] }
      expect(decide(old, bySession("s1")).answer).toMatchObject(authenticated)
      expectRefused(decide(old, bySession("s1"), at(1)), "Unauthenticated")
      // It ends with its token, also when the operator makes another one of the same id.
      const revoked = { ...signedIn, tokens: [{ ...tokenOf("t1"), expiresAtMs: 0 }] }
      expectRefused(decide(revoked, bySession("s1")), "Unauthenticated")
      const replaced = { ...signedIn, tokens: [{ ...tokenOf("t1"), hash: hash("new") }] }
      expectRefused(decide(replaced, bySession("s1")), "Unauthenticated")
    },
    "Active.TouchBrowserSession": () => {
      const later = nowMs + browserSessionTouchMs
      expectOnlyReply(decide(signedIn, touch("s1"), { nowMs: later - 1 }), done)
      expectOnlyReply(decide(signedIn, touch("s2"), { nowMs: later }), done)
      const touched = decide(signedIn, touch("s1"), { nowMs: later })
      expect([touched.nextState, touched.timerAtMs]).toEqual([
        {
          ...alice,
          tokens: [{ ...tokenOf("t1"), usedAtMs: later }],
          browserSessions: [sessionOf("s1", nowMs, later)]
        },
        later + browserSessionIdleMs
      ])
    },
    "Active.RemoveBrowserSession": () => {
      const ended = decide(signedIn, endSession)
      expect([ended.nextState, ended.timerAtMs, ended.answer]).toEqual([
        { ...alice, browserSessions: [] },
        null,
        done
      ])
      expect(decide(signedIn, { ...endSession, caller: admin }).answer).toEqual(done)
      expectRefused(decide(signedIn, { ...endSession, sessionId: "s2" }), "NotFound")
      adminOnly(endSession, signedIn)
    },
    "Active.RemoveBrowserSessions": () => {
      expect(decide(signedIn, endSessions).nextState).toEqual({ ...alice, browserSessions: [] })
      expectOnlyReply(decide(alice, endSessions), done)
      adminOnly(endSessions, signedIn)
    },
    "Active.TokenRecordsRemoved": () => {
      // The sessions of a removed token are removed with it.
      const gone = { ...signedIn, tokens: [{ ...tokenOf("t1"), expiresAtMs: 0 }] }
      expect(decide(gone, forgotten("t1")).nextState)
        .toEqual({ ...alice, version: 2, tokens: [], browserSessions: [] })
      // Only what has expired is forgotten, whatever the message says. Other records are restored.
      const kept = [{ id: "t1", hash: hash("t1") }, { id: "t3", hash: hash("t3") }]
      const restored = decide(brief, forgotten("t1", "t3"))
      expect([restored.nextState, restored.answer]).toEqual([undefined, undefined])
      expect(effectsOf(restored)).toEqual({
        timerAtMs: nowMs + tokenRemovalRetryMs,
        actions: [{ _tag: "RemoveTokenRecords", account: "alice", tokens: [], kept }]
      })
      const keptHashes = kept.map((token) => token.hash)
      const reported = { ...forgotten("t1", "t3"), keptHashes }
      expectOnlyReply(decide(brief, reported), undefined)
      const again = { ...founder, tokens: [{ ...tokenOf("t0"), expiresAtMs: 0 }, tokenOf("t0")] }
      expect(effectsOf(decide(again, forgotten("t0")))).toMatchObject({
        actions: [{ tokens: [{ id: "t0" }], kept: [{ id: "t0" }] }]
      })
      const ended = decide(again, { ...forgotten("t0"), keptHashes: [hash("t0")] })
      expect([ended.nextState, ended.timerAtMs]).toEqual([{ ...founder, version: 2 }, null])
      const over = decide(brief, reported, {
        nowMs: about.expiresAtMs
      })
      expect([over.nextState, over.timerAtMs, over.answer])
        .toEqual([{ ...alice, version: 3 }, null, undefined])
      expectOnlyReply(decide(alice, forgotten("t3")), undefined)
    },
    "Active.Remove": () => {
      const decision = decide(alice, { ...remove, name: "alice" })
      expect(decision.nextState).toEqual(deleting)
      expect(decision.timerAtMs).toBe(nowMs)
      expect(decision.answer).toEqual(done)
      // Nobody has asked for the deletion of what it may own.
      const alone = decide(alice, remove)
      expect([alone.nextState, alone.timerAtMs, alone.answer]).toEqual([removed, null, done])
      expectRefused(decide(founder, remove), "LastAdmin")
      expectRefused(decide(alice, { ...remove, ifVersion: 9 }), "PreconditionFailed")
      expectRefused(decide(alice, { ...remove, caller: self }), "Forbidden")
      adminOnly(remove, alice)
    },
    "Active.OwnedRemoved": () => expectOnlyReply(decide(alice, page), undefined),
    "Active.TimerFired": () => {
      const endMs = nowMs + browserSessionIdleMs
      expect(effectsOf(decide(signedIn, timerFired))).toEqual({ timerAtMs: endMs })
      expect(effectsOf(decide(signedIn, timerFired, { nowMs: endMs }))).toEqual({
        nextState: { ...alice, browserSessions: [] },
        timerAtMs: null
      })
      expect(effectsOf(decide(alice, timerFired))).toEqual({ timerAtMs: null })
      expect(effectsOf(decide(brief, timerFired))).toEqual({ timerAtMs: about.expiresAtMs })
      expect(effectsOf(decide(brief, timerFired, { nowMs: about.expiresAtMs }))).toEqual({
        timerAtMs: about.expiresAtMs + tokenRemovalRetryMs,
        actions: [{
          _tag: "RemoveTokenRecords",
          account: "alice",
          tokens: [{ id: "t3", hash: hash("t3") }],
          kept: []
        }]
      })
      const again = { ...founder, tokens: [{ ...tokenOf("t0"), expiresAtMs: 0 }, tokenOf("t0")] }
      expect(effectsOf(decide(again, timerFired))).toEqual({
        timerAtMs: nowMs + tokenRemovalRetryMs,
        actions: [{
          _tag: "RemoveTokenRecords",
          account: "admin",
          tokens: [{ id: "t0", hash: hash("t0") }],
          kept: [{ id: "t0", hash: hash("t0") }]
        }]
      })
    },

    "Removed.Bootstrap": () => expectRefused(decide(removed, bootstrap("t0", true)), "Gone"),
    "Removed.Create": () => expectRefused(decide(removed, create), "Taken"),
    "Removed.Describe": () => {
      whenRemoved.Describe()
      const decision = decide(deleting, { _tag: "Describe", caller: admin })
      expect(decision.answer).toMatchObject({ reason: "Gone", detail: ownedText(owned) })
    },
    "Removed.Authenticate": whenRemoved.Authenticate,
    "Removed.RecordUse": whenRemoved.RecordUse,
    "Removed.CountChange": whenRemoved.CountChange,
    "Removed.ChooseReportsMailbox": whenRemoved.ChooseReportsMailbox,
    "Removed.AdmitFailureReport": whenRemoved.AdmitFailureReport,
    "Removed.Admit": () => expectRefused(decide(removed, admit), "Unauthenticated"),
    "Removed.AddToken": whenRemoved.AddToken,
    "Removed.RemoveToken": whenRemoved.RemoveToken,
    "Removed.RemoveTokens": whenRemoved.RemoveTokens,
    "Removed.AddBrowserSession": whenRemoved.AddBrowserSession,
    "Removed.AuthenticateBrowser": whenRemoved.AuthenticateBrowser,
    "Removed.TouchBrowserSession": whenRemoved.TouchBrowserSession,
    "Removed.RemoveBrowserSession": whenRemoved.RemoveBrowserSession,
    "Removed.RemoveBrowserSessions": whenRemoved.RemoveBrowserSessions,
    "Removed.TokenRecordsRemoved": whenRemoved.TokenRecordsRemoved,
    "Removed.Remove": () => {
      whenRemoved.Remove()
      // The account was removed alone.
      expect(decide(removed, { ...remove, name: "alice" }).nextState).toEqual(deleting)
      expectRefused(decide(deleting, { ...remove, name: "alice" }), "Gone")
      adminOnly(remove, removed)
    },
    "Removed.OwnedRemoved": () => {
      expectOnlyReply(decide(removed, page), undefined)
      const after = { ...page, next: "k1" }
      const next = decide(deleting, after)
      const counted = { ...owned, found: 3, deleted: 2 }
      expect([next.nextState, next.timerAtMs])
        .toEqual([{ ...deleting, owned: { ...counted, after: "k1" } }, nowMs])
      // The same page was deleted twice.
      expectOnlyReply(
        decide({ _tag: "Removed", owned: { ...owned, after: "k1" } }, after),
        undefined
      )
      expect(decide(deleting, page).nextState)
        .toEqual({ ...deleting, owned: { ...counted, kind: "mailboxes" } })
      const over = { _tag: "Removed", owned: { ...owned, endedAtMs: nowMs } } as const
      expectOnlyReply(decide(over, page), undefined)
    },
    "Removed.TimerFired": () => {
      whenRemoved.TimerFired()
      expect(effectsOf(decide(deleting, timerFired))).toEqual({
        deferUntilMs: nowMs + ownedRemovalRetryMs,
        actions: [{ _tag: "RemoveOwned", account: "alice", kind: "outgoing", isSettled: false }]
      })
    }
  })
})
