/**
 * A background task: one outbound request of a mailbox for one of its notifications (protocol
 * §1.2): to fetch the content (A3), or to send a receipt (A4). One kind makes no request: it
 * removes content that came in the notification. A task's id is `<mailbox>=<n, base 36>-<kind>`,
 * so that it is in the shard of its mailbox, whose commits signal it. It reads what to do from the
 * mailbox and its log in every attempt.
 */
import { Schema } from "effect"
import type { Address, BlobsApi, RecordsApi } from "../../runtime/index.ts"
import type { Keyring } from "../keyring.ts"
import type { Links } from "../links.ts"
import { DeliveryOutcome, type Outbound, type Schedule } from "../outbound/index.ts"
import { Base64Id, Count, CountOrZero } from "../schemas.ts"
import type { UsageLedger } from "../usage/index.ts"
import type { DroppedRequests } from "./dropped-requests.ts"

/** The dependencies of background tasks. */
export interface BackgroundTaskDependencies {
  /** Decrypts message passwords. */
  readonly keyring: Keyring
  readonly outbound: Outbound
  readonly links: Links
  readonly schedule: Schedule
  readonly documents: Documents
  readonly blobs: Pick<BlobsApi, "confirm" | "put" | "open" | "remove">
  readonly records: Pick<RecordsApi, "write" | "get">
  readonly usage: Pick<UsageLedger, "submit">
  readonly random: () => number
  /** Counts the requests that are never made; a node reports the number. */
  readonly droppedRequests?: DroppedRequests
}

/** The notification that a task is for, and what the task does. */
export interface TaskTarget {
  readonly mailbox: string
  /** The notification's number in the mailbox's log. */
  readonly n: number
  readonly kind: "fetch" | "inlined" | "received" | "retrieved"
}

const idPattern = /^([a-z0-9][a-z0-9-]{0,63})=([0-9a-z]{1,8})-(fetch|inlined|received|retrieved)$/

export const targetOf = ({ id }: Address): TaskTarget => {
  const [, mailbox, n, kind] = idPattern.exec(id) ?? []
  if (mailbox === undefined || n === undefined) throw new TypeError(`${id} is no background task`)
  return { mailbox, n: Number.parseInt(n, 36), kind: kind as TaskTarget["kind"] } // by the pattern
}

/** The copy of a fetch, or content that a deposit brought: a content of the mailbox's owner. */
export const ContentCopy = Schema.Struct({
  contentId: Schema.String,
  /** The random part of the notification's id; of inlined content only. */
  idRandom: Schema.optionalKey(Base64Id)
})

export type ContentCopy = typeof ContentCopy.Type

const attempts = {
  /** Attempts made in this state. */
  tries: Count,
  /** When the next one is due. */
  nextAtMs: Count,
  /** The copy that an attempt has stored, or may have stored: recorded before it is stored. */
  copy: Schema.optionalKey(ContentCopy)
}

export const BackgroundTaskState = Schema.Union([
  /** Nothing is recorded: it has not begun, or has ended. */
  Schema.TaggedStruct("Absent", {}),
  Schema.TaggedStruct("Retrying", attempts),
  /** The fetch has failed for good: a receipt reports the problem to the sender. */
  Schema.TaggedStruct("Reporting", { problem: Schema.String, ...attempts }),
  Schema.TaggedStruct("Copied", {
    copy: ContentCopy,
    /** The mailbox knows of the copy. */
    isListed: Schema.Boolean,
    /** How many checks of the notification have begun: only the last one may end the checks. */
    checks: CountOrZero
  }),
  /** The notification is gone, or the task was given up: the copy is being removed. */
  Schema.TaggedStruct("Removing", { copy: ContentCopy })
])

export type BackgroundTaskState = typeof BackgroundTaskState.Type

export const BackgroundTaskMessage = Schema.Union([
  /** The outcome of a fetch or a receipt; `random` in [0, 1) jitters. */
  Schema.TaggedStruct("Attempted", {
    outcome: DeliveryOutcome,
    random: Schema.Number
  }),
  /** An attempt is about to store this copy, or the one that the reply names. */
  Schema.TaggedStruct("CopyNamed", { copy: ContentCopy }),
  /** The notification came with this content, which the task removes with it. */
  Schema.TaggedStruct("InlinedFound", { copy: ContentCopy }),
  /** The notification or its mailbox is gone, or the mailbox no longer wants the task. */
  Schema.TaggedStruct("Obsolete", {}),
  /** The copy is in the mailbox's listings. */
  Schema.TaggedStruct("CopyListed", {}),
  /** Whether the notification of the copy still exists; `check` is the number of the check. */
  Schema.TaggedStruct("NotificationChecked", { check: Count, exists: Schema.Boolean }),
  Schema.TaggedStruct("CopyRemoved", {}),
  Schema.TaggedStruct("TimerFired", {})
])

export type BackgroundTaskMessage = typeof BackgroundTaskMessage.Type

/** The reply to `CopyNamed`: the copy to store, which an earlier attempt may have named. */
export interface BackgroundTaskReply {
  readonly _tag: "Named"
  readonly copy: ContentCopy
}

export type BackgroundTaskAction =
  /** Fetches or sends the receipt; or reports `problem` instead. */
  | { readonly _tag: "Attempt"; readonly problem: string | undefined }
  /** Enters the copy for the mailbox's listings, and notifies the mailbox. */
  | { readonly _tag: "ListCopy"; readonly copy: ContentCopy }
  /** Checks whether the notification still exists. */
  | { readonly _tag: "CheckNotification"; readonly check: number }
  /** Removes the copy, or prevents that a slow attempt stores it. */
  | { readonly _tag: "RemoveCopy"; readonly copy: ContentCopy }

/** The content that a notification points to. */
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

/** Reads and writes the XML of background tasks. */
export interface Documents {
  /** The pointer of a stored notification's fragment; undefined if it cannot be read. */
  readonly pointerOf: (fragment: string) => Pointer | undefined
  readonly receiptDocument: (receipt: OutgoingReceipt) => string
}

/** The table of records in which a listing finds its copies. */
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
