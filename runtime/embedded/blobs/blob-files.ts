/** The files of large blobs: `blobs/<2 hex>/<id>.<suffix>`, and `blobs/tmp` during uploads. */
import { createHash, randomBytes } from "node:crypto"
import { type FileHandle, open, readdir, rename, rm } from "node:fs/promises"
import { dirname, join } from "node:path"
import { BlobAborted, BlobTooLarge, StorageCorrupted } from "../../actor/index.ts"
import { blobUnreadMs, embeddedBlobChunkBytes, inlineBlobBytesMax } from "../../limits.ts"
import type { BlobBytes, BlobInfo, ByteRange } from "../../ports/index.ts"
import { makeFolders, syncFolder } from "../folders.ts"
import { ChunkReads } from "./chunk-reads.ts"

export const blobsPath = (dataDir: string): string => join(dataDir, "blobs")

export const uploadsPath = (dataDir: string): string => join(blobsPath(dataDir), "tmp")

/** Stops an upload when its caller is interrupted. */
export interface UploadAbort {
  /** Rejects the wait for the next chunk. `Promise.race` would retain every chunk. */
  reject: (reason: Error) => void
  aborted: boolean
}

export const abortOf = (signal: AbortSignal): UploadAbort => {
  const abort: UploadAbort = { reject: () => {}, aborted: false }
  const interrupt = (): void => {
    abort.aborted = true
    abort.reject(new Error("interrupted"))
  }
  signal.addEventListener("abort", interrupt, { once: true })
  return abort
}

/** Received content: small content in memory, large content in a flushed file. */
export interface ReceivedBlob {
  readonly info: BlobInfo
  readonly content: Buffer | { readonly file: string }
}

/** A name for one opening of a store: it distinguishes what this process wrote from the rest. */
export const newRun = (): string => randomBytes(4).toString("hex")

/** A new name for the content of `id`, relative to the folder of blobs. */
const newName = (id: string, run: string): string => {
  const folder = createHash("sha256").update(id).digest("hex").slice(0, 2)
  return join(folder, `${id}.${run}${randomBytes(6).toString("hex")}`)
}

/** The blob id in a file name. */
export const idOfName = (name: string): string => name.slice(3, name.lastIndexOf("."))

/** Creates a folder and its parents durably. */
export const makeFolder = async (path: string): Promise<void> => {
  const first = makeFolders(path)
  if (first === undefined) return
  for (let made = path; made.length >= first.length; made = dirname(made)) {
    await syncFolder(dirname(made))
  }
}

/** The next chunk; undefined at the end. Rejects with BlobAborted, also when interrupted. */
const nextChunk = async (
  source: AsyncIterator<Uint8Array>,
  abort: UploadAbort
): Promise<Uint8Array | undefined> => {
  try {
    const step = await new Promise<IteratorResult<Uint8Array>>((resolve, reject) => {
      abort.reject = reject
      if (abort.aborted) reject(new Error("interrupted"))
      source.next().then(resolve, reject)
    })
    return step.done === true ? undefined : step.value
  } catch (error) {
    throw new BlobAborted({ detail: error instanceof Error ? error.message : String(error) })
  }
}

/** Where an upload goes: the folder of the data, the run, and the id of the blob. */
export interface UploadTarget {
  readonly dataDir: string
  readonly run: string
  readonly id: string
}

/** Streams a source to memory or, when it is large, to a file. Leaves no file when it rejects. */
export const receive = async (
  { dataDir, id, run }: UploadTarget,
  source: AsyncIterable<Uint8Array>,
  bytesMax: number,
  abort: UploadAbort
): Promise<ReceivedBlob> => {
  const chunks: Array<Buffer> = []
  const hash = createHash("sha256")
  const iterator = source[Symbol.asyncIterator]()
  const temporary = join(uploadsPath(dataDir), randomBytes(12).toString("hex"))
  let file: FileHandle | undefined
  let lengthBytes = 0
  try {
    for (;;) {
      const chunk = await nextChunk(iterator, abort)
      if (chunk === undefined) break
      lengthBytes += chunk.length
      if (lengthBytes > bytesMax) throw new BlobTooLarge({ bytesMax })
      hash.update(chunk)
      if (file !== undefined) await writeAll(file, chunk)
      else {
        chunks.push(Buffer.from(chunk))
        if (lengthBytes <= inlineBlobBytesMax) continue
        file = await open(temporary, "wx")
        for (const received of chunks.splice(0)) await writeAll(file, received)
      }
    }
    const info = { lengthBytes, digest: hash.digest("base64url") }
    if (file === undefined) return { info, content: Buffer.concat(chunks) }
    const name = newName(id, run)
    await file.sync()
    await moveFile(temporary, join(blobsPath(dataDir), name))
    return { info, content: { file: name } }
  } catch (error) {
    // Lets the source release its resources.
    void iterator.return?.().catch(() => undefined)
    if (file !== undefined) await rm(temporary, { force: true })
    throw error
  } finally {
    await file?.close()
  }
}

/** Gives a flushed file its durable name. */
const moveFile = async (from: string, to: string): Promise<void> => {
  await makeFolder(dirname(to))
  await rename(from, to)
  await syncFolder(dirname(to))
}

const writeAll = async (file: FileHandle, chunk: Uint8Array): Promise<void> => {
  for (let at = 0; at < chunk.length;) at += (await file.write(chunk, at)).bytesWritten
}

/** Of all stores of this process, which share the threads for files. */
const chunkReads = new ChunkReads()

/**
 * Opens a file and reads its bytes in chunks on demand. Its removal does not matter once it is
 * open. It is closed at the end, or after {@link blobUnreadMs} when nobody begins to read.
 */
export const openFile = async (
  path: string,
  lengthBytes: number,
  range: ByteRange | undefined
): Promise<BlobBytes> => {
  const file = await open(path, "r")
  const end = Math.min(range?.end ?? Infinity, lengthBytes - 1)
  let begun = false
  const unread = setTimeout(() => {
    if (!begun) void file.close()
    begun = true
  }, blobUnreadMs)
  unread.unref()
  return {
    recycle: (chunk) => chunkReads.recycle(chunk),
    async *[Symbol.asyncIterator]() {
      if (begun) throw new BlobAborted({ detail: "a blob is read once, and soon after opening" })
      begun = true
      clearTimeout(unread)
      try {
        for (let at = range?.start ?? 0; at <= end;) {
          const bytesMax = Math.min(embeddedBlobChunkBytes, end - at + 1)
          const chunk = await chunkReads.read(file, at, bytesMax)
          // Nothing writes to a file that has its name.
          if (chunk.length === 0) throw new StorageCorrupted({ detail: `${path} ends too early` })
          at += chunk.length
          yield chunk
        }
      } finally {
        await file.close()
      }
    }
  }
}

/** Names of all complete files, relative to the folder of blobs. */
export async function* fileNames(dataDir: string): AsyncIterable<string> {
  const folders = await readdir(blobsPath(dataDir)).catch(() => [])
  for (const folder of folders.filter((name) => /^[0-9a-f]{2}$/.test(name))) {
    for (const name of await readdir(join(blobsPath(dataDir), folder))) yield join(folder, name)
  }
}

/**
 * Deletes the files of earlier runs that no blob names. A file of this run may get its name later.
 * No clock can distinguish the two, because clocks are set back.
 */
export const removeOrphans = async (
  dataDir: string,
  run: string,
  isNamed: (id: string, name: string) => boolean
): Promise<void> => {
  for await (const name of fileNames(dataDir)) {
    const isOfThisRun = name.slice(name.lastIndexOf(".") + 1).startsWith(run)
    if (isOfThisRun || isNamed(idOfName(name), name)) continue
    await rm(join(blobsPath(dataDir), name), { force: true })
  }
}
