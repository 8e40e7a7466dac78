/**
 * How long content is kept (protocol §7). Anonymous content expires a retention after its
 * publication or its last read, but not while an unretrieved notification of a mailbox here links
 * to it. Inlined content is kept as long as a notification that links to it. Pure.
 */
import type { Variant } from "../../runtime/index.ts"
import { contentLinksMax, idempotencyRetentionMs, inlinedCheckMs, linkRefreshMs, linksOverflowMs,
  retentionParts } from "../limits.ts"
import type { ContentLink, ContentMessage, ContentState } from "./protocol.ts"

type Published = Variant<ContentState, "Published">

type LinkKey = Pick<ContentLink, "mailbox" | "idRandom">

type NewLink = LinkKey & Pick<ContentLink, "afterN">

const isInlined = (state: Published): boolean => state.isInlined === true

/** Whether an anonymous client has published the content, so that it expires. */
const isAnonymous = (state: Published): boolean => state.owner === undefined && !isInlined(state)

/** Whether the content depends on its links. */
const isLinkable = (state: Published): boolean => isAnonymous(state) || isInlined(state)

export const linksOf = (state: Published): ReadonlyArray<ContentLink> => state.links ?? []

/** When an anonymous content expires if nothing links to it. */
const expiresAtMs = (state: Published, retentionMs: number): number =>
  Math.max(state.lastModifiedMs, state.lastReadMs ?? 0, state.keptUntilMs ?? 0) + retentionMs

/**
 * When content expires at the earliest; undefined for content that does not. Reads, and
 * notifications that link to it, keep it longer.
 */
export const expiryOf = (state: Published, retentionMs: number): number | undefined =>
  isAnonymous(state) ? expiresAtMs(state, retentionMs) : undefined

/** When the content's links are checked, or it expires; null for content that its owner keeps. */
export const lifetimeAtMs = (state: Published, retentionMs: number): number | null =>
  isAnonymous(state)
    ? Math.max(expiresAtMs(state, retentionMs), state.checkAtMs ?? 0)
    : isInlined(state)
    ? state.checkAtMs ?? state.lastModifiedMs + inlinedCheckMs
    : null

/** Whether nothing keeps the content any more. */
export const hasEnded = (state: Published, nowMs: number, retentionMs: number): boolean =>
  linksOf(state).length === 0 &&
  (isInlined(state) || isAnonymous(state) && nowMs >= expiresAtMs(state, retentionMs))

/** When the tombstone of the content is removed; undefined if it stays. */
export const forgetAtMs = (
  state: Published,
  nowMs: number,
  retentionMs: number
): { readonly forgetAtMs?: number } =>
  isLinkable(state)
    ? { forgetAtMs: nowMs + Math.max(retentionMs, idempotencyRetentionMs) }
    : {}

/** The state after a read; undefined if that need not be recorded. */
export const readAt = (
  state: Published,
  nowMs: number,
  retentionMs: number
): Published | undefined => {
  const readMs = Math.max(state.lastModifiedMs, state.lastReadMs ?? 0)
  return isAnonymous(state) && nowMs >= readMs + retentionMs / retentionParts
    ? { ...state, lastReadMs: nowMs }
    : undefined
}

const isSame = (one: LinkKey, other: LinkKey): boolean =>
  one.idRandom === other.idRandom && one.mailbox === other.mailbox

/** A new link. */
export const linkAt = ({ afterN, idRandom, mailbox }: NewLink, nowMs: number): ContentLink => ({
  mailbox,
  idRandom,
  ...afterN === undefined ? {} : { afterN },
  fromMs: nowMs,
  toMs: nowMs
})

/**
 * The link of a repeated deposit. An earlier attempt may have stored the notification, so a search
 * begins where that one noted; before that only if a restore has taken the log back.
 */
const refreshedLink = (known: ContentLink, { afterN }: NewLink, nowMs: number): ContentLink => {
  const isTakenBack = known.afterN !== undefined && afterN !== undefined && afterN < known.afterN
  if (!isTakenBack && nowMs < known.toMs + linkRefreshMs) return known
  return { ...known, ...isTakenBack ? { afterN } : {}, toMs: nowMs }
}

/** The state with a link: itself if nothing changes, undefined if it has too many. */
export const withLink = (state: Published, key: NewLink, nowMs: number): Published | undefined => {
  const links = linksOf(state)
  if (!isLinkable(state)) return state
  const known = links.find((one) => isSame(one, key))
  if (known !== undefined) {
    const refreshed = refreshedLink(known, key, nowMs)
    if (refreshed === known) return state
    return { ...state, links: links.map((one) => one === known ? refreshed : one) }
  }
  if (links.length < contentLinksMax) {
    const next = { ...state, links: [...links, linkAt(key, nowMs)] }
    return isInlined(state) ? { ...next, checkAtMs: earliestCheckAtMs(state, nowMs) } : next
  }
  return isInlined(state) ? undefined : { ...state, keptUntilMs: nowMs + linksOverflowMs }
}

/** By then the notification of a new link is deposited, or never will be. */
const earliestCheckAtMs = ({ checkAtMs }: Published, nowMs: number): number =>
  Math.min(checkAtMs ?? Number.POSITIVE_INFINITY, nowMs + inlinedCheckMs)

/** The state without a link; itself if it has no such link. */
export const withoutLink = (state: Published, key: LinkKey): Published => {
  const links = linksOf(state).filter((one) => !isSame(one, key))
  return links.length === linksOf(state).length ? state : { ...state, links }
}

/** The state after a check of its links. Links that were noted again meanwhile stay. */
export const withChecks = (
  state: Published,
  { checks }: Variant<ContentMessage, "LinksChecked">,
  nowMs: number,
  retentionMs: number
): Published => {
  const links = linksOf(state).flatMap((link): ReadonlyArray<ContentLink> => {
    const check = checks.find((one) => isSame(one, link))
    if (check === undefined || check.toMs !== link.toMs) return [link]
    switch (check.found._tag) {
      case "Kept":
        return [{ ...link, n: check.found.n }]
      case "Unknown":
        return [{ ...link, afterN: check.found.afterN }]
      case "Ended":
        return []
    }
  })
  // The task of a stored notification removes its link from inlined content: a check of those that
  // are found is a precaution. The others may never be stored.
  const inlinedWaitMs = links.every(({ n }) => n !== undefined) ? retentionMs : inlinedCheckMs
  const partMs = Math.ceil(retentionMs / retentionParts)
  // A search that is not over must be faster than the log grows.
  const isSearching = checks.some(({ found }) => found._tag === "Unknown")
  const anonymousWaitMs = isSearching ? Math.min(partMs, inlinedCheckMs) : partMs
  const waitMs = isInlined(state) ? inlinedWaitMs : anonymousWaitMs
  return { ...state, links, checkAtMs: nowMs + waitMs }
}
