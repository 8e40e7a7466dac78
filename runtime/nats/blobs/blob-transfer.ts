/** A blob on its way in: chunk by chunk, a few of them under way at once. */
import { createHash } from "node:crypto"
import { BlobAborted, BlobTooLarge, StorageCorrupted, StorageFull,
  StorageUnavailable } from "../../actor/index.ts"
import { blobGiveUpMs, blobReadsAhead, blobUploadMaxMs, blobWritesInFlight, giveUpMs, readTimeoutMs,
  retryDelayMs } from "../../limits.ts"
import type { BlobInfo, ByteRange } from "../../ports/index.ts"
import { type NatsApi, retryUntilDeadline, wait } from "../connection/index.ts"
import { isFull, readLast, write } from "../stream/index.ts"
import { blobsKv, type ChunkSet, chunkSubject, type Head, headSubject,
  parseHead } from "./blob-keys.ts"

export interface FoundBlob {
  readonly head: Head
  readonly seq: number
}

/** The head of a blob, from the leader. */
export const findHead = async (nats: NatsApi, id: string): Promise<FoundBlob | undefined> => {
  const stored = await readLast(nats, blobsKv.stream, headSubject(id))
  return stored && { head: parseHead(stored.text()), seq: stored.seq }
}

const missing = async (nats: NatsApi, { id, set }: ChunkSet, n: number): Promise<Error> =>
  (await findHead(nats, id))?.head.set === set
    ? new StorageCorrupted({ detail: `blob ${id} has no chunk ${n}` })
    : new BlobAborted({ detail: `blob ${id} was removed too long ago` })

/** A chunk never changes: any copy that has it will do, and the leader must have it. */
const readChunk = async (nats: NatsApi, chunks: ChunkSet, n: number): Promise<Uint8Array> => {
  const subject = chunkSubject(chunks, n)
  const question = `$JS.API.DIRECT.GET.${blobsKv.stream}.${subject}`
  const ask = () => nats.request(question, "", undefined, readTimeoutMs)
  const reply = await retryUntilDeadline(ask, blobGiveUpMs)
  if ((reply.headers?.code ?? 0) === 0) return reply.data
  const stored = await readLast(nats, blobsKv.stream, subject)
  if (stored === undefined) throw await missing(nats, chunks, n)
  return stored.bytes()
}

/** The bytes, a few chunks ahead of what is asked for. */
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
  let asked = Math.floor(start / chunkBytes)
  for (let n = asked; n <= lastN; n++) {
    for (; asked <= lastN && asked < n + blobReadsAhead; asked++) {
      const reading = readChunk(nats, { id, set }, asked)
      // Told when it is its turn, if ever.
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

/* The chunks of a blob on their way out. */

/** The next piece, undefined at the end; throws BlobAborted, also when nobody waits any more. */
const next = async (
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
  private heldBytes = 0
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
      const end = Math.min(piece.length, at + this.chunkBytes - this.heldBytes)
      this.pieces.push(Buffer.from(piece.subarray(at, end)))
      this.heldBytes += end - at
      at = end
      if (this.heldBytes === this.chunkBytes) await this.flush()
    }
  }

  /** Resolves when every chunk is stored. */
  async end(): Promise<void> {
    if (this.heldBytes > 0) await this.flush()
    await Promise.all(this.sending)
    if (this.failure !== undefined) throw this.failure
  }

  /** Resolves when nothing of it is under way any more. */
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
    this.heldBytes = 0
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
      const patienceMs = this.hasStored ? blobGiveUpMs : giveUpMs
      if (performance.now() - sinceMs > patienceMs || this.nats.nc.isClosed()) {
        return new StorageUnavailable({ detail })
      }
      await wait(retryDelayMs)
    }
  }
}

/**
 * Stores all that the source gives as the chunks of one set. Throws BlobTooLarge, BlobAborted,
 * StorageFull or StorageUnavailable once nothing is under way any more.
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
      let piece = await next(iterator, signal);
      piece !== undefined;
      piece = await next(iterator, signal)
    ) {
      lengthBytes += piece.length
      if (lengthBytes > bytesMax) throw new BlobTooLarge({ bytesMax })
      hash.update(piece)
      await writer.add(piece)
    }
    await writer.end()
    if (performance.now() > untilMs) throw new BlobAborted({ detail: "it took too long" })
    return { lengthBytes, digest: hash.digest("base64url") }
  } catch (error) {
    // The source may hold on to something; that it cannot let go of it changes nothing.
    void iterator.return?.().catch(() => undefined)
    await writer.abandon()
    throw error
  }
}
