/** Who calls: accounts by Basic or Bearer, and the secrets of messages and mailboxes. */
import { Effect } from "effect"
import { type AccountMessage, type AccountReply, tokensTable } from "../../actors/account/index.ts"
import { accountKind } from "../../actors/index.ts"
import { address, isRefusal } from "../../runtime/index.ts"
import { keysPauseMs } from "../limits.ts"
import { askOrRefusal, type Call, challenges, type HandlerFailure, httpError, invalidTokenError,
  type Service, toProblem } from "../pipeline/index.ts"
import { isSlug } from "../slug.ts"
import { secretHash } from "./credentials/index.ts"
import { isJwt, type Issuer } from "./issuer/index.ts"
import { checkTokenThrottle, countWrongToken } from "./throttle.ts"

/** An authenticated account. */
export interface AuthenticatedAccount {
  readonly name: string
  readonly roles: ReadonlyArray<string>
  /** Whether the outside issuer vouches for it: its roles are the issuer's word, not its own. */
  readonly isFederated?: boolean
}

/** The account that the issuer's token is of: 401 when it is of none, 503 when nobody can tell. */
const authenticateFederated = Effect.fnUntraced(function*(
  service: Service,
  issuer: Issuer,
  token: string
): Effect.fn.Return<AuthenticatedAccount, HandlerFailure> {
  const { name, roles } = yield* Effect.mapError(
    issuer.verify(token),
    (failure) =>
      failure._tag === "TokenRefused"
        ? invalidTokenError(failure.why)
        : httpError("issuer-unavailable", "the keys of the token's issuer cannot be had just now", [
          ["Retry-After", String(Math.ceil(keysPauseMs / 1000))]
        ])
  )
  const message: AccountMessage = { _tag: "Admit", name }
  const reply = yield* askOrRefusal<AccountReply>(service, address(accountKind, name), message)
  if (isRefusal(reply)) return yield* invalidTokenError(reply.detail ?? "there is no such account")
  if (service.rateLimiter !== undefined) service.credentialCache.remember(secretHash(token), name)
  return { name, roles, isFederated: true }
})

/** Whether the request has a token of the issuer, right or wrong. */
export const hasIssuerToken = ({ issuer }: Service, { identity }: Call): boolean =>
  issuer !== undefined && identity._tag === "Bearer" && isJwt(identity.token)

/**
 * The account of the request's credentials; undefined when there are none, and for a wrong name and
 * token by Basic, which may be a message's or mailbox's password. Fails with 401 for a Bearer token
 * that is not accepted, with 429 after too many wrong ones.
 */
export const authenticate = Effect.fnUntraced(function*(
  service: Service,
  call: Call
): Effect.fn.Return<AuthenticatedAccount | undefined, HandlerFailure> {
  const { identity } = call
  if (identity._tag === "Nobody") return
  const { issuer, credentialCache } = service
  if (identity._tag === "Bearer" && issuer !== undefined && isJwt(identity.token)) {
    return yield* authenticateFederated(service, issuer, identity.token)
  }
  const isBearer = identity._tag === "Bearer"
  const tokenHash = secretHash(isBearer ? identity.token : identity.password)
  if (credentialCache.hasSuspects) yield* checkTokenThrottle(service, call, tokenHash)
  const name = isBearer
    ? yield* service.records.get(tokensTable, tokenHash)
    : identity.user
  if (name !== undefined && isSlug(name)) {
    const message: AccountMessage = { _tag: "Authenticate", tokenHash }
    const reply = yield* askOrRefusal<AccountReply>(service, address(accountKind, name), message)
    if (!isRefusal(reply) && reply._tag === "Authenticated") {
      credentialCache.remember(tokenHash, name)
      return { name, roles: reply.roles }
    }
  }
  credentialCache.forget(tokenHash)
  if (!isBearer) return
  yield* countWrongToken(service, call, tokenHash)
  return yield* invalidTokenError("the token is unknown, revoked or has expired")
})

/** The same where Basic is for accounts alone: a wrong name and token are counted as such. */
export const authenticateCounted = Effect.fnUntraced(function*(
  service: Service,
  call: Call
): Effect.fn.Return<AuthenticatedAccount | undefined, HandlerFailure> {
  const account = yield* authenticate(service, call)
  const { identity } = call
  if (account === undefined && identity._tag === "Basic") {
    yield* countWrongToken(service, call, secretHash(identity.password))
  }
  return account
})

/**
 * The account where one may be named and nothing else: nobody without credentials, 401 for wrong
 * ones, so that no owner of what is made gets lost unnoticed.
 */
export const optionalAccount = Effect.fnUntraced(function*(
  service: Service,
  call: Call
): Effect.fn.Return<AuthenticatedAccount | undefined, HandlerFailure> {
  const account = yield* authenticateCounted(service, call)
  if (account === undefined && call.identity._tag === "Basic") {
    return yield* httpError(
      "unauthenticated",
      "there is no account of this name and token",
      challenges
    )
  }
  return account
})

/** What is refused for want of an account counts the wrong name and token that were given. */
export const countingWrongCredentials = <A>(
  service: Service,
  call: Call,
  handled: Effect.Effect<A, HandlerFailure>
): Effect.Effect<A, HandlerFailure> =>
  call.identity._tag !== "Basic"
    ? handled
    : Effect.tapError(handled, (failure): Effect.Effect<void, HandlerFailure> =>
      failure._tag === "Failed" && toProblem(failure).problem.slug === "unauthenticated"
        ? Effect.asVoid(authenticateCounted(service, call))
        : Effect.void)

/** The account, or 401. */
export const requireAccount = (
  service: Service,
  call: Call
): Effect.Effect<AuthenticatedAccount, HandlerFailure> =>
  Effect.flatMap(authenticateCounted(service, call), (account) =>
    account === undefined
      ? Effect.fail(
        httpError("unauthenticated", "an account's name and token are needed", challenges)
      )
      : Effect.succeed(account))

/** The account with the role admin, else 401 or 403. */
export const requireAdmin = (
  service: Service,
  call: Call
): Effect.Effect<AuthenticatedAccount, HandlerFailure> =>
  Effect.flatMap(requireAccount(service, call), (account) =>
    account.roles.includes("admin")
      ? Effect.succeed(account)
      : Effect.fail(httpError("forbidden", "this needs the role admin")))

/** What messages to actors say of their sender. */
export const callerOf = (
  account: AuthenticatedAccount | undefined
): { readonly account?: string; readonly admin: boolean } =>
  account === undefined
    ? { admin: false }
    : { account: account.name, admin: account.roles.includes("admin") }
