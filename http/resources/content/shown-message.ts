/**
 * The message of a notification, as the notification's page shows it: its text, or a picture. What
 * the page does not show, its link leads to.
 */
import { Effect } from "effect"
import type { ContentMessage, ContentReply } from "../../../actors/content/index.ts"
import { contentKind } from "../../../actors/index.ts"
import { address, isRefusal } from "../../../runtime/index.ts"
import { shownMessageBytesMax, shownMessageMs, shownPictureBytesMax } from "../../limits.ts"
import { askOrRefusal, expectReply, type Service } from "../../pipeline/index.ts"
import { linkedContent } from "./content-links.ts"

/** A message that a page shows. */
export type ShownMessage =
  | { readonly _tag: "Text"; readonly text: string }
  /** `path` is below the origin of the page. */
  | { readonly _tag: "Picture"; readonly path: string }

const textTypes = /^\s*(?:text\/|application\/(?:[\w.-]+\+)?(?:json|xml)\b)/i

const pictureTypes = /^\s*image\/(?:png|jpeg|gif|webp|avif)\s*(?:;|$)/i

const decoder = new TextDecoder("utf-8", { fatal: true })

const textOf = async (source: AsyncIterable<Uint8Array>): Promise<string> => {
  const chunks: Array<Uint8Array> = []
  for await (const chunk of source) chunks.push(chunk)
  return decoder.decode(Buffer.concat(chunks))
}

const shown = Effect.fnUntraced(function*(service: Service, contentId: string) {
  const message: ContentMessage = { _tag: "Describe", access: {} }
  const to = address(contentKind, contentId)
  const reply = yield* askOrRefusal<ContentReply>(service, to, message)
  if (isRefusal(reply)) return undefined
  const { blobId, lengthBytes, type } = expectReply(reply, "Described").view.body
  if (pictureTypes.test(type)) {
    // The policy of pages allows pictures of their own origin only.
    return service.settings.contentBaseUrl === undefined && lengthBytes <= shownPictureBytesMax
      ? { _tag: "Picture", path: `/content/${contentId}` } as const
      : undefined
  }
  if (!textTypes.test(type) || lengthBytes === 0 || lengthBytes > shownMessageBytesMax) {
    return undefined
  }
  const source = yield* service.blobs.open(blobId)
  return { _tag: "Text", text: yield* Effect.tryPromise(() => textOf(source)) } as const
})

/**
 * The message at a URI, if it is content of this service that anybody may read. Not one with a
 * message password: a notification could bring any password, and its page would tell whether that
 * is right, without the throttle of wrong passwords. Undefined too if it cannot be read soon.
 */
export const readShownMessage = (
  service: Service,
  url: string
): Effect.Effect<ShownMessage | undefined> => {
  const contentId = linkedContent(service, url)
  return contentId === undefined
    ? Effect.succeed(undefined)
    : shown(service, contentId).pipe(
      Effect.timeout(shownMessageMs),
      Effect.orElseSucceed(() => undefined)
    )
}
