/** Handlers of signing in and out, and of the browsers of an account (protocol §7). */
import { Effect } from "effect"
import type { AccountMessage, AccountReply } from "../../../actors/account/index.ts"
import { accountKind } from "../../../actors/index.ts"
import { address, isRefusal } from "../../../runtime/index.ts"
import { audited, auditedIfAllowed } from "../../audit/index.ts"
import { type Identity, isSlug, secretHash, setSessionCookie,
  unsetSessionCookie } from "../../auth/credentials/index.ts"
import { authenticate, authenticateCounted, type AuthenticatedAccount,
  callerOf } from "../../auth/index.ts"
import { signInPath, signOutPath } from "../../formats/html/index.ts"
import type { FormFields } from "../../formats/index.ts"
import { browserAgentCharsMax } from "../../limits.ts"
import { absoluteUri, ask, askOrRefusal, type Call, challenges, defineHandler, emptyAnswer,
  type HandlerFailure, httpError, noStore, readFormMethod, readInput, readQuery, seeOther,
  type Service, toHttpError, unsupportedMediaType, viewAnswer } from "../../pipeline/index.ts"
import type { ReplyHeaders } from "../../wire/index.ts"
import { type AccountRef, accountRefOf, describeAccount } from "../accounts/index.ts"
import { returnPathOf } from "./return-path.ts"
import { browserSessionPath, browserSessionsPath, browserSessionsView, browserSessionView,
  type ShownSessions, signInView, signOutView } from "./sign-in-views.ts"

/** A page about who is signed in. */
const aboutReader: ReplyHeaders = [...noStore, ["Vary", "Cookie"]]

const sessionIdOf = ({ identity }: Call): string | undefined =>
  identity._tag === "Browser" ? identity.session.sessionId : undefined

/* Signing in. */

export const getSignIn = defineHandler(function*(service, call) {
  const query = yield* readQuery(call)
  const path = returnPathOf(query.get("return"), service.settings.baseUrl)
  return viewAnswer(signInView(call.request.viewer, path), { headers: aboutReader })
})

/** The fields of the form. The limit of a token's characters is that of the body. */
const readSignIn = Effect.fnUntraced(function*(
  call: Call
): Effect.fn.Return<FormFields, HandlerFailure> {
  const input = yield* readInput(call, "sign-in", { form: true })
  return input._tag === "Form"
    ? input.fields
    : yield* unsupportedMediaType("POST", "application/x-www-form-urlencoded")
})

const wrongCredentials = httpError(
  "unauthenticated",
  "no account has this name and this token: correct them, or ask the operator for a token",
  challenges
)

/** Checks the name and token as those of Basic, which counts wrong ones; fails with 401 and 429. */
const authenticateForm = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  identity: Extract<Identity, { readonly _tag: "Basic" }>
): Effect.fn.Return<AuthenticatedAccount, HandlerFailure> {
  const account = yield* authenticateCounted(service, { ...call, identity })
  return account ?? (yield* wrongCredentials)
})

/** The name of the browser on one line, shortened: it is for people. */
const agentOf = ({ request }: Call): string =>
  (request.headers.get("user-agent") ?? "").replace(/[^\x20-\x7e]/g, "?")
    .slice(0, browserAgentCharsMax)

/** Ends the session that another one replaces. If that fails, it ends by itself. */
const endFormer = (service: Service, { identity }: Call): void => {
  if (identity._tag !== "Browser" || identity.known === undefined) return
  const { session: { account, sessionId } } = identity
  const caller = callerOf(identity.known)
  const message: AccountMessage = { _tag: "RemoveBrowserSession", caller, sessionId }
  service.system.askByCallback(address(accountKind, account), message, () => {})
}

const addSession = Effect.fnUntraced(function*(
  service: Service,
  name: string,
  message: Extract<AccountMessage, { readonly _tag: "AddBrowserSession" }>
): Effect.fn.Return<void, HandlerFailure> {
  const reply = yield* askOrRefusal<AccountReply>(service, address(accountKind, name), message)
  // The token was revoked a moment ago.
  if (isRefusal(reply)) return yield* wrongCredentials
})

/** Signs a browser in. It gets a new secret in any case (session fixation, CWE-384). */
export const postSignIn = defineHandler(function*(service, call) {
  const fields = yield* readSignIn(call)
  const user = (fields.get("account") ?? "").trim()
  const password = (fields.get("token") ?? "").trim()
  if (!isSlug(user) || password === "") return yield* wrongCredentials
  const account = yield* authenticateForm(service, call, { _tag: "Basic", user, password })
  const sessionId = call.ids.id("browser-session")
  const secret = call.ids.secret("browser-session")
  const caller = callerOf(account)
  const operation = { caller, action: "sign-in", target: signInPath } as const
  yield* audited(
    service,
    call,
    operation,
    addSession(service, user, {
      _tag: "AddBrowserSession",
      sessionId,
      sessionHash: secretHash(secret),
      tokenHash: secretHash(password),
      from: service.clients.clientOf(call.request).address,
      agent: agentOf(call)
    })
  )
  endFormer(service, call)
  const { baseUrl } = service.settings
  const cookie = setSessionCookie(baseUrl, { account: user, sessionId, secret })
  const target = absoluteUri(service, returnPathOf(fields.get("return"), baseUrl))
  return emptyAnswer(303, [["Location", target], ...noStore, cookie])
})

/* Signing out. */

export const getSignOut = defineHandler(function*(_service, call) {
  yield* readQuery(call)
  return viewAnswer(signOutView(call.request.viewer), { headers: aboutReader })
})

/** Ends the session of the request. */
const endOwn = (
  service: Service,
  call: Call,
  account: AuthenticatedAccount,
  sessionId: string
): Effect.Effect<void, HandlerFailure> => {
  const caller = callerOf(account)
  const message: AccountMessage = { _tag: "RemoveBrowserSession", caller, sessionId }
  const to = address(accountKind, account.name)
  const ended = Effect.asVoid(askOrRefusal<AccountReply>(service, to, message))
  const operation = { caller, action: "sign-out", target: signOutPath } as const
  return audited(service, call, operation, ended)
}

/** Signs this browser out. A session that ended before is no failure. */
export const postSignOut = defineHandler(function*(service, call) {
  const { identity } = call
  if (identity._tag === "Browser") {
    const account = yield* authenticate(service, call)
    if (account !== undefined) yield* endOwn(service, call, account, identity.session.sessionId)
  }
  return emptyAnswer(303, [
    ["Location", absoluteUri(service, signOutPath)],
    ...noStore,
    // Ends Web Push to this browser, too: its push service then answers 410.
    ["Clear-Site-Data", "\"storage\""],
    unsetSessionCookie(service.settings.baseUrl)
  ])
})

/* The browsers of an account. */

/** The browsers of the path's account. */
const describeSessions = Effect.fnUntraced(function*(
  service: Service,
  call: Call
): Effect.fn.Return<ShownSessions, HandlerFailure> {
  const ref = yield* accountRefOf(service, call)
  const { browserSessions } = yield* describeAccount(service, ref)
  return { account: ref.name, sessions: browserSessions, current: sessionIdOf(call) }
})

export const getBrowserSessions = defineHandler(function*(service, call) {
  const shown = yield* describeSessions(service, call)
  return viewAnswer(browserSessionsView(service, shown), { headers: noStore })
})

export const getBrowserSession = defineHandler(function*(service, call) {
  const shown = yield* describeSessions(service, call)
  const session = shown.sessions.find(({ id }) => id === call.parameters.get("browserSession"))
  return session === undefined
    ? yield* httpError("not-found")
    : viewAnswer(browserSessionView(service, shown, session), { headers: noStore })
})

/** The sign-out of a browser by the account itself or an admin, as the audit log has it. */
const signOutBy = ({ caller }: AccountRef, target: string) =>
  ({ caller: callerOf(caller), action: "sign-out", target }) as const

const removeSession = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  ref: AccountRef
): Effect.fn.Return<void, HandlerFailure> {
  const caller = callerOf(ref.caller)
  const sessionId = call.parameters.get("browserSession")
  const message: AccountMessage = { _tag: "RemoveBrowserSession", caller, sessionId }
  const target = browserSessionPath(ref.name, sessionId)
  const isThere = Effect.filterOrFail(
    describeAccount(service, ref),
    ({ browserSessions }) => browserSessions.some(({ id }) => id === sessionId),
    () => httpError("not-found")
  )
  const removal = ask<AccountReply>(service, ref.to, message)
  yield* auditedIfAllowed(service, call, signOutBy(ref, target), isThere, () => removal)
})

const removeSessions = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  ref: AccountRef
): Effect.fn.Return<void, HandlerFailure> {
  const caller = callerOf(ref.caller)
  const message: AccountMessage = { _tag: "RemoveBrowserSessions", caller }
  const target = browserSessionsPath(ref.name)
  yield* audited(service, call, signOutBy(ref, target), ask<AccountReply>(service, ref.to, message))
})

export const deleteBrowserSession = defineHandler(function*(service, call) {
  yield* removeSession(service, call, yield* accountRefOf(service, call))
  return emptyAnswer(204)
})

export const deleteBrowserSessions = defineHandler(function*(service, call) {
  yield* removeSessions(service, call, yield* accountRefOf(service, call))
  return emptyAnswer(204)
})

/** The list, or the page of a browser that has just signed itself out. */
const afterRemoval = (service: Service, call: Call, isOwnEnded: boolean) =>
  isOwnEnded
    ? seeOther(service, signOutPath)
    : seeOther(service, browserSessionsPath(call.parameters.get("account")))

/** DELETE of one browser from the form of a page. */
export const postBrowserSession = defineHandler(function*(service, call) {
  // Before the form is read: a stranger's body is not waited for.
  const ref = yield* accountRefOf(service, call)
  yield* readFormMethod(call, "browser-session", ["delete"])
  // The session may have ended since the page was made.
  yield* Effect.catch(
    removeSession(service, call, ref),
    (failure) =>
      toHttpError(failure).problem.slug === "not-found" ? Effect.void : Effect.fail(failure)
  )
  return afterRemoval(service, call, call.parameters.get("browserSession") === sessionIdOf(call))
})

/** DELETE of all browsers from the form of a page. */
export const postBrowserSessions = defineHandler(function*(service, call) {
  const ref = yield* accountRefOf(service, call)
  yield* readFormMethod(call, "browser-sessions", ["delete"])
  yield* removeSessions(service, call, ref)
  const account = call.parameters.get("account")
  return afterRemoval(service, call, call.request.viewer === account)
})
