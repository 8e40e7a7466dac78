/**
 * The outgoing mailbox of an account: which of its relays are paused (protocol §1.3). It has no
 * notifications: these are actors of their own, and records list them.
 */
import { Schema } from "effect"
import { Caller, Count, ifVersion } from "../schemas.ts"

export const outgoingMailboxKind = "outgoing-mailbox"

/** The relays to recipients at this origin are paused. */
const PausedOrigin = Schema.Struct({ origin: Schema.String, atMs: Count })

export type PausedOrigin = typeof PausedOrigin.Type

const pauses = {
  /** Since when all relays are paused; left out if they are not. */
  pausedAtMs: Schema.optionalKey(Count),
  /** The origins to which relays are paused, `pausedOriginsMax` at most. */
  origins: Schema.Array(PausedOrigin),
  /** 0 at first, one more after each change. */
  version: Count
}

const Pauses = Schema.Struct(pauses)

export type Pauses = typeof Pauses.Type

/** What waits for a pause that has ended is released, page by page, oldest first. */
const Release = Schema.Struct({
  /** The version of the pauses with which it began, and the pass, from 1. */
  version: Count,
  pass: Count,
  /** The last key of the listing that the pass has dealt with. */
  after: Schema.optionalKey(Schema.String),
  /** The pass has found notifications that were unavailable. */
  isPartial: Schema.optionalKey(Schema.Boolean)
})

export type Release = typeof Release.Type

const releaseStep = {
  version: Count,
  pass: Count,
  after: Schema.optionalKey(Schema.String)
}

export const OutgoingMailboxState = Schema.Union([
  /** Nothing was ever paused. */
  Schema.TaggedStruct("Absent", {}),
  Schema.TaggedStruct("Known", {
    ...pauses,
    release: Schema.optionalKey(Release),
    /** Bytes of what was sent to paused recipients since the first pause; left out for none. */
    waitingBytes: Schema.optionalKey(Count)
  }),
  /** The account was removed. */
  Schema.TaggedStruct("Removed", {})
])

export type OutgoingMailboxState = typeof OutgoingMailboxState.Type

export const OutgoingMailboxMessage = Schema.Union([
  /** Returns the pauses; the caller must be the account or an admin. */
  Schema.TaggedStruct("Describe", { caller: Caller }),
  /**
   * Replaces the pauses; the caller must be the account or an admin. What waits for one that ends
   * is released. A repetition changes nothing.
   */
  Schema.TaggedStruct("Replace", {
    caller: Caller,
    isPaused: Schema.Boolean,
    origins: Schema.Array(Schema.String),
    ...ifVersion
  }),
  /**
   * Counts what is sent to recipients that a pause keeps back, unless it would be more than
   * `bytesMax` with it. A repetition counts again.
   */
  Schema.TaggedStruct("Admit", { caller: Caller, bytes: Count, bytesMax: Count }),
  /** The account was removed, and its outgoing mailbox with it. */
  Schema.TaggedStruct("Remove", { caller: Caller }),
  /** The result of ReleasePage. Without `next` the listing has no more entries. */
  Schema.TaggedStruct("PageReleased", {
    ...releaseStep,
    next: Schema.optionalKey(Schema.String),
    /** Some notifications of the page were unavailable. */
    isPartial: Schema.optionalKey(Schema.Boolean)
  }),
  Schema.TaggedStruct("TimerFired", {})
])

export type OutgoingMailboxMessage = typeof OutgoingMailboxMessage.Type

export type OutgoingMailboxReply =
  | { readonly _tag: "Described"; readonly view: Pauses }
  /** What waits has no room for more; it takes so many bytes. */
  | { readonly _tag: "NoRoom"; readonly usedBytes: number }
  | { readonly _tag: "Done" }

export type OutgoingMailboxAction =
  /** Releases the notifications of one page of the listing. */
  | { readonly _tag: "ReleasePage" } & Omit<Release, "isPartial">
  /** This node's relays know the pauses at once. */
  | { readonly _tag: "NotePauses"; readonly pauses: Pauses }
