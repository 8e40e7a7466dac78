/**
 * Wrong passwords and tokens by client address (protocol §1.1), and wrong tokens by account,
 * counted at all nodes together. An account that many addresses try is slowed for those addresses
 * that had a wrong try themselves: its owner, who knows the token, is not kept out.
 */
import { Effect } from "effect"
import { throttleKind } from "../../actors/index.ts"
import type { Counted, ThrottleMessage, ThrottleReply } from "../../actors/throttle/index.ts"
import { address } from "../../runtime/index.ts"
import { ask, type Call, clientAddress, type HandlerFailure, type HttpError, httpError,
  type Service } from "../pipeline/index.ts"
import { isSlug } from "../slug.ts"
import { secretHash } from "./credentials/index.ts"

/** So much of a hash tells the wrong tries of one window apart, and nothing of the token. */
const tryChars = 10

const tell = (
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

const clientIn = (service: Service, { request }: Call): string =>
  clientAddress(request, service.settings.trustedProxies)

/** Whose token Basic names; all that Bearer shows counts as for one account, as it names none. */
const accountTried = ({ identity }: Call): string | undefined =>
  identity._tag === "Bearer"
    ? ""
    : identity._tag === "Basic" && isSlug(identity.user)
    ? identity.user
    : undefined

/** Fails with 429 and Retry-After when the address has had its wrong passwords. */
export const checkPasswordThrottle = Effect.fnUntraced(function*(
  service: Service,
  call: Call
): Effect.fn.Return<void, HandlerFailure> {
  const waitMs = yield* tell(service, clientIn(service, call), { _tag: "Check", of: "passwords" })
  if (waitMs > 0) return yield* tooMany(manyPasswords, waitMs)
})

/**
 * The same for an account's token. A token that was right lately is no guess, and an address that
 * nothing wrong came from at this node costs no question: what is wrong is counted then.
 */
export const checkTokenThrottle = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  tokenHash: string
): Effect.fn.Return<void, HandlerFailure> {
  const { credentialCache } = service
  const client = clientIn(service, call)
  if (credentialCache.isRemembered(tokenHash) || !credentialCache.isSuspect(client)) return
  const waitMs = yield* tell(service, client, { _tag: "Check", of: "tokens" })
  if (waitMs > 0) return yield* tooMany(manyTokens, waitMs)
  const account = accountTried(call)
  if (account === undefined) return
  const accountWaitMs = yield* tell(service, account, { _tag: "Check", of: "account" })
  if (accountWaitMs > 0) return yield* tooMany(manyOfAccount, accountWaitMs)
})

/** Counts against the account that was named; fails with 429 when it had its wrong tries. */
const countForAccount = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  of: string
): Effect.fn.Return<void, HandlerFailure> {
  const account = accountTried(call)
  if (account === undefined) return
  const waitMs = yield* tell(service, account, { _tag: "RecordFailure", of: "account", try: of })
  if (waitMs > 0) return yield* tooMany(manyOfAccount, waitMs)
})

/** Counts a wrong token before it is answered; fails with 429 when there were too many before. */
export const countWrongToken = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  tokenHash: string
): Effect.fn.Return<void, HandlerFailure> {
  const client = clientIn(service, call)
  service.credentialCache.markSuspect(client)
  const of = tokenHash.slice(0, tryChars)
  const waitMs = yield* tell(service, client, { _tag: "RecordFailure", of: "tokens", try: of })
  if (waitMs > 0) return yield* tooMany(manyTokens, waitMs)
  yield* countForAccount(service, call, of)
})

/** Counts a wrong password, which may have been meant for an account's token. */
export const countWrongPassword = Effect.fnUntraced(function*(
  service: Service,
  call: Call
): Effect.fn.Return<void, HandlerFailure> {
  const { identity } = call
  const client = clientIn(service, call)
  yield* tell(service, client, { _tag: "RecordFailure", of: "passwords" })
  if (identity._tag !== "Basic") return
  service.credentialCache.markSuspect(client)
  yield* countForAccount(service, call, secretHash(identity.password).slice(0, tryChars))
})
