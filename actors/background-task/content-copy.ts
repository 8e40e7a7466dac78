/**
 * The copy of an eager fetch: a content resource of the mailbox's owner. Its id is random: the
 * sender must not be able to derive it from the notification's URI, which it knows. The task
 * records the id first, so that a repeated fetch stores one copy.
 */
import { Clock, Effect } from "effect"
import { randomBytes } from "node:crypto"
import { type AskFailure, commitBlob, isRefusal, type Peers,
  type StorageFailure } from "../../runtime/index.ts"
import { askContent, type ContentMessage } from "../content/index.ts"
import { cachedBytesMax, reservationMs } from "../limits.ts"
import { askMailbox } from "../mailbox/index.ts"
import type { DeliveryOutcome, Fetched } from "../outbound/index.ts"
import { type BackgroundTaskDependencies, type CachedContent, cachedKey, cachedTable,
  type ContentCopy, type TaskTarget } from "./protocol.ts"

/** Who may read a copy. */
interface CopyAccess {
  /** The mailbox's owner, who needs no password. */
  readonly owner: string
  /** Of the password that the content has where it was copied from. */
  readonly passwordHash?: string
}

const idBytes = 16

const typeCharsMax = 255

const typePattern = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+\/[\x20-\x7e]+$/

async function* single(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

/** A copy that nobody can guess. */
export const newCopy = (): ContentCopy => ({
  contentId: randomBytes(idBytes).toString("base64url")
})

/** Why a copy is not stored: it would exceed the quota of the mailbox's owner. */
const noRoom: DeliveryOutcome = {
  _tag: "PermanentFailure",
  problem: "the owner of the mailbox has no room for a copy of the content"
}

/**
 * Stores a copy for the mailbox's owner, under the message's password if there is one, within the
 * owner's quota. After a failure it may be stored nevertheless.
 */
export const storeCopy = Effect.fnUntraced(function*(
  { blobs, usage }: BackgroundTaskDependencies,
  peers: Peers,
  { contentId: id }: ContentCopy,
  { owner, passwordHash }: CopyAccess,
  { bytes, code, type }: Fetched
): Effect.fn.Return<DeliveryOutcome, AskFailure | StorageFailure> {
  const blobId = `${id}=${randomBytes(16).toString("base64url")}`
  const nowMs = yield* Clock.currentTimeMillis
  const reserved = yield* usage.submit({
    _tag: "Reserve",
    contentId: id,
    reservation: { id: blobId, bytes: bytes.length, dueMs: nowMs + reservationMs },
    publication: { owner, atMs: nowMs }
  })
  if (reserved._tag !== "Counted") return noRoom
  const prepared = {
    id: blobId,
    source: single(bytes),
    bytesMax: cachedBytesMax,
    ownerRemoves: true
  }
  const publishing = commitBlob(blobs, prepared, ({ digest, lengthBytes }) => {
    const publish: ContentMessage = {
      _tag: "Publish",
      requestId: id,
      body: {
        blobId,
        type: type.length <= typeCharsMax && typePattern.test(type)
          ? type
          : "application/octet-stream",
        lengthBytes,
        digest
      },
      // The hash of no known secret: only the owner's account may edit.
      editHash: randomBytes(32).toString("base64url"),
      ...passwordHash === undefined ? {} : { passwordHash },
      owner
    }
    return Effect.map(askContent(peers, id, publish), (reply) => {
      const isNamed = !isRefusal(reply) && reply._tag === "Published" &&
        reply.body.blobId === blobId
      return { isNamed, result: isNamed }
    })
  })
  const isNamed = yield* Effect.catchTags(
    publishing,
    // Neither can happen: the bytes are in memory, and were counted.
    { BlobTooLarge: Effect.die, BlobAborted: Effect.die }
  )
  if (!isNamed) {
    yield* usage.submit({ _tag: "Cancel", contentId: id, reservationId: blobId })
  }
  return { _tag: "Delivered", code }
})

/** Enters the copy for listings, then notifies the mailbox that its listing has changed. */
export const listCopy = Effect.fnUntraced(function*(
  { records }: BackgroundTaskDependencies,
  peers: Peers,
  { mailbox, n }: TaskTarget,
  { contentId }: ContentCopy
): Effect.fn.Return<void, AskFailure | StorageFailure> {
  const open = yield* askMailbox(peers, mailbox, { _tag: "Describe", reader: {} })
  // The owner reads the copy without its password.
  const access = isRefusal(open) || open._tag !== "Described" ? {} : { account: open.view.owner }
  const described = yield* askContent(peers, contentId, { _tag: "Describe", access })
  if (!isRefusal(described) && described._tag === "Described") {
    const { lengthBytes, type } = described.view.body
    const cached: CachedContent = { contentId, type, lengthBytes }
    const value = JSON.stringify(cached)
    yield* records.write([{ table: cachedTable, key: cachedKey(mailbox, n), value }])
  }
  yield* askMailbox(peers, mailbox, { _tag: "CopiesChanged" })
})

/** Removes content that came with the notification, unless it came with another one too. */
export const removeInlined = (
  peers: Peers,
  mailbox: string,
  contentId: string,
  idRandom: string
): Effect.Effect<void, AskFailure> =>
  // A refusal means that the content is gone.
  Effect.asVoid(askContent(peers, contentId, { _tag: "Unlink", mailbox, idRandom }))

/** Removes the copy; one that a slow attempt publishes later is refused. */
export const removeCopy = Effect.fnUntraced(function*(
  { records }: BackgroundTaskDependencies,
  peers: Peers,
  { mailbox, n }: TaskTarget,
  { contentId }: ContentCopy
): Effect.fn.Return<void, AskFailure | StorageFailure> {
  yield* records.write([{
    table: cachedTable,
    key: cachedKey(mailbox, n),
    value: null,
    markerExpires: true
  }])
  yield* askContent(peers, contentId, { _tag: "Withdraw", requestId: contentId })
})
