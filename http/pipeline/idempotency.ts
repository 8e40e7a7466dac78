/**
 * `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header): within 24 h, the same key and
 * request get the same answer, also when the outcome of the first attempt is unknown. The service
 * stores the answer encrypted, with a cipher key derived from the client's key, so that the store
 * alone does not reveal its secrets. The ids and secrets of the request are derived likewise: a
 * repetition finds what an earlier attempt created.
 */
import { type Cause, Effect } from "effect"
import { createCipheriv, createDecipheriv, createHash, createHmac, hkdfSync,
  randomBytes } from "node:crypto"
import type { EarlierDeposit, IdempotencyMessage,
  IdempotencyReply } from "../../actors/idempotency/index.ts"
import { idempotencyKind } from "../../actors/index.ts"
import { type Address, address, isActorId, isRefusal, type Variant } from "../../runtime/index.ts"
import { derivedIds, type IdSource, randomId } from "../auth/credentials/index.ts"
import { anonymousKeyCharsMin, endingPausesMs, idempotencyKeyCharsMax,
  keyRecordBytes } from "../limits.ts"
import type { HttpRequest } from "../wire/index.ts"
import type { PlainAnswer } from "./call.ts"
import { type HandlerFailure, httpError } from "./http-error.ts"
import { ask, askOrRefusal, expectReply, type Service } from "./service.ts"

/** A request with an Idempotency-Key. */
export interface KeyedRequest {
  readonly address: Address
  readonly hash: string
  /** Identifies the request by its body and the header fields that change its meaning. */
  readonly fingerprintOf: (bodyDigest: string) => string
  /** The ids for a request of this fingerprint: another one with the same key gets others. */
  readonly idsFor: (fingerprint: string) => IdSource
  readonly sealKey: Buffer
  /** See {@link KeyOwner}. */
  readonly credentials: string
  readonly attempt: string
}

const quotedKey = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/

const bareKey = /^[\x21\x23-\x5b\x5d-\x7e]+$/

/** The key in the header, a structured-field string or a bare one; undefined for an invalid one. */
const keyIn = (header: string): string | undefined => {
  const text = header.trim()
  const key = quotedKey.exec(text)?.[1] ?? (bareKey.test(text) ? text : undefined)
  return key === undefined || key === "" || key.length > idempotencyKeyCharsMax ? undefined : key
}

/** Whether the request has an Idempotency-Key; other methods than POST ignore it. */
export const hasIdempotencyKey = ({ headers, method }: HttpRequest): boolean =>
  method === "POST" && headers.has("idempotency-key")

/** The header fields that are part of a request's fingerprint (protocol §7). */
const fingerprintFields = ["content-type", "slug", "message-password"]

/** Who may repeat a request, and get its secrets again. */
export interface KeyOwner {
  /** The account, or the credentials of none; undefined for an anonymous client. */
  readonly scope: string | undefined
  /** Identifies the credentials that the answer's secrets are for; "" for an anonymous client. */
  readonly credentials: string
  readonly hasAccount: boolean
}

/**
 * The keyed request of an owner, who alone may repeat it. Fails with 400 for an invalid key, and
 * with 422 for a short one of an anonymous client: whoever guesses it gets the answer. Its actor
 * is beside the actor of the id `beside`, which may signal it.
 */
export const readKeyedRequest = (
  service: Service,
  request: HttpRequest,
  { credentials, scope: owner }: KeyOwner,
  beside: string | undefined
): Effect.Effect<KeyedRequest, HandlerFailure> => {
  const key = keyIn(request.headers.get("idempotency-key") ?? "")
  if (key === undefined) {
    return Effect.fail(httpError(
      "malformed",
      `Idempotency-Key must be a string of 1 to ${idempotencyKeyCharsMax} visible characters`
    ))
  }
  if (owner === undefined && key.length < anonymousKeyCharsMin) {
    return Effect.fail(httpError(
      "unprocessable",
      `an Idempotency-Key without an account must have at least ${anonymousKeyCharsMin} ` +
        "characters that nobody guesses: send a random one, or an account's credentials"
    ))
  }
  const { serviceKey, startId } = service
  const scope = createHash("sha256").update(`${owner ?? "anonymous"}\n${key}`).digest()
  const hash = createHash("sha256").update(scope).digest("base64url")
  const placed = `${beside ?? ""}=${hash}`
  const sealKey = Buffer.from(hkdfSync("sha256", scope, serviceKey, "answer", 32))
  const fields = [
    request.method,
    request.path,
    ...fingerprintFields.map((name) => request.headers.get(name) ?? "")
  ]
  return Effect.succeed({
    // No actor has an id that is not valid.
    address: address(idempotencyKind, beside !== undefined && isActorId(placed) ? placed : hash),
    hash,
    fingerprintOf: (digest) =>
      createHmac("sha256", sealKey).update([...fields, digest].join("\n")).digest("base64url"),
    idsFor: (fingerprint) =>
      derivedIds(serviceKey, `${scope.toString("base64url")}\n${request.path}\n${fingerprint}`),
    sealKey,
    credentials,
    attempt: `${startId}.${randomId()}`
  })
}

const nonceBytes = 12

const tagBytes = 16

/** Whether the answer has secrets: no cache may store it. */
const hasSecrets = ({ headers }: PlainAnswer): boolean =>
  headers.some(([name, value]) => name === "Cache-Control" && value === "no-store")

const seal = ({ credentials, sealKey }: KeyedRequest, answer: PlainAnswer): string => {
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv("aes-256-gcm", sealKey, nonce)
  const { headers, status } = answer
  const body = answer.body === undefined ? undefined : Buffer.from(answer.body).toString("base64")
  const only = hasSecrets(answer) ? credentials : undefined
  const text = JSON.stringify({ status, headers, body, only })
  const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final()])
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString("base64")
}

/** The sealed answer; undefined if it has secrets that are for other credentials. */
const unseal = (
  { credentials, sealKey }: KeyedRequest,
  sealed: string
): PlainAnswer | undefined => {
  const bytes = Buffer.from(sealed, "base64")
  const decipher = createDecipheriv("aes-256-gcm", sealKey, bytes.subarray(0, nonceBytes))
  decipher.setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes))
  const text = decipher.update(bytes.subarray(nonceBytes + tagBytes), undefined, "utf8") +
    decipher.final("utf8")
  // `seal` wrote this text, and the cipher has authenticated it.
  const { body, headers, only, status } = JSON.parse(text) as {
    readonly status: number
    readonly headers: ReadonlyArray<[string, string]>
    readonly body?: string
    readonly only?: string
  }
  if (only !== undefined && only !== credentials) return undefined
  return {
    _tag: "Plain",
    status,
    headers,
    body: body === undefined ? undefined : Buffer.from(body, "base64")
  }
}

const askKey = (service: Service, { address }: KeyedRequest, message: IdempotencyMessage) =>
  ask<IdempotencyReply>(service, address, message)

/**
 * Ends an attempt without an answer to keep. The store that failed the request may fail this too:
 * then it is repeated in the background, so that the key is not held longer than the fault lasts.
 * `ended` runs once the key has certainly ended it.
 */
const endAttempt = (
  service: Service,
  keyed: KeyedRequest,
  message: IdempotencyMessage,
  ended: () => void = () => {}
): Effect.Effect<void> => {
  const ending = Effect.tap(askKey(service, keyed, message), () => Effect.sync(ended))
  // The first success ends the loop.
  const repeating = Effect.forEach(
    endingPausesMs,
    (ms) => Effect.flip(Effect.delay(ending, ms)),
    { discard: true }
  )
  return Effect.catch(Effect.asVoid(ending), (failure) =>
    failure._tag === "HttpError"
      ? Effect.void
      : Effect.asVoid(Effect.forkDetach(Effect.ignore(repeating))))
}

/** A request whose handler runs once for its key. */
export interface KeyedHandling {
  /** Undefined for a stream, whose fingerprint is known after `run` or `drain`. */
  readonly knownFingerprint: string | undefined
  readonly fingerprint: () => string
  /** Reads the rest of the body of a repetition, which is answered without running. */
  readonly drain: Effect.Effect<void, HandlerFailure>
  readonly run: (earlier: EarlierDeposit | undefined) => Effect.Effect<PlainAnswer, HandlerFailure>
  /** Counts what the key stores for a client without an account; fails with 507. */
  readonly charge?: ((bytes: number) => Effect.Effect<KeyCharge, HandlerFailure>) | undefined
}

/** Bytes that were counted for a client. */
export interface KeyCharge {
  /** They were certainly not stored. */
  readonly giveBack: () => void
}

/** Nothing is counted. */
export const noCharge: KeyCharge = { giveBack: () => {} }

/**
 * Whether a request that failed so has certainly changed nothing. A failure of the service leaves
 * that open: the store may have kept a commit whose reply is lost. `MessageTooLarge` leaves it open
 * too, since the message may be the reply.
 */
const isRefused = (failure: HandlerFailure): boolean =>
  failure._tag === "HttpError"
    ? failure.problem.status < 500 || failure.changedNothing === true
    : failure._tag === "BlobTooLarge" || failure._tag === "BlobAborted" ||
      failure._tag === "ValueTooLarge"

const wasRefused = ({ reasons }: Cause.Cause<HandlerFailure>): boolean =>
  reasons.every((reason) => reason._tag === "Fail" && isRefused(reason.error))

/** Whether this attempt may hold the key, although its `Begin` failed. */
const mayHaveBegun = ({ reasons }: Cause.Cause<HandlerFailure>): boolean =>
  reasons.some((reason) =>
    reason._tag !== "Fail" || reason.error._tag === "AskTimeout" ||
    reason.error._tag === "StorageUnavailable"
  )

/**
 * Counts the record of a key. When there is no room, it asks the key whether it has a record, which
 * was counted before and needs none: such a key refuses the end of an attempt that has not begun,
 * and one without a record does not.
 */
const chargeRecord = (
  service: Service,
  keyed: KeyedRequest,
  { charge }: KeyedHandling
): Effect.Effect<KeyCharge, HandlerFailure> => {
  if (charge === undefined) return Effect.succeed(noCharge)
  const probe: IdempotencyMessage = { _tag: "Abandon", attempt: keyed.attempt }
  return Effect.catchTag(
    charge(keyRecordBytes),
    "HttpError",
    (failure) =>
      Effect.flatMap(
        askOrRefusal<IdempotencyReply>(service, keyed.address, probe),
        (reply) => isRefusal(reply) ? Effect.succeed(noCharge) : Effect.fail(failure)
      )
  )
}

/** The reply to a new attempt. Only the first one of a key has stored a record for its charge. */
const beginAttempt = Effect.fnUntraced(function*(
  service: Service,
  keyed: KeyedRequest,
  fingerprint: string | undefined,
  { giveBack }: KeyCharge
): Effect.fn.Return<IdempotencyReply, HandlerFailure> {
  const { attempt } = keyed
  const known = fingerprint === undefined ? {} : { fingerprint }
  // This attempt never runs. If the store keeps its `Begin` after the `Abandon`, the attempt holds
  // the key until `idempotencyAttemptMaxMs` have passed.
  const abandon = endAttempt(service, keyed, { _tag: "Abandon", attempt })
  const begun = yield* Effect.onError(
    askKey(service, keyed, { _tag: "Begin", attempt, ...known }),
    (cause) => mayHaveBegun(cause) ? Effect.forkDetach(abandon) : Effect.sync(giveBack)
  )
  if (begun._tag !== "Proceed" || begun.earlier !== undefined) giveBack()
  return begun
})

/** Stores the answer; beyond `keyRecordBytes` it counts for a client without an account. */
const complete = (
  service: Service,
  keyed: KeyedRequest,
  { charge }: KeyedHandling,
  done: Variant<IdempotencyMessage, "Complete">
): Effect.Effect<unknown, HandlerFailure> => {
  const storing = askOrRefusal<IdempotencyReply>(service, keyed.address, done)
  const bytes = done.sealed.length - keyRecordBytes
  return charge === undefined || bytes <= 0 ? storing : Effect.andThen(charge(bytes), storing)
}

/**
 * Runs a request once for its key. Fails with 409 while another attempt runs and with 422 if the
 * key was used with another request. A request that was refused frees its key.
 */
export const runOnce = Effect.fnUntraced(function*(
  service: Service,
  keyed: KeyedRequest,
  handling: KeyedHandling
): Effect.fn.Return<PlainAnswer, HandlerFailure> {
  const { attempt } = keyed
  const { drain, fingerprint, knownFingerprint, run } = handling
  const charged = yield* chargeRecord(service, keyed, handling)
  const begun = yield* beginAttempt(service, keyed, knownFingerprint, charged)
  if (begun._tag === "InProgress") {
    return yield* httpError("conflict", "another request with this Idempotency-Key is running", [
      ["Retry-After", "1"]
    ])
  }
  if (begun._tag === "OtherRequest") return yield* otherRequest
  if (begun._tag === "Done") {
    yield* drain
    if (fingerprint() !== begun.fingerprint) return yield* otherRequest
    return unseal(keyed, begun.sealed) ?? (yield* othersSecrets)
  }
  const { earlier } = expectReply(begun, "Proceed")
  const known = knownFingerprint === undefined ? {} : { fingerprint: knownFingerprint }
  const interrupt = endAttempt(service, keyed, { _tag: "Interrupt", attempt, ...known })
  const giveBack = earlier === undefined ? charged.giveBack : noCharge.giveBack
  const abandon = endAttempt(service, keyed, { _tag: "Abandon", attempt }, giveBack)
  const answer = yield* Effect.onError(
    run(earlier),
    (cause) => wasRefused(cause) ? abandon : interrupt
  )
  if (answer.status >= 400) {
    yield* answer.status >= 500 ? interrupt : abandon
    return answer
  }
  const request = { attempt, fingerprint: fingerprint() }
  const done = { _tag: "Complete", ...request, sealed: seal(keyed, answer) } as const
  // The actor refuses if another attempt replaced this slow one; both created the same. If the
  // answer cannot be stored, as one that is too large, a repetition finds what was created.
  const completed = Effect.onError(
    complete(service, keyed, handling, done),
    () => endAttempt(service, keyed, { _tag: "Interrupt", ...request })
  )
  yield* Effect.ignore(completed)
  return answer
})

/** The failure of a repetition with other credentials of the account than those of the request. */
const othersSecrets = httpError(
  "conflict",
  "another token of this account has sent the request, and the answer has secrets, which that " +
    "token alone gets again; read the resource, or make new secrets"
)

/** The failure of a request whose Idempotency-Key was used with another one. */
export const otherRequest = httpError(
  "idempotency-key-reuse",
  "this key was used with another request"
)
