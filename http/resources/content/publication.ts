/** Publishing and overwriting content: A1, PUT and DELETE on the edit URI (protocol §1.1). */
import { Effect } from "effect"
import type { ContentBody, ContentMessage, ContentReply } from "../../../actors/content/index.ts"
import { contentKind } from "../../../actors/index.ts"
import { address, commitBlob, isRefusal, placingPart,
  type Refusal } from "../../../runtime/index.ts"
import { audited } from "../../audit/index.ts"
import { type IdSource, randomId, secretHash } from "../../auth/credentials/index.ts"
import { optionalAccount, requireAccount } from "../../auth/index.ts"
import { element } from "../../formats/xml/index.ts"
import { headerValueCharsMax } from "../../limits.ts"
import { absoluteUri, ask, askOrRefusal, type Call, conditionFailed, contentUri, defineHandler,
  emptyAnswer, expectReply, type HandlerFailure, httpError, isConditional, preconditionsHold,
  refusalError, seeOther, type Service, streamError, viewAnswer } from "../../pipeline/index.ts"
import type { RequestBody } from "../../wire/index.ts"
import { announcedBytes, type Charge, ChargedUpload } from "./charged-upload.ts"
import { chargedNetwork } from "./quota.ts"
import { chosenPassword, contentAddressOf, describeContent,
  requireEditor } from "./content-access.ts"
import { contentsPath } from "./content-listing-view.ts"
import { etagOf, unnamedType } from "./download.ts"

/** The header fields that are stored with content. */
interface ContentKind {
  readonly type: string
  readonly disposition?: string
}

const mediaType =
  /^[!#$%&'*+.^_`|~0-9A-Za-z-]+\/[!#$%&'*+.^_`|~0-9A-Za-z-]+\s*(?:;[\x20-\x7e\t]*)?$/

const isMediaType = (type: string): boolean =>
  type.length <= headerValueCharsMax && mediaType.test(type)

/** The type of content that nobody refuses for its type: a field that names none counts as none. */
export const typeOrUnnamed = (contentType: string): string => {
  const type = contentType.trim()
  return isMediaType(type) && /^[\x20-\x7e]+$/.test(type) ? type : unnamedType
}

const kindOf = (call: Call): Effect.Effect<ContentKind, HandlerFailure> => {
  const { headers } = call.request
  const type = headers.get("content-type")?.trim() ?? unnamedType
  const disposition = headers.get("content-disposition")?.trim()
  if (type === "") {
    const detail = "Content-Type is empty: name the type of the content, or omit the field for " +
      unnamedType
    return Effect.fail(httpError("unsupported-media-type", detail))
  }
  if (!isMediaType(type)) {
    return Effect.fail(httpError("malformed", "Content-Type is not a media type"))
  }
  if (disposition === undefined) return Effect.succeed({ type })
  if (
    disposition.length > headerValueCharsMax || !/^[a-z]+\s*(?:;[\x20-\x7e]*)?$/i.test(disposition)
  ) {
    return Effect.fail(httpError("malformed", "Content-Disposition is malformed (RFC 6266)"))
  }
  return Effect.succeed({ type, disposition })
}

/** A stream of bytes, and the fault that ended it early. */
interface ByteSource {
  readonly stream: AsyncIterable<Uint8Array>
  readonly fault: RequestBody["fault"]
}

/** Whether the content of a blob names it: as its body, or as one that it will remove. */
export const contentNames = (
  service: Service,
  blobId: string
): Effect.Effect<boolean, HandlerFailure> => {
  const message: ContentMessage = { _tag: "HasBlob", blobId }
  return Effect.map(
    ask<ContentReply>(service, address(contentKind, placingPart(blobId)), message),
    (reply) => expectReply(reply, "HasBlob").hasBlob
  )
}

/** A body that is about to be stored. */
interface UploadedBody {
  readonly contentId: string
  readonly source: ByteSource
  readonly kind: ContentKind
  /** Whether the content's id was drawn for this request. */
  readonly isNew: boolean
  readonly charge: Charge
}

/** Stores the bytes, within the quota, and asks the content to commit them as its body. */
const commitBytes = Effect.fnUntraced(function*(
  service: Service,
  { charge, contentId, isNew, kind, source }: UploadedBody,
  messageOf: (body: ContentBody) => ContentMessage
): Effect.fn.Return<
  { readonly body: ContentBody; readonly reply: ContentReply },
  HandlerFailure
> {
  const id = `${contentId}=${randomId()}`
  const { blobs, settings: { contentBytesMax: bytesMax } } = service
  const upload = new ChargedUpload(service, contentId, id, charge)
  yield* upload.begin
  let isCommitting = false
  const prepared = { id, source: upload.counted(source.stream), bytesMax, ownerRemoves: true }
  const committed = commitBlob(blobs, prepared, ({ digest, lengthBytes }) => {
    const body: ContentBody = { blobId: id, ...kind, lengthBytes, digest }
    isCommitting = true
    return upload.renew.pipe(
      Effect.andThen(askOrRefusal<ContentReply>(
        service,
        address(contentKind, contentId),
        messageOf(body),
        isNew
      )),
      Effect.map((reply) => ({ isNamed: names(reply, id), result: { body, reply } }))
    )
  })
  const { body, reply } = yield* committed.pipe(
    // The outcome of a commit that failed is unknown: its reservation stays until it is due.
    Effect.tapError(() => isCommitting ? Effect.void : upload.cancel),
    Effect.catchTag("BlobAborted", (aborted): Effect.Effect<never, HandlerFailure> => {
      const fault = source.fault()
      const failure = fault === undefined ? aborted : streamError(fault, "content")
      return Effect.fail(upload.cut ?? failure)
    })
  )
  // The content counts the body that it names.
  if (!names(reply, id)) yield* upload.cancel
  return isRefusal(reply) ? yield* refusalError(reply) : { body, reply }
})

/** Whether a content that replied this has, or has had, the blob as its body. */
const names = (reply: ContentReply | Refusal, blobId: string): boolean =>
  reply._tag === "Overwritten" || (reply._tag === "Published" && reply.body.blobId === blobId)

interface Publication {
  readonly ids: IdSource
  readonly kind: ContentKind
  readonly source: ByteSource
  readonly password: string | undefined
  readonly owner: string | undefined
  readonly payer: Payer
  /** The notification that the content came in. */
  readonly inlinedIn?: InlinedIn | undefined
}

/** The notification of a mailbox that brings content: the random part of its id. */
interface InlinedIn {
  readonly mailbox: string
  readonly idRandom: string
  /** The head of the mailbox's log before the deposit; see the protocol of content. */
  readonly afterN?: number
}

/** Who sends a body, and how long it is; see {@link Charge}. */
type Payer = Omit<Charge, "publication">

interface Published {
  readonly id: string
  readonly editSecret: string
  readonly body: ContentBody
  /** The request is a repetition, and its content was removed in between. */
  readonly isRemoved: boolean
}

const publish = (
  service: Service,
  { ids, inlinedIn, kind, owner, password, payer, source }: Publication
): Effect.Effect<Published, HandlerFailure> => {
  const id = ids.id("content")
  const editSecret = ids.secret("edit")
  const messageOf = (body: ContentBody): ContentMessage => ({
    _tag: "Publish",
    requestId: id,
    body,
    editHash: secretHash(editSecret),
    ...password === undefined ? {} : { passwordHash: secretHash(password) },
    ...owner === undefined ? {} : { owner },
    ...inlinedIn === undefined ? {} : { inlinedIn }
  })
  const publication = { atMs: service.nowMs(), ...owner === undefined ? {} : { owner } }
  const uploaded: UploadedBody = {
    contentId: id,
    source,
    kind,
    isNew: ids.isRandom,
    charge: { ...payer, publication }
  }
  return Effect.flatMap(
    commitBytes(service, uploaded, messageOf),
    ({ body, reply }): Effect.Effect<Published, HandlerFailure> => {
      if (reply._tag === "PublishedOnce") {
        return Effect.succeed({ id, editSecret, body, isRemoved: true })
      }
      const held = expectReply(reply, "Published")
      // The ids of a stream depend on its key alone, so another body meets the first one here.
      return held.generation === 1 && held.body.digest !== body.digest
        ? Effect.fail(httpError("idempotency-key-reuse", "this key was used with another request"))
        : Effect.succeed({ id, editSecret, body, isRemoved: false })
    }
  )
}

const payerOf = (service: Service, call: Call, account: string | undefined): Payer => ({
  account,
  network: chargedNetwork(service, call, account),
  lengthBytes: announcedBytes(call)
})

/** A1: any body, any type, streamed to the store. */
export const postContent = defineHandler(function*(service, call) {
  const account = service.settings.publish === "accounts"
    ? yield* requireAccount(service, call)
    : yield* optionalAccount(service, call)
  const password = yield* chosenPassword(call)
  const kind = yield* kindOf(call)
  const { body, editSecret, id } = yield* publish(service, {
    ids: call.ids,
    kind,
    source: call.body,
    password,
    owner: account?.name,
    payer: payerOf(service, call, account?.name)
  })
  const href = contentUri(service, id)
  const generated = call.request.headers.get("message-password") === "generate"
  return viewAnswer({
    title: "Published",
    tree: element("content", { href, type: body.type, length: body.lengthBytes }),
    links: [{ rel: "edit", href: absoluteUri(service, `/content/${id}~${editSecret}`) }]
  }, {
    status: 202,
    headers: [
      ["Location", href],
      ["Cache-Control", "no-store"],
      ...generated && password !== undefined
        ? [["Message-Password", password] as [string, string]]
        : []
    ]
  })
})

async function* single(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

/** Content that came inlined, as it was published. */
export interface InlinePublication {
  readonly id: string
  readonly href: string
  /** It was removed since, or has too many notifications. */
  readonly isRemoved: boolean
}

/** Publishes content that came inlined in a notification; reports if it was removed since. */
export const publishInline = (
  service: Service,
  ids: IdSource,
  content: {
    readonly type: string
    readonly bytes: Uint8Array
    readonly password: string | undefined
    /** The account that may edit it, and whose quota it uses; without one nobody may. */
    readonly owner?: string
    readonly inlinedIn?: InlinedIn
    readonly sender: Pick<Payer, "account" | "network">
  }
): Effect.Effect<InlinePublication, HandlerFailure> =>
  Effect.map(
    publish(service, {
      ids,
      kind: { type: content.type },
      source: { stream: single(content.bytes), fault: () => undefined },
      password: content.password,
      owner: content.owner,
      inlinedIn: content.inlinedIn,
      payer: { ...content.sender, lengthBytes: content.bytes.length }
    }),
    ({ id, isRemoved }) => ({ id, href: contentUri(service, id), isRemoved })
  )

/** The digest of the body for which the conditions hold; 412 when they do not. */
const expectedDigest = Effect.fnUntraced(function*(
  service: Service,
  call: Call
): Effect.fn.Return<{ readonly ifDigest?: string }, HandlerFailure> {
  if (!isConditional(call)) return {}
  const { body, lastModifiedMs } = yield* describeContent(
    service,
    call,
    yield* contentAddressOf(call)
  )
  if (!preconditionsHold(call, [etagOf(body)], lastModifiedMs)) {
    return yield* conditionFailed
  }
  return { ifDigest: body.digest }
})

/** PUT: replaces the body, as a whole or not at all. */
export const putContent = defineHandler(function*(service, call) {
  const to = yield* contentAddressOf(call)
  const access = yield* requireEditor(service, call, to)
  const expected = yield* expectedDigest(service, call)
  const kind = yield* kindOf(call)
  const messageOf = (body: ContentBody): ContentMessage => ({
    _tag: "Overwrite",
    access,
    body,
    ...expected
  })
  const uploaded: UploadedBody = {
    contentId: to.id,
    source: call.body,
    kind,
    isNew: false,
    charge: { ...payerOf(service, call, access.account), publication: undefined }
  }
  const { body } = yield* commitBytes(service, uploaded, messageOf)
  return emptyAnswer(204, [["ETag", etagOf(body)]])
})

/** Removes the content of a path. */
const removeContent = Effect.fnUntraced(function*(
  service: Service,
  call: Call
): Effect.fn.Return<void, HandlerFailure> {
  const to = yield* contentAddressOf(call)
  const access = yield* requireEditor(service, call, to, true)
  const message: ContentMessage = {
    _tag: "Remove",
    access,
    ...yield* expectedDigest(service, call)
  }
  const removal = ask<ContentReply>(service, to, message)
  const { account, editHash, isAdmin } = access
  const operation = {
    caller: { account, admin: isAdmin === true },
    action: "content.remove",
    target: `/content/${to.id}`
  } as const
  // Whoever has the edit URI removes its own. An admin without it moderates.
  yield* isAdmin === true && editHash === undefined
    ? audited(service, call, operation, removal)
    : removal
})

/** DELETE: 204, then 410. */
export const deleteContent = defineHandler(function*(service, call) {
  yield* removeContent(service, call)
  return emptyAnswer(204)
})

/** The same for the button of the listing's page, which is shown again. */
export const postRemoval = defineHandler(function*(service, call) {
  yield* removeContent(service, call)
  return seeOther(service, contentsPath)
})
