/** Who may read and edit a content resource, and the throttle on wrong message passwords. */
import { Effect } from "effect"
import type { ContentAccess, ContentMessage, ContentReply,
  ContentView } from "../../../actors/content/index.ts"
import { contentKind } from "../../../actors/index.ts"
import { type Address, address, isActorId, isRefusal } from "../../../runtime/index.ts"
import { secretHash } from "../../auth/credentials/index.ts"
import { authenticate, authenticateCounted, checkPasswordThrottle,
  countWrongPassword } from "../../auth/index.ts"
import { passwordCharsMax, passwordCharsMin } from "../../limits.ts"
import { ask, askOrRefusal, type Call, type HandlerFailure, httpError, refusalError,
  type Service } from "../../pipeline/index.ts"

/** The actor of the path's content; 404 for what can be no id. */
export const contentAt = (call: Call): Effect.Effect<Address, HandlerFailure> => {
  const id = call.parameters.get("content")
  return isActorId(id)
    ? Effect.succeed(address(contentKind, id))
    : Effect.fail(httpError("not-found"))
}

const messageChallenge: ReadonlyArray<[string, string]> = [
  ["WWW-Authenticate", "Basic realm=\"message\""]
]

const givenPassword = ({ identity, request }: Call): string | undefined => {
  const password = request.headers.get("message-password") ??
    (identity._tag === "Basic" ? identity.password : undefined)
  return password === undefined || password.length > passwordCharsMax ? undefined : password
}

/** What the request shows for itself: the edit URI's secret, a password, an account. */
export const accessOf = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  whose: typeof authenticate = authenticate
): Effect.fn.Return<ContentAccess, HandlerFailure> {
  const secret = call.parameters.secret("content")
  const password = givenPassword(call)
  const account = yield* whose(service, call)
  return {
    ...secret === undefined ? {} : { editHash: secretHash(secret) },
    ...password === undefined ? {} : { passwordHash: secretHash(password) },
    ...account === undefined ? {} : { account: account.name }
  }
})

/**
 * Asks the content's actor for what only a reader may have. A wrong password is 401 with its own
 * challenge and counts against the client's address; after too many 429 (protocol §1.1).
 */
export const askAsReader = Effect.fnUntraced(function*<R>(
  service: Service,
  call: Call,
  to: Address,
  message: (access: ContentAccess) => ContentMessage
): Effect.fn.Return<R, HandlerFailure> {
  const triesPassword = givenPassword(call) !== undefined
  if (triesPassword) yield* checkPasswordThrottle(service, call)
  const access = yield* accessOf(service, call)
  const reply = yield* askOrRefusal<R>(service, to, message(access))
  if (!isRefusal(reply)) return reply
  if (reply.reason !== "Unauthenticated") return yield* refusalError(reply)
  if (triesPassword) yield* countWrongPassword(service, call)
  return yield* httpError("unauthenticated", "the message password is needed", messageChallenge)
})

/** The content as its reader may see it. */
export const describe = (
  service: Service,
  call: Call,
  to: Address
): Effect.Effect<ContentView, HandlerFailure> =>
  Effect.map(
    askAsReader<Extract<ContentReply, { _tag: "Described" }>>(
      service,
      call,
      to,
      (access) => ({ _tag: "Describe", access })
    ),
    (reply) => reply.view
  )

/** Lets through who may edit: the edit URI, or the owner's account. */
export const requireEditor = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  to: Address
): Effect.fn.Return<ContentAccess, HandlerFailure> {
  const access = yield* accessOf(service, call, authenticateCounted)
  yield* ask<ContentReply>(
    service,
    to,
    { _tag: "Authorize", access } satisfies ContentMessage as ContentMessage
  )
  return access
})

/** What the publisher asks for: no password, one of its own, or one that the service makes. */
export const chosenPassword = (call: Call): Effect.Effect<string | undefined, HandlerFailure> => {
  const field = call.request.headers.get("message-password")
  if (field === undefined) return Effect.succeed(undefined)
  if (field === "generate") return Effect.succeed(call.ids.secret("message-password"))
  const isFit = field.length >= passwordCharsMin && field.length <= passwordCharsMax &&
    /^[\x21-\x7e]+$/.test(field)
  return isFit
    ? Effect.succeed(field)
    : Effect.fail(httpError(
      "unprocessable",
      `Message-Password must have ${passwordCharsMin} to ${passwordCharsMax} visible ASCII ` +
        "characters, or be generate"
    ))
}
