/**
 * The outgoing notification: its state record, its messages and its replies (protocol §1.3, A5
 * to A8). Item 1 of its log is the document as it is relayed. The items after it are the states of
 * recipients, where there are many: the last item of a recipient counts.
 */
import { Schema } from "effect"
import { DeliveryOutcome } from "../outbound/index.ts"
import { Caller, Count, ifVersion } from "../schemas.ts"

/** The state of one recipient. Times in ms since the epoch. */
export const RecipientState = Schema.Struct({
  /** URI of the recipient's mailbox, as the sender gave it. */
  to: Schema.String,
  /** `waiting`: not tried yet; `retry`: another attempt follows; `failed`: no more attempts. */
  status: Schema.Literals(["waiting", "retry", "success", "failed"]),
  /** Attempts made in all. */
  attempts: Count,
  /** Attempts made since the schedule began, for the first time or by a Retry. */
  tries: Count,
  lastAtMs: Schema.optionalKey(Count),
  /** When the next attempt is due; undefined when there is none. */
  nextAtMs: Schema.optionalKey(Count),
  /** The status code and the problem of the last attempt. */
  code: Schema.optionalKey(Count),
  problem: Schema.optionalKey(Schema.String),
  /** Where the recipient stored it. */
  location: Schema.optionalKey(Schema.String)
})

export type RecipientState = typeof RecipientState.Type

const RunningAttempt = Schema.Struct({
  recipient: Count,
  untilMs: Count,
  /** The attempt does not run: it is deferred for a short time. */
  deferred: Schema.optionalKey(Schema.Literal(true))
})

export type RunningAttempt = typeof RunningAttempt.Type

export const NotificationState = Schema.Union([
  Schema.TaggedStruct("Absent", {}),
  Schema.TaggedStruct("Queued", {
    /** Account whose outgoing mailbox it is in. */
    account: Schema.String,
    /** The id of the request that created it: a repetition is recognized. */
    requestId: Schema.String,
    createdAtMs: Count,
    /** Key of its entry in the outgoing mailbox's listing. */
    listingKey: Schema.String,
    /** Trace id of W3C Trace Context, 32 hexadecimal digits. */
    traceId: Schema.String,
    /** The record has these of a few recipients; those of many are log items. */
    recipients: Schema.Array(RecipientState),
    /** How many recipients are log items; absent: none. */
    listed: Schema.optionalKey(Count),
    /** Counts the changes, from 1. */
    version: Count,
    /** The items of recipients have numbers above this one. */
    cleaned: Count,
    /** Volatile: the number of each recipient's last item, where recipients are log items. */
    items: Schema.optionalKey(Schema.Array(Count)),
    /** Characters of its document. */
    chars: Count,
    /** The id of the last request that retried recipients: a repetition is recognized. */
    retriedBy: Schema.optionalKey(Schema.String),
    /** When the last recipient ended. */
    endedAtMs: Schema.optionalKey(Count),
    /** Volatile: running attempts, each lost after `untilMs`. Unknown after a reload. */
    running: Schema.optionalKey(Schema.Array(RunningAttempt))
  }),
  Schema.TaggedStruct("Removed", {
    account: Schema.String,
    removedAtMs: Count,
    /** Log items above this number are not removed yet. */
    cleaned: Schema.optionalKey(Count)
  })
])

export type NotificationState = typeof NotificationState.Type

export const NotificationMessage = Schema.Union([
  /** Queues it (A5). Repeated with the same request id, it replies the same. */
  Schema.TaggedStruct("Create", {
    requestId: Schema.String,
    account: Schema.String,
    listingKey: Schema.String,
    traceId: Schema.String,
    /**
     * The notification document that every recipient gets, without `to`: `<notification>`, the
     * fragment as a mailbox stores it, `</notification>`, and nothing else; else Invalid.
     */
    document: Schema.String,
    /** Absolute http(s) URIs, in the sender's order, none twice. */
    to: Schema.Array(Schema.String)
  }),
  /** Returns the view (A6), with the next recipients from this index on; absent: from the first. */
  Schema.TaggedStruct("Describe", { caller: Caller, from: Schema.optionalKey(Count) }),
  /** The outcome of an attempt, numbered from 1 over all; `random` in [0, 1) jitters. */
  Schema.TaggedStruct("Attempted", {
    recipient: Count,
    attempt: Count,
    outcome: DeliveryOutcome,
    random: Schema.Number
  }),
  /** Retries the failed recipients, from the start of the schedule. */
  Schema.TaggedStruct("Retry", { caller: Caller, requestId: Schema.optionalKey(Schema.String) }),
  /** Removes the notification (A8). No attempt starts afterwards. */
  Schema.TaggedStruct("Delete", { caller: Caller, ...ifVersion }),
  Schema.TaggedStruct("TimerFired", {})
])

export type NotificationMessage = typeof NotificationMessage.Type

/** The status of the whole notification: `waiting` while a recipient is waiting or retried. */
export type NotificationStatus = "sent" | "waiting" | "failed"

export interface NotificationView {
  readonly account: string
  readonly createdAtMs: number
  readonly status: NotificationStatus
  /** The recipients from the requested index on; `describedRecipientsMax` at most. */
  readonly recipients: ReadonlyArray<RecipientState>
  /** How many recipients the notification has. */
  readonly count: number
  readonly version: number
}

export type NotificationReply =
  | { readonly _tag: "Created"; readonly createdAtMs: number; readonly repeated: boolean }
  | { readonly _tag: "Described"; readonly view: NotificationView }
  | {
    readonly _tag: "Retried"
    /** How many recipients this message retries. */
    readonly recipients: number
    /** Every recipient has the notification, and this request did not retry any before. */
    readonly isSent: boolean
  }
  | { readonly _tag: "Done" }

export type NotificationAction =
  /** Attempt number `attempt` at one recipient; its result is Attempted. */
  | {
    readonly _tag: "Attempt"
    readonly recipient: number
    readonly attempt: number
    readonly to: string
    readonly traceId: string
    readonly account: string
    /** The document if it is small and in memory; else log item 1 is read. */
    readonly document?: string | undefined
    /** Characters of the document. */
    readonly chars: number
  }
  /** Writes the status into the listing, or removes the entry (null): a hint, cheap to lose. */
  | {
    readonly _tag: "UpdateListing"
    readonly listingKey: string
    readonly status: NotificationStatus | null
  }
