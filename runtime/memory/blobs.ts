/** The blob port in memory. See {@link makeMemoryBlobs}. */
import { Effect, Layer } from "effect"
import { createHash } from "node:crypto"
import { BlobAborted, BlobMissing, BlobTooLarge } from "../actor/index.ts"
import { type BlobInfo, Blobs, type BlobsApi, type ByteRange } from "../ports/index.ts"

interface Blob {
  readonly bytes: Buffer
  readonly info: BlobInfo
}

const collect = async (source: AsyncIterable<Uint8Array>, bytesMax: number): Promise<Blob> => {
  const chunks: Array<Buffer> = []
  let lengthBytes = 0
  for await (const chunk of source) {
    lengthBytes += chunk.length
    if (lengthBytes > bytesMax) throw new BlobTooLarge({ bytesMax })
    chunks.push(Buffer.from(chunk))
  }
  const bytes = Buffer.concat(chunks)
  return {
    bytes,
    info: { lengthBytes, digest: createHash("sha256").update(bytes).digest("base64url") }
  }
}

/** The error of a source, as the port's failure. */
const asFailure = (thrown: unknown): BlobTooLarge | BlobAborted =>
  thrown instanceof BlobTooLarge ? thrown : new BlobAborted({ detail: String(thrown) })

async function* part(bytes: Buffer, range: ByteRange | undefined): AsyncIterable<Uint8Array> {
  const wanted = range === undefined ? bytes : bytes.subarray(range.start, range.end + 1)
  if (wanted.length > 0) yield wanted
}

/** A new, empty store of blobs. Its contents survive the systems that run on it. */
export const makeMemoryBlobs = (): BlobsApi => {
  const blobs = new Map<string, Blob>()
  return {
    put: (id, source, bytesMax) =>
      Effect.tryPromise({ try: () => collect(source, bytesMax), catch: asFailure }).pipe(
        Effect.map((blob) => {
          blobs.set(id, blob)
          return blob.info
        })
      ),
    open: (id, range) =>
      Effect.suspend(() => {
        const blob = blobs.get(id)
        return blob === undefined
          ? Effect.fail(new BlobMissing({ id }))
          : Effect.succeed(part(blob.bytes, range))
      }),
    info: (id) => Effect.sync(() => blobs.get(id)?.info),
    remove: (id) => Effect.sync(() => void blobs.delete(id)),
    scan: (after, limit) =>
      Effect.sync(() =>
        [...blobs.keys()].filter((id) => after === undefined || id > after).sort().slice(0, limit)
      ),
    // Nothing outlives its writer here.
    scanSettled: () => Effect.succeed([]),
    confirm: () => Effect.void
  }
}

/** Blobs in memory; they end with their layer. */
export const memoryBlobs: Layer.Layer<Blobs> = Layer.sync(Blobs, makeMemoryBlobs)
