/** The session: its state record, its messages and its replies (protocol §2, B2–B7). */
import { Effect, Schema } from "effect"
import type { ListingTables } from "../listing-entry.ts"
import { Caller, Count, ifVersion } from "../schemas.ts"
import { type BridgeStep, steps } from "./bridge.ts"

const RecordedAnswer = Schema.Struct({
  text: Schema.String,
  /** The URI of the answer, if the client sent a reference to it. */
  href: Schema.optionalKey(Schema.String)
})

export type RecordedAnswer = typeof RecordedAnswer.Type

const common = {
  /** The id of the request that began the session, to recognize a repetition. */
  requestId: Schema.String,
  /** The account that began it, which alone may change it; left out where anybody may. */
  owner: Schema.optionalKey(Schema.String),
  startedAtMs: Count,
  /** When the last answer was recorded; left out before the first. */
  changedAtMs: Schema.optionalKey(Count),
  /** 1 at the start, one more after each recorded answer. */
  version: Count
}

const answered = {
  ...common,
  name: RecordedAnswer,
  quest: RecordedAnswer,
  hard_question: RecordedAnswer
}

export const SessionState = Schema.Union([
  Schema.TaggedStruct("Absent", {}),
  Schema.TaggedStruct("AwaitingName", common),
  Schema.TaggedStruct("AwaitingQuest", { ...common, name: RecordedAnswer }),
  Schema.TaggedStruct("AwaitingHardQuestion", {
    ...common,
    name: RecordedAnswer,
    quest: RecordedAnswer
  }),
  Schema.TaggedStruct("Crossed", answered),
  Schema.TaggedStruct("Cast", answered),
  /** The session was deleted or has expired. */
  Schema.TaggedStruct("Deleted", {
    deletedAtMs: Schema.optionalKey(Count),
    owner: Schema.optionalKey(Schema.String)
  })
])

export type SessionState = typeof SessionState.Type

const StepSchema = Schema.Literals(steps)

/** The `continue` attribute as the client sent it. */
const continueAttribute = { continue: Schema.optionalKey(Schema.String) }

/** Who changes the session: nobody in particular unless an account is named. */
const caller = {
  caller: Caller.pipe(Schema.withDecodingDefaultKey(Effect.succeed({ admin: false })))
}

export const SessionMessage = Schema.Union([
  /** Begins the session if `continue` is `true` (B2). It belongs to the account `owner`, if any. */
  Schema.TaggedStruct("Start", {
    requestId: Schema.String,
    owner: Schema.optionalKey(Schema.String),
    ...continueAttribute
  }),
  /** Records or overwrites an answer (B5–B7). */
  Schema.TaggedStruct("Answer", {
    step: StepSchema,
    text: Schema.String,
    href: Schema.optionalKey(Schema.String),
    ...caller,
    ...continueAttribute,
    ...ifVersion
  }),
  Schema.TaggedStruct("Describe", {}),
  Schema.TaggedStruct("ReadAnswer", { step: StepSchema }),
  Schema.TaggedStruct("Delete", { ...caller, ...ifVersion }),
  /** The result of RemoveEntry: the listing has no entry of the session. */
  Schema.TaggedStruct("EntryRemoved", {}),
  Schema.TaggedStruct("TimerFired", {})
])

export type SessionMessage = typeof SessionMessage.Type

/** Removes the session's entries from the listing, and from that of its owner. */
export interface SessionAction {
  readonly _tag: "RemoveEntry"
  readonly owner?: string
}

/** The tables of the listing of all sessions, which belongs to no owner. */
export const sessionListing: ListingTables = { table: "sessions", keysTable: "session-keys" }

/** `<account>/<id>` of the sessions that each account began. */
export const accountSessionsTable = "sessions-by-owner"

export const accountSessionKey = (owner: string, id: string): string => `${owner}/${id}`

export type SessionStatus = BridgeStep | "crossed" | "cast"

/** The view of a session. */
export interface SessionView {
  /** The next question, or how the session ended. */
  readonly status: SessionStatus
  /** The text of the next question, or of the end. */
  readonly p: string
  /** The questions whose answers are recorded, in order. */
  readonly recorded: ReadonlyArray<BridgeStep>
  readonly startedAtMs: number
  readonly version: number
}

export type SessionReply =
  | { readonly _tag: "Started"; readonly view: SessionView }
  /** `created`: the answer is the first one to its question; otherwise it replaced another. */
  | { readonly _tag: "Answered"; readonly created: boolean; readonly view: SessionView }
  /** Not accepted (406): the last answer was wrong (`cast`), or `continue` was `confused`. */
  | { readonly _tag: "Rejected"; readonly p: string; readonly cast: boolean }
  | { readonly _tag: "Described"; readonly view: SessionView }
  | { readonly _tag: "Recorded"; readonly answer: RecordedAnswer }
  | { readonly _tag: "Done" }
