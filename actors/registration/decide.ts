/**
 * The decisions of a push registration (protocol §1.4). The actor pushes nothing before the
 * callback has echoed a challenge. It pushes changes in the order of the mailbox's log, one push at
 * a time. The cursor is the last log item that the callback has acknowledged.
 *
 * A verification of the callback may run at the same time as a check for changes or a push. While
 * one of them runs, the stored timer is in the past and deferred in memory. So after a crash it
 * fires at once, and the actor repeats what was lost. What runs is not stored.
 */
import { become, type BehaviorTable, type Decision, type DecisionContext, stay,
  type Variant } from "../../runtime/index.ts"
import { deferredMinMs, failingMaxMs, registeringMaxMs, registrationLeaseMs, registrationSecretsMax,
  secretOverlapMs, unavailableRetryMs, verificationsMax } from "../limits.ts"
import { afterReportStep, beginReportStep, type FailureCause,
  withoutWaitingReport } from "../failure-reports/index.ts"
import type { Schedule } from "../outbound/index.ts"
import { deny, denyEach, isOutdated } from "../refusals.ts"
import { attemptItems, keepsAttempts } from "./attempts.ts"
import { type Callee, type Registered, type RegistrationAction, type RegistrationMessage,
  type RegistrationReply, type RegistrationState, validSecrets, viewOfRegistration,
  without } from "./protocol.ts"
import { isEnd, isRejectedForGood, retryAtMs, withCursor, withFailure,
  withSuspensionReport } from "./push-answers.ts"
import { endTest, startReplay, startTest, testEventsFormat, testRejected, testUnverified,
  tooManyReplays, withoutTestResult } from "./test-event.ts"

type Registrations = BehaviorTable<
  RegistrationState,
  RegistrationMessage,
  RegistrationReply,
  RegistrationAction
>

type Row = Registrations["Registered"]

type Intent = NonNullable<Registered["intent"]>

type RegistrationDecision = Decision<RegistrationState, RegistrationReply, RegistrationAction>

/** The table for this retry schedule. */
export const registrationTable = (schedule: Schedule): Registrations => ({
  Absent: { Create: register, ...unregistered("NotFound") },
  Registered: {
    Create: renew,
    Unsubscribe: unsubscribe,
    Describe: (state, _message, { nowMs }) => stay().reply(described(state, nowMs)),
    ReadSecrets: (state, _message, { nowMs }) =>
      stay().reply({ _tag: "Secrets", secrets: validSecrets(state, nowMs) }),
    Update: update,
    Pause: pause,
    Rotate: rotate,
    Test: test,
    Delete: remove,
    Verified: keepsAttempts("verification", verified(schedule)),
    Checked: checked,
    Pushed: keepsAttempts("push", pushed(schedule)),
    Tested: keepsAttempts("test", tested),
    FailureReportAddressed: reportStepEnded,
    FailureReportSettled: reportStepEnded,
    Skipped: skipped,
    Detached: detached,
    Revoked: (state, { secretsVersion }, { nowMs }) =>
      // A late result does not count: the subscriber may have renewed by a new secret.
      state.secretsVersion === secretsVersion ? end(state, nowMs, secretsChanged) : stay(),
    Unavailable: (state, { untilMs }, { nowMs }) =>
      state.running?.untilMs === untilMs ? retrySoon(state, nowMs) : stay(),
    TimerFired: timerFired
  },
  Removed: { Create: register, ...unregistered("Gone") }
})

/** The cells without a registration. If the mailbox still lists the id, a timer removes it. */
const unregistered = (reason: "NotFound" | "Gone") => ({
  ...denyEach(reason, "Unsubscribe", "Describe", "ReadSecrets", "Update", "Pause", "Rotate"),
  ...denyEach(reason, "Test", "Delete"),
  Verified: () => stay(),
  Checked: () => stay(),
  Pushed: () => stay(),
  Tested: () => stay(),
  FailureReportAddressed: () => stay(),
  FailureReportSettled: () => stay(),
  Skipped: () => stay(),
  Revoked: () => stay(),
  Detached: () => stay<RegistrationState>().setTimer(null),
  Unavailable: () => stay(),
  TimerFired: (
    _state: RegistrationState,
    _message: RegistrationMessage,
    { nowMs }: DecisionContext
  ): RegistrationDecision =>
    stay<RegistrationState>()
      .perform<RegistrationAction>({ _tag: "Detach" })
      .deferTimer(nowMs + registrationLeaseMs)
})

/* Requests of the owner or the subscriber. */

const done: RegistrationReply = { _tag: "Done" }

const described = (state: Registered, nowMs: number): RegistrationReply => ({
  _tag: "Described",
  view: viewOfRegistration(state, nowMs)
})

const created = (state: Registered, nowMs: number, repeated: boolean): RegistrationReply => ({
  _tag: "Created",
  view: viewOfRegistration(state, nowMs),
  repeated
})

const register = (
  previous: Exclude<RegistrationState, Registered>,
  message: Variant<RegistrationMessage, "Create">,
  { nowMs }: DecisionContext
): Decision<never> | RegistrationDecision => {
  const { account, callback, cursor, form, p256dh, requestId, secret } = message
  if (previous._tag === "Removed" && previous.requestId === requestId) return deny("Gone")
  if (form !== "websub" && secret === undefined) {
    return deny("Invalid", `a registration of the form ${form} needs a secret`)
  }
  const isBrowser = form === "webpush"
  if (isBrowser && p256dh === undefined) return deny("Invalid", "a browser needs a public key")
  const state: Registered = {
    _tag: "Registered",
    requestId,
    createdAtMs: nowMs,
    form,
    callback,
    ...topicOf(message),
    ...account === undefined ? {} : { account },
    ...secretsVersionOf(message),
    secrets: form === "websub" || secret === undefined ? [] : [{ value: secret }],
    ...p256dh === undefined ? {} : { p256dh },
    version: previous._tag === "Removed" ? previous.version + 1 : 1,
    // A push service has no handshake. Its endpoint is secret: the browser has made it known.
    ...isBrowser
      ? { status: "active" }
      : { status: "unverified", intent: subscription(message, message, nowMs) },
    cursor,
    mailboxGone: false,
    tries: 0
  }
  // No echo follows, which would check for what comes before the mailbox lists the registration.
  return proceed(state, nowMs, { checks: isBrowser }).reply(created(state, nowMs, false))
}

/** The topic of a WebSub subscription, where it is not the mailbox's own URI. */
const topicOf = (
  { topicFormat }: Pick<Registered, "topicFormat">
): Pick<Registered, "topicFormat"> => topicFormat === undefined ? {} : { topicFormat }

/** Which secrets of the mailbox have allowed it; nothing if its owner has. */
const secretsVersionOf = (
  { secretsVersion }: Pick<Registered, "secretsVersion">
): Pick<Registered, "secretsVersion"> => secretsVersion === undefined ? {} : { secretsVersion }

/** Where a request of the registration goes, and the account that causes it. */
const calleeOf = (state: Registered): Callee => ({
  callback: state.callback,
  ...state.account === undefined ? {} : { account: state.account },
  ...secretsVersionOf(state),
  ...topicOf(state)
})

/** The intent to subscribe. A WebSub secret signs pushes once the callback has echoed. */
const subscription = (
  { form, secret }: { readonly form: string; readonly secret?: string | undefined },
  { challenge, leaseSeconds }: { readonly challenge: string; readonly leaseSeconds: number },
  nowMs: number
): Intent => ({
  mode: "subscribe",
  challenge,
  leaseSeconds,
  tries: 0,
  nextAtMs: nowMs,
  ...form === "native" || secret === undefined ? {} : { secret }
})

const isRestored = ({ form, secrets }: Registered): boolean =>
  form !== "webpush" || secrets.length > 0

const browserNotRestored = "the keys of the browser were not restored, so nothing can be " +
  "encrypted for it: unsubscribe the browser, and subscribe it again"

/** A browser has subscribed again by the same endpoint: its new keys are valid at once. */
const replaceKeys = (
  state: Registered,
  message: Variant<RegistrationMessage, "Create">,
  nowMs: number
): Decision<never> | RegistrationDecision => {
  const { p256dh, requestId, secret } = message
  if (p256dh === undefined || secret === undefined) {
    return deny("Invalid", "a browser needs a public key and a secret")
  }
  const hasNewKeys = p256dh !== state.p256dh
  const next: Registered = {
    ...without(
      withoutWaitingReport(hasNewKeys ? withoutTestResult(state) : state),
      "failingSinceMs",
      "nextAtMs",
      "problem",
      "code",
      "endpointRejects",
      "secretsVersion",
      // The browser cannot decrypt a push that was encrypted for its old keys.
      ...hasNewKeys && state.running?.kind === "push" ? ["running"] as const : []
    ),
    ...renewedBy(state, message),
    requestId,
    version: state.version + 1,
    status: unlessPaused(state),
    p256dh,
    secrets: [{ value: secret }],
    tries: 0
  }
  return proceed(next, nowMs, { checks: true }).reply(created(next, nowMs, false))
}

/** Subscribers renew by themselves, which does not end a pause. */
const unlessPaused = ({ status }: Registered): "active" | "paused" =>
  status === "paused" ? "paused" : "active"

/** A subscription of the owner remains one, whoever renews it. */
const renewedBy = (
  { secretsVersion }: Registered,
  message: Variant<RegistrationMessage, "Create">
): Pick<Registered, "secretsVersion"> =>
  secretsVersion === undefined ? {} : secretsVersionOf(message)

/**
 * Requests another lease or secret for a WebSub subscription. It is valid after the echo. A browser
 * gets other keys.
 */
const renew: Row["Create"] = (state, message, { nowMs }) => {
  const { callback, cursor, form, requestId, topicFormat } = message
  if (requestId === state.requestId) return stay().reply(created(state, nowMs, true))
  const isSame = callback === state.callback && topicFormat === state.topicFormat
  if (form === "native" || state.form !== form || !isSame) return deny("Taken")
  if (form === "webpush") return replaceKeys(state, message, nowMs)
  const isUnverified = state.status === "unverified"
  const next: Registered = {
    ...without(
      state,
      "verifyingUntilMs",
      "secretsVersion",
      ...isUnverified ? ["leaseUntilMs", "replay"] as const : []
    ),
    ...renewedBy(state, message),
    requestId,
    version: state.version + 1,
    intent: subscription(message, message, nowMs),
    // No push is promised for changes before the first echo.
    cursor: isUnverified ? cursor : state.cursor
  }
  return proceed(next, nowMs).reply(created(next, nowMs, false))
}

const unsubscribe: Row["Unsubscribe"] = (state, { challenge }, { nowMs }) => {
  if (state.form !== "websub") {
    return deny("Invalid", "the registration is not a WebSub subscription")
  }
  // An unverified subscription keeps the lease and secret of its intent.
  const previous = state.status === "unverified" ? state.intent : undefined
  const { leaseSeconds = 0, secret } = previous ?? {}
  const intent: Intent = {
    ...subscription({ form: state.form, secret }, { challenge, leaseSeconds }, nowMs),
    mode: "unsubscribe"
  }
  const next = { ...without(state, "verifyingUntilMs"), intent }
  return proceed(next, nowMs).reply(done)
}

const update: Row["Update"] = (state, message, { format, nowMs }) => {
  const { callback = state.callback, challenge } = message
  if (isOutdated(state, message)) {
    if (challenge !== state.updatedBy) return deny("PreconditionFailed")
    return stay().reply(described(state, nowMs))
  }
  const isMoved = callback !== state.callback
  if (isMoved && state.form !== "native") {
    return deny("Invalid", "the callback of a subscription cannot change")
  }
  if (!isRestored(state)) return deny("Invalid", browserNotRestored)
  const replay = startReplay(state, message, nowMs)
  if (replay._tag === "TooMany") {
    if (format < testEventsFormat) return deny("Busy", tooManyReplays)
    return stay().reply({ _tag: "TooManyReplays", untilMs: replay.untilMs })
  }
  const base: Registered = {
    ...without(
      withoutWaitingReport(isMoved ? withoutTestResult(state) : state),
      "failingSinceMs",
      "nextAtMs",
      "problem",
      "code",
      "endpointRejects",
      // Neither a push nor a check of the old position counts.
      ...message.cursor === undefined ? [] : ["pushing", "running", "checkAgain"] as const,
      "replay"
    ),
    callback,
    ...replay.changed,
    version: state.version + 1,
    updatedBy: challenge,
    tries: 0
  }
  const { leaseSeconds = 0, secret } = state.intent ?? {}
  const next: Registered = isMoved || state.status === "unverified"
    ? {
      ...without(
        base,
        "pushing",
        "verifyingUntilMs",
        "leaseUntilMs",
        // Whoever chooses the callback decides where the changes go.
        ...isMoved ? ["secretsVersion"] as const : [],
        // The result of a push to the previous callback does not count.
        ...base.running?.kind === "push" ? ["running"] as const : []
      ),
      ...isMoved ? secretsVersionOf(message) : {},
      status: "unverified",
      intent: subscription({ form: state.form, secret }, { challenge, leaseSeconds }, nowMs)
    }
    : { ...base, status: "active" }
  return proceed(next, nowMs, { checks: next.status === "active" }).reply(described(next, nowMs))
}

const pause: Row["Pause"] = (state, message, { nowMs }) => {
  if (state.status === "paused") return stay().reply(described(state, nowMs))
  if (isOutdated(state, message)) return deny("PreconditionFailed")
  // The last push, which reports the removal, is not held back.
  if (state.mailboxGone) return deny("Gone")
  if (state.status === "unverified") {
    return deny("Invalid", "a registration may be paused once its callback has answered")
  }
  const next: Registered = {
    ...without(state, "nextAtMs"),
    status: "paused",
    version: state.version + 1
  }
  return proceed(next, nowMs).reply(described(next, nowMs))
}

const rotate: Row["Rotate"] = (state, message, { nowMs }) => {
  const { secret } = message
  if (state.form !== "native") {
    return deny("Invalid", "only the subscriber can change the secret of a subscription")
  }
  if (validSecrets(state, nowMs).includes(secret)) return stay().reply(described(state, nowMs))
  if (isOutdated(state, message)) return deny("PreconditionFailed")
  const older = state.secrets
    .map(({ untilMs, value }) => ({ value, untilMs: untilMs ?? nowMs + secretOverlapMs }))
    .filter(({ untilMs }) => untilMs > nowMs)
  const secrets = [{ value: secret }, ...older].slice(0, registrationSecretsMax)
  const next: Registered = { ...state, secrets, version: state.version + 1 }
  return become<RegistrationState>(next).reply(described(next, nowMs))
}

/**
 * A suspended or paused registration may be tested: that shows whether it can be lifted. The
 * endpoint of a browser was never verified: one that rejects pushes gets no test event either.
 */
const test: Row["Test"] = (state, { id }, { nowMs }) => {
  if (state.mailboxGone) return deny("Gone")
  if (state.status === "unverified") return deny("OutOfOrder", testUnverified)
  if (state.endpointRejects === true) return deny("OutOfOrder", testRejected)
  if (!isRestored(state)) return deny("Invalid", browserNotRestored)
  const start = startTest(state.test, id, nowMs)
  if (start._tag === "Known") return stay().reply(described(state, nowMs))
  if (start._tag === "TooMany") {
    return stay().reply({ _tag: "TooManyTests", untilMs: start.untilMs })
  }
  const next: Registered = { ...state, test: start.test }
  const key = state.p256dh === undefined ? {} : { p256dh: state.p256dh }
  return become<RegistrationState>(next)
    .reply(described(next, nowMs))
    .perform<RegistrationAction>({
      _tag: "SendTest",
      id,
      form: state.form,
      ...calleeOf(state),
      secrets: validSecrets(state, nowMs),
      ...key,
      from: state.cursor,
      untilMs: nowMs + registrationLeaseMs
    })
}

/** A push service that does not want a test event wants no push, and no other test event either. */
const tested: Row["Tested"] = (state, message, context) => {
  const { nowMs } = context
  const { form, mailboxGone, status, test: last } = state
  if (last?.id !== message.id || last.outcome !== undefined) return stay()
  const { outcome } = message
  const next: Registered = { ...state, test: endTest(last, message) }
  if (form !== "webpush" || mailboxGone || outcome._tag !== "PermanentFailure") {
    return become<RegistrationState>(next)
  }
  if (isEnd(state, outcome)) return end(state, nowMs)
  if (!isRejectedForGood(state, outcome)) return become<RegistrationState>(next)
  const isPaused = status === "paused"
  // A push that runs is repeated when a request lifts the suspension, as its result is ignored.
  const idle = next.running?.kind === "push" && !isPaused ? without(next, "running") : next
  const rejected: Registered = {
    ...withFailure(without(idle, "nextAtMs"), outcome, nowMs),
    endpointRejects: true,
    status: isPaused ? "paused" : "suspended"
  }
  return proceed(
    status === "active" ? withSuspensionReport(rejected, context) : rejected,
    nowMs
  )
}

/** A step of a failure report has ended. */
const reportStepEnded = (
  state: Registered,
  message: Variant<RegistrationMessage, "FailureReportAddressed" | "FailureReportSettled">,
  { nowMs }: DecisionContext
): Decision<never> | RegistrationDecision => {
  const next = afterReportStep(state, message)
  return next === undefined ? stay() : proceed(next, nowMs)
}

const remove: Row["Delete"] = (state, message, { nowMs }) => {
  if (isOutdated(state, message)) return deny("PreconditionFailed")
  const reason = message.isUndo === true ? undefined : "the subscription has been removed"
  return end(state, nowMs, reason, message.isUndo).reply(done)
}

/* The timer, and the results of verifications, checks and pushes. */

/**
 * Pushes or checks for changes. If the mailbox has signaled exactly the next item, it is pushed
 * without a check.
 */
const timerFired: Row["TimerFired"] = (state, _message, { hint, nowMs }) => {
  const { cursor, pushing, running, status } = state
  const isIdle = pushing === undefined && (running?.untilMs ?? 0) <= nowMs
  return isIdle && status === "active" && hint === cursor + 1
    ? proceed({ ...state, pushing: hint }, nowMs)
    : proceed(state, nowMs, { checks: true, isChanged: false })
}

const verified = (schedule: Schedule): Row["Verified"] => (state, message, { nowMs }) => {
  const { challenge, outcome, random } = message
  const { intent } = state
  if (intent === undefined || intent.challenge !== challenge) return stay()
  const idle = without(state, "verifyingUntilMs")
  if (outcome._tag === "Delivered") return echoed(idle, intent, outcome.code, nowMs)
  if (outcome._tag === "Deferred") {
    const nextAtMs = Math.max(outcome.untilMs, nowMs + deferredMinMs)
    return proceed({ ...idle, intent: { ...intent, nextAtMs } }, nowMs)
  }
  const tries = intent.tries + 1
  const failed = withFailure(idle, outcome, nowMs)
  // WebSub §5.3: every answer other than 2xx means that the verification has failed.
  const isAnswered = state.form === "websub" && outcome.code !== undefined && outcome.code >= 300
  if (outcome._tag === "RetryableFailure" && !isAnswered && tries < verificationsMax) {
    const nextAtMs = retryAtMs(schedule, tries, outcome, nowMs, random)
    return proceed({ ...failed, intent: { ...intent, tries, nextAtMs } }, nowMs)
  }
  // A verified registration continues without the intent; an unverified one waits for an Update.
  if (state.status !== "unverified") return proceed(without(failed, "intent"), nowMs)
  const { nextAtMs: _, ...kept } = intent
  // A subscriber that is still interested subscribes again; until the end readers see the reason.
  const ends = state.form === "native" ? {} : { leaseUntilMs: nowMs + failingMaxMs }
  return proceed({ ...failed, ...ends, intent: { ...kept, mode: "subscribe", tries } }, nowMs)
}

/** The callback has echoed the challenge: the intent takes effect. */
const echoed = (
  state: Registered,
  { leaseSeconds, mode, secret }: Intent,
  code: number,
  nowMs: number
): RegistrationDecision => {
  if (mode === "unsubscribe") return end(state, nowMs)
  const next: Registered = {
    ...without(
      withoutWaitingReport(state),
      "intent",
      "leaseUntilMs",
      "failingSinceMs",
      "nextAtMs",
      "problem"
    ),
    status: unlessPaused(state),
    tries: 0,
    lastAtMs: nowMs,
    code,
    ...state.form === "native" ? {} : { secrets: secret === undefined ? [] : [{ value: secret }] },
    ...leaseSeconds === 0 ? {} : { leaseUntilMs: nowMs + leaseSeconds * 1000 }
  }
  return proceed(next, nowMs, { checks: true })
}

const mailboxIsGone = "the mailbox has been removed"

const secretsChanged = "the secret of the mailbox that allowed the subscription is no longer valid"

/** The result of a check; or of a push that has found the mailbox removed. */
const checked: Row["Checked"] = (state, message, { nowMs }) => {
  const { from, mailboxGone, more, untilMs, upTo } = message
  const { checkAgain = false, running } = state
  if (running === undefined) return stay()
  // A WebSub subscriber learns it from the denial, since no topic has a document without a mailbox.
  if (mailboxGone && (state.status !== "active" || state.form === "websub")) {
    return end(state, nowMs, mailboxIsGone)
  }
  if (mailboxGone) {
    const last = without(state, "running", "checkAgain", "nextAtMs")
    const next: Registered = { ...last, mailboxGone, pushing: state.cursor, tries: 0 }
    return proceed(next, nowMs)
  }
  // `untilMs` alone does not identify the check: an earlier one may have begun in the same ms.
  const isCurrent = running.kind !== "push" && running.untilMs === untilMs && from === state.cursor
  if (!isCurrent) return stay()
  const idle = without(state, "running")
  const isRead = running.kind === "check" && state.pushing === undefined
  if (upTo <= from && isRead && state.replay !== undefined && state.status === "active") {
    // Nothing of its range is left: what came meanwhile is next.
    return proceed(withCursor(idle, state.replay.end), nowMs, { checks: true })
  }
  if (upTo <= from || state.status !== "active") {
    // A push that became due meanwhile begins, and then looks for what the check did not read.
    const isDue = isPushing(idle) && (idle.nextAtMs ?? 0) <= nowMs
    return proceed(idle, nowMs, { checks: checkAgain || isDue, isChanged: false })
  }
  const next: Registered = { ...idle, pushing: upTo }
  return proceed(next, nowMs, { checks: checkAgain || more })
}

const pushed = (schedule: Schedule): Row["Pushed"] => (state, message, context) => {
  const { nowMs } = context
  const { callback, from, outcome, p256dh, random, upTo } = message
  const isCurrent = state.pushing === upTo && state.cursor === from &&
    state.callback === callback && state.p256dh === p256dh
  const isPaused = state.status === "paused"
  if (!isCurrent || (state.status !== "active" && !isPaused)) return stay()
  if (outcome._tag === "Delivered") return acknowledged(state, upTo, outcome.code, nowMs)
  const idle = without(state, "running")
  const checks = state.checkAgain === true
  if (isPaused && !isEnd(state, outcome)) {
    // A check may have begun since, and its result counts.
    return state.running === undefined || state.running.kind === "push"
      ? proceed(idle, nowMs, { checks, isChanged: false })
      : stay()
  }
  if (outcome._tag === "Deferred") {
    const nextAtMs = Math.max(outcome.untilMs, nowMs + deferredMinMs)
    return proceed({ ...idle, nextAtMs }, nowMs)
  }
  if (isEnd(state, outcome)) return end(state, nowMs, state.mailboxGone ? mailboxIsGone : undefined)
  if (state.mailboxGone && outcome._tag === "PermanentFailure") {
    return end(state, nowMs, mailboxIsGone)
  }
  const tries = state.tries + 1
  const failingSinceMs = state.failingSinceMs ?? nowMs
  const failed = { ...withFailure(idle, outcome, nowMs), tries, failingSinceMs }
  const endpointRejects = isRejectedForGood(state, outcome)
  if (nowMs - failingSinceMs < failingMaxMs && !endpointRejects) {
    const nextAtMs = retryAtMs(schedule, tries, outcome, nowMs, random)
    return proceed({ ...failed, nextAtMs }, nowMs)
  }
  if (state.mailboxGone) return end(state, nowMs, mailboxIsGone)
  const suspended: Registered = {
    ...without(failed, "nextAtMs", "checkAgain"),
    status: "suspended",
    ...endpointRejects ? { endpointRejects } : {}
  }
  return proceed(withSuspensionReport(suspended, context), nowMs, { checks })
}

const acknowledged = (
  state: Registered,
  upTo: number,
  code: number,
  nowMs: number
): RegistrationDecision => {
  if (state.mailboxGone) return end(state, nowMs, mailboxIsGone)
  // Without a running push the actor was reloaded, or a check has begun since, which ends here:
  // there may be changes that no message has reported.
  const checks = state.checkAgain === true || state.running?.kind !== "push" ||
    state.replay !== undefined
  const next: Registered = {
    ...without(
      state,
      "pushing",
      "running",
      "failingSinceMs",
      "nextAtMs",
      "problem",
      "endpointRejects"
    ),
    tries: 0,
    lastAtMs: nowMs,
    code
  }
  return proceed(withCursor(next, upTo), nowMs, { checks })
}

/** The changes up to `upTo` were not pushed: the topic, or the browser, has none of them. */
const skipped: Row["Skipped"] = (state, { from, untilMs, upTo }, { nowMs }) => {
  const { checkAgain = false, cursor, pushing, running } = state
  if (running?.untilMs !== untilMs || pushing !== upTo || cursor !== from) return stay()
  // Nothing is pending that has failed.
  const idle = without(state, "pushing", "running", "nextAtMs", "failingSinceMs", "problem")
  const checks = checkAgain || state.replay !== undefined
  return proceed({ ...withCursor(idle, upTo), tries: 0 }, nowMs, { checks })
}

/**
 * The mailbox does not list the registration. Soon after the creation the mailbox may still add it,
 * so the check is repeated. Later the registration ends.
 */
const detached: Row["Detached"] = (state, { untilMs }, { nowMs }) => {
  if (state.running?.untilMs !== untilMs) return stay()
  if (nowMs - state.createdAtMs < registeringMaxMs) return retrySoon(state, nowMs)
  // The request may have been interrupted before the mailbox listed the registration.
  return end(state, nowMs, undefined, true)
}

/** Repeats a check or push later, which an unavailable store or mailbox has prevented. */
const retrySoon = (state: Registered, nowMs: number): RegistrationDecision => {
  const laterMs = nowMs + unavailableRetryMs
  const idle = without(state, "running")
  const isDue = isPushing(state)
  const nextAtMs = Math.max(laterMs, state.nextAtMs ?? 0)
  const next = isDue ? { ...idle, nextAtMs } : idle
  return proceed(next, nowMs, { isChanged: isDue, laterMs })
}

/* The next action, and its time. */

/** Options of {@link proceed}. */
interface Change {
  /** Whether to check the mailbox for changes; by default not. */
  readonly checks?: boolean
  /** Whether the stored part of the state has changed, and is written; by default it has. */
  readonly isChanged?: boolean
  /** When the timer fires at the latest, ms since the epoch. */
  readonly laterMs?: number
}

/** Stores the state, begins the actions that are due, and sets the timer for later ones. */
const proceed = (
  current: Registered,
  nowMs: number,
  { checks = false, isChanged = true, laterMs }: Change = {}
): RegistrationDecision => {
  if (current.leaseUntilMs !== undefined && current.leaseUntilMs <= nowMs) {
    return end(current, nowMs)
  }
  const actions: Array<RegistrationAction> = []
  const verifying = beginVerification(current, nowMs, actions)
  const reporting = beginReportStep(verifying, nowMs, {
    push: (action) => actions.push({ ...action, cause: causeOfReport(current) })
  })
  const state = beginPushOrCheck(reporting, nowMs, checks, actions)
  const { failureReportUntilMs, intent, leaseUntilMs, nextAtMs, running, verifyingUntilMs } = state
  const nextTimerMs = earliest([
    laterMs,
    leaseUntilMs,
    failureReportUntilMs,
    verifyingUntilMs ?? intent?.nextAtMs,
    running?.untilMs ?? (isPushing(state) ? nextAtMs : undefined)
  ])
  const decision: RegistrationDecision = isChanged
    ? become<RegistrationState>(state)
    : stay<RegistrationState>().becomeInMemory(state)
  for (const action of actions) decision.perform(action)
  if ((verifyingUntilMs ?? running ?? failureReportUntilMs) === undefined) {
    return decision.setTimer(nextTimerMs)
  }
  // If nothing has changed, the store still has the timer that has just fired.
  return (isChanged ? decision.setTimer(nowMs) : decision).deferTimer(nextTimerMs ?? nowMs)
}

/** Reports of registrations that readers have made do not use up the share of the owner. */
const causeOfReport = ({ secretsVersion }: Registered): FailureCause =>
  secretsVersion === undefined ? "registration" : "reader"

/** Begins a verification that is due. */
const beginVerification = (
  state: Registered,
  nowMs: number,
  actions: Array<RegistrationAction>
): Registered => {
  const { intent, verifyingUntilMs = 0 } = state
  if (verifyingUntilMs > nowMs) return state
  if (intent?.nextAtMs === undefined || intent.nextAtMs > nowMs) {
    return without(state, "verifyingUntilMs")
  }
  const { challenge, leaseSeconds, mode } = intent
  actions.push({ _tag: "Verify", ...calleeOf(state), mode, challenge, leaseSeconds })
  return { ...state, verifyingUntilMs: nowMs + registrationLeaseMs }
}

/** Begins the pending push if it is due. If no push is pending, begins a check if `checks`. */
const beginPushOrCheck = (
  state: Registered,
  nowMs: number,
  checks: boolean,
  actions: Array<RegistrationAction>
): Registered => {
  if ((state.running?.untilMs ?? 0) > nowMs) return checks ? { ...state, checkAgain: true } : state
  const { cursor, form, mailboxGone, nextAtMs = 0, pushing, status } = state
  const untilMs = nowMs + registrationLeaseMs
  if (isPushing(state) && pushing !== undefined) {
    if (nextAtMs > nowMs) {
      const waiting = without(state, "running")
      // The secret that allowed it may have changed; the attempt would find that out too.
      return checks && state.secretsVersion !== undefined
        ? beginCheck(waiting, false, untilMs, actions)
        : waiting
    }
    const secrets = validSecrets(state, nowMs)
    const changes = { from: cursor, upTo: pushing, mailboxGone, untilMs }
    const key = state.p256dh === undefined ? {} : { p256dh: state.p256dh }
    actions.push({ _tag: "Push", form, ...calleeOf(state), secrets, ...key, ...changes })
    const begun: Registered = { ...state, running: { kind: "push", untilMs } }
    return checks ? { ...begun, checkAgain: true } : begun
  }
  const idle = without(state, "running", "checkAgain")
  if (!checks) return idle
  // A registration that is not active only checks that the mailbox still exists.
  return beginCheck(idle, status === "active", untilMs, actions)
}

const beginCheck = (
  state: Registered,
  readsChanges: boolean,
  untilMs: number,
  actions: Array<RegistrationAction>
): Registered => {
  const allowed = secretsVersionOf(state)
  const end = state.replay === undefined ? {} : { end: state.replay.end }
  actions.push({
    _tag: "CheckMailbox",
    from: state.cursor,
    ...end,
    readsChanges,
    ...allowed,
    untilMs
  })
  return { ...state, running: { kind: readsChanges ? "check" : "existence", untilMs } }
}

const isPushing = ({ pushing, status }: Registered): boolean =>
  status === "active" && pushing !== undefined

const earliest = (times: ReadonlyArray<number | undefined>): number | null => {
  const set = times.filter((time) => time !== undefined)
  return set.length === 0 ? null : Math.min(...set)
}

/**
 * Whether the callback has rejected the challenge, or has never answered it: its owner is no
 * subscriber (WebSub §5.3), and must get nothing more.
 */
const isRejected = ({ intent, status }: Registered): boolean =>
  status === "unverified" && intent?.nextAtMs === undefined

/**
 * Ends the registration and removes it from the mailbox. A WebSub subscriber gets `reason`. The
 * request that made the registration makes it again if it `mayRepeat`.
 */
const end = (
  state: Registered,
  nowMs: number,
  reason?: string,
  mayRepeat = false
): RegistrationDecision => {
  const { form, requestId, version } = state
  const decision: RegistrationDecision = become<RegistrationState>({
    _tag: "Removed",
    removedAtMs: nowMs,
    version,
    ...mayRepeat ? {} : { requestId }
  })
    .setTimer(nowMs)
    .deferTimer(nowMs + registrationLeaseMs)
    .perform<RegistrationAction>({ _tag: "Detach" })
  const attempts = attemptItems(state)
  if (attempts.length > 0) decision.removeItems(...attempts)
  return reason === undefined || form !== "websub" || isRejected(state)
    ? decision
    : decision.perform<RegistrationAction>({ _tag: "Deny", ...calleeOf(state), reason })
}
