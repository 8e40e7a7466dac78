/**
 * The resource that an href answer names (protocol §2). It is read when the answer is PUT: from
 * this service, where anybody may read it, or from another one by the outbound rules (protocol
 * §5, §7). A resource that cannot be read is 422, with the reason.
 */
import { Effect } from "effect"
import type { ContentMessage, ContentReply } from "../../../actors/content/index.ts"
import { sessionKind } from "../../../actors/index.ts"
import type { SessionMessage, SessionReply } from "../../../actors/session/index.ts"
import { address, isRefusal, type Refusal } from "../../../runtime/index.ts"
import { bodyKind } from "../../formats/index.ts"
import { isText, textOf } from "../../formats/xml/index.ts"
import { referenceHopsMax, referredBytesMax, uriCharsMax } from "../../limits.ts"
import { askOrRefusal, type Call, expectReply, type HandlerFailure, type HttpError, httpError,
  localPath, overLimit, type Service } from "../../pipeline/index.ts"

/** Who refers to a resource: a client, with the account that it has shown. */
export interface Referrer {
  readonly request: Call["request"]
  /** Undefined for an anonymous client. */
  readonly account: string | undefined
}

const unreadable = (reason: string): HttpError =>
  httpError("unprocessable", `the href answer: ${reason}`)

const unreadableReason = ({ reason }: Refusal): HttpError => {
  switch (reason) {
    case "Gone":
      return unreadable("its target was deleted")
    case "Unauthenticated":
    case "Forbidden":
      return unreadable("its target is not public")
    default:
      return unreadable("its target does not exist")
  }
}

const collect = (source: AsyncIterable<Uint8Array>): Effect.Effect<Uint8Array, HandlerFailure> =>
  Effect.tryPromise({
    try: async () => {
      const chunks: Array<Uint8Array> = []
      for await (const chunk of source) chunks.push(chunk)
      return Buffer.concat(chunks)
    },
    catch: () =>
      httpError(
        "storage-unavailable",
        "the target of the href answer could not be read; send the answer again"
      )
  })

/** The text of a document; a reference in it is followed. */
const textIn = (
  service: Service,
  referrer: Referrer,
  bytes: Uint8Array,
  type: string,
  hops: number
): Effect.Effect<string, HandlerFailure> => {
  if (bodyKind(type) !== "xml") {
    const text = service.documentParser.decode(bytes, type)
    return text.ok && isText(text.value)
      ? Effect.succeed(text.value)
      : Effect.fail(unreadable("its target is not text"))
  }
  const parsed = service.documentParser.parseXml(bytes, type)
  if (!parsed.ok) return Effect.fail(unreadable("its target is not well-formed XML"))
  const href = parsed.value.name === "answer" ? parsed.value.attributes["href"] : undefined
  return href === undefined
    ? Effect.succeed(textOf(parsed.value))
    : readReference(service, referrer, href, hops + 1)
}

const isReadable = (type: string): boolean => {
  const media = type.trim().toLowerCase()
  return media.startsWith("text/") || bodyKind(media) === "xml"
}

const remoteAccept = "text/plain, application/xml;q=0.9, text/*;q=0.8"

/** The text of a resource of another service; a reference in it is followed. */
const readRemote = Effect.fnUntraced(function*(
  service: Service,
  referrer: Referrer,
  href: string,
  hops: number
): Effect.fn.Return<string, HandlerFailure> {
  const read = service.remoteReader.readerFor(referrer.request, referrer.account)
  const { bytes, type } = yield* read(href, remoteAccept, referredBytesMax).pipe(
    Effect.mapError((reason) => typeof reason === "string" ? unreadable(reason) : overLimit(reason))
  )
  if (!isReadable(type)) return yield* unreadable("its target is neither text nor XML")
  return yield* textIn(service, referrer, bytes, type, hops)
})

const readContent = Effect.fnUntraced(function*(
  service: Service,
  referrer: Referrer,
  id: string,
  hops: number
): Effect.fn.Return<string, HandlerFailure> {
  const message: ContentMessage = { _tag: "Describe", access: {} }
  const reply = yield* askOrRefusal<ContentReply>(service, address("content", id), message)
  if (isRefusal(reply)) return yield* unreadableReason(reply)
  const { blobId, lengthBytes, type } = expectReply(reply, "Described").view.body
  if (lengthBytes > referredBytesMax) {
    return yield* unreadable(`its target has more than ${referredBytesMax} bytes`)
  }
  if (!isReadable(type)) return yield* unreadable("its target is neither text nor XML")
  const bytes = yield* Effect.flatMap(service.blobs.open(blobId), collect)
  return yield* textIn(service, referrer, bytes, type, hops)
})

const askSession = Effect.fnUntraced(function*(
  service: Service,
  id: string,
  message: SessionMessage
): Effect.fn.Return<string, HandlerFailure> {
  const reply = yield* askOrRefusal<SessionReply>(service, address(sessionKind, id), message)
  if (isRefusal(reply)) return yield* unreadableReason(reply)
  if (reply._tag === "Recorded") return reply.answer.text
  if (reply._tag === "Described") return reply.view.p
  throw new Error(`a session replied ${reply._tag}`)
})

const contentPattern = /^\/content\/([A-Za-z0-9_-]{1,200})$/

const sessionPattern = /^\/sessions\/([A-Za-z0-9_-]{1,200})(?:\/(name|quest|hard_question))?$/

const steps = ["name", "quest", "hard_question"] as const

/** The text of a resource of this service, by its path: content, a session, or an answer of one. */
const readOwn = (
  service: Service,
  referrer: Referrer,
  path: string,
  hops: number
): Effect.Effect<string, HandlerFailure> => {
  const bare = path.replace(/#.*$/s, "")
  const content = contentPattern.exec(bare)?.[1]
  if (content !== undefined) return readContent(service, referrer, content, hops)
  const [, session, stepName] = sessionPattern.exec(bare) ?? []
  if (session !== undefined) {
    const step = steps.find((one) => one === stepName)
    const message: SessionMessage = step === undefined
      ? { _tag: "Describe" }
      : { _tag: "ReadAnswer", step }
    return askSession(service, session, message)
  }
  return Effect.fail(unreadable(
    bare.includes("~")
      ? "a URI with a secret must stay private"
      : "in this service it may refer to content, a session, or an answer only"
  ))
}

/** The text of a reference's target; 422 when it cannot be read. */
export const readReference = (
  service: Service,
  referrer: Referrer,
  href: string,
  hops = 0
): Effect.Effect<string, HandlerFailure> => {
  if (!service.settings.takesReferences) {
    return Effect.fail(unreadable("this service takes none (SESSION_REFERENCES): send its text"))
  }
  if (hops > referenceHopsMax) {
    return Effect.fail(unreadable(`it follows more than ${referenceHopsMax} references`))
  }
  if (href.length > uriCharsMax || /[\u0000-\u0020<>"\\^`{|}\u007f-\uffff]/.test(href)) {
    return Effect.fail(unreadable(`it is not a URI of at most ${uriCharsMax} characters`))
  }
  const path = localPath(service, href)
  if (path !== undefined) return readOwn(service, referrer, path, hops)
  return /^https?:\/\/[^/]/i.test(href)
    ? readRemote(service, referrer, href, hops)
    : Effect.fail(
      unreadable("it must be an http or https URI, or an absolute path of this service")
    )
}
