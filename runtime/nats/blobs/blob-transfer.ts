/** Uploads and downloads of blobs: chunk by chunk, a few in flight at once. */
import { createHash } from "node:crypto"
import { BlobAborted, BlobTooLarge, StorageCorrupted, StorageFull,
  StorageUnavailable } from "../../actor/index.ts"
import { blobChunkReadsMax, blobGiveUpMs, blobReadsAhead, blobUploadMaxMs, blobWritesInFlight,
  giveUpMs, readTimeoutMs, retryDelayMs } from "../../limits.ts"
import type { BlobInfo, ByteRange } from "../../ports/index.ts"
import { Turns } from "../../turns.ts"
import { type NatsApi, retryUntilDeadline, wait } from "../connection/index.ts"
import { isFull, readLast, write } from "../stream/index.ts"
import { blobsKv, type ChunkSet, chunkSubject, type Head, headSubject,
  parseHead } from "./blob-keys.ts"

export interface FoundBlob {
  readonly head: Head
  readonly seq: number
}

/** The current head of a blob. */
export const findHead = async (nats: NatsApi, id: string): Promise<FoundBlob | undefined> => {
  const stored = await readLast(nats, blobsKv.stream, headSubject(id))
  return stored && { head: parseHead(stored.text()), seq: stored.seq }
}

const missingChunk = async (nats: NatsApi, { id, set }: ChunkSet, n: number): Promise<Error> =>
  (await findHead(nats, id))?.head.set === set
    ? new StorageCorrupted({ detail: `blob ${id} has no chunk ${n}` })
    : new BlobAborted({ detail: `blob ${id} was removed too long ago` })

/** Of all downloads of this process. */
const chunkReads = new Turns(blobChunkReadsMax)

/** {@link requestChunk} in its turn. */
const readChunk = (nats: NatsApi, chunks: ChunkSet, n: number): Promise<Uint8Array> =>
  chunkReads.run(() => requestChunk(nats, chunks, n))

/** A chunk never changes, so any replica that has it will do. */
const requestChunk = async (nats: NatsApi, chunks: ChunkSet, n: number): Promise<Uint8Array> => {
  const subject = chunkSubject(chunks, n)
  const question = `$JS.API.DIRECT.GET.${blobsKv.stream}.${subject}`
  const ask = () => nats.request(question, "", undefined, readTimeoutMs)
  const reply = await retryUntilDeadline(ask, blobGiveUpMs)
  if ((reply.headers?.code ?? 0) === 0) return reply.data
  const stored = await readLast(nats, blobsKv.stream, subject)
  if (stored === undefined) throw await missingChunk(nats, chunks, n)
  return stored.bytes()
}

/** Reads the bytes of a range; `blobReadsAhead` chunks are requested ahead. */
export async function* readBlob(
  nats: NatsApi,
  id: string,
  head: Head,
  range: ByteRange | undefined
): AsyncIterable<Uint8Array> {
  const { chunkBytes, lengthBytes, set } = head
  const start = range?.start ?? 0
  const end = Math.min(range?.end ?? Infinity, lengthBytes - 1)
  if (start > end) return
  const lastN = Math.floor(end / chunkBytes)
  const ahead: Array<Promise<Uint8Array>> = []
  let requested = Math.floor(start / chunkBytes)
  for (let n = requested; n <= lastN; n++) {
    for (; requested <= lastN && requested < n + blobReadsAhead; requested++) {
      const reading = readChunk(nats, { id, set }, requested)
      // The error is thrown when this chunk is awaited.
      reading.catch(() => undefined)
      ahead.push(reading)
    }
    const bytes = await ahead.shift()
    const at = n * chunkBytes
    if (bytes?.length !== Math.min(chunkBytes, lengthBytes - at)) {
      throw new StorageCorrupted({ detail: `blob ${id}: chunk ${n} has another length` })
    }
    yield bytes.subarray(Math.max(0, start - at), Math.min(chunkBytes, end - at + 1))
  }
}

/** The next piece, undefined at the end; throws BlobAborted, also when `signal` aborts. */
const nextPiece = async (
  source: AsyncIterator<Uint8Array>,
  signal: AbortSignal
): Promise<Uint8Array | undefined> => {
  let interrupt = (): void => {}
  try {
    const step = await new Promise<IteratorResult<Uint8Array>>((resolve, reject) => {
      interrupt = () => reject(new Error("interrupted"))
      signal.addEventListener("abort", interrupt)
      if (signal.aborted) interrupt()
      source.next().then(resolve, reject)
    })
    return step.done === true ? undefined : step.value
  } catch (error) {
    throw new BlobAborted({ detail: error instanceof Error ? error.message : String(error) })
  } finally {
    signal.removeEventListener("abort", interrupt)
  }
}

class ChunkWriter {
  private readonly nats: NatsApi
  private readonly chunks: ChunkSet
  private readonly chunkBytes: number
  private readonly sending = new Set<Promise<void>>()
  private pieces: Array<Buffer> = []
  private bufferedBytes = 0
  private count = 0
  private hasStored = false
  private failure: StorageFull | StorageUnavailable | undefined
  private abandoned = false

  constructor(nats: NatsApi, chunks: ChunkSet, chunkBytes: number) {
    this.nats = nats
    this.chunks = chunks
    this.chunkBytes = chunkBytes
  }

  async add(piece: Uint8Array): Promise<void> {
    for (let at = 0; at < piece.length;) {
      const end = Math.min(piece.length, at + this.chunkBytes - this.bufferedBytes)
      this.pieces.push(Buffer.from(piece.subarray(at, end)))
      this.bufferedBytes += end - at
      at = end
      if (this.bufferedBytes === this.chunkBytes) await this.flush()
    }
  }

  /** Resolves when every chunk is stored. */
  async end(): Promise<void> {
    if (this.bufferedBytes > 0) await this.flush()
    await Promise.all(this.sending)
    if (this.failure !== undefined) throw this.failure
  }

  /** Resolves when no write is in flight. */
  async abandon(): Promise<void> {
    this.abandoned = true
    await Promise.all(this.sending)
  }

  private async flush(): Promise<void> {
    while (this.sending.size >= blobWritesInFlight) await Promise.race(this.sending)
    if (this.failure !== undefined) throw this.failure
    const sending = this.send(this.count++, Buffer.concat(this.pieces)).then((failure) => {
      this.failure ??= failure
      this.sending.delete(sending)
    })
    this.sending.add(sending)
    this.pieces = []
    this.bufferedBytes = 0
  }

  /** A chunk that is stored twice is the same chunk. */
  private async send(
    n: number,
    data: Buffer
  ): Promise<StorageFull | StorageUnavailable | undefined> {
    const sinceMs = performance.now()
    const message = { subject: chunkSubject(this.chunks, n), data, headers: "" }
    for (;;) {
      const written = await write(this.nats, [message])
      this.hasStored ||= written._tag === "Stored"
      if (written._tag === "Stored" || this.abandoned) return undefined
      const { detail } = written
      if (isFull(written)) return new StorageFull({ detail })
      const retryForMs = this.hasStored ? blobGiveUpMs : giveUpMs
      if (performance.now() - sinceMs > retryForMs || this.nats.nc.isClosed()) {
        return new StorageUnavailable({ detail })
      }
      await wait(retryDelayMs)
    }
  }
}

/**
 * Stores all bytes of the source as the chunks of one set. Throws BlobTooLarge, BlobAborted,
 * StorageFull or StorageUnavailable once no write is in flight.
 */
export const storeBlob = async (
  nats: NatsApi,
  chunks: ChunkSet,
  chunkBytes: number,
  source: AsyncIterable<Uint8Array>,
  bytesMax: number,
  signal: AbortSignal
): Promise<BlobInfo> => {
  const untilMs = performance.now() + blobUploadMaxMs
  const hash = createHash("sha256")
  const writer = new ChunkWriter(nats, chunks, chunkBytes)
  const iterator = source[Symbol.asyncIterator]()
  let lengthBytes = 0
  try {
    for (
      let piece = await nextPiece(iterator, signal);
      piece !== undefined;
      piece = await nextPiece(iterator, signal)
    ) {
      lengthBytes += piece.length
      if (lengthBytes > bytesMax) throw new BlobTooLarge({ bytesMax })
      hash.update(piece)
      await writer.add(piece)
    }
    await writer.end()
    if (performance.now() > untilMs) {
      throw new BlobAborted({ detail: "the upload took too long" })
    }
    return { lengthBytes, digest: hash.digest("base64url") }
  } catch (error) {
    // Lets the source release its resources; its own failure changes nothing.
    void iterator.return?.().catch(() => undefined)
    await writer.abandon()
    throw error
  }
}
