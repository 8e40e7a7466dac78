/**
 * Feeds the view of the records from their stream, from where it is on, and tells how far it has
 * got. A view that cannot go on from there is cleared and filled from the beginning.
 */
import { type ConsumerMessages, DeliverPolicy, type JsMsg } from "@nats-io/jetstream"
import { viewCheckMs, viewFetchMessages, viewProgressMs, viewQueueMax, viewResumeMaxMs,
  viewRetryMaxMs, viewRetryMs, viewWriteMessages, viewWritesPerTurn } from "../../limits.ts"
import type { RecordChange, ViewApi } from "../../ports/index.ts"
import type { NatsApi } from "../connection/index.ts"
import { nextSequence, streamInfo, writtenAtMs } from "../stream/index.ts"
import { recordOf, recordsKv } from "./record-keys.ts"

/** Version of the view's keys and values; another one is not read. */
const VERSION = 1

/** Times are ms since the epoch, of the servers' clocks. */
export interface ViewProgress {
  /** When the stream was made. */
  readonly created: string
  /** The last message that was taken in, and when it was written. */
  readonly seq: number
  readonly writtenMs: number
  /** When the view was last known to hold all that there was. */
  readonly completeAtMs: number
}

/** What the leader says of the stream. */
export interface StreamStatus {
  readonly created: string
  readonly firstSeq: number
  readonly lastSeq: number
  readonly nowMs: number
  /** When the message of the note's sequence was written; undefined when it is there no more. */
  readonly writtenMs: number | undefined
}

export const encodeProgress = (note: ViewProgress): string =>
  JSON.stringify({ version: VERSION, ...note })

/** undefined: there is none, or not of this version. */
export const decodeProgress = (text: string | undefined): ViewProgress | undefined => {
  try {
    // This node's own text, unless it is corrupted: then its fields do not fit.
    const { version, ...note } = JSON.parse(text ?? "{}") as ViewProgress & {
      readonly version: number
    }
    const numbers = [note.seq, note.writtenMs, note.completeAtMs]
    return version === VERSION && numbers.every(Number.isFinite) ? note : undefined
  } catch {
    return undefined
  }
}

/**
 * Whether what comes after the note's sequence is all that the view lacks. Not of another stream,
 * nor of one that has lost its end and goes on otherwise; not where nothing is left of what the
 * view holds; and not after so long that marks of deleted keys may have ended.
 */
export const canResume = (note: ViewProgress, standing: StreamStatus): boolean =>
  note.created === standing.created &&
  note.seq <= standing.lastSeq &&
  (note.seq === 0 || note.seq >= standing.firstSeq) &&
  (standing.writtenMs === undefined || standing.writtenMs === note.writtenMs) &&
  standing.nowMs - note.completeAtMs <= viewResumeMaxMs

/* Messages of the stream of records on their way into the view, in whole batches. */

interface FeedMessage {
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
export interface ViewBatch {
  readonly changes: ReadonlyArray<RecordChange>
  readonly seq: number
  readonly writtenMs: number
  readonly isLast: boolean
}

const fedOf = (message: JsMsg): FeedMessage => {
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
  private waiting: Array<FeedMessage> = []

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
  next(): ViewBatch | undefined {
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

/* How far a view has got, as it is noted in it; and whether it can go on from there. Pure. */

interface Waiting {
  readonly seq: number
  readonly resolve: (reached: boolean) => void
}

const { stream } = recordsKv

export class RecordView {
  private readonly nats: NatsApi
  private readonly store: ViewApi
  private readonly feed = new RecordFeed()
  private messages: ConsumerMessages | undefined
  private waiting: Array<Waiting> = []
  private running: Promise<void> | undefined
  private writing: Promise<void> | undefined
  private timer: NodeJS.Timeout | undefined
  private ended = false
  /** What is in the view is not to be trusted. */
  private broken = false
  /** How far the view is; undefined until that is known. */
  private note: ViewProgress | undefined
  private notedMs = 0
  private checkedSeq = -1
  /** What the stream held when it was begun to be followed, and the servers' clock to this one. */
  private target = { seq: 0, ms: 0, isMark: false }
  private clockMs = 0
  private isBehind = true
  private wake: (() => void) | undefined
  private retryMs = viewRetryMs
  /** Everything up to this sequence is in the view. */
  private reached = -1
  /** How often it was given up: what was read over that may be of two views. */
  generation = 0
  /** It has held everything once. */
  isFilled = false
  /** It is being filled from the beginning. */
  isFilling = false

  constructor(nats: NatsApi, store: ViewApi) {
    this.nats = nats
    this.store = store
  }

  get isBegun(): boolean {
    return this.running !== undefined
  }

  begin(): void {
    if (this.running !== undefined || this.ended) return
    this.running = this.run()
    this.timer = setInterval(() => void this.check().catch(() => undefined), viewCheckMs)
    this.timer.unref()
  }

  async end(): Promise<void> {
    this.ended = true
    clearInterval(this.timer)
    this.messages?.stop()
    this.wake?.()
    for (const { resolve } of this.waiting.splice(0)) resolve(false)
    await this.running
  }

  /** What was read from it failed: it is made anew. */
  rebuild(): void {
    this.generation++
    this.broken = true
    this.reached = -1
    this.messages?.stop()
  }

  /** What it holds counts only where it is of the stream that was made then. */
  isOf(created: string): void {
    if (this.note !== undefined && this.note.created !== created) this.rebuild()
  }

  /** Whether everything up to `seq` is in the view before the time is over. */
  async reach(seq: number, timeoutMs: number): Promise<boolean> {
    if (this.reached >= seq) return true
    if (this.ended || timeoutMs <= 0) return false
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), timeoutMs)
      this.waiting.push({
        seq,
        resolve: (reached) => {
          clearTimeout(timer)
          resolve(reached)
        }
      })
    })
  }

  private async run(): Promise<void> {
    while (!this.ended && !this.nats.nc.isClosed()) {
      try {
        await this.follow()
      } catch {
        // The servers are away, the stream has no leader, the disk is full: the leader is asked.
      }
      await this.writing
      this.feed.clear()
      // What cannot be kept, on a disk that is full, is not fetched all the while.
      this.retryMs = this.broken && this.isFilling
        ? Math.min(2 * this.retryMs, viewRetryMaxMs)
        : viewRetryMs
      if (!this.ended) await this.pause(this.retryMs)
    }
    await this.keepNote().catch(() => undefined)
    for (const { resolve } of this.waiting.splice(0)) resolve(false)
  }

  /** Until the time is over, or the view is no longer wanted. */
  private pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms)
      this.wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  private async follow(): Promise<void> {
    const { nats, store } = this
    // Who says that it leads may have been cut off. A mark will be brought, or one after it.
    const mark = await nats.readBarrier(stream)
    const { created, state, ts } = await streamInfo(nats, stream)
    const lastSeq = Math.max(state.last_seq, mark?.seq ?? 0)
    const nowMs = Date.parse(ts)
    this.clockMs = nowMs - Date.now()
    this.target = { seq: mark?.seq ?? lastSeq, ms: nowMs, isMark: mark !== undefined }
    this.isBehind = true
    const note = await this.held()
    const standing = { created, firstSeq: state.first_seq, lastSeq, nowMs }
    const seq = note?.seq ?? 0
    const writtenMs = seq === 0 ? undefined : await writtenAtMs(nats, stream, seq)
    if (note !== undefined && canResume(note, { ...standing, writtenMs })) this.note = note
    else {
      this.generation++
      this.reached = -1
      this.note = undefined
      this.isFilling = true
      await store.clear()
      this.broken = false
      this.note = { created, seq: 0, writtenMs: 0, completeAtMs: nowMs }
    }
    const from = this.note.seq
    this.advance(from)
    const consumer = await nats.js.consumers.get(stream, {
      deliver_policy: DeliverPolicy.StartSequence,
      opt_start_seq: from + 1
    })
    const { num_pending: pending } = await consumer.info(true)
    if (this.ended) return
    if (pending === 0) void this.caughtUp().catch(() => undefined)
    this.messages = await consumer.consume({
      max_messages: viewFetchMessages,
      callback: (message) => {
        this.feed.take(message)
        if (this.feed.size > viewQueueMax) this.messages?.stop()
        this.writing ??= this.drain()
      }
    })
    await this.messages.closed()
  }

  /** What is noted of the view, if it may be trusted. */
  private async held(): Promise<ViewProgress | undefined> {
    if (this.broken) return undefined
    if (this.note !== undefined) return this.note
    try {
      return decodeProgress(this.store.note())
    } catch {
      return undefined
    }
  }

  private async drain(): Promise<void> {
    try {
      for (let pieces = 0;; pieces++) {
        // What arrives in the same turn of the event loop goes together, and others have theirs.
        if (pieces % viewWritesPerTurn === 0) await new Promise((end) => setImmediate(end))
        const piece = this.broken ? undefined : this.feed.next()
        if (piece === undefined) return
        await this.takeIn(piece)
      }
    } catch {
      this.rebuild()
    } finally {
      this.writing = undefined
    }
  }

  private async takeIn({ changes, isLast, seq, writtenMs }: ViewBatch): Promise<void> {
    const { note } = this
    const nowMs = Date.now() + this.clockMs
    // Marks of what was deleted meanwhile may be gone.
    if (note === undefined || nowMs - note.completeAtMs > viewResumeMaxMs) {
      this.rebuild()
      return
    }
    const completeAtMs = Math.max(note.completeAtMs, writtenMs)
    this.note = { ...note, seq, writtenMs, completeAtMs }
    // Marks of readers come all the while, and alone are no reason to write.
    if (changes.length > 0 || completeAtMs - this.notedMs > viewProgressMs) {
      await this.store.write(changes, encodeProgress(this.note))
      this.notedMs = completeAtMs
    }
    if (this.broken) return
    this.advance(seq)
    const isThere = isLast || seq >= this.target.seq
    if (this.isBehind && isThere) void this.caughtUp().catch(() => undefined)
  }

  /**
   * The consumer has brought what it knows of, at a server that may be behind. Where the stream's
   * end was something that is gone, a server that is alone tells that nothing is left to come.
   */
  private async caughtUp(): Promise<void> {
    const { note, target } = this
    if (note === undefined) return
    if (this.reached < target.seq) {
      if (target.isMark) return
      const next = await nextSequence(this.nats, stream, ">", note.seq + 1)
      if (next !== undefined && next <= target.seq) return
    }
    if (this.broken || this.note?.created !== note.created) return
    this.isBehind = false
    this.isFilled = true
    this.isFilling = false
    this.note = { ...this.note, completeAtMs: Math.max(this.note.completeAtMs, target.ms) }
    this.advance(target.seq)
  }

  private advance(seq: number): void {
    this.reached = Math.max(this.reached, seq)
    if (this.waiting.length === 0) return
    this.waiting = this.waiting.filter(({ resolve, seq: wanted }) => {
      if (wanted > this.reached) return true
      resolve(true)
      return false
    })
  }

  /** Looks whether the view stands where the stream does. */
  private async check(): Promise<void> {
    const { note, reached } = this
    if (note === undefined || reached < 0) return
    const { created, state, ts } = await streamInfo(this.nats, stream)
    if (this.note !== note) return
    const isIdle = this.feed.size === 0 && this.writing === undefined
    const isOther = created !== note.created || state.last_seq < note.seq
    const isStuck = isIdle && state.last_seq > reached && this.checkedSeq === reached
    this.checkedSeq = reached
    if (isOther || isStuck) this.messages?.stop()
    else if (isIdle && state.last_seq <= reached) {
      this.note = { ...note, completeAtMs: Math.max(note.completeAtMs, Date.parse(ts)) }
      if (this.note.completeAtMs - this.notedMs > viewProgressMs) await this.keepNote()
    }
  }

  private async keepNote(): Promise<void> {
    const { note } = this
    if (note === undefined || this.broken || this.writing !== undefined) return
    this.notedMs = note.completeAtMs
    await this.store.write([], encodeProgress(note))
  }
}
