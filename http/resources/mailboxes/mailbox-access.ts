/** Which mailbox a path names, and who may read it (protocol §1.2). */
import { Effect } from "effect"
import { mailboxKind } from "../../../actors/index.ts"
import type { MailboxMessage, MailboxReader, MailboxReply,
  MailboxView } from "../../../actors/mailbox/index.ts"
import { type Address, address, isRefusal } from "../../../runtime/index.ts"
import { secretHash } from "../../auth/credentials/index.ts"
import { authenticate, checkPasswordThrottle, countWrongPassword } from "../../auth/index.ts"
import { linkHeader } from "../../formats/index.ts"
import { absoluteUri, askOrRefusal, type Call, challenges, type Handled, type HandlerFailure,
  HttpError, httpError, type Parameters, refusalError, type Service,
  toProblem } from "../../pipeline/index.ts"
import { isSlug } from "../../slug.ts"

/** A mailbox as a request's path names it. */
export interface MailboxRef {
  readonly name: string
  readonly to: Address
  /** Its URI: whoever has it may deposit. */
  readonly href: string
  /** The secret part of the path, not yet checked. */
  readonly secret: string | undefined
  /** The URI as it was requested, secret and all: what a listing's links begin with. */
  readonly here: string
  /** `Link` with rel=mailbox and rel=ldp#inbox, which every answer of a mailbox has. */
  readonly link: readonly [string, string]
}

/** The link relation by which an inbox is found (Linked Data Notifications §3.1). */
export const inboxRel = "http://www.w3.org/ns/ldp#inbox"

/** The mailbox of this name. */
export const mailboxRefNamed = (service: Service, name: string, secret?: string): MailboxRef => {
  const href = absoluteUri(service, `/mailboxes/${name}`)
  const value = linkHeader([{ rel: "mailbox", href }, { rel: inboxRel, href }]) ?? ""
  return {
    name,
    to: address(mailboxKind, name),
    href,
    secret,
    here: secret === undefined ? href : `${href}~${secret}`,
    link: ["Link", value]
  }
}

/** The mailbox that the path names; undefined for what can be no name. */
export const mailboxRefOf = (service: Service, parameters: Parameters): MailboxRef | undefined => {
  const name = parameters.get("mailbox")
  return isSlug(name) ? mailboxRefNamed(service, name, parameters.secret("mailbox")) : undefined
}

/** The failure with the mailbox's Link, unless there is no mailbox. */
export const linked = (failure: HandlerFailure, place: MailboxRef): HandlerFailure => {
  const { headers, problem } = toProblem(failure)
  if (problem.status === 404 || problem.status === 410) return failure
  return new HttpError({ problem, headers: [...headers, place.link] })
}

/** So many places are remembered; then all are forgotten. */
const placesMax = 1_000

/** {@link mailboxRefOf} for the hot path: remembers the mailboxes that were named lately. */
export const mailboxRefCache = (
  service: Service
): (parameters: Parameters) => MailboxRef | undefined => {
  const places = new Map<string, MailboxRef>()
  return (parameters) => {
    if (parameters.secret("mailbox") !== undefined) return mailboxRefOf(service, parameters)
    const known = places.get(parameters.get("mailbox"))
    if (known !== undefined) return known
    const place = mailboxRefOf(service, parameters)
    if (place === undefined) return
    if (places.size >= placesMax) places.clear()
    places.set(place.name, place)
    return place
  }
}

/** A handler of a path below a mailbox. */
export const withMailbox =
  (service: Service, handle: (call: Call, place: MailboxRef) => Handled) =>
  (
    call: Call
  ): Handled => {
    const place = mailboxRefOf(service, call.parameters)
    return place === undefined
      ? Effect.fail(httpError("not-found"))
      : Effect.mapError(handle(call, place), (failure) => linked(failure, place))
  }

/** A reader with its rights proven, and the mailbox as it was then. */
export interface ProvenReader {
  readonly reader: MailboxReader
  readonly view: MailboxView
}

type Listed = Extract<MailboxReply, { readonly _tag: "Listed" }>

/** Asks for the right to read, and the mailbox's head; a refusal stays a reply. */
export const listAs = (service: Service, place: MailboxRef, reader: MailboxReader) => {
  const message: MailboxMessage = { _tag: "List", reader }
  return askOrRefusal<Listed>(service, place.to, message)
}

/** Reading by the secret part of the URI: a wrong one is told from no mailbox by nothing. */
const readBySecret = Effect.fnUntraced(function*(
  service: Service,
  place: MailboxRef,
  secret: string
): Effect.fn.Return<ProvenReader, HandlerFailure> {
  const reader: MailboxReader = { secretHash: secretHash(secret) }
  const reply = yield* listAs(service, place, reader)
  if (!isRefusal(reply)) return { reader, view: reply.view }
  return yield* reply.reason === "Unauthenticated" ? httpError("not-found") : refusalError(reply)
})

/**
 * The reader: the owner's account, HTTP Basic with the mailbox's password and any user name, or
 * the secret URI. Fails with 401, 403, 404 for a wrong secret URI, 410, and 429 after too many
 * wrong passwords from one address.
 */
export const requireReader = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  place: MailboxRef
): Effect.fn.Return<ProvenReader, HandlerFailure> {
  if (place.secret !== undefined) return yield* readBySecret(service, place, place.secret)
  const { identity } = call
  const account = yield* authenticate(service, call)
  const password = identity._tag === "Basic" && account === undefined
    ? identity.password
    : undefined
  if (password !== undefined) yield* checkPasswordThrottle(service, call)
  const reader: MailboxReader = {
    ...account === undefined ? {} : { account: account.name },
    ...password === undefined ? {} : { secretHash: secretHash(password) }
  }
  const reply = yield* listAs(service, place, reader)
  if (!isRefusal(reply)) return { reader, view: reply.view }
  if (reply.reason !== "Unauthenticated") return yield* refusalError(reply)
  if (password !== undefined) yield* countWrongPassword(service, call)
  return yield* httpError(
    "unauthenticated",
    "reading needs the owner's account or the mailbox's password",
    challenges
  )
})

/** Where a path has a secret part, it must be right, whatever else the request shows. */
export const checkSecret = (
  service: Service,
  place: MailboxRef
): Effect.Effect<void, HandlerFailure> =>
  place.secret === undefined
    ? Effect.void
    : Effect.asVoid(readBySecret(service, place, place.secret))
