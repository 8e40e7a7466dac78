/**
 * What an account owns: where each kind is listed, whether a listed resource exists, and the
 * deletion of a page. Each resource decides about itself, as if its owner asked.
 */
import { Effect } from "effect"
import { isRefusal, type Peers, type RecordChange, type RecordEntry, type RecordsApi, type Refusal,
  type StorageFailure } from "../../runtime/index.ts"
import { cabinetKind, cabinetListing, type CabinetMessage,
  type CabinetReply } from "../cabinet/index.ts"
import { askContent } from "../content/index.ts"
import { ownedAtOnceMax, ownedPage } from "../limits.ts"
import { askMailbox, mailboxOwnersTable } from "../mailbox/index.ts"
import { notificationKind, type NotificationMessage, type NotificationReply, outgoingKeysTable,
  outgoingTable } from "../notification/index.ts"
import { ownedQueryRemoval, queryOwnersTable } from "./query-records.ts"
import { outgoingMailboxKind, type OutgoingMailboxMessage,
  type OutgoingMailboxReply } from "../outgoing-mailbox/index.ts"
import { cursorTimeDigits } from "../record-keys.ts"
import { askerOf } from "../schemas.ts"
import { accountSessionsTable, sessionKind, type SessionMessage,
  type SessionReply } from "../session/index.ts"
import { contentListingTable, ownerKey, type UsageLedger } from "../usage/index.ts"
import { type AccountAction, type AccountMessage, type OwnedKind, tokenIdsTable,
  tokenRemoval } from "./protocol.ts"

/** The store of listings, and the ledger, which alone changes the listing of content. */
export interface OwnedStores {
  readonly records: Pick<RecordsApi, "range" | "write">
  readonly usage: Pick<UsageLedger, "entry">
}

type Asking = Pick<Peers, "ask">

const askCabinet = askerOf<CabinetMessage, CabinetReply>(cabinetKind)

const askNotification = askerOf<NotificationMessage, NotificationReply>(notificationKind)

const askOutgoingMailbox = askerOf<OutgoingMailboxMessage, OutgoingMailboxReply>(
  outgoingMailboxKind
)

const askSession = askerOf<SessionMessage, SessionReply>(sessionKind)

/** The id after the time of a cursor. */
const idInCursor = (cursor: string): string => cursor.slice(cursorTimeDigits + 1)

const whole = (rest: string): string => rest

/** The listing of each kind: the start of an account's keys, and the id in the rest of a key. */
const listings: {
  readonly [Kind in OwnedKind]: {
    readonly table: string
    readonly prefix: (account: string) => string
    readonly idIn: (rest: string) => string
  }
} = {
  outgoing: { table: outgoingTable, prefix: (account) => `${account}/`, idIn: idInCursor },
  mailboxes: { table: mailboxOwnersTable, prefix: (account) => `${account}/`, idIn: whole },
  cabinets: { table: cabinetListing.table, prefix: (account) => `${account}/`, idIn: idInCursor },
  sessions: { table: accountSessionsTable, prefix: (account) => `${account}/`, idIn: whole },
  queries: { table: queryOwnersTable, prefix: (account) => `${account}/`, idIn: whole },
  content: {
    table: contentListingTable,
    prefix: (account) => `${ownerKey(account)}/`,
    idIn: idInCursor
  },
  tokens: { table: tokenIdsTable, prefix: (account) => `${account}.`, idIn: whole }
}

/** An entry of a listing: its key, and the id of the resource. */
export interface OwnedEntry extends RecordEntry {
  readonly id: string
}

/** At most `limit` entries of what an account owns, after a key. */
export const readOwned = (
  records: Pick<RecordsApi, "range">,
  account: string,
  kind: OwnedKind,
  { after, limit }: { readonly after?: string | undefined; readonly limit: number }
): Effect.Effect<ReadonlyArray<OwnedEntry>, StorageFailure> => {
  const { idIn, prefix, table } = listings[kind]
  const start = prefix(account)
  const range = { prefix: start, limit, ...after === undefined ? {} : { after } }
  return Effect.map(
    records.range(table, range),
    (rows) => rows.map((row) => ({ ...row, id: idIn(row.key.slice(start.length)) }))
  )
}

/** The kinds of resources; the tokens go with their account. */
export type OwnedResource = Exclude<OwnedKind, "tokens">

/** Whether a listed resource exists, and is the account's. */
export const isOwned = Effect.fnUntraced(function*(
  peers: Asking,
  account: string,
  kind: OwnedResource,
  id: string
) {
  const caller = { account, admin: false }
  switch (kind) {
    case "mailboxes": {
      const reply = yield* askMailbox(peers, id, { _tag: "Describe", reader: { account } })
      // One that the service has opened and nobody has used is removed with its account.
      return !isRefusal(reply) && reply._tag === "Described" && reply.view.isOwner &&
        reply.view.forReports !== "unused"
    }
    case "content": {
      const reply = yield* askContent(peers, id, { _tag: "Measure" })
      return !isRefusal(reply) && reply._tag === "Measured" && reply.summary !== undefined
    }
    case "cabinets":
      return !isRefusal(yield* askCabinet(peers, id, { _tag: "Describe", caller }))
    case "outgoing":
      return !isRefusal(yield* askNotification(peers, id, { _tag: "Describe", caller }))
    case "sessions":
      return !isRefusal(yield* askSession(peers, id, { _tag: "Describe" }))
    case "queries":
      // One write makes or removes a query with its entry.
      return true
  }
})

/** Destroys the mailboxes that the service has opened for an account's reports, if unused. */
export const removeUnusedReports = Effect.fnUntraced(function*(
  { records }: Pick<OwnedStores, "records">,
  peers: Asking,
  account: string
) {
  const reader = { account }
  for (const entry of yield* readOwned(records, account, "mailboxes", { limit: ownedPage })) {
    const found = yield* askMailbox(peers, entry.id, { _tag: "Describe", reader })
    const isUnused = !isRefusal(found) && found._tag === "Described" && found.view.isOwner &&
      found.view.forReports === "unused"
    if (!isUnused) continue
    const reply = yield* deleteResource(peers, account, "mailboxes", entry.id)
    if (!isRefusal(reply)) yield* records.write(entryRemoval(account, "mailboxes", entry))
  }
})

/** The resources that are actors. */
type OwnedActor = Exclude<OwnedResource, "queries">

/** Deletes a resource; the reply is a refusal if there is nothing to delete. */
const deleteResource = Effect.fnUntraced(function*(
  peers: Asking,
  account: string,
  kind: OwnedActor,
  id: string
) {
  const caller = { account, admin: false }
  switch (kind) {
    case "mailboxes":
      return yield* askMailbox(peers, id, { _tag: "Destroy", caller })
    case "content": {
      const reply = yield* askContent(peers, id, { _tag: "Remove", access: { account } })
      // Its bytes are being stored: a tombstone refuses them. The id of its request is its own.
      return isRefusal(reply) && reply.reason === "NotFound"
        ? yield* askContent(peers, id, { _tag: "Withdraw", requestId: id })
        : reply
    }
    case "cabinets":
      return yield* askCabinet(peers, id, { _tag: "Remove", caller })
    case "outgoing":
      return yield* askNotification(peers, id, { _tag: "Delete", caller })
    case "sessions":
      return yield* askSession(peers, id, { _tag: "Delete", caller })
  }
})

type RemoveOwned = Extract<AccountAction, { readonly _tag: "RemoveOwned" }>

/** What became of an entry: whether a resource was deleted, and the changes of the listing. */
interface EntryOutcome {
  readonly isDeleted: boolean
  readonly changes: ReadonlyArray<RecordChange>
  /** Why the resource is left for the next pass. */
  readonly failure?: unknown
}

/** The changes that remove an entry whose resource is gone, and what leads to the entry. */
const entryRemoval = (
  account: string,
  kind: OwnedActor,
  { id, key }: OwnedEntry
): ReadonlyArray<RecordChange> => {
  const removal = { value: null, markerExpires: true }
  const entry = { table: listings[kind].table, key, ...removal }
  switch (kind) {
    case "cabinets":
      return [entry, { table: cabinetListing.keysTable, key: id, ...removal }]
    case "outgoing":
      return [entry, { table: outgoingKeysTable, key: `${account}/${id}`, ...removal }]
    default:
      return [entry]
  }
}

/**
 * Whether the entry may go after this reply. An entry is written before its resource: where there
 * is none, a request may still create it.
 */
const isSettledEntry = (reply: object & { readonly _tag: string } | Refusal, isSettled: boolean) =>
  !isRefusal(reply) || reply.reason === "Gone" || reply.reason === "Forbidden" ||
  (reply.reason === "NotFound" && isSettled)

/**
 * Whether the ledger counts no content of this id. It removes its entry when the bytes are removed.
 * A ledger that was restored may count content that does not exist: the tombstone of such content
 * says that it has nothing, for as often as it takes.
 */
const isUncounted = Effect.fnUntraced(function*(
  { usage }: OwnedStores,
  peers: Asking,
  id: string,
  isGone: boolean
) {
  if ((yield* usage.entry(id)) === undefined) return true
  if (isGone) yield* askContent(peers, id, { _tag: "Withdraw", requestId: id })
  return false
})

const removeEntry = Effect.fnUntraced(function*(
  stores: OwnedStores,
  peers: Asking,
  { account, isSettled, kind }: RemoveOwned,
  entry: OwnedEntry
) {
  const { id, value } = entry
  if (kind === "tokens") return { isDeleted: false, changes: tokenRemoval(account, id, value) }
  if (kind === "queries") return { isDeleted: true, changes: ownedQueryRemoval(account, id) }
  const reply = yield* deleteResource(peers, account, kind, id)
  const isDeleted = !isRefusal(reply)
  const mayGo = isSettledEntry(reply, isSettled) &&
    (kind !== "content" ||
      (yield* isUncounted(stores, peers, id, isRefusal(reply) && reply.reason === "Gone")))
  return { isDeleted, changes: mayGo ? entryRemoval(account, kind, entry) : [] }
})

/** Removes the outgoing mailbox itself; false if it is unavailable, and left for the next pass. */
const removeOutgoingMailbox = (peers: Asking, account: string): Effect.Effect<boolean> =>
  askOutgoingMailbox(peers, account, {
    _tag: "Remove",
    caller: { account, admin: false }
  }).pipe(
    Effect.as(true),
    Effect.catch((failure) =>
      Effect.as(
        Effect.logWarning(
          `the outgoing mailbox of the removed account ${account} is left`,
          failure
        ),
        false
      )
    )
  )

/** Deletes a page of what a removed account owned. A resource that is unavailable is left. */
export const removeOwnedPage = Effect.fnUntraced(function*(
  stores: OwnedStores,
  peers: Asking,
  action: RemoveOwned
): Effect.fn.Return<AccountMessage, StorageFailure> {
  const { account, after, kind } = action
  const entries = yield* readOwned(stores.records, account, kind, { after, limit: ownedPage })
  const outcomes: ReadonlyArray<EntryOutcome> = yield* Effect.forEach(
    entries,
    (entry) =>
      Effect.catch(
        removeEntry(stores, peers, action, entry),
        (failure): Effect.Effect<EntryOutcome> =>
          Effect.succeed({ isDeleted: false, changes: [], failure })
      ),
    { concurrency: ownedAtOnceMax }
  )
  const [failure] = outcomes.flatMap((outcome) => outcome.failure ?? [])
  if (failure !== undefined) {
    yield* Effect.logWarning(
      `some ${kind} of the removed account ${account} were not deleted: the next pass tries again`,
      failure
    )
  }
  const changes = outcomes.flatMap((outcome) => outcome.changes)
  if (changes.length > 0) yield* stores.records.write(changes)
  const last = entries.length < ownedPage ? undefined : entries.at(-1)
  const isLeft = kind === "outgoing" && last === undefined &&
    !(yield* removeOutgoingMailbox(peers, account))
  return {
    _tag: "OwnedRemoved",
    kind,
    ...after === undefined ? {} : { after },
    ...last === undefined ? {} : { next: last.key },
    found: entries.length + (isLeft ? 1 : 0),
    deleted: outcomes.filter(({ isDeleted }) => isDeleted).length
  }
})
