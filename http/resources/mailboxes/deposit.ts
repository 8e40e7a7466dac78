/**
 * A2: deposits a notification, which is a document of the protocol or JSON-LD. A request without
 * credentials takes the hot path, which starts no fiber.
 */
import { Effect } from "effect"
import { decodeItem, type MailboxMessage, type MailboxReply,
  notificationId } from "../../../actors/mailbox/index.ts"
import { isRefusal } from "../../../runtime/index.ts"
import { derivedIds, documentDigest, type IdSource,
  randomIds } from "../../auth/credentials/index.ts"
import { authenticate, countingWrongCredentials } from "../../auth/index.ts"
import { acceptedBodies, bodyKind, linkedDataType, negotiate,
  standardTypes } from "../../formats/index.ts"
import { failure, type NotificationDocument, type Result,
  storedFragment } from "../../formats/xml/index.ts"
import { inlinedContent, needsPublication, readNotification } from "../../notification-body.ts"
import { ask, attachForm, bodyError, countRequest, emptyAnswer, expectReply, type HandlerFailure,
  type HttpError, httpError, type Parameters, type PlainAnswer, readBody, refusalError,
  renderFailure, renderView, type RouteMetrics, type Service, submittedFields, unsupportedMediaType,
  type ViewAnswer } from "../../pipeline/index.ts"
import { traceparentOf } from "../../trace-context.ts"
import type { Exchange, HttpRequest } from "../../wire/index.ts"
import { publishInline } from "../content/index.ts"
import { isLinkedData, readLinkedData } from "../interop/index.ts"
import { checkSecret, defineMailboxHandler, type MailboxRef, mailboxRefCache,
  withMailboxLink } from "./mailbox-access.ts"
import { depositedView, depositForm } from "./mailbox-views.ts"

type Deposited = Extract<MailboxReply, { readonly _tag: "Deposited" }>

const depositMessage = (
  fragment: string,
  digest: string,
  ids: IdSource,
  account: string | undefined
): MailboxMessage => ({
  _tag: "Deposit",
  fragment,
  digest,
  idRandom: ids.id("notification"),
  ...account === undefined ? {} : { account }
})

const notificationHref = (mailbox: MailboxRef, n: number, idRandom: string): string =>
  `${mailbox.href}/notifications/${notificationId(n, idRandom)}`

/** The body types that a mailbox accepts. */
export const acceptPost = acceptedBodies(true, linkedDataType)

/** The notification of a body, in any of the accepted types. */
const readDeposit = (
  { documentParser }: Service,
  bytes: Uint8Array,
  contentType: string
): Result<NotificationDocument, HttpError> => {
  if (isLinkedData(contentType)) return readLinkedData(documentParser, bytes, contentType)
  return bodyKind(contentType) === undefined
    ? failure(unsupportedMediaType(true, acceptPost))
    : readNotification(documentParser, bytes, contentType)
}

/** 202 (A2); 201 for JSON-LD (Linked Data Notifications §3.3), since it is stored by then. */
const statusOf = ({ headers }: HttpRequest): number =>
  isLinkedData(headers.get("content-type") ?? "") ? 201 : 202

/** The answer to a deposit: a page for a browser, else the header fields alone. */
const depositAnswer = (
  service: Service,
  mailbox: MailboxRef,
  request: HttpRequest,
  href: string
): PlainAnswer => {
  const status = statusOf(request)
  const accept = request.headers.get("accept")
  const isPage = accept !== undefined && accept.includes("text/html") &&
    negotiate(accept, standardTypes) === "text/html"
  if (!isPage) return emptyAnswer(status, [["Location", href], mailbox.link])
  const view = depositedView(mailbox, href)
  const answer: ViewAnswer = { _tag: "View", status, view, headers: [["Location", href]] }
  return renderView(answer, { request }, service.settings.baseUrl)
}

/**
 * Publishes inlined content under ids derived from the document, so that a repeated deposit
 * publishes it once; under new ids when that content has been removed since.
 */
const publishContent = Effect.fnUntraced(function*(
  service: Service,
  mailbox: MailboxRef,
  ids: IdSource,
  deposit: { readonly document: NotificationDocument; readonly digest: string },
  account: string | undefined
): Effect.fn.Return<string, HandlerFailure> {
  const { digest, document } = deposit
  const content = yield* inlinedContent(document)
  // A mailbox that will refuse the notification must not cause a publication.
  const message: MailboxMessage = { _tag: "Describe", reader: {} }
  const reply = yield* ask<MailboxReply>(service, mailbox.to, message)
  const { view } = expectReply(reply, "Described")
  if (view.settings.deposit === "accounts" && account === undefined) {
    return yield* refusalError({ _tag: "Refused", reason: "Unauthenticated", detail: undefined })
  }
  const derived = derivedIds(service.serviceKey, `inline\n${mailbox.name}\n${digest}`)
  const first = yield* publishInline(service, derived, content)
  const { href } = first.isRemoved ? yield* publishInline(service, ids, content) : first
  return storedFragment({ ...document, content: undefined }, { url: href })
})

/** The URI of a stored notification; that of a repeated deposit is read from the log. */
const findDeposited = Effect.fnUntraced(function*(
  service: Service,
  mailbox: MailboxRef,
  message: MailboxMessage,
  reply: Deposited
): Effect.fn.Return<string, HandlerFailure> {
  let deposited = reply
  // The first copy may be removed between the reply and the read; then the deposit is repeated.
  for (let attempt = 0; attempt < 3; attempt++) {
    const { idRandom, n } = deposited
    if (idRandom !== undefined) return notificationHref(mailbox, n, idRandom)
    const [item] = yield* service.system.read(mailbox.to, n, 1)
    if (item?.n === n) return notificationHref(mailbox, n, decodeItem(item.value).idRandom)
    deposited = yield* ask<Deposited>(service, mailbox.to, message)
  }
  return yield* httpError("overloaded")
})

/** A deposit that first checks a secret URI and publishes inlined content. */
const deposit = Effect.fnUntraced(function*(
  service: Service,
  mailbox: MailboxRef,
  ids: IdSource,
  body: { readonly document: NotificationDocument; readonly digest: string },
  account: string | undefined
): Effect.fn.Return<string, HandlerFailure> {
  yield* checkSecret(service, mailbox)
  const fragment = needsPublication(body.document)
    ? yield* publishContent(service, mailbox, ids, body, account)
    : storedFragment(body.document)
  const message = depositMessage(fragment, body.digest, ids, account)
  const reply = yield* ask<Deposited>(service, mailbox.to, message)
  return yield* findDeposited(service, mailbox, message, reply)
})

/** A2 through the whole pipeline: with credentials, or with an Idempotency-Key. */
export const postMailbox = defineMailboxHandler(function*(service, call, mailbox) {
  const bytes = yield* readBody(call)
  const document = readDeposit(service, bytes, call.request.headers.get("content-type") ?? "")
  if (!document.ok) return yield* document.fault
  const account = yield* authenticate(service, call)
  const body = { document: document.value, digest: documentDigest(bytes) }
  const depositing = deposit(service, mailbox, call.ids, body, account?.name)
  const href = yield* countingWrongCredentials(service, call, depositing)
  return depositAnswer(service, mailbox, call.request, href)
})

/** One deposit on the hot path. */
class DirectDeposit {
  private readonly service: Service
  private readonly mailbox: MailboxRef
  private readonly request: HttpRequest
  private readonly exchange: Exchange
  private readonly metrics: RouteMetrics
  private readonly startedMs = performance.now()
  private bytes: Uint8Array | undefined

  constructor(
    service: Service,
    mailbox: MailboxRef,
    request: HttpRequest,
    exchange: Exchange,
    metrics: RouteMetrics
  ) {
    this.service = service
    this.mailbox = mailbox
    this.request = request
    this.exchange = exchange
    this.metrics = metrics
  }

  run(bytes: Uint8Array, contentType: string): void {
    const { mailbox, service } = this
    this.bytes = bytes
    const document = readDeposit(service, bytes, contentType)
    if (!document.ok) return this.refuse(document.fault)
    const digest = documentDigest(bytes)
    if (mailbox.secret !== undefined || needsPublication(document.value)) {
      const body = { document: document.value, digest }
      return this.fork(deposit(service, mailbox, randomIds, body, undefined))
    }
    const message = depositMessage(storedFragment(document.value), digest, randomIds, undefined)
    service.system.askByCallback(mailbox.to, message, (failure, reply) => {
      if (failure !== undefined) return this.refuse(failure)
      if (isRefusal(reply)) return this.refuse(refusalError(reply))
      // A mailbox replies to a Deposit with a refusal or with this.
      const deposited = reply as Deposited
      const { idRandom, n } = deposited
      if (idRandom === undefined) {
        return this.fork(findDeposited(service, mailbox, message, deposited))
      }
      this.accept(notificationHref(mailbox, n, idRandom))
    }, traceparentOf(this.request))
  }

  private fork(effect: Effect.Effect<string, HandlerFailure>): void {
    Effect.runFork(effect).addObserver((exit) => {
      if (exit._tag === "Success") return this.accept(exit.value)
      const reason = exit.cause.reasons.find((one) => one._tag === "Fail")
      this.refuse(reason?._tag === "Fail" ? reason.error : httpError("internal"))
    })
  }

  private accept(href: string): void {
    this.reply(depositAnswer(this.service, this.mailbox, this.request, href))
  }

  refuse(failure: HandlerFailure): void {
    const { bytes, mailbox, request, service } = this
    const fields = bytes === undefined ? undefined : submittedFields(request, bytes)
    const failed = fields === undefined
      ? failure
      : attachForm(failure, fields, depositForm(mailbox.name))
    this.reply(renderFailure(withMailboxLink(failed, mailbox), request, service.settings.baseUrl))
  }

  private reply(answer: PlainAnswer): void {
    this.exchange.reply(answer)
    countRequest(this.metrics, answer.status, performance.now() - this.startedMs)
  }
}

/** The hot path of A2; see `Handler.direct`. */
export const directDeposit = (service: Service) => {
  const metrics = service.httpMetrics.forRoute("POST", "/mailboxes/{mailbox}")
  const mailboxOf = mailboxRefCache(service)
  return (request: HttpRequest, exchange: Exchange, parameters: Parameters): void => {
    const mailbox = mailboxOf(parameters)
    if (mailbox === undefined) {
      return exchange.reply(
        renderFailure(httpError("not-found"), request, service.settings.baseUrl)
      )
    }
    const direct = new DirectDeposit(service, mailbox, request, exchange, metrics)
    const contentType = request.headers.get("content-type") ?? ""
    if (bodyKind(contentType) === undefined) {
      return direct.refuse(unsupportedMediaType(true, acceptPost))
    }
    exchange.bytes(service.documentParser.limits.documentBytesMax, (body) => {
      if (!(body instanceof Uint8Array)) return direct.refuse(bodyError(body))
      try {
        direct.run(body, contentType)
      } catch (defect) {
        // An exception in the server's callback would end the process.
        Effect.runFork(Effect.logError("a deposit failed with a defect", defect))
        if (!exchange.answered) direct.refuse(httpError("internal"))
      }
    })
  }
}
