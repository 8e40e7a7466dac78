/** Handlers of accounts and their tokens (protocol §4). */
import { Effect } from "effect"
import { type AccountMessage, type AccountReply, type AccountView, removeUnusedReports,
  type TokenRights, type TokenView, tooManyTokens } from "../../../actors/account/index.ts"
import { accountTokensMax, failureReportsFormat, mailboxKind, openReportsMailbox,
  reportsMailboxName } from "../../../actors/index.ts"
import type { MailboxMessage, MailboxReply } from "../../../actors/mailbox/index.ts"
import { address, isRefusal, type Refusal } from "../../../runtime/index.ts"
import { audited, type AuditedAction, auditedIfAllowed } from "../../audit/index.ts"
import { areWithin, isSlug, makeToken, scopeWords,
  secretHash } from "../../auth/credentials/index.ts"
import { type AuthenticatedAccount, callerOf, requireAdmin } from "../../auth/index.ts"
import type { ResourceView } from "../../formats/index.ts"
import { isoTime } from "../../formats/xml/index.ts"
import { askedAtOnceMax } from "../../limits.ts"
import { absoluteUri, ask, askOrRefusal, awaitFormat, type Call, checkShownVersion, createdAnswer,
  defineHandler, emptyAnswer, entityTags, expectedVersion, expectReply, failRefused,
  type HandlerAnswer, type HandlerFailure, httpError, isPageForm, nextLink, noStore, readFormMethod,
  readInput, readPageRequest, readQuery, redisplayOutdated, refusalError, type RequestInput,
  requireFormat, seeOther, type Service, shownVersion, unprocessable,
  viewAnswer } from "../../pipeline/index.ts"
import { changeOnce } from "../../request-record.ts"
import { type AccountRef, accountRefNamed, accountRefOf, describeAccount, describeOrRefusal,
  expectedAccount } from "./account-access.ts"
import { type AccountInput, readAccountInput, readTokenInput, reportsMailboxIn,
  type TokenInput } from "./account-input.ts"
import { accountPath, accountView, collectionPath, createdView, listingView, reportsForm, tokenPath,
  tokensPath, tokensView, tokenView } from "./account-views.ts"
import { describeOwned } from "./owned-resources.ts"
import { addToken, removeToken, removeTokens } from "./token-records.ts"

/** Runs a change of an account between two entries of the audit log, if it is allowed. */
const auditedOf = <A>(
  service: Service,
  call: Call,
  { caller }: AccountRef,
  action: AuditedAction,
  target: string,
  allowed: Effect.Effect<unknown, HandlerFailure>,
  change: Effect.Effect<A, HandlerFailure>
): Effect.Effect<A, HandlerFailure> => {
  const operation = { caller: callerOf(caller), action, target }
  return auditedIfAllowed(service, call, operation, allowed, () => change)
}

/* Accounts. */

/** An account with what its content takes of its quota now. */
const shownAccount = (
  service: Service,
  { caller }: AccountRef,
  account: AccountView
): Effect.Effect<ResourceView, HandlerFailure> =>
  Effect.map(
    service.usage.total(account.name),
    ({ bytes }) =>
      accountView(service, account, {
        usedBytes: bytes,
        isAdmin: caller.roles.includes("admin")
      })
  )

/** A page of all accounts, by name; for admins. */
export const getAccounts = defineHandler(function*(service, call) {
  const caller = yield* requireAdmin(service, call)
  const page = yield* readPageRequest(call, isSlug)
  const names = yield* service.system.scan("account", page.after, page.limit)
  const described = yield* Effect.forEach(
    names,
    (name) => describeOrRefusal(service, accountRefNamed(name, caller)),
    { concurrency: askedAtOnceMax }
  )
  const accounts = described.flatMap((one) => isRefusal(one) ? [] : [one])
  const next = nextLink(absoluteUri(service, collectionPath), page, names)
  return viewAnswer(listingView(service, accounts, next), {
    headers: noStore
  })
})

/**
 * Records a new token, and sends the message that makes the account accept it. Removes the records
 * when the account refuses.
 */
const addNewToken = Effect.fnUntraced(function*(
  service: Service,
  { ids }: Call,
  { name, to }: AccountRef,
  messageOf: (added: { readonly tokenId: string; readonly tokenHash: string }) => AccountMessage
) {
  const token = makeToken(ids)
  const tokenId = ids.id("token")
  const tokenHash = secretHash(token)
  yield* addToken(service, name, tokenId, tokenHash)
  const reply = yield* askOrRefusal<AccountReply>(service, to, messageOf({ tokenId, tokenHash }))
  if (!isRefusal(reply)) return { token, tokenId, reply }
  yield* removeToken(service, name, tokenId)
  return reply
})

/** A repetition has recorded a token that was revoked since the first attempt. */
const revokedToken = Effect.fnUntraced(function*(
  service: Service,
  { name }: AccountRef,
  tokenId: string
): Effect.fn.Return<never, HandlerFailure> {
  yield* removeToken(service, name, tokenId)
  return yield* httpError("gone", "another request has removed the token: create another one")
})

const rightsOf = ({ rights: { mailbox, scopes } }: AuthenticatedAccount): TokenRights => ({
  ...scopes === undefined ? {} : { scopes },
  ...mailbox === undefined ? {} : { mailbox }
})

/** A token creates no token that expires later than it does (403). */
const requireExpiryOfToken = (
  { caller: { expiresAtMs: latestMs } }: AccountRef,
  expiresAtMs: number | undefined
): Effect.Effect<void, HandlerFailure> =>
  latestMs === undefined || expiresAtMs !== undefined && expiresAtMs <= latestMs
    ? Effect.void
    : Effect.fail(httpError(
      "forbidden",
      `this token expires at ${isoTime(latestMs)}, and the new one may not expire later: ` +
        "name no time or an earlier one, or use another token"
    ))

/**
 * The name of the mailbox for the failure reports of a new account: the same in each repetition of
 * the request. Undefined while a node of an earlier version reports nothing.
 */
const nameForReports = (
  service: Service,
  { ids }: Call
): Effect.Effect<string | undefined> =>
  Effect.map(
    awaitFormat(service, failureReportsFormat),
    (isKnown) =>
      isKnown ? reportsMailboxName(Buffer.from(ids.id("reports"), "base64url")) : undefined
  )

/**
 * Opens the mailbox for the failure reports of a new account. Where that fails, the account has its
 * token nevertheless, and a repetition of the request or the first report opens the mailbox.
 */
const openForReports = (service: Service, account: string, name: string): Effect.Effect<void> =>
  openReportsMailbox(service.records, service.system, account, name).pipe(
    Effect.catch((failure) =>
      Effect.logWarning(
        `the mailbox ${name} for the failure reports of ${account} may not be open yet: ` +
          "its first report opens it",
        failure
      )
    )
  )

const createAccount = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  input: AccountInput,
  ref: AccountRef
): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
  const admin = ref.caller
  const caller = callerOf(admin)
  const requestId = call.ids.id("request")
  // The first token has no more rights than the one that creates it, and expires with it.
  const { expiresAtMs } = admin
  const rights = { ...rightsOf(admin), ...expiresAtMs === undefined ? {} : { expiresAtMs } }
  const { hasReports, name, roles } = input
  const reportsMailbox = hasReports ? yield* nameForReports(service, call) : null
  const reports = reportsMailbox === undefined ? {} : { reportsMailbox }
  const { reply, token, tokenId } = yield* failRefused(addNewToken(service, call, ref, (added) => (
    { _tag: "Create", caller, requestId, name, roles, ...reports, ...added, ...rights }
  )))
  const { view: created } = expectReply(reply, "Created")
  const first = created.tokens.find(({ id }) => id === tokenId)
  if (first === undefined) return yield* revokedToken(service, ref, tokenId)
  // A repetition by another token of the admin finds the token that the first attempt has made.
  yield* requireExpiryOfToken(ref, first.expiresAtMs)
  // A repetition may find that the account has chosen another one since.
  if (reportsMailbox && created.failureReports === reportsMailbox) {
    yield* openForReports(service, name, reportsMailbox)
  }
  const view = createdView(service, created, tokenId, token)
  return createdAnswer(service, accountPath(name), view, noStore)
})

export const postAccounts = defineHandler(function*(service, call) {
  const admin = yield* requireAdmin(service, call)
  const input = yield* readAccountInput(call)
  if (!input.hasReports) yield* requireFormat(service, failureReportsFormat)
  const operation = {
    caller: callerOf(admin),
    action: "account.create",
    target: accountPath(input.name),
    detail: input.roles.length === 0 ? "no role" : `roles: ${input.roles.join(", ")}`
  } as const
  const ref = accountRefNamed(input.name, admin)
  return yield* audited(service, call, operation, createAccount(service, call, input, ref))
})

export const getAccount = defineHandler(function*(service, call) {
  const ref = yield* accountRefOf(service, call)
  const account = yield* describeOrRefusal(service, ref)
  if (!isRefusal(account)) {
    return viewAnswer(yield* shownAccount(service, ref, account), { headers: noStore })
  }
  const owned = isRemovedAlone(account) ? yield* describeOwned(service, ref.name) : undefined
  return yield* owned === undefined
    ? refusalError(account)
    : httpError("gone", keptText(ref.name, owned))
})

/** Whether a removal also deletes what the account owns: `?owned=delete`; 400 for other values. */
const deletesOwned = Effect.fnUntraced(function*(
  call: Call
): Effect.fn.Return<boolean, HandlerFailure> {
  const owned = (yield* readQuery(call)).get("owned") || undefined
  if (owned !== undefined && owned !== "delete") {
    return yield* httpError("malformed", "owned must be delete, or left out")
  }
  return owned === "delete"
})

/** Whether the account was removed, and nobody has asked for the deletion of what it owned. */
const isRemovedAlone = ({ detail, reason }: Refusal): boolean =>
  reason === "Gone" && detail === undefined

/** What a removed account owns: requests under way have created it beside the removal. */
const keptText = (name: string, owned: string): string =>
  `the account ${name} is removed; what requests created beside the removal is kept: ${owned}; ` +
  `DELETE ${accountPath(name)}?owned=delete deletes all of it`

/**
 * 409 for an account that owns something, unless the request says what becomes of it; also for one
 * that is removed.
 */
const requireNothingOwned = Effect.fnUntraced(function*(
  service: Service,
  ref: AccountRef
): Effect.fn.Return<void, HandlerFailure> {
  const { name } = ref
  const owned = yield* describeOwned(service, name)
  if (owned === undefined) return
  const account = yield* describeOrRefusal(service, ref)
  if (isRefusal(account)) {
    return yield* isRemovedAlone(account)
      ? httpError("conflict", keptText(name, owned))
      : refusalError(account)
  }
  const path = accountPath(name)
  return yield* httpError(
    "conflict",
    `the account ${name} is not removed, since it owns ${owned}: ` +
      `GET ${path}/export saves a copy; then DELETE ${path}?owned=delete removes the account ` +
      "and deletes all of it"
  )
})

/**
 * Removes an account. If what it owns goes too, its actor deletes that, also after a crash.
 * Otherwise only the mailbox goes that the service has opened for its failure reports, if it is
 * unused: what a request under way creates after the look is kept, and a GET of the account (410)
 * or another DELETE (409) names it.
 */
const removeAccount = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  ref: AccountRef,
  isOwnedToo: boolean
): Effect.fn.Return<void, HandlerFailure> {
  const expected = yield* expectedAccount(
    service,
    call,
    ref,
    (account) => shownAccount(service, ref, account)
  )
  if (!isOwnedToo) yield* requireNothingOwned(service, ref)
  const message: AccountMessage = {
    _tag: "Remove",
    caller: callerOf(ref.caller),
    ...isOwnedToo ? { name: ref.name } : {},
    ...expected
  }
  const removal = Effect.gen(function*(): Effect.fn.Return<void, HandlerFailure> {
    const reply = yield* askOrRefusal<AccountReply>(service, ref.to, message)
    const isGone = isRefusal(reply) && reply.reason === "Gone"
    // The removal of the records may have failed after that of the account: a repetition resumes.
    if (isGone || !isRefusal(reply)) {
      yield* removeTokens(service, ref.name)
      if (!isOwnedToo) yield* removeUnusedReports(service, service.system, ref.name)
    }
    if (isRefusal(reply)) yield* refusalError(reply)
  })
  const operation = {
    caller: callerOf(ref.caller),
    action: "account.remove",
    target: accountPath(ref.name),
    ...isOwnedToo ? { detail: "with everything that it owns" } : {}
  } as const
  yield* audited(service, call, operation, removal)
})

/** DELETE of an account; with `?owned=delete` also of what it owns. */
export const deleteAccount = defineHandler(function*(service, call) {
  yield* requireAdmin(service, call)
  const ref = yield* accountRefOf(service, call)
  const isOwnedToo = yield* deletesOwned(call)
  yield* removeAccount(service, call, ref, isOwnedToo)
  return emptyAnswer(isOwnedToo ? 202 : 204)
})

/** 422 for a mailbox that is not the account's. */
const requireOwnMailbox = Effect.fnUntraced(function*(
  service: Service,
  { name: account }: AccountRef,
  name: string | undefined
): Effect.fn.Return<void, HandlerFailure> {
  if (name === undefined) return
  const message: MailboxMessage = { _tag: "Describe", reader: { account } }
  const reply = isSlug(name)
    ? yield* askOrRefusal<MailboxReply>(service, address(mailboxKind, name), message)
    : undefined
  const isOwn = reply !== undefined && !isRefusal(reply) && reply._tag === "Described" &&
    reply.view.owner === account
  if (!isOwn) {
    return yield* unprocessable(
      `failure-reports must name a mailbox of ${account}, and this is none: create it first`
    )
  }
})

/** Chooses the mailbox that receives an account's failure reports, or none; returns the account. */
const changeReportsMailbox = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  ref: AccountRef,
  input: RequestInput
): Effect.fn.Return<AccountView, HandlerFailure> {
  const mailbox = reportsMailboxIn(input)
  const version = Effect.flatMap(describeAccount(service, ref), (account) =>
    Effect.as(
      expectedVersion(
        call,
        Effect.map(shownAccount(service, ref, account), (view) => ({
          version: account.version,
          tags: entityTags(call, view)
        }))
      ),
      account.version
    )).pipe(Effect.tap((current) => checkShownVersion(input, current)))
  const message: AccountMessage = {
    _tag: "ChooseReportsMailbox",
    caller: callerOf(ref.caller),
    ...mailbox === undefined ? {} : { mailbox }
  }
  const change = failRefused(changeOnce(
    service,
    call,
    version,
    (expected) =>
      askOrRefusal<AccountReply>(service, ref.to, {
        ...message,
        ...shownVersion(input),
        ...expected
      })
  ))
  const allowed = Effect.andThen(
    requireFormat(service, failureReportsFormat),
    requireOwnMailbox(service, ref, mailbox)
  )
  const target = accountPath(ref.name)
  const audited = auditedOf(service, call, ref, "account.change", target, allowed, change)
  const now = Effect.map(describeAccount(service, ref), (account) => reportsForm(ref.name, account))
  yield* redisplayOutdated(call, input, now, audited)
  return yield* describeAccount(service, ref)
})

/** PUT: the settings of an account, which are the mailbox for its failure reports. */
export const putAccount = defineHandler(function*(service, call) {
  const ref = yield* accountRefOf(service, call)
  const input = yield* readInput(call, "account")
  const account = yield* changeReportsMailbox(service, call, ref, input)
  return viewAnswer(yield* shownAccount(service, ref, account), { headers: noStore })
})

/** DELETE from the form of an account's page. */
const removeByForm = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  ref: AccountRef,
  input: RequestInput
): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
  yield* requireAdmin(service, call)
  const owned = input._tag === "Form" ? input.fields.get("owned") : undefined
  yield* removeAccount(service, call, ref, owned === "delete")
  return seeOther(service, collectionPath)
})

/** PUT or DELETE from the forms of an account's page. */
export const postAccountForm = defineHandler(function*(service, call) {
  const ref = yield* accountRefOf(service, call)
  const { input, method } = yield* readFormMethod(call, "account", ["put", "delete"])
  if (method === "delete") return yield* removeByForm(service, call, ref, input)
  const account = yield* changeReportsMailbox(service, call, ref, input)
  return isPageForm(call.request)
    ? seeOther(service, accountPath(ref.name))
    : viewAnswer(yield* shownAccount(service, ref, account), { headers: noStore })
})

/* Tokens. */

/**
 * A token has all roles of its account, and outlives the issuer's statement. A caller whose issuer
 * gives fewer roles than the account has gets no token (403).
 */
const requireRolesOfToken = Effect.fnUntraced(function*(
  service: Service,
  ref: AccountRef
): Effect.fn.Return<void, HandlerFailure> {
  const { caller } = ref
  if (caller.isFederated !== true || caller.roles.includes("admin")) return
  const { roles } = yield* describeAccount(service, ref)
  if (roles.every((role) => caller.roles.includes(role))) return
  return yield* httpError("forbidden", "the account has roles that your issuer does not give you")
})

/** A token creates no token with more rights than it has (403). */
const requireRightsOfToken = (
  { caller: { rights } }: AccountRef,
  asked: TokenRights
): Effect.Effect<void, HandlerFailure> =>
  areWithin(asked, rights) ? Effect.void : Effect.fail(httpError(
    "forbidden",
    `this token has the scope ${scopeWords(rights).join(" ")}, and the new one may have no more: ` +
      "name a scope within it, or use another token"
  ))

/**
 * The new token with its expiry: that of the token that makes it, unless it names an earlier one;
 * 403 for a later one. To a repetition, a duration from now names a later time than it did to the
 * first attempt: if this one has made the token, `createToken` looks at what was made.
 */
const expiringToken = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  ref: AccountRef,
  input: TokenInput
): Effect.fn.Return<TokenInput, HandlerFailure> {
  const latestMs = ref.caller.expiresAtMs
  if (latestMs === undefined) return input
  const { expiresAtMs = latestMs } = input
  if (expiresAtMs <= latestMs) return { ...input, expiresAtMs }
  if (call.key?.earlier === undefined) yield* requireExpiryOfToken(ref, expiresAtMs)
  const { tokens } = yield* describeAccount(service, ref)
  const tokenId = call.ids.id("token")
  if (!tokens.some(({ id }) => id === tokenId)) yield* requireExpiryOfToken(ref, expiresAtMs)
  return { ...input, expiresAtMs: latestMs }
})

const createToken = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  ref: AccountRef,
  input: TokenInput
): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
  const caller = callerOf(ref.caller)
  const version = Effect.map(describeAccount(service, ref), (account) => account.version)
  const { token, tokenId } = yield* failRefused(
    changeOnce(service, call, version, (expected) =>
      addNewToken(service, call, ref, (added) => (
        { _tag: "AddToken", caller, ...added, ...input, ...expected }
      )))
  )
  const { tokens } = yield* describeAccount(service, ref)
  const added = tokens.find(({ id }) => id === tokenId)
  if (added === undefined) return yield* revokedToken(service, ref, tokenId)
  yield* requireExpiryOfToken(ref, added.expiresAtMs)
  const view = tokenView(service, ref.name, added, token)
  return createdAnswer(service, tokenPath(ref.name, tokenId), view, noStore)
})

/** 409 for an account that can have no more tokens; a repetition may have made the last one. */
const requireRoomForToken = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  ref: AccountRef
): Effect.fn.Return<void, HandlerFailure> {
  const { tokens } = yield* describeAccount(service, ref)
  if (call.key?.earlier !== undefined || tokens.length < accountTokensMax) return
  return yield* httpError("conflict", tooManyTokens)
})

/** The token of the path; fails with 404 without it. */
const requireToken = Effect.fnUntraced(function*(
  service: Service,
  ref: AccountRef,
  tokenId: string
): Effect.fn.Return<TokenView, HandlerFailure> {
  const { tokens } = yield* describeAccount(service, ref)
  return tokens.find(({ id }) => id === tokenId) ?? (yield* httpError("not-found"))
})

export const postToken = defineHandler(function*(service, call) {
  const ref = yield* accountRefOf(service, call)
  yield* requireRolesOfToken(service, ref)
  const asked = yield* readTokenInput(call, service.nowMs())
  yield* requireRightsOfToken(ref, asked)
  const input = yield* expiringToken(service, call, ref, asked)
  const target = tokensPath(ref.name)
  const creation = createToken(service, call, ref, input)
  const room = requireRoomForToken(service, call, ref)
  return yield* auditedOf(service, call, ref, "token.create", target, room, creation)
})

export const getTokens = defineHandler(function*(service, call) {
  const ref = yield* accountRefOf(service, call)
  const { tokens } = yield* describeAccount(service, ref)
  return viewAnswer(tokensView(service, ref.name, tokens), { headers: noStore })
})

/** If this fails, the account's timer removes the records. The token is invalid already. */
const removeRevoked = (service: Service, { name }: AccountRef, tokenId: string) =>
  Effect.ignore(removeToken(service, name, tokenId))

/** Revokes all tokens of an account. */
export const deleteTokens = defineHandler(function*(service, call) {
  const ref = yield* accountRefOf(service, call)
  const expected = yield* expectedAccount(
    service,
    call,
    ref,
    ({ tokens }) => Effect.succeed(tokensView(service, ref.name, tokens))
  )
  const caller = callerOf(ref.caller)
  const message: AccountMessage = { _tag: "RemoveTokens", caller, ...expected }
  const reply = yield* auditedOf(
    service,
    call,
    ref,
    "token.revoke",
    tokensPath(ref.name),
    Effect.void,
    ask<AccountReply>(service, ref.to, message)
  )
  const { tokenIds } = expectReply(reply, "Revoked")
  yield* Effect.forEach(tokenIds, (id) => removeRevoked(service, ref, id), { discard: true })
  return emptyAnswer(204)
})

export const getToken = defineHandler(function*(service, call) {
  const ref = yield* accountRefOf(service, call)
  const token = yield* requireToken(service, ref, call.parameters.get("token"))
  return viewAnswer(tokenView(service, ref.name, token), { headers: noStore })
})

/** Revokes the token of the path. */
const revokeToken = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  ref: AccountRef
): Effect.fn.Return<void, HandlerFailure> {
  const tokenId = call.parameters.get("token")
  const expected = yield* expectedAccount(service, call, ref, ({ tokens }) => {
    const token = tokens.find(({ id }) => id === tokenId)
    return Effect.succeed(token && tokenView(service, ref.name, token))
  })
  const caller = callerOf(ref.caller)
  const message: AccountMessage = { _tag: "RemoveToken", caller, tokenId, ...expected }
  yield* auditedOf(
    service,
    call,
    ref,
    "token.revoke",
    tokenPath(ref.name, tokenId),
    requireToken(service, ref, tokenId),
    ask<AccountReply>(service, ref.to, message)
  )
  yield* removeRevoked(service, ref, tokenId)
})

export const deleteToken = defineHandler(function*(service, call) {
  yield* revokeToken(service, call, yield* accountRefOf(service, call))
  return emptyAnswer(204)
})

/** DELETE of a token from the form of its page. */
export const postTokenForm = defineHandler(function*(service, call) {
  // Before the form is read: a stranger's body is not waited for.
  const ref = yield* accountRefOf(service, call)
  yield* readFormMethod(call, "token", ["delete"])
  yield* revokeToken(service, call, ref)
  return seeOther(service, tokensPath(ref.name))
})
