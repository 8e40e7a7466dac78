/** Reads a whole store as parts: actors, each content's bytes before it, then records and blobs. */
import { Effect, Schema } from "effect"
import { createHash } from "node:crypto"
import { ContentState } from "../../actors/content/index.ts"
import { contentKind, idempotencyKind, notificationKind,
  registrationKind } from "../../actors/index.ts"
import { type ActorPart, BlobMissing, type BlobsApi, type ItemsPart, StorageCorrupted,
  type StoreContentsApi } from "../../runtime/index.ts"
import { blobReadsMax, blobsPage } from "../limits.ts"
import { version } from "../version.ts"
import { BlobLost, Encoder, type Header, headerOf } from "./format.ts"
import type { ArchivePart, BlobPart } from "./parts.ts"

/**
 * Kinds whose state refers to mailboxes are read before the mailboxes: deliveries of a relay,
 * progress of a registration, responses to requests. In the archive of a running service, these
 * actors are then behind the mailboxes and never ahead. After a restore a delivery may be repeated,
 * which deduplication recognizes, and no delivered notification is missing.
 */
const referringKinds = [idempotencyKind, notificationKind, registrationKind]

/** A store to read. */
export interface ArchiveSource {
  readonly contents: StoreContentsApi
  readonly blobs: Pick<BlobsApi, "open" | "info" | "scan">
}

const decodeContent = Schema.decodeUnknownOption(Schema.fromJsonString(ContentState))

/** The blob of a content resource. */
export const blobOf = ({ address, state }: ActorPart): string | undefined => {
  if (address.kind !== contentKind || state === undefined) return undefined
  const decoded = decodeContent(state)
  if (decoded._tag === "None" || decoded.value._tag !== "Published") return undefined
  return decoded.value.body.blobId
}

/** The current blob; undefined when it was removed. */
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

/** The only part of an actor without a long log. */
const onlyPart = async (parts: AsyncIterable<ItemsPart | ActorPart>) => {
  for await (const part of parts) if (part._tag === "Actor") return part
  return undefined
}

class Reader {
  private readonly source: ArchiveSource
  /** Blobs that precede their content. */
  private readonly emitted = new Set<string>()

  constructor(source: ArchiveSource) {
    this.source = source
  }

  /**
   * The bytes of a content resource come before it. A writer that replaces them stores the content
   * before it removes the old bytes. So a content resource whose bytes are gone is read again.
   */
  private async *withBlob(part: ActorPart): AsyncGenerator<ArchivePart> {
    let current: ActorPart | undefined = part
    for (let tries = 1; current !== undefined; tries++) {
      const id = blobOf(current)
      const blob = id === undefined ? undefined : await readBlob(this.source, id)
      if (id === undefined || blob !== undefined || tries === blobReadsMax) {
        if (blob !== undefined) {
          this.emitted.add(blob.id)
          yield blob
        }
        yield current
        return
      }
      current = await onlyPart(this.source.contents.actor(part.address))
    }
  }

  async *parts(): AsyncGenerator<ArchivePart> {
    const { blobs, contents } = this.source
    let isLong = false
    for await (const part of contents.actors(referringKinds)) {
      // The items of an actor with a long log were separate parts.
      if (part._tag === "Items" || isLong) yield part
      else yield* this.withBlob(part)
      isLong = part._tag === "Items"
    }
    yield* contents.records()
    let after: string | undefined
    do {
      const ids: ReadonlyArray<string> = await Effect.runPromise(blobs.scan(after, blobsPage))
      for (const id of ids) {
        if (this.emitted.has(id)) continue
        const blob = await readBlob(this.source, id)
        if (blob !== undefined) yield blob
      }
      after = ids.at(-1)
    } while (after !== undefined)
  }
}

/** Everything in the store. Throws StorageFailure. */
export const partsOf = (source: ArchiveSource): AsyncIterable<ArchivePart> =>
  new Reader(source).parts()

/** Reads a blob to its end; false when it was removed. Throws when its digest differs. */
const verifyBlob = async ({ bytes, digest, id, lengthBytes }: BlobPart): Promise<boolean> => {
  const hash = createHash("sha256")
  let found = 0
  try {
    for await (const piece of bytes) {
      found += piece.length
      hash.update(piece)
    }
  } catch (error) {
    if (error instanceof BlobLost) return false
    throw error
  }
  if (found === lengthBytes && hash.digest("base64url") === digest) return true
  throw new StorageCorrupted({ detail: `blob ${id} does not match its digest` })
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

/** The archive of a store, which may be in use. */
export const archiveOf = (
  source: ArchiveSource & { readonly kind: Header["source"] },
  encoder = new Encoder()
): AsyncIterable<Uint8Array> =>
  encoder.encode(headerOf(version, source.kind, Date.now()), partsOf(source))
