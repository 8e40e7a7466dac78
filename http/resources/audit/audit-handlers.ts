/** Handlers of the audit log, for admins: its entries, newest first, and its chain. */
import { Effect } from "effect"
import { type AuditReply, type ChainPoint, decodeEntry,
  entryHash } from "../../../actors/audit/index.ts"
import type { LogItem } from "../../../runtime/index.ts"
import { auditActions, auditAddress } from "../../audit/index.ts"
import { requireAdmin } from "../../auth/index.ts"
import { auditChainItemsMax, auditReadItems, auditScannedMax } from "../../limits.ts"
import { ask, type Call, defineHandler, expectReply, type HandlerFailure, httpError, noStore,
  type PageRequest, readPageRequest, readQuery, type Service,
  viewAnswer } from "../../pipeline/index.ts"
import { parseListingSince } from "../mailboxes/index.ts"
import { auditOutcomes, auditView, chainView, type ListedEntry,
  type ListingFilter } from "./audit-views.ts"

const describeLog = (service: Service) =>
  Effect.map(
    ask<AuditReply>(service, auditAddress(), { _tag: "Describe" }),
    (reply) => expectReply(reply, "Described")
  )

/** One of the values, undefined without the field, 400 for another value. */
const oneOf = <const Value extends string>(
  name: string,
  text: string | undefined,
  values: ReadonlyArray<Value>
): Effect.Effect<Value | undefined, HandlerFailure> => {
  const value = values.find((one) => one === text)
  return text === undefined || value !== undefined
    ? Effect.succeed(value)
    : Effect.fail(httpError("malformed", `${name} must be one of ${values.join(", ")}`))
}

const readFilter = Effect.fnUntraced(function*(
  call: Call
): Effect.fn.Return<ListingFilter, HandlerFailure> {
  const query = yield* readQuery(call)
  // Browsers send empty fields of a form.
  const field = (name: string) => query.get(name)?.trim() || undefined
  const since = field("since")
  const sinceMs = since === undefined ? undefined : parseListingSince(since)?.atMs
  if (since !== undefined && sinceMs === undefined) {
    return yield* httpError("malformed", "since must be a time such as 2026-07-01T00:00:00Z")
  }
  return {
    account: field("account"),
    action: yield* oneOf("action", field("action"), auditActions),
    outcome: yield* oneOf("outcome", field("outcome"), auditOutcomes),
    target: field("target"),
    since,
    sinceMs
  }
})

/** Without an outcome in the filter, an operation is listed once, by its outcome. */
const matches = (
  { account, action, outcome, target }: ListingFilter,
  { entry }: ListedEntry
): boolean =>
  (outcome === undefined ? entry.outcome !== "begun" : entry.outcome === outcome) &&
  (account === undefined || entry.account === account) &&
  (action === undefined || entry.action === action) &&
  (target === undefined || entry.target.startsWith(target))

const listedOf = ({ n, value }: LogItem): ListedEntry => {
  // An entry that was changed may be unreadable: the listing shows that it is there.
  const entry = decodeEntry(value) ??
    { previous: "", atMs: 0, action: "unreadable", target: "", outcome: "unknown" as const }
  return { n, hash: entryHash(value), entry }
}

interface EntryPage {
  readonly listed: ReadonlyArray<ListedEntry>
  /** The number of the oldest entry that was read, if there are older ones. */
  readonly next: number | undefined
}

/** A page of the entries before a number, newest first; short after searching many. */
const readEntries = Effect.fnUntraced(function*(
  service: Service,
  { anchor, last }: { readonly anchor: ChainPoint; readonly last: ChainPoint },
  filter: ListingFilter,
  { after, limit }: PageRequest
): Effect.fn.Return<EntryPage, HandlerFailure> {
  const listed: Array<ListedEntry> = []
  const first = anchor.n + 1
  let before = Math.min(after === undefined ? last.n + 1 : Number(after), last.n + 1)
  for (let scanned = 0; before > first && scanned < auditScannedMax;) {
    const from = Math.max(first, before - auditReadItems)
    const items = yield* service.system.read(auditAddress(), from, before - from)
    for (const item of items.filter(({ n }) => n < before).toReversed()) {
      const one = listedOf(item)
      if (filter.sinceMs !== undefined && one.entry.atMs < filter.sinceMs) {
        return { listed, next: undefined }
      }
      if (!matches(filter, one)) continue
      listed.push(one)
      if (listed.length === limit) return { listed, next: item.n > first ? item.n : undefined }
    }
    scanned += before - from
    before = from
  }
  return { listed, next: before > first ? before : undefined }
})

const isNumber = (text: string): boolean => /^[1-9]\d{0,14}$/.test(text)

/** A page of the audit log, newest first. */
export const getAudit = defineHandler(function*(service, call) {
  yield* requireAdmin(service, call)
  const page = yield* readPageRequest(call, isNumber)
  const filter = yield* readFilter(call)
  const log = yield* describeLog(service)
  const { listed, next } = yield* readEntries(service, log, filter, page)
  return viewAnswer(auditView(service, { ...log, listed, filter, page, next }), {
    headers: noStore
  })
})

/** The stored texts from a number on, oldest first, with which a client checks the chain. */
export const getAuditChain = defineHandler(function*(service, call) {
  yield* requireAdmin(service, call)
  const { after, limit } = yield* readPageRequest(call, (text) => /^\d{1,15}$/.test(text))
  const { anchor, last } = yield* describeLog(service)
  const from = Math.max(anchor.n, Number(after ?? 0)) + 1
  const size = Math.min(limit, auditChainItemsMax)
  const items = from > last.n ? [] : yield* service.system.read(auditAddress(), from, size)
  const known = items.filter(({ n }) => n <= last.n)
  return viewAnswer(chainView(service, { anchor, last, items: known }), { headers: noStore })
})
