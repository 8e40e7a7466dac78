/** Which mailbox a path names, and who may read it (protocol §1.2). */
import { Effect } from "effect"
import { mailboxKind, openItems } from "../../../actors/index.ts"
import type { MailboxMessage, MailboxReader, MailboxView } from "../../../actors/mailbox/index.ts"
import { type Address, address, isLogEnd, isRefusal, type LogItem } from "../../../runtime/index.ts"
import { isSlug, secretHash } from "../../auth/credentials/index.ts"
import { authenticate, authenticateCounted, checkBasicPassword, countWrongPassword, countWrongToken,
  endTokenAttempt, mayBeChosen } from "../../auth/index.ts"
import { linkHeader } from "../../formats/index.ts"
import { pageCharsMax } from "../../limits.ts"
import { absoluteUri, type Call, challenges, describeActor, emptyAnswer, formatFault,
  type HandlerAnswer, type HandlerFailure, HttpError, httpError, noStore, type Parameters,
  refusalError, type ResourceHandler, type Service, toHttpError } from "../../pipeline/index.ts"

/** A mailbox as a request's path names it. */
export interface MailboxRef {
  readonly name: string
  readonly to: Address
  /** The mailbox's URI. Whoever knows it may deposit. */
  readonly href: string
  /** The secret part of the path, unchecked. */
  readonly secret: string | undefined
  /** The requested URI with its secret part, with which the links of a listing begin. */
  readonly here: string
  /** `Link` with rel=mailbox and rel=ldp#inbox, which every answer of a mailbox has. */
  readonly link: readonly [string, string]
}

/** The link relation by which an inbox is found (Linked Data Notifications §3.1). */
export const inboxRel = "http://www.w3.org/ns/ldp#inbox"

/** The mailbox of this name. */
export const mailboxRefNamed = (service: Service, name: string, secret?: string): MailboxRef =>
  mailboxRefAt(absoluteUri(service, `/mailboxes/${name}`), name, secret)

/** The mailbox of this name, at its URI. */
export const mailboxRefAt = (href: string, name: string, secret?: string): MailboxRef => {
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

/** The mailbox that the path names; undefined for a text that cannot be a name. */
export const mailboxRefOf = (service: Service, parameters: Parameters): MailboxRef | undefined => {
  const name = parameters.get("mailbox")
  return isSlug(name) ? mailboxRefNamed(service, name, parameters.secret("mailbox")) : undefined
}

/** Reads log items with `n >= from`, ascending, at most `limit`, as readers get them. */
export const readItems = (
  { keyring, system }: Service,
  { to }: MailboxRef,
  from: number,
  limit: number
) => Effect.map(system.read(to, from, limit), (items) => openItems(keyring, to, items))

/** Items that one read has returned. */
export interface BoundedItems {
  readonly items: ReadonlyArray<LogItem>
  /** Whether the log had no more at the time of the read. */
  readonly isEnd: boolean
}

/**
 * {@link readItems} of few more characters than fit on a page: up to the first item that does not.
 * So requests hold a page of a log each, however large its items are.
 */
export const readBoundedItems = (
  { keyring, system }: Service,
  { to }: MailboxRef,
  from: number,
  limit: number,
  charsMax = pageCharsMax + 1
) =>
  Effect.map(system.read(to, from, limit, charsMax), (stored): BoundedItems => ({
    items: openItems(keyring, to, stored),
    // Opened items may have fewer characters than the stored ones.
    isEnd: isLogEnd(stored, limit, charsMax)
  }))

/** Adds the mailbox's Link to a failure, unless there is no mailbox. */
export const withMailboxLink = (failure: HandlerFailure, mailbox: MailboxRef): HandlerFailure => {
  const { headers, problem } = toHttpError(failure)
  if (problem.status === 404 || problem.status === 410) return failure
  return new HttpError({ problem, headers: [...headers, mailbox.link] })
}

/** {@link mailboxRefOf} for the hot path, which keeps it for the paths that are known. */
export const mailboxRefCache = (
  service: Service
): (parameters: Parameters) => MailboxRef | undefined => {
  const cache = new WeakMap<Parameters, MailboxRef>()
  return (parameters) => {
    const cached = cache.get(parameters)
    if (cached !== undefined) return cached
    const mailbox = mailboxRefOf(service, parameters)
    if (mailbox !== undefined) cache.set(parameters, mailbox)
    return mailbox
  }
}

/** A call whose path names a mailbox. */
export interface MailboxCall {
  readonly service: Service
  readonly call: Call
  readonly mailbox: MailboxRef
}

/**
 * A handler of a path at or below a mailbox, written as a generator. It fails with 404 where the
 * path cannot name a mailbox.
 */
export const defineMailboxHandler = (
  run: (mailboxCall: MailboxCall) => Effect.fn.Return<HandlerAnswer, HandlerFailure>
): (service: Service) => ResourceHandler["handle"] => {
  const handle = Effect.fnUntraced(run)
  return (service) => (call) => {
    const mailbox = mailboxRefOf(service, call.parameters)
    return mailbox === undefined
      ? Effect.fail(httpError("not-found"))
      : Effect.mapError(
        formatFault(call) ?? handle({ service, call, mailbox }),
        (failure) => withMailboxLink(failure, mailbox)
      )
  }
}

/** A mailbox as an account sees it, or as anybody does; or the refusal of its actor. */
export const describeMailbox = (service: Service, { to }: MailboxRef, account?: string) => {
  const reader: MailboxReader = account === undefined ? {} : { account }
  const message: MailboxMessage = { _tag: "Describe", reader }
  return describeActor<MailboxView>(service, to, message)
}

/** A reader who may read, and the mailbox at the time of the check. */
interface ProvenReader {
  readonly reader: MailboxReader
  readonly view: MailboxView
}

/** A call of a reader who may read the mailbox. */
export interface ReaderCall extends MailboxCall, ProvenReader {}

/** Checks the right to read; returns the mailbox, or the refusal. */
export const describeForReader = (
  service: Service,
  { to }: MailboxRef,
  reader: MailboxReader
) => {
  const message: MailboxMessage = { _tag: "List", reader }
  return describeActor<MailboxView>(service, to, message)
}

/**
 * What a listing shows of a mailbox beside its log: it changes with the settings, the read marks,
 * the removed notifications and the cached copies.
 */
export const stateBesideLog = (
  { createdAtMs, fetched, read = [], removed, version }: MailboxView
): string =>
  `${createdAtMs} ${version} ${removed} ${fetched} ${
    read.map(({ from, to }) => `${from}-${to}`).join()
  }`

/** Reads by the secret of the URI: a wrong secret is indistinguishable from a missing mailbox. */
const readBySecret = Effect.fnUntraced(function*(
  service: Service,
  mailbox: MailboxRef,
  secret: string
): Effect.fn.Return<ProvenReader, HandlerFailure> {
  const reader: MailboxReader = { secretHash: secretHash(secret) }
  const view = yield* describeForReader(service, mailbox, reader)
  if (!isRefusal(view)) return { reader, view }
  return yield* view.reason === "Unauthenticated" ? httpError("not-found") : refusalError(view)
})

/**
 * The reader: the owner's account, HTTP Basic with the mailbox's password and any user name, or
 * the secret URI. Fails with 401, 403, 404 for a wrong secret URI, 410, and 429 after too many
 * wrong passwords from one address.
 */
export const requireReader = Effect.fnUntraced(function*(
  mailboxCall: MailboxCall
): Effect.fn.Return<ReaderCall, HandlerFailure> {
  const { call, mailbox, service } = mailboxCall
  if (mailbox.secret !== undefined) {
    const { reader, view } = yield* readBySecret(service, mailbox, mailbox.secret)
    return { service, call, mailbox, reader, view }
  }
  const { identity } = call
  const account = yield* authenticate(service, call)
  const password = identity._tag === "Basic" && account === undefined
    ? identity.password
    : undefined
  if (password !== undefined) yield* checkBasicPassword(service, call, password)
  const reader: MailboxReader = {
    ...account === undefined ? {} : { account: account.name },
    ...password === undefined ? {} : { secretHash: secretHash(password) }
  }
  const view = yield* describeForReader(service, mailbox, reader)
  if (!isRefusal(view)) {
    if (password !== undefined) yield* endTokenAttempt(service, call, secretHash(password))
    return { service, call, mailbox, reader, view }
  }
  // No password is right for a mailbox that does not exist.
  const isWrong = view.reason === "Unauthenticated" || view.reason === "NotFound"
  if (isWrong && password !== undefined) yield* countWrongPassword(service, call)
  // Those of a removed one are not known any more; the token of the operator is guessed there, too.
  if (view.reason === "Gone" && password !== undefined && mayBeChosen(call)) {
    yield* countWrongToken(service, call, secretHash(password))
  }
  if (view.reason !== "Unauthenticated") return yield* refusalError(view)
  return yield* httpError(
    "unauthenticated",
    "reading needs the owner's account or the mailbox's password",
    challenges
  )
})

/** An admin, who may remove what is in any mailbox; else {@link requireReader}. */
export const requireRemover = Effect.fnUntraced(function*(
  mailboxCall: MailboxCall
): Effect.fn.Return<ReaderCall, HandlerFailure> {
  const { call, mailbox, service } = mailboxCall
  const account = mailbox.secret === undefined ? yield* authenticate(service, call) : undefined
  if (account?.roles.includes("admin") !== true) return yield* requireReader(mailboxCall)
  const view = yield* describeMailbox(service, mailbox, account.name)
  if (isRefusal(view)) return yield* refusalError(view)
  return { service, call, mailbox, reader: { account: account.name, isAdmin: true }, view }
})

/**
 * 404 for a path that cannot name a mailbox, of a request with a key. It counts wrong credentials,
 * as nothing else does: a right token would show in the `RateLimit` of the next answer.
 */
export const refuseNoMailbox = (
  service: Service,
  call: Call
): Effect.Effect<never, HandlerFailure> =>
  Effect.andThen(authenticateCounted(service, call), Effect.fail(httpError("not-found")))

/**
 * {@link requireReader} of the mailbox that the path names, before an answer is repeated. Beside a
 * secret URI it proves nothing by other credentials, and counts wrong ones.
 */
export const authorizeReader =
  (service: Service) => (call: Call): Effect.Effect<unknown, HandlerFailure> => {
    const mailbox = mailboxRefOf(service, call.parameters)
    if (mailbox === undefined) return refuseNoMailbox(service, call)
    const read = requireReader({ service, call, mailbox })
    return mailbox.secret === undefined
      ? read
      : Effect.andThen(authenticateCounted(service, call), read)
  }

/** Checks the secret part of the path, whatever other credentials the request has. */
export const checkSecret = (
  service: Service,
  mailbox: MailboxRef
): Effect.Effect<void, HandlerFailure> =>
  mailbox.secret === undefined
    ? Effect.void
    : Effect.asVoid(readBySecret(service, mailbox, mailbox.secret))

/**
 * The list of a mailbox, for the browser of a call. Only a browser that is not signed in must ask
 * for the list: it gets the page that deposits otherwise.
 */
export const listHrefOf = ({ call, mailbox }: Pick<MailboxCall, "call" | "mailbox">): string =>
  mailbox.secret !== undefined || call.identity._tag === "Browser"
    ? mailbox.here
    : `${mailbox.here}?read=`

/** Redirects the browser to the mailbox, after a form of its page. */
export const toMailbox = (mailboxCall: Pick<MailboxCall, "call" | "mailbox">): HandlerAnswer =>
  emptyAnswer(303, [
    ["Location", listHrefOf(mailboxCall)],
    ...noStore,
    mailboxCall.mailbox.link
  ])
