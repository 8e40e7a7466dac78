/**
 * The blob port on the embedded store: small content in the database, larger content in files
 * that the database names. A file without a committed name is an orphan.
 */
import { Effect } from "effect"
import { rm } from "node:fs/promises"
import { join } from "node:path"
import { BlobAborted, BlobMissing, BlobTooLarge, StorageCorrupted } from "../../actor/index.ts"
import type { BlobBytes, BlobInfo, BlobsApi, ByteRange } from "../../ports/index.ts"
import { asFailure, keysIn, readSpan, type WriteBatch } from "../engine/index.ts"
import { confirmedBlobsMax } from "../../limits.ts"
import { isGone } from "../folders.ts"
import { blobKey, bytesKey, endOf, preparedKey } from "../keys.ts"
import type { EmbeddedStore } from "../storage/index.ts"
import { abortOf, blobsPath, makeFolder, newRun, openFile, receive, type ReceivedBlob,
  removeOrphans, uploadsPath } from "./blob-files.ts"

/** The database's record of a blob. */
export interface BlobRecord extends BlobInfo {
  /** Name of its file; undefined when the bytes are in the database. */
  readonly file?: string
}

export const parseBlob = (text: string): BlobRecord => {
  try {
    // `write` below has written it.
    return JSON.parse(text) as BlobRecord
  } catch {
    throw new StorageCorrupted({ detail: `unreadable blob record: ${text.slice(0, 60)}` })
  }
}

class EmbeddedBlobs {
  readonly run = newRun()
  private readonly store: EmbeddedStore
  /** The records as the group in progress changes them; undefined: it removes the record. */
  private readonly staged = new Map<string, BlobRecord | undefined>()
  /** Files whose writes are indeterminate, since the log may have them; with the blobs' ids. */
  private readonly indeterminate = new Map<string, string>()
  /** Confirmed blobs that are still marked as prepared: a later write removes the marks. */
  private confirmed: Array<string> = []

  constructor(store: EmbeddedStore) {
    this.store = store
    store.onReopened(() => this.settleIndeterminate())
  }

  find(id: string): BlobRecord | undefined {
    const text = this.store.database().getText(blobKey(id))
    return text === undefined ? undefined : parseBlob(text)
  }

  write(id: string, { content, info }: ReceivedBlob): ReturnType<BlobsApi["put"]> {
    const bytes = Buffer.isBuffer(content) ? content : undefined
    const file = Buffer.isBuffer(content) ? {} : { file: content.file }
    const record: BlobRecord = { ...info, ...file }
    let isSubmitted = false
    const put = (batch: WriteBatch): void => {
      isSubmitted = true
      this.removeMarks(batch)
      batch.put(preparedKey(id), this.run)
      batch.put(blobKey(id), JSON.stringify(record))
      if (bytes !== undefined) batch.putBytes(bytesKey(id), bytes)
    }
    return this.replace(id, record, put).pipe(
      Effect.as(info),
      // The log may have a failed write: then the reopened database names the file.
      Effect.tapCause(() => {
        if (!isSubmitted) return this.discard(record.file)
        if (record.file !== undefined) this.indeterminate.set(record.file, id)
        return Effect.void
      }),
      Effect.uninterruptible
    )
  }

  /** After a reopening, the database has the record of such a file, or never gets it. */
  private settleIndeterminate(): void {
    for (const [file, id] of this.indeterminate) {
      if (this.find(id)?.file !== file) Effect.runFork(this.discard(file))
    }
    this.indeterminate.clear()
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
      batch.remove(preparedKey(id))
      if (before !== undefined && before.file === undefined) batch.remove(bytesKey(id))
      write(batch)
      this.staged.set(id, record)
    }
    return this.store.submit(prepare, unstage, unstage).pipe(
      Effect.andThen(() => this.discard(before?.file))
    )
  }

  discard(file: string | undefined): Effect.Effect<void> {
    if (file === undefined) return Effect.void
    const path = join(blobsPath(this.store.dataDir), file)
    // If this fails, the next start deletes the file as an orphan.
    return Effect.promise(() => rm(path, { force: true }).catch(() => undefined))
  }

  /** The ids of the first `limit` blobs after `after`. */
  page(after: string | undefined, limit: number): Promise<Array<string>> | Array<string> {
    if (limit <= 0) return []
    const prefix = blobKey("")
    const from = after === undefined ? { gte: prefix } : { gt: prefix + after }
    const span = { ...from, lt: endOf(prefix), limit }
    const rows = readSpan(this.store.database, span, false, false)
    return rows instanceof Promise
      ? rows.then((all) => keysIn(all, prefix.length))
      : keysIn(rows, prefix.length)
  }

  /** As `page`, but only prepared blobs that an earlier run has written. */
  async settledPage(after: string | undefined, limit: number): Promise<Array<string>> {
    const prefix = preparedKey("")
    const settled: Array<string> = []
    for (let last = after; settled.length < limit;) {
      const from = last === undefined ? { gte: prefix } : { gt: prefix + last }
      const span = { ...from, lt: endOf(prefix), limit }
      const rows = await readSpan(this.store.database, span, false)
      for (let at = 0; at < rows.length && settled.length < limit; at += 2) {
        last = (rows[at] ?? "").slice(prefix.length)
        if (rows[at + 1] !== this.run) settled.push(last)
      }
      if (rows.length < 2 * limit) break
    }
    return settled
  }

  /** Removes the mark of a prepared blob with a later write, so that it costs no flush. */
  confirm(id: string): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.confirmed.push(id)
      if (this.confirmed.length < confirmedBlobsMax) return Effect.void
      const remove = (batch: WriteBatch): void => {
        batch.commits++
        this.removeMarks(batch)
      }
      return Effect.ignore(this.store.submit(remove, () => undefined))
    })
  }

  private removeMarks(batch: WriteBatch): void {
    for (const id of this.confirmed) batch.remove(preparedKey(id))
    this.confirmed = []
  }

  async open(id: string, range: ByteRange | undefined): Promise<BlobBytes> {
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
        // Another upload has replaced the blob.
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
    Effect.tryPromise(() =>
      removeOrphans(dataDir, blobs.run, (id, name) => blobs.find(id)?.file === name)
    ).pipe(Effect.ignore)
  )
  const api: BlobsApi = {
    put: (id, source, bytesMax) =>
      Effect.tryPromise({
        try: (signal) =>
          receive({ dataDir, id, run: blobs.run }, source, bytesMax, abortOf(signal)),
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
    scan: (after, limit) => store.read(() => blobs.page(after, limit)),
    scanSettled: (after, limit) => store.read(() => blobs.settledPage(after, limit)),
    confirm: (id) => blobs.confirm(id)
  }
  return api
})
