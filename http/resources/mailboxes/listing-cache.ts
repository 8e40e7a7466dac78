/**
 * Listings as they were shown a moment ago. What a listing shows follows from the mailbox's head,
 * how many were removed, its cached copies and its settings, so that these name its bytes: where
 * none has changed, the next reader gets the same without the log being read and joined again.
 */
import type { MediaType } from "../../formats/index.ts"
import { shownListingsBytesMax } from "../../limits.ts"
import { type Call, type HandlerAnswer, isConditional,
  preferredWaitSeconds } from "../../pipeline/index.ts"
import type { MailboxRef, ProvenReader } from "./mailbox-access.ts"
import type { ListingQuery, NumberSpan } from "./mailbox-listing.ts"

interface Shown {
  readonly answer: HandlerAnswer
  /** The notifications in it, whose retention begins. */
  readonly spans: ReadonlyArray<NumberSpan>
  readonly bytes: number
}

/**
 * Names the listing that a proven reader asks for; undefined when it has to be made: to wait, with
 * conditions, from a time that is to be looked for in the log.
 */
export const listingKey = (
  call: Call,
  place: MailboxRef,
  { view }: ProvenReader,
  query: ListingQuery,
  type: MediaType | undefined
): string | undefined => {
  const { before, limit, since } = query
  if (call.request.method !== "GET" || type === undefined || since?._tag === "At") return undefined
  if (call.request.headers.has("if-modified-since")) return undefined
  if (isConditional(call) || preferredWaitSeconds(call) !== undefined) return undefined
  const { createdAtMs, fetched, head, isOwner, lastAtMs, removed, version } = view
  const state = `${createdAtMs} ${version} ${head} ${removed} ${fetched} ${lastAtMs}`
  return `${type} ${place.here} ${isOwner} ${state} ${since?.n ?? 0} ${before ?? ""} ${limit ?? ""}`
}

/** The last few listings, those least recently shown forgotten first. */
export class ListingCache {
  private readonly kept = new Map<string, Shown>()
  private bytes = 0

  get(key: string): Shown | undefined {
    const shown = this.kept.get(key)
    if (shown === undefined) return undefined
    this.kept.delete(key)
    this.kept.set(key, shown)
    return shown
  }

  add(key: string, answer: HandlerAnswer, spans: ReadonlyArray<NumberSpan>): void {
    if (answer._tag !== "Plain" || answer.status !== 200 || answer.body === undefined) return
    const bytes = answer.body.length + key.length
    // Whoever reads a long log page by page shall not drive out what many read.
    if (bytes > shownListingsBytesMax / 16) return
    this.forget(key)
    this.kept.set(key, { answer, spans, bytes })
    this.bytes += bytes
    for (const oldest of this.kept.keys()) {
      if (this.bytes <= shownListingsBytesMax) break
      this.forget(oldest)
    }
  }

  private forget(key: string): void {
    this.bytes -= this.kept.get(key)?.bytes ?? 0
    this.kept.delete(key)
  }
}
