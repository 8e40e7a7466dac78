/**
 * Garbage collection of blobs. A crash between storing bytes and the commit that references them
 * leaves an orphan. A single node collects orphans once after its start, and knows which blobs are
 * arriving. A cluster collects them now and then at one node, and only those that were begun so
 * long ago that they cannot be arriving at any node. Running it twice does no harm.
 */
import { Effect } from "effect"
import type { ContentMessage, ContentReply } from "../../../actors/content/index.ts"
import { contentKind } from "../../../actors/index.ts"
import { address, placingPart } from "../../../runtime/index.ts"
import { orphanAgeMs, sweepPageBlobs } from "../../limits.ts"
import { ask, expectReply, type HandlerFailure, type Service } from "../../pipeline/index.ts"

/** Whether a blob is too old to be arriving at any node. */
const isSettled = (
  { blobs, nowMs }: Service,
  blobId: string
): Effect.Effect<boolean, HandlerFailure> =>
  blobs.begunAtMs === undefined
    ? Effect.succeed(true)
    : Effect.map(
      blobs.begunAtMs(blobId),
      (begunMs) => begunMs !== undefined && begunMs < nowMs() - orphanAgeMs
    )

const isOrphan = (service: Service, blobId: string): Effect.Effect<boolean, HandlerFailure> => {
  if (service.pendingBlobs.has(blobId)) return Effect.succeed(false)
  const message: ContentMessage = { _tag: "HasBlob", blobId }
  const content = address(contentKind, placingPart(blobId))
  return Effect.flatMap(
    ask<ContentReply>(service, content, message),
    (reply) =>
      expectReply(reply, "HasBlob").hasBlob ? Effect.succeed(false) : isSettled(service, blobId)
  )
}

/** Removes every orphan; returns their number. */
export const sweepOrphans = Effect.fnUntraced(function*(
  service: Service
): Effect.fn.Return<number, HandlerFailure> {
  let removed = 0
  let after: string | undefined
  for (;;) {
    const ids = yield* service.blobs.scan(after, sweepPageBlobs)
    for (const id of ids) {
      if (!(yield* isOrphan(service, id))) continue
      yield* service.blobs.remove(id)
      removed++
    }
    after = ids.at(-1)
    if (after === undefined || ids.length < sweepPageBlobs) return removed
  }
})
