/**
 * The blob port: byte sequences too large for a record, written once, read whole or by range.
 * The contract is the suite `test/suites/blobs.ts`.
 */
import { Context, type Effect } from "effect"
import type { BlobAborted, BlobMissing, BlobTooLarge, StorageFailure } from "../actor/index.ts"

/** What is known of a stored blob. */
export interface BlobInfo {
  readonly lengthBytes: number
  /** SHA-256 of the bytes, base64url without padding. */
  readonly digest: string
}

/** First and last byte, both inclusive, counted from 0. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}

/** The bytes of a blob, read on demand. */
export interface BlobBytes extends AsyncIterable<Uint8Array> {
  /**
   * Gives back a chunk that nothing refers to any more, so that the next ones are read into its
   * memory. A reader need not call it.
   */
  readonly recycle?: (chunk: Uint8Array) => void
}

/** A store of blobs, as {@link Blobs} provides it. An id is `[A-Za-z0-9_=-]+`. */
export interface BlobsApi {
  /**
   * Streams `source` into a blob named `id` (`[A-Za-z0-9_=-]+`) with bounded memory. The blob is
   * durable when the effect succeeds, and replaces an existing one as a whole. If the source
   * throws, nothing is stored.
   */
  readonly put: (
    id: string,
    source: AsyncIterable<Uint8Array>,
    bytesMax: number
  ) => Effect.Effect<BlobInfo, BlobTooLarge | BlobAborted | StorageFailure>
  /**
   * Reads the bytes, or a range of them, on demand. A reader can finish a blob that is removed
   * meanwhile.
   */
  readonly open: (
    id: string,
    range?: ByteRange
  ) => Effect.Effect<BlobBytes, BlobMissing | StorageFailure>
  /** Undefined: no blob has this id. */
  readonly info: (id: string) => Effect.Effect<BlobInfo | undefined, StorageFailure>
  /** Succeeds if the blob does not exist. */
  readonly remove: (id: string) => Effect.Effect<void, StorageFailure>
  /** Ids ascending, after `after`. */
  readonly scan: (
    after: string | undefined,
    limit: number
  ) => Effect.Effect<ReadonlyArray<string>, StorageFailure>
  /**
   * As `scan`, of the settled blobs only: a commit that names a settled blob is stored by now, or
   * never will be. So a settled blob without an owner is an orphan. A single process settles the
   * blobs of earlier processes; a cluster settles blobs whose upload began long ago. Confirmed
   * blobs may be missing.
   */
  readonly scanSettled: BlobsApi["scan"]
  /**
   * The blob is named for certain, and never becomes an orphan: its owner removes it, also after a
   * crash. A hint that may be lost.
   */
  readonly confirm: (id: string) => Effect.Effect<void>
}

/** The port to the store of blobs. The owner of a blob is an actor, which names it in its state. */
export class Blobs extends Context.Service<Blobs, BlobsApi>()("restante/runtime/Blobs") {}
