/** An open store as an archive. */
import { Effect, Schema } from "effect"
import { createHash } from "node:crypto"
import { ContentState } from "../../actors/content/index.ts"
import { contentKind, idempotencyKind, notificationKind,
  registrationKind } from "../../actors/index.ts"
import { type ActorPart, BlobMissing, type BlobsApi, type ItemsPart, StorageCorrupted,
  type StoreContentsApi } from "../../runtime/index.ts"
import { blobsPage, blobTriesMax } from "../limits.ts"
import { version } from "../version.ts"
import { BlobLost, Encoder, type Header, headerOf } from "./format.ts"
import type { ArchivePart, BlobPart } from "./parts.ts"

/**
 * Kinds that know what came of others are read before those: what a relay has delivered, how far a
 * registration has pushed, what a request was answered with. Where the service runs meanwhile,
 * these are then behind the mailboxes and never ahead: a relay is made again and recognized, and
 * no mailbox lacks what is told to be in it.
 */
const knowingKinds = [idempotencyKind, notificationKind, registrationKind]

/** What is read. */
export interface ArchiveSource {
  readonly contents: StoreContentsApi
  readonly blobs: Pick<BlobsApi, "open" | "info" | "scan">
}

const decodeContent = Schema.decodeUnknownOption(Schema.fromJsonString(ContentState))

/** The blob that a content shows. */
export const blobOf = ({ address, state }: ActorPart): string | undefined => {
  if (address.kind !== contentKind || state === undefined) return undefined
  const decoded = decodeContent(state)
  if (decoded._tag === "None" || decoded.value._tag !== "Published") return undefined
  return decoded.value.body.blobId
}

/** A blob as it is now; undefined when it is gone. */
const blobPart = async ({ blobs }: ArchiveSource, id: string): Promise<BlobPart | undefined> => {
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

/** The one part that an actor without a long log has. */
const onlyPart = async (parts: AsyncIterable<ItemsPart | ActorPart>) => {
  for await (const part of parts) if (part._tag === "Actor") return part
  return undefined
}

class Reader {
  private readonly source: ArchiveSource
  /** Blobs that were told. */
  private readonly told = new Set<string>()

  constructor(source: ArchiveSource) {
    this.source = source
  }

  /**
   * A content's bytes come before it: whoever replaces them meanwhile writes the content before he
   * removes the old ones, so that a content whose bytes are gone is read anew.
   */
  private async *withBlob(part: ActorPart): AsyncGenerator<ArchivePart> {
    let current: ActorPart | undefined = part
    for (let tries = 1; current !== undefined; tries++) {
      const id = blobOf(current)
      const blob = id === undefined ? undefined : await blobPart(this.source, id)
      if (id === undefined || blob !== undefined || tries === blobTriesMax) {
        if (blob !== undefined) {
          this.told.add(blob.id)
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
    for await (const part of contents.actors(knowingKinds)) {
      // Of an actor with a long log the items are told already.
      if (part._tag === "Items" || isLong) yield part
      else yield* this.withBlob(part)
      isLong = part._tag === "Items"
    }
    yield* contents.records()
    let after: string | undefined
    do {
      const ids: ReadonlyArray<string> = await Effect.runPromise(blobs.scan(after, blobsPage))
      for (const id of ids) {
        if (this.told.has(id)) continue
        const blob = await blobPart(this.source, id)
        if (blob !== undefined) yield blob
      }
      after = ids.at(-1)
    } while (after !== undefined)
  }
}

/** Everything in the store. Throws StorageFailure. */
export const partsOf = (source: ArchiveSource): AsyncIterable<ArchivePart> =>
  new Reader(source).parts()

/** Reads a blob to its end; false when its source lost it. Throws when it is not what it says. */
const isSound = async ({ bytes, digest, id, lengthBytes }: BlobPart): Promise<boolean> => {
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
  throw new StorageCorrupted({ detail: `blob ${id} has other bytes than its digest says` })
}

/** Reads what there is without keeping it; `seen` is called with each part. */
export const drain = async (
  parts: AsyncIterable<ArchivePart>,
  seen: (part: ArchivePart) => void
) => {
  for await (const part of parts) {
    if (part._tag !== "Blob" || await isSound(part)) seen(part)
  }
}

/* Reads a whole store as parts: actors, each content's bytes before it, then records and blobs. */

/** All of a store as it is read; it may be in use. */
export const archiveOf = (
  source: ArchiveSource & { readonly kind: Header["source"] },
  encoder = new Encoder()
): AsyncIterable<Uint8Array> =>
  encoder.encode(headerOf(version, source.kind, Date.now()), partsOf(source))
