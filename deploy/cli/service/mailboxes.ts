/** Mailboxes of a running service, over its HTTP interface (protocol §1.2, §1.4). */
import { Effect, Schema } from "effect"
import type { CommandFailed } from "../../command-failure.ts"
import { decodeAs, refusedBy, type RemoteAnswer, type RemoteService, request,
  unreachable } from "./remote.ts"

const pageEntries = 1000

const Text = Schema.optionalKey(Schema.String)

const MailboxNotification = Schema.Struct({
  href: Schema.String,
  received: Schema.String,
  item: Schema.StructWithRest(
    Schema.Struct({ description: Schema.String, url: Schema.String, password: Text }),
    [Schema.Record(Schema.String, Schema.Unknown)]
  )
})

/** A notification as its mailbox tells it. */
export type MailboxNotification = typeof MailboxNotification.Type

const Listing = Schema.Struct({
  notification: Schema.optionalKey(Schema.Array(MailboxNotification))
})

const MailboxRegistration = Schema.Struct({
  href: Schema.String,
  status: Schema.String,
  form: Schema.String,
  callback: Schema.String,
  attempts: Text,
  last: Text,
  next: Text,
  problem: Text,
  secret: Text
})

/** A callback that a mailbox's changes are pushed to, and how it stands. */
export type MailboxRegistration = typeof MailboxRegistration.Type

const Registrations = Schema.Struct({
  registration: Schema.optionalKey(Schema.Array(MailboxRegistration))
})

const Rotated = Schema.StructWithRest(Schema.Struct({ secret: Schema.String }), [
  Schema.Record(Schema.String, Schema.Unknown)
])

const toListing = decodeAs(Listing)

const toNotification = decodeAs(MailboxNotification)

const toRegistration = decodeAs(MailboxRegistration)

const toRegistrations = decodeAs(Registrations)

const toRotated = decodeAs(Rotated)

/** The notifications of a mailbox, the oldest first, page by page. */
export const listMailbox = Effect.fnUntraced(function*(
  remote: RemoteService,
  mailbox: string,
  since: string | undefined,
  limit: number,
  show: (notification: MailboxNotification) => void
): Effect.fn.Return<void, CommandFailed> {
  let left = limit
  const after = since === undefined ? "" : `&since=${encodeURIComponent(since)}`
  let path: string | undefined = `${mailbox}?limit=${Math.min(left, pageEntries)}${after}`
  while (path !== undefined && left > 0) {
    const answer: RemoteAnswer = yield* request(remote, { method: "GET", path })
    const { notification = [] } = yield* toListing(answer)
    for (const one of notification.slice(0, left)) show(one)
    left -= notification.length
    path = answer.next
  }
})

/** One notification. */
export const oneNotification = (
  remote: RemoteService,
  path: string
): Effect.Effect<MailboxNotification, CommandFailed> =>
  Effect.flatMap(request(remote, { method: "GET", path }), toNotification)

/** Registers a callback (A12); the answer has the secret, this only time. */
export const addRegistration = (
  remote: RemoteService,
  mailbox: string,
  callback: string
): Effect.Effect<MailboxRegistration, CommandFailed> =>
  Effect.flatMap(
    request(remote, {
      method: "POST",
      path: `${mailbox}/registrations`,
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ callback })
    }),
    toRegistration
  )

/** All registrations of a mailbox. */
export const listRegistrations = Effect.fnUntraced(function*(
  remote: RemoteService,
  mailbox: string
): Effect.fn.Return<ReadonlyArray<MailboxRegistration>, CommandFailed> {
  const all: Array<MailboxRegistration> = []
  let path: string | undefined = `${mailbox}/registrations`
  while (path !== undefined) {
    const answer: RemoteAnswer = yield* request(remote, { method: "GET", path })
    all.push(...(yield* toRegistrations(answer)).registration ?? [])
    path = answer.next
  }
  return all
})

/** How a registration stands. */
export const oneRegistration = (
  remote: RemoteService,
  path: string
): Effect.Effect<MailboxRegistration, CommandFailed> =>
  Effect.flatMap(request(remote, { method: "GET", path }), toRegistration)

/** Has it verified anew, and a suspension lifted. */
export const liftRegistration = (
  remote: RemoteService,
  path: string
): Effect.Effect<MailboxRegistration, CommandFailed> =>
  Effect.flatMap(request(remote, { method: "PUT", path }), toRegistration)

/** A new secret; pushes bear the signatures of both for a while. */
export const rotateSecret = (
  remote: RemoteService,
  path: string
): Effect.Effect<string, CommandFailed> =>
  request(remote, { method: "POST", path: `${path}/secret` }).pipe(
    Effect.flatMap(toRotated),
    Effect.map(({ secret }) => secret)
  )

/** Ends a registration. */
export const removeRegistration = (
  remote: RemoteService,
  path: string
): Effect.Effect<void, CommandFailed> => Effect.asVoid(request(remote, { method: "DELETE", path }))

/** What a notification points to, as it is at its own service: bytes of any size. */
export const openContent = Effect.fnUntraced(function*(
  url: string,
  password: string | undefined,
  signal: AbortSignal
): Effect.fn.Return<Response, CommandFailed> {
  const target = { baseUrl: new URL(url).origin, authorization: undefined }
  const response = yield* Effect.tryPromise({
    try: () =>
      fetch(url, {
        headers: password === undefined ? {} : { "message-password": password },
        // A password goes nowhere but to whom it is for.
        redirect: password === undefined ? "follow" : "manual",
        signal
      }),
    catch: (cause) => unreachable(target, cause)
  })
  if (response.ok && response.body !== null) return response
  const body = yield* Effect.promise(() => response.text().catch(() => ""))
  return yield* refusedBy(response.status, body)
})
