/**
 * Writes records: what waits goes as one atomic batch, one under way at a time. Each batch writes
 * a key of this node's own by compare-and-set, so that what arrives late, after it was sent again,
 * cannot undo what was written since.
 */
import { type StorageFailure, StorageFull, StorageUnavailable } from "../../actor/index.ts"
import { batchMessagesMax, batchTargetMessages, giveUpMs, headerReserveBytes, recordKeyBytesMax,
  recordMarkerTtl, retryDelayMs } from "../../limits.ts"
import type { RecordChange } from "../../ports/index.ts"
import { asStorageUnavailable, type NatsApi, wait } from "../connection/index.ts"
import { COMMIT, isMarker } from "../storage/index.ts"
import { expectSequence, isFull, isSequenceConflict, type NotStored, readLast, type StreamMessage,
  write } from "../stream/index.ts"
import { recordsKv, recordSubject } from "./record-keys.ts"

interface Job {
  readonly changes: ReadonlyArray<RecordChange>
  /** What must still be so; such a job is written by itself. */
  readonly expected: ReadonlyArray<RecordChange>
  readonly sinceMs: number
  /** `isKept`: what was expected was so. */
  readonly done: (isKept: boolean) => void
  readonly failed: (failure: StorageFailure) => void
  abandoned: boolean
}

/** A key as it was when it was read or written; null: it was not there. */
interface Seen {
  readonly seq: number
  readonly value: string | null
}

/** Lasting long enough that nothing can arrive so late. */
const FADING = `Nats-TTL: ${recordMarkerTtl}\r\n`

const messageOf = ({ fades, key, table, value }: RecordChange): StreamMessage => ({
  subject: recordSubject(table, key),
  data: value ?? "",
  headers: value === null ? `KV-Operation: DEL\r\n${fades === true ? FADING : ""}` : ""
})

/** What was expected, as a batch has written it whose messages begin at a sequence. */
const seenOf = (
  expected: ReadonlyArray<RecordChange>,
  messages: ReadonlyMap<string, StreamMessage>,
  first: number
): Map<string, Seen> => {
  const seen = new Map<string, Seen>()
  if (expected.length === 0) return seen
  const wanted = new Set(expected.map(({ key, table }) => recordSubject(table, key)))
  let seq = first
  for (const [subject, { data, headers }] of messages) {
    const isThere = typeof data === "string" && !headers.includes("KV-Operation")
    if (wanted.has(subject) && isThere) seen.set(subject, { seq, value: data })
    seq++
  }
  return seen
}

/** A group on its way. */
interface Going {
  readonly id: string
  readonly expected: ReadonlyArray<RecordChange>
  readonly messages: Map<string, StreamMessage>
  /** It may have been kept. */
  isDoubtful: boolean
}

const messagesOf = (group: ReadonlyArray<Job>): Map<string, StreamMessage> =>
  new Map(
    group.flatMap(({ changes }) => changes.map(messageOf)).map((one) => [one.subject, one])
  )

export class RecordWriter {
  private readonly nats: NatsApi
  private readonly fence = `${recordsKv.prefix}_fence.${Math.random().toString(36).slice(2)}`
  private fenceSeq = 0
  private batches = 0
  /** What was expected last and written, which is likely to be expected as it is now. */
  private latest = new Map<string, Seen>()
  private waiting: Array<Job> = []
  private busy = false

  constructor(nats: NatsApi) {
    this.nats = nats
  }

  /** Why these changes cannot be written, ever. */
  refusal(changes: ReadonlyArray<RecordChange>): StorageFailure | undefined {
    if (changes.length >= batchMessagesMax) {
      const detail = `${changes.length} records at once; the servers take ${batchMessagesMax - 1}`
      return new StorageFull({ detail })
    }
    const bytesMax = (this.nats.nc.info?.max_payload ?? Infinity) - headerReserveBytes
    for (const { key, table, value } of changes) {
      if (recordSubject(table, key).length > recordKeyBytesMax) {
        return new StorageFull({ detail: `a key of ${key.length} characters in ${table}` })
      }
      if (Buffer.byteLength(value ?? "") > bytesMax) {
        return new StorageFull({ detail: `a record of ${table} is larger than max_payload` })
      }
    }
    return undefined
  }

  submit(job: Job): void {
    this.waiting.push(job)
    if (this.busy) return
    this.busy = true
    queueMicrotask(() => void this.run())
  }

  private async run(): Promise<void> {
    while (this.waiting.length > 0) await this.writeGroup(this.take())
    this.busy = false
  }

  private take(): Array<Job> {
    const group: Array<Job> = []
    let messages = 0
    let taken = 0
    for (const job of this.waiting) {
      messages += job.changes.length
      const isApart = job.expected.length > 0 || group.some(({ expected }) => expected.length > 0)
      if (group.length > 0 && (isApart || messages > batchTargetMessages)) break
      taken++
      if (!job.abandoned) group.push(job)
    }
    this.waiting = this.waiting.slice(taken)
    return group
  }

  /** Writes until it is known what has become of it, or nobody waits any more. Never rejects. */
  private async writeGroup(group: ReadonlyArray<Job>): Promise<void> {
    const [{ expected = [] } = {}] = group
    const id = `${this.fence.slice(-11)}.${this.batches++}`
    const going: Going = { id, expected, messages: messagesOf(group), isDoubtful: false }
    const fail = (failure: StorageFailure): void => {
      for (const { failed } of group) failed(failure)
    }
    while (group.some(({ abandoned }) => !abandoned)) {
      try {
        const outcome = await this.attempt(going)
        if (typeof outcome === "boolean") {
          for (const { done } of group) done(outcome)
          return
        }
        const { detail } = outcome
        const isFullNow = isFull(outcome)
        if (isFullNow && !going.isDoubtful) return fail(new StorageFull({ detail }))
        const isOver = group.every(({ sinceMs }) => performance.now() - sinceMs > giveUpMs)
        if ((isOver && !going.isDoubtful) || this.nats.nc.isClosed()) {
          return fail(new StorageUnavailable({ detail }))
        }
      } catch (error) {
        // Nobody could be asked, for long: that is no answer.
        if (!going.isDoubtful || this.nats.nc.isClosed()) return fail(asStorageUnavailable(error))
      }
      await wait(retryDelayMs)
    }
  }

  /** Whether it was kept, or what was said instead. Rejects where nobody can be asked. */
  private async attempt(going: Going): Promise<boolean | NotStored> {
    const { expected, id, messages } = going
    if (expected.length > 0 && !await this.expect(expected, messages)) {
      return going.isDoubtful && await this.isKept(id)
    }
    const headers = `${expectSequence(this.fenceSeq)}${COMMIT}: ${id}\r\n${FADING}`
    const fence: StreamMessage = { subject: this.fence, data: "", headers }
    const written = await write(this.nats, [fence, ...messages.values()])
    if (written._tag === "Stored") {
      this.fenceSeq = written.first
      this.latest = seenOf(expected, messages, written.first + 1)
      return true
    }
    going.isDoubtful ||= written._tag === "Indeterminate"
    const isUnsure = written._tag === "Indeterminate" || isSequenceConflict(written.code)
    return isUnsure && await this.isKept(id) ? true : written
  }

  /**
   * Whether what is expected is so. Then the messages of those keys compare the sequences that were
   * read, so that nothing can come between.
   */
  private async expect(
    expected: ReadonlyArray<RecordChange>,
    messages: Map<string, StreamMessage>
  ): Promise<boolean> {
    const { latest } = this
    // Where it is not so any more the servers refuse the batch, and then it is read.
    this.latest = new Map()
    for (const { key, table, value } of expected) {
      const subject = recordSubject(table, key)
      const message = messages.get(subject)
      const known = latest.get(subject)
      const seen = known?.value === value ? known : await this.see(subject)
      if (seen.value !== value || message === undefined) return false
      const change = expectSequence(seen.seq)
      const own = message.headers.replace(/^Nats-Expected-Last-Subject-Sequence: \d+\r\n/, "")
      messages.set(subject, { ...message, headers: change + own })
    }
    return true
  }

  private async see(subject: string): Promise<Seen> {
    const stored = await readLast(this.nats, recordsKv.stream, subject)
    const value = stored === undefined || isMarker(stored) ? null : stored.text()
    return { seq: stored?.seq ?? 0, value }
  }

  /** Whether the batch is there; the next one goes upon what there is. Rejects when unknown. */
  private async isKept(id: string): Promise<boolean> {
    const stored = await readLast(this.nats, recordsKv.stream, this.fence)
    this.fenceSeq = stored?.seq ?? 0
    return stored?.header(COMMIT) === id
  }
}
