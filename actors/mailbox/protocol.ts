/** The mailbox: its state record, its messages and its replies (protocol §1.2). */
import { Effect, Schema } from "effect"
import { Block } from "../blocks.ts"
import { Base64Id, Caller, Count, CountOrZero, SecretHash } from "../schemas.ts"
import { Range, Retrieval } from "./ranges.ts"
import { nothingWaiting, WaitingCount } from "./waiting-bytes.ts"

/**
 * The request id of the mailbox that the first start of a service opens. Until it is used, its
 * owner or an admin may create a mailbox of the same name in its place.
 */
export const firstStartRequestId = "first-start"

/** The request id of a mailbox that the service has opened for the failure reports of its owner. */
export const reportsRequestId = "failure-reports"

/** The format with which Configure has a secret of webhooks: an older node would drop it. */
export const configuredSecretFormat = 3

/** In place of the secret of webhooks that a restore had no key of: no signature is right. */
export const lostWebhookSecret = "lost"

/** The templates by which the JSON of a webhook becomes a notification, as the owner wrote them. */
export const WebhookTemplates = Schema.Struct({
  /** Of the description; or the name of a sender whose templates the service has. */
  description: Schema.String,
  link: Schema.optionalKey(Schema.String),
  priority: Schema.optionalKey(Schema.String),
  tags: Schema.optionalKey(Schema.String)
})

export type WebhookTemplates = typeof WebhookTemplates.Type

/** The settings of a mailbox, which its owner chooses. */
export const OwnerSettings = Schema.Struct({
  title: Schema.optionalKey(Schema.String),
  /** Who may deposit notifications. */
  deposit: Schema.Literals(["anyone", "accounts"]),
  /** How long a notification is kept after its retrieval, as the owner wrote it (ISO 8601). */
  retention: Schema.String,
  retentionMs: Count,
  /** Whether the mailbox fetches the content that a notification points to. */
  fetch: Schema.Literals(["never", "eager"]),
  fetchLimitBytes: Schema.optionalKey(Count),
  /** When the mailbox sends a receipt to the URI of the content. */
  receipts: Schema.Literals(["none", "received", "retrieved"]),
  /** Without it the mailbox takes no webhooks. */
  webhook: Schema.optionalKey(WebhookTemplates)
})

export type OwnerSettings = typeof OwnerSettings.Type

export const areSameSettings = Schema.toEquivalence(OwnerSettings)

/** A local delivery that was removed: its id in URIs, and when. */
const RemovedLocalDelivery = Schema.Struct({ id: Schema.String, atMs: Count })

/** The beginning of the hash of a site; earlier versions have stored that of an origin. */
const OriginHash = Schema.String.check(Schema.isMaxLength(16))

export const MailboxState = Schema.Union([
  Schema.TaggedStruct("Absent", {}),
  Schema.TaggedStruct("Open", {
    /** The name of the account that created the mailbox. */
    owner: Schema.String,
    /** The id of the request that created the mailbox, to recognize a repetition. */
    requestId: Schema.String,
    createdAtMs: Count,
    settings: OwnerSettings,
    passwordHash: SecretHash,
    sharedHash: SecretHash,
    /** 1 at first, one more after each change of the settings or secrets. */
    version: Count,
    /** How often the secrets have changed: registrations by an earlier secret have ended. */
    secretsVersion: CountOrZero,
    /** When the last notification was received. The log is newer: a deposit stores no state. */
    lastAtMs: Count,
    /** How many log items have been removed. */
    removed: Count,
    /** The numbers of removed log items. Beyond a bound the smallest ranges are forgotten. */
    gone: Schema.Array(Range),
    /** The last removed relays, for as long as a repetition of one is recognized. */
    removedLocalDeliveries: Schema.Array(RemovedLocalDelivery).pipe(
      Schema.withDecodingDefaultKey(Effect.succeed([]))
    ),
    /** Which items were retrieved, and when. Beyond a bound the smallest ranges are forgotten. */
    retrieved: Schema.Array(Retrieval),
    /** The part after the `=` of each push registration's id. Each change signals them. */
    registrations: Schema.Array(Schema.String).pipe(
      Schema.withDecodingDefaultKey(Effect.succeed([]))
    ),
    /** The sites of unknown push services, of which one may have `originBrowsersMax` of them. */
    browserOrigins: Schema.Array(Schema.Struct({ part: Schema.String, origin: OriginHash })).pipe(
      Schema.withDecodingDefaultKey(Effect.succeed([]))
    ),
    /** How many stored log items are removal events, not notifications. */
    events: CountOrZero,
    /** How often the cached copies of contents have changed, which a listing shows. */
    fetched: CountOrZero,
    /** 1 if deposits have brought content: it is removed with their notifications. */
    inlined: CountOrZero,
    /** What strangers have deposited, and waits. The log is newer: a deposit stores no state. */
    waiting: WaitingCount.pipe(Schema.withDecodingDefaultKey(Effect.succeed(nothingWaiting))),
    /** The depositors that the owner has blocked; `mailboxBlocksMax` at most. */
    blocks: Schema.Array(Block).pipe(Schema.withDecodingDefaultKey(Effect.succeed([]))),
    /**
     * The secret by which webhooks are signed, encrypted; `lost` if a restore had no key of it;
     * null if webhooks need no signature.
     */
    webhookSecret: Schema.NullOr(Schema.String).pipe(
      Schema.withDecodingDefaultKey(Effect.succeed(null))
    ),
    /** The numbers of notifications that are marked as read; `readRangesMax` ranges at most. */
    read: Schema.Array(Range).pipe(Schema.withDecodingDefaultKey(Effect.succeed([])))
  }),
  Schema.TaggedStruct("Destroyed", {
    destroyedAtMs: Count,
    /** Log items that are still to be removed. */
    left: Schema.Array(Range),
    /** As in Open. If it is above 0, there may be cached copies to remove. */
    fetched: CountOrZero,
    /** As in Open. */
    inlined: CountOrZero
  })
])

export type MailboxState = typeof MailboxState.Type

/**
 * The credentials of a reader: an account, and the hash of a password or a shared URI's secret. An
 * admin may remove any notification, but not read it (protocol §7).
 */
export const MailboxReader = Schema.Struct({
  account: Schema.optionalKey(Schema.String),
  secretHash: Schema.optionalKey(SecretHash),
  isAdmin: Schema.optionalKey(Schema.Boolean)
})

export type MailboxReader = typeof MailboxReader.Type

/** The id of a registration's actor, `<mailbox>=<part>`, or only the part after the `=`. */
const RegistrationId = Schema.String.check(
  Schema.isPattern(/^(?:[a-z0-9-]{1,64}=)?[A-Za-z0-9_-]{8,64}$/)
)

/** The two parts of the id of a removed notification. */
const Removal = Schema.Struct({ n: Count, idRandom: Base64Id })

export type Removal = typeof Removal.Type

export const MailboxMessage = Schema.Union([
  /**
   * Creates the mailbox. Its owner and admins also create it in place of one that only the first
   * start of the service has opened and nobody has used. A repetition with the same request id gets
   * the same reply.
   */
  Schema.TaggedStruct("Create", {
    requestId: Schema.String,
    owner: Schema.String,
    isAdmin: Schema.optionalKey(Schema.Boolean),
    settings: OwnerSettings,
    passwordHash: SecretHash,
    sharedHash: SecretHash
  }),
  /** Returns whether Create would be refused, and changes nothing. */
  Schema.TaggedStruct("CheckCreate", {
    requestId: Schema.String,
    owner: Schema.String,
    isAdmin: Schema.optionalKey(Schema.Boolean)
  }),
  /** Returns the view to any caller, and whether the caller may read the mailbox. */
  Schema.TaggedStruct("Describe", {
    reader: MailboxReader,
    /** Who is about to deposit: refused as Blocked if the owner blocks this account or network. */
    depositor: Schema.optionalKey(Schema.Struct({
      account: Schema.optionalKey(Schema.String),
      network: Schema.optionalKey(Schema.String)
    }))
  }),
  /** Stores a notification (A2). */
  Schema.TaggedStruct("Deposit", {
    /** The `item` element as XML. */
    fragment: Schema.String,
    /** 128 bits, base64url: of the document's SHA-256 or, with `key`, derived from that key. */
    digest: Base64Id,
    /** 128 random bits, base64url. With `key` they are the same in each attempt. */
    idRandom: Base64Id,
    /** The sender's account, if it has authenticated. */
    account: Schema.optionalKey(Schema.String),
    /** The client network of a sender without an account. */
    network: Schema.optionalKey(Schema.String.check(Schema.isPattern(/^[\x21-\x7e]{1,64}$/))),
    /** A webhook whose signature is right: it counts as one of an account. */
    isSigned: Schema.optionalKey(Schema.Boolean),
    /** The hash of the Idempotency-Key. The actor `<mailbox>=<key>` stores the key's answer. */
    key: Schema.optionalKey(SecretHash),
    /** The notification links to content that came in it: a background task watches over it. */
    isInlined: Schema.optionalKey(Schema.Boolean),
    /** The bytes of this content, if it was published for this deposit: they wait with it. */
    inlinedBytes: Schema.optionalKey(Count),
    /**
     * The number of an earlier deposit of the document, as a reply has named it, whose item is not
     * in the log: its removal is forgotten. Then this one is stored.
     */
    missing: Schema.optionalKey(Count)
  }),
  /**
   * Stores a follow-up of a notification that an outgoing notification has delivered here, in place
   * of that one. Only the relay sends it: no request makes it. A version from before follow-ups
   * refuses it as unknown, and the relay repeats it.
   */
  Schema.TaggedStruct("Replace", {
    /** The `item` element as XML; it names what it replaces, if `replaced` does. */
    fragment: Schema.String,
    digest: Base64Id,
    idRandom: Base64Id,
    /** The sender's account. */
    account: Schema.String,
    /** Without an earlier edition in the mailbox nothing is stored. */
    isWithdrawal: Schema.Boolean,
    /** The digests and random parts of the earlier editions, the newest first. */
    earlier: Schema.Array(Schema.Struct({ digest: Base64Id, idRandom: Base64Id })),
    /** The edition that the mailbox has, as far as the relay knows. */
    replaced: Schema.optionalKey(Removal),
    /** The log has no such item: somebody has removed it, or an earlier Replace. */
    isMissing: Schema.optionalKey(Schema.Boolean)
  }),
  /** Returns the view, with the head of the log, if the caller may read the mailbox (A11). */
  Schema.TaggedStruct("List", { reader: MailboxReader }),
  /**
   * A reader has retrieved the notifications from `from` to `to`: their retention begins. If the
   * mailbox sends receipts on retrieval, one message counts `retrievedPerDecisionMax` at most.
   */
  Schema.TaggedStruct("Retrieved", { from: Count, to: Count }),
  /** Marks the notifications from `from` to `to` as read, for all readers. It is idempotent. */
  Schema.TaggedStruct("MarkRead", { from: Count, to: Count, reader: MailboxReader }),
  /** Marks one notification as unread, for all readers. It is idempotent. */
  Schema.TaggedStruct("MarkUnread", { n: Count, reader: MailboxReader }),
  /** Removes one notification, by the two parts of its id. */
  Schema.TaggedStruct("Remove", { n: Count, idRandom: Base64Id, reader: MailboxReader }),
  /**
   * Adds a registration, which each change then signals. The message is idempotent. Its `origin` is
   * the site of a browser's endpoint, unless that is a known push service.
   */
  Schema.TaggedStruct("Register", {
    id: RegistrationId,
    reader: MailboxReader,
    origin: Schema.optionalKey(OriginHash)
  }),
  /** Removes a registration that has ended; the registration sends it. */
  Schema.TaggedStruct("Unregister", { id: RegistrationId }),
  /**
   * Returns the head of the log to a registration; NotFound if the mailbox does not list it, and
   * Forbidden if the secrets have changed since `secretsVersion`.
   */
  Schema.TaggedStruct("ReadHead", {
    id: RegistrationId,
    secretsVersion: Schema.optionalKey(Count)
  }),
  /** Lists the registrations, if the caller may read the mailbox. */
  Schema.TaggedStruct("Registrations", { reader: MailboxReader }),
  /** The cached copies have changed. A background task sends it. */
  Schema.TaggedStruct("CopiesChanged", {}),
  /** Asks whether a notification is stored and was retrieved. Content that it links to sends it. */
  Schema.TaggedStruct("CheckNotification", { n: Count }),
  /** The result of ReadExpired: notifications, removal events, and numbers without an item. */
  Schema.TaggedStruct("Expire", {
    removed: Schema.Array(Removal),
    events: Schema.Array(Count),
    missing: Schema.Array(Count)
  }),
  /**
   * Replaces the settings. It is refused if the version is not `ifVersion`, unless the mailbox has
   * these settings and this secret: a repetition changes nothing.
   */
  Schema.TaggedStruct("Configure", {
    caller: Caller,
    settings: OwnerSettings,
    ifVersion: Schema.optionalKey(Count),
    /** As in SetWebhookSecret, in the same commit; needs {@link configuredSecretFormat}. */
    webhookSecret: Schema.optionalKey(Schema.NullOr(Schema.String))
  }),
  /** Replaces both secrets. A repetition with the same secrets gets the same reply. */
  Schema.TaggedStruct("ChangeSecrets", {
    caller: Caller,
    passwordHash: SecretHash,
    sharedHash: SecretHash,
    ifVersion: Schema.optionalKey(Count)
  }),
  /** Replaces the secret of webhooks, which is encrypted; null removes it. It is idempotent. */
  Schema.TaggedStruct("SetWebhookSecret", {
    caller: Caller,
    secret: Schema.NullOr(Schema.String)
  }),
  /** Blocks a depositor, in place of an earlier block of the same id; for the owner. */
  Schema.TaggedStruct("Block", { caller: Caller, block: Block }),
  /** Removes a block; for the owner. */
  Schema.TaggedStruct("Unblock", { caller: Caller, id: Schema.String }),
  /** Lists the blocks; for the owner. */
  Schema.TaggedStruct("Blocks", { caller: Caller }),
  /** Destroys the mailbox and everything in it (A10); `ifVersion` as in Configure. */
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
  /** The notification is stored as item `n`; if `repeated`, an earlier deposit stored it. */
  | {
    readonly _tag: "Deposited"
    readonly n: number
    readonly repeated: boolean
    /** The random part of the item's id; undefined if the caller must read it from the log. */
    readonly idRandom: string | undefined
  }
  /** The answer to Replace without `replaced`: this item is to be replaced. Nothing has changed. */
  | { readonly _tag: "Located"; readonly n: number; readonly idRandom: string }
  | { readonly _tag: "Listed"; readonly view: MailboxView }
  | { readonly _tag: "Configured"; readonly version: number }
  | { readonly _tag: "Head"; readonly head: number; readonly lastAtMs: number }
  /** The part after the `=` of each registration's id, in the order of registration. */
  | { readonly _tag: "Registrations"; readonly ids: ReadonlyArray<string> }
  | {
    readonly _tag: "NotificationChecked"
    readonly isStored: boolean
    readonly isRetrieved: boolean
  }
  /** The blocks that have not ended, oldest first. */
  | { readonly _tag: "Blocks"; readonly blocks: ReadonlyArray<Block> }
  | { readonly _tag: "Done" }

export type MailboxAction =
  /** Reads expired items, so that a removal event can name them. Its result is Expire. */
  { readonly _tag: "ReadExpired"; readonly numbers: ReadonlyArray<number> }

/** The view of an open mailbox. */
export interface MailboxView {
  readonly owner: string
  readonly isOwner: boolean
  readonly settings: OwnerSettings
  readonly createdAtMs: number
  /** Changes with the settings and the secrets. */
  readonly version: number
  /** How often the secrets have changed; left out if they never have. */
  readonly secretsVersion?: number
  /** The number of the last log item, 0 before the first. A cursor has it, and `lastAtMs`. */
  readonly head: number
  readonly lastAtMs: number
  /** How many log items were removed. The key of a cached listing contains it. */
  readonly removed: number
  /** Changes with the cached copies of contents. */
  readonly fetched: number
  /** How many notifications are stored. */
  readonly notifications: number
  /**
   * Whether `notifications` may be too low: the mailbox has forgotten which items were removed, and
   * in earlier versions counted some of them twice.
   */
  readonly isEstimate?: boolean
  /** All items up to this number are removed; left out if the first item is still stored. */
  readonly removedUpTo?: number
  /** The encrypted secret of webhooks, or `lost`; if they need a signature. */
  readonly webhookSecret?: string
  /** The numbers of notifications that are marked as read; for readers, if there are any. */
  readonly read?: ReadonlyArray<Range>
  /** The service has opened it for failure reports; whether somebody has used or changed it. */
  readonly forReports?: "unused" | "used"
}
