/**
 * POST …/signature-check: what is wrong with a push that a receiver rejects (protocol §1.4). The
 * check is that of the client library; the secret does not leave the service.
 */
import { Clock, Effect } from "effect"
import { readSecretsFormat } from "../../../actors/index.ts"
import type { RegistrationReply } from "../../../actors/registration/index.ts"
import { diagnoseSignature, readHeaderText } from "../../../client/index.ts"
import { childText } from "../../formats/xml/index.ts"
import { checkedBodyCharsMax, headerBlockBytesMax } from "../../limits.ts"
import { ask, expectReply, type HandlerFailure, httpError, noStore, readInput, type RequestInput,
  requireFormat, unprocessable, viewAnswer } from "../../pipeline/index.ts"
import { defineMailboxHandler } from "../mailboxes/index.ts"
import { type AllowedRegistration, registrationAt } from "./registration-access.ts"
import { checkedFields, type CheckedRequest, signatureCheckView } from "./signature-views.ts"

/** The header fields and the body in the input; 422 if they are missing or too long. */
const checkedRequest = (input: RequestInput): Effect.Effect<CheckedRequest, HandlerFailure> => {
  const checked = input._tag === "Form" ? checkedFields(input.fields) : {
    headers: childText(input.root, "headers") ?? "",
    body: childText(input.root, "body") ?? ""
  }
  if (checked.headers === "") {
    return unprocessable("headers is required: the header fields of the push, one on each line")
  }
  if (checked.headers.length > headerBlockBytesMax) {
    return unprocessable(`headers may have ${headerBlockBytesMax} characters at the most`)
  }
  return checked.body.length <= checkedBodyCharsMax ? Effect.succeed(checked) : unprocessable(
    `body may have ${checkedBodyCharsMax} characters at the most: check a larger one with ` +
      "restante registrations check-signature"
  )
}

/**
 * Fails with 409 if the pushes are not signed, and with 403 if the secret is a subscriber's own,
 * which may be weak, and the reader is not that subscriber: nobody guesses it here.
 */
const requireSigned = (
  { account, view }: AllowedRegistration
): Effect.Effect<void, HandlerFailure> => {
  switch (view.form) {
    case "native":
      return Effect.void
    case "webpush":
      return httpError(
        "conflict",
        "there is no signature to check, as a push to a browser is encrypted: send a test to see " +
          "whether it arrives"
      )
    case "websub":
      return view.account !== undefined && view.account === account ? Effect.void : httpError(
        "forbidden",
        "the hub.secret of this subscription is not checked for others than the account that has " +
          "subscribed: check the signature with restante registrations check-signature"
      )
  }
}

/**
 * What is wrong with the signature of these header fields and this body, for those who may change
 * the registration.
 */
export const postSignatureCheck = defineMailboxHandler(function*(mailboxCall) {
  const { call, mailbox, service } = mailboxCall
  const found = yield* registrationAt(mailboxCall)
  const { registration, view } = found
  yield* requireSigned(found)
  const input = yield* readInput(call, "signature-check", { form: true })
  const checked = yield* checkedRequest(input)
  yield* requireFormat(service, readSecretsFormat)
  const reply = yield* ask<RegistrationReply>(service, registration.to, { _tag: "ReadSecrets" })
  const { secrets } = expectReply(reply, "Secrets")
  if (secrets.length === 0) {
    return yield* httpError(
      "conflict",
      "there is no signature to check, as the subscription has no secret that is verified: " +
        "subscribe again with a hub.secret"
    )
  }
  const nowMs = yield* Clock.currentTimeMillis
  const isPasted = input._tag === "Form"
  // Browsers send the line ends of a form as CRLF (WHATWG HTML §4.10.22).
  const body = isPasted ? checked.body.replaceAll("\r\n", "\n") : checked.body
  const push = { headers: readHeaderText(checked.headers), body }
  const scheme = view.form === "native" ? "standard-webhooks" : "websub"
  const diagnosis = yield* Effect.promise(() =>
    diagnoseSignature(push, secrets, { isPasted, nowMs, scheme })
  )
  return viewAnswer(signatureCheckView(mailbox, registration, diagnosis, checked), {
    headers: noStore
  })
})
