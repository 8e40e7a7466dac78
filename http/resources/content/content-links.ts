/** The links of notifications to content of this service, which keep it; see actors/content. */
import { Effect } from "effect"
import type { ContentMessage, ContentReply } from "../../../actors/content/index.ts"
import { contentKind, linksUnder, mayNameContent } from "../../../actors/index.ts"
import { address } from "../../../runtime/index.ts"
import { askOrRefusal, type HandlerFailure, type Service } from "../../pipeline/index.ts"

/** The id of the content of this service that a URI names; undefined for any other URI. */
export const linkedContent = ({ settings }: Service, url: string): string | undefined =>
  mayNameContent(url) ? linksUnder(settings.baseUrl).contentOf(url) : undefined

/**
 * Notes at the content that a notification is about to be deposited. If the content is gone, the
 * notification may be deposited nevertheless.
 */
export const noteLink = (
  service: Service,
  contentId: string,
  notification: { readonly mailbox: string; readonly idRandom: string }
): Effect.Effect<void, HandlerFailure> => {
  const message: ContentMessage = { _tag: "Link", ...notification }
  return Effect.asVoid(
    askOrRefusal<ContentReply>(service, address(contentKind, contentId), message)
  )
}

/** Removes a link whose notification was not deposited. If it fails, a check removes it later. */
export const removeLink = (
  service: Service,
  contentId: string,
  notification: { readonly mailbox: string; readonly idRandom: string }
): Effect.Effect<void> => {
  const message: ContentMessage = { _tag: "Unlink", ...notification }
  return Effect.ignore(
    askOrRefusal<ContentReply>(service, address(contentKind, contentId), message)
  )
}
