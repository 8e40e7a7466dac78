/**
 * A push registration (A12): its state record, its messages and its replies (protocol §1.4). Its
 * id is `<mailbox>=<random>`, or `<mailbox>=<hash of the callback>` in the WebSub form, so that it
 * is placed with its mailbox, whose commits signal it.
 */
import { Schema } from "effect"
import { DeliveryOutcome } from "../outbound/index.ts"
import { Count } from "../schemas.ts"

/** `native`: Standard Webhooks signatures; `websub`: the W3C form with its lease. */
export const RegistrationForm = Schema.Literals(["native", "websub"])

export type RegistrationForm = typeof RegistrationForm.Type

export const RegistrationStatus = Schema.Literals(["unverified", "active", "suspended"])

export type RegistrationStatus = typeof RegistrationStatus.Type

/**
 * A key that signs pushes: `whsec_…`, or the subscriber's own hub.secret. It is the only secret
 * that is stored in plain text, since a signature needs it.
 */
const Secret = Schema.Struct({
  value: Schema.String,
  /** The time until which a previous secret signs beside the newest. */
  untilMs: Schema.optionalKey(Count)
})

/** A requested subscription or its end; it takes effect when the callback echoes the challenge. */
const Intent = Schema.Struct({
  mode: Schema.Literals(["subscribe", "unsubscribe"]),
  challenge: Schema.String,
  /** The requested lease in seconds; 0 for none. */
  leaseSeconds: Count,
  /** The hub.secret that signs from the echo on. */
  secret: Schema.optionalKey(Schema.String),
  /** Attempts made, and when the next one is due; without `nextAtMs` there is none. */
  tries: Count,
  nextAtMs: Schema.optionalKey(Count)
})

/** The running check or push, and when it counts as lost. */
const Running = Schema.Struct({ kind: Schema.Literals(["check", "push"]), untilMs: Count })

export const RegistrationState = Schema.Union([
  Schema.TaggedStruct("Absent", {}),
  Schema.TaggedStruct("Registered", {
    requestId: Schema.String,
    createdAtMs: Count,
    form: RegistrationForm,
    callback: Schema.String,
    /** Account that registered it; undefined when it came with the mailbox's password. */
    account: Schema.optionalKey(Schema.String),
    /** Newest first. */
    secrets: Schema.Array(Secret),
    status: RegistrationStatus,
    /** Counts the changes made by requests, from 1. */
    version: Count,
    intent: Schema.optionalKey(Intent),
    leaseUntilMs: Schema.optionalKey(Count),
    /** Number of the last log item of the mailbox that was acknowledged. */
    cursor: Count,
    /** Number of the last log item of the current push; it is the same in every attempt. */
    pushing: Schema.optionalKey(Count),
    /** The mailbox is gone, which the last push reports. */
    mailboxGone: Schema.Boolean,
    /** Attempts at the current push, since when they fail, and when the next one is due. */
    tries: Count,
    failingSinceMs: Schema.optionalKey(Count),
    nextAtMs: Schema.optionalKey(Count),
    /** The last attempt of any kind: when it ended, its status code, its problem. */
    lastAtMs: Schema.optionalKey(Count),
    code: Schema.optionalKey(Count),
    problem: Schema.optionalKey(Schema.String),
    /** Volatile, as the next two: a verification is running, and counts as lost then. */
    verifyingUntilMs: Schema.optionalKey(Count),
    running: Schema.optionalKey(Running),
    /** There may be changes that the running check or push does not cover. */
    checkAgain: Schema.optionalKey(Schema.Boolean)
  }),
  Schema.TaggedStruct("Removed", { removedAtMs: Count })
])

export type RegistrationState = typeof RegistrationState.Type

export const RegistrationMessage = Schema.Union([
  /**
   * Registers a callback, unverified; verification begins at once. Repeated with the same request
   * id it replies the same. In the WebSub form a new subscription of the same callback renews it:
   * the old lease and secret are valid until the callback has echoed.
   */
  Schema.TaggedStruct("Create", {
    requestId: Schema.String,
    form: RegistrationForm,
    callback: Schema.String,
    account: Schema.optionalKey(Schema.String),
    /** `whsec_…`, made by the service; or hub.secret; none only in the WebSub form. */
    secret: Schema.optionalKey(Schema.String),
    /** 0 for none. */
    leaseSeconds: Count,
    challenge: Schema.String,
    /** The mailbox's head when the right to register was proven: pushes begin after it. */
    cursor: Count
  }),
  /** WebSub: asks the callback whether it wants to end, and ends when it echoes. */
  Schema.TaggedStruct("Unsubscribe", { challenge: Schema.String }),
  /** Returns the view. The rights are those of the mailbox, checked before. */
  Schema.TaggedStruct("Describe", {}),
  /** PUT: ends a suspension, or repeats the verification; a new callback is verified first. */
  Schema.TaggedStruct("Update", {
    callback: Schema.optionalKey(Schema.String),
    challenge: Schema.String,
    ifVersion: Schema.optionalKey(Count)
  }),
  /** A new secret beside the old one, which signs too for a while. Native form only. */
  Schema.TaggedStruct("Rotate", { secret: Schema.String }),
  Schema.TaggedStruct("Delete", { ifVersion: Schema.optionalKey(Count) }),
  /** The outcome of a challenge. */
  Schema.TaggedStruct("Verified", {
    challenge: Schema.String,
    outcome: DeliveryOutcome,
    random: Schema.Number
  }),
  /**
   * The changes to push: those after `from` up to `upTo`, and whether `more` follow; none if the
   * two are equal. `untilMs` is that of the action, here and below, so that a late result is
   * ignored.
   */
  Schema.TaggedStruct("Checked", {
    untilMs: Count,
    from: Count,
    upTo: Count,
    more: Schema.Boolean,
    mailboxGone: Schema.Boolean
  }),
  /** The outcome of a push. */
  Schema.TaggedStruct("Pushed", {
    callback: Schema.String,
    upTo: Count,
    outcome: DeliveryOutcome,
    random: Schema.Number
  }),
  /** The mailbox does not list it (any more): the result of a Detach, a check or a push. */
  Schema.TaggedStruct("Detached", { untilMs: Count }),
  /** The store or the mailbox was unavailable: this check or push was not made. */
  Schema.TaggedStruct("Unavailable", { untilMs: Count }),
  Schema.TaggedStruct("TimerFired", {})
])

export type RegistrationMessage = typeof RegistrationMessage.Type

/** A registration as its owner sees it: everything but the secrets. */
export interface RegistrationView {
  readonly form: RegistrationForm
  readonly callback: string
  readonly account: string | undefined
  readonly createdAtMs: number
  readonly status: RegistrationStatus
  readonly version: number
  readonly cursor: number
  readonly leaseUntilMs: number | undefined
  /** Attempts at the current push, or at the verification. */
  readonly attempts: number
  readonly lastAtMs: number | undefined
  readonly nextAtMs: number | undefined
  readonly code: number | undefined
  readonly problem: string | undefined
  /** The time until which a previous secret signs too. */
  readonly rotatedUntilMs: number | undefined
}

export type RegistrationReply =
  | { readonly _tag: "Created"; readonly view: RegistrationView; readonly repeated: boolean }
  | { readonly _tag: "Described"; readonly view: RegistrationView }
  | { readonly _tag: "Done" }

export type RegistrationAction =
  /** Verifies the intent: a GET that the callback must echo (WebSub §5.3). */
  | {
    readonly _tag: "Verify"
    readonly callback: string
    readonly mode: "subscribe" | "unsubscribe"
    readonly challenge: string
    readonly leaseSeconds: number
  }
  /** Checks for changes after the cursor; or only that the mailbox still exists. */
  | {
    readonly _tag: "CheckMailbox"
    readonly from: number
    readonly readsChanges: boolean
    /** When the check counts as lost. */
    readonly untilMs: number
  }
  /** Pushes the changes after `from` up to `upTo`. */
  | {
    readonly _tag: "Push"
    readonly form: RegistrationForm
    readonly callback: string
    readonly secrets: ReadonlyArray<string>
    readonly from: number
    readonly upTo: number
    readonly mailboxGone: boolean
    /** When the push counts as lost. */
    readonly untilMs: number
  }
  /** Removes it from the mailbox's list; its result is Detached. */
  | { readonly _tag: "Detach" }
  /** WebSub §5.2: notifies the callback that the subscription has ended. */
  | { readonly _tag: "Deny"; readonly callback: string; readonly reason: string }
