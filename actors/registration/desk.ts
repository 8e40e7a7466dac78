/** What the pushes of one node share: what was read of mailboxes lately, and what is wanted. */
import type { LogItem } from "../../runtime/index.ts"
import { batchesCharsMax, batchFreshMs } from "../limits.ts"

/** Some changes of a mailbox, as a push carries them. */
export interface ChangeBatch {
  readonly items: ReadonlyArray<LogItem>
  /** Whether more follows. */
  readonly more: boolean
  /** The document of a push that carries them all. */
  document?: string
  /** The headers that all pushes of the mailbox have. */
  common?: Readonly<Record<string, string>>
}

interface Known {
  readonly batch: ChangeBatch
  readonly chars: number
  readonly untilMs: number
}

/**
 * The batches that were read last, for a short time: a mailbox's registrations push the same. An
 * item that has been removed meanwhile is pushed yet, and its removal after it.
 */
class Batches {
  private readonly known = new Map<string, Known>()
  private chars = 0

  get(key: string, nowMs: number): ChangeBatch | undefined {
    const found = this.known.get(key)
    // A clock that was set back makes nothing fresher.
    const isFresh = found !== undefined && nowMs < found.untilMs &&
      nowMs >= found.untilMs - batchFreshMs
    return isFresh ? found.batch : undefined
  }

  keep(key: string, batch: ChangeBatch, nowMs: number): void {
    const chars = batch.items.reduce((sum, { value }) => sum + value.length, 0)
    this.forget(key)
    this.known.set(key, { batch, chars, untilMs: nowMs + batchFreshMs })
    this.chars += chars
    for (const [first, { untilMs }] of this.known) {
      if (this.chars <= batchesCharsMax && untilMs > nowMs) return
      this.forget(first)
    }
  }

  private forget(key: string): void {
    this.chars -= this.known.get(key)?.chars ?? 0
    this.known.delete(key)
  }
}

interface Current {
  readonly callback: string
  readonly untilMs: number
}

/** The push of each registration here that waits or is under way, unless it was withdrawn. */
class Pushes {
  private readonly current = new Map<string, Current>()

  begin(id: string, push: Current): void {
    this.current.set(id, push)
  }

  isWanted(id: string, { untilMs }: Current): boolean {
    return this.current.get(id)?.untilMs === untilMs
  }

  /** The registration has ended, or moves to another callback. */
  withdraw(id: string, callback?: string): void {
    if (this.current.get(id)?.callback !== callback) this.current.delete(id)
  }

  end(id: string, push: Current): void {
    if (this.isWanted(id, push)) this.current.delete(id)
  }
}

export class MailboxReadCache {
  readonly batches = new Batches()
  readonly pushes = new Pushes()
}
