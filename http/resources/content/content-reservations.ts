/**
 * Ends reservations that nobody has settled: after a crash, or when the outcome of a commit stayed
 * unknown. The content says what it has stored; `actors/usage` has the whole life of a reservation.
 */
import { Effect } from "effect"
import type { ContentMessage, ContentReply } from "../../../actors/content/index.ts"
import { contentKind, networkKey, networksTable, reservationsTable } from "../../../actors/index.ts"
import { address } from "../../../runtime/index.ts"
import { expiryPage, usageDaysKept } from "../../limits.ts"
import { ask, expectReply, type HandlerFailure, type Service } from "../../pipeline/index.ts"
import { nameInKey, sweep, timeOfKey } from "../../record-expiry.ts"

const dayMs = 24 * 60 * 60_000

/** Settles the reservations of a content that are due. */
const settle = Effect.fnUntraced(function*(
  service: Service,
  contentId: string,
  key: string
): Effect.fn.Return<void, HandlerFailure> {
  const dueBeforeMs = service.nowMs()
  const message: ContentMessage = { _tag: "Measure", isCertain: true }
  const reply = yield* ask<ContentReply>(service, address(contentKind, contentId), message)
  const { stored } = expectReply(reply, "Measured")
  yield* service.usage.submit({ _tag: "Settle", contentId, stored, dueBeforeMs })
  // The ledger has removed the key, unless a server that was killed has brought it back.
  yield* service.records.write([
    { table: reservationsTable, key, value: null, markerExpires: true }
  ])
})

/** Settles every reservation that is due. One whose content does not answer waits. */
export const settleReservations = Effect.fnUntraced(function*(
  service: Service
): Effect.fn.Return<void, HandlerFailure> {
  const nowMs = service.nowMs()
  let after: string | undefined
  for (;;) {
    const page = { limit: expiryPage, ...after === undefined ? {} : { after } }
    const entries = yield* service.records.range(reservationsTable, page)
    const due = entries.filter(({ key }) => timeOfKey(key) <= nowMs)
    for (const { key } of due) yield* Effect.ignore(settle(service, nameInKey(key), key))
    after = entries.at(-1)?.key
    if (due.length < expiryPage) return
  }
})

/** Removes what networks have published on earlier days. */
const removeEarlierDays = Effect.fnUntraced(function*(
  { nowMs, records }: Service
): Effect.fn.Return<void, HandlerFailure> {
  const first = networkKey("", nowMs() - usageDaysKept * dayMs)
  for (;;) {
    const entries = yield* records.range(networksTable, { limit: expiryPage })
    const earlier = entries.filter(({ key }) => key < first)
    if (earlier.length > 0) {
      yield* records.write(earlier.map(({ key }) => ({
        table: networksTable,
        key,
        value: null,
        markerExpires: true
      })))
    }
    if (earlier.length < expiryPage) return
  }
})

/** Ends what is due at intervals, for as long as the service runs. */
export const sweepReservations = (service: Service): Effect.Effect<never> =>
  sweep(Effect.andThen(settleReservations(service), removeEarlierDays(service)))
