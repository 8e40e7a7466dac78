/**
 * Follow-ups: a sender replaces or withdraws a notification that it has sent (protocol §1.3).
 *
 * One actor decides on a notification and on all that follows it, so that one commit settles what
 * its recipients get, and at most one attempt at a recipient runs. Each recipient gets the last
 * edition only:
 *
 * - A recipient that waits, or is retried, gets it in place of the earlier one, by its schedule.
 * - A recipient that has an earlier one is tried from the start of the schedule.
 * - A failed recipient stays failed until a Retry, which sends the last edition.
 * - A withdrawal is not sent to a recipient at which no attempt was begun. It has nothing to lose.
 *
 * At a mailbox of this service the attempt removes the earlier edition and stores the last one in
 * one commit (mailbox/removal.ts). That is a message between actors, with names that are derived
 * from the id of this actor. No client can send it, so that an element `replaces` in a deposit
 * removes nothing. Any other recipient gets a notification whose element `replaces` has the URI
 * under which it knows the earlier one: the Location that it returned, or else the `url`.
 */
import { aboutCharsMax } from "../limits.ts"
import { parseUrl } from "../parse-url.ts"
import { sealedParts, withSealedPassword } from "../sealed-fragment.ts"
import { beginningOf, isBlank } from "../text/index.ts"
import { type Queued, restarted, withTried } from "./attempts.ts"
import type { RecipientState, RelayFollowUp, SenderFollowUp } from "./protocol.ts"

/** The format of the cluster with which follow-ups are stored: older nodes do not know them. */
export const followUpsFormat = 2

/** The number of the last edition. */
export const editionOf = ({ followUps = [] }: Queued): number => followUps.length

export const isWithdrawn = ({ followUps = [] }: Queued): boolean =>
  followUps.at(-1)?.kind === "withdrawal"

/** What followed a notification. */
interface Followed {
  readonly followUps?: ReadonlyArray<SenderFollowUp>
}

/** The log item with the document of an edition. */
const itemOfEdition = ({ followUps = [] }: Followed, edition: number): number =>
  edition === 0 ? 1 : followUps[edition - 1]?.item ?? 1

/** The last edition with a description of the sender: a withdrawal has none. */
const describedEdition = ({ followUps = [] }: Followed): number =>
  followUps.findLastIndex(({ kind }) => kind === "replacement") + 1

/** The log item with the document that describes the notification. */
export const describedItem = (followed: Followed): number =>
  itemOfEdition(followed, describedEdition(followed))

/** What lists and pages show of a description: nothing of a blank one. */
export const aboutOf = (description: string | undefined): { readonly about?: string } =>
  description === undefined || isBlank(description)
    ? {}
    : { about: beginningOf(description, aboutCharsMax) }

/** {@link aboutOf} for the state: of which edition it is, too. */
export const aboutAt = (
  description: string | undefined,
  edition: number
): Pick<Queued, "about" | "aboutEdition"> => {
  const about = aboutOf(description)
  return edition === 0 || about.about === undefined ? about : { ...about, aboutEdition: edition }
}

/** What the notification is about; undefined if the state has nothing, or of another edition. */
export const aboutIn = (state: Queued): string | undefined => {
  const { about, aboutEdition = 0 } = state
  return aboutEdition === describedEdition(state) ? aboutOf(about).about : undefined
}

/** The name of an edition, from which its keys, digests and ids are derived. */
export const editionName = (id: string, edition: number): string =>
  edition === 0 ? id : `${id}.${edition}`

/** What an attempt at this recipient sends; undefined without a follow-up. */
export const relayFollowUpOf = (
  state: Queued,
  { delivered, tried = [] }: RecipientState
): RelayFollowUp | undefined => {
  const edition = editionOf(state)
  if (edition === 0) return undefined
  const { location } = delivered ?? {}
  const earlier = delivered?.edition ?? tried.findLast((one) => one < edition)
  return {
    edition,
    item: itemOfEdition(state, edition),
    isWithdrawal: isWithdrawn(state),
    isKnown: earlier !== undefined,
    ...location === undefined ? {} : { location },
    earlierItem: itemOfEdition(state, earlier ?? 0)
  }
}

/** A recipient that has this edition, when a later one is to be sent. */
const outdated = (
  { attempts, lastAtMs, location, to }: RecipientState,
  edition: number,
  nowMs: number
): RecipientState => ({
  to,
  status: "waiting",
  attempts,
  tries: 0,
  ...lastAtMs === undefined ? {} : { lastAtMs },
  nextAtMs: nowMs,
  delivered: { edition, ...location === undefined ? {} : { location } }
})

/** A recipient after edition `edition` was followed by another one. */
export const afterFollowUp = (
  recipient: RecipientState,
  { edition, isRunning, isWithdrawal, nowMs }: {
    readonly edition: number
    /** Whether an attempt at the recipient runs, or may run. */
    readonly isRunning: boolean
    readonly isWithdrawal: boolean
    readonly nowMs: number
  }
): RecipientState => {
  const { attempts, delivered, status, to, tried = [] } = recipient
  if (status === "success") return outdated(recipient, edition, nowMs)
  // Attempts before the first follow-up have sent the notification itself. One that runs may have
  // sent nothing yet, but nobody knows that for certain after a crash.
  if (isRunning || (edition === 0 && attempts > 0)) {
    return { ...recipient, tried: withTried(tried, edition) }
  }
  const isUnsent = attempts === 0 && delivered === undefined && tried.length === 0
  return isWithdrawal && isUnsent ? { to, status: "success", attempts, tries: 0 } : recipient
}

/**
 * A recipient after an attempt with an edition that was followed meanwhile. It gets the last one,
 * also if it has refused this one, or the schedule of this one has ended.
 */
export const afterEarlier = (
  result: RecipientState,
  edition: number,
  nowMs: number
): RecipientState => {
  if (result.status === "success") return outdated(result, edition, nowMs)
  return result.status === "failed" ? restarted(result, nowMs) : result
}

/* The documents: each recipient gets the URI under which it knows the earlier one. */

/** What `url` of a withdrawal is until it is set for a recipient. */
const emptyUrl = "<url></url>"

/** The item of a withdrawal. */
export const withdrawalFragment = (atMs: number): string =>
  "<item><description>The sender has withdrawn this notification.</description>" +
  `${emptyUrl}<withdrawn>${new Date(atMs).toISOString()}</withdrawn></item>`

const urlEnd = "</url>"

const escaped = (text: string): string =>
  text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;")

/** A URI as it is written into a document; undefined if the text is none of http. */
export const writableUri = (text: string): string | undefined => {
  const url = parseUrl(text)
  return url?.protocol === "http:" || url?.protocol === "https:" ? url.href : undefined
}

/**
 * A stored fragment that names the notification that it replaces. Such a fragment begins with the
 * known elements of its item (`storedFragment`). A withdrawal also has that URI as its `url`, since
 * nothing else is to be read.
 */
export const withReplaces = (stored: string, uri: string, isWithdrawal: boolean): string => {
  const name = escaped(uri)
  const replaces = `<replaces>${name}</replaces>`
  if (isWithdrawal) return stored.replace(emptyUrl, () => `<url>${name}</url>${replaces}`)
  const parts = sealedParts(stored)
  const fragment = parts?.fragment ?? stored
  const end = fragment.indexOf(urlEnd)
  if (end < 0) return stored
  const at = end + urlEnd.length
  const whole = fragment.slice(0, at) + replaces + fragment.slice(at)
  // The password comes after the URL.
  return parts === undefined
    ? whole
    : withSealedPassword(whole, parts.position + replaces.length, parts.sealed)
}
