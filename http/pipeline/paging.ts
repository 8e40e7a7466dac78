/** Pages of a listing: `limit` and `after` of the query, and the link to the next one. */
import { Effect } from "effect"
import type { PageLink } from "../formats/html/index.ts"
import { pageEntriesDefault, pageEntriesMax } from "../limits.ts"
import { type Call, readQuery } from "./call.ts"
import { type HttpError, httpError } from "./failures.ts"

/** Which part of a listing is asked for; `after` is the cursor of a next link. */
export interface PageRequest {
  readonly limit: number
  readonly after: string | undefined
}

/**
 * The page that the query asks for. A limit that is no whole number within bounds, or a cursor that
 * `isCursor` does not know, is malformed (400).
 */
export const readPageRequest = (
  call: Call,
  isCursor: (text: string) => boolean
): Effect.Effect<PageRequest, HttpError> =>
  Effect.flatMap(readQuery(call), (query) => {
    const limit = query.get("limit")
    const after = query.get("after")
    if (limit !== undefined && (!/^[1-9]\d{0,8}$/.test(limit) || Number(limit) > pageEntriesMax)) {
      const detail = `limit must be a whole number from 1 to ${pageEntriesMax}`
      return Effect.fail(httpError("malformed", detail))
    }
    if (after !== undefined && !isCursor(after)) {
      return Effect.fail(httpError("malformed", "after is no cursor of this listing"))
    }
    return Effect.succeed({
      limit: limit === undefined ? pageEntriesDefault : Number(limit),
      after
    })
  })

/** The link from a page to the one that begins after `last`; none when the page was not full. */
export const nextLink = (
  address: string,
  { limit }: PageRequest,
  keys: ReadonlyArray<string>
): ReadonlyArray<PageLink> => {
  const last = keys.at(-1)
  if (last === undefined || keys.length < limit) return []
  const query = `limit=${limit}&after=${encodeURIComponent(last)}`
  return [{ rel: "next", href: `${address}?${query}`, title: "Next page" }]
}
