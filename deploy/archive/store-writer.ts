/** Writes parts into an empty store, through its ports. */
import { Effect } from "effect"
import { type ActorPart, type Address, type BlobsApi, type Commit, type ItemsPart, keyOf,
  type LogItem, type RecordChange, type RecordsApi, type StorageApi,
  StorageUnavailable } from "../../runtime/index.ts"
import { archiveGroupBytesMax, commitRemovals, groupActors, groupRecords, groupsAtOnce,
  smallBlobBytes, smallBlobsAtOnce } from "../limits.ts"
import { BlobLost } from "./format.ts"
import { type ArchivePart, type BlobPart, piecesOf } from "./parts.ts"

/** What is written to. */
export interface ArchiveTarget {
  readonly storage: Pick<StorageApi, "commit">
  readonly records: Pick<RecordsApi, "write">
  readonly blobs: Pick<BlobsApi, "put">
}

/** So many works at once; what failed is told by whoever comes next, or at the end. */
class WorkerPool {
  private readonly working = new Set<Promise<void>>()
  private readonly most: number
  private readonly failures: Array<unknown> = []

  constructor(most: number) {
    this.most = most
  }

  /** Begins the work as soon as there is room. */
  async begin(work: () => Promise<void>): Promise<void> {
    while (this.working.size >= this.most) await Promise.race(this.working)
    if (this.failures.length > 0) throw this.failures[0]
    const one: Promise<void> = work()
      .catch((error: unknown) => void this.failures.push(error))
      .finally(() => this.working.delete(one))
    this.working.add(one)
  }

  async end(): Promise<void> {
    await Promise.all(this.working)
    if (this.failures.length > 0) throw this.failures[0]
  }
}

const nothing = {
  state: undefined,
  head: 0,
  append: [],
  remove: [],
  timer: undefined,
  signals: []
} as const

/** An actor whose log comes in parts. */
interface Long {
  readonly address: Address
  revision: number
  head: number
}

/** Stands for a state that is yet to come, so that a log with gaps can be written. */
const placeholder = ""

class Filler {
  private readonly target: ArchiveTarget
  private readonly groups = new WorkerPool(groupsAtOnce)
  private readonly smallBlobs = new WorkerPool(smallBlobsAtOnce)
  private commits: Array<Commit> = []
  private bytes = 0
  private changes: Array<RecordChange> = []
  private long: Long | undefined

  constructor(target: ArchiveTarget) {
    this.target = target
  }

  async take(part: ArchivePart): Promise<void> {
    switch (part._tag) {
      case "Items":
        return this.takeItems(part)
      case "Actor":
        return this.takeActor(part)
      case "Record":
        this.changes.push({ table: part.table, key: part.key, value: part.value })
        return this.changes.length >= groupRecords ? this.writeRecords() : undefined
      case "Blob":
        return this.takeBlob(part)
    }
  }

  async end(): Promise<void> {
    await this.writeCommits()
    await this.writeRecords()
    await this.groups.end()
    await this.smallBlobs.end()
  }

  private async commit(group: ReadonlyArray<Commit>): Promise<ReadonlyArray<number>> {
    const outcomes = await Effect.runPromise(this.target.storage.commit(group))
    return outcomes.map((outcome, at) => {
      if (outcome._tag === "Committed") return outcome.revision
      const of = group[at]?.address
      const detail = `${of === undefined ? "?" : keyOf(of)} is there already, or was there twice`
      throw new StorageUnavailable({ detail })
    })
  }

  /**
   * Appends to a log of which more comes; the state is written at the end. Without a state no
   * number may be left out.
   */
  private async append(long: Long, items: ReadonlyArray<LogItem>): Promise<void> {
    for (const append of piecesOf(items)) {
      const { address, revision: expected } = long
      const isWhole = expected === 0 && append.every(({ n }, at) => n === long.head + 1 + at)
      const head = append.at(-1)?.n ?? long.head
      const state = isWhole ? undefined : placeholder
      const [revision = 0] = await this.commit([
        { ...nothing, address, expected, state, head, append }
      ])
      long.revision = revision
      long.head = head
    }
  }

  private async takeItems({ address, items }: ItemsPart): Promise<void> {
    this.long ??= { address, revision: 0, head: 0 }
    if (keyOf(this.long.address) !== keyOf(address)) {
      throw new StorageUnavailable({ detail: `the log of ${keyOf(this.long.address)} has no end` })
    }
    await this.append(this.long, items)
  }

  private async takeActor(part: ActorPart): Promise<void> {
    const { address, head, items, removed, state, timer } = part
    const { long } = this
    const isSmall = long === undefined && piecesOf(items).length <= 1
    if (!isSmall || (state === undefined && head > 0)) return this.takeLong(part)
    if (state === undefined && timer === undefined) return
    this.commits.push({ ...nothing, address, expected: 0, state, head, append: items, timer })
    this.bytes += items.reduce((sum, { value }) => sum + value.length, state?.length ?? 0)
    if (removed.length > 0) throw new StorageUnavailable({ detail: "items removed of no log" })
    if (this.commits.length < groupActors && this.bytes < archiveGroupBytesMax / groupsAtOnce) {
      return
    }
    await this.writeCommits()
  }

  private async takeLong(part: ActorPart): Promise<void> {
    const { address, head, items, removed, state, timer } = part
    const long = this.long ?? { address, revision: 0, head: 0 }
    this.long = undefined
    if (keyOf(long.address) !== keyOf(address)) {
      throw new StorageUnavailable({ detail: `the log of ${keyOf(long.address)} has no end` })
    }
    await this.append(long, items)
    const left = state === undefined ? [] : removed
    for (let at = 0; at < left.length; at += commitRemovals) {
      const remove = left.slice(at, at + commitRemovals)
      const common = { address, expected: long.revision, head: long.head, remove }
      const [revision = 0] = await this.commit([{ ...nothing, ...common, state: placeholder }])
      long.revision = revision
    }
    const isGone = state === undefined && (removed.length > 0 || long.revision > 0)
    const text = isGone ? null : state
    await this.commit([{ ...nothing, address, expected: long.revision, state: text, head, timer }])
  }

  private async writeCommits(): Promise<void> {
    const { commits } = this
    if (commits.length === 0) return
    this.commits = []
    this.bytes = 0
    await this.groups.begin(async () => void await this.commit(commits))
  }

  private async writeRecords(): Promise<void> {
    const { changes } = this
    if (changes.length === 0) return
    this.changes = []
    // One after another: a key that comes twice counts as it comes last.
    await Effect.runPromise(this.target.records.write(changes))
  }

  private async takeBlob(part: BlobPart): Promise<void> {
    if (part.lengthBytes > smallBlobBytes) return this.putBlob(part, part.bytes)
    const pieces: Array<Uint8Array> = []
    try {
      for await (const piece of part.bytes) pieces.push(Uint8Array.from(piece))
    } catch (error) {
      if (error instanceof BlobLost) return
      throw error
    }
    await this.smallBlobs.begin(() => this.putBlob(part, again(pieces)))
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
    if (failure instanceof BlobLost) return
    if (failure !== undefined) throw failure
    const info = await Effect.runPromise(exit)
    if (info.digest === digest && info.lengthBytes === lengthBytes) return
    throw new StorageUnavailable({ detail: `blob ${id} has other bytes than its digest says` })
  }
}

async function* again(pieces: ReadonlyArray<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield* pieces
}

/** Writes all parts; durable when it is done. Throws what a port or the parts fail with. */
export const fill = async (
  target: ArchiveTarget,
  parts: AsyncIterable<ArchivePart>,
  seen: (part: ArchivePart) => void
): Promise<void> => {
  const filler = new Filler(target)
  for await (const part of parts) {
    await filler.take(part)
    seen(part)
  }
  await filler.end()
}
