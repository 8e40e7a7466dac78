/**
 * Deletes the logs of removed actors, a few items between two groups, so that removing a mailbox
 * of a million items delays nobody. The store lists these logs, so that the next process continues.
 */
import { sweepItems } from "../../limits.ts"
import { firstKey, keysIn, readSpan } from "../engine/index.ts"
import { digits, endOf, garbageKey, lastNumber, logPrefix } from "../keys.ts"
import type { EmbeddedStore } from "./store.ts"

const GARBAGE = "garbage/"

export class LogSweeper {
  private readonly store: EmbeddedStore
  private readonly waiting = new Set<number>()
  private sweeping = false

  constructor(store: EmbeddedStore) {
    this.store = store
    store.onReopened(() => void this.resume())
  }

  /** Continues what an earlier process, or this one before a failed write, left undone. */
  async resume(): Promise<void> {
    const span = { gte: GARBAGE, lt: endOf(GARBAGE), limit: Infinity }
    try {
      const rows = await readSpan(this.store.database, span, false, false)
      for (const key of keysIn(rows, 0)) this.sweep(lastNumber(key))
    } catch {
      // The store is closed, or reopens and then resumes.
    }
  }

  /** Queues the log of this epoch. */
  sweep(epoch: number): void {
    this.waiting.add(epoch)
    if (!this.sweeping) this.next()
  }

  private next(): void {
    const [epoch] = this.waiting
    this.sweeping = epoch !== undefined
    if (epoch !== undefined) void this.step(epoch, 0)
  }

  private async step(epoch: number, from: number): Promise<void> {
    const prefix = logPrefix(epoch)
    try {
      // One seek skips the numbers that were removed before.
      const first = await firstKey(this.store.database, {
        gte: prefix + digits(from),
        lt: endOf(prefix)
      })
      if (first === undefined) {
        this.finish(epoch)
        return
      }
      const next = lastNumber(first) + sweepItems
      const span = { gte: first, lt: prefix + digits(next), limit: sweepItems }
      this.store.writer.clear({ _tag: "Clear", ...span }, (failed) => {
        if (failed) this.giveUp()
        else setImmediate(() => void this.step(epoch, next))
      })
    } catch {
      this.giveUp()
    }
  }

  private finish(epoch: number): void {
    this.store.writer.submit({
      prepare: (batch) => batch.remove(garbageKey(epoch)),
      durable: () => {
        this.waiting.delete(epoch)
        this.next()
      },
      failed: () => this.giveUp(),
      broken: () => this.giveUp()
    })
  }

  /** Until the store is reopened, by this process or the next. */
  private giveUp(): void {
    this.waiting.clear()
    this.sweeping = false
  }
}
