/** Which registration a path names, and who may use it (protocol §1.4). */
import { Effect } from "effect"
import { registrationKind } from "../../../actors/index.ts"
import type { MailboxView } from "../../../actors/mailbox/index.ts"
import { decodeAttempt, type RegistrationAttempt, type RegistrationMessage,
  type RegistrationView } from "../../../actors/registration/index.ts"
import { type Address, address } from "../../../runtime/index.ts"
import { documentDigest } from "../../auth/credentials/index.ts"
import { authenticate, authenticateCounted } from "../../auth/index.ts"
import { type Call, describeActor, failRefused, type HandlerFailure, httpError,
  type Service } from "../../pipeline/index.ts"
import { shownAttempt } from "../attempts/index.ts"
import { checkSecret, type MailboxCall, type MailboxRef, mailboxRefNamed, mailboxRefOf,
  type ReaderCall, refuseNoMailbox, requireReader } from "../mailboxes/index.ts"
import type { HubRequest } from "./registration-input.ts"

/** A registration as a request's path names it. */
export interface RegistrationRef {
  /** The part of the actor's id after the `=`. */
  readonly id: string
  readonly to: Address
  /** The registration's path, with the secret part that the request's path has. */
  readonly path: string
  readonly href: string
}

/** The path of a mailbox's registrations, with the secret part of the request's path. */
export const collectionPath = ({ name, secret }: MailboxRef): string =>
  `/mailboxes/${name}${secret === undefined ? "" : `~${secret}`}/registrations`

export const collectionHref = ({ here }: MailboxRef): string => `${here}/registrations`

export const registrationNamed = (mailbox: MailboxRef, id: string): RegistrationRef => ({
  id,
  to: address(registrationKind, `${mailbox.name}=${id}`),
  path: `${collectionPath(mailbox)}/${id}`,
  href: `${collectionHref(mailbox)}/${id}`
})

/** The last attempts of a registration. */
export const attemptsPath = ({ path }: RegistrationRef): string => `${path}/attempts`

export const attemptsHref = ({ href }: RegistrationRef): string => `${href}/attempts`

/** Where signatures of its pushes are checked. */
export const signatureCheckPath = ({ path }: RegistrationRef): string => `${path}/signature-check`

/** The subscription of a request: there is one of each topic and callback (WebSub §5.1). */
export const subscriptionNamed = (
  mailbox: MailboxRef,
  { callback, topicFormat }: Pick<HubRequest, "callback" | "topicFormat">
): RegistrationRef => {
  // A callback has no space: no other topic and callback has this text.
  const text = topicFormat === undefined ? callback : `${topicFormat} ${callback}`
  return registrationNamed(mailbox, documentDigest(Buffer.from(text)))
}

/** The registration of a browser's endpoint, which is renewed when the browser subscribes again. */
export const browserNamed = (mailbox: MailboxRef, endpoint: string): RegistrationRef =>
  registrationNamed(mailbox, documentDigest(Buffer.from(`webpush ${endpoint}`)))

/**
 * An authenticated reader: an account that may read, or the mailbox's password. The secret of a
 * shared URI gives the right to read, but does not identify anybody. Fails with 401, 403, 404 for a
 * wrong secret, 410 and 429.
 */
export const requireSubscriber = Effect.fnUntraced(function*(
  mailboxCall: MailboxCall
): Effect.fn.Return<ReaderCall, HandlerFailure> {
  const { call, mailbox, service } = mailboxCall
  const readerCall = yield* requireReader(mailboxCall)
  if (mailbox.secret === undefined) return readerCall
  const account = yield* authenticate(service, call)
  if (account !== undefined) {
    return { ...readerCall, reader: { ...readerCall.reader, account: account.name } }
  }
  const publicRef = mailboxRefNamed(service, mailbox.name)
  return { ...yield* requireReader({ ...mailboxCall, mailbox: publicRef }), mailbox }
})

/** {@link requireSubscriber} of the mailbox that the path names, before an answer is repeated. */
export const authorizeSubscriber =
  (service: Service) => (call: Call): Effect.Effect<unknown, HandlerFailure> => {
    const mailbox = mailboxRefOf(service, call.parameters)
    if (mailbox === undefined) return refuseNoMailbox(service, call)
    // Where the secret is wrong, nothing else counts a wrong token.
    return checkSecret(service, mailbox).pipe(
      Effect.tapError(() => authenticateCounted(service, call)),
      Effect.andThen(requireSubscriber({ service, call, mailbox }))
    )
  }

/** Which secrets of the mailbox allow a request; nothing for the owner of the mailbox. */
export const allowedBy = (
  { reader, view }: ReaderCall
): { readonly secretsVersion?: number } =>
  reader.account === view.owner ? {} : { secretsVersion: view.secretsVersion ?? 0 }

/** A registration, or the refusal of its actor. */
export const describeRegistration = (service: Service, to: Address) => {
  const message: RegistrationMessage = { _tag: "Describe" }
  return describeActor<RegistrationView>(service, to, message)
}

/**
 * The last attempts of a registration, the newest first; fewer if it ends meanwhile, or if this
 * version cannot read all.
 */
export const readAttempts = (
  { system }: Service,
  { registration: { to }, seesPrivateAnswers, view }: AttemptsOf,
  max = Number.POSITIVE_INFINITY
): Effect.Effect<ReadonlyArray<RegistrationAttempt>, HandlerFailure> => {
  const { count: kept, first } = view.attemptLog ?? { first: 1, count: 0 }
  const count = Math.min(max, kept)
  if (count === 0) return Effect.succeed([])
  return Effect.map(
    system.read(to, first + kept - count, count),
    (items) =>
      items.flatMap(({ value }) => {
        const attempt = decodeAttempt(value)
        return attempt === undefined ? [] : [shownAttempt(attempt, seesPrivateAnswers)]
      }).toReversed()
  )
}

/** A registration that a request names, and its state. */
export interface DescribedRegistration {
  readonly registration: RegistrationRef
  readonly view: RegistrationView
}

/** A registration whose attempts a reader sees. */
export interface AttemptsOf extends DescribedRegistration {
  /**
   * Whether the reader sees what addresses have answered that only the operator's rules allow. The
   * service is no way to look into its network (protocol §5), except for the operator.
   */
  readonly seesPrivateAnswers: boolean
}

/** A registration that a request may use, and which secrets allow that. */
export interface AllowedRegistration extends AttemptsOf {
  readonly allowed: ReturnType<typeof allowedBy>
  /** The account of the request; undefined if it has the mailbox's password only. */
  readonly account: string | undefined
  /** The mailbox as the reader sees it. */
  readonly mailboxView: MailboxView
}

const isAdminAndOwner = Effect.fnUntraced(function*(
  { call, reader, service, view }: ReaderCall
): Effect.fn.Return<boolean, HandlerFailure> {
  if (reader.account === undefined || reader.account !== view.owner) return false
  const account = yield* authenticate(service, call)
  return account?.roles.includes("admin") === true && account.name === view.owner
})

const idPattern = /^[A-Za-z0-9_-]{8,64}$/

/** The registration of the path; 404 for one that never existed, 410 for one that has ended. */
export const registrationAt = Effect.fnUntraced(function*(
  mailboxCall: MailboxCall
): Effect.fn.Return<AllowedRegistration, HandlerFailure> {
  const { call, mailbox, service } = mailboxCall
  const readerCall = yield* requireSubscriber(mailboxCall)
  const allowed = allowedBy(readerCall)
  const id = call.parameters.get("registration")
  if (!idPattern.test(id) || call.parameters.secret("registration") !== undefined) {
    return yield* httpError("not-found")
  }
  const registration = registrationNamed(mailbox, id)
  const view = yield* failRefused(describeRegistration(service, registration.to))
  const seesPrivateAnswers = yield* isAdminAndOwner(readerCall)
  const { reader: { account }, view: mailboxView } = readerCall
  return { registration, view, allowed, account, seesPrivateAnswers, mailboxView }
})
