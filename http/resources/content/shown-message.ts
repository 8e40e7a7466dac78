/**
 * The message of a notification, as the notification's page shows it: its text, or a picture. What
 * the page does not show, its link leads to. And the beginning of a text, for the mailbox's page.
 */
import { Effect } from "effect"
import { LRUCache } from "lru-cache"
import type { ContentMessage, ContentReply, ContentView } from "../../../actors/content/index.ts"
import { contentKind } from "../../../actors/index.ts"
import { address, isRefusal } from "../../../runtime/index.ts"
import { mediaTypeOf } from "../../formats/index.ts"
import { previewReadBytesMax, previewsKeptMax, shownMessageBytesMax, shownMessageMs,
  shownPictureBytesMax } from "../../limits.ts"
import { askOrRefusal, expectReply, type Service } from "../../pipeline/index.ts"
import { linkedContent } from "./content-links.ts"

/** What a page can only name: what is no text or picture, and what is too large. */
export interface ShownFile {
  readonly _tag: "File"
  readonly name: string | undefined
  readonly type: string
  readonly lengthBytes: number
}

/** A message that a page shows. */
export type ShownMessage =
  | { readonly _tag: "Text"; readonly text: string }
  /** `path` is below the origin of the page. */
  | { readonly _tag: "Picture"; readonly path: string }
  | ShownFile

const textTypes = /^\s*(?:text\/|application\/(?:[\w.-]+\+)?(?:json|xml)\b)/i

const pictureTypes = /^\s*image\/(?:png|jpeg|gif|webp|avif)\s*(?:;|$)/i

/** The text of bytes; where they are cut, a character that is cut too is left out. */
const textOf = async (source: AsyncIterable<Uint8Array>, isCut = false): Promise<string> => {
  const chunks: Array<Uint8Array> = []
  for await (const chunk of source) chunks.push(chunk)
  const decoder = new TextDecoder("utf-8", { fatal: true })
  return decoder.decode(Buffer.concat(chunks), { stream: isCut })
}

/** The name of a file in its publisher's Content-Disposition (RFC 6266 §4.1). */
const fileNameIn = (disposition = ""): string | undefined =>
  /;\s*filename="([^"\\]+)"/i.exec(disposition)?.[1]

const fileOf = (body: ContentView["body"]): ShownFile => {
  const { disposition, lengthBytes, type } = body
  return { _tag: "File", name: fileNameIn(disposition), type, lengthBytes }
}

const shown = Effect.fnUntraced(function*(service: Service, contentId: string) {
  const message: ContentMessage = { _tag: "Describe", access: {} }
  const to = address(contentKind, contentId)
  const reply = yield* askOrRefusal<ContentReply>(service, to, message)
  if (isRefusal(reply)) return undefined
  const { body } = expectReply(reply, "Described").view
  const { blobId, lengthBytes, type } = body
  const file = fileOf(body)
  if (pictureTypes.test(type)) {
    // The policy of pages allows pictures of their own origin only.
    return service.settings.contentBaseUrl === undefined && lengthBytes <= shownPictureBytesMax
      ? { _tag: "Picture", path: `/content/${contentId}` } as const
      : file
  }
  if (!textTypes.test(type) || lengthBytes === 0 || lengthBytes > shownMessageBytesMax) {
    return file
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

/** The beginnings of texts by the ids of their blobs, whose bytes never change; of each service. */
const knownBeginnings = new WeakMap<Service, LRUCache<string, string>>()

const beginningsOf = (service: Service): LRUCache<string, string> => {
  const known = knownBeginnings.get(service) ?? new LRUCache({ max: previewsKeptMax })
  knownBeginnings.set(service, known)
  return known
}

/**
 * How the plain text begins that came inlined, and to which this notification links, or the file
 * that came so; undefined for any other message, and for one with a password. The content is asked
 * each time, since it may be removed. Its blob is read once.
 */
export const readBeginning = Effect.fnUntraced(function*(
  service: Service,
  contentId: string,
  notification: { readonly mailbox: string; readonly idRandom: string }
) {
  const message: ContentMessage = { _tag: "Describe", access: {}, linkedBy: notification }
  const to = address(contentKind, contentId)
  const reply = yield* askOrRefusal<ContentReply>(service, to, message)
  if (isRefusal(reply)) return undefined
  const { body } = expectReply(reply, "Described").view
  const { blobId, lengthBytes, type } = body
  if (lengthBytes === 0) return undefined
  if (!textTypes.test(type)) return fileOf(body)
  if (mediaTypeOf(type) !== "text/plain") return undefined
  const known = beginningsOf(service)
  const kept = known.get(blobId)
  if (kept !== undefined) return kept
  const end = Math.min(lengthBytes, previewReadBytesMax) - 1
  const source = yield* service.blobs.open(blobId, { start: 0, end })
  const text = yield* Effect.tryPromise(() => textOf(source, end < lengthBytes - 1))
  known.set(blobId, text)
  return text
})
