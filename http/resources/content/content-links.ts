/** The links of notifications to content of this service, which keep it; see actors/content. */
import { Effect } from "effect"
import type { ContentMessage, ContentReply } from "../../../actors/content/index.ts"
import { contentKind, type Links, linksUnder } from "../../../actors/index.ts"
import { address } from "../../../runtime/index.ts"
import { askOrRefusal, type HandlerFailure, type Service } from "../../pipeline/index.ts"

/** The links of each service, made once: a deposit asks for the content that it links to. */
const knownLinks = new WeakMap<Service, Links>()

const linksOf = (service: Service): Links => {
  const known = knownLinks.get(service)
  if (known !== undefined) return known
  const { baseUrl, contentBaseUrl } = service.settings
  const links = linksUnder(baseUrl, contentBaseUrl)
  knownLinks.set(service, links)
  return links
}

/** The id of the content of this service that a URI names; undefined for any other URI. */
export const linkedContent = (service: Service, url: string): string | undefined =>
  url.includes("/content/") ? linksOf(service).contentOf(url) : undefined

/**
 * Notes at the content that a notification is about to be deposited. If the content is gone, the
 * notification may be deposited nevertheless.
 */
export const noteLink = (
  service: Service,
  contentId: string,
  notification: {
    readonly mailbox: string
    readonly idRandom: string
    /** The head of the mailbox's log before the deposit; see the protocol of content. */
    readonly afterN?: number
  }
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
