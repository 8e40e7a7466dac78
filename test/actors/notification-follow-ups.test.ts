/** What a notification decides once its sender has replaced or withdrawn it. */
import { describe, expect, it } from "vitest"
import { followUpsMax, idempotencyRetentionMs, recipientsInlineMax,
  removalsMax } from "../../actors/limits.ts"
import { linksUnder } from "../../actors/links.ts"
import { notification } from "../../actors/notification/actor.ts"
import type { Queued } from "../../actors/notification/attempts.ts"
import { withdrawalFragment, withReplaces,
  writableUri } from "../../actors/notification/follow-ups.ts"
import type { NotificationMessage, RecipientState } from "../../actors/notification/protocol.ts"
import { withSealedPassword } from "../../actors/sealed-fragment.ts"
import { address } from "../../runtime/index.ts"
import { expectOnlyReply, expectRefused, nowMs } from "./cells.ts"
import { noDependencies, noOutbound, testKeyring } from "./dependencies.ts"
import { type Attempted, attempted, begun, created, decide, deleting, delivered, describing,
  faulted, following, note, notes, one, owner, refused, reloaded, reported, reporting, retentionMs,
  retrying, schedule, stateOf, timerFired, uri, where } from "./notification-cells.ts"

const second = "<notification><item>2</item></notification>"
const third = "<notification><item>3</item></notification>"

const followed = (state: Queued, document?: string, id = "f1", head = 1): Queued =>
  stateOf(decide(state, following(owner, document, id), { head }))

/** The state of the first recipient after a follow-up. */
const firstOf = (state: Queued): RecipientState | undefined => state.recipients[0]

/** The outcome of an attempt that has sent this edition. */
const attemptedOf = (
  edition: number,
  outcome: Attempted["outcome"],
  attempt: number
): Attempted => ({ ...attempted(outcome, 0, attempt), edition })

const aboutOf = (state: Queued): string | undefined => {
  const { answer } = decide(state, describing(owner))
  return answer?._tag === "Described" ? answer.view.about : undefined
}

describe("what a notification is about", () => {
  const replacing = (about: string, id = "f1"): NotificationMessage => ({
    _tag: "FollowUp",
    caller: owner,
    requestId: id,
    document: second,
    about
  })
  const named = { ...one, about: "First" }

  it("is that of the last replacement, also after a withdrawal", () => {
    const replaced = stateOf(decide(named, replacing("Second"), { head: 1 }))
    expect([aboutOf(named), aboutOf(replaced)]).toEqual(["First", "Second"])
    expect(aboutOf(followed(named))).toBe("First")
    expect(aboutOf(followed(replaced, undefined, "f2", 2))).toBe("Second")
  })

  it("is not that of the edition before, where an earlier version has replaced it", () => {
    // Such a node drops the description of the message, and keeps that of the state.
    const replaced = followed(named, second)
    expect([replaced.about, aboutOf(replaced)]).toEqual(["First", undefined])
    const again = stateOf(decide(replaced, replacing("Third", "f2"), { head: 2 }))
    expect(aboutOf(again)).toBe("Third")
    const later = followed(again, third, "f3", 3)
    expect([later.about, aboutOf(later)]).toEqual(["Third", undefined])
  })

  it.each(["", " \t\n", "\u2060"])("is unknown with the blank description %j", (blank) => {
    const replaced = stateOf(decide(named, replacing(blank), { head: 1 }))
    expect(aboutOf(replaced)).toBeUndefined()
    expect(aboutOf({ ...one, about: blank })).toBeUndefined()
    const failed = stateOf(decide({ ...one, about: blank }, reported(), reporting))
    expect(failed.failureReport?.description).toMatch(/^A notification was not delivered/)
  })
})

const sent = stateOf(decide(one, attempted(delivered)))
/** No attempt runs or is due. */
const waiting = { ...where(one, { nextAtMs: nowMs + 9_000 }), running: [] }

describe("a follow-up and the recipients", () => {
  it("a recipient that waits gets it by its schedule", () => {
    const decision = decide(waiting, following(owner, second), { head: 1 })
    expect(firstOf(stateOf(decision))).toEqual(firstOf(waiting))
    expect([begun(decision), decision.timerAtMs]).toEqual([[], nowMs + 9_000])
    const due = decide(stateOf(decision), timerFired, { head: 2, nowMs: nowMs + 9_000 })
    expect(due.actions).toMatchObject([
      { attempt: 1, followUp: { edition: 1, item: 2, isKnown: false, earlierItem: 1 } },
      note("waiting")
    ])
  })

  it("a withdrawal is not sent where nothing was", () => {
    const decision = decide(waiting, following(owner), { head: 1 })
    expect(firstOf(stateOf(decision))).toEqual({
      to: uri(0),
      status: "success",
      attempts: 0,
      tries: 0
    })
    expect(decision.timerAtMs).toBe(nowMs + retentionMs)
    expect(notes(decision)).toEqual([note("sent")])
    expect(decision.items).toEqual([`<notification>${withdrawalFragment(nowMs)}</notification>`])
  })

  it("a withdrawal is sent where an attempt runs, may run, or has failed", () => {
    const tried = stateOf(decide(one, attempted(faulted)))
    for (const state of [one, reloaded(one), { ...tried, running: [] }]) {
      expect(firstOf(followed(state))?.status).toBe(firstOf(state)?.status)
    }
  })

  it("a failed recipient stays failed, and a Retry sends it the last edition", () => {
    const failed = stateOf(decide(one, attempted(refused)))
    const decision = decide(failed, following(owner, second), { head: 1 })
    expect(firstOf(stateOf(decision))).toEqual({ ...firstOf(failed), tried: [0] })
    expect(decision.timerAtMs).toBe(nowMs + retentionMs)
    expect(notes(decision)).toEqual([note("failed")])
    const retried = decide(stateOf(decision), retrying(owner), { head: 2 })
    expect(retried.actions).toMatchObject([
      { attempt: 2, followUp: { edition: 1, item: 2 } },
      note("waiting")
    ])
  })

  it("an attempt that was running has sent the first edition: the last one follows", () => {
    const next = followed(one, second)
    // The running attempt is not repeated beside itself.
    expect(begun(decide(one, following(owner, second), { head: 1 }))).toEqual([])
    const late = decide(next, attempted(delivered), { head: 2 })
    expect(firstOf(stateOf(late))).toEqual({
      to: uri(0),
      status: "waiting",
      attempts: 1,
      tries: 0,
      lastAtMs: nowMs,
      nextAtMs: nowMs,
      delivered: { edition: 0, location: uri(9) }
    })
    expect(late.actions).toMatchObject([{ attempt: 2, followUp: { location: uri(9) } }])
    const ended = stateOf(decide(stateOf(late), attemptedOf(1, delivered, 2), { head: 2 }))
    expect(firstOf(ended)).toMatchObject({ status: "success", attempts: 2 })
    expect(firstOf(ended)).not.toHaveProperty("delivered")
  })

  it("the last one follows also where the first one was refused, or has failed too often", () => {
    const tried = schedule.slice(2).reduce(
      (state, _, at) => stateOf(decide(state, attempted(faulted, 0, at + 1))),
      one
    )
    const last = where(tried, { tries: schedule.length - 1 })
    for (const [state, outcome] of [[one, refused], [last, faulted]] as const) {
      const attempt = (firstOf(state)?.attempts ?? 0) + 1
      const late = decide(followed(state, second), attempted(outcome, 0, attempt), { head: 2 })
      expect(firstOf(stateOf(late))).toMatchObject({ status: "retry", tries: 0, tried: [0] })
      expect(late.actions).toMatchObject([{ attempt: attempt + 1, followUp: { edition: 1 } }])
    }
  })

  it("what the recipient has is known until the last edition has arrived", () => {
    const next = followed(sent, second)
    const tried = stateOf(decide(next, attemptedOf(1, faulted, 2), { head: 2 }))
    expect(firstOf(tried)).toMatchObject({
      status: "retry",
      delivered: { edition: 0, location: uri(9) }
    })
    const last = decide({ ...tried, running: [] }, following(owner, third, "f2"), { head: 2 })
    const due = decide(stateOf(last), timerFired, { head: 3, nowMs: nowMs + 99_000 })
    expect(due.actions).toMatchObject([
      { followUp: { edition: 2, item: 3, location: uri(9), earlierItem: 1 } },
      note("waiting")
    ])
  })

  it("one that was not sent is never named, and a repetition names the same one", () => {
    const unsent = followed(waiting, second)
    const tried = stateOf(decide(unsent, attemptedOf(1, faulted, 1), { head: 2 }))
    const later = { head: 2, nowMs: nowMs + 99_000 }
    expect(decide(reloaded(tried), timerFired, later).actions).toMatchObject([
      { attempt: 2, followUp: { edition: 1, isKnown: false } },
      note("waiting")
    ])
    // The second follow-up is never tried.
    const last = followed(followed({ ...tried, running: [] }, third, "f2", 2), undefined, "f3", 3)
    expect(firstOf(last)).toMatchObject({ status: "retry", tried: [1] })
    const named = { edition: 3, isWithdrawal: true, isKnown: true, earlierItem: 2 }
    const withdrawing = decide(reloaded(last), timerFired, { ...later, head: 4 })
    expect(withdrawing.actions).toMatchObject([{ followUp: named }, note("waiting")])
    const failing = attemptedOf(3, faulted, 2)
    const again = stateOf(decide(stateOf(withdrawing), failing, { ...later, head: 4 }))
    expect(firstOf(again)).toMatchObject({ tried: [1, 3] })
    const repeated = decide(reloaded(again), timerFired, { head: 4, nowMs: nowMs + 999_000 })
    expect(repeated.actions).toMatchObject([{ attempt: 3, followUp: named }, note("waiting")])
  })

  it("the sender is not shown where it is stored, nor what it was", () => {
    const { answer } = decide(followed(sent, second), describing(owner))
    expect(answer).toMatchObject({
      view: { followUps: [{ kind: "replacement", atMs: nowMs, item: 2 }] }
    })
    const again = stateOf(decide(followed(sent, second), attemptedOf(1, delivered, 2), { head: 2 }))
    expect(firstOf(again)).toMatchObject({ location: uri(9) })
    const shown = JSON.stringify(decide(again, describing(owner)).answer)
    expect(shown).not.toContain(uri(9))
  })
})

describe("a chain of follow-ups", () => {
  it("recognizes a repeated request for a day", () => {
    const next = followed(sent, second)
    const again = following(owner, second)
    expectOnlyReply(decide(next, again, { head: 2 }), { _tag: "FollowedUp", isRepeated: true })
    const later = { head: 2, nowMs: nowMs + idempotencyRetentionMs }
    expect(decide(next, again, later).answer).toEqual({ _tag: "FollowedUp", isRepeated: false })
  })

  it("has a bound, and can be withdrawn then: for good", () => {
    let last = sent
    for (let n = 1; n <= followUpsMax; n++) last = followed(last, second, `f${n}`, n)
    expect(last.followUps).toHaveLength(followUpsMax)
    const head = followUpsMax + 1
    expectRefused(decide(last, following(owner, second, "more"), { head }), "Full")
    const withdrawn = followed(last, undefined, "end", head)
    expectRefused(decide(withdrawn, following(owner, second, "x"), { head: head + 1 }), "Ended")
    expectRefused(decide(withdrawn, following(owner, undefined, "y"), { head: head + 1 }), "Ended")
    const same = following(owner, undefined, "end")
    expectOnlyReply(decide(withdrawn, same, { head: head + 1 }), {
      _tag: "FollowedUp",
      isRepeated: true
    })
  })

  it("is removed with the notification, with all documents", () => {
    const next = followed(sent, second)
    const decision = decide(next, deleting(owner), { head: 2 })
    expect(decision.removals?.toSorted()).toEqual([1, 2])
  })

  it("keeps the documents when outdated items of recipients are cleaned", () => {
    const many = created(recipientsInlineMax + 1)
    const count = many.recipients.length
    const next = followed(many, second, "f1", count + 1)
    expect(next.followUps?.[0]?.item).toBe(count + 2)
    let state = next
    let head = count + 2
    const removed: Array<number> = []
    for (let n = 1; removed.length === 0 && n < 200; n++) {
      const attempt = (state.recipients[n % count]?.attempts ?? 0) + 1
      const message = { ...attempted(faulted, n % count, attempt), edition: 1 }
      const decision = decide(state, message, { head })
      head += decision.items?.length ?? 0
      removed.push(...decision.removals ?? [])
      const { nextState } = decision
      if (nextState?._tag === "Queued") state = nextState
      state = where(state, { status: "retry", nextAtMs: nowMs + 1_000_000 })
    }
    expect(removed.length).toBeGreaterThan(0)
    expect(removed).not.toContain(count + 2)
    const over = decide(state, deleting(owner), { head })
    expect(over.removals).toContain(count + 2)
    expect(over.removals?.length).toBeLessThanOrEqual(removalsMax)
  })
})

describe("the record", () => {
  const behavior = notification({
    documents: noDependencies.documents,
    keyring: testKeyring,
    outbound: noOutbound,
    links: linksUnder("http://post.test"),
    records: noDependencies.records,
    schedule,
    retentionMs,
    random: () => 0.5
  })
  const self = address("notification", "n")

  it("comes back as it was, with what a later version has added", () => {
    const next = reloaded(followed(sent, second))
    const text = behavior.encode(next, 1, self)
    expect(behavior.decode(text, 1, self)).toEqual(next)
    const added = JSON.stringify({ ...JSON.parse(text), later: ["kept"] })
    expect(JSON.parse(behavior.encode(behavior.decode(added, 1, self), 1, self)))
      .toMatchObject({ later: ["kept"] })
  })
})

describe("the documents of follow-ups", () => {
  const item = "<item><description>d</description><url>http://a.test/</url>"

  it("name what they replace", () => {
    expect(withReplaces(`${item}<x/></item>`, "http://b.test/?a=1&b=<", false))
      .toBe(`${item}<replaces>http://b.test/?a=1&amp;b=&lt;</replaces><x/></item>`)
  })

  it("keep a password where it is", () => {
    const fragment = `${item}<password></password></item>`
    const position = fragment.indexOf("</password>")
    const named = withReplaces(withSealedPassword(fragment, position, "s"), "http://b.test/", false)
    const replaces = "<replaces>http://b.test/</replaces>"
    expect(named).toBe(
      withSealedPassword(
        `${item}${replaces}<password></password></item>`,
        position + replaces.length,
        "s"
      )
    )
  })

  it("have nothing but that URI to read, if they withdraw", () => {
    const withdrawal = withReplaces(withdrawalFragment(nowMs), "http://b.test/$&", true)
    expect(withdrawal).toContain("<url>http://b.test/$&amp;</url><replaces>http://b.test/$&amp;<")
    expect(withdrawal).toContain(`<withdrawn>${new Date(nowMs).toISOString()}</withdrawn>`)
  })

  it("have URIs of http only", () => {
    expect(writableUri("https://b.test/ü\n")).toBe("https://b.test/%C3%BC")
    for (const text of ["", "/a", "javascript:alert(1)", "urn:a"]) {
      expect(writableUri(text)).toBeUndefined()
    }
  })
})
