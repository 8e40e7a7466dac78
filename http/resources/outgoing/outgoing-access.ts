/** Which outgoing mailbox or notification a path names, and who may use it (protocol §1.3). */
import { Clock, Effect } from "effect"
import { linksUnder, notificationKind, replaysPerHourMax } from "../../../actors/index.ts"
import { aboutOf, describedItem, type NotificationMessage, type NotificationView,
  statusOf } from "../../../actors/notification/index.ts"
import { type Address, address, isRefusal, type Refusal } from "../../../runtime/index.ts"
import { isSlug } from "../../auth/credentials/index.ts"
import { type AuthenticatedAccount, callerOf, requireAccount } from "../../auth/index.ts"
import { shortUri } from "../../formats/html/index.ts"
import { childOf, childrenOf, childText, parseFragment, textOf } from "../../formats/xml/index.ts"
import { absoluteUri, actorIdOf, type Call, describeActor, type HandlerFailure, httpError,
  isPageRequest, overLimit, refusalError, type RequestInput,
  type Service } from "../../pipeline/index.ts"
import { type AccountRef, accountRefOf, describeAccount } from "../accounts/index.ts"

/** The actor of an outgoing notification. */
export const notificationAddress = (id: string): Address => address(notificationKind, id)

export const collectionPath = "/outgoing"

export const mailboxPath = (account: string): string => `${collectionPath}/${account}`

export const notificationPath = (account: string, id: string): string =>
  `${mailboxPath(account)}/${id}`

/** An outgoing mailbox as a request's path names it, and the caller who may read it. */
export interface OutgoingRef {
  readonly account: string
  readonly caller: AuthenticatedAccount
  readonly path: string
  /** The URI of the outgoing mailbox. */
  readonly href: string
}

const refOf = (service: Service, { caller, name }: Omit<AccountRef, "to">): OutgoingRef => ({
  account: name,
  caller,
  path: mailboxPath(name),
  href: absoluteUri(service, mailboxPath(name))
})

/**
 * The account of the path. An outgoing mailbox has no secret URI: 404 for one, for every caller.
 */
const accountOf = (service: Service, call: Call): ReturnType<typeof accountRefOf> =>
  call.parameters.secret("account") === undefined
    ? accountRefOf(service, call)
    : Effect.andThen(requireAccount(service, call), Effect.fail(httpError("not-found")))

/** The outgoing mailbox of the path; fails with 401, 403 and 404 as its account does. */
export const outgoingRefOf = (
  service: Service,
  call: Call
): Effect.Effect<OutgoingRef, HandlerFailure> =>
  Effect.map(accountOf(service, call), (account) => refOf(service, account))

/** The outgoing mailbox of an account that exists; else 404, or 410. */
export const existingOutgoingRef = Effect.fnUntraced(function*(
  service: Service,
  call: Call
): Effect.fn.Return<OutgoingRef, HandlerFailure> {
  const account = yield* accountOf(service, call)
  if (account.caller.name !== account.name) yield* describeAccount(service, account)
  return refOf(service, account)
})

/** The sender's own outgoing mailbox, for A5: not even an admin sends in another's name. */
export const senderRefOf = Effect.fnUntraced(function*(
  service: Service,
  call: Call
): Effect.fn.Return<OutgoingRef, HandlerFailure> {
  const caller = yield* requireAccount(service, call)
  if (call.parameters.secret("account") !== undefined) return yield* httpError("not-found")
  return caller.name === call.parameters.get("account")
    ? refOf(service, { name: caller.name, caller })
    : yield* httpError("forbidden", "only the account itself sends from its outgoing mailbox")
})

/** An outgoing notification as a request's path names it. */
export interface OutgoingNotificationRef {
  readonly id: string
  readonly to: Address
  readonly caller: AuthenticatedAccount
  readonly path: string
  readonly href: string
}

/** The attempts at the recipients of a notification. */
export const attemptsPath = (path: string): string => `${path}/attempts`

export const attemptsHref = ({ href }: Pick<OutgoingNotificationRef, "href">): string =>
  `${href}/attempts`

/** The id of the entry with the last attempt at a recipient, on the page of the attempts. */
export const recipientAnchor = (at: number): string => `recipient-${at + 1}`

export const outgoingRefNamed = (
  service: Service,
  ref: OutgoingRef,
  id: string
): OutgoingNotificationRef => ({
  id,
  to: notificationAddress(id),
  caller: ref.caller,
  path: notificationPath(ref.account, id),
  href: absoluteUri(service, notificationPath(ref.account, id))
})

/** What a status may have beside the recipients. */
export interface StatusParts {
  /** The numbers of the log items that are attempts. */
  readonly attempts?: boolean
}

/**
 * The status of a notification with all recipients, or the refusal of its actor. The recipients are
 * read in parts. The version is that of the first part: a later change makes it outdated.
 */
export const describeAs = Effect.fnUntraced(function*(
  service: Service,
  to: Address,
  caller: AuthenticatedAccount,
  parts: StatusParts = {}
): Effect.fn.Return<NotificationView | Refusal, HandlerFailure> {
  const describe = (from: number) => {
    const message: NotificationMessage = {
      _tag: "Describe",
      caller: callerOf(caller),
      ...from > 0 ? { from } : parts
    }
    return describeActor<NotificationView>(service, to, message)
  }
  const view = yield* describe(0)
  if (isRefusal(view) || view.recipients.length >= view.count) return view
  const recipients = [...view.recipients]
  const held: Record<number, number> = { ...view.held }
  while (recipients.length < view.count) {
    const from = recipients.length
    const next = yield* describe(from)
    if (isRefusal(next)) return next
    recipients.push(...next.recipients)
    for (const [at, sinceMs] of Object.entries(next.held ?? {})) held[from + Number(at)] = sinceMs
  }
  return { ...view, recipients, status: statusOf(recipients), held }
})

/**
 * The status of a notification with its first recipient only, or the refusal of its actor: a
 * listing of many notifications shows no others.
 */
export const summarizeAs = (
  service: Service,
  to: Address,
  caller: AuthenticatedAccount
): Effect.Effect<NotificationView | Refusal, HandlerFailure> => {
  const message: NotificationMessage = { _tag: "Describe", caller: callerOf(caller), max: 1 }
  return describeActor<NotificationView>(service, to, message)
}

/** A short name of a recipient: its mailbox, if that is at this service. */
export const recipientName = ({ settings }: Service, to: string): string =>
  linksUnder(settings.baseUrl).mailboxOf(to)?.name ?? shortUri(to)

/** The recipient that a person has typed: the URI of a mailbox of this service may be its name. */
export const typedRecipient = (service: Service, text: string): string =>
  isSlug(text) ? absoluteUri(service, `/mailboxes/${text}`) : text

/** The status of a notification; 404 for one of another account, 410 for a removed one. */
export const describeOutgoing = Effect.fnUntraced(function*(
  service: Service,
  { caller, to }: OutgoingNotificationRef,
  parts: StatusParts = {}
): Effect.fn.Return<NotificationView, HandlerFailure> {
  const view = yield* describeAs(service, to, caller, parts)
  if (!isRefusal(view)) return view
  return yield* view.reason === "Forbidden" ? httpError("not-found") : refusalError(view)
})

/**
 * The status with what the notification is about, read from the log if its actor does not know: a
 * node of an earlier version has queued or replaced it. A listing has no time for that.
 */
export const withAbout = Effect.fnUntraced(function*(
  { system }: Service,
  { to }: OutgoingNotificationRef,
  view: NotificationView
): Effect.fn.Return<NotificationView, HandlerFailure> {
  if (view.about !== undefined) return view
  const n = describedItem(view)
  const [item] = yield* system.read(to, n, 1)
  // It was removed meanwhile.
  if (item?.n !== n) return view
  const root = childOf({ children: parseFragment(item.value) }, "notification")
  const described = root === undefined ? undefined : childOf(root, "item")
  const text = described === undefined ? undefined : childText(described, "description")
  return { ...view, ...aboutOf(text) }
})

/** {@link withAbout} for a page; no other answer shows it. */
export const describedForPage = (
  service: Service,
  { request }: Call,
  outgoing: OutgoingNotificationRef,
  view: NotificationView
): Effect.Effect<NotificationView, HandlerFailure> =>
  isPageRequest(request) ? withAbout(service, outgoing, view) : Effect.succeed(view)

/** The notification of the path, and its status; 404, or 410 when it is removed. */
export const outgoingNotificationOf = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  parts: StatusParts = {}
): Effect.fn.Return<
  { readonly outgoing: OutgoingNotificationRef; readonly view: NotificationView },
  HandlerFailure
> {
  const ref = yield* outgoingRefOf(service, call)
  const id = yield* actorIdOf(call, "notification")
  const outgoing = outgoingRefNamed(service, ref, id)
  const view = yield* describeOutgoing(service, outgoing, parts)
  if (view.account !== ref.account) return yield* httpError("not-found")
  return { outgoing, view }
})

/** The recipients that a document or form names; a form may have names of mailboxes. */
export const namedIn = (service: Service, input: RequestInput): ReadonlyArray<string> =>
  (input._tag === "Form"
    ? input.fields.all("to").flatMap((field) => field.split(/[\r\n]+/))
      .map((line) => typedRecipient(service, line.trim()))
    : childrenOf(input.root, "to").map((one) => textOf(one).trim()))
    .filter((text) => text !== "")

/** 429: a replay asks little of the sender, and much of the recipients. */
export const tooManyReplays = Effect.fnUntraced(function*(
  untilMs: number
): Effect.fn.Return<never, HandlerFailure> {
  return yield* overLimit({
    detail: `a notification is sent again ${replaysPerHourMax} times in an hour to recipients ` +
      "that are named: send it again later",
    policy: "outgoing-replays",
    waitMs: untilMs - (yield* Clock.currentTimeMillis)
  })
})

/** Which recipients of a notification are retried, whatever they have got; else the failed ones. */
type RetriedRecipients = Pick<
  Extract<NotificationMessage, { readonly _tag: "Retry" }>,
  "recipients" | "to"
>

/** The message that retries a notification. Only a keyed request is remembered there. */
export const retryMessage = (
  { ids, key }: Call,
  { caller }: Pick<OutgoingRef, "caller">,
  retried: RetriedRecipients
): NotificationMessage => ({
  _tag: "Retry",
  caller: callerOf(caller),
  ...retried,
  ...key === undefined ? {} : { requestId: ids.id("request") }
})
