/**
 * Deletes the logs of removed actors, a few items between two groups, so that removing a mailbox
 * of a million items holds up nobody. What is to be swept is in the store, so that it goes on
 * after a restart.
 */
import { sweepItems } from "../../limits.ts"
import { firstKey, readSpan } from "../engine/index.ts"
import { digits, endOf, garbageKey, lastNumber, logPrefix } from "../keys.ts"
import type { EmbeddedStore } from "./store.ts"

const GARBAGE = "garbage/"

export class Sweeper {
  private readonly store: EmbeddedStore
  private readonly waiting = new Set<number>()
  private sweeping = false

  constructor(store: EmbeddedStore) {
    this.store = store
    store.onReopened(() => void this.resume())
  }

  /** Takes up what an earlier process, or one before a failed write, left over. */
  async resume(): Promise<void> {
    const span = { gte: GARBAGE, lt: endOf(GARBAGE), limit: Infinity }
    try {
      const rows = await readSpan(this.store.database, span, false, false)
      for (let at = 0; at < rows.length; at += 2) this.sweep(lastNumber(rows[at] ?? ""))
    } catch {
      // The store is closed or reopens: the next start takes it up.
    }
  }

  /** Deletes the log of this epoch in due course. */
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
      // Numbers that are gone already are skipped by one seek, not step by step.
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

  /** Until the store is opened anew: by this process after a failed write, or by the next. */
  private giveUp(): void {
    this.waiting.clear()
    this.sweeping = false
  }
}
