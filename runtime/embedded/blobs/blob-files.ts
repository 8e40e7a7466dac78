/** The files of large blobs: `blobs/<2 hex>/<id>.<suffix>`, and `blobs/tmp` while they arrive. */
import { createHash, type Hash, randomBytes } from "node:crypto"
import { type FileHandle, mkdir, open, readdir, rename, rm } from "node:fs/promises"
import { dirname, join } from "node:path"
import { BlobAborted, BlobTooLarge } from "../../actor/index.ts"
import { blobUnreadMs, embeddedBlobChunkBytes, inlineBlobBytesMax } from "../../limits.ts"
import type { BlobInfo, ByteRange } from "../../ports/index.ts"
import { syncFolder } from "../folders.ts"

export const blobsPath = (dataDir: string): string => join(dataDir, "blobs")

export const arrivingPath = (dataDir: string): string => join(blobsPath(dataDir), "tmp")

/** Lets go of a source when whoever waits for its content has gone. */
export interface Abort {
  /** Ends the wait for the next chunk. A promise raced against each chunk would keep them all. */
  reject: (reason: Error) => void
  aborted: boolean
}

export const abortOf = (signal: AbortSignal): Abort => {
  const abort: Abort = { reject: () => {}, aborted: false }
  const interrupt = (): void => {
    abort.aborted = true
    abort.reject(new Error("interrupted"))
  }
  signal.addEventListener("abort", interrupt, { once: true })
  return abort
}

/** What came in: in memory when it is small, else as a file at its place, flushed. */
export interface ReceivedBlob {
  readonly info: BlobInfo
  readonly content: Buffer | { readonly file: string }
}

/** In the names of all files that this process brings. */
const run = randomBytes(4).toString("hex")

/** A new name for the content of `id`, relative to the folder of blobs. */
const newName = (id: string): string => {
  const folder = createHash("sha256").update(id).digest("hex").slice(0, 2)
  return join(folder, `${id}.${run}${randomBytes(6).toString("hex")}`)
}

/** The id that a file's name was made for. */
export const idOfName = (name: string): string => name.slice(3, name.lastIndexOf("."))

/** Makes a folder, with those that it is in, and lets their names be durable. */
export const makeFolder = async (path: string): Promise<void> => {
  const first = await mkdir(path, { recursive: true })
  if (first === undefined) return
  for (let made = path; made.length >= first.length; made = dirname(made)) {
    await syncFolder(dirname(made))
  }
}

/** The next chunk, undefined at the end; throws BlobAborted, also when nobody waits any more. */
const next = async (
  source: AsyncIterator<Uint8Array>,
  abort: Abort
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

/** Streams a source to memory or, when it is large, to a file. Throws leaving nothing behind. */
export const receive = async (
  dataDir: string,
  id: string,
  source: AsyncIterable<Uint8Array>,
  bytesMax: number,
  abort: Abort
): Promise<ReceivedBlob> => {
  const chunks: Array<Buffer> = []
  const hash = createHash("sha256")
  const iterator = source[Symbol.asyncIterator]()
  let lengthBytes = 0
  try {
    for (
      let chunk = await next(iterator, abort);
      chunk !== undefined;
      chunk = await next(iterator, abort)
    ) {
      lengthBytes += chunk.length
      if (lengthBytes > bytesMax) throw new BlobTooLarge({ bytesMax })
      hash.update(chunk)
      chunks.push(Buffer.from(chunk))
      if (lengthBytes > inlineBlobBytesMax) {
        return await receiveFile(dataDir, id, chunks, iterator, hash, lengthBytes, bytesMax, abort)
      }
    }
  } catch (error) {
    // The source may hold on to something; that it cannot let go of it changes nothing.
    void iterator.return?.().catch(() => undefined)
    throw error
  }
  return { info: { lengthBytes, digest: hash.digest("base64url") }, content: Buffer.concat(chunks) }
}

const receiveFile = async (
  dataDir: string,
  id: string,
  begun: ReadonlyArray<Buffer>,
  iterator: AsyncIterator<Uint8Array>,
  hash: Hash,
  begunBytes: number,
  bytesMax: number,
  abort: Abort
): Promise<ReceivedBlob> => {
  const name = newName(id)
  const arriving = join(arrivingPath(dataDir), randomBytes(12).toString("hex"))
  const place = join(blobsPath(dataDir), name)
  let lengthBytes = begunBytes
  const file = await open(arriving, "wx")
  try {
    for (const chunk of begun) await writeAll(file, chunk)
    for (
      let chunk = await next(iterator, abort);
      chunk !== undefined;
      chunk = await next(iterator, abort)
    ) {
      lengthBytes += chunk.length
      if (lengthBytes > bytesMax) throw new BlobTooLarge({ bytesMax })
      hash.update(chunk)
      await writeAll(file, chunk)
    }
    await file.sync()
    await makeFolder(dirname(place))
    await rename(arriving, place)
    await syncFolder(dirname(place))
  } catch (error) {
    await rm(arriving, { force: true })
    throw error
  } finally {
    await file.close()
  }
  return { info: { lengthBytes, digest: hash.digest("base64url") }, content: { file: name } }
}

const writeAll = async (file: FileHandle, chunk: Uint8Array): Promise<void> => {
  for (let at = 0; at < chunk.length;) at += (await file.write(chunk, at)).bytesWritten
}

/**
 * The bytes of a file, a chunk each time that one is asked for. The file is open from now on, so
 * that its removal does not matter; it is closed at the end, and when nobody begins to read.
 */
export const openFile = async (
  path: string,
  lengthBytes: number,
  range: ByteRange | undefined
): Promise<AsyncIterable<Uint8Array>> => {
  const file = await open(path, "r")
  const end = Math.min(range?.end ?? Infinity, lengthBytes - 1)
  let begun = false
  const unread = setTimeout(() => {
    if (!begun) void file.close()
    begun = true
  }, blobUnreadMs)
  unread.unref()
  return {
    async *[Symbol.asyncIterator]() {
      if (begun) throw new BlobAborted({ detail: "a blob is read once, and soon after opening" })
      begun = true
      clearTimeout(unread)
      try {
        for (let at = range?.start ?? 0; at <= end;) {
          const chunk = Buffer.allocUnsafe(Math.min(embeddedBlobChunkBytes, end - at + 1))
          const { bytesRead } = await file.read(chunk, 0, chunk.length, at)
          if (bytesRead === 0) throw new BlobAborted({ detail: `${path} ends too early` })
          at += bytesRead
          yield chunk.subarray(0, bytesRead)
        }
      } finally {
        await file.close()
      }
    }
  }
}

/** Names of all files at their places, relative to the folder of blobs. */
export async function* fileNames(dataDir: string): AsyncIterable<string> {
  const folders = await readdir(blobsPath(dataDir)).catch(() => [])
  for (const folder of folders.filter((name) => /^[0-9a-f]{2}$/.test(name))) {
    for (const name of await readdir(join(blobsPath(dataDir), folder))) yield join(folder, name)
  }
}

/**
 * Removes what earlier processes left and nothing names. What this one has brought may be named
 * yet; no clock tells the one from the other, since clocks are set back.
 */
export const removeLeftOvers = async (
  dataDir: string,
  isNamed: (id: string, name: string) => boolean
): Promise<void> => {
  for await (const name of fileNames(dataDir)) {
    const isOfThisRun = name.slice(name.lastIndexOf(".") + 1).startsWith(run)
    if (isOfThisRun || isNamed(idOfName(name), name)) continue
    await rm(join(blobsPath(dataDir), name), { force: true })
  }
}
