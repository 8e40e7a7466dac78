/** Content: its state record, its messages and its replies (protocol §1.1). */
import { Schema } from "effect"
import { Base64Id, Count, SecretHash } from "../schemas.ts"
import type { StoredUsage } from "../usage/index.ts"

/** The bytes of a content resource, and the header fields served with them. */
export const ContentBody = Schema.Struct({
  blobId: Schema.String,
  /** Content-Type. */
  type: Schema.String,
  /** The publisher's Content-Disposition. */
  disposition: Schema.optionalKey(Schema.String),
  lengthBytes: Count,
  /** SHA-256 of the bytes, base64url. */
  digest: Schema.String
})

export type ContentBody = typeof ContentBody.Type

/** Ids of blobs that the content no longer refers to. They may still be in the store. */
const stale = Schema.Array(Schema.String)

/** A notification of a mailbox of this service, by the random part of its id. */
const LinkKey = { mailbox: Schema.String, idRandom: Base64Id }

const NewLink = {
  ...LinkKey,
  /**
   * The head of the mailbox's log before the deposit. Left out if it is unknown, or if an earlier
   * attempt may have stored the notification.
   */
  afterN: Schema.optionalKey(Count)
}

/**
 * A notification that links to the content, or will do so: it is noted before it is deposited. The
 * deposit was attempted between `fromMs` and `toMs`, by the clock of the content's node. Earlier
 * versions of the service need `fromMs` to decode the record.
 */
export const ContentLink = Schema.Struct({
  ...NewLink,
  fromMs: Count,
  toMs: Count,
  /** Its number in the mailbox's log, once a check has found it. */
  n: Schema.optionalKey(Count)
})

export type ContentLink = typeof ContentLink.Type

export const ContentState = Schema.Union([
  Schema.TaggedStruct("Absent", {}),
  Schema.TaggedStruct("Published", {
    /** The id of the request that published the content, to recognize a repetition. */
    requestId: Schema.String,
    body: ContentBody,
    lastModifiedMs: Count,
    /** 1 for the first body, one more for each that replaces it. */
    generation: Count,
    editHash: SecretHash,
    passwordHash: Schema.optionalKey(SecretHash),
    owner: Schema.optionalKey(Schema.String),
    stale,
    /** When it was last read, within a fraction of its retention; of anonymous content only. */
    lastReadMs: Schema.optionalKey(Count),
    /** A deposit brought it: it is removed with the last notification that links to it. */
    isInlined: Schema.optionalKey(Schema.Boolean),
    /** The notifications that keep it; of anonymous and of inlined content only. */
    links: Schema.optionalKey(Schema.Array(ContentLink)),
    /** The links are not checked before this time. */
    checkAtMs: Schema.optionalKey(Count),
    /** It does not expire before this time, since it has more links than it can note. */
    keptUntilMs: Schema.optionalKey(Count)
  }),
  Schema.TaggedStruct("Removed", {
    stale,
    /** The log number of the last receipt that is not yet removed; 0 when all are removed. */
    receiptsLeft: Count,
    /** When the record is removed; left out where it stays for ever. */
    forgetAtMs: Schema.optionalKey(Count)
  })
])

export type ContentState = typeof ContentState.Type

/**
 * The credentials of a caller: the secret of the edit URI, the message password, an account. An
 * admin may remove any content, but neither read nor replace it (protocol §7).
 */
export const ContentAccess = Schema.Struct({
  editHash: Schema.optionalKey(SecretHash),
  passwordHash: Schema.optionalKey(SecretHash),
  account: Schema.optionalKey(Schema.String),
  isAdmin: Schema.optionalKey(Schema.Boolean)
})

export type ContentAccess = typeof ContentAccess.Type

/** What a check of a link has found. */
export const LinkFinding = Schema.Union([
  /** The notification is stored, and nobody has retrieved it; or the content is inlined in it. */
  Schema.TaggedStruct("Kept", { n: Count }),
  /** It was retrieved or removed, or was never deposited. */
  Schema.TaggedStruct("Ended", {}),
  /** The search in the mailbox's log is not over: it continues after this number. */
  Schema.TaggedStruct("Unknown", { afterN: Count })
])

export type LinkFinding = typeof LinkFinding.Type

export const ContentMessage = Schema.Union([
  /** Publishes a body, whose bytes are already in the blob store (A1). */
  Schema.TaggedStruct("Publish", {
    requestId: Schema.String,
    body: ContentBody,
    editHash: SecretHash,
    passwordHash: Schema.optionalKey(SecretHash),
    owner: Schema.optionalKey(Schema.String),
    /** The notification that is about to be deposited with this content in it. */
    inlinedIn: Schema.optionalKey(Schema.Struct(NewLink))
  }),
  /**
   * A notification that links to the content is about to be deposited. Content that can expire
   * notes it; other content needs no commit.
   */
  Schema.TaggedStruct("Link", NewLink),
  /** The notification is gone, or was not deposited. Inlined content goes with its last link. */
  Schema.TaggedStruct("Unlink", LinkKey),
  /** The result of CheckLinks. */
  Schema.TaggedStruct("LinksChecked", {
    checks: Schema.Array(Schema.Struct({ ...LinkKey, toMs: Count, found: LinkFinding }))
  }),
  /**
   * Returns the view, if the caller may read (A3). A preview is no read: it keeps anonymous content
   * no longer, and needs no commit.
   */
  Schema.TaggedStruct("Describe", {
    access: ContentAccess,
    isPreview: Schema.optionalKey(Schema.Boolean)
  }),
  /**
   * Checks that the caller may edit, before an upload and before the receipts are listed; or, if
   * `toRemove`, that it may remove.
   */
  Schema.TaggedStruct("Authorize", {
    access: ContentAccess,
    toRemove: Schema.optionalKey(Schema.Boolean)
  }),
  /**
   * Replaces the body. The new bytes are already in the blob store. If `ifDigest` is not the digest
   * of the current body, the message is refused.
   */
  Schema.TaggedStruct("Overwrite", {
    access: ContentAccess,
    body: ContentBody,
    ifDigest: Schema.optionalKey(Schema.String)
  }),
  Schema.TaggedStruct("Remove", {
    access: ContentAccess,
    ifDigest: Schema.optionalKey(Schema.String)
  }),
  /**
   * Removes the content if the request of this id has published it; if that `Publish` arrives
   * later, it stores nothing. The sender of a `Publish` with an indeterminate outcome sends it.
   */
  Schema.TaggedStruct("Withdraw", { requestId: Schema.String }),
  /** Stores a receipt (A4) as a log item; {@link decodeReceipt} reads it. */
  Schema.TaggedStruct("Receipt", {
    access: ContentAccess,
    value: Schema.String,
    /**
     * The id of a request that has an Idempotency-Key or comes from a mailbox: its repetition gets
     * the number of the first receipt.
     */
    requestId: Schema.optionalKey(Base64Id),
    /**
     * Stores nothing, and replies `Done` if the receipt would be stored. A node of an earlier
     * version stores the receipt.
     */
    isDryRun: Schema.optionalKey(Schema.Boolean)
  }),
  /**
   * Asks what the content stores, for listings and quotas; for the service alone. With `isCertain`
   * the reply needs a commit, as with HasBlob.
   */
  Schema.TaggedStruct("Measure", { isCertain: Schema.optionalKey(Schema.Boolean) }),
  /** Asks whether the content refers to a blob. Blob garbage collection sends it. */
  Schema.TaggedStruct("HasBlob", { blobId: Schema.String }),
  /** The result of RemoveBlobs: the store no longer has these blobs. */
  Schema.TaggedStruct("BlobsRemoved", { blobIds: Schema.Array(Schema.String) }),
  Schema.TaggedStruct("TimerFired", {})
])

export type ContentMessage = typeof ContentMessage.Type

/** The view of a content resource, for readers. */
export interface ContentView {
  readonly body: ContentBody
  readonly lastModifiedMs: number
  readonly hasPassword: boolean
}

/** A content in a listing. */
export interface ContentSummary {
  readonly type: string
  readonly lengthBytes: number
  readonly lastModifiedMs: number
  readonly owner?: string
  /** When it expires, unless it is read or linked to before; only for anonymous content. */
  readonly expiresAtMs?: number
}

export type ContentReply =
  /**
   * A repeated request gets the current body, not the one that it sent. With `generation` 1 it is
   * the body of the first attempt; with a higher one an overwrite has replaced that body.
   */
  | { readonly _tag: "Published"; readonly body: ContentBody; readonly generation: number }
  /** A repeated request whose content was published and later removed. */
  | { readonly _tag: "PublishedOnce" }
  | { readonly _tag: "Described"; readonly view: ContentView }
  | { readonly _tag: "Overwritten" }
  | { readonly _tag: "Received"; readonly n: number }
  | { readonly _tag: "HasBlob"; readonly hasBlob: boolean }
  | {
    readonly _tag: "Measured"
    readonly stored: StoredUsage
    /** Undefined without a body. */
    readonly summary: ContentSummary | undefined
  }
  | { readonly _tag: "Done" }

export type ContentAction =
  /** Removes blobs, and then counts what is left; the timer repeats it if it fails. */
  | {
    readonly _tag: "RemoveBlobs"
    readonly blobIds: ReadonlyArray<string>
    readonly stored: StoredUsage
  }
  /** Counts the first body. If it fails, its reservation ends when it is due. */
  | { readonly _tag: "CountBody"; readonly stored: StoredUsage }
  /** Finds out which links still keep the content; the timer repeats it if it fails. */
  | {
    readonly _tag: "CheckLinks"
    readonly links: ReadonlyArray<ContentLink>
    readonly isInlined: boolean
    readonly nowMs: number
  }

/** A stored receipt. */
export interface StoredReceipt {
  /** When the content received it, ms since the epoch. */
  readonly atMs: number
  /** The receipt as it was sent. The content does not interpret it. */
  readonly value: string
}

/** The log item of a receipt: `<time, ms since the epoch, base 36>[ <request id>]\n<value>`. */
export const encodeReceipt = (
  atMs: number,
  value: string,
  requestId: string | undefined
): string => `${atMs.toString(36)}${requestId === undefined ? "" : ` ${requestId}`}\n${value}`

/**
 * Characters of a request id in the deduplication window: 72 bits. V8 copies a substring of up to
 * 12 characters. A longer one would be a view of the whole item, and would keep it in memory.
 */
const receiptKeyChars = 12

/** The key of a request id in the deduplication window. */
export const receiptKey = (requestId: string): string => requestId.slice(0, receiptKeyChars)

/** The {@link receiptKey} of the log item of a receipt; undefined if it has no request id. */
export const receiptKeyOf = (item: string): string | undefined => {
  const end = item.indexOf("\n")
  const from = item.indexOf(" ") + 1
  return from === 0 || from > end ? undefined : receiptKey(item.slice(from, end))
}

/** The receipt of a log item. */
export const decodeReceipt = (item: string): StoredReceipt => {
  const end = item.indexOf("\n")
  if (end < 1) throw new Error("a receipt's log item has no header line")
  return { atMs: Number.parseInt(item.slice(0, end), 36), value: item.slice(end + 1) }
}
