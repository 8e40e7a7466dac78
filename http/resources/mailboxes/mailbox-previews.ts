/** How the messages of notifications begin, or their files, for the page of their mailbox. */
import { Effect } from "effect"
import { askedAtOnceMax, previewCharsMax, previewRowsMax, shownMessageMs } from "../../limits.ts"
import { inPlace, type Service } from "../../pipeline/index.ts"
import type { HttpRequest } from "../../wire/index.ts"
import { linkedContent, readBeginning } from "../content/index.ts"
import { titleOf } from "./deposit/index.ts"
import type { MailboxRef } from "./mailbox-access.ts"
import type { ListingPage, MailboxEntry } from "./listing/index.ts"
import { type NotificationSummary, type Preview, type Previews,
  summaryOf } from "./mailbox-views.ts"

/** What follows the description where the text begins with it, as that of a plain deposit does. */
const afterDescription = (text: string, description: string): string => {
  const begun = text.trimStart()
  if (titleOf(begun) !== description) return begun
  const [line = ""] = begun.split(/[\r\n]/, 1)
  // The description is a whole line, or the beginning of a longer one.
  const taken = line.trim().length === description.length ? line.length : description.length
  return begun.slice(taken)
}

/**
 * The preview of a message by how it begins: at most `previewCharsMax` characters on one line, cut
 * after a word. Empty where nothing follows the description.
 */
export const previewOf = (text: string, description: string): string => {
  const line = afterDescription(text, description).replace(/[\s\p{Cc}]+/gu, " ").trim()
  const characters = [...line]
  if (characters.length <= previewCharsMax) return line
  const cut = characters.slice(0, previewCharsMax - 1).join("")
  const isWordCut = characters[previewCharsMax - 1] !== " "
  const end = isWordCut && cut.includes(" ") ? cut.lastIndexOf(" ") : cut.length
  return `${cut.slice(0, end).trimEnd()}…`
}

/** The content of a notification that may have a preview. */
const contentOf = (
  service: Service,
  { password, url, withdrawn }: NotificationSummary
): string | undefined =>
  password === undefined && withdrawn === undefined ? linkedContent(service, url) : undefined

/**
 * The previews of a page's first rows, by the numbers of their notifications; undefined where none
 * can have one. A content is asked for each, as in other listings, which have the same places; a
 * page without a place has no previews. What is not read in time is left out.
 */
export const readPreviews = Effect.fnUntraced(function*(
  service: Service,
  request: HttpRequest,
  mailbox: MailboxRef,
  { entries, isLatest }: ListingPage
): Effect.fn.Return<Previews | undefined> {
  // The newest are shown first, and listed last.
  const first = isLatest === true
    ? entries.slice(-previewRowsMax)
    : entries.slice(0, previewRowsMax)
  const candidates = first.flatMap((entry: MailboxEntry) => {
    const summary = summaryOf(mailbox, entry)
    const contentId = contentOf(service, summary)
    return contentId === undefined ? [] : [{ n: entry.n, contentId, about: summary.description }]
  })
  if (candidates.length === 0) return undefined
  const previews = new Map<number, Preview>()
  const reading = Effect.forEach(
    candidates,
    ({ about, contentId, n }) =>
      readBeginning(service, contentId).pipe(
        Effect.map((begun) => {
          const preview = typeof begun === "string" ? previewOf(begun, about) : begun
          if (preview !== undefined && preview !== "") previews.set(n, preview)
        }),
        Effect.ignore
      ),
    { concurrency: askedAtOnceMax, discard: true }
  ).pipe(Effect.timeout(shownMessageMs))
  yield* Effect.ignore(inPlace(service.actorListings, request, reading))
  return previews
})
