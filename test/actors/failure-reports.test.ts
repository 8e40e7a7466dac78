/** The steps of a failure report: where it goes, what it says, and when it is settled. */
import { Effect, Logger, ManagedRuntime } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, it, onTestFinished } from "vitest"
import { ReportsLookup } from "../../actors/failure-reports/account-lookup.ts"
import { reportFailure } from "../../actors/failure-reports/deposit.ts"
import { originOf, recipientText, undeliveredText } from "../../actors/failure-reports/report.ts"
import { aboutCharsMax, failureReportCharsMax, reportsLookupFreshMs } from "../../actors/limits.ts"
import { type Address, type AskFailure, AskTimeout, type Peers,
  StorageUnavailable } from "../../runtime/index.ts"

interface Asked {
  readonly to: Address
  readonly message: { readonly _tag: string; readonly fragment?: string }
}

/** Actors with these replies, in the order of the messages; a missing one is a failure. */
const peersWith = (...replies: ReadonlyArray<unknown>) => {
  const asked: Array<Asked> = []
  const peers: Peers = {
    read: () => Effect.never,
    ask: (to, message) => {
      // The kinds have their own protocols.
      asked.push({ to, message: message as Asked["message"] })
      const reply = replies[asked.length - 1]
      const failure: AskFailure = new AskTimeout({ key: "mailbox/box", deadlineMs: 1 })
      return reply === undefined ? Effect.fail(failure) : Effect.succeed(reply)
    }
  }
  return { asked, peers }
}

const refusal = (reason: string) => ({ _tag: "Refused", reason })

const account = (failureReports?: string) => ({
  _tag: "Described",
  view: { failureReports, version: 1 }
})
const undecided = { _tag: "Described", view: { reportsUndecided: true, version: 7 } }
const mailbox = { _tag: "Described", view: { owner: "alice" } }
const admitted = { _tag: "FailureReportAdmitted", isLast: false }
const deposited = { _tag: "Deposited", n: 1, repeated: false }

const to = { account: "alice", mailbox: "box" }
const action = {
  _tag: "ReportFailure",
  atMs: 5,
  description: "Pushes fail: <a & b>\u0001",
  isOverdue: false
} as const
const failure = {
  actorId: "alice=r",
  action,
  cause: "registration",
  account: Effect.succeed("alice"),
  url: "http://own.test/mailboxes/alice/registrations/r",
  records: { write: () => Effect.void }
} as const
const addressed = { ...failure, action: { ...action, to } }

const settled = { _tag: "FailureReportSettled", atMs: 5 }

/** Makes a step with these replies; what came of it, and what was asked and logged. */
const step = async (
  reported: Parameters<typeof reportFailure>[1],
  ...replies: ReadonlyArray<unknown>
) => {
  const { asked, peers } = peersWith(...replies)
  const logged: Array<string> = []
  const logger = Logger.make(({ message }) => void logged.push(String(message)))
  const outcome = await Effect.runPromise(
    reportFailure(peers, reported).pipe(Effect.provide(Logger.layer([logger])))
  )
  return { asked, logged, outcome }
}

describe("a failure report", () => {
  it("goes to the mailbox that its account has chosen", async () => {
    const { asked, outcome } = await step(failure, account("box"))
    expect(outcome).toEqual({ _tag: "FailureReportAddressed", atMs: 5, to })
    expect(asked).toEqual([{
      to: { kind: "account", id: "alice" },
      message: { _tag: "Describe", caller: { account: "alice", admin: false } }
    }])
  })

  it("goes to a new mailbox of an account that has never chosen, or refused, one", async () => {
    const done = { _tag: "Done" }
    const { asked, outcome } = await step(failure, undecided, done, account("reports-1"))
    expect(outcome).toEqual({
      _tag: "FailureReportAddressed",
      atMs: 5,
      to: { account: "alice", mailbox: "reports-1" }
    })
    expect(asked[1]).toEqual({
      to: { kind: "account", id: "alice" },
      message: {
        _tag: "ChooseReportsMailbox",
        caller: { account: "alice", admin: false },
        mailbox: expect.stringMatching(/^reports-[0-9a-f]{32}$/),
        ifVersion: 7
      }
    })
    // Another change came first, or nothing is known of the choice: the step is repeated.
    const late = refusal("PreconditionFailed")
    expect((await step(failure, undecided, late, undecided)).outcome).toBeUndefined()
    expect((await step(failure, undecided)).outcome).toBeUndefined()
    // Another report came first: its mailbox counts.
    const second = await step(failure, undecided, late, account("reports-2"))
    expect(second.outcome).toMatchObject({ to: { mailbox: "reports-2" } })
  })

  it("opens the mailbox of its account if that is not open yet", async () => {
    const written: Array<unknown> = []
    const records = {
      write: (changes: ReadonlyArray<unknown>) => Effect.sync(() => void written.push(...changes))
    }
    const opened = { _tag: "Created", version: 1, createdAtMs: 0, repeated: false }
    const replies = [refusal("NotFound"), opened, mailbox, admitted, deposited]
    const { asked, outcome } = await step({ ...addressed, records }, ...replies)
    expect([outcome, asked.length]).toEqual([settled, replies.length])
    expect(written).toEqual([{ table: "mailboxes-by-owner", key: "alice/box", value: "" }])
    expect(asked[1]?.message).toMatchObject({
      _tag: "Create",
      owner: "alice",
      settings: { title: "Failure reports", deposit: "accounts" }
    })
    // Nothing is known of the mailbox, or of the list: the step is repeated.
    const fails = { write: () => Effect.fail(new StorageUnavailable({ detail: "away" })) }
    expect((await step({ ...addressed, records: fails }, refusal("NotFound"))).outcome)
      .toBeUndefined()
    expect((await step(addressed, refusal("NotFound"))).outcome).toBeUndefined()
  })

  it("is deposited there, the same each time", async () => {
    const { asked, logged, outcome } = await step(addressed, mailbox, admitted, deposited)
    expect([outcome, logged]).toEqual([settled, []])
    const [describe, admit, deposit] = asked
    expect(describe?.to).toEqual({ kind: "mailbox", id: "box" })
    expect(admit).toEqual({
      to: { kind: "account", id: "alice" },
      message: { _tag: "AdmitFailureReport", id: "alice=r 5", cause: "registration" }
    })
    expect(deposit?.to).toEqual({ kind: "mailbox", id: "box" })
    expect(deposit?.message).toMatchObject({
      _tag: "Deposit",
      account: "alice",
      fragment: "<item><description>Pushes fail: &lt;a &amp; b&gt; </description>" +
        `<url>${failure.url}</url></item>`
    })
    const again = await step(addressed, mailbox, admitted, { ...deposited, repeated: true })
    expect([again.outcome, again.asked]).toEqual([settled, asked])
  })

  it("names a recipient without what may be a secret", () => {
    for (
      const [uri, shown] of [
        ["https://example.org/mailboxes/alice", "https://example.org/mailboxes/alice"],
        ["https://example.org/mailboxes/a~b", "https://example.org/mailboxes/a…"],
        ["https://example.org/mailboxes/a%7Eb", "https://example.org/mailboxes/a…"],
        ["https://example.org/mailboxes/a?key=secret#secret", "https://example.org/mailboxes/a…"],
        ["https://example.org/mailboxes/a~b/c", "https://example.org/…"],
        ["https://example.org/mailboxes/a;token=abc", "https://example.org/…"],
        ["https://example.org/mailboxes/sEcr3t", "https://example.org/…"],
        [`https://example.org/mailboxes/${"x".repeat(65)}`, "https://example.org/…"],
        ["http://h/hooks/catch/123/sEcr3tTok3n/", "http://h/…"],
        ["https://ntfy.sh/mysecrettopic42", "https://ntfy.sh/…"],
        ["https://h/x;token=abc", "https://h/…"],
        ["https://example.org/in?key=secret#secret", "https://example.org/…"],
        ["https://user:password@example.org/", "https://example.org/…"],
        ["mailto:a@example.org", "another service"],
        ["not a URI", "another service"]
      ] as const
    ) {
      expect(recipientText(uri), uri).toBe(shown)
    }
  })

  it("is not longer than it may be, whatever it names", () => {
    const text = undeliveredText({
      about: "a".repeat(aboutCharsMax),
      isWithdrawal: true,
      to: `https://${"a.".repeat(120)}org/mailboxes/${"a".repeat(64)}`,
      problem: "answered 410",
      failed: 999,
      count: 1000
    })
    expect(text).toMatch(
      /^The withdrawal of “a{200}” was not .*: answered 410\. So far 999 of 1000 /
    )
    expect(text.length).toBeLessThan(failureReportCharsMax)
  })

  it("is short, and says when there is no room for another one", async () => {
    const long = { ...action, to, description: "x".repeat(2 * failureReportCharsMax) }
    const { asked } = await step(
      { ...failure, action: long },
      mailbox,
      { ...admitted, isLast: true },
      deposited
    )
    const fragment = String(asked[2]?.message.fragment)
    expect(fragment).toContain("There may be more failures of this kind")
    expect(/x+/.exec(fragment)?.[0]).toHaveLength(failureReportCharsMax)
  })

  it("is settled in silence without a mailbox or an account, or beyond its share", async () => {
    const unwanted = await step(failure, account())
    const ofNobody = await step({ ...failure, account: Effect.succeed(undefined) })
    const beyond = await step(addressed, mailbox, { _tag: "FailureReportRejected" })
    expect(beyond.asked).toHaveLength(2)
    for (const { logged, outcome } of [unwanted, ofNobody, beyond]) {
      expect([outcome, logged]).toEqual([settled, []])
    }
  })

  it.each<[string, typeof failure | typeof addressed, ReadonlyArray<unknown>, string]>([
    ["whose account was removed", failure, [refusal("Gone")], "alice"],
    ["whose account was removed since", addressed, [mailbox, refusal("Gone")], "admit"],
    ["whose mailbox was removed", addressed, [refusal("Gone")], "box"],
    ["whose mailbox is now of another account", addressed, [{
      _tag: "Described",
      view: { owner: "bob" }
    }], "not one of alice"],
    ["whose mailbox is full", addressed, [mailbox, admitted, refusal("Full")], "Full"]
  ])("%s is dropped, and the log has the reason", async (_, reported, replies, reason) => {
    const { asked, logged, outcome } = await step(reported, ...replies)
    expect(outcome).toEqual(settled)
    expect(logged).toEqual([expect.stringContaining(reason)])
    expect(logged[0]).toContain(failure.url)
    // No admission is spent on a mailbox that takes nothing.
    expect(asked).toHaveLength(replies.length)
  })

  it("that has waited for a day is dropped without another attempt", async () => {
    const { asked, logged, outcome } = await step({
      ...addressed,
      action: { ...addressed.action, isOverdue: true }
    })
    expect([asked, outcome]).toEqual([[], settled])
    expect(logged).toEqual([expect.stringContaining("for a day")])
  })

  it.each<[string, typeof failure | typeof addressed, ReadonlyArray<unknown>]>([
    ["account does not answer", failure, []],
    ["account is busy", failure, [refusal("Busy")]],
    ["mailbox does not answer", addressed, []],
    ["mailbox is busy", addressed, [mailbox, admitted, refusal("Busy")]],
    ["mailbox may have it", addressed, [mailbox, admitted]]
  ])("whose %s waits", async (_, reported, replies) => {
    const { logged, outcome } = await step(reported, ...replies)
    expect([outcome, logged]).toEqual([undefined, []])
  })

  it("names no path of a callback, which may be a secret", () => {
    expect(originOf("https://hooks.example/secret?key=1")).toBe("https://hooks.example/…")
    expect(originOf("no URI")).toBe("another service")
  })
})

describe("the lookup of an account", () => {
  it("asks once for many failures, whether the account wants reports or not", async () => {
    const runtime = ManagedRuntime.make(TestClock.layer())
    onTestFinished(() => runtime.dispose())
    const lookup = new ReportsLookup()
    const { asked, peers } = peersWith(account(), account("box"), account("box"), undecided)
    const mayReport = (name: string) => runtime.runPromise(lookup.mayReport(peers, name))
    expect([await mayReport("alice"), await mayReport("alice")]).toEqual([false, false])
    expect(asked).toHaveLength(1)
    expect([await mayReport("bob"), await mayReport("bob")]).toEqual([true, true])
    expect(asked).toHaveLength(2)
    // A new choice counts after a while.
    await runtime.runPromise(TestClock.adjust(reportsLookupFreshMs))
    expect([await mayReport("alice"), asked.length]).toEqual([true, 3])
    // One that has never chosen gets a mailbox.
    expect([await mayReport("carol"), asked.length]).toEqual([true, 4])
  })

  it("loses no report of an account that does not answer", async () => {
    const { asked, peers } = peersWith()
    const lookup = new ReportsLookup()
    const mayReport = () => Effect.runPromise(lookup.mayReport(peers, "alice"))
    expect([await mayReport(), await mayReport()]).toEqual([true, true])
    expect(asked).toHaveLength(2)
  })
})
