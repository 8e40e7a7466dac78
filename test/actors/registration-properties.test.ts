import { Effect } from "effect"
import { type Arbitrary, array, assert, boolean, constant, constantFrom, integer, oneof, property,
  record } from "fast-check"
import { describe, expect, it } from "vitest"
import { failureReportsFormat } from "../../actors/failure-reports/report.ts"
import { failingMaxMs, registrationLeaseMs } from "../../actors/limits.ts"
import { linksUnder } from "../../actors/links.ts"
import { notificationDocuments } from "../../http/documents.ts"
import type { DeliveryOutcome, Outbound } from "../../actors/outbound/protocol.ts"
import { registration } from "../../actors/registration/actor.ts"
import type { RegistrationAction, RegistrationMessage } from "../../actors/registration/protocol.ts"
import { nowMs as startMs } from "./cells.ts"
import { Model } from "./model.ts"
import { testKeyring, testVapid } from "./dependencies.ts"

type Command =
  | { readonly _tag: "Restart" | "Reload" | "Update" | "Pause" }
  /** The mailbox says with its timer how far its log goes, or it does not. */
  | { readonly _tag: "Deposit"; readonly hasHint: boolean }
  | { readonly _tag: "Remove"; readonly n: number }
  | { readonly _tag: "Pass"; readonly ms: number }
  /** One of the running effects ends like this. `lost`: it was made, but its result is lost. */
  | { readonly _tag: "End"; readonly which: number; readonly as: End }

type Look = Extract<RegistrationAction, { readonly _tag: "CheckMailbox" }>
type End = "delivered" | "faulted" | "refused" | "deferred" | "lost" | "away"

const commands: Arbitrary<ReadonlyArray<Command>> = array(
  oneof(
    {
      weight: 4,
      arbitrary: record({ _tag: constant("Deposit" as const), hasHint: boolean() })
    },
    {
      weight: 8,
      arbitrary: record({
        _tag: constant("End" as const),
        which: integer({ min: 0, max: 2 }),
        as: oneof(
          { weight: 3, arbitrary: constant("delivered" as const) },
          constantFrom("faulted", "refused", "deferred", "lost", "away")
        )
      })
    },
    record({ _tag: constant("Remove" as const), n: integer({ min: 1, max: 30 }) }),
    {
      weight: 4,
      arbitrary: record({
        _tag: constant("Pass" as const),
        ms: constantFrom(0, 10, 1_000, 6_000, registrationLeaseMs, failingMaxMs)
      })
    },
    record({
      _tag: constantFrom("Restart" as const, "Reload" as const, "Update" as const, "Pause" as const)
    })
  ),
  { maxLength: 100, size: "max" }
)

const away = ({ untilMs }: { readonly untilMs: number }): RegistrationMessage => ({
  _tag: "Unavailable",
  untilMs
})

const callback = "http://example.org/hook"
const reportsTo = { account: "alice", mailbox: "box" }
const batchItems = 3
const cursor = 2
const nobody: Outbound = {
  get: () => {
    throw new Error("the model performs nothing")
  },
  head: () => {
    throw new Error("the model performs nothing")
  },
  post: () => {
    throw new Error("the model performs nothing")
  }
}

class World {
  nowMs = startMs
  echoed = false
  acknowledged = cursor
  readonly log = new Set([1, 2, 3])
  readonly removed = new Set<number>()
  readonly pushed = new Set<number>()
  private head = 3
  private running: Array<RegistrationAction> = []
  /** What was pushed after each cursor: the same each time. */
  private readonly batches = new Map<number, number>()
  private readonly actor = new Model(
    registration({
      outbound: nobody,
      links: linksUnder("http://localhost"),
      keyring: testKeyring,
      documents: notificationDocuments,
      vapid: testVapid,
      schedule: [0, 5_000],
      random: () => 0.5,
      records: { write: () => Effect.void }
    }),
    undefined,
    failureReportsFormat
  )

  constructor() {
    this.send({
      _tag: "Create",
      requestId: "r",
      form: "native",
      callback,
      secret: "whsec_1",
      leaseSeconds: 0,
      challenge: "c",
      cursor
    })
  }

  private send(message: RegistrationMessage): void {
    this.actor.send(message, this.nowMs)
    this.takeActions()
  }

  private takeActions(): void {
    const { actions, state } = this.actor
    // Nothing begins that a reader has paused.
    if (state._tag === "Registered" && state.status === "paused") {
      expect(actions.filter(({ _tag }) => _tag === "Push")).toEqual([])
    }
    this.running.push(...actions.splice(0))
  }

  private outcomeOf(as: End): DeliveryOutcome {
    switch (as) {
      case "delivered":
        return { _tag: "Delivered", code: 200 }
      case "refused":
        return { _tag: "PermanentFailure", code: 400, problem: "no" }
      case "deferred":
        return { _tag: "Deferred", untilMs: this.nowMs + 2_000 }
      default:
        return { _tag: "RetryableFailure", problem: "no answer in time" }
    }
  }

  private find({ from, readsChanges, untilMs }: Look): RegistrationMessage {
    const numbers = [...this.log].filter((n) => n > from)
    const batch = numbers.slice(0, readsChanges ? batchItems : 0)
    const more = readsChanges && numbers.length > batch.length
    return { _tag: "Checked", untilMs, from, upTo: batch.at(-1) ?? from, more, mailboxGone: false }
  }

  /** A push reaches its receiver. */
  private receive(from: number, upTo: number, arrives: boolean): void {
    expect(this.echoed).toBe(true)
    // A push that a timer has repeated may still end with its first attempt.
    if (from === this.acknowledged) expect(this.batches.get(from) ?? upTo).toBe(upTo)
    else expect(upTo).toBeLessThanOrEqual(this.acknowledged)
    this.batches.set(from, upTo)
    for (const n of this.log) if (arrives && n > from && n <= upTo) this.pushed.add(n)
  }

  private end(action: RegistrationAction, as: End): void {
    const outcome = this.outcomeOf(as)
    switch (action._tag) {
      case "Verify": {
        const { challenge } = action
        if (as === "delivered") this.echoed = true
        if (as === "lost") return
        return this.send({ _tag: "Verified", challenge, outcome, random: 0.5 })
      }
      case "CheckMailbox": {
        if (as === "lost") return
        return this.send(as === "away" ? away(action) : this.find(action))
      }
      case "Push": {
        const { from, upTo } = action
        if (as === "away") return this.send(away(action))
        if (as === "deferred") {
          return this.send({ _tag: "Pushed", callback, from, upTo, outcome, random: 0.5 })
        }
        this.receive(from, upTo, as === "delivered" || as === "lost")
        if (as === "lost") return
        if (as === "delivered" && from === this.acknowledged) this.acknowledged = upTo
        return this.send({ _tag: "Pushed", callback, from, upTo, outcome, random: 0.5 })
      }
      case "ReportFailure": {
        const { atMs, to } = action
        if (as === "lost") return
        return to === undefined && as === "delivered"
          ? this.send({ _tag: "FailureReportAddressed", atMs, to: reportsTo })
          : this.send({ _tag: "FailureReportSettled", atMs })
      }
    }
  }

  run(command: Command): void {
    const { actor } = this
    switch (command._tag) {
      case "Deposit":
        this.log.add(++this.head)
        return actor.signalAt(this.nowMs, command.hasHint ? this.head : undefined)
      case "Remove":
        if (this.log.delete(command.n)) this.removed.add(command.n)
        return
      case "Pass":
        this.nowMs += command.ms
        actor.fireTimer(this.nowMs)
        return this.takeActions()
      case "Restart":
        this.running = []
        return actor.restart()
      case "Reload":
        // It takes a while, by which what was begun after it is hasHint from what was before.
        this.nowMs++
        return actor.reload()
      case "Update":
        return this.send({ _tag: "Update", challenge: `c${this.nowMs}` })
      case "Pause":
        return this.send({ _tag: "Pause" })
      case "End": {
        const [action] = this.running.splice(command.which, 1)
        if (action !== undefined) this.end(action, command.as)
      }
    }
  }

  check(): void {
    const { state } = this.actor
    if (state._tag !== "Registered") throw new Error(`it is ${state._tag}`)
    expect(state.cursor).toBeLessThanOrEqual(this.acknowledged)
  }

  /** All goes well from now on, and nothing more happens in the mailbox. */
  settle(): void {
    this.run({ _tag: "Update" })
    for (let rounds = 0; rounds < 200; rounds++) {
      while (this.running.length > 0) this.run({ _tag: "End", which: 0, as: "delivered" })
      this.run({ _tag: "Pass", ms: 10 })
      if (this.running.length > 0) continue
      const { state, timerAtMs } = this.actor
      if (timerAtMs === null) {
        // No report waits.
        return expect(state).not.toHaveProperty("failureReport.description")
      }
      this.run({ _tag: "Pass", ms: registrationLeaseMs })
    }
    throw new Error("it does not come to rest")
  }
}

/** What was missed once: a look from before a push ended in the millisecond of the next one. */
const lookBeforePush: ReadonlyArray<Command> = [
  { _tag: "End", which: 0, as: "delivered" },
  { _tag: "End", which: 0, as: "faulted" },
  { _tag: "Pass", ms: registrationLeaseMs },
  { _tag: "End", which: 0, as: "faulted" },
  { _tag: "Pass", ms: failingMaxMs },
  { _tag: "End", which: 0, as: "faulted" },
  { _tag: "Deposit", hasHint: false },
  { _tag: "Pass", ms: 0 }
]

describe("a registration", () => {
  it("pushes all, in order, whatever is lost; nothing before the echo", () => {
    assert(
      property(commands, (sequence) => {
        const world = new World()
        for (const command of sequence) {
          world.run(command)
          world.check()
        }
        world.settle()
        world.check()
        const missed = [...world.log].filter((n) => n > cursor && !world.pushed.has(n))
        expect(missed).toEqual([])
        expect(world.pushed.has(1) || world.pushed.has(2)).toBe(false)
      }),
      { numRuns: process.env["TEST_LONG"] === "1" ? 1_500 : 150, examples: [[lookBeforePush]] }
    )
  })
})
