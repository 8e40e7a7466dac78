/**
 * Protection against guessing (protocol §1.1): all nodes together count wrong passwords and tokens
 * by client address, and wrong tokens by account. If many addresses guess an account's token, only
 * those addresses are slowed down that guessed themselves. The owner can still log in.
 */
import { Effect } from "effect"
import { throttleKind } from "../../actors/index.ts"
import type { Counted, ThrottleMessage, ThrottleReply } from "../../actors/throttle/index.ts"
import { address } from "../../runtime/index.ts"
import { ask, type Call, clientAddress, type HandlerFailure, type HttpError, httpError,
  type Service } from "../pipeline/index.ts"
import { isSlug } from "../slug.ts"
import { secretHash } from "./credentials/index.ts"

/** Characters of a hash that distinguish wrong tries in a window but do not reveal the token. */
const tryChars = 10

const askThrottle = (
  service: Service,
  of: string,
  message: Extract<ThrottleMessage, { readonly of: Counted }>
) =>
  Effect.map(
    ask<ThrottleReply>(service, address(throttleKind, secretHash(`${message.of}\n${of}`)), message),
    ({ waitMs }) => waitMs
  )

const tooMany = (detail: string, waitMs: number): HttpError =>
  httpError("too-many-requests", detail, [["Retry-After", String(Math.ceil(waitMs / 1000))]])

const manyPasswords = "too many wrong passwords from this address"

const manyTokens = "too many wrong tokens from this address"

const manyOfAccount = "too many wrong tokens for this account, one of them from this address"

const clientOf = (service: Service, { request }: Call): string =>
  clientAddress(request, service.settings.trustedProxies)

/** The account that Basic names; all Bearer tokens count as one account, as they name none. */
const accountOf = ({ identity }: Call): string | undefined =>
  identity._tag === "Bearer"
    ? ""
    : identity._tag === "Basic" && isSlug(identity.user)
    ? identity.user
    : undefined

/** Fails with 429 and Retry-After if the address sent too many wrong passwords. */
export const checkPasswordThrottle = Effect.fnUntraced(function*(
  service: Service,
  call: Call
): Effect.fn.Return<void, HandlerFailure> {
  const waitMs = yield* askThrottle(service, clientOf(service, call), {
    _tag: "Check",
    of: "passwords"
  })
  if (waitMs > 0) return yield* tooMany(manyPasswords, waitMs)
})

/**
 * Fails with 429 if the address, or the account that it names, had too many wrong tokens. It asks
 * the throttle only for addresses that sent wrong credentials to this node, and not for a token
 * that was valid recently.
 */
export const checkTokenThrottle = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  tokenHash: string
): Effect.fn.Return<void, HandlerFailure> {
  const { credentialCache } = service
  const client = clientOf(service, call)
  if (credentialCache.isRemembered(tokenHash) || !credentialCache.isSuspect(client)) return
  const waitMs = yield* askThrottle(service, client, { _tag: "Check", of: "tokens" })
  if (waitMs > 0) return yield* tooMany(manyTokens, waitMs)
  const account = accountOf(call)
  if (account === undefined) return
  const accountWaitMs = yield* askThrottle(service, account, { _tag: "Check", of: "account" })
  if (accountWaitMs > 0) return yield* tooMany(manyOfAccount, accountWaitMs)
})

/** Counts a wrong token for the named account; fails with 429 if there were too many. */
const countForAccount = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  of: string
): Effect.fn.Return<void, HandlerFailure> {
  const account = accountOf(call)
  if (account === undefined) return
  const waitMs = yield* askThrottle(service, account, {
    _tag: "RecordFailure",
    of: "account",
    try: of
  })
  if (waitMs > 0) return yield* tooMany(manyOfAccount, waitMs)
})

/** Counts a wrong token for its address and account; fails with 429 if there were too many. */
export const countWrongToken = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  tokenHash: string
): Effect.fn.Return<void, HandlerFailure> {
  const client = clientOf(service, call)
  service.credentialCache.markSuspect(client)
  const of = tokenHash.slice(0, tryChars)
  const waitMs = yield* askThrottle(service, client, {
    _tag: "RecordFailure",
    of: "tokens",
    try: of
  })
  if (waitMs > 0) return yield* tooMany(manyTokens, waitMs)
  yield* countForAccount(service, call, of)
})

/** Counts a wrong password; with Basic it may also be a wrong token of an account. */
export const countWrongPassword = Effect.fnUntraced(function*(
  service: Service,
  call: Call
): Effect.fn.Return<void, HandlerFailure> {
  const { identity } = call
  const client = clientOf(service, call)
  yield* askThrottle(service, client, { _tag: "RecordFailure", of: "passwords" })
  if (identity._tag !== "Basic") return
  service.credentialCache.markSuspect(client)
  yield* countForAccount(service, call, secretHash(identity.password).slice(0, tryChars))
})
