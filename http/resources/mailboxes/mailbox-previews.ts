/** How the messages of the newest notifications begin, or their files, for their mailbox's page. */
import { Effect } from "effect"
import { askedAtOnceMax, previewCharsMax, previewRowsMax, shownMessageMs } from "../../limits.ts"
import type { Service } from "../../pipeline/index.ts"
import { linkedContent, readBeginning } from "../content/index.ts"
import { titleOf } from "./deposit/index.ts"
import type { MailboxRef } from "./mailbox-access.ts"
import { type ListingPage, type ListingQuery, type MailboxEntry } from "./listing/index.ts"
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
const contentOf = (service: Service, { password, url }: NotificationSummary): string | undefined =>
  password === undefined ? linkedContent(service, url) : undefined

/**
 * The previews of a page's newest notifications, by their numbers; undefined where none can have
 * one. A content is asked for each row, so that only the first page has previews. What is not read
 * in time is left out.
 */
export const readPreviews = Effect.fnUntraced(function*(
  service: Service,
  mailbox: MailboxRef,
  { entries }: ListingPage,
  { before, since }: ListingQuery
): Effect.fn.Return<Previews | undefined> {
  if (before !== undefined || since !== undefined) return undefined
  const candidates = entries.slice(-previewRowsMax).flatMap((entry: MailboxEntry) => {
    const summary = summaryOf(mailbox, entry)
    const contentId = contentOf(service, summary)
    return contentId === undefined ? [] : [{ entry, contentId, about: summary.description }]
  })
  if (candidates.length === 0) return undefined
  const previews = new Map<number, Preview>()
  yield* Effect.forEach(
    candidates,
    ({ about, contentId, entry: { idRandom, n } }) =>
      readBeginning(service, contentId, { mailbox: mailbox.name, idRandom }).pipe(
        Effect.map((begun) => {
          const preview = typeof begun === "string" ? previewOf(begun, about) : begun
          if (preview !== undefined && preview !== "") previews.set(n, preview)
        }),
        Effect.ignore
      ),
    { concurrency: askedAtOnceMax, discard: true }
  ).pipe(Effect.timeout(shownMessageMs), Effect.ignore)
  return previews
})
