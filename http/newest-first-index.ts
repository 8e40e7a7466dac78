/**
 * An index of resources, newest first. An entry is written before its resource is created and
 * removed after the resource has ended, so that no resource is ever missing from the index. After a
 * crash in between, an entry may be left: of a resource that has ended, which the next listing
 * removes, or of one that was never created, which listings skip.
 */
import { Effect } from "effect"
import { cursorOf, cursorTimeDigits, cursorTimeMaxMs, type ListingTables,
  removeListingEntry } from "../actors/index.ts"
import { isRefusal, type Refusal } from "../runtime/index.ts"
import type { PageLink } from "./formats/html/index.ts"
import { askedAtOnceMax } from "./limits.ts"
import { type Call, type HandlerFailure, inPlace, nextLink, readPageRequest,
  type Service } from "./pipeline/index.ts"

const cursorPattern = /^\d{13}\.[A-Za-z0-9_=-]{1,200}$/

/** Whether a text can be the cursor of an entry. */
export const isCursor = (text: string): boolean => cursorPattern.test(text)

/** One entry of an index; `cursor` is its key without the owner. */
export interface IndexEntry {
  readonly cursor: string
  readonly id: string
  /** When the entry was written, ms since the epoch. */
  readonly atMs: number
  readonly value: string
}

/** Which entries are read. */
export interface EntryRange {
  readonly after: string | undefined
  readonly limit: number
  readonly oldestFirst?: boolean
}

const prefixOf = (owner: string): string => owner === "" ? "" : `${owner}/`

/**
 * At most `limit` entries of an owner after a cursor, newest first, or oldest first; without a
 * cursor the first.
 */
export const readEntries = (
  { records }: Service,
  { table }: Pick<ListingTables, "table">,
  owner: string,
  { after, limit, oldestFirst = false }: EntryRange
): Effect.Effect<ReadonlyArray<IndexEntry>, HandlerFailure> => {
  const prefix = prefixOf(owner)
  const range = {
    limit,
    ...oldestFirst ? { reverse: true } : {},
    ...prefix === "" ? {} : { prefix },
    ...after === undefined ? {} : { after: prefix + after }
  }
  return Effect.map(records.range(table, range), (rows) =>
    rows.map(({ key, value }) => {
      const cursor = key.slice(prefix.length)
      return {
        cursor,
        id: cursor.slice(cursorTimeDigits + 1),
        atMs: cursorTimeMaxMs - Number(cursor.slice(0, cursorTimeDigits)),
        value
      }
    }))
}

/** Writes the entry of a resource, before the resource is created. An earlier entry stays. */
export const addEntry = Effect.fnUntraced(function*(
  { nowMs, records }: Service,
  { keysTable, table }: ListingTables,
  owner: string,
  id: string
): Effect.fn.Return<void, HandlerFailure> {
  if ((yield* records.get(keysTable, id)) !== undefined) return
  const key = prefixOf(owner) + cursorOf(nowMs(), id)
  yield* records.write([
    { table, key, value: id },
    { table: keysTable, key: id, value: key }
  ])
})

/** A resource of a listing. */
export interface ListedResource<View> {
  readonly id: string
  readonly view: View
}

/** A page of a listing. */
export interface ResourcePage<View> {
  readonly rows: ReadonlyArray<ListedResource<View>>
  /** The link to the next page; empty on the last one. */
  readonly next: ReadonlyArray<PageLink>
}

/**
 * The page that a request asks for. A resource that refuses `describe` is not listed: it does not
 * exist yet, or it has ended. The entry of a resource that has ended is removed.
 */
export const listResources = Effect.fnUntraced(function*<View>(
  service: Service,
  call: Call,
  index: ListingTables & { readonly owner: string; readonly href: string },
  describe: (id: string) => Effect.Effect<View | Refusal, HandlerFailure>
): Effect.fn.Return<ResourcePage<View>, HandlerFailure> {
  const page = yield* readPageRequest(call, isCursor)
  const listing = Effect.gen(function*() {
    const entries = yield* readEntries(service, index, index.owner, page)
    const rows = yield* Effect.forEach(
      entries,
      Effect.fnUntraced(function*({ id }) {
        const view = yield* describe(id)
        if (!isRefusal(view)) return [{ id, view }]
        if (view.reason === "Gone") yield* removeListingEntry(service.records, index, id)
        return []
      }),
      { concurrency: askedAtOnceMax }
    )
    return { entries, rows }
  })
  const { entries, rows } = yield* inPlace(service.actorListings, call.request, listing)
  const next = nextLink(index.href, page, entries.map(({ cursor }) => cursor))
  return { rows: rows.flat(), next }
})
