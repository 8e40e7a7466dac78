/**
 * A2: deposits a notification: a document of the protocol, JSON-LD, text or a webhook. A request
 * without credentials takes the hot path, which starts no fiber.
 */
import { Effect } from "effect"
import type { EarlierDeposit } from "../../../../actors/idempotency/index.ts"
import { blockedText, sealPasswordFor } from "../../../../actors/index.ts"
import { decodeItem, type MailboxMessage, type MailboxReply, type MailboxView,
  notificationId } from "../../../../actors/mailbox/index.ts"
import { isRefusal } from "../../../../runtime/index.ts"
import { derivedIds, documentDigest, type IdSource, randomIds,
  secretHash } from "../../../auth/credentials/index.ts"
import { authenticate, isBasicPassword } from "../../../auth/index.ts"
import { acceptedBodies, bodyKind, linkedDataType, mediaTypeOf, negotiate,
  standardTypes } from "../../../formats/index.ts"
import { failure, type NotificationDocument, type Result } from "../../../formats/xml/index.ts"
import { indeterminateSearchItemsMax, keyedSearchItemsMax } from "../../../limits.ts"
import { fragmentToStore, inlinedContent, needsPublication, publishedFragment,
  readNotification } from "../../../notification-body.ts"
import { ask, askOrRefusal, attachForm, bodyError, type Call, type CallKey, countRequest,
  describeActor, emptyAnswer, failRefused, type HandlerFailure, type HttpError, httpError,
  type Parameters, type PlainAnswer, readBody, refusalError, renderFailure, renderView,
  type RouteMetrics, type Service, submittedFields, unsupportedMediaType,
  type ViewAnswer } from "../../../pipeline/index.ts"
import { beginRequestSpan, type RequestSpan, traceparentOf,
  withTraceContext } from "../../../trace-context.ts"
import { type Exchange, type HttpReply, type HttpRequest, KeptFields,
  type ReplyHeaders } from "../../../wire/index.ts"
import { type InlinePublication, linkedContent, noteLink, publishInline,
  removeLink } from "../../content/index.ts"
import { isLinkedData, readLinkedData } from "../../interop/index.ts"
import { findDeposit, type ReadLog } from "./deposit-search.ts"
import { checkSecret, defineMailboxHandler, describeForReader, describeMailbox, type MailboxCall,
  type MailboxRef, mailboxRefCache, mailboxRefOf, refuseNoMailbox,
  withMailboxLink } from "../mailbox-access.ts"
import { depositedView, depositForm } from "../mailbox-views.ts"
import { isPlainText, plainTextType, readPlainText } from "./plain-text.ts"
import { isPayloadForm } from "./webhook-body.ts"
import { faultOfUnread, takeWebhook, type UnreadBody } from "./webhook.ts"

type Deposited = Extract<MailboxReply, { readonly _tag: "Deposited" }>

/** A client without an account. */
interface Stranger {
  readonly network: string
  readonly isLocal: boolean
}

/** Who deposits: an account, or an anonymous client in a network. */
type Depositor = { readonly account: string } | Stranger

const strangerOf = ({ clients }: Service, request: HttpRequest): Stranger => {
  const { isLocal, network } = clients.clientOf(request)
  return { network, isLocal }
}

const depositorOf = (
  service: Service,
  request: HttpRequest,
  account: string | undefined
): Depositor => account === undefined ? strangerOf(service, request) : { account }

const senderOf = (depositor: Depositor) =>
  "account" in depositor ? depositor : { network: depositor.network }

/** A notification to deposit, with the random part of its id. */
interface NewNotification {
  readonly fragment: string
  readonly digest: string
  readonly idRandom: string
}

const depositMessage = (
  notification: NewNotification,
  depositor: Depositor,
  key?: CallKey
): MailboxMessage => ({
  _tag: "Deposit",
  ...notification,
  ...senderOf(depositor),
  ...key === undefined ? {} : { key: key.hash }
})

const notificationHref = (mailbox: MailboxRef, n: number, idRandom: string): string =>
  `${mailbox.href}/notifications/${notificationId(n, idRandom)}`

/** The body types that a mailbox accepts. */
export const acceptPost = acceptedBodies(true, plainTextType, linkedDataType)

const isAccepted = (contentType: string): boolean =>
  bodyKind(contentType) !== undefined || isLinkedData(contentType) ||
  mediaTypeOf(contentType) === plainTextType

/** The refusal of a deposit that the service blocks; undefined for any other. */
export const serviceBlock = (
  { blocks, nowMs }: Service,
  depositor: Depositor,
  fragment: string
): HttpError | undefined => {
  if (blocks.isEmpty) return undefined
  const found = blocks.find({ ...depositor, fragment }, nowMs())
  return found === undefined
    ? undefined
    : httpError("blocked", blockedText("the operator of this service", found))
}

/** The notification of a body, in any of the accepted types. */
const readDeposit = (
  { documentParser }: Service,
  { headers }: HttpRequest,
  bytes: Uint8Array,
  contentType: string
): Result<NotificationDocument, HttpError> => {
  if (isLinkedData(contentType)) return readLinkedData(documentParser, bytes, contentType)
  if (isPlainText(bytes, contentType)) {
    return readPlainText(documentParser, bytes, contentType, headers)
  }
  return isAccepted(contentType)
    ? readNotification(documentParser, bytes, contentType)
    : failure(unsupportedMediaType("POST", acceptPost))
}

/**
 * By what a repetition of a document is recognized: its bytes, and for text the header fields that
 * describe it, which are extra elements.
 */
const digestOf = (bytes: Uint8Array, { content, extra }: NotificationDocument) =>
  content?.encoding === "base64" && extra !== ""
    ? documentDigest(Buffer.concat([bytes, Buffer.from(`\n${extra}`)]))
    : documentDigest(bytes)

/** 202 (A2); 201 for JSON-LD (Linked Data Notifications §3.3), since it is stored by then. */
const statusOf = ({ headers }: HttpRequest): number =>
  isLinkedData(headers.get("content-type") ?? "") ? 201 : 202

/** Whether the answer to a deposit is a page, for a browser; else it has no body. */
const wantsPage = ({ headers }: HttpRequest): boolean => {
  const accept = headers.get("accept")
  return accept !== undefined && accept.includes("text/html") &&
    negotiate(accept, standardTypes) === "text/html"
}

/** The answer to a deposit: a page for a browser, else the header fields alone. */
const depositAnswer = (
  service: Service,
  mailbox: MailboxRef,
  request: HttpRequest,
  href: string
): PlainAnswer => {
  const status = statusOf(request)
  if (!wantsPage(request)) return emptyAnswer(status, [["Location", href], mailbox.link])
  const view = depositedView(mailbox, href)
  const answer: ViewAnswer = { _tag: "View", status, view, headers: [["Location", href]] }
  return renderView(answer, { request }, service.settings.baseUrl)
}

/** The document of a deposit, and by what a repetition is recognized. */
interface DepositBody {
  readonly document: NotificationDocument
  readonly digest: string
  /** A webhook with the right signature. */
  readonly isSigned?: boolean
}

/** One attempt of a deposit; an earlier one may have stored the notification with this id. */
interface DepositAttempt {
  readonly idRandom: string
  readonly isRepeated: boolean
}

/** Notes at the linked content that the notification is about to be deposited. */
const noteDeposit = Effect.fnUntraced(function*(
  service: Service,
  mailbox: MailboxRef,
  contentId: string,
  { idRandom, isRepeated }: DepositAttempt
): Effect.fn.Return<void, HandlerFailure> {
  const { head } = yield* failRefused(describeMailbox(service, mailbox))
  const link = { mailbox: mailbox.name, idRandom, ...isRepeated ? {} : { afterN: head } }
  yield* noteLink(service, contentId, link)
})

/** Content that came in a deposit, as it was published. */
interface InlinedDeposit extends Pick<InlinePublication, "href" | "id"> {
  readonly lengthBytes: number
}

/**
 * Publishes inlined content under ids derived from the document, so that a repeated deposit
 * publishes it once; under new ids when that content has been removed since.
 */
const publishContent = Effect.fnUntraced(function*(
  service: Service,
  mailbox: MailboxRef,
  ids: IdSource,
  { digest, document, isSigned = false }: DepositBody,
  { idRandom, isRepeated }: DepositAttempt,
  depositor: Depositor
): Effect.fn.Return<InlinedDeposit, HandlerFailure> {
  const inlined = yield* inlinedContent(document)
  // A mailbox that will refuse the notification must not cause a publication.
  const blocked = serviceBlock(service, depositor, "")
  if (blocked !== undefined) return yield* blocked
  const message: MailboxMessage = { _tag: "Describe", reader: {}, depositor }
  const described = describeActor<MailboxView>(service, mailbox.to, message)
  const { head, owner, settings } = yield* failRefused(described)
  if (settings.deposit === "accounts" && !("account" in depositor) && !isSigned) {
    return yield* refusalError({ _tag: "Refused", reason: "Unauthenticated", detail: undefined })
  }
  const sender = {
    account: "account" in depositor ? depositor.account : undefined,
    network: "account" in depositor || depositor.isLocal ? undefined : depositor.network
  }
  const inlinedIn = {
    mailbox: mailbox.name,
    idRandom,
    ...isRepeated ? {} : { afterN: head }
  }
  const content = { ...inlined, owner, sender, inlinedIn }
  const derived = derivedIds(service.serviceKey, `inline\n${mailbox.name}\n${digest}`)
  const first = yield* publishInline(service, derived, content)
  const { href, id } = first.isRemoved ? yield* publishInline(service, ids, content) : first
  return { href, id, lengthBytes: content.bytes.length }
})

/** The URI of a stored notification; that of a repeated deposit is read from the log. */
const findDeposited = Effect.fnUntraced(function*(
  service: Service,
  mailbox: MailboxRef,
  message: MailboxMessage,
  reply: Deposited
): Effect.fn.Return<string, HandlerFailure> {
  let deposited = reply
  let missing: number | undefined
  // The first copy may be removed between the reply and the read; then the deposit is repeated. If
  // the mailbox names the same item again, it has forgotten that this is removed.
  for (let attempt = 0; attempt < 3; attempt++) {
    const { idRandom, n } = deposited
    if (idRandom !== undefined) return notificationHref(mailbox, n, idRandom)
    const [item] = yield* service.system.read(mailbox.to, n, 1)
    if (item?.n === n) return notificationHref(mailbox, n, decodeItem(item.value).idRandom)
    const again = n === missing ? { ...message, missing } : message
    missing = n
    deposited = yield* ask<Deposited>(service, mailbox.to, again)
  }
  return yield* httpError("overloaded")
})

/**
 * The URI of the deposit of an earlier attempt with the same key. If its number is unknown, the log
 * is searched for it. If the log does not have it: 410 where the deposit was stored for certain, as
 * it was removed then; undefined where the outcome of the attempt is indeterminate.
 */
const findByKey = Effect.fnUntraced(function*(
  service: Service,
  mailbox: MailboxRef,
  ids: IdSource,
  { firstAtMs, isCertain, n }: EarlierDeposit
): Effect.fn.Return<string | undefined, HandlerFailure> {
  const idRandom = ids.id("notification")
  if (n !== undefined) return notificationHref(mailbox, n, idRandom)
  const { head } = yield* failRefused(describeMailbox(service, mailbox))
  const read: ReadLog = (from, limit) => service.system.read(mailbox.to, from, limit)
  const itemsMax = isCertain ? keyedSearchItemsMax : indeterminateSearchItemsMax
  const search = findDeposit(read, { head, idRandom, itemsMax, sinceMs: firstAtMs })
  const found = isCertain
    ? yield* search
    : yield* Effect.catchTag(search, "HttpError", () => Effect.succeed(undefined))
  if (found !== undefined) return notificationHref(mailbox, found, idRandom)
  if (!isCertain) return undefined
  return yield* httpError("gone", "the notification was stored, and has been removed since")
})

/** A deposit that first checks a secret URI, and publishes inlined content or notes a link. */
const deposit = Effect.fnUntraced(function*(
  service: Service,
  mailbox: MailboxRef,
  ids: IdSource,
  body: DepositBody,
  depositor: Depositor,
  key?: CallKey
): Effect.fn.Return<string, HandlerFailure> {
  yield* checkSecret(service, mailbox)
  const earlier = key?.earlier === undefined
    ? undefined
    : yield* findByKey(service, mailbox, ids, key.earlier)
  if (earlier !== undefined) return earlier
  const idRandom = ids.id("notification")
  const attempt = { idRandom, isRepeated: key?.earlier !== undefined }
  let inlined: InlinedDeposit | undefined
  const publish = Effect.map(
    publishContent(service, mailbox, ids, body, attempt, depositor),
    (published) => {
      inlined = published
      return published.href
    }
  )
  const { digest, document, isSigned = false } = body
  const seal = sealPasswordFor(service.keyring, mailbox.to)
  const fragment = yield* publishedFragment(service.documentParser, document, seal, publish)
  // Where an earlier attempt may have stored the notification, a check of the links finds out.
  const unlink = inlined === undefined || attempt.isRepeated
    ? Effect.void
    : removeLink(service, inlined.id, { mailbox: mailbox.name, idRandom })
  const blocked = serviceBlock(service, depositor, fragment)
  if (blocked !== undefined) {
    yield* unlink
    return yield* blocked
  }
  const linkedId = inlined === undefined ? linkedContent(service, document.url) : undefined
  if (linkedId !== undefined) yield* noteDeposit(service, mailbox, linkedId, attempt)
  const message = {
    ...depositMessage({ fragment, digest, idRandom }, depositor, key),
    ...inlined === undefined ? {} : { isInlined: true, inlinedBytes: inlined.lengthBytes },
    ...isSigned ? { isSigned } : {}
  }
  const reply = yield* askOrRefusal<Deposited>(service, mailbox.to, message)
  if (isRefusal(reply)) {
    yield* unlink
    return yield* refusalError(reply)
  }
  const href = yield* findDeposited(service, mailbox, message, reply)
  // An earlier notification is stored, and this one is not.
  if (!href.endsWith(`-${idRandom}`)) yield* unlink
  return href
})

/**
 * The name of the depositing account; undefined for anonymous clients. A wrong name and token by
 * Basic deposits anonymously, and counts as a guess even if the deposit is accepted: a webhook
 * without a signature, or the limits that the deposit counts for, would tell a right token. The
 * mailbox's password, which some clients send with every request, is no guess.
 */
const depositingAccount = Effect.fnUntraced(function*(
  { call, mailbox, service }: MailboxCall
): Effect.fn.Return<string | undefined, HandlerFailure> {
  const account = yield* authenticate(service, call)
  const { identity } = call
  if (account !== undefined || identity._tag !== "Basic") return account?.name
  const hash = secretHash(identity.password)
  const readable = describeForReader(service, mailbox, { secretHash: hash })
  yield* isBasicPassword(service, call, hash, Effect.map(readable, (reply) => !isRefusal(reply)))
  return undefined
})

/** {@link depositingAccount} of a request with a key. */
export const authorizeDeposit =
  (service: Service) => (call: Call): Effect.Effect<unknown, HandlerFailure> => {
    const mailbox = mailboxRefOf(service, call.parameters)
    return mailbox === undefined
      ? refuseNoMailbox(service, call)
      : depositingAccount({ call, mailbox, service })
  }

/** A2 through the whole pipeline: with credentials, or with an Idempotency-Key. */
export const postMailbox = defineMailboxHandler(function*({ call, mailbox, service }) {
  const bytes = yield* readBody(call)
  const { request } = call
  const contentType = request.headers.get("content-type") ?? ""
  const read = readDeposit(service, request, bytes, contentType)
  const account = depositingAccount({ call, mailbox, service })
  const taken = read.ok && !isPayloadForm(bytes, contentType)
    ? { document: read.value, isSigned: false, account: yield* account }
    : yield* takeWebhook(
      service,
      mailbox,
      request,
      { bytes, contentType, otherwise: read },
      account
    )
  const { document, isSigned } = taken
  const { ids, key } = call
  // A key recognizes its own deposit only; without one the same document is recognized.
  const digest = key === undefined ? digestOf(bytes, document) : ids.id("deposit")
  const body = { document, digest, isSigned }
  const depositor = depositorOf(service, call.request, taken.account)
  const href = yield* deposit(service, mailbox, ids, body, depositor, key)
  return depositAnswer(service, mailbox, call.request, href)
})

/** One deposit on the hot path. */
interface DirectDeposit {
  readonly service: Service
  readonly mailbox: MailboxRef
  readonly request: HttpRequest
  readonly exchange: Exchange
  readonly metrics: RouteMetrics
  readonly startedMs: number
  /** Undefined unless the request is traced. */
  readonly span: RequestSpan | undefined
}

const replyToDeposit = (
  { exchange, metrics, span, startedMs }: DirectDeposit,
  answer: HttpReply
): void => {
  exchange.reply(answer)
  countRequest(metrics, answer.status, performance.now() - startedMs)
  if (span !== undefined) span.end(answer.status)
}

/** The fields of every accepted deposit in a mailbox, beside its Location. */
const keptFields = new WeakMap<MailboxRef, KeptFields>()

const keptFieldsOf = (mailbox: MailboxRef): KeptFields => {
  const known = keptFields.get(mailbox)
  if (known !== undefined) return known
  const kept = new KeptFields([mailbox.link])
  keptFields.set(mailbox, kept)
  return kept
}

const acceptDeposit = (direct: DirectDeposit, href: string): void => {
  const { mailbox, request, service } = direct
  if (wantsPage(request)) {
    return replyToDeposit(direct, depositAnswer(service, mailbox, request, href))
  }
  const headers: ReplyHeaders = [["Location", href]]
  replyToDeposit(direct, { status: statusOf(request), headers, kept: keptFieldsOf(mailbox) })
}

/** `bytes` is the body, undefined if it was not read. */
const refuseDeposit = (
  direct: DirectDeposit,
  failure: HandlerFailure,
  bytes?: Uint8Array
): void => {
  const { mailbox, request, service: { settings } } = direct
  const fields = bytes === undefined ? undefined : submittedFields(request, bytes)
  const failed = fields === undefined
    ? failure
    : attachForm(failure, fields, depositForm(mailbox.name))
  replyToDeposit(direct, renderFailure(withMailboxLink(failed, mailbox), request, settings.baseUrl))
}

/** Continues with an effect, for the deposits that need more than one message. */
const forkDeposit = (
  direct: DirectDeposit,
  bytes: Uint8Array | undefined,
  effect: Effect.Effect<string, HandlerFailure>
): void => {
  const { request, span } = direct
  Effect.runFork(withTraceContext(request, effect, span)).addObserver((exit) => {
    if (exit._tag === "Success") return acceptDeposit(direct, exit.value)
    const reason = exit.cause.reasons.find((one) => one._tag === "Fail")
    refuseDeposit(direct, reason?._tag === "Fail" ? reason.error : httpError("internal"), bytes)
  })
}

/** A deposit of a body that may be a webhook. */
const depositWebhook = Effect.fnUntraced(function*(
  { mailbox, request, service }: DirectDeposit,
  unread: UnreadBody
): Effect.fn.Return<string, HandlerFailure> {
  const { document, isSigned } = yield* takeWebhook(
    service,
    mailbox,
    request,
    unread,
    Effect.succeed(undefined)
  )
  const body = { document, digest: digestOf(unread.bytes, document), isSigned }
  return yield* deposit(service, mailbox, randomIds, body, strangerOf(service, request))
})

const depositDirectly = (direct: DirectDeposit, bytes: Uint8Array, contentType: string): void => {
  const { mailbox, request, service } = direct
  const document = readDeposit(service, request, bytes, contentType)
  if (!document.ok || isPayloadForm(bytes, contentType)) {
    const unread = { bytes, contentType, otherwise: document }
    return forkDeposit(direct, bytes, depositWebhook(direct, unread))
  }
  const digest = digestOf(bytes, document.value)
  const depositor = strangerOf(service, request)
  const { url } = document.value
  if (
    mailbox.secret !== undefined || needsPublication(document.value) ||
    linkedContent(service, url) !== undefined
  ) {
    const body = { document: document.value, digest }
    return forkDeposit(direct, bytes, deposit(service, mailbox, randomIds, body, depositor))
  }
  const fragment = fragmentToStore(
    service.documentParser,
    document.value,
    sealPasswordFor(service.keyring, mailbox.to)
  )
  if (!fragment.ok) return refuseDeposit(direct, fragment.fault, bytes)
  const blocked = serviceBlock(service, depositor, fragment.value)
  if (blocked !== undefined) return refuseDeposit(direct, blocked, bytes)
  const idRandom = randomIds.id("notification")
  // Without a spread, which would cost a hundredth of the deposit.
  const message: MailboxMessage = {
    _tag: "Deposit",
    fragment: fragment.value,
    digest,
    idRandom,
    network: depositor.network
  }
  service.system.askByCallback(mailbox.to, message, (failure, reply) => {
    if (failure !== undefined) return refuseDeposit(direct, failure, bytes)
    if (isRefusal(reply)) return refuseDeposit(direct, refusalError(reply), bytes)
    // A mailbox replies to a Deposit with a refusal or with this.
    const deposited = reply as Deposited
    const { idRandom, n } = deposited
    if (idRandom === undefined) {
      return forkDeposit(direct, bytes, findDeposited(service, mailbox, message, deposited))
    }
    acceptDeposit(direct, notificationHref(mailbox, n, idRandom))
  }, direct.span === undefined ? traceparentOf(request) : direct.span.traceparent)
}

/** Refuses a body that could not be read; one of a type that is not accepted is 415 first. */
const refuseUnread = (direct: DirectDeposit, contentType: string, fault: HttpError): void => {
  if (isAccepted(contentType)) return refuseDeposit(direct, fault)
  const { mailbox, service } = direct
  const unsupported = unsupportedMediaType("POST", acceptPost)
  forkDeposit(direct, undefined, faultOfUnread(service, mailbox, fault, unsupported))
}

/** The hot path of A2; see `Handler.direct`. */
export const directDeposit = (service: Service) => {
  const route = "/mailboxes/{mailbox}"
  const metrics = service.httpMetrics.forRoute("POST", route)
  const mailboxOf = mailboxRefCache(service)
  return (request: HttpRequest, exchange: Exchange, parameters: Parameters): void => {
    const mailbox = mailboxOf(parameters)
    const span = beginRequestSpan(service, request, route, parameters)
    if (mailbox === undefined) {
      const failed = renderFailure(httpError("not-found"), request, service.settings.baseUrl)
      span?.end(failed.status)
      return exchange.reply(failed)
    }
    const startedMs = performance.now()
    const direct: DirectDeposit = {
      service,
      mailbox,
      request,
      exchange,
      metrics,
      startedMs,
      span
    }
    const contentType = request.headers.get("content-type") ?? ""
    const networkOf = () => service.clients.clientOf(request).network
    exchange.bytes(service.documentParser.limits.documentBytesMax, networkOf, (body) => {
      if (!(body instanceof Uint8Array)) return refuseUnread(direct, contentType, bodyError(body))
      service.rateLimiter?.countDocument(request, body.length)
      try {
        depositDirectly(direct, body, contentType)
      } catch (defect) {
        // An exception in the server's callback would end the process.
        Effect.runFork(Effect.logError("a deposit failed with a defect", defect))
        if (!exchange.answered) refuseDeposit(direct, httpError("internal"), body)
      }
    })
  }
}
