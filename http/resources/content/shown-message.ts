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

/**
 * The body of content that anybody may read; undefined for any other, and for one with a message
 * password. A notification could bring any password, and its page would show whether that is right,
 * without the throttle of wrong passwords.
 */
const openBody = Effect.fnUntraced(function*(
  service: Service,
  contentId: string,
  isPreview?: boolean
) {
  const message: ContentMessage = {
    _tag: "Describe",
    access: {},
    ...isPreview === true ? { isPreview } : {}
  }
  const to = address(contentKind, contentId)
  const reply = yield* askOrRefusal<ContentReply>(service, to, message)
  return isRefusal(reply) ? undefined : expectReply(reply, "Described").view.body
})

const isShownText = ({ lengthBytes, type }: ContentView["body"]): boolean =>
  textTypes.test(type) && lengthBytes > 0 && lengthBytes <= shownMessageBytesMax

const shown = Effect.fnUntraced(function*(service: Service, contentId: string) {
  const body = yield* openBody(service, contentId)
  if (body === undefined) return undefined
  const { blobId, lengthBytes, type } = body
  if (pictureTypes.test(type)) {
    // The policy of pages allows pictures of their own origin only.
    return service.settings.contentBaseUrl === undefined && lengthBytes <= shownPictureBytesMax
      ? { _tag: "Picture", path: `/content/${contentId}` } as const
      : fileOf(body)
  }
  if (!isShownText(body)) return fileOf(body)
  const source = yield* service.blobs.open(blobId)
  return { _tag: "Text", text: yield* Effect.tryPromise(() => textOf(source)) } as const
})

/**
 * The message at a URI, if it is content of this service that anybody may read. Undefined too if it
 * cannot be read soon.
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
 * JSON as one line, as people write it: `{"id": 1, "name": "a b"}`. Strings stay as they are. It
 * need not be whole.
 */
const onOneLine = (json: string): string =>
  json.replace(
    /("(?:[^"\\]|\\.)*"?)|\s+|([,:])/g,
    (_token, text: string | undefined, sign: string | undefined) =>
      text ?? (sign === undefined ? "" : `${sign} `)
  )

/** Types whose beginning is for programs: declarations and elements. */
const markupTypes = /html|xml/

/**
 * How the text of content begins that anybody may read, or the file that it is: that which
 * `readShownMessage` shows as one, and a text that begins with markup. Undefined for any other
 * content, and without bytes. The content is asked each time, since it may be removed or replaced.
 * Its blob is read once.
 */
export const readBeginning = Effect.fnUntraced(function*(service: Service, contentId: string) {
  const body = yield* openBody(service, contentId, true)
  if (body === undefined || body.lengthBytes === 0) return undefined
  const type = mediaTypeOf(body.type)
  if (!isShownText(body) || markupTypes.test(type)) return fileOf(body)
  const { blobId, lengthBytes } = body
  const known = beginningsOf(service)
  const kept = known.get(blobId)
  if (kept !== undefined) return kept
  const end = Math.min(lengthBytes, previewReadBytesMax) - 1
  const source = yield* service.blobs.open(blobId, { start: 0, end })
  const text = yield* Effect.tryPromise(() => textOf(source, end < lengthBytes - 1))
  const beginning = type.endsWith("json") ? onOneLine(text) : text
  known.set(blobId, beginning)
  return beginning
})
