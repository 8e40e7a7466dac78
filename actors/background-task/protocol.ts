/**
 * An errand: one outbound duty of a mailbox for one of its notifications (protocol §1.2): to fetch
 * the content (A3), or to send a receipt (A4). Its id is `<mailbox>=<n, base 36>-<duty>`, so that
 * it is placed with its mailbox, whose commits wake it; what there is to do it reads from the
 * mailbox's log, each time anew.
 */
import { Schema } from "effect"
import type { BlobsApi, RecordsApi } from "../../runtime/index.ts"
import type { Links } from "../links.ts"
import { DeliveryOutcome, type Outbound, type Schedule } from "../outbound/index.ts"
import { Count } from "../schemas.ts"

/** What errands need. */
export interface BackgroundTaskDependencies {
  readonly outbound: Outbound
  readonly links: Links
  readonly schedule: Schedule
  readonly documents: Documents
  readonly blobs: Pick<BlobsApi, "put" | "open" | "remove">
  readonly records: Pick<RecordsApi, "write" | "get">
  /** Blobs that are stored and not yet shown by their content. */
  readonly arriving: Set<string>
  readonly random: () => number
}

export const BackgroundTaskKind = Schema.Literals(["fetch", "received", "retrieved"])

export type BackgroundTaskKind = typeof BackgroundTaskKind.Type

/** A copy that a fetch has kept: a content resource of the mailbox's owner. */
export const ContentCopy = Schema.Struct({ contentId: Schema.String, owner: Schema.String })

export type ContentCopy = typeof ContentCopy.Type

/** Attempts made at what is to be done now, and when the next is due. */
const trials = { tries: Count, nextAtMs: Count }

export const BackgroundTaskState = Schema.Union([
  /** Nothing is recorded: not begun, or over. */
  Schema.TaggedStruct("Absent", {}),
  /** Tried, to be tried again. */
  Schema.TaggedStruct("Retrying", trials),
  /** The fetch has failed for good: the sender is told by a receipt of a problem. */
  Schema.TaggedStruct("Reporting", { problem: Schema.String, ...trials }),
  /** A copy is kept; `shown` once the mailbox knows. */
  Schema.TaggedStruct("Kept", { copy: ContentCopy, shown: Schema.Boolean })
])

export type BackgroundTaskState = typeof BackgroundTaskState.Type

export const BackgroundTaskMessage = Schema.Union([
  /** How the fetch or the receipt turned out; `random` in [0, 1) jitters. */
  Schema.TaggedStruct("Attempted", {
    outcome: DeliveryOutcome,
    /** The copy that a fetch has kept. */
    copy: Schema.optionalKey(ContentCopy),
    random: Schema.Number
  }),
  /** There is nothing to do: the notification is gone, or its mailbox, or it wants nothing. */
  Schema.TaggedStruct("Moot", {}),
  /** The mailbox shows the copy. */
  Schema.TaggedStruct("Shown", {}),
  /** The copy was looked at: whether its notification is still there. */
  Schema.TaggedStruct("Looked", { there: Schema.Boolean }),
  Schema.TaggedStruct("TimerFired", {})
])

export type BackgroundTaskMessage = typeof BackgroundTaskMessage.Type

export type BackgroundTaskAction =
  /** Does the duty, or reports `problem` in its place. */
  | { readonly _tag: "Attempt"; readonly problem: string | undefined }
  /** Enters the copy for the mailbox's listings, and tells the mailbox. */
  | { readonly _tag: "Show"; readonly copy: ContentCopy }
  /** Looks whether the notification is still there. */
  | { readonly _tag: "Look"; readonly copy: ContentCopy }
  /** Removes the copy of a notification that is gone. */
  | { readonly _tag: "Clear"; readonly copy: ContentCopy }

/** What a notification points to. */
export interface Pointer {
  readonly url: string
  /** The message password. */
  readonly password: string | undefined
}

/** A receipt (A4). */
export interface OutgoingReceipt {
  readonly status: "received" | "retrieved" | "problem"
  /** URI of the mailbox that reports. */
  readonly mailbox: string
  readonly description?: string
}

/** The documents that an errand reads and writes; XML is the business of others. */
export interface Documents {
  /** What a stored notification's fragment points to; undefined when it cannot be read. */
  readonly pointerOf: (fragment: string) => Pointer | undefined
  readonly receiptDocument: (receipt: OutgoingReceipt) => string
}

/** The table of records that tells a listing of its copies. */
export const cachedTable = "cached"

const numberDigits = 12

/** `<mailbox>/<n, 12 digits>`: ascending keys are in the log's order. */
export const cachedKey = (mailbox: string, n: number): string =>
  `${mailbox}/${String(n).padStart(numberDigits, "0")}`

/** A record of the table: a copy as a listing shows it. */
export interface CachedContent {
  readonly contentId: string
  readonly type: string
  readonly lengthBytes: number
}
