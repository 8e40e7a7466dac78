/**
 * Updates the view of the records from their stream, and stores its progress. A view that cannot
 * resume from its progress is cleared and filled from the beginning.
 */
import { type ConsumerMessages, DeliverPolicy, type JsMsg } from "@nats-io/jetstream"
import { viewCheckMs, viewFetchMessages, viewProgressMs, viewQueueMax, viewResumeMaxMs,
  viewRetryMaxMs, viewRetryMs, viewWriteMessages, viewWritesPerTurn } from "../../limits.ts"
import type { RecordChange, ViewApi } from "../../ports/index.ts"
import type { NatsApi } from "../connection/index.ts"
import { nextSequence, streamInfo, writtenAtMs } from "../stream/index.ts"
import { recordOf, recordsKv } from "./record-keys.ts"

/** Version of the view's keys and values; a view of another version is filled again. */
const VERSION = 1

/** The progress of a view. Times are ms since the epoch, by the servers' clocks. */
export interface ViewProgress {
  /** When the stream was created. */
  readonly created: string
  /** The last message in the view, and when it was written. */
  readonly seq: number
  readonly writtenMs: number
  /** When the view was last complete. */
  readonly completeAtMs: number
}

/** The stream's status from its leader. */
export interface StreamStatus {
  readonly created: string
  readonly firstSeq: number
  readonly lastSeq: number
  readonly nowMs: number
  /** When the message at the view's progress was written; undefined if it was deleted. */
  readonly writtenMs: number | undefined
}

export const encodeProgress = (note: ViewProgress): string =>
  JSON.stringify({ version: VERSION, ...note })

/** undefined: there is no progress, or it has another version. */
export const decodeProgress = (text: string | undefined): ViewProgress | undefined => {
  try {
    // This node wrote the text; the checks below reject a corrupted one.
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
 * Whether the view lacks only the messages after its progress. False if the stream is another one,
 * has lost its end, or has deleted every message up to the progress. Also false after so long that
 * markers of deleted keys may have expired.
 */
export const canResume = (note: ViewProgress, stream: StreamStatus): boolean =>
  note.created === stream.created &&
  note.seq <= stream.lastSeq &&
  (note.seq === 0 || note.seq >= stream.firstSeq) &&
  (stream.writtenMs === undefined || stream.writtenMs === note.writtenMs) &&
  stream.nowMs - note.completeAtMs <= viewResumeMaxMs

interface FeedMessage {
  /** undefined: the message is not a record but a fence or a read barrier. */
  readonly change: RecordChange | undefined
  readonly seq: number
  readonly writtenMs: number
  /** Its atomic batch, and whether it ends the batch. */
  readonly batch: string | undefined
  readonly isEnd: boolean
  /** No message followed when it was sent. */
  readonly isLast: boolean
}

/** Changes that the view stores together. */
export interface ViewBatch {
  readonly changes: ReadonlyArray<RecordChange>
  readonly seq: number
  readonly writtenMs: number
  readonly isLast: boolean
}

const feedMessage = (message: JsMsg): FeedMessage => {
  const { headers, seq, subject } = message
  const { pending } = message.info
  const { key, table } = recordOf(subject)
  const isDeletion = headers?.has("KV-Operation") === true
  const batch = headers?.get("Nats-Batch-Id") || undefined
  return {
    change: table.startsWith("_")
      ? undefined
      : { table, key, value: isDeletion ? null : message.string() },
    seq,
    writtenMs: message.time.getTime(),
    batch,
    // The rest of a batch may be deleted: keys are overwritten, and markers expire.
    isEnd: batch === undefined || pending === 0 || headers?.has("Nats-Batch-Commit") === true,
    isLast: pending === 0
  }
}

/** Messages that wait until the view stores them, as whole batches. */
export class RecordFeed {
  private waiting: Array<FeedMessage> = []

  get size(): number {
    return this.waiting.length
  }

  clear(): void {
    this.waiting = []
  }

  add(message: JsMsg): void {
    this.waiting.push(feedMessage(message))
  }

  /** Removes the next whole batches; only a batch that is too large is split. */
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

interface SequenceWaiter {
  readonly seq: number
  readonly resolve: (reached: boolean) => void
}

const { stream } = recordsKv

export class RecordView {
  private readonly nats: NatsApi
  private readonly store: ViewApi
  private readonly feed = new RecordFeed()
  private messages: ConsumerMessages | undefined
  private waiting: Array<SequenceWaiter> = []
  private running: Promise<void> | undefined
  private writing: Promise<void> | undefined
  private timer: NodeJS.Timeout | undefined
  private ended = false
  /** The content of the view must not be used. */
  private broken = false
  /** undefined until it is read. */
  private progress: ViewProgress | undefined
  private savedMs = 0
  private checkedSeq = -1
  /** The end of the stream when following began, and the servers' clock minus this one. */
  private target = { seq: 0, ms: 0, isBarrier: false }
  private clockMs = 0
  private isBehind = true
  private wake: (() => void) | undefined
  private retryMs = viewRetryMs
  /** Everything up to this sequence is in the view. */
  private reached = -1
  /** Counts rebuilds: a read during a rebuild may mix two views. */
  generation = 0
  /** The view was complete once. */
  isFilled = false
  /** The view is being filled from the beginning. */
  isFilling = false

  constructor(nats: NatsApi, store: ViewApi) {
    this.nats = nats
    this.store = store
  }

  get hasStarted(): boolean {
    return this.running !== undefined
  }

  start(): void {
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

  /** Fills the view again after a read or write of the view failed. */
  rebuild(): void {
    this.generation++
    this.broken = true
    this.reached = -1
    this.messages?.stop()
  }

  /** Fills the view again if its stream has another creation time. */
  checkStream(created: string): void {
    if (this.progress !== undefined && this.progress.created !== created) this.rebuild()
  }

  /** Waits until everything up to `seq` is in the view; false after `timeoutMs`. */
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
        // No server, no leader or a full disk: reads go to the leader meanwhile.
      }
      await this.writing
      this.feed.clear()
      // On a full disk, increase the pause before everything is fetched again.
      this.retryMs = this.broken && this.isFilling
        ? Math.min(2 * this.retryMs, viewRetryMaxMs)
        : viewRetryMs
      if (!this.ended) await this.pause(this.retryMs)
    }
    await this.saveProgress().catch(() => undefined)
    for (const { resolve } of this.waiting.splice(0)) resolve(false)
  }

  /** Waits this long, or until the view ends. */
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
    // A server that believes it leads may be cut off. The consumer will deliver the barrier.
    const barrier = await nats.readBarrier(stream)
    const { created, state, ts } = await streamInfo(nats, stream)
    const lastSeq = Math.max(state.last_seq, barrier?.seq ?? 0)
    const nowMs = Date.parse(ts)
    this.clockMs = nowMs - performance.now()
    this.target = { seq: barrier?.seq ?? lastSeq, ms: nowMs, isBarrier: barrier !== undefined }
    this.isBehind = true
    const note = await this.resumable()
    const status = { created, firstSeq: state.first_seq, lastSeq, nowMs }
    const seq = note?.seq ?? 0
    const writtenMs = seq === 0 ? undefined : await writtenAtMs(nats, stream, seq)
    if (note !== undefined && canResume(note, { ...status, writtenMs })) this.progress = note
    else {
      this.generation++
      this.reached = -1
      this.progress = undefined
      this.isFilling = true
      await store.clear()
      this.broken = false
      this.progress = { created, seq: 0, writtenMs: 0, completeAtMs: nowMs }
    }
    const from = this.progress.seq
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
        this.feed.add(message)
        if (this.feed.size > viewQueueMax) this.messages?.stop()
        this.writing ??= this.drain()
      }
    })
    // `end` or `rebuild` may have been called before there was anything to stop.
    if (this.mustStop) this.messages.stop()
    await this.messages.closed()
  }

  private get mustStop(): boolean {
    return this.ended || this.broken
  }

  /** The stored progress; undefined if the view must be filled again. */
  private async resumable(): Promise<ViewProgress | undefined> {
    if (this.broken) return undefined
    if (this.progress !== undefined) return this.progress
    try {
      return decodeProgress(this.store.note())
    } catch {
      return undefined
    }
  }

  private async drain(): Promise<void> {
    try {
      for (let batches = 0;; batches++) {
        // One turn of the event loop collects messages and lets other work run.
        if (batches % viewWritesPerTurn === 0) await new Promise((end) => setImmediate(end))
        const batch = this.broken ? undefined : this.feed.next()
        if (batch === undefined) return
        await this.storeBatch(batch)
      }
    } catch {
      this.rebuild()
    } finally {
      this.writing = undefined
    }
  }

  private async storeBatch({ changes, isLast, seq, writtenMs }: ViewBatch): Promise<void> {
    const { progress: note } = this
    const nowMs = performance.now() + this.clockMs
    // Markers of deleted keys may have expired.
    if (note === undefined || nowMs - note.completeAtMs > viewResumeMaxMs) {
      this.rebuild()
      return
    }
    const completeAtMs = Math.max(note.completeAtMs, writtenMs)
    this.progress = { ...note, seq, writtenMs, completeAtMs }
    // Read barriers alone need no write.
    if (changes.length > 0 || completeAtMs - this.savedMs > viewProgressMs) {
      await this.store.write(changes, encodeProgress(this.progress))
      this.savedMs = completeAtMs
    }
    if (this.broken) return
    this.advance(seq)
    const hasArrived = isLast || seq >= this.target.seq
    if (this.isBehind && hasArrived) void this.caughtUp().catch(() => undefined)
  }

  /**
   * The consumer has delivered all messages of its server, which may be behind. If the message at
   * the target was deleted, a read confirms that no message up to the target is left.
   */
  private async caughtUp(): Promise<void> {
    const { progress: note, target } = this
    if (note === undefined) return
    if (this.reached < target.seq) {
      if (target.isBarrier) return
      const next = await nextSequence(this.nats, stream, ">", note.seq + 1)
      if (next !== undefined && next <= target.seq) return
    }
    if (this.broken || this.progress?.created !== note.created) return
    this.isBehind = false
    this.isFilled = true
    this.isFilling = false
    this.progress = {
      ...this.progress,
      completeAtMs: Math.max(this.progress.completeAtMs, target.ms)
    }
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

  /** Compares the view with the stream. */
  private async check(): Promise<void> {
    const { progress: note, reached } = this
    if (note === undefined || reached < 0) return
    const { created, state, ts } = await streamInfo(this.nats, stream)
    if (this.progress !== note) return
    const isIdle = this.feed.size === 0 && this.writing === undefined
    const hasDiverged = created !== note.created || state.last_seq < note.seq
    const isStuck = isIdle && state.last_seq > reached && this.checkedSeq === reached
    this.checkedSeq = reached
    if (hasDiverged || isStuck) this.messages?.stop()
    else if (isIdle && state.last_seq <= reached) {
      this.progress = { ...note, completeAtMs: Math.max(note.completeAtMs, Date.parse(ts)) }
      if (this.progress.completeAtMs - this.savedMs > viewProgressMs) await this.saveProgress()
    }
  }

  private async saveProgress(): Promise<void> {
    const { progress: note } = this
    if (note === undefined || this.broken || this.writing !== undefined) return
    this.savedMs = note.completeAtMs
    await this.store.write([], encodeProgress(note))
  }
}
