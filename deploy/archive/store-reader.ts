/**
 * Reads a whole store as parts. The actors come first, then the records, then the other blobs. The
 * bytes of a content resource come directly before its actor.
 */
import { Effect, Schema } from "effect"
import { ContentState } from "../../actors/content/index.ts"
import { accountKind, backgroundTaskKind, BackgroundTaskState, type CachedContent, cachedTable,
  contentKind, idempotencyKind, mailboxKind, notificationKind, readinessKind,
  registrationKind } from "../../actors/index.ts"
import { type ActorPart, BlobMissing, type BlobsApi, decodeStoredState, type ItemsPart,
  type RecordPart, StorageCorrupted, type StoreContentsApi } from "../../runtime/index.ts"
import { ArchivedUsage } from "./archived-usage.ts"
import { blobReadsMax, blobsPage } from "../limits.ts"
import { version } from "../version.ts"
import { BlobRemoved, Encoder, type Header, headerOf } from "./format.ts"
import { type ArchivePart, BlobChecksum, type BlobPart } from "./parts.ts"

/**
 * The kinds that are read before all others, in this order. A resource that refers to others is
 * read before them, so whatever the archive of a running service refers to is in it too:
 *
 * - Keys of idempotency, accounts, notifications and registrations record what was done to others:
 *   answers to deposits, the removal of what an account owned, deliveries of a relay, progress in a
 *   mailbox. They may be older than a mailbox, but never newer. After a restore a delivery may be
 *   repeated, which deduplication recognizes. No notification that counts as delivered is missing.
 * - Mailboxes refer to the content of their notifications, and have signaled their tasks.
 * - Tasks refer to copies, which are contents. See {@link TasksBefore} for tasks of notifications
 *   that are too new for the archive.
 */
const referringKinds = [
  idempotencyKind,
  accountKind,
  notificationKind,
  registrationKind,
  mailboxKind,
  backgroundTaskKind,
  contentKind
]

/** What the archive is read from. */
export interface ArchiveSource {
  readonly contents: StoreContentsApi
  readonly blobs: Pick<BlobsApi, "open" | "info" | "scan">
}

const decodeContent = Schema.decodeUnknownOption(Schema.fromJsonString(ContentState))

/** The id of a content resource's blob; undefined for any other actor. */
export const blobOf = ({ address, state }: ActorPart): string | undefined => {
  if (address.kind !== contentKind || state === undefined) return undefined
  const decoded = decodeContent(decodeStoredState(state).text)
  if (decoded._tag === "None" || decoded.value._tag !== "Published") return undefined
  return decoded.value.body.blobId
}

/** A blob with its bytes; undefined when it was removed. */
const readBlob = async ({ blobs }: ArchiveSource, id: string): Promise<BlobPart | undefined> => {
  const info = await Effect.runPromise(blobs.info(id))
  if (info === undefined) return undefined
  try {
    const bytes = await Effect.runPromise(blobs.open(id))
    return { _tag: "Blob", id, ...info, bytes }
  } catch (error) {
    if (error instanceof BlobMissing) return undefined
    throw error
  }
}

/** The only part of an actor whose log is short. */
const onlyPart = async (parts: AsyncIterable<ItemsPart | ActorPart>) => {
  for await (const part of parts) if (part._tag === "Actor") return part
  return undefined
}

/**
 * An actor whose log is short; if it is a content resource, its bytes come before it. Since the
 * service runs, it may replace the bytes: it first stores the content with the new bytes, then
 * removes the old ones. So if the bytes are gone, the content resource is read again.
 */
async function* withBlob(source: ArchiveSource, part: ActorPart): AsyncGenerator<ArchivePart> {
  let current: ActorPart | undefined = part
  for (let reads = 1; current !== undefined; reads++) {
    const id = blobOf(current)
    const blob = id === undefined ? undefined : await readBlob(source, id)
    if (id === undefined || blob !== undefined || reads === blobReadsMax) {
      if (blob !== undefined) yield blob
      return yield current
    }
    current = await onlyPart(source.contents.actor(part.address))
  }
}

const decodeTask = Schema.decodeUnknownOption(Schema.fromJsonString(BackgroundTaskState))

/** A copy that the task has fetched; content that came with a notification is not the task's. */
const copyOf = (state: string): string | undefined => {
  const decoded = decodeTask(decodeStoredState(state).text)
  if (decoded._tag === "None" || !("copy" in decoded.value)) return undefined
  const { copy } = decoded.value
  return copy?.idRandom === undefined ? copy?.contentId : undefined
}

/** When a task fires that has not begun: at once after a restore. */
const atOnceMs = 1

/**
 * The background tasks that existed before the mailboxes were read. Later ones may be of a
 * notification that the archive lacks, and whose number the restored mailbox gives to another. The
 * archive has them as tasks that have not begun, without their copies: after a restore they read
 * their mailbox, and begin again or end.
 */
class TasksBefore {
  private readonly ids = new Set<string>()
  /** Content that is not in the archive. */
  private readonly copies = new Set<string>()

  async list({ contents }: ArchiveSource): Promise<void> {
    for await (const page of contents.ids(backgroundTaskKind)) {
      for (const id of page) this.ids.add(id)
    }
  }

  /** The part as it is archived; undefined for a copy of a task that has not begun. */
  partOf(part: ActorPart): ActorPart | undefined {
    const { address: { id, kind }, state, timer } = part
    if (kind === contentKind) return this.copies.has(id) ? undefined : part
    if (kind !== backgroundTaskKind || state === undefined || this.ids.has(id)) return part
    const copy = copyOf(state)
    if (copy !== undefined) this.copies.add(copy)
    return { ...part, state: undefined, timer: timer ?? atOnceMs }
  }
}

/** The id of the content whose blob this is: `<content>=<random>`. */
const contentIdOf = (blobId: string): string => blobId.slice(0, blobId.indexOf("="))

/** Reads a store, and notes which contents it has returned. */
class StoreReader {
  private readonly source: ArchiveSource
  private readonly tasks = new TasksBefore()
  /** The blob that was returned with each published content; empty if there was none. */
  private readonly blobOfContent = new Map<string, string>()
  /** Contents that were returned as removed: their bytes may count still. */
  private readonly removedContents = new Set<string>()
  private readonly usage = new ArchivedUsage((id) =>
    this.blobOfContent.has(id) || this.removedContents.has(id)
  )

  constructor(source: ArchiveSource) {
    this.source = source
  }

  async *parts(): AsyncGenerator<ArchivePart> {
    await this.tasks.list(this.source)
    yield* this.actors()
    for await (const record of this.source.contents.records()) {
      const archived = this.isReadable(record) ? this.usage.recordOf(record) : undefined
      if (archived !== undefined) yield archived
    }
    yield* this.usage.totalRecords()
    yield* this.otherBlobs()
  }

  private async *actors(): AsyncGenerator<ArchivePart> {
    let isLong = false
    for await (const part of this.source.contents.actors(referringKinds)) {
      if (part.address.kind === readinessKind) continue // a node makes its checks again
      // The items of a long log are parts of their own, before the part of their actor.
      if (part._tag === "Items" || isLong) {
        if (part._tag === "Actor") this.noteContent(part, "")
        yield part
      } else {
        const archived = this.tasks.partOf(part)
        if (archived !== undefined) yield* this.withBlob(archived)
      }
      isLong = part._tag === "Items"
    }
  }

  private async *withBlob(part: ActorPart): AsyncGenerator<ArchivePart> {
    let read = ""
    for await (const one of withBlob(this.source, part)) {
      if (one._tag === "Blob") read = one.id
      if (one._tag === "Actor") this.noteContent(one, read)
      yield one
    }
  }

  private noteContent(part: ActorPart, blobRead: string): void {
    const { address: { id, kind }, state } = part
    if (blobOf(part) !== undefined) this.blobOfContent.set(id, blobRead)
    else if (kind === contentKind && state !== undefined) this.removedContents.add(id)
  }

  /** False for the entry of a copy that was stored too late for the archive. */
  private isReadable({ table, value }: RecordPart): boolean {
    if (table !== cachedTable) return true
    const { contentId } = JSON.parse(value) as CachedContent // only `listCopy` writes the table
    return this.blobOfContent.has(contentId)
  }

  private async *otherBlobs(): AsyncGenerator<ArchivePart> {
    const { blobs } = this.source
    let after: string | undefined
    do {
      const ids: ReadonlyArray<string> = await Effect.runPromise(blobs.scan(after, blobsPage))
      for (const id of ids.filter((one) => this.blobOfContent.get(contentIdOf(one)) !== one)) {
        const blob = await readBlob(this.source, id)
        if (blob !== undefined) yield blob
      }
      after = ids.at(-1)
    } while (after !== undefined)
  }
}

/** All parts of the store. Throws StorageFailure. */
export const partsOf = (source: ArchiveSource): AsyncGenerator<ArchivePart> =>
  new StoreReader(source).parts()

/** Reads a blob to its end. False if it was removed; throws if its digest differs. */
const verifyBlob = async (part: BlobPart): Promise<boolean> => {
  const checksum = new BlobChecksum()
  try {
    for await (const piece of part.bytes) checksum.add(piece)
  } catch (error) {
    if (error instanceof BlobRemoved) return false
    throw error
  }
  if (checksum.matches(part)) return true
  throw new StorageCorrupted({ detail: `blob ${part.id} does not match its digest` })
}

/** Reads all parts without storing them, and verifies the blobs. */
export const readAll = async (
  parts: AsyncIterable<ArchivePart>,
  onPart: (part: ArchivePart) => void
) => {
  for await (const part of parts) {
    if (part._tag !== "Blob" || await verifyBlob(part)) onPart(part)
  }
}

/** The bytes of the archive of a store, which may be in use; with its key if it is given. */
export const archiveOf = (
  source: ArchiveSource & { readonly kind: Header["source"] },
  encoder = new Encoder(),
  secretKey?: string
): AsyncIterable<Uint8Array> =>
  encoder.encode(headerOf(version, source.kind, Date.now(), secretKey), partsOf(source))
