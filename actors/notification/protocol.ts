/**
 * The outgoing notification: its state record, its messages and its replies (protocol §1.3, A5
 * to A8). Item 1 of its log is the document that recipients get. The items after it are the
 * documents of follow-ups, attempts, and, if there are many recipients, their states: the
 * last such item of a recipient is its current state.
 */
import { Schema } from "effect"
import { FailureReport, FailureReportAddressed, FailureReportSettled,
  type ReportFailure } from "../failure-reports/index.ts"
import { DeliveryOutcome, ExchangeRecord } from "../outbound/index.ts"
import { Caller, Count, ifVersion } from "../schemas.ts"

/**
 * What the sender has sent after the notification: another document, or that it is withdrawn.
 * The number of a follow-up, counted from 1, is its edition; the notification itself is edition 0.
 */
export const SenderFollowUp = Schema.Struct({
  kind: Schema.Literals(["replacement", "withdrawal"]),
  /** The id of the request, to recognize a repetition. */
  requestId: Schema.String,
  atMs: Count,
  /** The number of the log item with its document. */
  item: Count
})

export type SenderFollowUp = typeof SenderFollowUp.Type

/** The state of one recipient. Times are in ms since the epoch. */
export const RecipientState = Schema.Struct({
  /** URI of the recipient's mailbox, as the sender gave it. */
  to: Schema.String,
  /** `waiting`: not tried yet; `retry`: another attempt follows; `failed`: no more attempts. */
  status: Schema.Literals(["waiting", "retry", "success", "failed"]),
  /** How many attempts were made at the recipient. */
  attempts: Count,
  /** How many of them were made since the schedule began, at first or after a Retry. */
  tries: Count,
  lastAtMs: Schema.optionalKey(Count),
  /** How long the last attempt took. */
  tookMs: Schema.optionalKey(Count),
  /** When the next attempt is due; undefined when there is none. */
  nextAtMs: Schema.optionalKey(Count),
  /** The status code and the problem of the last attempt. */
  code: Schema.optionalKey(Count),
  problem: Schema.optionalKey(Schema.String),
  /** The URI of the stored notification, as the recipient returned it. */
  location: Schema.optionalKey(Schema.String),
  /** The edition that the recipient has while another, or it again, is on its way, and where. */
  delivered: Schema.optionalKey(Schema.Struct({
    edition: Count,
    location: Schema.optionalKey(Schema.String)
  })),
  /**
   * Since a follow-up: the last editions of which an attempt was made or may have been, without
   * success. A follow-up names the last one before its own in every attempt, and never one that
   * the recipient cannot have: its URI may open a message that was not sent.
   */
  tried: Schema.optionalKey(Schema.Array(Count))
})

export type RecipientState = typeof RecipientState.Type

const RunningAttempt = Schema.Struct({
  recipient: Count,
  untilMs: Count,
  /** The attempt does not run: it is deferred for a short time. */
  deferred: Schema.optionalKey(Schema.Literal(true)),
  /** The actor was loaded since: the attempt may have been made before a crash. */
  mayRepeat: Schema.optionalKey(Schema.Literal(true))
})

export type RunningAttempt = typeof RunningAttempt.Type

/**
 * The attempts that the log keeps, the oldest first: of each the number of its item, the index of
 * its recipient, and its characters.
 */
const AttemptLog = Schema.Array(Schema.Tuple([Count, Count, Count]))

export type AttemptLog = typeof AttemptLog.Type

/** What a pause of the outgoing mailbox keeps back. */
const Hold = Schema.Struct({
  /** The origin of the recipients that it concerns; left out if it concerns all of them. */
  origin: Schema.optionalKey(Schema.String),
  /** Since when a pause has kept them back. */
  atMs: Count,
  /** Until then none of their attempts begins; the next one asks whether the pause still stands. */
  untilMs: Count,
  /**
   * Whether it is certain that no attempt that it concerns runs, or was made before a crash; left
   * out while one runs.
   */
  isQuiet: Schema.optionalKey(Schema.Boolean)
})

export type Hold = typeof Hold.Type

export const NotificationState = Schema.Union([
  Schema.TaggedStruct("Absent", {}),
  Schema.TaggedStruct("Queued", {
    /** The account in whose outgoing mailbox the notification is. */
    account: Schema.String,
    /** The id of the request that created the notification, to recognize a repetition. */
    requestId: Schema.String,
    createdAtMs: Count,
    /** The key of the notification's entry in the listing of the outgoing mailbox. */
    listingKey: Schema.String,
    /** The beginning of its description; left out if the node that queued it was an older one. */
    about: Schema.optionalKey(Schema.String),
    /**
     * The edition of `about`; left out for 0. A node that does not know both keeps them when it
     * stores another edition.
     */
    aboutEdition: Schema.optionalKey(Count),
    /** Trace id of W3C Trace Context, 32 hexadecimal digits. */
    traceId: Schema.String,
    /** The span of the request that created it, 16 such digits; left out if it is not exported. */
    spanId: Schema.optionalKey(Schema.String),
    /** Stored here if they are few; otherwise they are read from the log. */
    recipients: Schema.Array(RecipientState),
    /** How many recipients are log items; left out if the record has them. */
    listed: Schema.optionalKey(Count),
    /** 1 at first, one more after each change. */
    version: Count,
    /** The last log number that was cleaned: the items of recipients are above it. */
    cleaned: Count,
    /** Not stored: the number of each recipient's last item, if recipients are log items. */
    items: Schema.optionalKey(Schema.Array(Count)),
    /** Characters of the document that is relayed. */
    chars: Count,
    /** The last Retries that had a request id, the newest last, to recognize a repetition. */
    retries: Schema.optionalKey(
      Schema.Array(Schema.Struct({ requestId: Schema.String, atMs: Count }))
    ),
    /** When the last replays were, `replaysPerHourMax` at most; left out before the first. */
    replaysMs: Schema.optionalKey(Schema.Array(Count)),
    /** What followed the notification, the newest last; left out if nothing has. */
    followUps: Schema.optionalKey(Schema.Array(SenderFollowUp)),
    /**
     * Left out before the first one. If recipients are log items, the log has those above
     * `cleaned`.
     */
    attemptLog: Schema.optionalKey(AttemptLog),
    /** What pauses keep back, one for each; left out if no attempt was paused. */
    holds: Schema.optionalKey(Schema.Array(Hold)),
    /** When the last recipient ended. */
    endedAtMs: Schema.optionalKey(Count),
    /**
     * The report of the first recipient that has failed for good since the notification was queued,
     * retried or followed. It waits for its deposit.
     */
    failureReport: Schema.optionalKey(FailureReport),
    /** Not stored: a step of the report is under way, and counts as lost after this time. */
    failureReportUntilMs: Schema.optionalKey(Count),
    /** Not stored: the running attempts. An attempt counts as lost after `untilMs`. */
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
  /** Queues a notification (A5). A repetition with the same request id gets the same reply. */
  Schema.TaggedStruct("Create", {
    requestId: Schema.String,
    account: Schema.String,
    listingKey: Schema.String,
    traceId: Schema.String,
    /** A node that does not know the field exports no spans of the attempts. */
    spanId: Schema.optionalKey(Schema.String),
    /**
     * The document that every recipient gets, without `to`. It must be `<notification>`, the
     * fragment as a mailbox stores it, and `</notification>`; otherwise it is refused as Invalid.
     */
    document: Schema.String,
    /** The description of the document, of which the beginning is kept. */
    about: Schema.optionalKey(Schema.String),
    /** Absolute http(s) URIs in the sender's order, without duplicates. */
    to: Schema.Array(Schema.String)
  }),
  /**
   * Returns the view (A6), with the recipients from index `from` on; by default from the first.
   * `max`: no more recipients than this. A node that does not know `max` returns more, and one that
   * does not know `attempts` returns none.
   */
  Schema.TaggedStruct("Describe", {
    caller: Caller,
    from: Schema.optionalKey(Count),
    max: Schema.optionalKey(Count),
    /** With the numbers of the log items that are attempts. */
    attempts: Schema.optionalKey(Schema.Boolean)
  }),
  /** The outcome of attempt number `attempt` at a recipient. `random` in [0, 1) is the jitter. */
  Schema.TaggedStruct("Attempted", {
    recipient: Count,
    attempt: Count,
    outcome: DeliveryOutcome,
    /** The edition of the attempt; left out for 0. */
    edition: Schema.optionalKey(Count),
    /** What was exchanged: of a local delivery only when and how long. */
    exchange: Schema.optionalKey(ExchangeRecord),
    /** It was a local delivery. */
    isLocal: Schema.optionalKey(Schema.Boolean),
    /** The attempt has failed, and the account may have a mailbox for failure reports. */
    mayReport: Schema.optionalKey(Schema.Boolean),
    random: Schema.Number
  }),
  /**
   * Attempt number `attempt` at a recipient was not made: the outgoing mailbox is paused, or the
   * relays to this origin are.
   */
  Schema.TaggedStruct("AttemptHeld", {
    recipient: Count,
    attempt: Count,
    origin: Schema.optionalKey(Schema.String)
  }),
  /** A pause has ended: what waits for it begins, or asks again. Of the service itself only. */
  Schema.TaggedStruct("Release", {}),
  FailureReportAddressed,
  FailureReportSettled,
  /**
   * Retries the failed recipients, from the start of the schedule; or those with these indices,
   * or those of these URIs that it has, whatever they have got. A repetition with the same request
   * id changes nothing: for 24 hours, among the last `keyedRetriesMax`.
   */
  Schema.TaggedStruct("Retry", {
    caller: Caller,
    requestId: Schema.optionalKey(Schema.String),
    recipients: Schema.optionalKey(Schema.Array(Count)),
    to: Schema.optionalKey(Schema.Array(Schema.String))
  }),
  /**
   * Replaces what the recipients get or have got by this document. Without one the notification is
   * withdrawn, which an admin may do too. A repetition with the same request id changes nothing for
   * 24 hours.
   */
  Schema.TaggedStruct("FollowUp", {
    caller: Caller,
    requestId: Schema.String,
    document: Schema.optionalKey(Schema.String),
    about: Schema.optionalKey(Schema.String)
  }),
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
  /**
   * The recipients from the requested index on; `describedRecipientsMax` or `max` at most. After a
   * follow-up they have no location: it would show whether a reader had removed the first one.
   */
  readonly recipients: ReadonlyArray<RecipientState>
  /** How many recipients the notification has. */
  readonly count: number
  readonly version: number
  /** The beginning of what the recipients get it described by; left out if it is not known. */
  readonly about?: string
  /** Since when a pause keeps some of them back, by their index in `recipients`. */
  readonly held?: Readonly<Record<number, number>>
  /** What followed the notification, the newest last; left out if nothing has. */
  readonly followUps?: ReadonlyArray<SenderFollowUp>
  /** The log items that are attempts, the oldest first; only if they were asked for. */
  readonly attemptItems?: ReadonlyArray<number>
}

export type NotificationReply =
  | { readonly _tag: "Created"; readonly createdAtMs: number; readonly repeated: boolean }
  | { readonly _tag: "Described"; readonly view: NotificationView }
  | {
    readonly _tag: "Retried"
    /** How many recipients this message retries. */
    readonly recipients: number
    /** The same request has retried recipients before. */
    readonly isRepeated: boolean
  }
  /** There were as many replays as an hour may have. */
  | { readonly _tag: "TooManyReplays"; readonly untilMs: number }
  /** The follow-up is stored; `isRepeated`: the same request has stored it before. */
  | { readonly _tag: "FollowedUp"; readonly isRepeated: boolean }
  | { readonly _tag: "Done" }

/** The follow-up that an attempt sends. */
export interface RelayFollowUp {
  readonly edition: number
  /** The number of the log item with its document. */
  readonly item: number
  readonly isWithdrawal: boolean
  /** Whether the recipient has, or may have, an earlier edition: a withdrawal names it. */
  readonly isKnown: boolean
  /** Where the recipient has stored it, if it has said so. */
  readonly location?: string | undefined
  /** The number of the log item with the document of that edition. */
  readonly earlierItem: number
}

export type NotificationAction =
  /** Makes attempt number `attempt` at one recipient. Its result is Attempted. */
  | {
    readonly _tag: "Attempt"
    readonly recipient: number
    readonly attempt: number
    readonly to: string
    readonly traceId: string
    /** The span that the attempt's is a child of; undefined if that is not exported. */
    readonly spanId?: string | undefined
    readonly account: string
    /** The document, if it is small and in memory; otherwise the attempt reads it from the log. */
    readonly document?: string | undefined
    /** What the attempt sends in place of the notification itself. */
    readonly followUp?: RelayFollowUp | undefined
    /** Characters of the document. */
    readonly chars: number
    /** Its failure may be reported: it looks up whether the account wants that. */
    readonly mayReport?: boolean
    /** It may be paused: it looks up whether the outgoing mailbox has a pause. */
    readonly mayBePaused?: boolean
  }
  /**
   * Asks whether the pause that has just held back a relay to this URI still stands: that of all
   * relays, or of those to this origin.
   */
  | {
    readonly _tag: "ConfirmHold"
    readonly account: string
    readonly to: string
    readonly origin: string | undefined
  }
  /** Reports a failure to the account. */
  | ReportFailure & { readonly account: string }
  /**
   * Writes the status into the listing; null removes the entry. The status there is a hint: if the
   * write is lost, the listing shows an older status.
   */
  | {
    readonly _tag: "UpdateListing"
    readonly listingKey: string
    readonly status: NotificationStatus | null
  }
  /** The node's waiting attempts of earlier editions must not start. */
  | { readonly _tag: "MarkRevised"; readonly edition: number }
