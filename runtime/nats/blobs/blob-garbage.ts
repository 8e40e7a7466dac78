/**
 * Deletes chunks that no head names: chunks of failed uploads, and chunks of removed or replaced
 * blobs after their readers have had time to finish. When a node ends before it has deleted chunks,
 * the sweep of any node finds them.
 */
import { blobClockSkewMs, blobGarbageMax, blobOrphansMax, blobPurgeIntervalMs, blobPurgesInFlight,
  blobReadGraceMaxMs, blobReadGraceMs, blobReadRateMinBytesPerMs, blobSettledMs,
  blobSweepIntervalMs, blobUploadMaxMs, writeTimeoutMs } from "../../limits.ts"
import { type NatsApi, retryUntilDeadline } from "../connection/index.ts"
import { callApi, listSubjects, pagesOf, readLastOfMany } from "../stream/index.ts"
import { begunAtMs, blobsKv, type ChunkSet, chunksFilter, firstChunksFilter, headSubject, idOfHead,
  parseHead, setOfChunk } from "./blob-keys.ts"
import { findHead } from "./blob-transfer.ts"

/** When the garbage of blobs is removed. */
export interface BlobGarbageTimes {
  /** How long removed chunks stay readable at least, ms. */
  readonly readGraceMs: number
  /** Time between two sweeps, ms. */
  readonly sweepMs: number
  /** Chunks are orphans only when their upload began this long ago, ms. */
  readonly orphanMs: number
  /** Blobs are settled when their upload began this long ago, ms. */
  readonly settledMs: number
}

export const blobGarbageTimes: BlobGarbageTimes = {
  readGraceMs: blobReadGraceMs,
  sweepMs: blobSweepIntervalMs,
  orphanMs: blobUploadMaxMs + blobClockSkewMs,
  settledMs: blobSettledMs
}

const keyOf = ({ id, set }: ChunkSet): string => `${id}.${set}`

export class BlobGarbageCollector {
  private readonly nats: NatsApi
  private readonly times: BlobGarbageTimes
  /** Chunks to delete, and when. */
  private readonly garbage = new Map<ChunkSet, number>()
  /** The orphans that the last sweep found. */
  private orphans = new Set<string>()
  private readonly timers: Array<NodeJS.Timeout>
  private isPurging = false
  private isSweeping = false
  private hasEnded = false

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
    this.hasEnded = true
    for (const timer of this.timers) clearTimeout(timer)
  }

  /** Deletes the chunks of a removed or replaced blob after its readers have had time to finish. */
  deleteAfterReaders(chunks: ChunkSet, lengthBytes: number): void {
    const slowestMs = lengthBytes / blobReadRateMinBytesPerMs
    this.deleteIn(chunks, Math.min(this.times.readGraceMs + slowestMs, blobReadGraceMaxMs))
  }

  /** Deletes chunks without readers, after writes that are still in flight. */
  discard(chunks: ChunkSet): void {
    this.deleteIn(chunks, writeTimeoutMs)
  }

  private deleteIn(chunks: ChunkSet, ms: number): void {
    if (this.garbage.size < blobGarbageMax) this.garbage.set(chunks, performance.now() + ms)
  }

  private async purgeDue(): Promise<void> {
    if (this.isPurging) return
    this.isPurging = true
    const nowMs = performance.now()
    const due = [...this.garbage].flatMap(([chunks, atMs]) => atMs <= nowMs ? [chunks] : [])
    const purgeSome = async (): Promise<void> => {
      for (let one = due.pop(); one !== undefined && !this.hasEnded; one = due.pop()) {
        // If this fails, a sweep deletes the chunks.
        await this.purge(one).catch(() => undefined)
        this.garbage.delete(one)
      }
    }
    await Promise.all(Array.from({ length: blobPurgesInFlight }, purgeSome))
    this.isPurging = false
  }

  /** Deletes chunks, unless a head names them. */
  private async purge(chunks: ChunkSet): Promise<void> {
    const found = await findHead(this.nats, chunks.id)
    if (found?.head.set === chunks.set) return
    const filter = { filter: chunksFilter(chunks) }
    await retryUntilDeadline(() => callApi(this.nats, `STREAM.PURGE.${blobsKv.stream}`, filter))
  }

  /**
   * Deletes the chunks of old uploads that no head names, neither now nor at the last sweep.
   * Returns the number of deleted sets.
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
        if (this.hasEnded) return purged
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

  /** The sets of chunks that no head names. */
  private async unnamed(sets: ReadonlyArray<ChunkSet>, lastSeq: number) {
    const subjects = [...new Set(sets.map(({ id }) => headSubject(id)))]
    const named = new Set<string>()
    for (const stored of await readLastOfMany(this.nats, blobsKv.stream, subjects, lastSeq)) {
      named.add(keyOf({ id: idOfHead(stored.subject), set: parseHead(stored.text()).set }))
    }
    return sets.filter((chunks) => !named.has(keyOf(chunks)))
  }
}
