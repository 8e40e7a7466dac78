/** The copy of an eager fetch, beside its notification: it ends with it, and not before. */
import { Effect } from "effect"
import { array, assert, asyncProperty, constantFrom, nat, record } from "fast-check"
import { describe, expect, it } from "vitest"
import { backgroundTask } from "../../actors/background-task/actor.ts"
import type { BackgroundTaskMessage,
  BackgroundTaskState } from "../../actors/background-task/protocol.ts"
import { content } from "../../actors/content/actor.ts"
import type { ContentMessage } from "../../actors/content/protocol.ts"
import { backgroundTaskLeaseMs } from "../../actors/limits.ts"
import { encodeItem } from "../../actors/mailbox/log-item.ts"
import type { FetchOutcome } from "../../actors/outbound/protocol.ts"
import { type Address, address, type Peers, StorageUnavailable } from "../../runtime/index.ts"
import { hash, nowMs as beganAtMs } from "./cells.ts"
import { noDependencies } from "./dependencies.ts"
import { defaultSettings } from "./mailbox-settings.ts"
import { Model } from "./model.ts"

/**
 * What becomes of one call: `lost`: it is carried out, and its answer is lost. `late`: it is
 * carried out after its caller has given up. `fails`: it is not carried out.
 */
type Fate = "done" | "lost" | "late" | "fails"

const uri = "https://example.org/message"
const self = address("background-task", "alice=1-fetch")
const item = encodeItem(
  beganAtMs,
  hash("random").slice(0, 22),
  hash("digest").slice(0, 22),
  `<item><description>d</description><url>${uri}</url></item>`
)
const bytes = Buffer.from("words")
const fetched: FetchOutcome = {
  _tag: "Fetched",
  fetched: { uri, code: 200, type: "text/plain", bytes }
}

class CopyWorld {
  nowMs = beganAtMs
  /** By call: the tag of a message, or the operation of a store; others are done. */
  fates: Partial<Record<string, Fate>> = {}
  /** What the next fetches give; later ones succeed. */
  outcomes: Array<FetchOutcome> = []
  /** Happens while the next fetch is under way. */
  duringFetch: (() => void) | undefined = undefined
  exists = true
  settings = { ...defaultSettings, fetch: "eager" as "eager" | "never" }
  /** What the mailbox has as copies; `undefined`: nothing is listed. */
  listed: string | undefined = undefined
  copiesChanged = 0
  readonly late: Array<() => void> = []
  /** Results of actions that are under way to the task. */
  readonly results: Array<BackgroundTaskMessage> = []
  readonly blobs = new Set<string>()
  private readonly behavior = backgroundTask({
    ...noDependencies,
    blobs: {
      ...noDependencies.blobs,
      put: (id) =>
        this.call("put", () => {
          this.blobs.add(id)
          return { lengthBytes: bytes.length, digest: "digest" }
        }),
      remove: (id) => Effect.sync(() => void this.blobs.delete(id))
    },
    records: {
      ...noDependencies.records,
      write: ([change]) => this.call("write", () => void (this.listed = change?.value ?? undefined))
    },
    outbound: {
      ...noDependencies.outbound,
      get: () =>
        Effect.sync(() => {
          this.duringFetch?.()
          this.duringFetch = undefined
          return this.outcomes.shift() ?? fetched
        })
    }
  })
  readonly task = new Model(this.behavior, self)
  /** The copy; there is one, by its id. */
  readonly copy = new Model(content(noDependencies))
  private readonly peers: Peers = {
    ask: (to, message) => this.call(message._tag, () => this.receive(to, message)),
    read: () => this.call("read", () => this.exists ? [{ n: 1, value: item }] : [])
  }

  constructor() {
    this.task.signalAt(this.nowMs)
    this.task.fireTimer(this.nowMs)
  }

  get state(): BackgroundTaskState {
    return this.task.state
  }

  private call<A>(name: string, carryOut: () => A): Effect.Effect<A, StorageUnavailable> {
    return Effect.suspend(() => {
      const fate = this.fates[name] ?? "done"
      if (fate === "done") return Effect.succeed(carryOut())
      if (fate === "lost") carryOut()
      if (fate === "late") this.late.push(carryOut)
      return Effect.fail(new StorageUnavailable({ detail: fate }))
    })
  }

  private receive({ kind }: Address, message: { readonly _tag: string }): unknown {
    if (kind === "content") {
      return this.copy.send(message as ContentMessage, this.nowMs) ?? { _tag: "Done" }
    }
    if (kind === "background-task") {
      return this.task.send(message as BackgroundTaskMessage, this.nowMs)
    }
    if (message._tag === "CopiesChanged") this.copiesChanged++
    return message._tag === "Describe"
      ? { _tag: "Described", view: { owner: "alice", settings: this.settings } }
      : { _tag: "Done" }
  }

  /** The reader removes the notification; the mailbox signals the task if it knows of a copy. */
  removeNotification(): void {
    if (!this.exists) return
    this.exists = false
    if (this.copiesChanged > 0) this.task.signalAt(this.nowMs)
  }

  /** The time of the next attempt comes, or that of a lost one. */
  pass(): void {
    this.nowMs += backgroundTaskLeaseMs
    this.task.fireTimer(this.nowMs)
  }

  /** Performs an action; its result is under way. */
  async perform(at = 0): Promise<void> {
    const [action] = this.task.actions.splice(at % Math.max(1, this.task.actions.length), 1)
    if (action === undefined) return
    const result = await Effect.runPromise(this.behavior.perform(action, self, this.peers))
    if (result !== undefined) this.results.push(result)
  }

  deliver(at = 0): void {
    const [result] = this.results.splice(at % Math.max(1, this.results.length), 1)
    if (result !== undefined) this.task.send(result, this.nowMs)
  }

  deliverLate(at = 0): void {
    const [carryOut] = this.late.splice(at % Math.max(1, this.late.length), 1)
    carryOut?.()
  }

  /** The process dies: its actions and their results are lost. */
  crash(): void {
    this.results.length = 0
    this.task.restart()
  }

  /** Without faults, until nothing is left to do. */
  async settle(): Promise<void> {
    this.fates = {}
    for (let round = 0; round < 60; round++) {
      while (this.late.length > 0) this.deliverLate()
      while (this.task.actions.length > 0 || this.results.length > 0) {
        await this.perform()
        this.deliver()
      }
      for (const action of this.copy.actions.splice(0)) {
        if (action._tag !== "RemoveBlobs") continue
        const { blobIds } = action
        for (const id of blobIds) this.blobs.delete(id)
        this.copy.send({ _tag: "BlobsRemoved", blobIds }, this.nowMs)
      }
      this.pass()
    }
    expect(this.task.timerAtMs).toBe(null)
  }

  /** A listed copy of a notification that is there can be read. */
  checkListed(): void {
    if (this.exists && this.listed !== undefined) expect(this.copy.state._tag).toBe("Published")
  }

  /** Of a removed notification nothing is left. */
  async expectGone(): Promise<void> {
    await this.settle()
    expect(this.exists).toBe(false)
    expect(this.copy.state._tag).not.toBe("Published")
    expect(this.state._tag).toBe("Absent")
  }
}

const gone: FetchOutcome = { _tag: "PermanentFailure", code: 404, problem: "not found" }

describe("the copy of an eager fetch", () => {
  it("stays as long as its notification, and ends with it", async () => {
    const world = new CopyWorld()
    await world.settle()
    expect([world.state._tag, world.copy.state._tag]).toEqual(["Copied", "Published"])
    expect(world.listed).toBeDefined()
    world.removeNotification()
    await world.expectGone()
    expect([world.listed, world.blobs.size]).toEqual([undefined, 0])
  })

  it.each<[string, Partial<Record<string, Fate>>]>([
    ["is published without an answer", { Publish: "lost" }],
    ["is published when the task has ended", { Publish: "late" }]
  ])("ends with a notification that is removed before it is listed: it %s", async (_, fates) => {
    const world = new CopyWorld()
    world.fates = fates
    await world.perform()
    world.deliver()
    world.removeNotification()
    world.fates = {}
    for (let round = 0; round < 5; round++) {
      world.pass()
      await world.perform()
      world.deliver()
    }
    world.deliverLate()
    await world.expectGone()
  })

  it("ends with a notification that is removed during the fetch", async () => {
    const world = new CopyWorld()
    world.duringFetch = () => world.removeNotification()
    await world.expectGone()
  })

  it("is removed when a later attempt fails for good, or is no longer wanted", async () => {
    const failing = new CopyWorld()
    failing.outcomes = [fetched, gone]
    const unwanted = new CopyWorld()
    for (const world of [failing, unwanted]) {
      world.fates = { Publish: "lost" }
      await world.perform()
      world.deliver()
      expect(world.copy.state._tag).toBe("Published")
      if (world === unwanted) world.settings = { ...world.settings, fetch: "never" }
      await world.settle()
      expect([world.state._tag, world.copy.state._tag]).toEqual(["Absent", "Removed"])
    }
  })

  it("ends when a slow attempt finds its notification removed", async () => {
    const world = new CopyWorld()
    world.pass()
    await world.perform()
    world.deliver()
    expect(world.state._tag).toBe("Copied")
    // The copy is not listed yet, so that the mailbox sends no signal.
    world.removeNotification()
    await world.perform()
    world.deliver()
    await world.expectGone()
  })

  it("ends when an early check has seen the notification, and a later one fails", async () => {
    const world = new CopyWorld()
    await world.perform()
    world.deliver()
    await world.perform()
    world.deliver()
    await world.perform()
    expect(world.results).toMatchObject([{ _tag: "NotificationChecked", exists: true }])
    world.removeNotification()
    world.task.fireTimer(world.nowMs)
    world.fates = { Describe: "fails" }
    await world.perform()
    world.deliver()
    await world.expectGone()
  })

  it("ends with its notification, whatever fails, is late or crashes", async () => {
    const fate = constantFrom<Fate>("done", "done", "lost", "late", "fails")
    const fates = record({
      Describe: fate,
      read: fate,
      CopyNamed: fate,
      put: fate,
      Publish: fate,
      write: fate,
      CopiesChanged: fate,
      Withdraw: fate
    })
    const step = record({
      does: constantFrom(
        ...["perform", "perform", "deliver", "deliver", "pass", "late", "lose", "crash"],
        ...["remove", "gone", "unwanted"]
      ),
      at: nat(5),
      fates
    })
    await assert(
      asyncProperty(array(step, { maxLength: 25 }), async (steps) => {
        const world = new CopyWorld()
        for (const { at, does, fates } of steps) {
          world.fates = fates
          if (does === "perform") await world.perform(at)
          else if (does === "deliver") world.deliver(at)
          else if (does === "pass") world.pass()
          else if (does === "late") world.deliverLate(at)
          else if (does === "lose") world.results.splice(at, 1)
          else if (does === "crash") world.crash()
          else if (does === "remove") world.removeNotification()
          else if (does === "gone") world.outcomes.push(gone)
          else world.settings = { ...world.settings, fetch: "never" }
          world.checkListed()
        }
        await world.settle()
        world.checkListed()
        world.removeNotification()
        await world.expectGone()
      }),
      { numRuns: 1_000 }
    )
  }, 120_000)
})
