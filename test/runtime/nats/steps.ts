/** Actors that commit in steps, and the check of their stored state at the end. */
import { Effect } from "effect"
import { expect } from "vitest"
import { address, shardOf } from "../../../runtime/actor/address.ts"
import type { LogItem } from "../../../runtime/actor/behavior.ts"
import type { CommitOutcome, StorageApi } from "../../../runtime/ports/storage.ts"
import { commitOf, run } from "../../suites/storage-probe.ts"

/** One actor; `step` resolves when a commit is certainly stored. */
export class Stepper {
  readonly address
  readonly items: Array<LogItem> = []
  private readonly storage: StorageApi
  private revision = 0
  private head = 0
  private state: string | undefined
  private timer: number | undefined
  private steps = 0
  private hasFired = false

  constructor(storage: StorageApi, id: string) {
    this.storage = storage
    this.address = address("mailbox", id)
  }

  /** Commits every form in turn; the appending forms append this many items. */
  async step(append = 1): Promise<void> {
    const form = this.steps++ % 4
    const appends = form !== 2
    const items = Array.from({ length: appends ? append : 0 }, (_, at) => ({
      n: this.head + 1 + at,
      value: `step ${this.steps} item ${at}`
    }))
    const state = form === 0 ? `step ${this.steps}` : undefined
    const timer = form >= 2 ? this.steps : form === 0 ? null : undefined
    const head = this.head + items.length
    const change = { expected: this.revision, state, append: items, head, timer }
    const outcome = await this.commit({ address: this.address, ...change })
    if (outcome?._tag !== "Committed") {
      throw new Error(`${this.address.id}: ${JSON.stringify(outcome)}`)
    }
    this.revision = outcome.revision
    this.head = head
    this.items.push(...items)
    if (state !== undefined) this.state = state
    if (timer !== undefined) this.timer = timer ?? undefined
  }

  /**
   * The outcome of a commit. It is repeated while the store is unavailable, as servers of a busy
   * machine may elect a leader for longer than the storage waits: a refused commit is not stored.
   * If it were, its repetition would be a conflict.
   */
  private async commit(
    change: Parameters<typeof commitOf>[0]
  ): Promise<CommitOutcome | undefined> {
    for (;;) {
      const [outcome] = await run(this.storage.commit([commitOf(change)]))
      const isRepeatable = outcome?._tag === "Refused" &&
        outcome.failure._tag === "StorageUnavailable"
      if (!isRepeatable) return outcome
    }
  }

  /**
   * Expects the store to hold exactly the acknowledged steps. A server that `wasKilled` may have
   * restored an ended timer; nothing else leaves one.
   */
  async check(storage: StorageApi = this.storage, wasKilled = false): Promise<void> {
    const { head, revision, state, timer } = this
    expect(await run(storage.load(this.address))).toEqual({ state, revision, head, timer })
    expect(await run(storage.read(this.address, 1, 1_000_000))).toEqual(this.items)
    const listedMs = async () => {
      const { timers } = await run(storage.timers(shardOf(this.address), 100_000))
      return timers.find((timer) => timer.address.id === this.address.id)?.atMs
    }
    // Another node lists the marker of an ended timer while it lives, for a second.
    await expect.poll(wasKilled ? () => this.firedOnce(listedMs) : listedMs, { timeout: 60_000 })
      .toBe(this.timer)
  }

  /** A restored timer fires once more, and the commit of the decision on it removes it. */
  private async firedOnce(
    listedMs: () => Promise<number | undefined>
  ): Promise<number | undefined> {
    const listed = await listedMs()
    if (listed === undefined || listed === this.timer || this.hasFired) return listed
    // Its marker may be what is listed.
    await new Promise((resolve) => setTimeout(resolve, 3_000))
    const restored = await listedMs()
    if (restored !== undefined && restored !== this.timer) {
      this.hasFired = true
      await this.fire(restored)
    }
    return restored
  }

  /** Commits what an actor decides on a timer that it does not have. */
  private async fire(firedTimer: number): Promise<void> {
    const { address, head, revision: expected } = this
    const [outcome] = await run(
      this.storage.commit([commitOf({ address, expected, head, firedTimer })])
    )
    if (outcome?._tag !== "Committed") throw new Error(`${address.id}: ${JSON.stringify(outcome)}`)
    this.revision = outcome.revision
  }
}

/** Runs the steps of all actors concurrently until `until` resolves. */
export const stepping = async (
  steppers: ReadonlyArray<Stepper>,
  until: Promise<unknown>
): Promise<void> => {
  const state = { isOver: false }
  const ending = until.finally(() => {
    state.isOver = true
  })
  await Promise.all([
    ending,
    ...steppers.map(async (stepper) => {
      while (!state.isOver) await stepper.step()
    })
  ])
}

export const steppersOf = (storage: StorageApi, count: number): ReadonlyArray<Stepper> =>
  Array.from({ length: count }, (_, at) => new Stepper(storage, `m${at}`))

/** Runs an effect with the runtime's deadline. */
export const within = <A, E>(effect: Effect.Effect<A, E>, ms: number): Promise<A | undefined> =>
  run(
    Effect.map(
      Effect.timeoutOption(effect, ms),
      (found) => found._tag === "Some" ? found.value : undefined
    )
  )
