/** Which outgoing mailbox or notification a path names, and who may have it (protocol §1.3). */
import { Effect } from "effect"
import type { AccountMessage } from "../../../actors/account/index.ts"
import { accountKind, notificationKind } from "../../../actors/index.ts"
import type { NotificationMessage, NotificationReply,
  NotificationView } from "../../../actors/notification/index.ts"
import { type Address, address, isActorId, isRefusal,
  type Refusal } from "../../../runtime/index.ts"
import { type AuthenticatedAccount, callerOf, requireAccount } from "../../auth/index.ts"
import { absoluteUri, ask, askOrRefusal, type Call, type HandlerFailure, type HeaderList, httpError,
  refusalError, type Service } from "../../pipeline/index.ts"
import { isSlug } from "../../slug.ts"

/** The actor of an outgoing notification. */
export const notificationAt = (id: string): Address => address(notificationKind, id)

export const collectionPath = "/outgoing"

export const mailboxPath = (account: string): string => `${collectionPath}/${account}`

export const notificationPath = (account: string, id: string): string =>
  `${mailboxPath(account)}/${id}`

/** An outgoing mailbox as a request's path names it, and the caller who may read it. */
export interface OutgoingRef {
  readonly account: string
  readonly caller: AuthenticatedAccount
  /** Its path and its URI. */
  readonly path: string
  readonly href: string
}

/** What is read here is for its reader alone. */
export const readerHeaders: HeaderList = [
  ["Vary", "Authorization"],
  ["Cache-Control", "private, no-cache"]
]

const placeNamed = (
  service: Service,
  account: string,
  caller: AuthenticatedAccount
): OutgoingRef => ({
  account,
  caller,
  path: mailboxPath(account),
  href: absoluteUri(service, mailboxPath(account))
})

/**
 * The outgoing mailbox of the path: 401 without an account, 403 for another account's, 404 for
 * what can be no account's. Whether there is such an account is told to admins only.
 */
export const outgoingRefOf = Effect.fnUntraced(function*(
  service: Service,
  call: Call
): Effect.fn.Return<OutgoingRef, HandlerFailure> {
  const caller = yield* requireAccount(service, call)
  const account = call.parameters.get("account")
  if (call.parameters.secret("account") !== undefined) return yield* httpError("not-found")
  if (caller.name !== account && !caller.roles.includes("admin")) {
    return yield* httpError("forbidden", "this is for the account itself or the role admin")
  }
  if (!isSlug(account)) return yield* httpError("not-found")
  return placeNamed(service, account, caller)
})

/** The same of the mailbox itself, which is there when its account is: else 404, or 410. */
export const mailboxOf = Effect.fnUntraced(function*(
  service: Service,
  call: Call
): Effect.fn.Return<OutgoingRef, HandlerFailure> {
  const place = yield* outgoingRefOf(service, call)
  if (place.caller.name === place.account) return place
  const message: AccountMessage = { _tag: "Describe", caller: callerOf(place.caller) }
  yield* ask(service, address(accountKind, place.account), message)
  return place
})

/** The sender's own outgoing mailbox, for A5: nobody sends in another's name, admins neither. */
export const senderOf = Effect.fnUntraced(function*(
  service: Service,
  call: Call
): Effect.fn.Return<OutgoingRef, HandlerFailure> {
  const caller = yield* requireAccount(service, call)
  if (call.parameters.secret("account") !== undefined) return yield* httpError("not-found")
  return caller.name === call.parameters.get("account")
    ? placeNamed(service, caller.name, caller)
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

export const outgoingNamed = (
  service: Service,
  place: OutgoingRef,
  id: string
): OutgoingNotificationRef => ({
  id,
  to: notificationAt(id),
  caller: place.caller,
  path: notificationPath(place.account, id),
  href: absoluteUri(service, notificationPath(place.account, id))
})

/** How it stands, or why that is not told. */
export const describeAs = Effect.fnUntraced(function*(
  service: Service,
  to: Address,
  caller: AuthenticatedAccount
): Effect.fn.Return<NotificationView | Refusal, HandlerFailure> {
  const message: NotificationMessage = { _tag: "Describe", caller: callerOf(caller) }
  const reply = yield* askOrRefusal<NotificationReply>(service, to, message)
  if (isRefusal(reply)) return reply
  if (reply._tag !== "Described") throw new Error(`a notification answered ${reply._tag}`)
  return reply.view
})

/** The same; what is another account's is not here (404). */
export const describe = Effect.fnUntraced(function*(
  service: Service,
  { caller, to }: OutgoingNotificationRef
): Effect.fn.Return<NotificationView, HandlerFailure> {
  const view = yield* describeAs(service, to, caller)
  if (!isRefusal(view)) return view
  return yield* view.reason === "Forbidden" ? httpError("not-found") : refusalError(view)
})

/** The notification that the path names, and how it stands; 404, or 410 when it is removed. */
export const outgoingOf = Effect.fnUntraced(function*(
  service: Service,
  call: Call
): Effect.fn.Return<
  { readonly outgoing: OutgoingNotificationRef; readonly view: NotificationView },
  HandlerFailure
> {
  const place = yield* outgoingRefOf(service, call)
  const id = call.parameters.get("notification")
  if (!isActorId(id) || call.parameters.secret("notification") !== undefined) {
    return yield* httpError("not-found")
  }
  const outgoing = outgoingNamed(service, place, id)
  const view = yield* describe(service, outgoing)
  if (view.account !== place.account) return yield* httpError("not-found")
  return { outgoing, view }
})
