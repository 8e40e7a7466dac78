/** Writes the parts of an archive into an empty store, through the ports of the runtime. */
import { Effect } from "effect"
import { Readable } from "node:stream"
import { type ActorPart, type Address, type BlobsApi, type Commit, type ItemsPart, keyOf,
  type LogItem, type RecordChange, type RecordsApi, type StorageApi,
  StorageUnavailable } from "../../runtime/index.ts"
import { archiveGroupBytesMax, commitRemovals, concurrentGroups, concurrentSmallBlobs, groupActors,
  groupRecords, smallBlobBytes } from "../limits.ts"
import { BlobRemoved } from "./format.ts"
import { type ArchivePart, type BlobPart, groupItems } from "./parts.ts"

/** The empty store to fill. */
export interface ArchiveTarget {
  readonly storage: Pick<StorageApi, "commit">
  readonly records: Pick<RecordsApi, "write">
  readonly blobs: Pick<BlobsApi, "put">
}

/** Runs a limited number of tasks concurrently. After a task has failed, the next call fails. */
class TaskPool {
  private readonly running = new Set<Promise<void>>()
  private readonly limit: number
  private readonly failures: Array<unknown> = []

  constructor(limit: number) {
    this.limit = limit
  }

  /** Starts a task as soon as fewer than `limit` run. */
  async start(task: () => Promise<void>): Promise<void> {
    while (this.running.size >= this.limit) await Promise.race(this.running)
    if (this.failures.length > 0) throw this.failures[0]
    const running: Promise<void> = task()
      .catch((error: unknown) => void this.failures.push(error))
      .finally(() => this.running.delete(running))
    this.running.add(running)
  }

  async end(): Promise<void> {
    await Promise.all(this.running)
    if (this.failures.length > 0) throw this.failures[0]
  }
}

const emptyCommit = {
  state: undefined,
  head: 0,
  append: [],
  remove: [],
  timer: undefined,
  signals: [],
  consumedSignal: undefined,
  firedTimer: undefined
} as const

/** An actor whose log has several parts, of which some are written. */
interface LongLog {
  readonly address: Address
  revision: number
  head: number
}

/**
 * The state of an actor until the last part of its log is written. An actor without a state must
 * have no gaps in its log.
 */
const placeholder = ""

/** Writes parts. Small actors, small blobs and records are collected and written in groups. */
class StoreWriter {
  private readonly target: ArchiveTarget
  private readonly groups = new TaskPool(concurrentGroups)
  private readonly smallBlobs = new TaskPool(concurrentSmallBlobs)
  private commits: Array<Commit> = []
  private bytes = 0
  private changes: Array<RecordChange> = []
  /** The actor whose log is being written, if its log has several parts. */
  private longLog: LongLog | undefined

  constructor(target: ArchiveTarget) {
    this.target = target
  }

  async write(part: ArchivePart): Promise<void> {
    switch (part._tag) {
      case "Items":
        return this.writeItems(part)
      case "Actor":
        return this.writeActor(part)
      case "Record":
        this.changes.push({ table: part.table, key: part.key, value: part.value })
        return this.changes.length >= groupRecords ? this.flushRecords() : undefined
      case "Blob":
        return this.writeBlob(part)
    }
  }

  async end(): Promise<void> {
    await this.flushCommits()
    await this.flushRecords()
    await this.groups.end()
    await this.smallBlobs.end()
  }

  private async commit(group: ReadonlyArray<Commit>): Promise<ReadonlyArray<number>> {
    const outcomes = await Effect.runPromise(this.target.storage.commit(group))
    return outcomes.map((outcome, at) => {
      if (outcome._tag === "Committed") return outcome.revision
      const address = group[at]?.address
      throw new StorageUnavailable({
        detail: `${address && keyOf(address)} already exists, or occurs twice in the archive`
      })
    })
  }

  /** Appends to a log whose last part, which has the state, is still to come. */
  private async append(longLog: LongLog, items: ReadonlyArray<LogItem>): Promise<void> {
    for (const append of groupItems(items)) {
      const { address, revision: expected } = longLog
      const hasNoGap = expected === 0 &&
        append.every(({ n }, at) => n === longLog.head + 1 + at)
      const head = append.at(-1)?.n ?? longLog.head
      const state = hasNoGap ? undefined : placeholder
      const [revision = 0] = await this.commit([
        { ...emptyCommit, address, expected, state, head, append }
      ])
      longLog.revision = revision
      longLog.head = head
    }
  }

  /** The log that a part continues, or a new log. Throws if another actor's log is incomplete. */
  private longLogOf(address: Address): LongLog {
    const longLog = this.longLog ?? { address, revision: 0, head: 0 }
    if (keyOf(longLog.address) === keyOf(address)) return longLog
    throw new StorageUnavailable({ detail: `the log of ${keyOf(longLog.address)} is incomplete` })
  }

  private async writeItems({ address, items }: ItemsPart): Promise<void> {
    this.longLog = this.longLogOf(address)
    await this.append(this.longLog, items)
  }

  private async writeActor(part: ActorPart): Promise<void> {
    const { address, head, items, removed, state, timer } = part
    const isSmall = this.longLog === undefined && groupItems(items).length <= 1
    if (!isSmall || (state === undefined && head > 0)) return this.writeLongLog(part)
    if (state === undefined && timer === undefined) return
    this.commits.push({ ...emptyCommit, address, expected: 0, state, head, append: items, timer })
    this.bytes += items.reduce((sum, { value }) => sum + value.length, state?.length ?? 0)
    if (removed.length > 0) {
      throw new StorageUnavailable({ detail: "an actor without a log has removed items" })
    }
    if (this.commits.length < groupActors && this.bytes < archiveGroupBytesMax / concurrentGroups) {
      return
    }
    await this.flushCommits()
  }

  private async writeLongLog(part: ActorPart): Promise<void> {
    const { address, head, items, removed, state, timer } = part
    const longLog = this.longLogOf(address)
    this.longLog = undefined
    await this.append(longLog, items)
    const left = state === undefined ? [] : removed
    for (let at = 0; at < left.length; at += commitRemovals) {
      const remove = left.slice(at, at + commitRemovals)
      const common = { address, expected: longLog.revision, head: longLog.head, remove }
      const [revision = 0] = await this.commit([{ ...emptyCommit, ...common, state: placeholder }])
      longLog.revision = revision
    }
    const isGone = state === undefined && (removed.length > 0 || longLog.revision > 0)
    const common = { address, expected: longLog.revision, head, timer }
    await this.commit([{ ...emptyCommit, ...common, state: isGone ? null : state }])
  }

  private async flushCommits(): Promise<void> {
    const { commits } = this
    if (commits.length === 0) return
    this.commits = []
    this.bytes = 0
    await this.groups.start(async () => void await this.commit(commits))
  }

  private async flushRecords(): Promise<void> {
    const { changes } = this
    if (changes.length === 0) return
    this.changes = []
    // Not concurrently: if a key occurs twice, its last value counts.
    await Effect.runPromise(this.target.records.write(changes))
  }

  private async writeBlob(part: BlobPart): Promise<void> {
    if (part.lengthBytes > smallBlobBytes) return this.putBlob(part, part.bytes)
    const pieces: Array<Uint8Array> = []
    try {
      for await (const piece of part.bytes) pieces.push(Uint8Array.from(piece))
    } catch (error) {
      if (error instanceof BlobRemoved) return
      throw error
    }
    await this.smallBlobs.start(() => this.putBlob(part, Readable.from(pieces)))
  }

  private async putBlob(part: BlobPart, source: AsyncIterable<Uint8Array>): Promise<void> {
    let failure: unknown
    const watched = async function*(): AsyncGenerator<Uint8Array> {
      try {
        yield* source
      } catch (error) {
        failure = error
        throw error
      }
    }
    const { digest, id, lengthBytes } = part
    const put = this.target.blobs.put(id, watched(), Number.MAX_SAFE_INTEGER)
    const exit = await Effect.runPromiseExit(put)
    if (failure instanceof BlobRemoved) return
    if (failure !== undefined) throw failure
    const info = await Effect.runPromise(exit)
    if (info.digest === digest && info.lengthBytes === lengthBytes) return
    throw new StorageUnavailable({ detail: `blob ${id} does not match its digest` })
  }
}

/** Writes all parts. They are durable when it resolves. Throws failures of the ports and parts. */
export const writeParts = async (
  target: ArchiveTarget,
  parts: AsyncIterable<ArchivePart>,
  onPart: (part: ArchivePart) => void
): Promise<void> => {
  const writer = new StoreWriter(target)
  for await (const part of parts) {
    await writer.write(part)
    onPart(part)
  }
  await writer.end()
}
