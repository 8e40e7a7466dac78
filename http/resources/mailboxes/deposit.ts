/**
 * A2: a notification is deposited, as a document of the protocol or as JSON-LD. Without
 * credentials on the hot path, which starts no fiber.
 */
import { Effect } from "effect"
import { decodeItem, type MailboxMessage, type MailboxReply,
  notificationId } from "../../../actors/mailbox/index.ts"
import { isRefusal } from "../../../runtime/index.ts"
import { traceparentOf } from "../../app.ts"
import { derivedIds, documentDigest, type IdSource,
  randomIds } from "../../auth/credentials/index.ts"
import { authenticate, countingWrongCredentials } from "../../auth/index.ts"
import { acceptedBodies, bodyKind, linkedDataType, negotiate,
  standardTypes } from "../../formats/index.ts"
import { failure, type NotificationDocument, type Result,
  storedFragment } from "../../formats/xml/index.ts"
import { inlinedOf, isPublished, readNotification } from "../../notification-body.ts"
import { ask, attachForm, bodyError, type Call, countRequest, type HandlerAnswer,
  type HandlerFailure, type HttpError, httpError, type Parameters, readBody, refusalError,
  type Rendered, renderedAnswer, renderFailure, renderView, type RouteMetrics, type Service,
  submittedFields, unsupportedMediaType } from "../../pipeline/index.ts"
import type { Exchange, HttpRequest } from "../../wire/index.ts"
import { publishInline } from "../content/index.ts"
import { isLinkedData, readLinkedData } from "../interop/index.ts"
import { checkSecret, linked, type MailboxRef, mailboxRefCache } from "./mailbox-access.ts"
import { depositedPage, depositForm } from "./mailbox-views.ts"

type Deposited = Extract<MailboxReply, { readonly _tag: "Deposited" }>

const depositOf = (
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

const locationOf = (place: MailboxRef, n: number, idRandom: string): string =>
  `${place.href}/notifications/${notificationId(n, idRandom)}`

/** What a mailbox takes. */
export const acceptPost = acceptedBodies(true, linkedDataType)

/** The notification of a body, in any of the types that a mailbox takes. */
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

/** 202 (A2), or 201 of Linked Data Notifications (§3.3): it is stored when it is answered. */
const statusOf = ({ headers }: HttpRequest): number =>
  isLinkedData(headers.get("content-type") ?? "") ? 201 : 202

/** The answer of a deposit: a page for a browser, else what the header says. */
const accepted = (
  service: Service,
  place: MailboxRef,
  request: HttpRequest,
  href: string
): Rendered => {
  const accept = request.headers.get("accept")
  const isPage = accept !== undefined && accept.includes("text/html") &&
    negotiate(accept, standardTypes) === "text/html"
  if (!isPage) return { status: statusOf(request), headers: [["Location", href], [...place.link]] }
  return renderView(
    {
      _tag: "View",
      status: statusOf(request),
      view: {
        title: "Deposited",
        tree: () => {
          throw new Error("this page is served as HTML only")
        },
        body: () => depositedPage(place, href),
        links: [{ rel: "mailbox", href: place.href }]
      },
      headers: [["Location", href]]
    },
    { request },
    service.settings.baseUrl
  )
}

/**
 * Publishes inlined content, under ids that follow from the document, so that repeating the
 * deposit publishes it once; under new ones when that content has been removed since.
 */
const publish = Effect.fnUntraced(function*(
  service: Service,
  place: MailboxRef,
  ids: IdSource,
  deposit: { readonly document: NotificationDocument; readonly digest: string },
  account: string | undefined
): Effect.fn.Return<string, HandlerFailure> {
  const { digest, document } = deposit
  const body = yield* inlinedOf(document)
  // Nothing is published for a mailbox that will not take the notification.
  const message: MailboxMessage = { _tag: "Describe", reader: {} }
  const { view } = yield* ask<Extract<MailboxReply, { readonly _tag: "Described" }>>(
    service,
    place.to,
    message
  )
  if (view.settings.deposit === "accounts" && account === undefined) {
    return yield* refusalError({ _tag: "Refused", reason: "Unauthenticated", detail: undefined })
  }
  const derived = derivedIds(service.serviceKey, `inline\n${place.name}\n${digest}`)
  const { href } = yield* publishInline(service, derived, body).pipe(
    Effect.catchTag("Failed", () => publishInline(service, ids, body))
  )
  return storedFragment({ ...document, content: undefined }, { url: href })
})

/** The URI of a stored notification; a repeated one's is in the log. */
const located = Effect.fnUntraced(function*(
  service: Service,
  place: MailboxRef,
  message: MailboxMessage,
  reply: Deposited
): Effect.fn.Return<string, HandlerFailure> {
  let deposited = reply
  // The first copy may be removed between the two looks; then the next deposit is a new one.
  for (let attempt = 0; attempt < 3; attempt++) {
    const { idRandom, n } = deposited
    if (idRandom !== undefined) return locationOf(place, n, idRandom)
    const [item] = yield* service.system.read(place.to, n, 1)
    if (item?.n === n) return locationOf(place, n, decodeItem(item.value).idRandom)
    deposited = yield* ask<Deposited>(service, place.to, message)
  }
  return yield* httpError("overloaded")
})

/** A deposit with all that it may need: a secret URI checked, content published. */
const deposit = Effect.fnUntraced(function*(
  service: Service,
  place: MailboxRef,
  ids: IdSource,
  given: { readonly document: NotificationDocument; readonly digest: string },
  account: string | undefined
): Effect.fn.Return<string, HandlerFailure> {
  yield* checkSecret(service, place)
  const fragment = isPublished(given.document)
    ? yield* publish(service, place, ids, given, account)
    : storedFragment(given.document)
  const message = depositOf(fragment, given.digest, ids, account)
  const reply = yield* ask<Deposited>(service, place.to, message)
  return yield* located(service, place, message, reply)
})

/** A2 through the whole machinery: with credentials, or with an Idempotency-Key. */
export const postMailbox = (service: Service) =>
  Effect.fnUntraced(
    function*(call: Call, place: MailboxRef): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
      const bytes = yield* readBody(call)
      const document = readDeposit(service, bytes, call.request.headers.get("content-type") ?? "")
      if (!document.ok) return yield* document.fault
      const account = yield* authenticate(service, call)
      const given = { document: document.value, digest: documentDigest(bytes) }
      const deposited = deposit(service, place, call.ids, given, account?.name)
      const href = yield* countingWrongCredentials(service, call, deposited)
      return renderedAnswer(accepted(service, place, call.request, href))
    }
  )

/** One deposit on the hot path. */
class Direct {
  private readonly service: Service
  private readonly place: MailboxRef
  private readonly request: HttpRequest
  private readonly exchange: Exchange
  private readonly measures: RouteMetrics
  private readonly startedMs = performance.now()
  private bytes: Uint8Array | undefined

  constructor(
    service: Service,
    place: MailboxRef,
    request: HttpRequest,
    exchange: Exchange,
    measures: RouteMetrics
  ) {
    this.service = service
    this.place = place
    this.request = request
    this.exchange = exchange
    this.measures = measures
  }

  take(bytes: Uint8Array, contentType: string): void {
    const { place, service } = this
    this.bytes = bytes
    const document = readDeposit(service, bytes, contentType)
    if (!document.ok) return this.refuse(document.fault)
    const digest = documentDigest(bytes)
    if (place.secret !== undefined || isPublished(document.value)) {
      const given = { document: document.value, digest }
      return this.run(deposit(service, place, randomIds, given, undefined))
    }
    const message = depositOf(storedFragment(document.value), digest, randomIds, undefined)
    service.system.askByCallback(place.to, message, (failure, reply) => {
      if (failure !== undefined) return this.refuse(failure)
      if (isRefusal(reply)) return this.refuse(refusalError(reply))
      // A mailbox replies to a Deposit with a refusal or with this.
      const deposited = reply as Deposited
      const { idRandom, n } = deposited
      if (idRandom === undefined) return this.run(located(service, place, message, deposited))
      this.accept(locationOf(place, n, idRandom))
    }, traceparentOf(this.request))
  }

  private run(effect: Effect.Effect<string, HandlerFailure>): void {
    Effect.runFork(effect).addObserver((exit) => {
      if (exit._tag === "Success") return this.accept(exit.value)
      const reason = exit.cause.reasons.find((one) => one._tag === "Fail")
      this.refuse(reason?._tag === "Fail" ? reason.error : httpError("internal"))
    })
  }

  private accept(href: string): void {
    this.reply(accepted(this.service, this.place, this.request, href))
  }

  refuse(failure: HandlerFailure): void {
    const { bytes, place, request, service } = this
    const fields = bytes === undefined ? undefined : submittedFields(request, bytes)
    const shown = fields === undefined
      ? failure
      : attachForm(failure, fields, depositForm(place.name))
    this.reply(renderFailure(linked(shown, place), request, service.settings.baseUrl))
  }

  private reply(rendered: Rendered): void {
    this.exchange.reply(rendered)
    countRequest(this.measures, rendered.status, performance.now() - this.startedMs)
  }
}

/** The hot path of A2; see `Handler.direct`. */
export const directDeposit = (service: Service, route: string) => {
  const measures = service.httpMetrics.forRoute("POST", route)
  const placeOf = mailboxRefCache(service)
  return (request: HttpRequest, exchange: Exchange, parameters: Parameters): void => {
    const place = placeOf(parameters)
    if (place === undefined) {
      return exchange.reply(
        renderFailure(httpError("not-found"), request, service.settings.baseUrl)
      )
    }
    const direct = new Direct(service, place, request, exchange, measures)
    const contentType = request.headers.get("content-type") ?? ""
    if (bodyKind(contentType) === undefined) {
      return direct.refuse(unsupportedMediaType(true, acceptPost))
    }
    exchange.bytes(service.documentParser.limits.documentBytesMax, (body) => {
      if (!(body instanceof Uint8Array)) return direct.refuse(bodyError(body))
      try {
        direct.take(body, contentType)
      } catch (defect) {
        // Thrown into the server's callback it would end the process.
        Effect.runFork(Effect.logError("a deposit broke", defect))
        if (!exchange.answered) direct.refuse(httpError("internal"))
      }
    })
  }
}
