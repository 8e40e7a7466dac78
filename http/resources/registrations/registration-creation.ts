/** POST of a registration: a callback (native form), or a WebSub request (protocol §1.4). */
import { Effect } from "effect"
import type { MailboxMessage, MailboxReader, MailboxReply } from "../../../actors/mailbox/index.ts"
import type { RegistrationMessage, RegistrationReply,
  RegistrationView } from "../../../actors/registration/index.ts"
import { isRefusal, type Refusal } from "../../../runtime/index.ts"
import type { IdSource } from "../../auth/credentials/index.ts"
import { ask, askOrRefusal, type Call, emptyAnswer, type HandlerAnswer, type HandlerFailure,
  httpError, readInput, refusalError, type Service, viewAnswer } from "../../pipeline/index.ts"
import { type MailboxRef, type ProvenReader, readerHeaders } from "../mailboxes/index.ts"
import { registrationNamed, type RegistrationRef, requireSubscriber,
  subscriptionOf } from "./registration-access.ts"
import { callbackIn, checkCallback, type HubRequest, hubRequestOf,
  isHubRequest } from "./registration-input.ts"
import { registrationView, secretView } from "./registration-views.ts"

type Create = Extract<RegistrationMessage, { readonly _tag: "Create" }>

/** A secret of Standard Webhooks: 256 random bits. */
export const newSecret = (ids: IdSource): string =>
  `whsec_${Buffer.from(ids.secret("webhook"), "base64url").toString("base64")}`

/** Whether a subscription that holds already goes on, though its renewal was refused. */
const goesOn = (form: Create["form"], { reason }: Refusal): boolean =>
  form === "websub" && (reason === "Unauthenticated" || reason === "Forbidden")

/**
 * Makes the registration, then puts it on the mailbox's list: one that is only made finds out by
 * itself that its mailbox does not know it, while one that is only listed could not.
 */
const register = Effect.fnUntraced(function*(
  service: Service,
  { id, to }: RegistrationRef,
  mailbox: MailboxRef,
  reader: MailboxReader,
  create: Create
): Effect.fn.Return<RegistrationView, HandlerFailure> {
  const reply = yield* ask<RegistrationReply>(service, to, create)
  if (reply._tag !== "Created") throw new Error(`a registration answered ${reply._tag}`)
  const listing: MailboxMessage = { _tag: "Register", id, reader }
  const listed = yield* askOrRefusal<MailboxReply>(service, mailbox.to, listing)
  if (!isRefusal(listed)) return reply.view
  const undo: RegistrationMessage = { _tag: "Delete" }
  if (!goesOn(create.form, listed)) {
    yield* Effect.ignore(askOrRefusal<RegistrationReply>(service, to, undo))
  }
  return yield* refusalError(listed)
})

/** What every new registration begins with; pushes begin after what the reader could list. */
const begin = ({ ids }: Call, { reader, view }: ProvenReader) => ({
  _tag: "Create" as const,
  requestId: ids.id("request"),
  challenge: ids.id("challenge"),
  cursor: view.head,
  ...reader.account === undefined ? {} : { account: reader.account }
})

const postNative = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  place: MailboxRef,
  reading: ProvenReader,
  callback: string
): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
  const registration = registrationNamed(place, call.ids.id("registration"))
  const secret = newSecret(call.ids)
  const view = yield* register(service, registration, place, reading.reader, {
    ...begin(call, reading),
    form: "native",
    callback,
    secret,
    leaseSeconds: 0
  })
  return viewAnswer(secretView(place, registration, view, secret), {
    status: 201,
    headers: [["Location", registration.href], ["Cache-Control", "no-store"]]
  })
})

/** 404 for a callback that has no subscription: there is nobody whose intent is to be verified. */
const unsubscribe = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  place: MailboxRef,
  callback: string
): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
  const message: RegistrationMessage = { _tag: "Unsubscribe", challenge: call.ids.id("challenge") }
  const reply = yield* askOrRefusal<RegistrationReply>(
    service,
    subscriptionOf(place, callback).to,
    message
  )
  if (!isRefusal(reply)) return emptyAnswer(202, [[...place.link]])
  return yield* reply.reason === "NotFound" || reply.reason === "Gone"
    ? httpError("not-found", "there is no subscription of this hub.callback")
    : refusalError(reply)
})

const subscribe = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  place: MailboxRef,
  reading: ProvenReader,
  { callback, leaseSeconds, secret }: Extract<HubRequest, { readonly mode: "subscribe" }>
): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
  const registration = subscriptionOf(place, callback)
  const view = yield* register(service, registration, place, reading.reader, {
    ...begin(call, reading),
    form: "websub",
    callback,
    leaseSeconds,
    ...secret === undefined ? {} : { secret }
  })
  return viewAnswer(registrationView(place, registration, view), {
    status: 202,
    headers: [["Location", registration.href], ...readerHeaders(place)]
  })
})

/** A12: 201 and the secret, shown once; or 202 to a WebSub request, which is verified then. */
export const postRegistration = (service: Service) =>
  Effect.fnUntraced(
    function*(call: Call, place: MailboxRef): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
      const reading = yield* requireSubscriber(service, call, place)
      const input = yield* readInput(call, "registration", { form: true })
      if (input._tag === "Form" && isHubRequest(input.fields)) {
        const asked = hubRequestOf(input.fields, place)
        if (!asked.ok) return yield* httpError("unprocessable", asked.fault)
        return asked.value.mode === "subscribe"
          ? yield* subscribe(service, call, place, reading, asked.value)
          : yield* unsubscribe(service, call, place, asked.value.callback)
      }
      const callback = checkCallback("callback", callbackIn(input))
      if (!callback.ok) return yield* httpError("unprocessable", callback.fault)
      return yield* postNative(service, call, place, reading, callback.value)
    }
  )
