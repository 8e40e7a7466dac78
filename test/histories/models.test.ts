/** The models: histories that a resource may have, and ones that show what must never happen. */
import { describe, expect, it } from "vitest"
import { check } from "../../runtime/testing/index.ts"
import { history } from "./histories.ts"
import { cabinet, type CabinetInput, type CabinetOutput } from "./models/cabinet.ts"
import { mailbox, type MailboxInput, type MailboxOutput, openMailbox } from "./models/mailbox.ts"
import { notification, type NotificationInput, type NotificationOutput,
  type RecipientStatus } from "./models/notification.ts"
import { registration, type RegistrationInput, type RegistrationOutput,
  type RegistrationStatus } from "./models/registration.ts"
import { session, type SessionInput, type SessionOutput, type SessionStatus,
  type SessionStep } from "./models/session.ts"

describe("a mailbox", () => {
  const { info, ok } = history<MailboxInput, MailboxOutput>()
  const put = (start: number, end: number, id: string, place: number | string) =>
    ok(start, end, { kind: "deposit", id }, { _tag: "Deposited", place })
  const lost = (start: number, id: string) => info(start, { kind: "deposit", id })
  const listed = (start: number, end: number, ...entries: ReadonlyArray<[string, number]>) =>
    ok(start, end, { kind: "list" }, {
      _tag: "Listed",
      entries: entries.map(([id, place]) => ({ id, place }))
    })
  const removed = (start: number, end: number, place: number) =>
    ok(start, end, { kind: "remove", place }, { _tag: "Done" })
  const is = (operations: ReadonlyArray<ReturnType<typeof ok>>) =>
    check(openMailbox, operations)._tag

  it.each([
    ["deposits at once", [
      put(0, 9, "x", 2),
      put(0, 9, "y", 1),
      listed(10, 11, ["y", 1], ["x", 2])
    ]],
    ["the same document again", [put(0, 1, "x", 1), put(2, 3, "x", 1), listed(4, 5, ["x", 1])]],
    ["a lost answer that is there", [
      lost(0, "x"),
      put(1, 2, "y", 2),
      listed(3, 4, ["x", 1], ["y", 2])
    ]],
    ["one that is not", [lost(0, "x"), put(1, 2, "y", 1), listed(3, 4, ["y", 1])]],
    ["one that comes late", [
      lost(0, "x"),
      put(1, 2, "y", 1),
      listed(3, 4, ["y", 1]),
      listed(5, 6, ["y", 1], ["x", 2])
    ]],
    ["a removal", [put(0, 1, "x", 1), removed(2, 3, 1), listed(4, 5)]],
    ["a lost removal", [
      put(0, 1, "x", 1),
      info(2, { kind: "remove", place: 1 }),
      listed(3, 4, ["x", 1]),
      listed(5, 6)
    ]],
    ["a document removed before anybody was shown it, and stored again", [
      lost(0, "x"),
      removed(1, 2, 1),
      put(3, 4, "x", 2)
    ]]
  ])("may do this: %s", (_, operations) => expect(is(operations)).toBe("Linearizable"))

  it.each([
    ["a lost deposit", [put(0, 1, "x", 1), listed(2, 3)]],
    ["a stale listing", [put(0, 1, "x", 1), put(2, 3, "y", 2), listed(4, 5, ["x", 1])]],
    ["one number twice", [put(0, 1, "x", 1), put(2, 3, "y", 1)]],
    ["one place twice", [put(0, 1, "x", "p"), put(2, 3, "y", "p")]],
    ["a number that is less", [put(0, 1, "x", 5), put(2, 3, "y", 4)]],
    ["another order", [
      put(0, 1, "x", "p"),
      put(2, 3, "y", "q"),
      ok(4, 5, { kind: "list" }, {
        _tag: "Listed",
        entries: [{ id: "y", place: "q" }, { id: "x", place: "p" }]
      })
    ]],
    ["a document that nobody sent", [put(0, 1, "x", 1), listed(2, 3, ["x", 1], ["z", 2])]],
    ["a document twice", [put(0, 1, "x", 1), put(2, 3, "x", 2)]],
    ["a lost answer's document twice", [lost(0, "x"), listed(1, 2, ["x", 1], ["x", 2])]],
    ["another place than was reported", [put(0, 1, "x", 1), listed(2, 3, ["x", 2])]],
    ["what was removed", [put(0, 1, "x", 1), removed(2, 3, 1), listed(4, 5, ["x", 1])]],
    ["what was shown, and then not", [
      lost(0, "x"),
      listed(1, 2, ["x", 1]),
      listed(3, 4),
      put(5, 6, "y", 2)
    ]],
    ["an older one as the latest", [
      put(0, 1, "x", 1),
      put(2, 3, "y", 2),
      ok(4, 5, { kind: "latest" }, { _tag: "Latest", entry: { id: "x", place: 1 } })
    ]],
    ["a gap after a cursor", [
      put(0, 1, "x", 1),
      put(2, 3, "y", 2),
      put(4, 5, "z", 3),
      ok(6, 7, { kind: "since", place: 1 }, {
        _tag: "Listed",
        entries: [{ id: "z", place: 3 }]
      })
    ]],
    ["a deposit in what is destroyed", [
      ok(0, 1, { kind: "destroy" }, { _tag: "Done" }),
      put(2, 3, "x", 1)
    ]]
  ])("may not do this: %s", (_, operations) => expect(is(operations)).toBe("Broken"))

  it("is there from its creation on, and created once", () => {
    const created = ok(0, 1, { kind: "create" }, { _tag: "Done" })
    const early = ok(0, 1, { kind: "list" }, { _tag: "Gone" })
    expect(check(mailbox, [early, created, put(2, 3, "x", 1)])._tag).toBe("Linearizable")
    expect(check(mailbox, [put(0, 1, "x", 1)])._tag).toBe("Broken")
    expect(check(mailbox, [created, ok(2, 3, { kind: "create" }, { _tag: "Done" })])._tag)
      .toBe("Broken")
  })

  it("settles what a crash left unknown among many", () => {
    const before = Array.from({ length: 300 }, (_, n) => put(n, n + 2.5, `d${n}`, n + 1))
    const crashed = Array.from({ length: 40 }, (_, n) => lost(400, `l${n}`))
    const half = crashed.flatMap(({ input }, n) =>
      input.kind === "deposit" && n % 2 === 0 ? [input.id] : []
    ).toReversed()
    const entries = [...before.map((_, n) => `d${n}`), ...half]
      .map((id, n): [string, number] => [id, n + 1])
    const after = put(500, 501, "after", entries.length + 1)
    const all = listed(600, 601, ...entries, ["after", entries.length + 1])
    expect(is([...before, ...crashed, after, all])).toBe("Linearizable")
    const [first, ...others] = entries
    if (first === undefined) throw new Error("there is no entry")
    expect(is([...before, ...crashed, after, listed(600, 601, ...others)])).toBe("Broken")
  })
})

describe("a session", () => {
  const { info, ok } = history<SessionInput, SessionOutput>()
  const begun = ok(0, 1, { kind: "begin" }, { _tag: "Begun" })
  const said = (at: number, step: SessionStep, _tag: "Recorded" | "Overwritten" | "Cast") =>
    ok(at, at + 1, { kind: "answer", step, text: `${step}${at}` }, { _tag })
  const shown = (at: number, status: SessionStatus) =>
    ok(at, at + 1, { kind: "show" }, { _tag: "Shown", status })
  const walked = [begun, said(2, "name", "Recorded"), said(4, "quest", "Recorded")]
  const ended = [...walked, said(6, "hard_question", "Cast")]
  const name = (at: number, text: string) =>
    ok(at, at + 1, { kind: "recorded", step: "name" }, { _tag: "Answer", text })
  const is = (operations: ReadonlyArray<ReturnType<typeof ok>>) => check(session, operations)._tag

  it.each([
    ["a walk", [...ended, shown(8, "cast")]],
    ["an overwritten name", [...walked, said(6, "name", "Overwritten"), name(8, "name6")]],
    ["a lost last answer", [
      ...walked,
      info(6, { kind: "answer", step: "hard_question", text: "blue" }),
      shown(8, "hard_question"),
      shown(10, "crossed")
    ]],
    ["a deletion", [
      ...walked,
      ok(6, 7, { kind: "delete" }, { _tag: "Deleted" }),
      ok(8, 9, { kind: "show" }, { _tag: "Gone" })
    ]]
  ])("may do this: %s", (_, operations) => expect(is(operations)).toBe("Linearizable"))

  it.each([
    ["rise from the dead", [...ended, shown(8, "hard_question")]],
    ["end twice", [...ended, said(8, "hard_question", "Recorded")]],
    ["end in two ways", [...ended, shown(8, "cast"), shown(10, "crossed")]],
    ["come back after its deletion", [
      begun,
      ok(2, 3, { kind: "delete" }, { _tag: "Deleted" }),
      shown(4, "name")
    ]],
    ["forget an answer", [...walked, shown(6, "quest")]],
    ["be overwritten after the end", [...ended, said(8, "name", "Overwritten")]],
    ["show an older name", [...walked, said(6, "name", "Overwritten"), name(8, "name2")]],
    ["take a quest before the name", [begun, said(2, "quest", "Recorded")]]
  ])("may not %s", (_, operations) => expect(is(operations)).toBe("Broken"))
})

describe("an outgoing notification", () => {
  const { info, ok } = history<NotificationInput, NotificationOutput>()
  const queued = ok(0, 1, { kind: "queue", recipients: 1 }, { _tag: "Done" })
  const shown = (at: number, status: RecipientStatus, attempts: number) =>
    ok(at, at + 1, { kind: "show" }, { _tag: "Shown", recipients: [{ status, attempts }] })
  const is = (operations: ReadonlyArray<ReturnType<typeof ok>>) =>
    check(notification, operations)._tag

  it.each([
    ["go forward", [queued, shown(2, "waiting", 0), shown(4, "retry", 1), shown(6, "success", 2)]],
    ["be tried again by hand", [
      queued,
      shown(2, "failed", 3),
      ok(4, 5, { kind: "retry" }, { _tag: "Done" }),
      shown(6, "retry", 4)
    ]],
    ["be deleted without an answer", [
      queued,
      info(2, { kind: "delete" }),
      shown(4, "waiting", 0),
      ok(6, 7, { kind: "show" }, { _tag: "Gone" })
    ]]
  ])("may %s", (_, operations) => expect(is(operations)).toBe("Linearizable"))

  it.each([
    ["go back", [queued, shown(2, "retry", 1), shown(4, "waiting", 0)]],
    ["fail after it succeeded", [queued, shown(2, "success", 1), shown(4, "failed", 1)]],
    ["succeed twice", [queued, shown(2, "success", 1), shown(4, "success", 2)]],
    ["go on by itself after it failed", [queued, shown(2, "failed", 1), shown(4, "retry", 2)]],
    ["lose an attempt", [queued, shown(2, "retry", 2), shown(4, "retry", 1)]],
    ["succeed without an attempt", [queued, shown(2, "success", 0)]],
    ["come back after its deletion", [
      queued,
      ok(2, 3, { kind: "delete" }, { _tag: "Done" }),
      shown(4, "waiting", 0)
    ]],
    ["be lost", [queued, ok(2, 3, { kind: "show" }, { _tag: "Gone" })]]
  ])("may not %s", (_, operations) => expect(is(operations)).toBe("Broken"))
})

describe("a registration", () => {
  const { ok } = history<RegistrationInput, RegistrationOutput>()
  const made = ok(0, 1, { kind: "register", cursor: 3 }, { _tag: "Done" })
  const shown = (at: number, status: RegistrationStatus, cursor: number) =>
    ok(at, at + 1, { kind: "show" }, { _tag: "Shown", status, cursor })
  const is = (operations: ReadonlyArray<ReturnType<typeof ok>>) =>
    check(registration, operations)._tag

  it.each([
    ["go forward", [made, shown(2, "unverified", 3), shown(4, "active", 3), shown(6, "active", 9)]],
    ["be lifted", [
      made,
      shown(2, "suspended", 4),
      ok(4, 5, { kind: "lift" }, { _tag: "Done" }),
      shown(6, "active", 4)
    ]]
  ])("may %s", (_, operations) => expect(is(operations)).toBe("Linearizable"))

  it.each([
    ["have its cursor go back", [made, shown(2, "active", 5), shown(4, "active", 4)]],
    ["begin before its cursor", [made, shown(2, "active", 2)]],
    ["be pushed to unverified", [made, shown(2, "unverified", 4)]],
    ["lift itself", [made, shown(2, "suspended", 4), shown(4, "active", 4)]],
    ["come back after its deletion", [
      made,
      ok(2, 3, { kind: "delete" }, { _tag: "Done" }),
      shown(4, "active", 3)
    ]]
  ])("may not %s", (_, operations) => expect(is(operations)).toBe("Broken"))
})

describe("a cabinet", () => {
  const { info, ok } = history<CabinetInput, CabinetOutput>()
  const put = (at: number, id: string) => ok(at, at + 1, { kind: "deposit", id }, { _tag: "Done" })
  const polled = (
    at: number,
    since: number,
    known: ReadonlyArray<string>,
    ids: ReadonlyArray<string>,
    cursor: number
  ) => ok(at, at + 1, { kind: "poll", since, known }, { _tag: "Polled", ids, cursor })
  const is = (operations: ReadonlyArray<ReturnType<typeof ok>>) => check(cabinet, operations)._tag

  it.each([
    ["be read on", [put(0, "x"), polled(2, 0, [], ["x"], 1), polled(4, 1, ["x"], [], 1)]],
    ["show something again", [put(0, "x"), polled(2, 1, ["x"], ["x"], 1)]],
    ["show a lost answer's", [info(0, { kind: "deposit", id: "x" }), polled(2, 0, [], ["x"], 1)]]
  ])("may %s", (_, operations) => expect(is(operations)).toBe("Linearizable"))

  it.each([
    ["miss anything", [put(0, "x"), put(2, "y"), polled(4, 0, [], ["y"], 2)]],
    ["have its cursor go back", [put(0, "x"), polled(2, 5, ["x"], [], 4)]],
    ["show what nobody sent", [put(0, "x"), polled(2, 0, [], ["x", "z"], 2)]],
    ["turn the order", [put(0, "x"), put(2, "y"), polled(4, 0, [], ["y", "x"], 2)]],
    ["show what was removed", [
      put(0, "x"),
      ok(2, 3, { kind: "remove", id: "x" }, { _tag: "Done" }),
      polled(4, 0, [], ["x"], 1)
    ]]
  ])("may not %s", (_, operations) => expect(is(operations)).toBe("Broken"))
})
