/**
 * Attempts at what a person may have chosen: message passwords (protocol §1.1), and the operator's
 * token. Each is in the count of its address while it is checked, and a password in that of its
 * network, too: many at once are no more guesses than one after the other.
 */
import { Clock, Effect } from "effect"
import { passwordTurnMs, passwordWaitMs, sha256 } from "../../actors/index.ts"
import type { ThrottleReply } from "../../actors/throttle/index.ts"
import { type Call, type HandlerFailure, httpError, type Service } from "../pipeline/index.ts"
import { secretHash } from "./credentials/index.ts"
import { askCounter, countWrongToken, endTokenAttempt, type ThrottleCounter, tokensOf, tooManyError,
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
  "too many passwords or tokens from this address or its network are being checked: try again in " +
    "1 s",
  [["Retry-After", "1"]]
)

type Checks<A> = Pick<PasswordAttempt<A>, "check" | "isWrong">

interface CheckedAttempt<A> {
  readonly result: A
}

/** Counts the attempt while the check runs. A wrong one stays counted; a right one does not. */
const countWhile = <A>(
  service: Service,
  counter: ThrottleCounter,
  attempt: string,
  { check, isWrong }: Checks<A>
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

/**
 * Waits of one attempt for its turns. They are over after `passwordWaitMs` together, so that an
 * attempt still counts while it is checked, and as soon as the client has left.
 */
interface TurnWait {
  readonly isOver: Effect.Effect<boolean>
}

const turnWaitOf = ({ exchange }: Call): Effect.Effect<TurnWait> =>
  Effect.map(Clock.currentTimeMillis, (fromMs) => ({
    isOver: Effect.map(
      Clock.currentTimeMillis,
      (nowMs) => exchange.isAborted || nowMs - fromMs >= passwordWaitMs
    )
  }))

/**
 * Repeats `begin` until it returns a result, which it does as soon as fewer attempts are being
 * checked than may be wrong. Fails with 429 when the wait is over.
 */
const inTurn = Effect.fnUntraced(function*<A>(
  { isOver }: TurnWait,
  begin: Effect.Effect<A | undefined, HandlerFailure>
): Effect.fn.Return<A, HandlerFailure> {
  // The number of turns is bounded also where the clock is set back.
  for (let waitedMs = 0; waitedMs <= passwordWaitMs; waitedMs += passwordTurnMs) {
    const begun = yield* begin
    if (begun !== undefined) return begun
    if (yield* isOver) break
    yield* Effect.sleep(passwordTurnMs)
  }
  return yield* turnError
})

/** {@link countWhile} in its turn. */
const countInTurn = <A>(
  service: Service,
  wait: TurnWait,
  counter: ThrottleCounter,
  attempt: string,
  checks: Checks<A>
): Effect.Effect<A, HandlerFailure> =>
  Effect.map(
    inTurn(wait, Effect.suspend(() => countWhile(service, counter, attempt, checks))),
    ({ result }) => result
  )

/** Fails with 429 as {@link countInTurn} does; the attempt itself is counted if it `begins`. */
const passInTurn = (
  service: Service,
  wait: TurnWait,
  counter: ThrottleCounter,
  begins: { readonly begins?: string } = {}
): Effect.Effect<void, HandlerFailure> => {
  const asking = Effect.suspend(() =>
    askCounter(service, counter, { _tag: "Check", of: counter.of, ...begins })
  )
  const passing = Effect.flatMap(
    asking,
    ({ isFull, waitMs }): Effect.Effect<true | undefined, HandlerFailure> =>
      waitMs > 0
        ? Effect.fail(tooManyError(counter, waitMs))
        : Effect.succeed(isFull === true ? undefined : true)
  )
  return Effect.asVoid(inTurn(wait, passing))
}

/**
 * Checks a password that was right at this node recently. This takes one message to the throttle,
 * since the attempt itself is not counted. It asks the network's count only after wrong passwords.
 */
const checkKnown = Effect.fnUntraced(function*<A>(
  service: Service,
  call: Call,
  wait: TurnWait,
  key: string,
  { check, isWrong }: PasswordAttempt<A>
): Effect.fn.Return<A, HandlerFailure> {
  const { credentialCache } = service
  const { ofAddress, ofNetwork } = countersOf(service, call)
  yield* passInTurn(service, wait, ofAddress)
  if (credentialCache.isSuspect(ofNetwork.name)) yield* passInTurn(service, wait, ofNetwork)
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
  const wait = yield* turnWaitOf(call)
  const { ofAddress, ofNetwork } = countersOf(service, call)
  const { isRight, isWrong } = tried
  const result = credentialCache.isKnownPassword(key)
    ? yield* checkKnown(service, call, wait, key, tried)
    : yield* countInTurn(service, wait, ofAddress, attempt, {
      check: countInTurn(service, wait, ofNetwork, attempt, tried),
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

/**
 * Checks a token that a person may have chosen; undefined for a wrong one. It counts for its
 * address while it is checked, and until the wrong one is counted as that or `endTokenAttempt` ends
 * it. Fails with 429 and Retry-After after too many.
 */
export const checkChosenToken = Effect.fnUntraced(function*<A>(
  service: Service,
  call: Call,
  tokenHash: string,
  check: Effect.Effect<A | undefined, HandlerFailure>
): Effect.fn.Return<A | undefined, HandlerFailure> {
  const wait = yield* turnWaitOf(call)
  const begins = tokenHash.slice(0, tryChars)
  yield* passInTurn(service, wait, tokensOf(service, call), { begins })
  // Without a result nothing is known of the token.
  const found = yield* Effect.tapError(check, () => endTokenAttempt(service, call, tokenHash))
  if (found !== undefined) yield* endTokenAttempt(service, call, tokenHash)
  return found
})
