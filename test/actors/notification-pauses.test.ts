/** What a notification decides while relays of its outgoing mailbox are paused. */
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { attemptLeaseMs, holdContinuesMs, holdMaxMs, holdMinMs, pausedOriginsMax,
  recipientsInlineMax, recipientsMax } from "../../actors/limits.ts"
import type { Queued } from "../../actors/notification/attempts.ts"
import { heldOf, pausesFormat } from "../../actors/notification/holds.ts"
import type { NotificationMessage } from "../../actors/notification/protocol.ts"
import { RelayResources } from "../../actors/notification/relay-resources.ts"
import { type AttemptAction, confirmHold, type HeldAttempt,
  makeAttempt } from "../../actors/notification/relay.ts"
import type { DeliveryOutcome, Outbound } from "../../actors/outbound/protocol.ts"
import { address, AskTimeout } from "../../runtime/index.ts"
import { effectsOf, nowMs } from "./cells.ts"
import { contentOf } from "./contents.ts"
import { noDependencies, noOutbound, noPeers } from "./dependencies.ts"
import { attempted, begun, created, decide, delivered, describing, faulted, following, one, owner,
  reloaded, stateOf, timerFired, two, uri, where } from "./notification-cells.ts"

const heldBack = (recipient = 0, attempt = 1, origin?: string): NotificationMessage => ({
  _tag: "AttemptHeld",
  recipient,
  attempt,
  ...origin === undefined ? {} : { origin }
})
const release: NotificationMessage = { _tag: "Release" }
const confirm = { _tag: "ConfirmHold", account: "alice", to: uri(0), origin: undefined }
const here = "https://example.org"
const elsewhere = "https://other.example"

/** Both attempts were paused. */
const paused = (state: Queued): Queued => {
  const first = stateOf(decide(state, heldBack()))
  return stateOf(decide(first, heldBack(1)))
}

describe("a paused attempt", () => {
  it("counts as no attempt, is stored, and asks whether the pause still stands", () => {
    const decision = decide(one, heldBack())
    const state = stateOf(decision)
    expect(state.recipients).toEqual(one.recipients)
    expect(state.holds).toEqual([{ atMs: nowMs, untilMs: nowMs + holdMinMs, isQuiet: true }])
    expect(decision.durable).toBe(true)
    expect(decision.timerAtMs).toBe(nowMs + holdMinMs)
    expect(decision.actions).toEqual([confirm])
  })

  it("holds all others back: only the first is stored, and that none runs any more", () => {
    const first = decide(two, heldBack())
    expect(stateOf(first).holds).toEqual([{ atMs: nowMs, untilMs: nowMs + holdMinMs }])
    // The other attempt still runs; after a crash the timer fires at once, and begins none.
    expect(first.timerAtMs).toBe(nowMs)
    expect(begun(decide(reloaded(stateOf(first)), timerFired))).toEqual([])
    const second = decide(stateOf(first), heldBack(1))
    expect(stateOf(second).holds).toEqual([
      { atMs: nowMs, untilMs: nowMs + holdMinMs, isQuiet: true }
    ])
    expect([second.durable, second.actions ?? []]).toEqual([true, []])
    expect(effectsOf(decide(stateOf(second), heldBack(1, 2)))).toBeUndefined()
  })

  it("is one write for many recipients", () => {
    let state = created(recipientsInlineMax + 4)
    let writes = 0
    for (const { recipient } of state.running ?? []) {
      const decision = decide(state, heldBack(recipient))
      expect(decision.items).toBeUndefined()
      if (decision.durable) writes += 1
      state = stateOf(decision)
    }
    expect([state.running, writes]).toEqual([[], 2])
  })

  it("is not made by a timer, but once the hold has ended, and then less often", () => {
    let state = stateOf(decide(one, heldBack()))
    let atMs = nowMs
    for (const wait of [holdMinMs, holdMinMs, 2 * holdMinMs, 4 * holdMinMs]) {
      expect(begun(decide(reloaded(state), timerFired, { nowMs: atMs + wait - 1 }))).toEqual([])
      atMs += wait
      const due = decide(reloaded(state), timerFired, { nowMs: atMs })
      expect(begun(due)).toEqual([0])
      const again = decide(stateOf(due), heldBack(), { nowMs: atMs })
      state = stateOf(again)
      expect(state.version).toBe(2)
      expect(state.holds?.[0]?.atMs).toBe(nowMs)
    }
    const late = nowMs + 100 * holdMaxMs
    const old = { ...one, holds: [{ atMs: nowMs, untilMs: late }] }
    const kept = stateOf(decide(old, heldBack(), { nowMs: late })).holds
    expect(kept?.[0]?.untilMs).toBe(late + holdMaxMs)
    // That was another pause.
    const after = late + holdContinuesMs
    expect(stateOf(decide(old, heldBack(), { nowMs: after })).holds?.[0])
      .toMatchObject({ atMs: after, untilMs: after + holdMinMs })
  })

  it("does not run down the schedule: nothing is lost however long it lasts", () => {
    const tried = stateOf(decide(one, attempted(faulted)))
    const dueMs = tried.recipients[0]?.nextAtMs ?? 0
    const due = decide(tried, timerFired, { nowMs: dueMs })
    const state = stateOf(decide(stateOf(due), heldBack(0, 2), { nowMs: dueMs }))
    expect(state.recipients).toEqual(tried.recipients)
    const later = dueMs + 365 * 24 * 60 * 60_000
    const again = decide(stateOf(decide(state, release, { nowMs: later })), timerFired, {
      nowMs: later + attemptLeaseMs
    })
    expect(again.actions).toMatchObject([{ attempt: 2 }])
    expect(stateOf(again).endedAtMs).toBeUndefined()
  })
})

describe("the holds of many recipients", () => {
  it("are compared once each, whatever the number of recipients", () => {
    let reads = 0
    const holds = Array.from({ length: pausedOriginsMax }, (_, at) => ({
      get origin() {
        reads++
        return `https://${at}.example`
      },
      atMs: nowMs,
      untilMs: nowMs + holdMinMs
    }))
    const recipients = Array.from({ length: recipientsMax }, (_, at) => ({
      to: `https://${at % (2 * pausedOriginsMax)}.example/${at}`,
      status: "waiting" as const,
      attempts: 0,
      tries: 0
    }))
    const held = heldOf({ ...one, holds, recipients }, recipients, nowMs) ?? {}
    const expected = recipients.flatMap((_, at) =>
      at % (2 * pausedOriginsMax) < pausedOriginsMax ? [String(at)] : []
    )
    expect(Object.keys(held)).toEqual(expected)
    expect(reads).toBeLessThanOrEqual(2 * pausedOriginsMax)
  })
})

describe("the end of a pause", () => {
  it("begins what is due, and leaves what is not", () => {
    const decision = decide(paused(two), release)
    expect(decision.answer).toEqual({ _tag: "Done" })
    expect(begun(decision)).toEqual([0, 1])
    expect(stateOf(decision)).not.toHaveProperty("holds")
    expect([decision.durable, decision.timerAtMs]).toEqual([true, nowMs])
    const nextAtMs = nowMs + 5_000
    const waiting = where(paused(two), { status: "retry", nextAtMs })
    const later = decide(waiting, release)
    expect([begun(later), later.timerAtMs]).toEqual([[], nextAtMs])
  })

  it("changes nothing where nothing is held, and nothing twice", () => {
    expect(effectsOf(decide(one, release))).toBeUndefined()
    const next = stateOf(decide(paused(two), release))
    expect(effectsOf(decide(next, release))).toBeUndefined()
    // An attempt that had asked before the end reports late: it asks again.
    expect(decide(next, heldBack()).actions).toEqual([confirm])
  })

  it("is found by whoever asks again", async () => {
    const action = { ...confirm, _tag: "ConfirmHold" as const }
    const confirmedBy = (findCurrent: Parameters<typeof confirmHold>[0]["pauses"]) =>
      Effect.runPromise(confirmHold({ ...noDependencies, pauses: findCurrent }, noPeers, action))
    const answering = (found: HeldAttempt | undefined) => ({
      find: () => Effect.die("not asked"),
      findCurrent: () => Effect.succeed(found)
    })
    expect(await confirmedBy(answering(undefined))).toEqual(release)
    expect(await confirmedBy(answering({ _tag: "Held" }))).toBeUndefined()
    // All relays were paused, and now those to this origin are: the others are free.
    expect(await confirmedBy(answering({ _tag: "Held", origin: here }))).toEqual(release)
    const failing = () => Effect.fail(new AskTimeout({ key: "k", deadlineMs: 1 }))
    expect(await confirmedBy({ find: failing, findCurrent: failing })).toBeUndefined()
  })
})

describe("a pause of one origin", () => {
  const mixed: Queued = {
    ...two,
    recipients: two.recipients.map((recipient, at) =>
      at === 1 ? { ...recipient, to: `${elsewhere}/1` } : recipient
    )
  }

  it("holds back its recipients only", () => {
    const state = stateOf(decide(mixed, heldBack(0, 1, here)))
    expect(state.holds).toEqual([
      { origin: here, atMs: nowMs, untilMs: nowMs + holdMinMs, isQuiet: true }
    ])
    const restarted = decide(reloaded(state), timerFired)
    expect(begun(restarted)).toEqual([1])
    const other = decide(state, attempted(delivered, 1))
    expect([begun(other), other.timerAtMs]).toEqual([[], nowMs + holdMinMs])
  })

  it("is beside that of another one, and of all", () => {
    const first = stateOf(decide(mixed, heldBack(0, 1, here)))
    const both = stateOf(decide(first, heldBack(1, 1, elsewhere)))
    expect(both.holds?.map(({ origin }) => origin)).toEqual([here, elsewhere])
    expect(stateOf(decide(both, release))).not.toHaveProperty("holds")
  })
})

describe("an attempt", () => {
  const self = address("notification", "n1")
  const action: AttemptAction = {
    _tag: "Attempt",
    recipient: 0,
    attempt: 1,
    to: uri(0),
    traceId: "1".repeat(32),
    account: "alice",
    document: "<notification><item/></notification>",
    chars: 36,
    mayBePaused: true
  }
  const held = { _tag: "Held" as const }

  /** An attempt for which this is found, when it begins and when it has its permit. */
  const attempt = async (
    found: ReadonlyArray<Effect.Effect<typeof held | undefined, AskTimeout>>,
    resources = new RelayResources(),
    more: Partial<AttemptAction> = {}
  ) => {
    const sent: Array<unknown> = []
    let asked = 0
    const find = () => found[asked++] ?? Effect.die("asked too often")
    const outbound: Outbound = {
      ...noOutbound,
      post: (posting) =>
        Effect.map(contentOf(posting), (content): DeliveryOutcome => {
          if (content === undefined) return { _tag: "PermanentFailure", problem: "not wanted" }
          sent.push(content.body)
          return { _tag: "Delivered", code: 202 }
        })
    }
    const deps = { ...noDependencies, outbound, pauses: { find, findCurrent: find } }
    const message = await Effect.runPromise(
      makeAttempt(deps, resources, self, noPeers, { ...action, ...more })
    )
    return { message, sent: sent.length, asked }
  }
  const free = Effect.succeed(undefined)
  const isHeld = Effect.succeed(held)

  it("asks when it begins, and again when it has its permit", async () => {
    expect(await attempt([isHeld])).toEqual({ message: heldBack(), sent: 0, asked: 1 })
    expect(await attempt([free, isHeld])).toEqual({ message: heldBack(), sent: 0, asked: 2 })
    expect(await attempt([free, free])).toMatchObject({
      message: { _tag: "Attempted", outcome: { _tag: "Delivered" } },
      sent: 1
    })
    expect(await attempt([], undefined, { mayBePaused: false })).toMatchObject({ sent: 1 })
  })

  it("is deferred where nobody knows, and not made", async () => {
    const failed = Effect.fail(new AskTimeout({ key: "k", deadlineMs: 1 }))
    for (const found of [[failed], [free, failed]]) {
      expect(await attempt(found)).toMatchObject({
        message: { _tag: "Attempted", outcome: { _tag: "Deferred" } },
        sent: 0
      })
    }
  })

  it("is not held once it was made: its outcome is known", async () => {
    const resources = new RelayResources()
    await attempt([free, free], resources)
    expect(await attempt([isHeld], resources)).toMatchObject({
      message: { _tag: "Attempted", outcome: { _tag: "Delivered" } },
      sent: 0,
      asked: 0
    })
  })
})

describe("what its sender sees and does meanwhile", () => {
  it("the recipients that wait for nothing else show since when they are paused", () => {
    const state = paused(two)
    const waiting = {
      ...state,
      recipients: state.recipients.with(0, {
        to: uri(0),
        status: "retry",
        attempts: 1,
        tries: 1,
        nextAtMs: nowMs + 9_000
      })
    }
    expect(decide(waiting, describing(owner)).answer).toMatchObject({
      view: { status: "waiting", held: { 1: nowMs } }
    })
    const after = { nowMs: nowMs + holdMinMs }
    expect(decide(state, describing(owner), after).answer).not.toHaveProperty("view.held")
  })

  it("a withdrawal is not sent where nothing was, also after a restart", () => {
    for (const state of [paused(two), reloaded(paused(two))]) {
      const withdrawn = stateOf(decide(state, following(owner)))
      expect(withdrawn.recipients.map(({ attempts, status }) => [attempts, status]))
        .toEqual([[0, "success"], [0, "success"]])
      expect(withdrawn).not.toHaveProperty("holds")
    }
  })

  it("a withdrawal is sent where an attempt may have been made, also before a crash", () => {
    const half = stateOf(decide(two, heldBack()))
    const restarted = stateOf(decide(reloaded(two), timerFired))
    for (const state of [half, paused(restarted)]) {
      const { recipients } = stateOf(decide(reloaded(state), following(owner)))
      expect(recipients.map(({ status }) => status)).toEqual(["waiting", "waiting"])
    }
    // After the hold the attempts may have been made, unless the actor knows that they were not.
    const afterMs = nowMs + holdMinMs
    const again = (state: Queued) => {
      const due = stateOf(decide(state, timerFired, { nowMs: afterMs }))
      const first = stateOf(decide(due, heldBack(), { nowMs: afterMs }))
      return stateOf(decide(first, heldBack(1), { nowMs: afterMs })).holds
    }
    expect(again(reloaded(paused(two)))).toMatchObject([{ isQuiet: false }])
    expect(again(paused(two))).toMatchObject([{ isQuiet: true, untilMs: afterMs + holdMinMs }])
  })

  it("a withdrawal is sent where an attempt was lost, also if the next one was deferred", () => {
    const untilMs = nowMs + 1_000
    const deferred = attempted({ _tag: "Deferred", untilMs })
    const restarted = stateOf(decide(reloaded(one), timerFired))
    const waiting = stateOf(decide(restarted, deferred))
    const due = stateOf(decide(waiting, timerFired, { nowMs: untilMs }))
    const expired = stateOf(decide(one, timerFired, { nowMs: nowMs + attemptLeaseMs }))
    for (const state of [due, expired]) {
      const held = stateOf(decide(state, heldBack(), { nowMs: nowMs + attemptLeaseMs }))
      expect(held.holds).toMatchObject([{ isQuiet: false }])
      const { recipients } = stateOf(decide(reloaded(held), following(owner)))
      expect(recipients.map(({ status }) => status)).toEqual(["waiting"])
    }
    // One that was deferred without a crash has sent nothing.
    const first = stateOf(decide(one, deferred))
    const next = stateOf(decide(first, timerFired, { nowMs: untilMs }))
    expect(stateOf(decide(next, heldBack(), { nowMs: untilMs })).holds)
      .toMatchObject([{ isQuiet: true }])
  })

  it("older nodes of a cluster make the attempts, so that none asks", () => {
    const attempt = (format: number) =>
      decide(reloaded(one), timerFired, { format }).actions?.[0] ?? { _tag: "none" }
    expect(attempt(pausesFormat)).toMatchObject({ mayBePaused: true })
    expect(attempt(pausesFormat - 1)).not.toHaveProperty("mayBePaused")
  })
})
