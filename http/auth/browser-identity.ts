/** Authentication by the cookie of a browser that is signed in (protocol §7). */
import { Effect } from "effect"
import type { AccountMessage, AccountReply } from "../../actors/account/index.ts"
import { accountKind } from "../../actors/index.ts"
import { type Address, address, isRefusal } from "../../runtime/index.ts"
import { browserLookupMs } from "../limits.ts"
import { askOrRefusal, type Call, type HandlerFailure, type HttpError, httpError,
  type Service } from "../pipeline/index.ts"
import type { HttpRequest } from "../wire/index.ts"
import { type Identity, type SessionCookie, sessionCookieOf,
  type SignedIn } from "./credentials/index.ts"
import { mayUseCookie } from "./fetch-metadata.ts"

/** The account's actor stores the time of the last request; the answer does not wait for it. */
const touch = ({ system }: Service, to: Address, sessionId: string): void => {
  const message: AccountMessage = { _tag: "TouchBrowserSession", sessionId }
  // If it is not stored, the next request does it. A full disk signs nobody out at once.
  system.askByCallback(to, message, () => {})
}

/** What a request may do with a token of an account. */
export const signedInBy = (
  { roles, token }: Extract<AccountReply, { readonly _tag: "Authenticated" }>
): Omit<SignedIn, "name"> => {
  const { expiresAtMs, id } = token
  return {
    roles,
    rights: token,
    tokenId: id,
    ...expiresAtMs === undefined ? {} : { expiresAtMs }
  }
}

/** The account of a cookie; undefined if its session has ended. */
export const authenticateBrowser = Effect.fnUntraced(function*(
  service: Service,
  { account, sessionHash, sessionId }: SessionCookie,
  isUse = true
): Effect.fn.Return<SignedIn | undefined, HandlerFailure> {
  const to = address(accountKind, account)
  const message: AccountMessage = { _tag: "AuthenticateBrowser", sessionId, sessionHash }
  const reply = yield* askOrRefusal<AccountReply>(service, to, message)
  if (isRefusal(reply) || reply._tag !== "Authenticated") return undefined
  if (isUse && reply.isUseDue) touch(service, to, sessionId)
  return { name: account, ...signedInBy(reply) }
})

/**
 * The call of an answer that stays open, with the present account of its browser's session. What
 * stays open is no use of the session: else an open page alone would keep it for ever.
 */
export const refreshedCall = (
  service: Service,
  call: Call
): Effect.Effect<Call, HandlerFailure> => {
  const { identity } = call
  if (identity._tag !== "Browser") return Effect.succeed(call)
  return Effect.map(authenticateBrowser(service, identity.session, false), (known) => ({
    ...call,
    identity: known === undefined ? { _tag: "Anonymous" } : { ...identity, known }
  }))
}

/** A request that changes something by its cookie alone, without a proof of its origin. */
const unprovenOrigin = httpError(
  "forbidden",
  "the cookie of a browser that is signed in changes nothing without Origin or Sec-Fetch-Site: " +
    "use a page of this service, or send an account's name and token"
)

/**
 * The identity of a request by its cookie; undefined without one. A page of an origin in
 * CORS_ORIGIN is anonymous. Without any origin the request fails (403): as an anonymous one it
 * would make something that its account does not own.
 */
export const browserIdentity = (
  request: HttpRequest,
  baseUrl: string
): Identity | HttpError | undefined => {
  const session = sessionCookieOf(request, baseUrl)
  if (session === undefined) return undefined
  if (mayUseCookie(request, baseUrl)) return { _tag: "Browser", session }
  return request.headers.has("origin") ? undefined : unprovenOrigin
}

/**
 * The identity with its account, for the header of a page; anonymous if its session has ended. It
 * never fails, and waits only briefly: pages that need no account do not depend on accounts.
 */
export const lookUpBrowser = (
  service: Service,
  identity: Extract<Identity, { readonly _tag: "Browser" }>
): Effect.Effect<Identity> =>
  authenticateBrowser(service, identity.session).pipe(
    Effect.map((known): Identity =>
      known === undefined ? { _tag: "Anonymous" } : { ...identity, known }
    ),
    Effect.timeoutOrElse({
      duration: browserLookupMs,
      orElse: () => Effect.succeed<Identity>(identity)
    }),
    Effect.catch(() => Effect.succeed<Identity>(identity))
  )
