/** Hints of the status of notifications, for their listings: gathered, written together (A7). */
import { Effect, Latch } from "effect"
import type { RecordsApi } from "../../runtime/index.ts"
import { statusHintsGatherMs, statusHintsPerWriteMax, statusHintsWaitingMax,
  statusHintsWrittenMs } from "../limits.ts"
import type { NotificationStatus } from "./protocol.ts"

/** The table of outgoing mailboxes' listings: from an entry's key to a status hint. */
export const outgoingTable = "outgoing"

/** `<account>/<id>` of a keyed request until its notification is queued: the entry's key. */
export const outgoingKeysTable = "outgoing-keys"

/**
 * The hints of this node that wait to be written. There is one writer at a time, so that the later
 * one of two hints is kept. A hint is lost if the store fails, or if too many wait.
 */
export class StatusHints {
  private readonly records: Pick<RecordsApi, "write">
  private readonly waiting = new Map<string, NotificationStatus | null>()
  /** Open while no hint waits. */
  private readonly idle = Latch.makeUnsafe(true)
  private isWriting = false

  constructor(records: Pick<RecordsApi, "write">) {
    this.records = records
  }

  /** Adds a hint. The effect of the first one writes all that are added until it ends. */
  add(listingKey: string, status: NotificationStatus | null): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.waiting.size >= statusHintsWaitingMax && !this.waiting.has(listingKey)) {
        return Effect.void
      }
      this.waiting.set(listingKey, status)
      if (this.isWriting) return Effect.void
      this.isWriting = true
      this.idle.closeUnsafe()
      return Effect.ensuring(
        this.write(),
        Effect.sync(() => {
          this.isWriting = false
          this.idle.openUnsafe()
        })
      )
    })
  }

  /** Waits until the hints that were added are written, but not for ever. */
  written(): Effect.Effect<void> {
    return Effect.timeoutOrElse(this.idle.await, {
      duration: statusHintsWrittenMs,
      orElse: () => Effect.void
    })
  }

  private write(): Effect.Effect<void> {
    return Effect.sleep(statusHintsGatherMs).pipe(
      Effect.andThen(Effect.suspend(() => this.records.write(this.take()))),
      Effect.catch((failure) =>
        Effect.logWarning("hints of outgoing mailboxes were lost", failure)
      ),
      Effect.andThen(Effect.suspend(() => this.waiting.size === 0 ? Effect.void : this.write()))
    )
  }

  private take(): Parameters<RecordsApi["write"]>[0] {
    const taken = [...this.waiting].slice(0, statusHintsPerWriteMax)
    for (const [key] of taken) this.waiting.delete(key)
    return taken.map(([key, value]) => {
      const change = { table: outgoingTable, key, value }
      return value === null ? { ...change, markerExpires: true } : change
    })
  }
}
