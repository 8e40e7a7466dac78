/**
 * Chunks that no head names: of blobs that were removed or replaced, deleted when whoever reads
 * them has had time to come to the end, and of uploads that came to nothing. What a node leaves
 * behind as it ends, others find by a sweep.
 */
import { blobClockSkewMs, blobGarbageMax, blobOrphansMax, blobPurgeIntervalMs, blobPurgesInFlight,
  blobReadGraceMaxMs, blobReadGraceMs, blobReadRateMinBytesPerMs, blobSweepIntervalMs,
  blobUploadMaxMs, writeTimeoutMs } from "../../limits.ts"
import { type NatsApi, retryUntilDeadline } from "../connection/index.ts"
import { callApi, listSubjects, pagesOf, readLastOfMany } from "../stream/index.ts"
import { begunAtMs, blobsKv, type ChunkSet, chunksFilter, firstChunksFilter, headSubject, idOfHead,
  parseHead, setOfChunk } from "./blob-keys.ts"
import { findHead } from "./blob-transfer.ts"

export interface BlobGarbageTimes {
  /** How long removed chunks stay at least, ms. */
  readonly lingerMs: number
  /** From sweep to sweep, ms. */
  readonly sweepMs: number
  /** Chunks are left over only when their upload began so long ago, ms. */
  readonly orphanMs: number
}

export const blobGarbageTimes: BlobGarbageTimes = {
  lingerMs: blobReadGraceMs,
  sweepMs: blobSweepIntervalMs,
  orphanMs: blobUploadMaxMs + blobClockSkewMs
}

const keyOf = ({ id, set }: ChunkSet): string => `${id}.${set}`

export class BlobGarbageCollector {
  private readonly nats: NatsApi
  private readonly times: BlobGarbageTimes
  /** What is to be deleted, and when. */
  private readonly leaving = new Map<ChunkSet, number>()
  /** What the last sweep found. */
  private orphans = new Set<string>()
  private readonly timers: Array<NodeJS.Timeout>
  private isPurging = false
  private isSweeping = false
  private isOver = false

  constructor(nats: NatsApi, times: BlobGarbageTimes) {
    this.nats = nats
    this.times = times
    const sweep = (): void => void this.sweep().catch(() => undefined)
    // Nodes that start together sweep at different times.
    const first = setTimeout(sweep, Math.random() * times.sweepMs)
    this.timers = [
      first,
      setInterval(sweep, times.sweepMs),
      setInterval(() => void this.purgeDue(), blobPurgeIntervalMs)
    ]
    for (const timer of this.timers) timer.unref()
  }

  end(): void {
    this.isOver = true
    for (const timer of this.timers) clearTimeout(timer)
  }

  /** Chunks of a blob that was removed or replaced. */
  linger(chunks: ChunkSet, lengthBytes: number): void {
    const slowestMs = lengthBytes / blobReadRateMinBytesPerMs
    this.leaveIn(chunks, Math.min(this.times.lingerMs + slowestMs, blobReadGraceMaxMs))
  }

  /** Chunks that nobody has seen; some may be on their way still. */
  discard(chunks: ChunkSet): void {
    this.leaveIn(chunks, writeTimeoutMs)
  }

  private leaveIn(chunks: ChunkSet, ms: number): void {
    if (this.leaving.size < blobGarbageMax) this.leaving.set(chunks, performance.now() + ms)
  }

  private async purgeDue(): Promise<void> {
    if (this.isPurging) return
    this.isPurging = true
    const nowMs = performance.now()
    const due = [...this.leaving].flatMap(([chunks, atMs]) => atMs <= nowMs ? [chunks] : [])
    const purgeSome = async (): Promise<void> => {
      for (let one = due.pop(); one !== undefined && !this.isOver; one = due.pop()) {
        // What cannot be deleted now is found by a sweep.
        await this.purge(one).catch(() => undefined)
        this.leaving.delete(one)
      }
    }
    await Promise.all(Array.from({ length: blobPurgesInFlight }, purgeSome))
    this.isPurging = false
  }

  /** Deletes chunks, unless they are named after all. */
  private async purge(chunks: ChunkSet): Promise<void> {
    const found = await findHead(this.nats, chunks.id)
    if (found?.head.set === chunks.set) return
    const filter = { filter: chunksFilter(chunks) }
    await retryUntilDeadline(() => callApi(this.nats, `STREAM.PURGE.${blobsKv.stream}`, filter))
  }

  /**
   * Looks over all chunks, and deletes those of old uploads that no head names now and none named
   * at the last sweep. Answers how many sets it deleted.
   */
  async sweep(): Promise<number> {
    if (this.isSweeping) return 0
    this.isSweeping = true
    try {
      return await this.sweepAll()
    } finally {
      this.isSweeping = false
    }
  }

  private async sweepAll(): Promise<number> {
    const before = this.orphans
    const orphans = new Set<string>()
    const begunBeforeMs = Date.now() - this.times.orphanMs
    let purged = 0
    const listing = listSubjects(this.nats, blobsKv.stream, firstChunksFilter)
    for await (const { lastSeq, subjects } of listing) {
      const old = subjects.filter((subject) => begunAtMs(setOfChunk(subject)) <= begunBeforeMs)
      for (const piece of pagesOf(old)) {
        if (this.isOver) return purged
        for (const chunks of await this.unnamed(piece.map(setOfChunk), lastSeq)) {
          const key = keyOf(chunks)
          if (before.has(key)) {
            await this.purge(chunks)
            purged++
          } else if (orphans.size < blobOrphansMax) orphans.add(key)
        }
      }
    }
    this.orphans = orphans
    return purged
  }

  private async unnamed(sets: ReadonlyArray<ChunkSet>, lastSeq: number) {
    const subjects = [...new Set(sets.map(({ id }) => headSubject(id)))]
    const named = new Set<string>()
    for (const stored of await readLastOfMany(this.nats, blobsKv.stream, subjects, lastSeq)) {
      named.add(keyOf({ id: idOfHead(stored.subject), set: parseHead(stored.text()).set }))
    }
    return sets.filter((chunks) => !named.has(keyOf(chunks)))
  }
}
