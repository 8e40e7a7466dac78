/**
 * Reads a whole store as parts. The actors come first, then the records, then the other blobs. The
 * bytes of a content resource come directly before its actor.
 */
import { Effect, Schema } from "effect"
import { ContentState } from "../../actors/content/index.ts"
import { contentKind, idempotencyKind, notificationKind,
  registrationKind } from "../../actors/index.ts"
import { type ActorPart, BlobMissing, type BlobsApi, decodeStoredState, type ItemsPart,
  StorageCorrupted, type StoreContentsApi } from "../../runtime/index.ts"
import { blobReadsMax, blobsPage } from "../limits.ts"
import { version } from "../version.ts"
import { BlobRemoved, Encoder, type Header, headerOf } from "./format.ts"
import { type ArchivePart, BlobChecksum, type BlobPart } from "./parts.ts"

/**
 * Kinds whose state records what was done to a mailbox: deliveries of a relay, progress of a
 * registration, answers to deposits. They are read before the mailboxes. So in the archive of a
 * running service their state may be older than that of a mailbox, but never newer. After a
 * restore a delivery may be repeated, which deduplication recognizes. No notification that counts
 * as delivered is missing.
 */
const referringKinds = [idempotencyKind, notificationKind, registrationKind]

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

/** All parts of the store. Throws StorageFailure. */
export async function* partsOf(source: ArchiveSource): AsyncGenerator<ArchivePart> {
  const { blobs, contents } = source
  const withContent = new Set<string>()
  let isLong = false
  for await (const actorPart of contents.actors(referringKinds)) {
    // The items of a long log are parts of their own, before the part of their actor.
    if (actorPart._tag === "Items" || isLong) yield actorPart
    else {
      for await (const part of withBlob(source, actorPart)) {
        if (part._tag === "Blob") withContent.add(part.id)
        yield part
      }
    }
    isLong = actorPart._tag === "Items"
  }
  yield* contents.records()
  let after: string | undefined
  do {
    const ids: ReadonlyArray<string> = await Effect.runPromise(blobs.scan(after, blobsPage))
    for (const id of ids.filter((one) => !withContent.has(one))) {
      const blob = await readBlob(source, id)
      if (blob !== undefined) yield blob
    }
    after = ids.at(-1)
  } while (after !== undefined)
}

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
