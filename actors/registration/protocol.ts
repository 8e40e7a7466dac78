/**
 * A push registration (A12): its state record, its messages and its replies (protocol §1.4). Its
 * id is `<mailbox>=<random>`, or `<mailbox>=<hash of topic and callback>` in the WebSub form. So it
 * is in the shard of its mailbox, whose commits can signal it.
 */
import { Schema } from "effect"
import type { Variant } from "../../runtime/index.ts"
import { type FailureCause, FailureReport, FailureReportAddressed, FailureReportSettled,
  type ReportFailure } from "../failure-reports/index.ts"
import { DeliveryOutcome, ExchangeRecord } from "../outbound/index.ts"
import { Count, CountOrZero, ifVersion } from "../schemas.ts"
import { TestEvent, type TestEventView, testEventView } from "./test-event.ts"

/**
 * `native`: Standard Webhooks signatures; `websub`: the W3C form with its lease; `webpush`: the
 * push subscription of a browser, whose endpoint is the callback.
 */
export const RegistrationForm = Schema.Literals(["native", "websub", "webpush"])

export type RegistrationForm = typeof RegistrationForm.Type

/** A representation of the mailbox that is a topic: the value of `format` in its URI. */
export const TopicFormat = Schema.Literals([
  "xml",
  "html",
  "json",
  "text",
  "atom",
  "rss",
  "jsonld"
])

export type TopicFormat = typeof TopicFormat.Type

/** `suspended`: by the actor, after failures. `paused`: by a reader of the mailbox. */
export const RegistrationStatus = Schema.Literals(["unverified", "active", "suspended", "paused"])

export type RegistrationStatus = typeof RegistrationStatus.Type

/**
 * A key that signs pushes: `whsec_…`, or the subscriber's own hub.secret; or the `auth` of a
 * browser, which encrypts them. A push needs it in plain form: the actor encrypts it for its
 * record.
 */
const Secret = Schema.Struct({
  value: Schema.String,
  /** A previous secret signs beside the newest one until this time. */
  untilMs: Schema.optionalKey(Count)
})

/** A request to subscribe or unsubscribe, which takes effect when the callback echoes. */
const Intent = Schema.Struct({
  mode: Schema.Literals(["subscribe", "unsubscribe"]),
  challenge: Schema.String,
  /** The requested lease in seconds; 0 for none. */
  leaseSeconds: Count,
  /** The hub.secret that signs pushes after the echo. */
  secret: Schema.optionalKey(Schema.String),
  /** How many attempts were made to verify the callback. */
  tries: Count,
  /** When the next attempt is due; left out if there is none. */
  nextAtMs: Schema.optionalKey(Count)
})

/**
 * What is running, and when it counts as lost: a check for changes, a check that the mailbox still
 * exists, or a push.
 */
const Running = Schema.Struct({
  kind: Schema.Literals(["check", "existence", "push"]),
  untilMs: Count
})

export const RegistrationState = Schema.Union([
  Schema.TaggedStruct("Absent", {}),
  Schema.TaggedStruct("Registered", {
    requestId: Schema.String,
    createdAtMs: Count,
    form: RegistrationForm,
    callback: Schema.String,
    /** The topic of a WebSub subscription; left out if it is the mailbox's own URI. */
    topicFormat: Schema.optionalKey(TopicFormat),
    /** The account that registered the callback; left out if the mailbox's password was used. */
    account: Schema.optionalKey(Schema.String),
    /**
     * How often the mailbox's secrets had changed when one of them allowed the registration, which
     * ends when they change again; left out if the owner of the mailbox has made it.
     */
    secretsVersion: Schema.optionalKey(Count),
    /** The secrets that sign or encrypt pushes, the newest first. */
    secrets: Schema.Array(Secret),
    /** The public key of the browser in the form `webpush`, base64url. */
    p256dh: Schema.optionalKey(Schema.String),
    status: RegistrationStatus,
    /** One more after each change that a request makes, also after a removal. */
    version: Count,
    /** The challenge of the last Update, to recognize a repetition. */
    updatedBy: Schema.optionalKey(Schema.String),
    intent: Schema.optionalKey(Intent),
    leaseUntilMs: Schema.optionalKey(Count),
    /** The number of the last log item that the callback has acknowledged. */
    cursor: Count,
    /** The number of the last log item in the current push, the same in every attempt. */
    pushing: Schema.optionalKey(Count),
    /** Whether the mailbox has been removed, which the last push reports. */
    mailboxGone: Schema.Boolean,
    /** How many attempts of the current push have failed. */
    tries: Count,
    /** Since when pushes have failed. */
    failingSinceMs: Schema.optionalKey(Count),
    /** When the next attempt of the current push is due. */
    nextAtMs: Schema.optionalKey(Count),
    /**
     * The end, the status code and the problem of the last push or verification; or of the test
     * event that a push service has rejected.
     */
    lastAtMs: Schema.optionalKey(Count),
    code: Schema.optionalKey(Count),
    problem: Schema.optionalKey(Schema.String),
    /** A push service has rejected that for good: nothing is sent until a request lifts it. */
    endpointRejects: Schema.optionalKey(Schema.Boolean),
    /** The attempts in the log: the number of the first one, and the characters of each. */
    attemptLog: Schema.optionalKey(
      Schema.Struct({ first: Count, chars: Schema.Array(Count) })
    ),
    test: Schema.optionalKey(TestEvent),
    /**
     * A replay has an end: after the item `end`, pushes go on after `resume`, which is where they
     * were before.
     */
    replay: Schema.optionalKey(Schema.Struct({ end: Count, resume: Count })),
    /** When the latest requests let pushes to the endpoint of a browser go back. */
    replaysMs: Schema.optionalKey(Schema.Array(Count)),
    /** The last report of a suspension to the owner of the mailbox; it waits for its deposit. */
    failureReport: Schema.optionalKey(FailureReport),
    /** Not stored: a step of the report is under way, and counts as lost after this time. */
    failureReportUntilMs: Schema.optionalKey(Count),
    /** Not stored: a verification is running, and counts as lost after this time. */
    verifyingUntilMs: Schema.optionalKey(Count),
    /** Not stored. */
    running: Schema.optionalKey(Running),
    /** Not stored: there may be changes that the running check or push does not cover. */
    checkAgain: Schema.optionalKey(Schema.Boolean)
  }),
  Schema.TaggedStruct("Removed", {
    removedAtMs: Count,
    /** The last version: those of the next registration with this id follow. */
    version: CountOrZero,
    /** The request that made it and does not make it again: a repetition is Gone. */
    requestId: Schema.optionalKey(Schema.String)
  })
])

export type RegistrationState = typeof RegistrationState.Type

export type Registered = Variant<RegistrationState, "Registered">

type OptionalKey = {
  [Key in keyof Registered]-?: object extends Pick<Registered, Key> ? Key : never
}[keyof Registered]

/** The state without these optional properties. */
export const without = (state: Registered, ...keys: ReadonlyArray<OptionalKey>): Registered => {
  const rest: { [Key in keyof Registered]?: Registered[Key] } = { ...state }
  for (const key of keys) delete rest[key]
  // All required properties are still there.
  return rest as Registered
}

export const RegistrationMessage = Schema.Union([
  /**
   * Registers a callback and begins its verification. A repetition with the same request id gets
   * the same reply. In the WebSub form a new subscription of the same topic and callback renews it:
   * the old lease and secret remain valid until the callback has echoed. A browser is not verified:
   * its push service cannot echo. A new subscription of the same endpoint replaces its keys.
   */
  Schema.TaggedStruct("Create", {
    requestId: Schema.String,
    form: RegistrationForm,
    callback: Schema.String,
    topicFormat: Schema.optionalKey(TopicFormat),
    account: Schema.optionalKey(Schema.String),
    /**
     * How often the mailbox's secrets had changed when one of them allowed this request; left out
     * for the owner of the mailbox.
     */
    secretsVersion: Schema.optionalKey(Count),
    /** `whsec_…` of the service, the subscriber's hub.secret, if it has one, or `auth`. */
    secret: Schema.optionalKey(Schema.String),
    /** Of the form `webpush`. */
    p256dh: Schema.optionalKey(Schema.String),
    /** The requested lease; 0 for none. */
    leaseSeconds: Count,
    challenge: Schema.String,
    /** The mailbox's head when the right to register was checked. Pushes begin after it. */
    cursor: Count
  }),
  /** Ends a WebSub subscription, if its callback echoes the challenge. */
  Schema.TaggedStruct("Unsubscribe", { challenge: Schema.String }),
  /** Returns the view. The sender has checked the right to read the mailbox. */
  Schema.TaggedStruct("Describe", {}),
  /** Returns the secrets that sign. The sender has checked the right to change the registration. */
  Schema.TaggedStruct("ReadSecrets", {}),
  /**
   * Ends a suspension or a pause, or repeats the verification; a new callback is verified first. A
   * repetition of the last Update, with its challenge and `ifVersion`, changes nothing.
   */
  Schema.TaggedStruct("Update", {
    callback: Schema.optionalKey(Schema.String),
    challenge: Schema.String,
    /** As in Create: it counts for another callback. */
    secretsVersion: Schema.optionalKey(Count),
    /** Pushes begin after this log item, which some of them repeat or leave out. */
    cursor: Schema.optionalKey(Count),
    /** With `cursor`: the last log item that is pushed again. What follows goes on in any case. */
    replayEnd: Schema.optionalKey(Count),
    ...ifVersion
  }),
  /** No push begins until an Update; one that has begun, or that waits, may still arrive. */
  Schema.TaggedStruct("Pause", ifVersion),
  /**
   * Adds a secret. The old one signs too for a while. It is for the native form only. If the
   * secret is valid already, nothing changes.
   */
  Schema.TaggedStruct("Rotate", { secret: Schema.String, ...ifVersion }),
  /**
   * Sends a test event, without retries, unless one with this id has begun, or another one runs.
   * The sender has checked the right to change the registration.
   */
  Schema.TaggedStruct("Test", { id: Schema.String }),
  /** `isUndo`: the request that made it removes it again, and may be repeated. */
  Schema.TaggedStruct("Delete", { isUndo: Schema.optionalKey(Schema.Boolean), ...ifVersion }),
  /** The result of Verify. */
  Schema.TaggedStruct("Verified", {
    challenge: Schema.String,
    outcome: DeliveryOutcome,
    /** What was exchanged; left out by an older node. */
    exchange: Schema.optionalKey(ExchangeRecord),
    random: Schema.Number
  }),
  /**
   * The result of CheckMailbox: the changes to push are after `from`, up to `upTo`; there are none
   * if the two are equal. `more`: others follow. `untilMs` is that of the action, here and below,
   * so that a late result is ignored.
   */
  Schema.TaggedStruct("Checked", {
    untilMs: Count,
    from: Count,
    upTo: Count,
    more: Schema.Boolean,
    mailboxGone: Schema.Boolean
  }),
  /** The result of Push. */
  Schema.TaggedStruct("Pushed", {
    callback: Schema.String,
    /** Of the browser that it was encrypted for. */
    p256dh: Schema.optionalKey(Schema.String),
    /** The cursor after which it began; an Update may have changed that. */
    from: Count,
    upTo: Count,
    outcome: DeliveryOutcome,
    /** As in Verified. */
    exchange: Schema.optionalKey(ExchangeRecord),
    random: Schema.Number
  }),
  /** The result of SendTest. */
  Schema.TaggedStruct("Tested", {
    id: Schema.String,
    outcome: DeliveryOutcome,
    /** As in Verified; left out if nothing was sent, too. */
    exchange: Schema.optionalKey(ExchangeRecord),
    /** It was not sent: its mailbox has had as many as a minute may have. */
    isExcess: Schema.optionalKey(Schema.Boolean),
    durationMs: Schema.optionalKey(Count)
  }),
  FailureReportAddressed,
  FailureReportSettled,
  /** The changes up to `upTo` are not pushed: a topic, and a browser, get only notifications. */
  Schema.TaggedStruct("Skipped", { untilMs: Count, from: Count, upTo: Count }),
  /** The mailbox does not list the registration: the result of a Detach, a check or a push. */
  Schema.TaggedStruct("Detached", { untilMs: Count }),
  /** The mailbox's secrets have changed since `secretsVersion`: the result of a check or a push. */
  Schema.TaggedStruct("Revoked", { secretsVersion: Count }),
  /** The store or the mailbox was unavailable: this check or push was not made. */
  Schema.TaggedStruct("Unavailable", { untilMs: Count }),
  Schema.TaggedStruct("TimerFired", {})
])

export type RegistrationMessage = typeof RegistrationMessage.Type

/** A registration as readers of the mailbox see it, without the secrets. */
export interface RegistrationView {
  readonly form: RegistrationForm
  readonly callback: string
  readonly topicFormat: TopicFormat | undefined
  readonly account: string | undefined
  readonly createdAtMs: number
  readonly status: RegistrationStatus
  readonly version: number
  readonly cursor: number
  readonly leaseUntilMs: number | undefined
  /** How many attempts of the current push, or of the verification, have failed. */
  readonly attempts: number
  readonly lastAtMs: number | undefined
  readonly nextAtMs: number | undefined
  readonly code: number | undefined
  readonly problem: string | undefined
  /** A previous secret signs too until this time. */
  readonly rotatedUntilMs: number | undefined
  /** The log items that are its last attempts; undefined before the first one. */
  readonly attemptLog: { readonly first: number; readonly count: number } | undefined
  /** The last test event at this callback. */
  readonly test: TestEventView | undefined
  /** Whether a push service has rejected the last push for good, so that tests are refused. */
  readonly endpointRejects: boolean | undefined
}

/** The registration as readers of the mailbox see it. */
export const viewOfRegistration = (
  state: Registered,
  nowMs: number
): RegistrationView => {
  const { attemptLog, code, intent, lastAtMs, leaseUntilMs, problem, secrets, status } = state
  const isUnverified = status === "unverified"
  const older = secrets.flatMap(({ untilMs }) =>
    untilMs !== undefined && untilMs > nowMs ? [untilMs] : []
  )
  return {
    form: state.form,
    callback: state.callback,
    topicFormat: state.topicFormat,
    account: state.account,
    createdAtMs: state.createdAtMs,
    status,
    version: state.version,
    cursor: state.cursor,
    leaseUntilMs,
    attempts: isUnverified ? intent?.tries ?? 0 : state.tries,
    lastAtMs,
    nextAtMs: (isUnverified ? intent?.nextAtMs : state.nextAtMs) ?? undefined,
    code,
    problem,
    rotatedUntilMs: older.length === 0 ? undefined : Math.max(...older),
    attemptLog: attemptLog && { first: attemptLog.first, count: attemptLog.chars.length },
    test: state.test && testEventView(state.test, nowMs),
    endpointRejects: state.endpointRejects
  }
}

/** The secrets that sign pushes at this time, the newest first. */
export const validSecrets = (
  { secrets }: Registered,
  nowMs: number
): ReadonlyArray<string> =>
  secrets.flatMap(({ untilMs, value }) => untilMs === undefined || untilMs > nowMs ? [value] : [])

export type RegistrationReply =
  | { readonly _tag: "Created"; readonly view: RegistrationView; readonly repeated: boolean }
  | { readonly _tag: "Described"; readonly view: RegistrationView }
  /** The secrets that sign pushes now, the newest first; none of them leaves the service. */
  | { readonly _tag: "Secrets"; readonly secrets: ReadonlyArray<string> }
  /** There were as many test events as a minute may have; the next may begin at `untilMs`. */
  | { readonly _tag: "TooManyTests"; readonly untilMs: number }
  /** The cursor went back as often as it may in a minute; it may again at `untilMs`. */
  | { readonly _tag: "TooManyReplays"; readonly untilMs: number }
  | { readonly _tag: "Done" }

/** Where a request goes, and the account that registered the callback, if it is known. */
export interface Callee {
  readonly callback: string
  readonly account?: string
  /** As in the state: left out if the owner of the mailbox chose the callback. */
  readonly secretsVersion?: number
  readonly topicFormat?: TopicFormat
}

export type RegistrationAction =
  /** Verifies the intent: a GET that the callback must echo (WebSub §5.3). */
  | Callee & {
    readonly _tag: "Verify"
    readonly mode: "subscribe" | "unsubscribe"
    readonly challenge: string
    readonly leaseSeconds: number
  }
  /** Checks for changes after the cursor; or only that the mailbox still exists. */
  | {
    readonly _tag: "CheckMailbox"
    readonly from: number
    /** The last item to read; by default the head of the log. */
    readonly end?: number
    readonly readsChanges: boolean
    readonly secretsVersion?: number
    /** When the check counts as lost. */
    readonly untilMs: number
  }
  /**
   * Pushes the changes after `from` up to `upTo`. With a `secretsVersion` it is sent only if the
   * mailbox's secrets have not changed since.
   */
  | Callee & {
    readonly _tag: "Push"
    readonly form: RegistrationForm
    readonly secrets: ReadonlyArray<string>
    readonly p256dh?: string
    readonly from: number
    readonly upTo: number
    readonly mailboxGone: boolean
    /** When the push counts as lost. */
    readonly untilMs: number
  }
  /** Sends the test event of this id; its `from` is the cursor. */
  | Callee & {
    readonly _tag: "SendTest"
    readonly id: string
    readonly form: RegistrationForm
    readonly secrets: ReadonlyArray<string>
    readonly p256dh?: string
    readonly from: number
    /** Identifies the test event among those of its registration. */
    readonly untilMs: number
  }
  /** Reports a suspension to the owner of the mailbox. */
  | ReportFailure & { readonly cause: FailureCause }
  /** Removes the registration from the mailbox's list. Its result is Detached. */
  | { readonly _tag: "Detach" }
  /** Notifies the callback that the subscription has ended (WebSub §5.2). */
  | Callee & {
    readonly _tag: "Deny"
    readonly reason: string
  }
