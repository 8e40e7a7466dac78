/** Authentication: which account the credentials of a request belong to (protocol §4). */
import { Effect } from "effect"
import { type AccountMessage, type AccountReply, type TokenRights,
  tokensTable } from "../../actors/account/index.ts"
import { accountKind } from "../../actors/index.ts"
import { address, isRefusal } from "../../runtime/index.ts"
import { recordAdminRefused } from "../audit/index.ts"
import { keysPauseMs } from "../limits.ts"
import { askOrRefusal, type Call, challenges, type HandlerFailure, type HttpError, httpError,
  invalidTokenError, type KeyOwner, type Service } from "../pipeline/index.ts"
import { authenticateBrowser, signedInBy } from "./browser-identity.ts"
import { isSlug, scopeWords, secretHash } from "./credentials/index.ts"
import { isJwt, type Issuer } from "./issuer/index.ts"
import { checkChosenToken } from "./password-attempts.ts"
import { scopeFault } from "./scopes.ts"
import { checkTokenThrottle, countWrongToken, mayBeChosen } from "./throttle.ts"

/** An authenticated account. */
export interface AuthenticatedAccount {
  readonly name: string
  /** The roles that it may use: without the scope `admin`, none. */
  readonly roles: ReadonlyArray<string>
  /** The rights of its token. */
  readonly rights: TokenRights
  /** The id of its token, of this service. */
  readonly tokenId?: string
  /** When its token expires; what the token makes expires then at the latest. */
  readonly expiresAtMs?: number
  /** Whether the issuer's token named it: its roles are then those of the token. */
  readonly isFederated?: boolean
}

/**
 * The account, if its token has a scope that the operation needs. Fails with 403 if it has not; if
 * the account is only one more way to a right (`isOptional`), the request then has no account.
 */
const checkScope = (
  call: Call,
  account: AuthenticatedAccount
): Effect.Effect<AuthenticatedAccount | undefined, HandlerFailure> => {
  const { rights, roles } = account
  if (rights.scopes === undefined && rights.mailbox === undefined) return Effect.succeed(account)
  const fault = scopeFault(call, rights)
  if (fault !== undefined) {
    return call.access?.isOptional === true ? Effect.undefined : Effect.fail(fault)
  }
  const { scopes } = rights
  return Effect.succeed({
    ...account,
    roles: scopes === undefined || scopes.includes("admin") ? roles : []
  })
}

/** Authenticates by a token of the issuer; 401 for a wrong one, 503 without the issuer's keys. */
const authenticateFederated = Effect.fnUntraced(function*(
  service: Service,
  issuer: Issuer,
  token: string
): Effect.fn.Return<AuthenticatedAccount, HandlerFailure> {
  const { name, rights, roles } = yield* Effect.mapError(
    issuer.verify(token),
    (failure) =>
      failure._tag === "TokenRejected"
        ? invalidTokenError(failure.why)
        : httpError("issuer-unavailable", "the keys of the token's issuer are not available", [
          ["Retry-After", String(Math.ceil(keysPauseMs / 1000))]
        ])
  )
  const message: AccountMessage = { _tag: "Admit", name }
  const reply = yield* askOrRefusal<AccountReply>(service, address(accountKind, name), message)
  if (isRefusal(reply)) {
    return yield* invalidTokenError(reply.detail ?? "the account does not exist")
  }
  if (service.rateLimiter !== undefined) service.credentialCache.remember(secretHash(token), name)
  return { name, roles, rights, isFederated: true }
})

/**
 * Records the use of a token beside its request: a full disk must not keep readers out. If that
 * fails, a later request of this node repeats it.
 */
const recordUse = Effect.fnUntraced(function*(
  service: Service,
  name: string,
  tokenHash: string
): Effect.fn.Return<void> {
  if (!service.credentialCache.mayRecordUse(tokenHash)) return
  const message: AccountMessage = { _tag: "RecordUse", tokenHash }
  yield* Effect.forkDetach(
    Effect.ignore(askOrRefusal<AccountReply>(service, address(accountKind, name), message))
  )
})

/** 401: as an anonymous request it would make something that its sender's account does not own. */
const emptyCredentialsError = (
  { scheme }: Extract<Call["identity"], { readonly _tag: "Unreadable" }>
): HttpError =>
  scheme === "Bearer"
    ? invalidTokenError(
      "Authorization has no token after Bearer: send an account's token, or leave the field out"
    )
    : httpError(
      "unauthenticated",
      "Authorization lacks a name, a token or both after Basic: send those of an account, or " +
        "leave the field out",
      challenges
    )

/** The account of a token of the service, which it then remembers; undefined for a wrong one. */
const findByToken = Effect.fnUntraced(function*(
  service: Service,
  identity: Extract<Call["identity"], { readonly _tag: "Basic" | "Bearer" }>,
  tokenHash: string
): Effect.fn.Return<AuthenticatedAccount | undefined, HandlerFailure> {
  const name = identity._tag === "Bearer"
    ? yield* service.records.get(tokensTable, tokenHash)
    : identity.user
  if (name === undefined || !isSlug(name)) return undefined
  const message: AccountMessage = { _tag: "Authenticate", tokenHash }
  const reply = yield* askOrRefusal<AccountReply>(service, address(accountKind, name), message)
  if (isRefusal(reply) || reply._tag !== "Authenticated") return undefined
  service.credentialCache.remember(tokenHash, name)
  if (reply.isUseDue) yield* recordUse(service, name, tokenHash)
  return { name, ...signedInBy(reply) }
})

/**
 * The account of the request's credentials, whatever the scopes of its token. It is undefined
 * without credentials, and for a wrong name and token by Basic, which may be the password of a
 * message or mailbox.
 */
const identify = Effect.fnUntraced(function*(
  service: Service,
  call: Call
): Effect.fn.Return<AuthenticatedAccount | undefined, HandlerFailure> {
  const { identity } = call
  if (identity._tag === "Anonymous") return
  if (identity._tag === "Unreadable") return yield* emptyCredentialsError(identity)
  if (identity._tag === "Browser") {
    return identity.known ?? (yield* authenticateBrowser(service, identity.session))
  }
  const { credentialCache, issuer } = service
  const isBearer = identity._tag === "Bearer"
  if (isBearer && issuer !== undefined && isJwt(identity.token)) {
    return yield* authenticateFederated(service, issuer, identity.token)
  }
  const tokenHash = secretHash(isBearer ? identity.token : identity.password)
  if (credentialCache.hasSuspects) yield* checkTokenThrottle(service, call, tokenHash)
  const finding = findByToken(service, identity, tokenHash)
  const isCounted = mayBeChosen(call) && !credentialCache.isRemembered(tokenHash)
  const account = yield* isCounted
    ? checkChosenToken(service, call, tokenHash, finding)
    : finding
  if (account !== undefined) return account
  credentialCache.forget(tokenHash)
  if (!isBearer) return
  yield* countWrongToken(service, call, tokenHash)
  return yield* invalidTokenError("the token is unknown, revoked or has expired")
})

/**
 * The account of the request's credentials. It is undefined without credentials, and for a wrong
 * name and token by Basic. It does not count these: the caller does, unless they are the password
 * of a mailbox, since any answer may tell a right token. Fails with 401 for a wrong Bearer token,
 * with 403 for a token without a scope that the operation needs, and with 429 after too many wrong
 * ones.
 */
export const authenticate = (
  service: Service,
  call: Call
): Effect.Effect<AuthenticatedAccount | undefined, HandlerFailure> =>
  Effect.flatMap(
    identify(service, call),
    (account) => account === undefined ? Effect.undefined : checkScope(call, account)
  )

/** {@link authenticate} where Basic can only name an account: counts a wrong name and token. */
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
 * The account where a request may be anonymous. Wrong credentials fail with 401: otherwise a
 * client with a typo would create something that its account does not own.
 */
export const optionalAccount = Effect.fnUntraced(function*(
  service: Service,
  call: Call
): Effect.fn.Return<AuthenticatedAccount | undefined, HandlerFailure> {
  const account = yield* authenticateCounted(service, call)
  if (account === undefined && call.identity._tag === "Basic") {
    return yield* httpError("unauthenticated", "no account has this name and token", challenges)
  }
  return account
})

/** The account; fails with 401 without one. */
export const requireAccount = (
  service: Service,
  call: Call
): Effect.Effect<AuthenticatedAccount, HandlerFailure> =>
  Effect.flatMap(authenticateCounted(service, call), (account) =>
    account === undefined
      ? Effect.fail(
        httpError("unauthenticated", "send an account's name and token", challenges)
      )
      : Effect.succeed(account))

/** The account with the role `admin`; fails with 401 or 403, which the audit log counts. */
export const requireAdmin = Effect.fnUntraced(function*(
  service: Service,
  call: Call
): Effect.fn.Return<AuthenticatedAccount, HandlerFailure> {
  const recordAnonymous = () => recordAdminRefused(service, call, undefined)
  const account = yield* Effect.tapError(requireAccount(service, call), recordAnonymous)
  if (account.roles.includes("admin")) return account
  yield* recordAdminRefused(service, call, account.name)
  return yield* httpError("forbidden", "this needs the role admin")
})

/** The sender of a message, as actors receive it. */
export const callerOf = (
  account: AuthenticatedAccount | undefined
): { readonly account?: string; readonly admin: boolean } =>
  account === undefined
    ? { admin: false }
    : { account: account.name, admin: account.roles.includes("admin") }

/**
 * Identifies the owner of an Idempotency-Key: the account, whichever of its tokens it shows; or the
 * credentials of no account, such as a mailbox's password. Fails as {@link authenticateCounted}
 * does, so that a revoked token repeats nothing. `authenticateBy` is {@link authenticate} where
 * something else counts wrong credentials.
 *
 * An issuer renews its tokens every few minutes: those of the same name, roles and scope are one.
 */
export const keyOwnerOf = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  authenticateBy: typeof authenticate = authenticateCounted
): Effect.fn.Return<KeyOwner, HandlerFailure> {
  const { identity } = call
  const account = yield* authenticateBy(service, call)
  const anonymousOwner: KeyOwner = { scope: undefined, credentials: "", hasAccount: false }
  // `authenticate` has refused one that cannot be read.
  if (identity._tag === "Anonymous" || identity._tag === "Unreadable") return anonymousOwner
  if (identity._tag === "Browser") {
    const credentials = `session ${identity.session.sessionHash}`
    return account === undefined
      ? anonymousOwner
      : { scope: `account ${account.name}`, credentials, hasAccount: true }
  }
  const token = identity._tag === "Bearer" ? identity.token : identity.password
  if (account === undefined) {
    const credentials = secretHash(`${identity._tag === "Basic" ? identity.user : ""}\n${token}`)
    return { scope: `credentials ${credentials}`, credentials, hasAccount: false }
  }
  const { isFederated, name, rights, roles } = account
  const words = scopeWords(rights).join(" ")
  return {
    scope: `account ${name}`,
    credentials: isFederated === true
      ? `roles ${roles.join(" ")} scope ${words}`
      : secretHash(token),
    hasAccount: true
  }
})
