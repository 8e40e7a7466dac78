/**
 * Garbage collection of blobs. A blob is stored before the commit that names it, so a crash or an
 * indeterminate commit may leave a blob that nobody names: an orphan. The collection asks the owner
 * of each settled blob, which is an actor or a record. It removes a blob only when the owner
 * answers that it does not name it. A content that names a blob removes it itself, so the
 * collection confirms the blob. Running it twice does no harm.
 */
import { Effect } from "effect"
import { sweepAsksInFlight, sweepPageBlobs } from "./limits.ts"
import type { HandlerFailure, Service } from "./pipeline/index.ts"
import { contentNames } from "./resources/content/index.ts"
import { isBlobOfPendingLoad, isLoadBlob } from "./resources/customers/index.ts"

/** Whether the owner names the blob. */
const isNamed = (service: Service, blobId: string): Effect.Effect<boolean, HandlerFailure> =>
  isLoadBlob(blobId) ? isBlobOfPendingLoad(service, blobId) : contentNames(service, blobId)

/** The result of a collection. */
export interface CollectedBlobs {
  readonly removed: number
  /** Blobs whose owner did not answer, or whose check had a defect; they stay. */
  readonly unanswered: number
}

/** Removes every settled orphan. Fails when the blobs cannot be listed or removed. */
export const collectBlobs = Effect.fnUntraced(function*(
  service: Service
): Effect.fn.Return<CollectedBlobs, HandlerFailure> {
  const { blobs } = service
  let removed = 0
  let unanswered = 0
  let after: string | undefined
  for (;;) {
    const ids = yield* blobs.scanSettled(after, sweepPageBlobs)
    const collect = Effect.fnUntraced(function*(id: string) {
      const answer = yield* Effect.catch(isNamed(service, id), () => Effect.succeed(undefined))
      if (answer === undefined) unanswered++
      else if (!answer) {
        yield* blobs.remove(id)
        removed++
      } else if (!isLoadBlob(id)) yield* blobs.confirm(id)
    })
    // One blob keeps no other from being removed.
    const collectOrKeep = (id: string) =>
      Effect.catchDefect(collect(id), (defect) => {
        unanswered++
        return Effect.logWarning(`the blob ${id} was not checked`, defect)
      })
    yield* Effect.forEach(ids, collectOrKeep, { concurrency: sweepAsksInFlight, discard: true })
    after = ids.at(-1)
    if (after === undefined || ids.length < sweepPageBlobs) return { removed, unanswered }
  }
})
