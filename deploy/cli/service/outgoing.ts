/** The outgoing mailbox of a running service, over its HTTP interface (protocol §1.3). */
import { Effect, Redacted, Result, Schema } from "effect"
import { type CommandFailed, exitCodes } from "../../command-failure.ts"
import { decodeAs, failed, linkOf, notUnderstood, pathOf, type RemoteAnswer, type RemoteService,
  request } from "./remote.ts"

const pageEntries = 1000

/** Notifications of a listing whose counts are asked for at a time. */
const askedAtOnce = 8

const longPollSeconds = 30

/** What changes quickly is read together. */
const followPauseMs = 200

const backoffMsFirst = 250

const backoffMsMax = 10_000

const Text = Schema.optionalKey(Schema.String)

const OutgoingRecipient = Schema.Struct({
  status: Schema.Literals(["waiting", "retry", "success", "failed"]),
  href: Schema.String,
  attempts: Schema.FiniteFromString,
  last: Text,
  next: Text,
  code: Text,
  problem: Text,
  location: Text
})

export type OutgoingRecipient = typeof OutgoingRecipient.Type

export const standings = ["sent", "waiting", "failed"] as const

const OutgoingStatus = Schema.Literals(standings)

export type OutgoingStatus = typeof OutgoingStatus.Type

const OutgoingNotification = Schema.Struct({
  href: Schema.String,
  time: Schema.String,
  status: OutgoingStatus,
  recipient: Schema.Array(OutgoingRecipient)
})

/** How a notification stands. */
export type OutgoingNotification = typeof OutgoingNotification.Type

const Listing = Schema.Struct({
  notification: Schema.Array(
    Schema.Struct({ href: Schema.String, time: Schema.String, status: OutgoingStatus })
  )
})

const Retried = Schema.Struct({
  notifications: Schema.FiniteFromString,
  recipients: Schema.FiniteFromString
})

const toNotification = decodeAs(OutgoingNotification)

const toListing = decodeAs(Listing)

const toRetried = decodeAs(Retried)

/** Path of the caller's own outgoing mailbox. */
export const ownMailbox = Effect.fnUntraced(function*(
  remote: RemoteService
): Effect.fn.Return<string, CommandFailed> {
  const { headers } = yield* request(remote, { method: "GET", path: "/outgoing", also: [303] })
  return pathOf(headers.get("location")) ?? (yield* notUnderstood())
})

/** Path of the notification that a URI names, or an id in the caller's own mailbox. */
export const notificationPath = Effect.fnUntraced(function*(
  remote: RemoteService,
  given: string
): Effect.fn.Return<string, CommandFailed> {
  if (/^[A-Za-z0-9_=-]+$/.test(given)) return `${yield* ownMailbox(remote)}/${given}`
  const path = pathOf(given)
  if (path !== undefined && /^\/outgoing\/[^/?]+\/[^/?]+$/.test(path)) return path
  const message = "expected the URI or the id of an outgoing notification"
  return yield* failed(message, exitCodes.usage)
})

/** Content that the service keeps, with the path at which it can be removed again. */
export interface PublishedContent {
  readonly href: string
  readonly edit: string | undefined
  /** The message password, chosen by the service when it was to. */
  readonly password: Redacted.Redacted | undefined
}

/** Publishes content (A1); `generate` as the password has the service choose one. */
export const publish = Effect.fnUntraced(function*(
  remote: RemoteService,
  content: {
    readonly bytes: AsyncIterable<Uint8Array>
    readonly type: string
    readonly password: Redacted.Redacted | undefined
  }
): Effect.fn.Return<PublishedContent, CommandFailed> {
  const { bytes: body, password, type } = content
  const { headers } = yield* request(remote, {
    method: "POST",
    path: "/content",
    headers: {
      "content-type": type,
      ...password === undefined ? {} : { "message-password": Redacted.value(password) }
    },
    body,
    withinMs: null
  })
  const href = headers.get("location") ?? (yield* notUnderstood())
  const chosen = headers.get("message-password")
  return {
    href,
    edit: linkOf(headers.get("link"), "edit"),
    password: chosen === null ? password : Redacted.make(chosen)
  }
})

/** Takes published content back. */
export const unpublish = (remote: RemoteService, { edit }: PublishedContent): Effect.Effect<void> =>
  edit === undefined
    ? Effect.void
    : Effect.ignore(request(remote, { method: "DELETE", path: edit }))

/** A notification to be sent. */
export interface OutgoingLetter {
  readonly to: ReadonlyArray<string>
  readonly from: boolean
  readonly description: string
  readonly url: string
  readonly password: Redacted.Redacted | undefined
}

/** Queues a notification (A5) and answers its URI. */
export const queue = Effect.fnUntraced(function*(
  remote: RemoteService,
  mailbox: string,
  { description, from, password, to, url }: OutgoingLetter
): Effect.fn.Return<string, CommandFailed> {
  const secret = password === undefined ? {} : { password: Redacted.value(password) }
  const { headers } = yield* request(remote, {
    method: "POST",
    path: mailbox,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ from: String(from), to, item: { description, url, ...secret } })
  })
  return headers.get("location") ?? (yield* notUnderstood())
})

/** How a notification stands (A6). */
export const standing = (
  remote: RemoteService,
  path: string
): Effect.Effect<OutgoingNotification, CommandFailed> =>
  Effect.flatMap(request(remote, { method: "GET", path }), toNotification)

const pending = ({ recipient }: OutgoingNotification): boolean =>
  recipient.some(({ status }) => status === "waiting" || status === "retry")

/**
 * Tells how a notification stands, at once and after each change, until all its recipients have
 * ended. A service that does not answer, undefined, is asked again and again.
 */
export const follow = Effect.fnUntraced(function*(
  remote: RemoteService,
  path: string,
  tell: (seen: OutgoingNotification | undefined) => void
): Effect.fn.Return<OutgoingNotification, CommandFailed> {
  let etag: string | undefined
  let backoffMs = backoffMsFirst
  for (;;) {
    const conditions = etag === undefined
      ? {}
      : { "if-none-match": etag, prefer: `wait=${longPollSeconds}` }
    const asked = yield* Effect.result(
      request(remote, { method: "GET", path, headers: conditions, also: [304], withinMs: 60_000 })
    )
    if (Result.isFailure(asked)) {
      if (asked.failure.exitCode !== exitCodes.unavailable) return yield* asked.failure
      tell(undefined)
      yield* Effect.sleep(backoffMs)
      backoffMs = Math.min(backoffMs * 2, backoffMsMax)
      etag = undefined
      continue
    }
    backoffMs = backoffMsFirst
    const answer = asked.success
    if (answer.status !== 304) {
      const seen = yield* toNotification(answer)
      tell(seen)
      if (!pending(seen)) return seen
      etag = answer.headers.get("etag") ?? undefined
    }
    yield* Effect.sleep(followPauseMs)
  }
})

/** One notification of a listing; `counts` as in Notification-Status: `success=3; retry=1`. */
export interface ListedNotification {
  readonly href: string
  readonly time: string
  readonly status: string
  readonly counts: string
}

/** With its counts; undefined when it is gone since. */
const counted = Effect.fnUntraced(function*(
  remote: RemoteService,
  { href, time }: (typeof Listing.Type)["notification"][number]
): Effect.fn.Return<ListedNotification | undefined, CommandFailed> {
  const path = pathOf(href) ?? (yield* notUnderstood())
  const { headers } = yield* request(remote, { method: "HEAD", path, also: [404, 410] })
  const [status, ...counts] = (headers.get("notification-status") ?? "").split(";")
  if (status === undefined || status === "") return undefined
  return { href, time, status, counts: counts.map((count) => count.trim()).join(" ") }
})

/** The newest notifications (A7), page by page. */
export const list = Effect.fnUntraced(function*(
  remote: RemoteService,
  status: OutgoingStatus | undefined,
  limit: number,
  show: (listed: ListedNotification) => Effect.Effect<void>
): Effect.fn.Return<void, CommandFailed> {
  let left = limit
  const filter = status === undefined ? "" : `&status=${status}`
  const mailbox = yield* ownMailbox(remote)
  let path: string | undefined = `${mailbox}?limit=${Math.min(left, pageEntries)}${filter}`
  while (path !== undefined && left > 0) {
    const answer: RemoteAnswer = yield* request(remote, { method: "GET", path })
    const { notification } = yield* toListing(answer)
    const wanted = notification.slice(0, left)
    const rows = yield* Effect.forEach(wanted, (one) => counted(remote, one), {
      concurrency: askedAtOnce
    })
    for (const row of rows) if (row !== undefined) yield* show(row)
    left -= wanted.length
    path = answer.next
  }
})

/** Tries the failed recipients of one notification again. */
export const retry = (
  remote: RemoteService,
  path: string
): Effect.Effect<OutgoingNotification, CommandFailed> =>
  Effect.flatMap(request(remote, { method: "POST", path: `${path}/retry` }), toNotification)

/** Tries all failed recipients since a time again, and counts them. */
export const replay = Effect.fnUntraced(function*(
  remote: RemoteService,
  since: string
): Effect.fn.Return<typeof Retried.Type, CommandFailed> {
  let [notifications, recipients] = [0, 0]
  const first = `${yield* ownMailbox(remote)}/retry?since=${encodeURIComponent(since)}`
  let path: string | undefined = first
  while (path !== undefined) {
    const answer: RemoteAnswer = yield* request(remote, { method: "POST", path })
    const retried = yield* toRetried(answer)
    notifications += retried.notifications
    recipients += retried.recipients
    path = answer.next
  }
  return { notifications, recipients }
})

/** Removes a notification (A8): no attempt starts afterwards. */
export const remove = (remote: RemoteService, path: string): Effect.Effect<void, CommandFailed> =>
  Effect.asVoid(request(remote, { method: "DELETE", path }))
