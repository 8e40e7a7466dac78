/**
 * The blob port: byte sequences too large for a record, written once, read whole or by range.
 * The contract is the suite `test/suites/blobs.ts`.
 */
import { Context, type Effect } from "effect"
import type { BlobAborted, BlobMissing, BlobTooLarge, StorageFailure } from "../actor/index.ts"

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

export interface BlobsApi {
  /**
   * Streams `source` into a new blob named `id` (`[A-Za-z0-9_=-]+`), never holding it whole when
   * it is large. Durable when it succeeds; an id that exists is replaced whole. A source that
   * throws leaves nothing behind.
   */
  readonly put: (
    id: string,
    source: AsyncIterable<Uint8Array>,
    bytesMax: number
  ) => Effect.Effect<BlobInfo, BlobTooLarge | BlobAborted | StorageFailure>
  /**
   * The bytes, or a part of them, read as they are asked for. A blob that is removed while it
   * is read is still read to its end.
   */
  readonly open: (
    id: string,
    range?: ByteRange
  ) => Effect.Effect<AsyncIterable<Uint8Array>, BlobMissing | StorageFailure>
  readonly info: (id: string) => Effect.Effect<BlobInfo | undefined, StorageFailure>
  /** Removing what is not there succeeds. */
  readonly remove: (id: string) => Effect.Effect<void, StorageFailure>
  /**
   * When the writing of the blob was begun, ms since the epoch by the clock of who wrote it;
   * undefined when there is none. Only where other nodes write too: one process alone knows what
   * it is writing.
   */
  readonly begunAtMs?: (id: string) => Effect.Effect<number | undefined, StorageFailure>
  /** Ids ascending, after `after`. */
  readonly scan: (
    after: string | undefined,
    limit: number
  ) => Effect.Effect<ReadonlyArray<string>, StorageFailure>
}

export class Blobs extends Context.Service<Blobs, BlobsApi>()("restante/runtime/Blobs") {}
