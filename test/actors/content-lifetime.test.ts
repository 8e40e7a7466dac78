/**
 * Content beside the notifications that link to it, or that it came in: it stays as long as it has
 * to and not longer, whatever fails or crashes.
 */
import { Effect } from "effect"
import { type Arbitrary, array, assert, asyncProperty, boolean, constantFrom, nat,
  record } from "fast-check"
import { expect, it } from "vitest"
import { backgroundTask } from "../../actors/background-task/actor.ts"
import type { BackgroundTaskMessage } from "../../actors/background-task/protocol.ts"
import { content } from "../../actors/content/actor.ts"
import type { ContentMessage } from "../../actors/content/protocol.ts"
import { backgroundTaskLeaseMs, inlinedCheckMs, linkDepositMaxMs } from "../../actors/limits.ts"
import { mailbox } from "../../actors/mailbox/actor.ts"
import type { MailboxMessage, MailboxReply } from "../../actors/mailbox/protocol.ts"
import { covers } from "../../actors/mailbox/ranges.ts"
import { type Address, address, isRefusal, keyOf, type Peers,
  StorageUnavailable } from "../../runtime/index.ts"
import { hash, nowMs as beganAtMs } from "./cells.ts"
import { noDependencies } from "./dependencies.ts"
import { defaultSettings } from "./mailbox-settings.ts"
import { Model } from "./model.ts"

const dayMs = 86_400_000
const contentAt = address("content", "c1")
const mailboxAt = address("mailbox", "alice")
const fragment = "<item><description>d</description><url>http://post.test/content/c1</url></item>"

/** What becomes of a call: carried out, carried out without an answer, or neither. */
type Fate = "done" | "lost" | "fails"

const part = (name: string): string => name.padEnd(22, "_")

class LifetimeWorld {
  nowMs = beganAtMs
  fate: Fate = "done"
  readonly isInlined: boolean
  /** The latest time so far: the clock may be set back. */
  private latestMs = beganAtMs
  private names = 0
  /** Notifications whose link is noted, and which are not deposited yet. */
  private noted: Array<string> = []
  private readonly contents = content(noDependencies)
  private readonly mailboxes = mailbox({ notificationsMax: 1_000, anonymousBytesMax: 1e9 })
  private readonly tasks = backgroundTask(noDependencies)
  readonly content = new Model(this.contents, contentAt)
  readonly mailbox = new Model(this.mailboxes, mailboxAt)
  private readonly task = new Map<
    string,
    Model<
      typeof this.tasks.initial,
      BackgroundTaskMessage,
      unknown,
      Parameters<typeof this.tasks.perform>[0]
    >
  >()
  private results: Array<() => void> = []
  private readonly peers: Peers = {
    ask: (to, message) => this.call(() => this.receive(to, message)),
    read: (_at, from, limit) =>
      this.call(() =>
        [...this.mailbox.log].map(([n, value]) => ({ n, value })).filter(({ n }) => n >= from)
          .slice(0, limit)
      )
  }

  constructor(isInlined: boolean) {
    this.isInlined = isInlined
    const settings = { ...defaultSettings, retentionMs: 2 * dayMs }
    const secrets = { passwordHash: hash("password"), sharedHash: hash("shared") }
    this.mailbox.send(
      { _tag: "Create", requestId: "r1", owner: "alice", settings, ...secrets },
      this.nowMs
    )
    if (!isInlined) this.content.send(this.publish(), this.nowMs)
  }

  private publish(): Extract<ContentMessage, { readonly _tag: "Publish" }> {
    return {
      _tag: "Publish",
      requestId: "r1",
      body: { blobId: "b1", type: "text/plain", lengthBytes: 1, digest: "d" },
      editHash: hash("edit")
    }
  }

  private call<A>(carryOut: () => A): Effect.Effect<A, StorageUnavailable> {
    return Effect.suspend(() => {
      if (this.fate === "done") return Effect.succeed(carryOut())
      if (this.fate === "lost") carryOut()
      return Effect.fail(new StorageUnavailable({ detail: this.fate }))
    })
  }

  private receive(to: Address, message: { readonly _tag: string }): unknown {
    // The sender knows the kind that it asks.
    if (to.kind === "content") return this.content.send(message as ContentMessage, this.nowMs)
    return this.mailbox.send(message as MailboxMessage, this.nowMs)
  }

  /** A deposit begins: it brings the content, or notes that it links to it. */
  note(): void {
    const idRandom = part(`n${this.names++}`)
    const key = { mailbox: "alice", idRandom, afterN: this.headOfLog() }
    const message: ContentMessage = this.isInlined
      ? { ...this.publish(), owner: "alice", inlinedIn: key }
      : { _tag: "Link", ...key }
    const reply = this.content.send(message, this.nowMs)
    const isStored = typeof reply === "object" && reply !== null && "_tag" in reply &&
      (reply._tag === "Published" || reply._tag === "Done")
    if (!isRefusal(reply) && isStored) this.noted.push(idRandom)
  }

  /** A deposit that links to the content begins, and fails. */
  link(): void {
    const idRandom = part(`n${this.names++}`)
    const afterN = this.headOfLog()
    this.content.send({ _tag: "Link", mailbox: "alice", idRandom, afterN }, this.nowMs)
  }

  private headOfLog(): number {
    const message: MailboxMessage = { _tag: "Describe", reader: {} }
    const described = this.mailbox.send(message, this.nowMs) as MailboxReply // of an open one
    if (described._tag !== "Described") throw new Error(described._tag)
    return described.view.head
  }

  deposit(at: number): void {
    const [idRandom] = this.noted.splice(at % Math.max(1, this.noted.length), 1)
    if (idRandom === undefined) return
    const digest = part(`d${idRandom}`.slice(0, 20))
    this.mailbox.send({
      _tag: "Deposit",
      fragment,
      digest,
      idRandom,
      ...this.isInlined ? { isInlined: true } : {}
    }, this.nowMs)
    this.signal()
  }

  retrieve(): void {
    this.mailbox.send({ _tag: "Retrieved", from: 1, to: 1_000 }, this.nowMs)
  }

  remove(at: number): void {
    const [n] = [...this.mailbox.log.keys()].slice(at % Math.max(1, this.mailbox.log.size))
    if (n === undefined) return
    const reader = { account: "alice" }
    this.mailbox.send({ _tag: "Remove", n, idRandom: part("any"), reader }, this.nowMs)
    this.signal()
  }

  read(): void {
    this.content.send({ _tag: "Describe", access: {} }, this.nowMs)
  }

  /** The tasks that the mailbox's commits have signaled begin. */
  private signal(): void {
    for (const key of this.mailbox.signaled.splice(0)) {
      const id = key.slice(key.indexOf("alice="))
      const task = this.task.get(id) ??
        new Model(this.tasks, address("background-task", id))
      expect(keyOf(address("background-task", id))).toBe(key)
      this.task.set(id, task)
      task.signalAt(this.nowMs)
    }
    for (const task of this.task.values()) task.fireTimer(this.nowMs)
  }

  /** Time passes. A deposit that has not ended by then has failed. */
  pass(byMs: number): void {
    this.nowMs += byMs
    this.latestMs = Math.max(this.latestMs, this.nowMs)
    if (byMs >= linkDepositMaxMs) this.noted = []
    this.mailbox.fireTimer(this.nowMs)
    this.signal()
    this.content.fireTimer(this.nowMs)
  }

  /** Performs all actions; the results are under way. */
  async perform(): Promise<void> {
    for (const action of this.content.actions.splice(0)) {
      const result = await Effect.runPromise(this.contents.perform(action, contentAt, this.peers))
      if (result !== undefined) {
        this.results.push(() => void this.content.send(result, this.nowMs))
      }
    }
    for (const [id, task] of this.task) {
      for (const action of task.actions.splice(0)) {
        const self = address("background-task", id)
        const result = await Effect.runPromise(this.tasks.perform(action, self, this.peers))
        if (result !== undefined) this.results.push(() => void task.send(result, this.nowMs))
      }
    }
  }

  deliver(at: number): void {
    this.results.splice(at % Math.max(1, this.results.length), 1)[0]?.()
  }

  crash(): void {
    this.results = []
    this.noted = []
    this.content.restart()
    this.mailbox.restart()
    for (const task of this.task.values()) task.restart()
  }

  /** Without faults, until all is done that is to do by now. */
  async settle(byMs: number): Promise<void> {
    this.fate = "done"
    this.pass(byMs)
    for (let round = 0; round < 6; round++) {
      await this.perform()
      while (this.results.length > 0) this.deliver(0)
      this.pass(backgroundTaskLeaseMs)
    }
  }

  /** No notification that needs the content is without it. */
  check(): void {
    const { state } = this.mailbox
    if (state._tag !== "Open") throw new Error("the mailbox stays open")
    const needed = [...this.mailbox.log.keys()].filter((n) =>
      this.isInlined || !covers(state.retrieved, n)
    )
    if (needed.length > 0) expect([needed, this.content.state._tag]).toEqual([needed, "Published"])
  }

  /** When nothing needs it any more, the content goes, and then its tombstone too. */
  async expectGone(): Promise<void> {
    this.nowMs = this.latestMs
    this.pass(linkDepositMaxMs)
    this.retrieve()
    // Inlined content stays until the retention of its notifications has passed.
    await this.settle(2 * dayMs)
    if (this.isInlined) {
      await this.settle(inlinedCheckMs)
      expect(this.content.state._tag).not.toBe("Published")
    }
    for (let day = 0; day < 70; day++) await this.settle(dayMs)
    expect([this.content.state._tag, this.content.timerAtMs]).toEqual(["Absent", null])
    for (const task of this.task.values()) expect(task.state._tag).toBe("Absent")
  }
}

interface Step {
  readonly does: string
  readonly at: number
  readonly fate: Fate
}

const stepsOf = (...names: ReadonlyArray<string>): ReadonlyArray<Step> =>
  names.map((does) => ({ does, at: 0, fate: "done" }))

/** Each ends with a notification of the content that is never stored. */
const neverStored: ReadonlyArray<ReadonlyArray<Step>> = [
  // The check of the first one is under way.
  stepsOf("note", "days", "note", "perform", "deliver"),
  // The check has found the first one.
  stepsOf("note", "deposit", "hour", "perform", "deliver", "note"),
  stepsOf("note", "deposit", "hour", "perform", "deliver", "link")
]

const does = constantFrom<string>(
  ...["note", "note", "deposit", "deposit", "deposit", "perform", "perform", "deliver", "deliver"],
  ...[
    "retrieve",
    "remove",
    "read",
    "crash",
    "lose",
    "link",
    "minute",
    "hour",
    "day",
    "days",
    "back"
  ]
)

it("stays as long as a notification needs it, and not longer", async () => {
  const step = record({
    does,
    at: nat(3),
    fate: constantFrom<Fate>("done", "done", "lost", "fails")
  })
  const steps: Arbitrary<ReadonlyArray<Step>> = array(step, { maxLength: 40 })
  await assert(
    asyncProperty(boolean(), steps, async (isInlined, steps) => {
      const world = new LifetimeWorld(isInlined)
      for (const { at, does, fate } of steps) {
        world.fate = fate
        if (does === "note") world.note()
        else if (does === "deposit") world.deposit(at)
        else if (does === "perform") await world.perform()
        else if (does === "deliver") world.deliver(at)
        else if (does === "retrieve") world.retrieve()
        else if (does === "remove") world.remove(at)
        else if (does === "read") world.read()
        else if (does === "link") world.link()
        else if (does === "crash") world.crash()
        else if (does === "back") world.pass(-3_600_000)
        else if (does === "minute") world.pass(60_000)
        else if (does === "hour") world.pass(3_600_000)
        else if (does === "day") world.pass(dayMs)
        else if (does === "days") world.pass(31 * dayMs)
        else world.deliver(at)
        world.check()
      }
      await world.expectGone()
    }),
    {
      numRuns: 500,
      examples: neverStored.map((steps) => [true, steps])
    }
  )
}, 120_000)
