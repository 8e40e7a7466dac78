/**
 * Protection against guessing (protocol §1.1): all nodes together count wrong passwords and tokens
 * by client address, and wrong tokens by account. If many addresses guess an account's token, only
 * those addresses have to wait. The owner can still log in.
 */
import { Effect } from "effect"
import { sha256, throttleKind } from "../../actors/index.ts"
import type { Counted, ThrottleMessage, ThrottleReply } from "../../actors/throttle/index.ts"
import { address } from "../../runtime/index.ts"
import { ask, type Call, type HandlerFailure, type HttpError, httpError,
  type Service } from "../pipeline/index.ts"
import { isSlug, operatorAccount, secretHash, tokenPrefix } from "./credentials/index.ts"

/** Characters of a token's hash: enough to count different wrong tokens, too few to reveal one. */
export const tryChars = 10

/** The detail of 429 by what was counted. */
const tooMany: Readonly<Record<Counted, string>> = {
  passwords: "too many wrong passwords from this address",
  tokens: "too many wrong tokens from this address",
  account: "too many wrong tokens for this account, one of them from this address"
}

type CountedMessage = Extract<ThrottleMessage, { readonly of: Counted }>

/** A count of the throttle. */
export interface ThrottleCounter {
  /** The address, account or network. */
  readonly name: string
  readonly of: Counted
  /** What it is of passwords from, other than an address. */
  readonly text?: string
}

/** 429: which limit it is, and when the next attempt is allowed. */
export const tooManyError = ({ of, text }: ThrottleCounter, waitMs: number): HttpError => {
  const what = text === undefined ? tooMany[of] : `too many wrong passwords from ${text}`
  const seconds = Math.ceil(waitMs / 1000)
  return httpError("too-many-requests", `${what}: try again in ${seconds} s`, [
    ["Retry-After", String(seconds)]
  ])
}

/** Asks the throttle of an address, account or network. */
export const askCounter = (
  service: Service,
  { name, of }: ThrottleCounter,
  message: CountedMessage
): Effect.Effect<ThrottleReply, HandlerFailure> =>
  ask<ThrottleReply>(service, address(throttleKind, sha256(`${of}\n${name}`)), message)

/** Asks the throttle of an address or account; returns how long the client has to wait. */
const askThrottle = (
  service: Service,
  name: string,
  message: CountedMessage
): Effect.Effect<number, HandlerFailure> =>
  Effect.map(askCounter(service, { name, of: message.of }, message), ({ waitMs }) => waitMs)

/** {@link askThrottle}; fails with 429 and Retry-After if the client has to wait. */
const passThrottle = (
  service: Service,
  name: string,
  message: CountedMessage
): Effect.Effect<void, HandlerFailure> =>
  Effect.flatMap(
    askThrottle(service, name, message),
    (waitMs) => waitMs <= 0 ? Effect.void : tooManyError({ name, of: message.of }, waitMs)
  )

const clientOf = ({ clients }: Service, { request }: Call): string =>
  clients.clientOf(request).address

/** The account that Basic names; all Bearer tokens count as one account, as they name none. */
const accountOf = ({ identity }: Call): string | undefined =>
  identity._tag === "Bearer"
    ? ""
    : identity._tag === "Basic" && isSlug(identity.user)
    ? identity.user
    : undefined

/** Fails with 429 and Retry-After if the address sent too many wrong passwords. */
const checkPasswordThrottle = (
  service: Service,
  call: Call
): Effect.Effect<void, HandlerFailure> =>
  passThrottle(service, clientOf(service, call), { _tag: "Check", of: "passwords" })

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
  yield* passThrottle(service, client, { _tag: "Check", of: "tokens" })
  const account = accountOf(call)
  if (account !== undefined) yield* passThrottle(service, account, { _tag: "Check", of: "account" })
})

/** Counts a wrong token for the named account; fails with 429 if there were too many. */
const countForAccount = (
  service: Service,
  call: Call,
  tokenHash: string
): Effect.Effect<void, HandlerFailure> => {
  const account = accountOf(call)
  return account === undefined ? Effect.void : passThrottle(service, account, {
    _tag: "RecordFailure",
    of: "account",
    try: tokenHash.slice(0, tryChars)
  })
}

/** The count of wrong tokens of the request's address. */
export const tokensOf = (service: Service, call: Call): ThrottleCounter => ({
  name: clientOf(service, call),
  of: "tokens"
})

/**
 * Whether a person may have chosen the token: that of the operator. The service has drawn all
 * others, of 256 bits, which many guesses at once do not find either.
 */
export const mayBeChosen = ({ identity }: Call): boolean =>
  identity._tag === "Bearer"
    ? !identity.token.startsWith(tokenPrefix)
    : identity._tag === "Basic" && identity.user === operatorAccount &&
      !identity.password.startsWith(tokenPrefix)

/** Ends the attempt at a token that {@link mayBeChosen}, uncounted: it is right, or no token. */
export const endTokenAttempt = (
  service: Service,
  call: Call,
  tokenHash: string
): Effect.Effect<void> => {
  if (!mayBeChosen(call)) return Effect.void
  const message = { _tag: "Check", of: "tokens", ends: tokenHash.slice(0, tryChars) } as const
  const ending = askCounter(service, tokensOf(service, call), message)
  return Effect.asVoid(Effect.forkDetach(Effect.ignore(ending)))
}

/**
 * Counts a wrong token for its address and account, in place of the attempt if it was counted while
 * it was checked; fails with 429 if there were too many.
 */
export const countWrongToken = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  tokenHash: string
): Effect.fn.Return<void, HandlerFailure> {
  const client = clientOf(service, call)
  const once = tokenHash.slice(0, tryChars)
  service.credentialCache.markSuspect(client)
  yield* passThrottle(service, client, {
    _tag: "RecordFailure",
    of: "tokens",
    try: once,
    attempt: once
  })
  yield* countForAccount(service, call, tokenHash)
})

/**
 * Counts a wrong password; with Basic it may also be a wrong token of an account. Fails with 429 if
 * there were too many wrong tokens.
 */
export const countWrongPassword = Effect.fnUntraced(function*(
  service: Service,
  call: Call
): Effect.fn.Return<void, HandlerFailure> {
  const { identity } = call
  const client = clientOf(service, call)
  yield* askThrottle(service, client, { _tag: "RecordFailure", of: "passwords" })
  if (identity._tag !== "Basic") return
  yield* countWrongToken(service, call, secretHash(identity.password))
})

/**
 * Whether the password by Basic, which is no token of an account, is the one that `isPassword`
 * knows. A wrong one counts both as a password and as a token; over the limit of passwords none is
 * checked, and each counts as a token. Fails with 429 if there were too many wrong tokens.
 */
export const isBasicPassword = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  hash: string,
  isPassword: Effect.Effect<boolean, HandlerFailure>
): Effect.fn.Return<boolean, HandlerFailure> {
  const client = clientOf(service, call)
  const waitMs = yield* askThrottle(service, client, { _tag: "Check", of: "passwords" })
  if (waitMs <= 0) {
    if (yield* isPassword) {
      yield* endTokenAttempt(service, call, hash)
      return true
    }
    const once = hash.slice(0, tryChars)
    yield* askThrottle(service, client, { _tag: "RecordFailure", of: "passwords", try: once })
  }
  yield* countWrongToken(service, call, hash)
  return false
})

/**
 * {@link checkPasswordThrottle} for a password by Basic that is no token of an account. Over the
 * limit it counts as a wrong token: the right one passes, so that uncounted guesses would find it.
 */
export const checkBasicPassword = (
  service: Service,
  call: Call,
  password: string
): Effect.Effect<void, HandlerFailure> =>
  Effect.tapError(
    checkPasswordThrottle(service, call),
    () => countWrongToken(service, call, secretHash(password))
  )
