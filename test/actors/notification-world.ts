/**
 * One notification under a virtual clock, beside what the schedule promises: attempts when they
 * are due, none that a pause keeps back, each recipient ended once, nothing after its removal.
 */
import { expect } from "vitest"
import type { ReportFailure } from "../../actors/failure-reports/report.ts"
import { attemptsAtOnceMax, deferredInMemoryMs, deferredMinMs, followUpsMax,
  recipientAttemptsKeptMax, recordedHeaderCharsMax, relayAttemptsKeptCharsMax, relayAttemptsKeptMax,
  replaysPerHourMax, replaysWindowMs } from "../../actors/limits.ts"
import { linksUnder } from "../../actors/links.ts"
import { notification } from "../../actors/notification/actor.ts"
import { hasEnded } from "../../actors/notification/attempts.ts"
import { pausesFormat } from "../../actors/notification/holds.ts"
import type { NotificationAction, NotificationMessage, NotificationReply,
  NotificationState } from "../../actors/notification/protocol.ts"
import type { DeliveryOutcome } from "../../actors/outbound/protocol.ts"
import { retryAfterMaxMs } from "../../actors/outbound/response.ts"
import { jitterFraction } from "../../actors/outbound/schedule.ts"
import { nowMs as beganAtMs } from "./cells.ts"
import { noDependencies, noOutbound, testKeyring } from "./dependencies.ts"
import { Model } from "./model.ts"

const schedule = [0, 5_000, 60_000, 300_000]
const retentionMs = 7 * 86_400_000
const caller = { account: "alice", admin: false }
type Queued = Extract<NotificationState, { readonly _tag: "Queued" }>
type Attempt = Extract<NotificationAction, { readonly _tag: "Attempt" }>

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

/** When the next attempt at a recipient may be made: the one that is numbered so. */
interface Expected {
  attempt: number
  tries: number
  fromMs: number
  toMs: number
}

/** The notification, and what the schedule promises of it, worked out apart. */
export class World {
  readonly model = new Model<
    NotificationState,
    NotificationMessage,
    NotificationReply,
    NotificationAction
  >(behavior, undefined, pausesFormat)
  nowMs = beganAtMs
  /** Attempts at other services, whose results may be late, repeated or lost. */
  running: Array<Attempt> = []
  results: Array<NotificationMessage> = []
  /** What each recipient waits for; undefined once it has ended. */
  readonly expected: Array<Expected | undefined>
  /** How each run of the schedule ended. */
  readonly ends: Array<number>
  isRemoved = false
  /** How often the sender has replaced it. */
  editions = 0
  private replaysMs: ReadonlyArray<number> = []
  note: string | null | undefined = undefined
  private checks = 0

  constructor(recipients: number) {
    this.expected = Array.from({ length: recipients }, () => ({
      attempt: 1,
      tries: 0,
      fromMs: this.nowMs,
      toMs: this.nowMs
    }))
    this.ends = this.expected.map(() => 0)
    this.send({
      _tag: "Create",
      requestId: "r",
      account: "alice",
      listingKey: "alice/1",
      traceId: "1".repeat(32),
      document: "<notification><item/></notification>",
      to: this.expected.map((_, at) => `https://example.org/${at}`)
    })
  }

  get queued(): Queued | undefined {
    return this.model.state._tag === "Queued" ? this.model.state : undefined
  }

  send(message: NotificationMessage): unknown {
    const answer = this.model.send(message, this.nowMs)
    const reports: Array<ReportFailure> = []
    for (const action of this.model.actions.splice(0)) {
      if (action._tag === "UpdateListing") this.note = action.status
      else if (action._tag === "ReportFailure") reports.push(action)
      else if (action._tag === "Attempt") this.begin(action)
    }
    for (const { atMs, to } of reports) {
      this.send(
        to === undefined
          ? { _tag: "FailureReportAddressed", atMs, to: { account: "alice", mailbox: "box" } }
          : { _tag: "FailureReportSettled", atMs }
      )
    }
    this.check()
    return answer
  }

  /** An attempt begins: it must be the one that is due. */
  begin(attempt: Attempt): void {
    expect(this.isRemoved).toBe(false)
    expect(this.heldUntilMs()).toBe(0)
    const expected = this.expected[attempt.recipient]
    expect(expected).toBeDefined()
    expect(attempt.attempt).toBe(expected?.attempt)
    expect(attempt.followUp?.edition ?? 0).toBe(this.editions)
    expect(this.nowMs).toBeGreaterThanOrEqual(expected?.fromMs ?? Number.NaN)
    this.running.push(attempt)
    const begun = this.queued?.running?.filter(({ deferred }) => deferred !== true)
    expect(begun?.length).toBeLessThanOrEqual(attemptsAtOnceMax)
  }

  /** What must hold after each message. */
  check(): void {
    const { model, queued } = this
    if (queued === undefined) {
      expect(model.timerAtMs).toBe(null)
      expect(model.log.size).toBe(0)
      return
    }
    expect(model.timerAtMs).not.toBe(null)
    const pending = queued.recipients.filter((one) => !hasEnded(one))
    expect(pending.length === 0).toBe(queued.endedAtMs !== undefined)
    for (const [at, one] of queued.recipients.entries()) {
      expect(hasEnded(one)).toBe(this.expected[at] === undefined)
      if (hasEnded(one)) continue
      // After a crash the timer would fire when it is due at the latest, or at once.
      const dueMs = Math.max(one.nextAtMs ?? Number.NaN, this.nowMs, this.heldUntilMs())
      expect(model.timerAtMs).toBeLessThanOrEqual(dueMs)
    }
    this.checkAttempts(queued)
    this.checks += 1
    if (this.checks % Math.ceil(queued.recipients.length / 8) === 0) this.checkStored()
  }

  /** The attempts that are listed are in the log, within their bounds, and no others are. */
  private checkAttempts({ attemptLog = [], followUps = [], listed }: Queued): void {
    const { log } = this.model
    const counts = new Map<number, number>()
    let chars = 0
    for (const [, recipient, length] of attemptLog) {
      counts.set(recipient, (counts.get(recipient) ?? 0) + 1)
      chars += length
    }
    expect(attemptLog.length).toBeLessThanOrEqual(relayAttemptsKeptMax)
    expect(chars).toBeLessThanOrEqual(relayAttemptsKeptCharsMax)
    expect(Math.max(0, ...counts.values())).toBeLessThanOrEqual(recipientAttemptsKeptMax)
    expect(attemptLog.every(([n, , length]) => log.get(n)?.length === length)).toBe(true)
    if (listed === undefined) expect(log.size).toBe(1 + followUps.length + attemptLog.length)
  }

  /** The record and the log tell all that is in memory, but what is volatile. */
  private checkStored(): void {
    const { model } = this
    const before = model.state
    model.reload()
    const stored = model.state
    model.state = before
    const { running: _, ...rest } = before as Queued
    expect(stored).toMatchObject(rest)
    expect(stored).not.toHaveProperty("running")
  }

  /** An attempt has turned out so; what it means for the recipient is worked out apart. */
  tell(at: number, outcome: DeliveryOutcome, random: number, twice: boolean): void {
    const attempt = this.running.splice(at % this.running.length, 1)[0]
    if (attempt === undefined) return
    const { attempt: number, followUp: { edition } = { edition: 0 }, recipient } = attempt
    const message: NotificationMessage = {
      _tag: "Attempted",
      recipient,
      attempt: number,
      outcome,
      ...attempt.followUp === undefined ? {} : { edition },
      ...attempt.mayReport === true ? { mayReport: true } : {},
      exchange: {
        beganAtMs: this.nowMs,
        durationMs: 20,
        requestHeaders: [["user-agent", "x".repeat(recordedHeaderCharsMax)]]
      },
      random
    }
    const expected = this.expected[recipient]
    if (expected?.attempt === number && !this.isRemoved) {
      this.expected[recipient] = this.after(expected, outcome, edition < this.editions)
      if (this.expected[recipient] === undefined) this.count(recipient, 1)
    }
    if (twice && outcome._tag !== "Deferred") this.results.push(message)
    this.send(message)
  }

  /** Until when a pause keeps all recipients back; 0: it keeps none back. */
  private heldUntilMs(): number {
    const [hold] = this.queued?.holds ?? []
    return hold === undefined || hold.untilMs <= this.nowMs ? 0 : hold.untilMs
  }

  /** A pause of the outgoing mailbox has kept an attempt back. */
  hold(at: number): void {
    const attempt = this.running.splice(at % this.running.length, 1)[0]
    if (attempt === undefined) return
    const { recipient } = attempt
    const isNext = this.expected[recipient]?.attempt === attempt.attempt
    const log = [...this.model.log.keys()]
    this.send({ _tag: "AttemptHeld", recipient, attempt: attempt.attempt })
    if (this.isRemoved || !isNext) return
    expect(this.heldUntilMs()).toBeGreaterThan(this.nowMs)
    // It was no attempt.
    expect([...this.model.log.keys()]).toEqual(log)
  }

  /** The pause has ended: what is due begins. */
  release(): void {
    const isHeld = this.queued?.holds !== undefined
    this.send({ _tag: "Release" })
    if (!isHeld) return
    expect(this.queued).not.toHaveProperty("holds")
    this.checkBegun()
  }

  private count(at: number, ends: number): void {
    this.ends[at] = (this.ends[at] ?? 0) + ends
  }

  /** `isOutdated`: the attempt has sent what was replaced meanwhile. */
  private after(
    expected: Expected,
    outcome: DeliveryOutcome,
    isOutdated: boolean
  ): Expected | undefined {
    const { nowMs } = this
    if (outcome._tag === "Deferred") {
      const dueMs = Math.max(outcome.untilMs, nowMs + deferredMinMs)
      // A short deferral is only remembered: when it is lost the attempt comes earlier.
      const isHeld = outcome.untilMs <= nowMs + deferredInMemoryMs
      return { ...expected, fromMs: isHeld ? expected.fromMs : dueMs, toMs: dueMs }
    }
    // Whatever became of it, the last edition follows.
    const ended = isOutdated
      ? { attempt: expected.attempt + 1, tries: 0, fromMs: nowMs, toMs: nowMs }
      : undefined
    if (outcome._tag !== "RetryableFailure") return ended
    const tries = expected.tries + 1
    const wait = schedule[tries]
    if (wait === undefined) return ended
    const asked = Math.min(outcome.retryAfterMs ?? 0, retryAfterMaxMs)
    return {
      attempt: expected.attempt + 1,
      tries,
      fromMs: nowMs + Math.max(Math.floor(wait * (1 - jitterFraction)), asked),
      toMs: nowMs + Math.max(Math.ceil(wait * (1 + jitterFraction)), asked)
    }
  }

  /** Time passes until the next timer, and then what is due must begin. */
  pass(): void {
    const { deferredUntilMs = 0, timerAtMs } = this.model
    if (timerAtMs === null) return
    this.nowMs = Math.max(this.nowMs, timerAtMs, deferredUntilMs)
    this.fireTimer()
    this.checkBegun()
  }

  /** What is due has begun, unless a pause keeps it back. */
  private checkBegun(): void {
    if (this.heldUntilMs() > 0) return
    for (const [at, expected] of this.expected.entries()) {
      if (expected === undefined || expected.toMs > this.nowMs || this.isRemoved) continue
      const { running = [] } = this.queued ?? {}
      const begun = running.filter(({ deferred, untilMs }) => !deferred || untilMs > this.nowMs)
      const isBegun = begun.some(({ recipient }) => recipient === at)
      const attempts = begun.filter(({ deferred }) => deferred !== true).length
      expect(isBegun || attempts === attemptsAtOnceMax).toBe(true)
    }
  }

  /** Delivers what is due. A timer is never followed by another one at once. */
  fireTimer(): void {
    if (!this.model.isDue(this.nowMs)) return
    this.isRemoved ||= (this.queued?.endedAtMs ?? this.nowMs) + retentionMs <= this.nowMs
    this.send(behavior.timerMessage)
    expect(this.model.isDue(this.nowMs)).toBe(false)
  }

  /** The node dies with its running attempts; what is due begins again at once. */
  crash(): void {
    const lost = new Set(this.running.map(({ recipient }) => recipient))
    this.running = []
    this.model.restart()
    this.fireTimer()
    const begun = new Set(this.running.map(({ recipient }) => recipient))
    if (this.heldUntilMs() > 0) return
    for (const recipient of lost) {
      const dueMs = this.expected[recipient]?.toMs ?? Number.POSITIVE_INFINITY
      if (dueMs > this.nowMs || this.isRemoved) continue
      expect(begun.has(recipient) || begun.size === attemptsAtOnceMax).toBe(true)
    }
  }

  retry(): void {
    const failed =
      this.queued?.recipients.flatMap(({ status }, at) => status === "failed" ? [at] : []) ?? []
    for (const at of failed) {
      const attempt = (this.queued?.recipients[at]?.attempts ?? 0) + 1
      this.expected[at] = { attempt, tries: 0, fromMs: this.nowMs, toMs: this.nowMs }
      this.count(at, -1)
    }
    const answer = this.send({ _tag: "Retry", caller })
    if (this.isRemoved) return
    expect(answer).toEqual({ _tag: "Retried", recipients: failed.length, isRepeated: false })
  }

  /** The sender sends it again to this recipient, whatever it has got. */
  replay(at: number): void {
    const recipient = at % this.expected.length
    const before = this.queued?.recipients[recipient]
    const { nowMs } = this
    const latest = this.replaysMs.filter((atMs) => nowMs - atMs < replaysWindowMs)
    const isRefused = before === undefined || latest.length >= replaysPerHourMax ||
      (this.editions > 0 && before.status === "success")
    const isChanged = !isRefused && (hasEnded(before) || (before.nextAtMs ?? 0) > nowMs)
    if (isChanged) {
      if (hasEnded(before)) this.count(recipient, -1)
      const { tries = 0 } = this.expected[recipient] ?? {}
      const attempt = before.attempts + 1
      this.expected[recipient] = { attempt, tries, fromMs: nowMs, toMs: nowMs }
      this.replaysMs = [...latest, nowMs]
    }
    const answer = this.send({ _tag: "Retry", caller, recipients: [recipient] })
    if (isRefused) expect(answer).not.toMatchObject({ _tag: "Retried" })
    else expect(answer).toMatchObject({ _tag: "Retried", recipients: isChanged ? 1 : 0 })
  }

  /** The sender replaces it: who has it gets the next edition, and all others in its place. */
  replace(): void {
    const { queued } = this
    const isAccepted = queued !== undefined && this.editions < followUpsMax
    if (isAccepted) {
      this.editions += 1
      for (const [at, { attempts, status }] of queued.recipients.entries()) {
        if (status !== "success") continue
        const { nowMs } = this
        this.expected[at] = { attempt: attempts + 1, tries: 0, fromMs: nowMs, toMs: nowMs }
        this.count(at, -1)
      }
    }
    const answer = this.send({
      _tag: "FollowUp",
      caller,
      requestId: `replacement ${this.editions}`,
      document: `<notification><item>${this.editions}</item></notification>`
    })
    if (isAccepted) expect(answer).toEqual({ _tag: "FollowedUp", isRepeated: false })
    else expect(this.queued?.followUps ?? []).toHaveLength(queued === undefined ? 0 : followUpsMax)
  }

  remove(): void {
    this.isRemoved = true
    this.send({ _tag: "Delete", caller })
    expect(this.note).toBe(null)
  }
}
