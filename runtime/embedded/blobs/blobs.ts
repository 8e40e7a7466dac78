/**
 * The blob port on the embedded store: small content in the database, larger content in files
 * that the database names. A file without a committed name is an orphan.
 */
import { Effect } from "effect"
import { rm } from "node:fs/promises"
import { join } from "node:path"
import { BlobAborted, BlobMissing, BlobTooLarge, StorageCorrupted } from "../../actor/index.ts"
import type { BlobInfo, BlobsApi, ByteRange } from "../../ports/index.ts"
import { asFailure, keysIn, readSpan, type WriteBatch } from "../engine/index.ts"
import { isGone } from "../folders.ts"
import { blobKey, bytesKey, endOf } from "../keys.ts"
import type { EmbeddedStore } from "../storage/index.ts"
import { abortOf, blobsPath, makeFolder, openFile, receive, type ReceivedBlob, removeOrphans,
  uploadsPath } from "./blob-files.ts"

/** What the database stores of a blob. */
export interface BlobRecord extends BlobInfo {
  /** Name of its file; undefined when the bytes are in the database. */
  readonly file?: string
}

export const parseBlob = (text: string): BlobRecord => {
  try {
    // It was written by `put` below.
    return JSON.parse(text) as BlobRecord
  } catch {
    throw new StorageCorrupted({ detail: `unreadable blob record: ${text.slice(0, 60)}` })
  }
}

class EmbeddedBlobs {
  private readonly store: EmbeddedStore
  /** The records after the group that is being prepared or written. */
  private readonly staged = new Map<string, BlobRecord | undefined>()

  constructor(store: EmbeddedStore) {
    this.store = store
  }

  find(id: string): BlobRecord | undefined {
    const text = this.store.database().getText(blobKey(id))
    return text === undefined ? undefined : parseBlob(text)
  }

  write(id: string, { content, info }: ReceivedBlob): ReturnType<BlobsApi["put"]> {
    const bytes = Buffer.isBuffer(content) ? content : undefined
    const record: BlobRecord = Buffer.isBuffer(content) ? info : { ...info, file: content.file }
    const put = (batch: WriteBatch): void => {
      batch.put(blobKey(id), JSON.stringify(record))
      if (bytes !== undefined) batch.putBytes(bytesKey(id), bytes)
    }
    return this.replace(id, record, put).pipe(
      Effect.as(info),
      Effect.tapCause(() => this.discard(record)),
      // The file may be deleted only when it is certain that no commit names it.
      Effect.uninterruptible
    )
  }

  /** Replaces the record of `id`, and deletes the file of the old one. */
  replace(id: string, record: BlobRecord | undefined, write: (batch: WriteBatch) => void) {
    let before: BlobRecord | undefined
    const unstage = (): void => {
      if (this.staged.get(id) === record) this.staged.delete(id)
    }
    const prepare = (batch: WriteBatch): void => {
      before = this.staged.has(id) ? this.staged.get(id) : this.find(id)
      if (before === undefined && record === undefined) return
      batch.commits++
      batch.remove(blobKey(id))
      if (before !== undefined && before.file === undefined) batch.remove(bytesKey(id))
      write(batch)
      this.staged.set(id, record)
    }
    return this.store.submit(prepare, unstage, unstage).pipe(
      Effect.andThen(() => this.discard(before))
    )
  }

  discard(record: BlobRecord | undefined): Effect.Effect<void> {
    if (record?.file === undefined) return Effect.void
    const path = join(blobsPath(this.store.dataDir), record.file)
    // The next start deletes the file as an orphan.
    return Effect.promise(() => rm(path, { force: true }).catch(() => undefined))
  }

  async open(id: string, range: ByteRange | undefined): Promise<AsyncIterable<Uint8Array>> {
    for (let record = this.find(id); record !== undefined;) {
      if (record.file === undefined) {
        const bytes = this.store.database().getBytes(bytesKey(id))
        if (bytes === undefined) throw new StorageCorrupted({ detail: `blob ${id} has no bytes` })
        return inMemory(range === undefined ? bytes : bytes.subarray(range.start, range.end + 1))
      }
      try {
        const path = join(blobsPath(this.store.dataDir), record.file)
        return await openFile(path, record.lengthBytes, range)
      } catch (error) {
        if (!isGone(error)) throw error
        const now = this.find(id)
        if (now?.file === record.file) {
          throw new StorageCorrupted({ detail: `blob ${id} has no file ${record.file}` })
        }
        // Another upload replaced it.
        record = now
      }
    }
    throw new BlobMissing({ id })
  }
}

async function* inMemory(bytes: Buffer): AsyncIterable<Uint8Array> {
  if (bytes.length > 0) yield bytes
}

/** The blob port on an open store. */
export const makeBlobs = Effect.fnUntraced(function*(store: EmbeddedStore) {
  const { dataDir } = store
  const blobs = new EmbeddedBlobs(store)
  yield* Effect.tryPromise({
    try: async () => {
      await rm(uploadsPath(dataDir), { recursive: true, force: true })
      await makeFolder(uploadsPath(dataDir))
    },
    catch: asFailure
  })
  // A failure costs disk space only, and the next start retries.
  yield* Effect.forkScoped(
    Effect.tryPromise(() => removeOrphans(dataDir, (id, name) => blobs.find(id)?.file === name))
      .pipe(Effect.ignore)
  )
  const api: BlobsApi = {
    put: (id, source, bytesMax) =>
      Effect.tryPromise({
        try: (signal) => receive(dataDir, id, source, bytesMax, abortOf(signal)),
        catch: (error) =>
          error instanceof BlobTooLarge || error instanceof BlobAborted ? error : asFailure(error)
      }).pipe(Effect.flatMap((received) => blobs.write(id, received))),
    open: (id, range) =>
      Effect.tryPromise({
        try: () => blobs.open(id, range),
        catch: (error) => error instanceof BlobMissing ? error : asFailure(error)
      }),
    info: (id) =>
      store.read(() => {
        const found = blobs.find(id)
        return found && { lengthBytes: found.lengthBytes, digest: found.digest }
      }),
    remove: (id) => Effect.uninterruptible(blobs.replace(id, undefined, () => undefined)),
    scan: (after, limit) =>
      store.read<ReadonlyArray<string>>(() => {
        if (limit <= 0) return []
        const prefix = blobKey("")
        const from = after === undefined ? { gte: prefix } : { gt: prefix + after }
        const span = { ...from, lt: endOf(prefix), limit }
        const rows = readSpan(store.database, span, false, false)
        return rows instanceof Promise
          ? rows.then((all) => keysIn(all, prefix.length))
          : keysIn(rows, prefix.length)
      })
  }
  return api
})
