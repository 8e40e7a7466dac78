/**
 * Writes records as atomic batches, one in flight at a time. Each batch also writes a fence key of
 * this node by compare-and-set. So a batch that arrives late, after it was sent again, cannot undo
 * what was written since.
 */
import { type StorageFailure, StorageFull, StorageUnavailable,
  ValueTooLarge } from "../../actor/index.ts"
import { batchMessagesMax, batchTargetMessages, giveUpMs, recordKeyBytesMax, recordMarkerTtl,
  retryDelayMs } from "../../limits.ts"
import type { RecordChange } from "../../ports/index.ts"
import { asStorageUnavailable, type NatsApi, wait } from "../connection/index.ts"
import { commitHeader, expectSequence, isFull, isMarker, isSequenceConflict, type NotStored,
  readLast, type StreamMessage, write, wrongSequenceCode } from "../stream/index.ts"
import { recordsKv, recordSubject } from "./record-keys.ts"

interface RecordJob {
  readonly changes: ReadonlyArray<RecordChange>
  /** The values that must be current; such a job is written by itself. */
  readonly expected: ReadonlyArray<RecordChange>
  readonly sinceMs: number
  /** `isStored`: false when the expected values were not current. */
  readonly done: (isStored: boolean) => void
  readonly failed: (failure: StorageFailure) => void
  abandoned: boolean
}

/** A key as it was read or written last; null: it did not exist. */
interface KeyVersion {
  readonly seq: number
  readonly value: string | null
}

/** Long enough that no batch can arrive later. */
const expiringLine = `Nats-TTL: ${recordMarkerTtl}\r\n`

const messageOf = ({ markerExpires, key, table, value }: RecordChange): StreamMessage => ({
  subject: recordSubject(table, key),
  data: value ?? "",
  headers: value === null
    ? `KV-Operation: DEL\r\n${markerExpires === true ? expiringLine : ""}`
    : ""
})

/** The expected keys as a stored batch has written them; its messages begin at `first`. */
const versionsOf = (
  expected: ReadonlyArray<RecordChange>,
  messages: ReadonlyMap<string, StreamMessage>,
  first: number
): Map<string, KeyVersion> => {
  const versions = new Map<string, KeyVersion>()
  if (expected.length === 0) return versions
  const wanted = new Set(expected.map(({ key, table }) => recordSubject(table, key)))
  let seq = first
  for (const [subject, { data, headers }] of messages) {
    const isThere = typeof data === "string" && !headers.includes("KV-Operation")
    if (wanted.has(subject) && isThere) versions.set(subject, { seq, value: data })
    seq++
  }
  return versions
}

/** A group that is being written. */
interface RecordBatch {
  readonly id: string
  readonly expected: ReadonlyArray<RecordChange>
  readonly messages: Map<string, StreamMessage>
  /** It may have been stored. */
  mayBeStored: boolean
}

const messagesOf = (group: ReadonlyArray<RecordJob>): Map<string, StreamMessage> =>
  new Map(
    group.flatMap(({ changes }) => changes.map(messageOf)).map((one) => [one.subject, one])
  )

export class RecordWriter {
  private readonly nats: NatsApi
  private readonly fence = `${recordsKv.prefix}_fence.${Math.random().toString(36).slice(2)}`
  private fenceSeq = 0
  private batches = 0
  /** The keys that the last conditional write left, which the next one is likely to expect. */
  private latest = new Map<string, KeyVersion>()
  private waiting: Array<RecordJob> = []
  private busy = false

  constructor(nats: NatsApi) {
    this.nats = nats
  }

  /** Why the store can never write these changes. */
  refusal(changes: ReadonlyArray<RecordChange>): StorageFailure | undefined {
    if (changes.length >= batchMessagesMax) {
      const detail = `${changes.length} records at once; the servers take ${batchMessagesMax - 1}`
      return new StorageFull({ detail })
    }
    const bytesMax = this.nats.dataBytesMax()
    for (const { key, table, value } of changes) {
      if (recordSubject(table, key).length > recordKeyBytesMax) {
        return new ValueTooLarge({ detail: `a key of ${key.length} characters in ${table}` })
      }
      if (Buffer.byteLength(value ?? "") > bytesMax) {
        return new ValueTooLarge({ detail: `a record of ${table} is larger than max_payload` })
      }
    }
    return undefined
  }

  submit(job: RecordJob): void {
    this.waiting.push(job)
    if (this.busy) return
    this.busy = true
    queueMicrotask(() => void this.run())
  }

  private async run(): Promise<void> {
    while (this.waiting.length > 0) await this.writeGroup(this.take())
    this.busy = false
  }

  private take(): Array<RecordJob> {
    const group: Array<RecordJob> = []
    let messages = 0
    let taken = 0
    for (const job of this.waiting) {
      messages += job.changes.length
      const isSeparate = job.expected.length > 0 ||
        group.some(({ expected }) => expected.length > 0)
      if (group.length > 0 && (isSeparate || messages > batchTargetMessages)) break
      taken++
      if (!job.abandoned) group.push(job)
    }
    this.waiting = this.waiting.slice(taken)
    return group
  }

  /** Writes until the outcome is known, or no caller waits. Never rejects. */
  private async writeGroup(group: ReadonlyArray<RecordJob>): Promise<void> {
    const startedMs = performance.now()
    const [{ expected = [] } = {}] = group
    const id = `${this.fence.slice(-11)}.${this.batches++}`
    const batch: RecordBatch = { id, expected, messages: messagesOf(group), mayBeStored: false }
    const fail = (failure: StorageFailure): void => {
      for (const { failed } of group) failed(failure)
    }
    while (group.some(({ abandoned }) => !abandoned)) {
      try {
        const outcome = await this.attempt(batch)
        if (typeof outcome === "boolean") {
          for (const { done } of group) done(outcome)
          return
        }
        // Another node has written: the next attempt reads what, and need not wait for it.
        const isOvertaken = outcome._tag === "Rejected" && outcome.code === wrongSequenceCode
        if (isOvertaken && performance.now() - startedMs <= giveUpMs) continue
        const { detail } = outcome
        const hasNoSpace = isFull(outcome)
        if (hasNoSpace && !batch.mayBeStored) return fail(new StorageFull({ detail }))
        const isOver = group.every(({ sinceMs }) => performance.now() - sinceMs > giveUpMs)
        if ((isOver && !batch.mayBeStored) || this.nats.nc.isClosed()) {
          return fail(new StorageUnavailable({ detail }))
        }
      } catch (error) {
        if (!batch.mayBeStored || this.nats.nc.isClosed()) return fail(asStorageUnavailable(error))
      }
      await wait(retryDelayMs)
    }
  }

  /** Whether the batch was stored, or why not. Rejects when the stream does not answer. */
  private async attempt(batch: RecordBatch): Promise<boolean | NotStored> {
    const { expected, id, messages } = batch
    if (expected.length > 0 && !await this.checkExpected(expected, messages)) {
      return batch.mayBeStored && await this.isStored(id)
    }
    const headers = `${expectSequence(this.fenceSeq)}${commitHeader}: ${id}\r\n${expiringLine}`
    const fence: StreamMessage = { subject: this.fence, data: "", headers }
    const written = await write(this.nats, [fence, ...messages.values()])
    if (written._tag === "Stored") {
      this.fenceSeq = written.first
      this.latest = versionsOf(expected, messages, written.first + 1)
      return true
    }
    batch.mayBeStored ||= written._tag === "Indeterminate"
    const isIndeterminate = written._tag === "Indeterminate" || isSequenceConflict(written.code)
    return isIndeterminate && await this.isStored(id) ? true : written
  }

  /**
   * Whether the expected values are current. If so, the messages of those keys expect the sequences
   * that were read, so no write can come between.
   */
  private async checkExpected(
    expected: ReadonlyArray<RecordChange>,
    messages: Map<string, StreamMessage>
  ): Promise<boolean> {
    const { latest } = this
    // If a version is outdated, the servers reject the batch, and the next attempt reads it.
    this.latest = new Map()
    for (const { key, table, value } of expected) {
      const subject = recordSubject(table, key)
      const message = messages.get(subject)
      const known = latest.get(subject)
      const version = known?.value === value ? known : await this.readVersion(subject)
      if (version.value !== value || message === undefined) return false
      const change = expectSequence(version.seq)
      const own = message.headers.replace(/^Nats-Expected-Last-Subject-Sequence: \d+\r\n/, "")
      messages.set(subject, { ...message, headers: change + own })
    }
    return true
  }

  private async readVersion(subject: string): Promise<KeyVersion> {
    const stored = await readLast(this.nats, recordsKv.stream, subject)
    const value = stored === undefined || isMarker(stored) ? null : stored.text()
    return { seq: stored?.seq ?? 0, value }
  }

  /** Whether the batch was stored, and the sequence of the fence. Rejects when unknown. */
  private async isStored(id: string): Promise<boolean> {
    const stored = await readLast(this.nats, recordsKv.stream, this.fence)
    this.fenceSeq = stored?.seq ?? 0
    return stored?.header(commitHeader) === id
  }
}
