/** One registration: how it stands, lifting it, its secret, its end; and the list of them. */
import { Effect } from "effect"
import type { MailboxMessage, MailboxReply } from "../../../actors/mailbox/index.ts"
import type { RegistrationMessage, RegistrationReply,
  RegistrationView } from "../../../actors/registration/index.ts"
import { isRefusal } from "../../../runtime/index.ts"
import { askedAtOnceMax } from "../../limits.ts"
import { absoluteUri, ask, type Call, emptyAnswer, entityTags, type HandlerAnswer,
  type HandlerFailure, httpError, isConditional, isPageWanted, preconditionsHold, readInput,
  type RequestInput, type Service, viewAnswer } from "../../pipeline/index.ts"
import { type MailboxRef, readerHeaders } from "../mailboxes/index.ts"
import { collectionPath, describeAt, type DescribedRegistration, registrationNamed, registrationOf,
  type RegistrationRef, requireSubscriber } from "./registration-access.ts"
import { newSecret } from "./registration-creation.ts"
import { callbackIn, checkCallback } from "./registration-input.ts"
import { collectionView, registrationView, secretView } from "./registration-views.ts"

/** The mailbox's registrations; one that has just ended is passed over. */
export const getRegistrations = (service: Service) =>
  Effect.fnUntraced(
    function*(call: Call, place: MailboxRef): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
      const { reader } = yield* requireSubscriber(service, call, place)
      const message: MailboxMessage = { _tag: "Registrations", reader }
      const reply = yield* ask<MailboxReply>(service, place.to, message)
      if (reply._tag !== "Registrations") throw new Error(`a mailbox answered ${reply._tag}`)
      const all = yield* Effect.forEach(reply.ids, (id) => {
        const registration = registrationNamed(place, id)
        return Effect.map(
          describeAt(service, registration.to),
          (view): ReadonlyArray<DescribedRegistration> =>
            isRefusal(view) ? [] : [{ registration, view }]
        )
      }, { concurrency: askedAtOnceMax })
      return viewAnswer(collectionView(place, all.flat()), { headers: readerHeaders(place) })
    }
  )

const answerWith = (
  place: MailboxRef,
  { registration, view }: DescribedRegistration
): HandlerAnswer =>
  viewAnswer(registrationView(place, registration, view), { headers: readerHeaders(place) })

export const getRegistration = (service: Service) =>
  Effect.fnUntraced(
    function*(call: Call, place: MailboxRef): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
      return answerWith(place, yield* registrationOf(service, call, place))
    }
  )

const seeOther = (service: Service, path: string): HandlerAnswer =>
  emptyAnswer(303, [["Location", absoluteUri(service, path)], ["Cache-Control", "no-store"]])

/** Another callback than it has; 422 for a bad one, or in the WebSub form. */
const changedCallback = (
  input: RequestInput,
  { view }: DescribedRegistration
): Effect.Effect<{ readonly callback?: string }, HandlerFailure> => {
  const text = callbackIn(input)
  if (text === undefined || text === view.callback) return Effect.succeed({})
  const callback = checkCallback("callback", text)
  if (!callback.ok) return Effect.fail(httpError("unprocessable", callback.fault))
  return view.form === "native"
    ? Effect.succeed({ callback: callback.value })
    : Effect.fail(
      httpError("unprocessable", "a WebSub subscription is of its callback: subscribe anew")
    )
}

/** The version that the request's conditions hold for, which the actor compares again; or 412. */
const unchanged = (
  call: Call,
  place: MailboxRef,
  { registration, view }: DescribedRegistration
): Effect.Effect<{ readonly ifVersion?: number }, HandlerFailure> => {
  if (!isConditional(call)) return Effect.succeed({})
  return preconditionsHold(call, entityTags(call, registrationView(place, registration, view)))
    ? Effect.succeed({ ifVersion: view.version })
    : Effect.fail(httpError("precondition-failed", "the registration is not as the condition says"))
}

/** Has the registration changed, and gives how it stands then. */
const changed = Effect.fnUntraced(function*(
  service: Service,
  { to }: RegistrationRef,
  message: RegistrationMessage
): Effect.fn.Return<RegistrationView, HandlerFailure> {
  const reply = yield* ask<RegistrationReply>(service, to, message)
  if (reply._tag !== "Described") throw new Error(`a registration answered ${reply._tag}`)
  return reply.view
})

const lift = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  place: MailboxRef,
  found: DescribedRegistration,
  input: RequestInput
): Effect.fn.Return<DescribedRegistration, HandlerFailure> {
  const { registration } = found
  const message: RegistrationMessage = {
    _tag: "Update",
    challenge: call.ids.id("challenge"),
    ...yield* changedCallback(input, found),
    ...yield* unchanged(call, place, found)
  }
  return { registration, view: yield* changed(service, registration, message) }
})

/** PUT: lifts a suspension, or verifies anew; the document may name another callback. */
export const putRegistration = (service: Service) =>
  Effect.fnUntraced(
    function*(call: Call, place: MailboxRef): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
      const found = yield* registrationOf(service, call, place)
      const input = yield* readInput(call, "registration", { mayBeEmpty: true })
      return answerWith(place, yield* lift(service, call, place, found, input))
    }
  )

const end = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  place: MailboxRef,
  found: DescribedRegistration
): Effect.fn.Return<void, HandlerFailure> {
  const message: RegistrationMessage = { _tag: "Delete", ...yield* unchanged(call, place, found) }
  yield* ask<RegistrationReply>(service, found.registration.to, message)
})

/** DELETE: nothing is pushed afterwards; its actor also takes it off the mailbox's list. */
export const deleteRegistration = (service: Service) =>
  Effect.fnUntraced(
    function*(call: Call, place: MailboxRef): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
      yield* end(service, call, place, yield* registrationOf(service, call, place))
      return emptyAnswer(204, [[...place.link]])
    }
  )

/** PUT and DELETE from the forms of its page: HTML has neither. */
export const formOfRegistration = (service: Service) =>
  Effect.fnUntraced(
    function*(call: Call, place: MailboxRef): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
      const found = yield* registrationOf(service, call, place)
      const input = yield* readInput(call, "registration", { form: true })
      const method = input._tag === "Form" ? input.fields.get("method") : undefined
      if (method === "put") {
        const lifted = yield* lift(service, call, place, found, input)
        return isPageWanted(call)
          ? seeOther(service, found.registration.path)
          : answerWith(place, lifted)
      }
      if (method !== "delete") {
        return yield* httpError("unprocessable", "a form's method must be put or delete")
      }
      yield* end(service, call, place, found)
      return isPageWanted(call)
        ? seeOther(service, collectionPath(place))
        : emptyAnswer(204, [[...place.link]])
    }
  )

/** POST to …/secret: a new secret, shown once; the older one signs too for a while. */
export const postSecret = (service: Service) =>
  Effect.fnUntraced(
    function*(call: Call, place: MailboxRef): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
      const { registration, view } = yield* registrationOf(service, call, place)
      if (view.form === "websub") {
        return yield* httpError(
          "conflict",
          "hub.secret is the subscriber's: subscribe with another"
        )
      }
      const secret = newSecret(call.ids)
      const message: RegistrationMessage = { _tag: "Rotate", secret }
      const rotated = yield* changed(service, registration, message)
      return viewAnswer(secretView(place, registration, rotated, secret), {
        headers: [["Cache-Control", "no-store"]]
      })
    }
  )
