/** Content bound to the runtime and to the store of blobs. */
import { Effect } from "effect"
import type { Behavior, BlobsApi } from "../../runtime/index.ts"
import { receiptsMax } from "../limits.ts"
import { askerOf, codecsOf } from "../schemas.ts"
import type { StoredUsage, UsageLedger } from "../usage/index.ts"
import { contentTable } from "./decide.ts"
import { checkLinks } from "./link-check.ts"
import { type ContentAction, ContentMessage, type ContentReply, ContentState,
  receiptKeyOf } from "./protocol.ts"

export const contentKind = "content"

/** Sends a message to a content resource, by its id. */
export const askContent = askerOf<ContentMessage, ContentReply>(contentKind)

/** The dependencies of content. */
export interface ContentDependencies {
  readonly blobs: Pick<BlobsApi, "remove">
  readonly usage: Pick<UsageLedger, "submit">
  /** How long anonymous content is kept after its last read, in ms. */
  readonly anonymousRetentionMs: number
}

/** The behavior of content resources; an address's id is chosen at random. */
export const content = (
  { anonymousRetentionMs, blobs, usage }: ContentDependencies
): Behavior<ContentState, ContentMessage, ContentReply, ContentAction> => {
  const count = (contentId: string, stored: StoredUsage, blobIds: ReadonlyArray<string> = []) =>
    usage.submit({ _tag: "Settle", contentId, stored, blobIds })
  return {
    kind: contentKind,
    initial: { _tag: "Absent" },
    table: contentTable(anonymousRetentionMs),
    ...codecsOf(ContentState, ContentMessage),
    // All receipts of a content fit the window, and none is removed before the content.
    recall: {
      items: receiptsMax,
      keyOf: receiptKeyOf,
      restore: (state) => state,
      restoresInParts: true
    },
    perform: (action, self, peers) => {
      if (action._tag === "CountBody") {
        return Effect.catch(
          Effect.asVoid(count(self.id, action.stored)),
          (failure) => Effect.logWarning("the usage of content was not counted", failure)
        )
      }
      if (action._tag === "CheckLinks") {
        return checkLinks(peers, action).pipe(
          Effect.map((checks): ContentMessage => ({ _tag: "LinksChecked", checks })),
          // If a mailbox is unavailable, the deferred timer repeats the check.
          Effect.catch(() => Effect.void)
        )
      }
      const { blobIds, stored } = action
      return Effect.forEach(blobIds, (id) => blobs.remove(id), { discard: true }).pipe(
        // What is still in the store counts.
        Effect.andThen(count(self.id, stored, blobIds)),
        Effect.map((): ContentMessage => ({ _tag: "BlobsRemoved", blobIds })),
        // The timer that was committed with the removal finds it undone.
        Effect.catch((failure) => Effect.logWarning("blobs were not removed", failure))
      )
    }
  }
}
