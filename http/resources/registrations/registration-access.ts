/** Which registration a path names, and who may have to do with it (protocol §1.4). */
import { Effect } from "effect"
import { registrationKind } from "../../../actors/index.ts"
import type { RegistrationMessage, RegistrationReply,
  RegistrationView } from "../../../actors/registration/index.ts"
import { type Address, address, isRefusal, type Refusal } from "../../../runtime/index.ts"
import { documentDigest } from "../../auth/credentials/index.ts"
import { authenticate } from "../../auth/index.ts"
import { askOrRefusal, type Call, type HandlerFailure, httpError, refusalError,
  type Service } from "../../pipeline/index.ts"
import { type MailboxRef, mailboxRefNamed, type ProvenReader,
  requireReader } from "../mailboxes/index.ts"

/** A registration as a request's path names it. */
export interface RegistrationRef {
  /** What stands after the `=` of its actor's id. */
  readonly id: string
  readonly to: Address
  /** Its path on this origin, with the secret part that the request's path has. */
  readonly path: string
  readonly href: string
}

/** The path of a mailbox's registrations, with the secret part of the request's path. */
export const collectionPath = ({ name, secret }: MailboxRef): string =>
  `/mailboxes/${name}${secret === undefined ? "" : `~${secret}`}/registrations`

export const collectionHref = ({ here }: MailboxRef): string => `${here}/registrations`

export const registrationNamed = (place: MailboxRef, id: string): RegistrationRef => ({
  id,
  to: address(registrationKind, `${place.name}=${id}`),
  path: `${collectionPath(place)}/${id}`,
  href: `${collectionHref(place)}/${id}`
})

/** The subscription of a callback: there is one of each topic and callback (WebSub §5.1). */
export const subscriptionOf = (place: MailboxRef, callback: string): RegistrationRef =>
  registrationNamed(place, documentDigest(Buffer.from(callback)))

/**
 * A reader that has authenticated: an account with reading right, or the mailbox's password. The
 * secret of a shared URI gives an account the right, but says of nobody who it is. Fails with 401,
 * 403, 404 for a wrong secret, 410 and 429.
 */
export const requireSubscriber = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  place: MailboxRef
): Effect.fn.Return<ProvenReader, HandlerFailure> {
  const reading = yield* requireReader(service, call, place)
  if (place.secret === undefined) return reading
  const account = yield* authenticate(service, call)
  if (account !== undefined) {
    return { ...reading, reader: { ...reading.reader, account: account.name } }
  }
  return yield* requireReader(service, call, mailboxRefNamed(service, place.name))
})

/** How it stands, or why that is not told. */
export const describeAt = Effect.fnUntraced(function*(
  service: Service,
  to: Address
): Effect.fn.Return<RegistrationView | Refusal, HandlerFailure> {
  const message: RegistrationMessage = { _tag: "Describe" }
  const reply = yield* askOrRefusal<RegistrationReply>(service, to, message)
  if (isRefusal(reply)) return reply
  if (reply._tag !== "Described") throw new Error(`a registration answered ${reply._tag}`)
  return reply.view
})

/** The same; 404 for what never was, 410 for what has ended. */
const describe = Effect.fnUntraced(function*(
  service: Service,
  { to }: RegistrationRef
): Effect.fn.Return<RegistrationView, HandlerFailure> {
  const view = yield* describeAt(service, to)
  return isRefusal(view) ? yield* refusalError(view) : view
})

/** A registration for a reader with its rights proven, and how it stands. */
export interface DescribedRegistration {
  readonly registration: RegistrationRef
  readonly view: RegistrationView
}

const idPattern = /^[A-Za-z0-9_-]{8,64}$/

/** The registration that the path names. */
export const registrationOf = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  place: MailboxRef
): Effect.fn.Return<DescribedRegistration, HandlerFailure> {
  yield* requireSubscriber(service, call, place)
  const id = call.parameters.get("registration")
  if (!idPattern.test(id) || call.parameters.secret("registration") !== undefined) {
    return yield* httpError("not-found")
  }
  const registration = registrationNamed(place, id)
  return { registration, view: yield* describe(service, registration) }
})
