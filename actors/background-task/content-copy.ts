/**
 * The copy that an eager fetch keeps: a content resource of the mailbox's owner, under a URI that
 * follows from the notification's, so that a repeated fetch keeps one copy and not two.
 */
import { Effect } from "effect"
import { hash, randomBytes } from "node:crypto"
import { type Address, address, type AskFailure, isRefusal, type Peers, type Refusal,
  type StorageFailure } from "../../runtime/index.ts"
import { contentKind, type ContentMessage, type ContentReply } from "../content/index.ts"
import { cachedBytesMax } from "../limits.ts"
import { mailboxKind, type MailboxMessage } from "../mailbox/index.ts"
import type { Fetched } from "../outbound/index.ts"
import { type BackgroundTaskDependencies, type CachedContent, cachedKey, cachedTable,
  type ContentCopy } from "./protocol.ts"

const idChars = 22

const typeCharsMax = 255

const typePattern = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+\/[\x20-\x7e]+$/

const hashOf = (text: string): string => hash("sha256", text, "base64url")

const askContent = (
  peers: Peers,
  to: Address,
  message: ContentMessage
): Effect.Effect<ContentReply | Refusal, AskFailure> =>
  // Content answers in its own protocol, and in no other.
  peers.ask(to, message) as Effect.Effect<ContentReply | Refusal, AskFailure>

async function* single(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

/** Keeps a copy for the mailbox's owner. `key` is the notification's secret. */
export const keepCopy = Effect.fnUntraced(function*(
  { arriving, blobs }: BackgroundTaskDependencies,
  peers: Peers,
  key: string,
  owner: string,
  { bytes, type }: Fetched
): Effect.fn.Return<ContentCopy, AskFailure | StorageFailure> {
  const id = hashOf(`copy ${key}`).slice(0, idChars)
  const blobId = `${id}=${randomBytes(16).toString("base64url")}`
  arriving.add(blobId)
  const keep = Effect.gen(function*() {
    const { digest, lengthBytes } = yield* Effect.catchTags(
      blobs.put(blobId, single(bytes), cachedBytesMax),
      // Neither can be: the bytes are in memory, and were counted.
      { BlobTooLarge: Effect.die, BlobAborted: Effect.die }
    )
    const reply = yield* askContent(peers, address(contentKind, id), {
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
      // Nobody has the secret that this would be the hash of: only the owner's account may edit.
      editHash: randomBytes(32).toString("base64url"),
      owner
    })
    const isFirst = !isRefusal(reply) && reply._tag === "Published" && !reply.repeated
    if (!isFirst) yield* blobs.remove(blobId)
    return { contentId: id, owner }
  })
  return yield* Effect.ensuring(keep, Effect.sync(() => arriving.delete(blobId)))
})

interface NotificationPosition {
  readonly mailbox: string
  readonly n: number
}

const tellMailbox = (peers: Peers, mailbox: string) => {
  const message: MailboxMessage = { _tag: "Fetched" }
  return peers.ask(address(mailboxKind, mailbox), message)
}

/** Enters the copy for listings, then tells the mailbox that its listing has changed. */
export const showCopy = Effect.fnUntraced(function*(
  { records }: BackgroundTaskDependencies,
  peers: Peers,
  { mailbox, n }: NotificationPosition,
  { contentId }: ContentCopy
): Effect.fn.Return<void, AskFailure | StorageFailure> {
  const described = yield* askContent(peers, address(contentKind, contentId), {
    _tag: "Describe",
    access: {}
  })
  if (!isRefusal(described) && described._tag === "Described") {
    const { lengthBytes, type } = described.view.body
    const cached: CachedContent = { contentId, type, lengthBytes }
    const value = JSON.stringify(cached)
    yield* records.write([{ table: cachedTable, key: cachedKey(mailbox, n), value }])
  }
  yield* tellMailbox(peers, mailbox)
})

/** Takes the copy away with its notification. */
export const clearCopy = Effect.fnUntraced(function*(
  { records }: BackgroundTaskDependencies,
  peers: Peers,
  { mailbox, n }: NotificationPosition,
  { contentId, owner }: ContentCopy
): Effect.fn.Return<void, AskFailure | StorageFailure> {
  yield* records.write([{
    table: cachedTable,
    key: cachedKey(mailbox, n),
    value: null,
    fades: true
  }])
  // Refused where it is gone already.
  const message: ContentMessage = { _tag: "Remove", access: { account: owner } }
  yield* askContent(peers, address(contentKind, contentId), message)
})
