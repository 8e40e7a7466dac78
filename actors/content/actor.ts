/** Content bound to the runtime and to the store of blobs. */
import { Effect } from "effect"
import type { Behavior, BlobsApi } from "../../runtime/index.ts"
import { receiptsMax } from "../limits.ts"
import { askerOf, codecsOf } from "../schemas.ts"
import { contentTable } from "./decide.ts"
import { checkLinks } from "./link-check.ts"
import { type ContentAction, ContentMessage, type ContentReply, ContentState,
  receiptRequestId } from "./protocol.ts"

export const contentKind = "content"

/** Sends a message to a content resource, by its id. */
export const askContent = askerOf<ContentMessage, ContentReply>(contentKind)

/** The dependencies of content. */
export interface ContentDependencies {
  readonly blobs: Pick<BlobsApi, "remove">
  /** How long anonymous content is kept after its last read, in ms. */
  readonly anonymousRetentionMs: number
}

/** The behavior of content resources; an address's id is chosen at random. */
export const content = (
  { anonymousRetentionMs, blobs }: ContentDependencies
): Behavior<ContentState, ContentMessage, ContentReply, ContentAction> => ({
  kind: contentKind,
  initial: { _tag: "Absent" },
  table: contentTable(anonymousRetentionMs),
  ...codecsOf(ContentState, ContentMessage),
  // All receipts of a content fit the window, and none is removed before the content.
  recall: { items: receiptsMax, keyOf: receiptRequestId, restore: (state) => state },
  perform: (action, _self, peers) =>
    action._tag === "RemoveBlobs"
      ? Effect.forEach(action.blobIds, (id) => blobs.remove(id), { discard: true }).pipe(
        Effect.map((): ContentMessage => ({ _tag: "BlobsRemoved", blobIds: action.blobIds })),
        // The timer that was committed with the removal finds it undone.
        Effect.catch((failure) => Effect.logWarning("blobs were not removed", failure))
      )
      : checkLinks(peers, action).pipe(
        Effect.map((checks): ContentMessage => ({ _tag: "LinksChecked", checks })),
        // If a mailbox is unavailable, the deferred timer repeats the check.
        Effect.catch(() => Effect.void)
      )
})
