/**
 * A prepared blob: bytes that are stored before the commit that names them. The commit has three
 * outcomes. If it names the blob, the blob stays. If it is certain that it does not, the blob is
 * removed. If the commit fails, the store may have kept it, so the blob stays: blob garbage
 * collection asks the owner later, when the blob is settled (`BlobsApi.scanSettled`).
 */
import { Effect } from "effect"
import type { BlobAborted, BlobTooLarge, StorageFailure } from "./actor/index.ts"
import type { BlobInfo, BlobsApi } from "./ports/index.ts"

/** The bytes of a blob that a commit is to name: `bytesMax` at most. */
export interface PreparedBlob {
  /** A new id; no earlier blob has it. */
  readonly id: string
  readonly source: AsyncIterable<Uint8Array>
  readonly bytesMax: number
  /**
   * Once the owner has named the blob, it removes it itself, also after a crash: blob garbage
   * collection need not ask it.
   */
  readonly ownerRemoves: boolean
}

/** The certain outcome of a commit: whether its actor or record names the blob. */
export interface BlobCommit<A> {
  readonly isNamed: boolean
  readonly result: A
}

/** Stores a blob and then commits what names it. A failure of `commit` is indeterminate. */
export const commitBlob = <A, E>(
  blobs: Pick<BlobsApi, "confirm" | "put" | "remove">,
  { bytesMax, id, ownerRemoves, source }: PreparedBlob,
  commit: (info: BlobInfo) => Effect.Effect<BlobCommit<A>, E>
): Effect.Effect<A, E | BlobTooLarge | BlobAborted | StorageFailure> =>
  Effect.flatMap(blobs.put(id, source, bytesMax), commit).pipe(
    // If the removal fails, blob garbage collection removes the blob.
    Effect.tap(({ isNamed }) => {
      if (!isNamed) return Effect.ignore(blobs.remove(id))
      return ownerRemoves ? blobs.confirm(id) : Effect.void
    }),
    Effect.map(({ result }) => result)
  )
