/**
 * The sweep for orphans: a crash between storing bytes and the commit that shows them leaves a
 * blob that nothing names. Alone, a node runs it once after the start, beside the service, and
 * knows itself what is arriving. In a cluster it runs now and then at one node, and takes only what
 * was begun so long ago that it can be arriving nowhere. Running it twice does no harm.
 */
import { Effect } from "effect"
import type { ContentMessage, ContentReply } from "../../../actors/content/index.ts"
import { contentKind } from "../../../actors/index.ts"
import { address, placingPart } from "../../../runtime/index.ts"
import { orphanAgeMs, sweepPageBlobs } from "../../limits.ts"
import { ask, type HandlerFailure, type Service } from "../../pipeline/index.ts"

/** Whether it cannot be arriving at any node. */
const isOld = ({ blobs, nowMs }: Service, blobId: string): Effect.Effect<boolean, HandlerFailure> =>
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
    ask<Extract<ContentReply, { _tag: "HasBlob" }>>(service, content, message),
    ({ hasBlob }) => hasBlob ? Effect.succeed(false) : isOld(service, blobId)
  )
}

/** Removes every orphaned blob; answers how many there were. */
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
