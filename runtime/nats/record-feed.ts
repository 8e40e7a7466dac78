/** Messages of the stream of records on their way into the view, in whole batches. */
import type { JsMsg } from "@nats-io/jetstream"
import type { RecordChange } from "../ports/records.ts"
import { viewWriteMessages } from "./limits.ts"
import { recordOf } from "./record-keys.ts"

interface Fed {
  /** undefined: no record, but a key of the writers' own. */
  readonly change: RecordChange | undefined
  readonly seq: number
  readonly writtenMs: number
  /** The atomic batch that it is of, and whether it ends there. */
  readonly batch: string | undefined
  readonly isEnd: boolean
  /** Nothing came after it when it was sent. */
  readonly isLast: boolean
}

/** What the view takes in at once. */
export interface Piece {
  readonly changes: ReadonlyArray<RecordChange>
  readonly seq: number
  readonly writtenMs: number
  readonly isLast: boolean
}

const fedOf = (message: JsMsg): Fed => {
  const { headers, seq, subject } = message
  const { pending } = message.info
  const { key, table } = recordOf(subject)
  const isGone = headers?.has("KV-Operation") === true
  const batch = headers?.get("Nats-Batch-Id") || undefined
  return {
    change: table.startsWith("_")
      ? undefined
      : { table, key, value: isGone ? null : message.string() },
    seq,
    writtenMs: message.time.getTime(),
    batch,
    // Of the rest of a batch nothing may be left: keys are written again, and marks end.
    isEnd: batch === undefined || pending === 0 || headers?.has("Nats-Batch-Commit") === true,
    isLast: pending === 0
  }
}

export class RecordFeed {
  private waiting: Array<Fed> = []

  get size(): number {
    return this.waiting.length
  }

  clear(): void {
    this.waiting = []
  }

  take(message: JsMsg): void {
    this.waiting.push(fedOf(message))
  }

  /** The next piece: batches that are whole, but for one that is too large for a piece. */
  next(): Piece | undefined {
    const { waiting } = this
    let whole = 0
    for (const [at, { batch, isEnd }] of waiting.entries()) {
      if (at >= viewWriteMessages && whole > 0) break
      const after = waiting[at + 1]
      if (isEnd || (after !== undefined && after.batch !== batch)) whole = at + 1
    }
    const last = waiting[whole - 1]
    if (last === undefined) return undefined
    const { isLast, seq, writtenMs } = last
    const changes = waiting.slice(0, whole).flatMap(({ change }) =>
      change === undefined ? [] : [change]
    )
    this.waiting = waiting.slice(whole)
    return { changes, seq, writtenMs, isLast }
  }
}
