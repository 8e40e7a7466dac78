/** Handlers of push registrations (protocol §1.4): the native form, WebSub, and Web Push. */
import { Effect } from "effect"
import { pushItemsMax, replayEndsFormat } from "../../../actors/index.ts"
import type { MailboxMessage, MailboxReply } from "../../../actors/mailbox/index.ts"
import { type RegistrationAttempt, type RegistrationMessage, type RegistrationReply,
  type RegistrationView, tooManyReplays } from "../../../actors/registration/index.ts"
import { isRefusal, type Refusal } from "../../../runtime/index.ts"
import type { IdSource } from "../../auth/credentials/index.ts"
import { askedAtOnceMax } from "../../limits.ts"
import { ask, askOrRefusal, checkShownVersion, emptyAnswer, entityTags, expectedVersion,
  expectReply, failRefused, type HandlerAnswer, type HandlerFailure, httpError, inPlace, isPageForm,
  isPageRequest, noStore, readFormMethod, readInput, redisplayOutdated, refusalError,
  type RequestInput, requireFormat, seeOther, shownVersion,
  viewAnswer } from "../../pipeline/index.ts"
import { changeOnce, removeOnce } from "../../request-record.ts"
import { defineMailboxHandler, type MailboxCall, mailboxReaderHeaders, parseListingSince,
  positionSince, type ReaderCall } from "../mailboxes/index.ts"
import { allowedBy, type AllowedRegistration, type AttemptsOf, browserNamed, collectionPath,
  type DescribedRegistration, describeRegistration, readAttempts, registrationAt, registrationNamed,
  type RegistrationRef, requireSubscriber, subscriptionNamed } from "./registration-access.ts"
import { type BrowserSubscription, callbackIn, type HubRequest, isBrowserSubscription, isHubRequest,
  isPause, positionIn, readBrowserSubscription, readCallback,
  readHubRequest } from "./registration-input.ts"
import { countedSite } from "./push-services.ts"
import { collectionView, liftForm, registrationView, secretView } from "./registration-views.ts"
import { attemptsView, shortAttemptsMax } from "./attempt-views.ts"
import { tooManyInMinute } from "./test-event.ts"

/* Creation (A12). */

type CreateMessage = Extract<RegistrationMessage, { readonly _tag: "Create" }>

/** A secret of Standard Webhooks: 256 random bits. */
const makeSecret = (ids: IdSource): string =>
  `whsec_${Buffer.from(ids.secret("webhook"), "base64url").toString("base64")}`

/** Whether a valid subscription continues although its renewal was refused. */
const continuesAfter = (form: CreateMessage["form"], { reason }: Refusal): boolean =>
  form !== "native" && (reason === "Unauthenticated" || reason === "Forbidden")

/**
 * Creates the registration, then enters it into the mailbox's list. After a crash between, the
 * registration finds that its mailbox does not list it; an entry alone could not find that out.
 */
const createRegistration = Effect.fnUntraced(function*(
  { mailbox, reader, service }: ReaderCall,
  { id, to }: RegistrationRef,
  create: CreateMessage,
  origin?: string
): Effect.fn.Return<RegistrationView, HandlerFailure> {
  const { view } = expectReply(yield* ask<RegistrationReply>(service, to, create), "Created")
  const counted = origin === undefined ? {} : { origin }
  const listing: MailboxMessage = { _tag: "Register", id, reader, ...counted }
  const listed = yield* askOrRefusal<MailboxReply>(service, mailbox.to, listing)
  if (!isRefusal(listed)) return view
  if (!continuesAfter(create.form, listed)) {
    const undo: RegistrationMessage = { _tag: "Delete", isUndo: true }
    yield* Effect.ignore(askOrRefusal<RegistrationReply>(service, to, undo))
  }
  return yield* refusalError(listed)
})

/** The common part of every new registration; pushes begin after the mailbox's head. */
const createMessage = (readerCall: ReaderCall) => {
  const { call: { ids }, reader, view } = readerCall
  return {
    _tag: "Create" as const,
    requestId: ids.id("request"),
    challenge: ids.id("challenge"),
    cursor: view.head,
    ...reader.account === undefined ? {} : { account: reader.account },
    ...allowedBy(readerCall)
  }
}

const createNative = Effect.fnUntraced(function*(
  readerCall: ReaderCall,
  callback: string
): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
  const { call, mailbox } = readerCall
  const registration = registrationNamed(mailbox, call.ids.id("registration"))
  const secret = makeSecret(call.ids)
  const view = yield* createRegistration(readerCall, registration, {
    ...createMessage(readerCall),
    form: "native",
    callback,
    secret,
    leaseSeconds: 0
  })
  return viewAnswer(secretView(mailbox, registration, view, secret), {
    status: 201,
    headers: [["Location", registration.href], ...noStore]
  })
})

const subscribe = Effect.fnUntraced(function*(
  readerCall: ReaderCall,
  request: Extract<HubRequest, { readonly mode: "subscribe" }>
): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
  const { mailbox } = readerCall
  const { callback, leaseSeconds, secret, topicFormat } = request
  const registration = subscriptionNamed(mailbox, request)
  const view = yield* createRegistration(readerCall, registration, {
    ...createMessage(readerCall),
    form: "websub",
    callback,
    leaseSeconds,
    ...topicFormat === undefined ? {} : { topicFormat },
    ...secret === undefined ? {} : { secret }
  })
  return viewAnswer(registrationView(mailbox, registration, view), {
    status: 202,
    headers: [["Location", registration.href], ...mailboxReaderHeaders(mailbox)]
  })
})

/** The push subscription of a browser, which is pushed to at once. */
const createBrowser = Effect.fnUntraced(function*(
  readerCall: ReaderCall,
  { auth, endpoint, p256dh }: BrowserSubscription
): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
  const { mailbox } = readerCall
  const registration = browserNamed(mailbox, endpoint)
  const view = yield* createRegistration(readerCall, registration, {
    ...createMessage(readerCall),
    form: "webpush",
    callback: endpoint,
    p256dh,
    secret: auth,
    leaseSeconds: 0
  }, countedSite(readerCall.service.settings.fanOutAllow, endpoint))
  return viewAnswer(registrationView(mailbox, registration, view), {
    status: 201,
    headers: [["Location", registration.href], ...noStore]
  })
})

/** 404 for a topic and callback without a subscription: there is no intent to verify. */
const unsubscribe = Effect.fnUntraced(function*(
  { call, mailbox, service }: MailboxCall,
  request: HubRequest
): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
  const message: RegistrationMessage = { _tag: "Unsubscribe", challenge: call.ids.id("challenge") }
  const { to } = subscriptionNamed(mailbox, request)
  const reply = yield* askOrRefusal<RegistrationReply>(service, to, message)
  if (!isRefusal(reply)) return emptyAnswer(202, [mailbox.link])
  return yield* reply.reason === "NotFound" || reply.reason === "Gone"
    ? httpError("not-found", "there is no subscription of this hub.topic and hub.callback")
    : refusalError(reply)
})

/**
 * A12: 201 and the secret, shown once; a browser has its own. A WebSub request gets 202 and is
 * verified then.
 */
export const postRegistrations = defineMailboxHandler(function*(mailboxCall) {
  const { call, mailbox } = mailboxCall
  const readerCall = yield* requireSubscriber(mailboxCall)
  const input = yield* readInput(call, "registration", { form: true })
  if (input._tag === "Form" && isHubRequest(input.fields)) {
    const request = yield* readHubRequest(input.fields, mailbox)
    return request.mode === "subscribe"
      ? yield* subscribe(readerCall, request)
      : yield* unsubscribe(mailboxCall, request)
  }
  if (input._tag === "Document" && isBrowserSubscription(input.root)) {
    return yield* createBrowser(readerCall, yield* readBrowserSubscription(input.root))
  }
  const callback = yield* readCallback("callback", callbackIn(input))
  return yield* createNative(readerCall, callback)
})

/* Reading. */

/** The mailbox's registrations, without those that end meanwhile. */
export const getRegistrations = defineMailboxHandler(function*(mailboxCall) {
  const { call, mailbox, service } = mailboxCall
  const { reader } = yield* requireSubscriber(mailboxCall)
  const message: MailboxMessage = { _tag: "Registrations", reader }
  const reply = yield* ask<MailboxReply>(service, mailbox.to, message)
  const describing = Effect.forEach(expectReply(reply, "Registrations").ids, (id) => {
    const registration = registrationNamed(mailbox, id)
    return Effect.map(
      describeRegistration(service, registration.to),
      (view): ReadonlyArray<DescribedRegistration> =>
        isRefusal(view) ? [] : [{ registration, view }]
    )
  }, { concurrency: askedAtOnceMax })
  const described = yield* inPlace(service.actorListings, call.request, describing)
  const { applicationServerKey } = service
  return viewAnswer(collectionView(mailbox, described.flat(), applicationServerKey), {
    headers: mailboxReaderHeaders(mailbox)
  })
})

/** The last attempts in short. */
const shortAttemptsOf = ({ service }: MailboxCall, described: AttemptsOf) =>
  readAttempts(service, described, shortAttemptsMax)

/** The registration; only its page shows attempts. */
const registrationAnswer = <E>(
  { call, mailbox }: MailboxCall,
  { registration, view }: DescribedRegistration,
  attempts: Effect.Effect<ReadonlyArray<RegistrationAttempt>, E>
): Effect.Effect<HandlerAnswer, E> => {
  const shown: typeof attempts = isPageRequest(call.request) ? attempts : Effect.succeed([])
  return Effect.map(
    shown,
    (all) =>
      viewAnswer(registrationView(mailbox, registration, view, all), {
        headers: mailboxReaderHeaders(mailbox)
      })
  )
}

/** The answer to a change, which is committed: it is no failure if the attempts cannot be read. */
const changedAnswer = (
  mailboxCall: MailboxCall,
  changed: AttemptsOf
): Effect.Effect<HandlerAnswer> => {
  const attempts = Effect.orElseSucceed(shortAttemptsOf(mailboxCall, changed), () => [])
  return registrationAnswer(mailboxCall, changed, attempts)
}

export const getRegistration = defineMailboxHandler(function*(mailboxCall) {
  const found = yield* registrationAt(mailboxCall)
  return yield* registrationAnswer(mailboxCall, found, shortAttemptsOf(mailboxCall, found))
})

/** What was sent last to the callback, and what it has answered. */
export const getAttempts = defineMailboxHandler(function*(mailboxCall) {
  const { mailbox, service } = mailboxCall
  const found = yield* registrationAt(mailboxCall)
  const attempts = yield* readAttempts(service, found)
  return viewAnswer(attemptsView(mailbox, found.registration, attempts), {
    headers: mailboxReaderHeaders(mailbox)
  })
})

/* Changes. */

/** Another callback than before; 422 for a bad one, or if it identifies the subscription. */
const changedCallback = Effect.fnUntraced(function*(
  input: RequestInput,
  { view }: DescribedRegistration
): Effect.fn.Return<{ readonly callback?: string }, HandlerFailure> {
  const text = callbackIn(input)
  if (text === undefined || text === view.callback) return {}
  const callback = yield* readCallback("callback", text)
  return view.form === "native" ? { callback } : yield* httpError(
    "unprocessable",
    "the callback identifies the subscription: subscribe the other callback"
  )
})

/** The position of a field, if it has one; 422 for one that the mailbox has not given out. */
const positionOf = Effect.fnUntraced(function*(
  { mailbox, service }: MailboxCall,
  input: RequestInput,
  name: "since" | "until",
  { mailboxView }: AllowedRegistration
): Effect.fn.Return<number | undefined, HandlerFailure> {
  const text = positionIn(input, name)
  if (text === undefined) return undefined
  const since = parseListingSince(text)
  if (since === undefined) {
    return yield* httpError(
      "unprocessable",
      `${name} must be a time such as 2026-01-01T00:00:00Z, or a position of the mailbox`
    )
  }
  const { after, state } = yield* positionSince(service, mailbox, mailboxView, since)
  return state === "unknown"
    ? yield* httpError(
      "unprocessable",
      `${name}: the mailbox has not given out this position: take a time, or one of its listings`
    )
    : after
})

/** The position after which pushes begin again, and the last one of those; 422 for a bad one. */
const changedPosition = Effect.fnUntraced(function*(
  mailboxCall: MailboxCall,
  input: RequestInput,
  found: AllowedRegistration
): Effect.fn.Return<{ readonly cursor?: number; readonly replayEnd?: number }, HandlerFailure> {
  const after = yield* positionOf(mailboxCall, input, "since", found)
  const end = yield* positionOf(mailboxCall, input, "until", found)
  if (after === undefined) {
    return end === undefined ? {} : yield* httpError(
      "unprocessable",
      "until is the end of a replay, which has no beginning: add since"
    )
  }
  if (end !== undefined && end < after) {
    return yield* httpError("unprocessable", "until is before since: give a later one")
  }
  // The node of the actor may be an older one, which would ignore the end.
  if (end !== undefined) yield* requireFormat(mailboxCall.service, replayEndsFormat)
  const { mailboxView, view } = found
  // A browser shows each push, and nothing has verified its endpoint: it gets the newest one again.
  const first = view.form === "webpush" ? mailboxView.head - pushItemsMax : 0
  const replayEnd = end === undefined ? {} : { replayEnd: end }
  return { cursor: Math.max(after, first), ...replayEnd }
})

/** The registration's version, for which the conditions of the request hold; fails with 412. */
const checkedVersion = Effect.fnUntraced(function*(
  mailboxCall: MailboxCall,
  found: AllowedRegistration
): Effect.fn.Return<number, HandlerFailure> {
  const { call, mailbox, service } = mailboxCall
  const { registration } = found
  const view = yield* failRefused(describeRegistration(service, registration.to))
  const { version } = view
  yield* expectedVersion(
    call,
    // The tag of the page is that of a GET.
    Effect.map(shortAttemptsOf(mailboxCall, { ...found, view }), (attempts) => ({
      version,
      tags: entityTags(call, registrationView(mailbox, registration, view, attempts))
    }))
  )
  return version
})

/** For an Idempotency-Key it is as any refusal: nothing was changed, and the key is unused. */
const replayRefusal: Refusal = { _tag: "Refused", reason: "Busy", detail: undefined }

/** Asks for a change of the version that the request has found; returns the registration. */
const changeRegistration = Effect.fnUntraced(function*(
  mailboxCall: MailboxCall,
  found: AllowedRegistration,
  message: Extract<RegistrationMessage, { readonly _tag: "Update" | "Pause" | "Rotate" }>,
  input?: RequestInput
): Effect.fn.Return<AllowedRegistration, HandlerFailure> {
  const { call, service } = mailboxCall
  const { registration } = found
  const shown = input === undefined ? {} : shownVersion(input)
  const version = Effect.tap(
    checkedVersion(mailboxCall, found),
    (current) => input === undefined ? Effect.void : checkShownVersion(input, current)
  )
  const excess: { untilMs?: number } = {}
  const change = (expected: { readonly ifVersion?: number }) =>
    Effect.map(
      askOrRefusal<RegistrationReply>(service, registration.to, {
        ...message,
        ...shown,
        ...expected
      }),
      (reply): RegistrationReply | Refusal => {
        if (reply._tag !== "TooManyReplays") return reply
        excess.untilMs = reply.untilMs
        return replayRefusal
      }
    )
  const reply = yield* changeOnce(service, call, version, change)
  if (excess.untilMs !== undefined) {
    return yield* tooManyInMinute("registration-replays", tooManyReplays, excess.untilMs)
  }
  if (isRefusal(reply)) return yield* refusalError(reply)
  return { ...found, view: expectReply(reply, "Described").view }
})

/**
 * Pauses the registration, or else resumes it or verifies it again, with the callback of the input
 * if it has one.
 */
const updateRegistration = Effect.fnUntraced(function*(
  mailboxCall: MailboxCall,
  found: AllowedRegistration,
  input: RequestInput
): Effect.fn.Return<AllowedRegistration, HandlerFailure> {
  const changed = {
    ...yield* changedCallback(input, found),
    ...yield* changedPosition(mailboxCall, input, found)
  }
  if (!isPause(input)) {
    const update = changeRegistration(mailboxCall, found, {
      _tag: "Update",
      ...found.allowed,
      challenge: mailboxCall.call.ids.id("challenge"),
      ...changed
    }, input)
    const { call, service } = mailboxCall
    const now = Effect.map(
      failRefused(describeRegistration(service, found.registration.to)),
      (view) => liftForm(found.registration.path, view)
    )
    return yield* redisplayOutdated(call, input, now, update)
  }
  const [other] = Object.keys(changed)
  return other === undefined
    ? yield* changeRegistration(mailboxCall, found, { _tag: "Pause" })
    : yield* httpError(
      "unprocessable",
      `${other} takes effect when the registration is not paused: send it alone, and pause it then`
    )
})

/**
 * PUT: lifts a suspension or a pause, or verifies again; the document may name another callback.
 * With the status paused it pauses.
 */
export const putRegistration = defineMailboxHandler(function*(mailboxCall) {
  const found = yield* registrationAt(mailboxCall)
  const input = yield* readInput(mailboxCall.call, "registration", { mayBeEmpty: true })
  return yield* changedAnswer(mailboxCall, yield* updateRegistration(mailboxCall, found, input))
})

const removeRegistration = Effect.fnUntraced(function*(
  mailboxCall: MailboxCall
): Effect.fn.Return<void, HandlerFailure> {
  const { call, service } = mailboxCall
  const found = yield* registrationAt(mailboxCall)
  const version = checkedVersion(mailboxCall, found)
  yield* failRefused(changeOnce(service, call, version, (expected) => {
    const message: RegistrationMessage = { _tag: "Delete", ...expected }
    return askOrRefusal<RegistrationReply>(service, found.registration.to, message)
  }))
})

/** DELETE: stops the pushes; the actor removes itself from the mailbox's list. */
export const deleteRegistration = defineMailboxHandler(function*(mailboxCall) {
  yield* removeRegistration(mailboxCall)
  return emptyAnswer(204, [mailboxCall.mailbox.link])
})

/** PUT and DELETE from the forms of a registration's page. */
export const postRegistrationForm = defineMailboxHandler(function*(mailboxCall) {
  const { call, mailbox, service } = mailboxCall
  yield* requireSubscriber(mailboxCall)
  const { input, method } = yield* readFormMethod(call, "registration", ["put", "delete"])
  if (method === "put") {
    const found = yield* registrationAt(mailboxCall)
    const changed = yield* updateRegistration(mailboxCall, found, input)
    return isPageForm(call.request)
      ? seeOther(service, found.registration.path)
      : yield* changedAnswer(mailboxCall, changed)
  }
  yield* removeOnce(call, removeRegistration(mailboxCall))
  return isPageForm(call.request)
    ? seeOther(service, collectionPath(mailbox))
    : emptyAnswer(204, [mailbox.link])
})

/**
 * POST to …/secret: a new secret, shown once; the old one also signs for a while. A repetition
 * replaces only the secret that the first attempt has found.
 */
export const postSecret = defineMailboxHandler(function*(mailboxCall) {
  const { call, mailbox } = mailboxCall
  const found = yield* registrationAt(mailboxCall)
  const { registration, view } = found
  if (view.form !== "native") {
    const chosen = view.form === "websub" ? "hub.secret" : "the keys of a browser"
    return yield* httpError(
      "conflict",
      `the secret is not changed, as the subscriber chooses ${chosen}: subscribe again instead`
    )
  }
  const secret = makeSecret(call.ids)
  const rotated = yield* changeRegistration(mailboxCall, found, { _tag: "Rotate", secret })
  return viewAnswer(secretView(mailbox, registration, rotated.view, secret), { headers: noStore })
})
