/**
 * Attempts at message passwords (protocol §1.1). Each is in the counts of its address and of its
 * network while it is checked, so that many at once are no more guesses than one after the other.
 */
import { Effect } from "effect"
import { passwordTurnMs, passwordTurnsMax, sha256 } from "../../actors/index.ts"
import type { ThrottleReply } from "../../actors/throttle/index.ts"
import { type Call, type HandlerFailure, httpError, type Service } from "../pipeline/index.ts"
import { secretHash } from "./credentials/index.ts"
import { askCounter, countWrongToken, type ThrottleCounter, tooManyError,
  tryChars } from "./throttle.ts"

/** A password that is checked. */
export interface PasswordAttempt<A> {
  /** What it is for, and its hash. */
  readonly target: string
  readonly passwordHash: string
  readonly check: Effect.Effect<A, HandlerFailure>
  readonly isWrong: (result: A) => boolean
  /** Whether the result proves that it is right: content without a password takes any. */
  readonly isRight: (result: A) => boolean
}

/** The counts of the address and of its network: one client may have all addresses of a /48. */
const countersOf = (service: Service, { request }: Call) => {
  const { address, network } = service.clients.clientOf(request)
  return {
    ofAddress: { name: address, of: "passwords" },
    // Nodes of an earlier version know no other count of a hundred.
    ofNetwork: { name: `passwords ${network}`, of: "account", text: "this network" }
  } as const satisfies Readonly<Record<string, ThrottleCounter>>
}

const turnError = httpError(
  "too-many-requests",
  "too many passwords from this address or its network are being checked: try again in 1 s",
  [["Retry-After", "1"]]
)

interface CheckedAttempt<A> {
  readonly result: A
}

/** Counts the attempt while the check runs. A wrong one stays counted; a right one does not. */
const countWhile = <A>(
  service: Service,
  counter: ThrottleCounter,
  attempt: string,
  { check, isWrong }: Pick<PasswordAttempt<A>, "check" | "isWrong">
): Effect.Effect<CheckedAttempt<A> | undefined, HandlerFailure> => {
  const { of } = counter
  let isEnding = true
  const checked = Effect.gen(function*(): Effect.fn.Return<CheckedAttempt<A>, HandlerFailure> {
    const result = yield* check
    if (!isWrong(result)) return { result }
    // If it is indeterminate whether the failure was counted, the attempt counts for its time.
    isEnding = false
    yield* askCounter(service, counter, { _tag: "RecordFailure", of, attempt })
    return { result }
  })
  return Effect.acquireUseRelease(
    askCounter(service, counter, { _tag: "Check", of, begins: attempt }),
    (reply: ThrottleReply): Effect.Effect<CheckedAttempt<A> | undefined, HandlerFailure> =>
      reply.waitMs > 0
        ? Effect.fail(tooManyError(counter, reply.waitMs))
        : reply.isFull === true
        ? Effect.undefined
        : checked,
    ({ isFull, waitMs }) =>
      waitMs > 0 || isFull === true || !isEnding
        ? Effect.void
        : Effect.asVoid(Effect.forkDetach(Effect.ignore(
          askCounter(service, counter, { _tag: "Check", of, ends: attempt })
        )))
  )
}

/** {@link countWhile}, as soon as fewer attempts are being checked than may be wrong. */
const countInTurn = Effect.fnUntraced(function*<A>(
  service: Service,
  counter: ThrottleCounter,
  attempt: string,
  checks: Pick<PasswordAttempt<A>, "check" | "isWrong">
): Effect.fn.Return<A, HandlerFailure> {
  for (let turn = 0; turn < passwordTurnsMax; turn += 1) {
    const checked = yield* countWhile(service, counter, attempt, checks)
    if (checked !== undefined) return checked.result
    yield* Effect.sleep(passwordTurnMs)
  }
  return yield* turnError
})

/** Fails with 429 as {@link countInTurn} does; the attempt itself is not counted. */
const passInTurn = Effect.fnUntraced(function*(
  service: Service,
  counter: ThrottleCounter
): Effect.fn.Return<void, HandlerFailure> {
  for (let turn = 0; turn < passwordTurnsMax; turn += 1) {
    const reply = yield* askCounter(service, counter, { _tag: "Check", of: counter.of })
    if (reply.waitMs > 0) return yield* tooManyError(counter, reply.waitMs)
    if (reply.isFull !== true) return
    yield* Effect.sleep(passwordTurnMs)
  }
  return yield* turnError
})

/**
 * Checks a password that was right at this node recently. This takes one message to the throttle,
 * since the attempt itself is not counted. It asks the network's count only after wrong passwords.
 */
const checkKnown = Effect.fnUntraced(function*<A>(
  service: Service,
  call: Call,
  key: string,
  { check, isWrong }: PasswordAttempt<A>
): Effect.fn.Return<A, HandlerFailure> {
  const { credentialCache } = service
  const { ofAddress, ofNetwork } = countersOf(service, call)
  yield* passInTurn(service, ofAddress)
  if (credentialCache.isSuspect(ofNetwork.name)) yield* passInTurn(service, ofNetwork)
  const result = yield* check
  if (!isWrong(result)) return result
  credentialCache.forgetPassword(key)
  for (const counter of [ofAddress, ofNetwork]) {
    yield* askCounter(service, counter, { _tag: "RecordFailure", of: counter.of })
  }
  return result
})

/**
 * Checks a password. A wrong one counts for its address and network, and with Basic as a token,
 * too, which it may be. Fails with 429 and Retry-After after too many.
 */
export const checkPassword = Effect.fnUntraced(function*<A>(
  service: Service,
  call: Call,
  tried: PasswordAttempt<A>
): Effect.fn.Return<A, HandlerFailure> {
  const { credentialCache } = service
  const key = sha256(`${tried.target}\n${tried.passwordHash}`)
  const attempt = key.slice(0, tryChars)
  const { ofAddress, ofNetwork } = countersOf(service, call)
  const { isRight, isWrong } = tried
  const result = credentialCache.isKnownPassword(key)
    ? yield* checkKnown(service, call, key, tried)
    : yield* countInTurn(service, ofAddress, attempt, {
      check: countInTurn(service, ofNetwork, attempt, tried),
      isWrong
    })
  if (!isWrong(result)) {
    if (isRight(result)) credentialCache.rememberPassword(key)
    return result
  }
  credentialCache.markSuspect(ofNetwork.name)
  const { identity } = call
  if (identity._tag === "Basic") {
    yield* countWrongToken(service, call, secretHash(identity.password))
  }
  return result
})
