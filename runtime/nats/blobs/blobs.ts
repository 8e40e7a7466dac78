/**
 * The blob port on JetStream: chunks of bytes in the KV bucket `blobs`, and for each blob a head
 * that names its chunks. One write of the head creates, replaces or removes the whole blob.
 */
import { Effect, Layer } from "effect"
import { BlobAborted, BlobMissing, BlobTooLarge, StorageCorrupted, type StorageFailure, StorageFull,
  StorageUnavailable } from "../../actor/index.ts"
import { blobGiveUpMs, blobsBucket, natsBlobChunkBytes, retryDelayMs } from "../../limits.ts"
import { type BlobInfo, Blobs, type BlobsApi, type ByteRange } from "../../ports/index.ts"
import { asStorageUnavailable, Nats, type NatsApi, retryUntilDeadline,
  wait } from "../connection/index.ts"
import { type BucketFailure, callApi, expectSequence, IdPager, isFull, listSubjects, openBucket,
  readLastOfMany, write } from "../stream/index.ts"
import { BlobGarbageCollector, type BlobGarbageTimes, blobGarbageTimes } from "./blob-garbage.ts"
import { begunAtMs, blobsKv, type Head, headsFilter, headSubject, idOfHead, newSet,
  parseHead } from "./blob-keys.ts"
import { findHead, type FoundBlob, readBlob, storeBlob } from "./blob-transfer.ts"

const asFailure = (error: unknown): StorageFailure =>
  error instanceof StorageFull || error instanceof StorageCorrupted
    ? error
    : asStorageUnavailable(error)

const attempt = <A>(call: () => Promise<A>): Effect.Effect<A, StorageFailure> =>
  Effect.tryPromise({ try: call, catch: asFailure })

class NatsBlobs {
  private readonly nats: NatsApi
  private readonly settledMs: number
  readonly garbage: BlobGarbageCollector
  readonly ids = new IdPager<string>((_, after) => this.list(after), async (ids) => ids)
  readonly settled = new IdPager<string>(
    (_, after) => this.list(after),
    (ids) => this.settledOf(ids)
  )

  constructor(nats: NatsApi, times: BlobGarbageTimes) {
    this.nats = nats
    this.settledMs = times.settledMs
    this.garbage = new BlobGarbageCollector(nats, times)
  }

  private chunkBytes(): number {
    return Math.max(1, Math.min(natsBlobChunkBytes, this.nats.dataBytesMax()))
  }

  async store(
    id: string,
    source: AsyncIterable<Uint8Array>,
    bytesMax: number,
    signal: AbortSignal
  ): Promise<Head> {
    const set = newSet(Date.now())
    const chunkBytes = this.chunkBytes()
    try {
      const info = await storeBlob(this.nats, { id, set }, chunkBytes, source, bytesMax, signal)
      return { ...info, set, chunkBytes }
    } catch (error) {
      this.garbage.discard({ id, set })
      throw error
    }
  }

  /**
   * Writes the head. All attempts have the same message id, so the servers store at most one of
   * them. If the answer to a stored attempt was lost, the servers report it to the next attempt.
   */
  async writeHead(id: string, head: Head): Promise<BlobInfo> {
    const untilMs = performance.now() + blobGiveUpMs
    const isOver = () => performance.now() > untilMs || this.nats.nc.isClosed()
    const data = JSON.stringify(head)
    let before: FoundBlob | undefined
    let mayBeStored = false
    for (;; await wait(retryDelayMs)) {
      const found = await retryUntilDeadline(() => findHead(this.nats, id), blobGiveUpMs)
      if (found?.head.set === head.set) break
      before = found
      const headers = `Nats-Msg-Id: ${head.set}\r\n${expectSequence(found?.seq ?? 0)}`
      const written = await write(this.nats, [{ subject: headSubject(id), data, headers }])
      if (written._tag === "Stored") break
      const { detail } = written
      mayBeStored ||= written._tag === "Indeterminate"
      const full = isFull(written)
      if (full || isOver()) {
        if (!mayBeStored) this.garbage.discard({ id, set: head.set })
        throw full ? new StorageFull({ detail }) : new StorageUnavailable({ detail })
      }
    }
    this.deleteChunks(id, before)
    return { lengthBytes: head.lengthBytes, digest: head.digest }
  }

  private deleteChunks(id: string, found: FoundBlob | undefined): void {
    if (found !== undefined) {
      this.garbage.deleteAfterReaders({ id, set: found.head.set }, found.head.lengthBytes)
    }
  }

  async open(id: string, range: ByteRange | undefined): Promise<AsyncIterable<Uint8Array>> {
    const found = await findHead(this.nats, id)
    if (found === undefined) throw new BlobMissing({ id })
    return readBlob(this.nats, id, found.head, range)
  }

  async info(id: string): Promise<BlobInfo | undefined> {
    const found = await findHead(this.nats, id)
    return found && { lengthBytes: found.head.lengthBytes, digest: found.head.digest }
  }

  /** Deletes the head that it finds, and no later one. */
  async remove(id: string): Promise<void> {
    const found = await findHead(this.nats, id)
    if (found === undefined) return
    const upTo = { filter: headSubject(id), seq: found.seq + 1 }
    await retryUntilDeadline(() => callApi(this.nats, `STREAM.PURGE.${blobsKv.stream}`, upTo))
    this.deleteChunks(id, found)
  }

  /** The ids above `after`, ascending, as the subjects of heads are listed. */
  private async *list(after: string | undefined): AsyncGenerator<ReadonlyArray<string>> {
    for await (const { subjects } of listSubjects(this.nats, blobsKv.stream, headsFilter)) {
      const ids = subjects.map(idOfHead)
      yield after === undefined ? ids : ids.filter((id) => id > after)
    }
  }

  /** The blobs whose upload began so long ago that no unfinished commit can name them. */
  private async settledOf(ids: ReadonlyArray<string>): Promise<ReadonlyArray<string>> {
    const begunBeforeMs = Date.now() - this.settledMs
    const heads = await readLastOfMany(this.nats, blobsKv.stream, ids.map(headSubject), 0)
    const settled = heads.flatMap((stored) => {
      const id = idOfHead(stored.subject)
      return begunAtMs({ id, set: parseHead(stored.text()).set }) <= begunBeforeMs ? [id] : []
    })
    return settled.sort()
  }
}

const apiOf = (blobs: NatsBlobs): BlobsApi => ({
  put: (id, source, bytesMax) =>
    Effect.tryPromise({
      try: (signal) => blobs.store(id, source, bytesMax, signal),
      catch: (error) =>
        error instanceof BlobTooLarge || error instanceof BlobAborted ? error : asFailure(error)
    }).pipe(
      Effect.flatMap((head) => Effect.uninterruptible(attempt(() => blobs.writeHead(id, head))))
    ),
  open: (id, range) =>
    Effect.tryPromise({
      try: () => blobs.open(id, range),
      catch: (error) => error instanceof BlobMissing ? error : asFailure(error)
    }),
  info: (id) => attempt(() => blobs.info(id)),
  remove: (id) => Effect.uninterruptible(attempt(() => blobs.remove(id))),
  scan: (after, limit) => attempt(() => blobs.ids.page("", after, limit)),
  scanSettled: (after, limit) => attempt(() => blobs.settled.page("", after, limit)),
  // This port marks no blob as prepared: that would cost one more write for each upload.
  confirm: () => Effect.void
})

/** The blob port; makes its stream where it does not exist. */
export const natsBlobs = (
  times: BlobGarbageTimes = blobGarbageTimes
): Layer.Layer<Blobs, BucketFailure, Nats> =>
  Layer.effect(
    Blobs,
    Effect.gen(function*() {
      const nats = yield* Nats
      yield* openBucket(nats, blobsBucket)
      const blobs = yield* Effect.acquireRelease(
        Effect.sync(() => new NatsBlobs(nats, times)),
        ({ garbage }) => Effect.sync(() => garbage.end())
      )
      return apiOf(blobs)
    })
  )
