/** The mailbox: its state record, its messages and its replies (protocol §1.2). */
import { Effect, Schema } from "effect"
import { Base64Id, Caller, Count, SecretHash } from "../schemas.ts"
import { Range, Retrieval } from "./ranges.ts"

/** The settings of an owner; times in ms, sizes in bytes. */
export const OwnerSettings = Schema.Struct({
  title: Schema.optionalKey(Schema.String),
  /** Who may deposit. */
  deposit: Schema.Literals(["anyone", "accounts"]),
  /** How long a notification is kept after it was retrieved, as the owner wrote it (ISO 8601). */
  retention: Schema.String,
  retentionMs: Count,
  /** Whether the mailbox fetches the content that a notification points to. */
  fetch: Schema.Literals(["never", "eager"]),
  fetchLimitBytes: Schema.optionalKey(Count),
  /** When the mailbox reports to the message's URI. */
  receipts: Schema.Literals(["none", "received", "retrieved"])
})

export type OwnerSettings = typeof OwnerSettings.Type

/** A count that older records do not have. */
const LaterCount = Count.pipe(Schema.withDecodingDefaultKey(Effect.succeed(0)))

export const MailboxState = Schema.Union([
  Schema.TaggedStruct("Absent", {}),
  Schema.TaggedStruct("Open", {
    /** Account that created it. */
    owner: Schema.String,
    /** The id of the request that created it: a repetition is recognized. */
    requestId: Schema.String,
    createdAtMs: Count,
    settings: OwnerSettings,
    passwordHash: SecretHash,
    sharedHash: SecretHash,
    /** Counts the changes of settings and secrets, from 1. */
    version: Count,
    /** When the last notification was received; the log may have a later one. */
    lastAtMs: Count,
    /** How many log items have been removed. */
    removed: Count,
    /** The removed ones; the smallest ranges beyond the bound are forgotten. */
    gone: Schema.Array(Range),
    /** The retrieved ones, and when; the smallest ranges beyond the bound are forgotten. */
    retrieved: Schema.Array(Retrieval),
    /** Its push registrations: the part of their ids after the `=`. Each change signals them. */
    registrations: Schema.Array(Schema.String).pipe(
      Schema.withDecodingDefaultKey(Effect.succeed([]))
    ),
    /** How many stored log items are events of removal, not notifications. */
    events: LaterCount,
    /** Counts the changes of cached copies, which a listing shows. */
    fetched: LaterCount
  }),
  Schema.TaggedStruct("Destroyed", {
    destroyedAtMs: Count,
    /** Log items that are still to be removed. */
    left: Schema.Array(Range),
    /** As in Open. Above 0 there may be copies to remove. */
    fetched: LaterCount
  })
])

export type MailboxState = typeof MailboxState.Type

/** The credentials of a reader: an account, the hash of a password or of a shared URI's secret. */
export const MailboxReader = Schema.Struct({
  account: Schema.optionalKey(Schema.String),
  secretHash: Schema.optionalKey(SecretHash)
})

export type MailboxReader = typeof MailboxReader.Type

/** A registration: its actor's id, or the part of it after the `=`. */
const RegistrationId = Schema.String.check(
  Schema.isPattern(/^(?:[a-z0-9-]{1,64}=)?[A-Za-z0-9_-]{8,64}$/)
)

/** A notification that was removed. */
const Removal = Schema.Struct({ n: Count, idRandom: Base64Id })

export type Removal = typeof Removal.Type

export const MailboxMessage = Schema.Union([
  /** Opens the mailbox. Repeated with the same request id, it replies the same. */
  Schema.TaggedStruct("Create", {
    requestId: Schema.String,
    owner: Schema.String,
    settings: OwnerSettings,
    passwordHash: SecretHash,
    sharedHash: SecretHash
  }),
  /** Returns the view, for anybody; the reply says which rights the reader has. */
  Schema.TaggedStruct("Describe", { reader: MailboxReader }),
  /** Adds a notification (A2); `account` is the depositor's, if any. */
  Schema.TaggedStruct("Deposit", {
    /** The `item` element as XML. */
    fragment: Schema.String,
    /** 128 bits of the document's SHA-256, or derived from the request's key; base64url. */
    digest: Base64Id,
    /** 128 random bits, base64url; with a key the same in each attempt. */
    idRandom: Base64Id,
    account: Schema.optionalKey(Schema.String),
    /** The id of the request's idempotency key is `<mailbox>=<key>`. */
    key: Schema.optionalKey(SecretHash)
  }),
  /** The right to read the log, and its head (A11). */
  Schema.TaggedStruct("List", { reader: MailboxReader }),
  /**
   * A reader has retrieved the notifications from `from` to `to`: their retention begins. If
   * receipts report it, at most `retrievedPerDecisionMax` of them count.
   */
  Schema.TaggedStruct("Retrieved", { from: Count, to: Count }),
  /** Removes one notification; `idRandom` is that of its id. */
  Schema.TaggedStruct("Remove", { n: Count, idRandom: Base64Id, reader: MailboxReader }),
  /** From now on each change signals this registration; it is idempotent. */
  Schema.TaggedStruct("Register", { id: RegistrationId, reader: MailboxReader }),
  /** A registration has ended. From itself. */
  Schema.TaggedStruct("Unregister", { id: RegistrationId }),
  /** Reads the head of the log. From a registration: NotFound if the mailbox has none such. */
  Schema.TaggedStruct("ReadHead", { id: RegistrationId }),
  /** Lists the registrations; for readers. */
  Schema.TaggedStruct("Registrations", { reader: MailboxReader }),
  /** The cached copies have changed. From a background task. */
  Schema.TaggedStruct("CopiesChanged", {}),
  /** The result of ReadExpired: notifications, events of removal, numbers without an item. */
  Schema.TaggedStruct("Expire", {
    removed: Schema.Array(Removal),
    events: Schema.Array(Count),
    missing: Schema.Array(Count)
  }),
  /** Replaces the settings; `ifVersion` is the version that the owner has seen. */
  Schema.TaggedStruct("Configure", {
    caller: Caller,
    settings: OwnerSettings,
    ifVersion: Schema.optionalKey(Count)
  }),
  /** Replaces both secrets. */
  Schema.TaggedStruct("ChangeSecrets", {
    caller: Caller,
    passwordHash: SecretHash,
    sharedHash: SecretHash
  }),
  /** Removes the mailbox and all in it (A10); `ifVersion` as in Configure. */
  Schema.TaggedStruct("Destroy", { caller: Caller, ifVersion: Schema.optionalKey(Count) }),
  Schema.TaggedStruct("TimerFired", {})
])

export type MailboxMessage = typeof MailboxMessage.Type

export type MailboxReply =
  | {
    readonly _tag: "Created"
    readonly version: number
    readonly createdAtMs: number
    readonly repeated: boolean
  }
  | { readonly _tag: "Described"; readonly view: MailboxView; readonly mayRead: boolean }
  /** Stored as item `n`. A repeated one was stored before. */
  | {
    readonly _tag: "Deposited"
    readonly n: number
    readonly repeated: boolean
    /** The stored item's own; undefined when it is in the log only. */
    readonly idRandom: string | undefined
  }
  | { readonly _tag: "Listed"; readonly view: MailboxView }
  | { readonly _tag: "Configured"; readonly version: number }
  | { readonly _tag: "Head"; readonly head: number; readonly lastAtMs: number }
  /** The part of the registrations' ids after the `=`, in the order of registration. */
  | { readonly _tag: "Registrations"; readonly ids: ReadonlyArray<string> }
  | { readonly _tag: "Done" }

export type MailboxAction =
  /** Reads expired items, so that events can name them; its result is Expire. */
  { readonly _tag: "ReadExpired"; readonly numbers: ReadonlyArray<number> }

/** The view of an open mailbox. */
export interface MailboxView {
  readonly owner: string
  readonly isOwner: boolean
  readonly settings: OwnerSettings
  readonly createdAtMs: number
  /** Changes with settings and secrets. */
  readonly version: number
  /** Number of the last notification, 0 before the first. With `lastAtMs` the cursor's parts. */
  readonly head: number
  readonly lastAtMs: number
  /** How many log items were removed: part of what names a listing. */
  readonly removed: number
  /** Changes with the cached copies. */
  readonly fetched: number
  /** How many notifications are stored. */
  readonly notifications: number
  /** Up to this number all were removed; left out when the first one is there. */
  readonly removedUpTo?: number
}
