/** The listing of content (protocol §7): the caller's own, and for an admin everybody's. */
import { Effect } from "effect"
import type { ContentMessage, ContentReply } from "../../../actors/content/index.ts"
import { contentKind, contentListingTable, cursorOf, everyoneKey, ownerKey,
  type UsageTotal } from "../../../actors/index.ts"
import { address } from "../../../runtime/index.ts"
import { isSlug } from "../../auth/credentials/index.ts"
import { type AuthenticatedAccount, requireAccount } from "../../auth/index.ts"
import { askedAtOnceMax } from "../../limits.ts"
import { type IndexEntry, isCursor, readEntries } from "../../newest-first-index.ts"
import { absoluteUri, ask, type Call, defineHandler, expectReply, type HandlerFailure, httpError,
  inPlace, nextLink, readerHeaders, readPageRequest, readQuery, type Service,
  viewAnswer } from "../../pipeline/index.ts"
import { contentsPath, contentsView, type ListedContent } from "./content-listing-view.ts"

/** Whose content a request asks for. */
interface Selection {
  /** Undefined for that of clients without an account. */
  readonly owner: string | undefined
  /** Everybody's content, whoever owns it. */
  readonly isEverybody: boolean
  readonly oldestFirst: boolean
}

const readSelection = Effect.fnUntraced(function*(
  call: Call,
  caller: AuthenticatedAccount
): Effect.fn.Return<Selection, HandlerFailure> {
  const query = yield* readQuery(call)
  const order = query.get("order") || "newest"
  // Browsers send empty fields of a form.
  const owner = query.get("owner") || undefined
  const anonymous = query.get("anonymous") || undefined
  if (order !== "newest" && order !== "oldest") {
    return yield* httpError("malformed", "order must be newest or oldest")
  }
  if (anonymous !== undefined && anonymous !== "true") {
    return yield* httpError("malformed", "anonymous must be true, or left out")
  }
  if (owner !== undefined && (anonymous !== undefined || !isSlug(owner))) {
    return yield* httpError(
      "malformed",
      "owner must be the name of an account, and stand without anonymous"
    )
  }
  const oldestFirst = order === "oldest"
  const isAdmin = caller.roles.includes("admin")
  if (!isAdmin && (anonymous !== undefined || (owner ?? caller.name) !== caller.name)) {
    return yield* httpError(
      "forbidden",
      "the content of others is listed for the role admin alone; leave out owner and anonymous"
    )
  }
  if (anonymous !== undefined) return { owner: undefined, isEverybody: false, oldestFirst }
  return { owner: owner ?? caller.name, isEverybody: isAdmin && owner === undefined, oldestFirst }
})

/** The address of a selection, which pages have in common. */
const hrefOf = (
  service: Service,
  { isEverybody, oldestFirst, owner }: Selection,
  caller: AuthenticatedAccount
): string => {
  const query = new URLSearchParams()
  if (oldestFirst) query.set("order", "oldest")
  if (!isEverybody && owner === undefined) query.set("anonymous", "true")
  const isOwn = owner === caller.name && !caller.roles.includes("admin")
  if (!isEverybody && owner !== undefined && !isOwn) query.set("owner", owner)
  const text = query.toString()
  return absoluteUri(service, text === "" ? contentsPath : `${contentsPath}?${text}`)
}

/** The content of an entry; none if it is not published so far, or was removed. */
const describeListed = Effect.fnUntraced(function*(
  service: Service,
  { atMs, id }: IndexEntry
): Effect.fn.Return<ReadonlyArray<ListedContent>, HandlerFailure> {
  const message: ContentMessage = { _tag: "Measure" }
  const reply = yield* ask<ContentReply>(service, address(contentKind, id), message)
  const { stored, summary } = expectReply(reply, "Measured")
  if (summary !== undefined) return [{ id, publishedAtMs: atMs, ...summary }]
  if (stored._tag === "Removed" && (yield* service.usage.entry(id)) === undefined) {
    // The ledger has removed the keys; a server that was killed has brought them back.
    yield* removeKeys(service, atMs, id)
  }
  return []
})

const removeKeys = ({ records }: Service, atMs: number, id: string) =>
  records.write([
    {
      table: contentListingTable,
      key: `${everyoneKey}/${cursorOf(atMs, id)}`,
      value: null,
      markerExpires: true
    }
  ])

/** A page of the caller's content; for an admin everybody's, an account's or strangers'. */
export const getContents = defineHandler(function*(service, call) {
  const caller = yield* requireAccount(service, call)
  const selection = yield* readSelection(call, caller)
  const { isEverybody, oldestFirst, owner } = selection
  const page = yield* readPageRequest(call, isCursor)
  const entries = yield* readEntries(
    service,
    { table: contentListingTable },
    isEverybody ? everyoneKey : ownerKey(owner),
    { ...page, oldestFirst }
  )
  const describing = Effect.forEach(entries, (entry) => describeListed(service, entry), {
    concurrency: askedAtOnceMax
  })
  const listed = yield* inPlace(service.actorListings, call.request, describing)
  const total: UsageTotal | undefined = isEverybody
    ? undefined
    : yield* service.usage.total(owner)
  const { accountBytesMax, anonymousBytesMax } = service.usage.limits
  const href = hrefOf(service, selection, caller)
  const view = contentsView(service, {
    href,
    owner: isEverybody ? undefined : owner,
    isAdmin: caller.roles.includes("admin"),
    oldestFirst,
    usage: total && {
      ...total,
      bytesMax: owner === undefined ? anonymousBytesMax : accountBytesMax
    },
    contents: listed.flat(),
    next: nextLink(href, page, entries.map(({ cursor }) => cursor))
  })
  return viewAnswer(view, { headers: readerHeaders })
})
