/**
 * The attempts of an outgoing notification at its recipients: how they are read, the documents and
 * the page. Attempts are log items with what was exchanged. The last attempt of a recipient is also
 * in its state, which is all that is kept of a local delivery that has succeeded.
 */
import { Effect } from "effect"
import { linksUnder } from "../../../actors/index.ts"
import { decodeRelayAttempt, type NotificationView, type RecipientState, type RelayAttempt,
  type RelayAttemptFollowUp } from "../../../actors/notification/index.ts"
import { type Html, html, namedLink, nothing } from "../../formats/html/index.ts"
import type { ResourceView } from "../../formats/index.ts"
import { element } from "../../formats/xml/index.ts"
import { askedAtOnceMax } from "../../limits.ts"
import { defineHandler, type HandlerFailure, readerHeaders, type Service,
  viewAnswer } from "../../pipeline/index.ts"
import { attemptElement, attemptList, type AttemptTexts, shownAttempt } from "../attempts/index.ts"
import { attemptsHref, describedForPage, outgoingNotificationOf, type OutgoingNotificationRef,
  recipientAnchor, recipientName } from "./outgoing-access.ts"

/** An attempt that is shown. */
interface ShownRelayAttempt extends RelayAttempt {
  /** The URI of the recipient. */
  readonly to: string
  /** The state of the recipient has it, without what was exchanged. */
  readonly isBrief?: boolean
  /** No attempt of the recipient is newer. */
  readonly isLast: boolean
}

/** The attempts of a notification, the newest first. */
interface RelayAttempts {
  readonly attempts: ReadonlyArray<ShownRelayAttempt>
  /** How many were made that are not kept any more. */
  readonly dropped: number
}

/** From one attempt to the next in the log, if what is between is read with them. */
export const attemptGapMax = 8

/**
 * Ranges of log numbers that hold these. Items between two of them are read too if they are few:
 * the states of recipients, which are short. A document is not: it may be large.
 */
export const rangesOf = (
  numbers: ReadonlyArray<number>,
  documents: ReadonlyArray<number>
): ReadonlyArray<{ readonly first: number; readonly last: number }> => {
  const ranges: Array<{ first: number; last: number }> = []
  for (const n of numbers) {
    const range = ranges.at(-1)
    const isNear = range !== undefined && n - range.last <= attemptGapMax &&
      !documents.some((document) => range.last < document && document < n)
    if (isNear) range.last = n
    else ranges.push({ first: n, last: n })
  }
  return ranges
}

/** The attempts in the log; fewer if the notification is removed meanwhile. */
const readKept = (
  { system }: Service,
  { to }: OutgoingNotificationRef,
  { attemptItems = [], followUps = [] }: NotificationView
): Effect.Effect<ReadonlyArray<RelayAttempt>, HandlerFailure> => {
  const wanted = new Set(attemptItems)
  const ranges = rangesOf(attemptItems, followUps.map(({ item }) => item))
  const reading = Effect.forEach(
    ranges,
    ({ first, last }) => system.read(to, first, last - first + 1),
    { concurrency: askedAtOnceMax }
  )
  return Effect.map(reading, (parts) =>
    parts.flat().flatMap(({ n, value }) => {
      const attempt = wanted.has(n) ? decodeRelayAttempt(value) : undefined
      return attempt === undefined ? [] : [attempt]
    }))
}

/** What follows the last attempt of a recipient; undefined if its result was replaced since. */
const followUpIn = (
  { code, nextAtMs, problem, status }: RecipientState
): RelayAttemptFollowUp | undefined => {
  // A recipient that gets it again keeps the result until its next attempt, as one that waits does.
  if (status === "success" || (problem === undefined && code !== undefined)) return "done"
  if (problem === undefined) return undefined
  return nextAtMs === undefined ? "given-up" : "schedule"
}

/** The last attempt of a recipient as its state has it. */
const attemptIn = (recipient: RecipientState, at: number): RelayAttempt | undefined => {
  const { attempts, code, lastAtMs, nextAtMs, problem, tookMs } = recipient
  const follows = followUpIn(recipient)
  if (attempts === 0 || lastAtMs === undefined || follows === undefined) return undefined
  return {
    recipient: at,
    attempt: attempts,
    exchange: {
      beganAtMs: Math.max(0, lastAtMs - (tookMs ?? 0)),
      ...tookMs === undefined ? {} : { durationMs: tookMs },
      requestHeaders: [],
      ...code === undefined ? {} : { code }
    },
    follows,
    ...problem === undefined ? {} : { problem },
    ...nextAtMs === undefined || follows === "done" ? {} : { nextAtMs }
  }
}

/** What is known of all attempts: those in the log, and the last ones of the other recipients. */
export const relayAttemptsOf = (
  { recipients }: Pick<NotificationView, "recipients">,
  kept: ReadonlyArray<RelayAttempt>
): RelayAttempts => {
  const newest = new Map<number, number>()
  for (const { attempt, recipient } of kept) {
    newest.set(recipient, Math.max(attempt, newest.get(recipient) ?? 0))
  }
  let made = 0
  const attempts: Array<ShownRelayAttempt> = []
  for (const [at, recipient] of recipients.entries()) {
    made += recipient.attempts
    const last = attemptIn(recipient, at)
    if (last === undefined || last.attempt <= (newest.get(at) ?? 0)) continue
    newest.set(at, last.attempt)
    attempts.push({ ...last, to: recipient.to, isBrief: true, isLast: true })
  }
  for (const attempt of kept) {
    const recipient = recipients[attempt.recipient]
    if (recipient === undefined) continue
    const isLast = newest.get(attempt.recipient) === attempt.attempt
    attempts.push({ ...attempt, to: recipient.to, isLast })
  }
  return {
    attempts: attempts.toSorted((one, other) =>
      other.exchange.beganAtMs - one.exchange.beganAtMs || other.attempt - one.attempt
    ),
    // An attempt may have ended between two reads.
    dropped: Math.max(0, made - attempts.length)
  }
}

/* The documents and the page. */

/** What follows an attempt, for a person. */
const followUpTexts: { readonly [F in RelayAttemptFollowUp]: string } = {
  done: "",
  schedule: "by the retry schedule",
  "retry-after": "the recipient has asked for it (Retry-After)",
  "follow-up": "with what has replaced or withdrawn the notification",
  permanent: "none: another one would not help",
  "given-up": "none, until it is retried"
}

const withoutExchange = (
  { settings }: Service,
  { exchange, isBrief, isLocal, problem, to }: ShownRelayAttempt
): string | undefined => {
  const isOwn = isBrief === true && problem === undefined &&
    linksUnder(settings.baseUrl).isOwn(to)
  if (isLocal === true || isOwn) return "The mailbox is at this service: there was no request."
  const isKept = exchange.requestHeaders.length > 0
  if (isBrief === true || (!isKept && exchange.code !== undefined)) {
    return "The headers and the answer are not kept any more."
  }
  return undefined
}

const textsOf = (service: Service): AttemptTexts<ShownRelayAttempt> => ({
  label: ({ attempt, to }) =>
    html`attempt ${attempt} at ${namedLink(to, recipientName(service, to))}`,
  followUps: new Map(Object.entries(followUpTexts)),
  withoutExchange: (attempt) => withoutExchange(service, attempt),
  anchor: ({ isLast, recipient }) => isLast ? recipientAnchor(recipient) : undefined
})

const droppedNote = (dropped: number): Html =>
  dropped === 0
    ? nothing
    : html`<p>${dropped} earlier ${dropped === 1 ? "attempt is" : "attempts are"} not kept.</p>`

/** The attempts of an outgoing notification, the newest first. */
export const relayAttemptsView = (
  service: Service,
  outgoing: OutgoingNotificationRef,
  { attempts, dropped }: RelayAttempts,
  about: string | undefined
): ResourceView => ({
  title: about === undefined ? "Attempts of an outgoing notification" : `Attempts: ${about}`,
  tree: () =>
    element(
      "attempts",
      { href: attemptsHref(outgoing), dropped: dropped === 0 ? undefined : dropped },
      ...attempts.map((one) => attemptElement(one, { recipient: one.to, number: one.attempt }))
    ),
  body: () =>
    html`<p>What the service sent last to the recipients, and what they answered; the newest first.
The headers and the start of the answer are kept for the last attempts.</p>
${attemptList(attempts, textsOf(service))}${droppedNote(dropped)}`,
  links: [{ rel: "up", href: outgoing.href, title: "The outgoing notification" }]
})

/** What was sent to the recipients, and what they have answered. */
export const getRelayAttempts = defineHandler(function*(service, call) {
  const { outgoing, view } = yield* outgoingNotificationOf(service, call, { attempts: true })
  const { caller } = outgoing
  const seesPrivateAnswers = caller.name === view.account && caller.roles.includes("admin")
  const kept = yield* readKept(service, outgoing, view)
  const shown = kept.map((attempt) => shownAttempt(attempt, seesPrivateAnswers))
  const all = relayAttemptsOf(view, shown)
  const { about } = yield* describedForPage(service, call, outgoing, view)
  return viewAnswer(relayAttemptsView(service, outgoing, all, about), {
    headers: readerHeaders
  })
})
