/** Which content a path names, who may read and edit it, and message passwords (protocol §1.1). */
import { Effect, Result } from "effect"
import type { ContentAccess, ContentMessage, ContentReply,
  ContentView } from "../../../actors/content/index.ts"
import { contentKind } from "../../../actors/index.ts"
import { type Address, address, isActorId, isRefusal,
  type Refusal } from "../../../runtime/index.ts"
import { secretHash } from "../../auth/credentials/index.ts"
import { authenticate, authenticateCounted, checkPassword } from "../../auth/index.ts"
import { passwordCharsMax, passwordCharsMin } from "../../limits.ts"
import { ask, askOrRefusal, type Call, expectReply, type HandlerFailure, httpError, refusalError,
  type Service } from "../../pipeline/index.ts"

/** The actor of the path's content; 404 for a text that cannot be an id. */
export const contentAddressOf = (call: Call): Effect.Effect<Address, HandlerFailure> => {
  const id = call.parameters.get("content")
  return isActorId(id)
    ? Effect.succeed(address(contentKind, id))
    : Effect.fail(httpError("not-found"))
}

const messageChallenge: ReadonlyArray<[string, string]> = [
  ["WWW-Authenticate", "Basic realm=\"message\""]
]

const offeredPassword = ({ identity, request }: Call): string | undefined => {
  const password = request.headers.get("message-password") ??
    (identity._tag === "Basic" ? identity.password : undefined)
  return password === undefined || password.length > passwordCharsMax ? undefined : password
}

/** The secret of the edit URI and the password of the request. */
const secretsOf = (call: Call): ContentAccess => {
  const secret = call.parameters.secret("content")
  const password = offeredPassword(call)
  return {
    ...secret === undefined ? {} : { editHash: secretHash(secret) },
    ...password === undefined ? {} : { passwordHash: secretHash(password) }
  }
}

/** The credentials of the request: the secret of the edit URI, a password, an account. */
const accessOf = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  authenticateBy: typeof authenticate
): Effect.fn.Return<ContentAccess, HandlerFailure> {
  const account = yield* authenticateBy(service, call)
  return {
    ...secretsOf(call),
    ...account === undefined ? {} : { account: account.name },
    ...account?.roles.includes("admin") === true ? { isAdmin: true } : {}
  }
})

/** 401 with the message's challenge, so that the browser asks again after an empty password. */
const withMessageChallenge = ({ identity }: Call, failure: HandlerFailure): HandlerFailure =>
  identity._tag === "Unreadable" && identity.scheme === "Basic" && failure._tag === "HttpError"
    ? httpError("unauthenticated", failure.problem.detail, messageChallenge)
    : failure

/** What the content's actor replied to the credentials of a request. */
interface AccessCheck {
  readonly reply: ContentReply | Refusal
  /** Whether they had an account, which may be why they were accepted. */
  readonly hasAccount: boolean
  /** The password is wrong, and so is what may be an account. */
  readonly failure?: HandlerFailure
}

/**
 * Asks the content's actor with the credentials of the request. What Basic names is authenticated
 * only if the content is not readable without an account: who reads a message by its password, with
 * any user name, guesses no token; and who guesses a token learns nothing from content that anybody
 * may read, or whose password is the guess. A wrong name and token then counts. If the password was
 * wrong and the account's check fails, the result has that failure.
 */
const askWithAccess = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  to: Address,
  message: (access: ContentAccess) => ContentMessage
): Effect.fn.Return<AccessCheck, HandlerFailure> {
  const askWith = (access: ContentAccess): Effect.Effect<AccessCheck, HandlerFailure> =>
    Effect.map(
      askOrRefusal<ContentReply>(service, to, message(access)),
      (reply) => ({ reply, hasAccount: access.account !== undefined })
    )
  if (call.identity._tag !== "Basic") {
    return yield* askWith(yield* accessOf(service, call, authenticate))
  }
  const secrets = secretsOf(call)
  const checked = yield* askWith(secrets)
  const { reply } = checked
  const isAccountNeeded = isRefusal(reply) && (reply.reason === "Unauthenticated" ||
    (reply.reason === "NotFound" && secrets.editHash !== undefined))
  if (!isAccountNeeded) return checked
  const proof = yield* Effect.result(accessOf(service, call, authenticateCounted))
  if (Result.isFailure(proof)) {
    if (reply.reason !== "Unauthenticated") return yield* Effect.fail(proof.failure)
    return { ...checked, failure: proof.failure }
  }
  const access = proof.success
  return access.account === undefined ? checked : yield* askWith(access)
})

const isWrongPassword = ({ failure, reply }: AccessCheck): boolean =>
  failure !== undefined || (isRefusal(reply) && reply.reason === "Unauthenticated")

/**
 * Whether the reply proves that the offered password is right, or the token of the account that may
 * read: not one to an edit secret, to an account beside the password, or of content without one.
 */
const isRightPassword = (call: Call, { hasAccount, reply }: AccessCheck): boolean => {
  if (isRefusal(reply) || call.parameters.secret("content") !== undefined) return false
  if (hasAccount) {
    return call.identity._tag === "Basic" && !call.request.headers.has("message-password")
  }
  return reply._tag === "Described" && reply.view.hasPassword
}

/**
 * Asks the content's actor as a reader. A wrong password is 401 with its own challenge and counts
 * against the client's address and network; after too many it is 429 (protocol §1.1).
 */
export const askAsReader = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  to: Address,
  message: (access: ContentAccess) => ContentMessage
): Effect.fn.Return<ContentReply, HandlerFailure> {
  const password = offeredPassword(call)
  const check = Effect.mapError(
    askWithAccess(service, call, to, message),
    (failure) => withMessageChallenge(call, failure)
  )
  const checked = password === undefined ? yield* check : yield* checkPassword(service, call, {
    target: to.id,
    passwordHash: secretHash(password),
    check,
    isWrong: isWrongPassword,
    isRight: (one) => isRightPassword(call, one)
  })
  const { failure, reply } = checked
  if (failure !== undefined) return yield* Effect.fail(failure)
  if (!isRefusal(reply)) return reply
  if (reply.reason !== "Unauthenticated") return yield* refusalError(reply)
  return yield* httpError(
    "unauthenticated",
    "the message password is missing or wrong: send it in Message-Password or by Basic",
    messageChallenge
  )
})

/** The content, for a reader. */
export const describeContent = (
  service: Service,
  call: Call,
  to: Address
): Effect.Effect<ContentView, HandlerFailure> =>
  Effect.map(
    askAsReader(service, call, to, (access) => ({ _tag: "Describe", access })),
    (reply) => expectReply(reply, "Described").view
  )

/**
 * Requires the secret of the edit URI, or the account of the owner, or, if `toRemove`, of an admin;
 * returns the credentials.
 */
export const requireEditor = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  to: Address,
  toRemove = false
): Effect.fn.Return<ContentAccess, HandlerFailure> {
  const access = yield* accessOf(service, call, authenticateCounted)
  const message: ContentMessage = { _tag: "Authorize", access, toRemove }
  yield* ask<ContentReply>(service, to, message)
  return access
})

/** The password that the publisher chooses: none, its own, or one that the service generates. */
export const chosenPassword = (call: Call): Effect.Effect<string | undefined, HandlerFailure> => {
  const field = call.request.headers.get("message-password")
  if (field === undefined) return Effect.succeed(undefined)
  if (field === "generate") return Effect.succeed(call.ids.secret("message-password"))
  const isValid = field.length >= passwordCharsMin && field.length <= passwordCharsMax &&
    /^[\x21-\x7e]+$/.test(field)
  return isValid
    ? Effect.succeed(field)
    : Effect.fail(httpError(
      "unprocessable",
      `Message-Password must have ${passwordCharsMin} to ${passwordCharsMax} visible ASCII ` +
        "characters, or be generate"
    ))
}
