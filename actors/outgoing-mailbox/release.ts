/** The release of what waits for a pause that has ended: one page of the listing (A7). */
import { Effect } from "effect"
import type { Peers, RecordsApi, StorageFailure } from "../../runtime/index.ts"
import { releasedAtOnceMax, releasePage } from "../limits.ts"
import { notificationKind, type NotificationMessage, type NotificationReply,
  outgoingTable } from "../notification/index.ts"
import { cursorTimeDigits } from "../record-keys.ts"
import { askerOf } from "../schemas.ts"
import type { OutgoingMailboxAction, OutgoingMailboxMessage } from "./protocol.ts"

const askNotification = askerOf<NotificationMessage, NotificationReply>(notificationKind)

type ReleasePage = Extract<OutgoingMailboxAction, { readonly _tag: "ReleasePage" }>

/** Whether the notification has replied; it may wait for nothing, or be gone. */
const releaseOne = (peers: Peers, id: string): Effect.Effect<boolean> =>
  askNotification(peers, id, { _tag: "Release" }).pipe(
    Effect.as(true),
    Effect.catch(() => Effect.succeed(false))
  )

/** Releases a page. A notification that is unavailable is left for the next pass. */
export const releaseListed = Effect.fnUntraced(function*(
  records: Pick<RecordsApi, "range">,
  peers: Peers,
  account: string,
  { after, pass, version }: ReleasePage
): Effect.fn.Return<OutgoingMailboxMessage, StorageFailure> {
  const prefix = `${account}/`
  const entries = yield* records.range(outgoingTable, {
    prefix,
    reverse: true,
    limit: releasePage,
    ...after === undefined ? {} : { after }
  })
  // Such a hint is final, unless the notification writes another one with each of its timers.
  const unsent = entries.filter(({ value }) => value !== "sent")
  const released = yield* Effect.forEach(
    unsent,
    ({ key }) => releaseOne(peers, key.slice(prefix.length + cursorTimeDigits + 1)),
    { concurrency: releasedAtOnceMax }
  )
  const last = entries.length < releasePage ? undefined : entries.at(-1)
  return {
    _tag: "PageReleased",
    version,
    pass,
    ...after === undefined ? {} : { after },
    ...last === undefined ? {} : { next: last.key },
    ...released.includes(false) ? { isPartial: true } : {}
  }
})
