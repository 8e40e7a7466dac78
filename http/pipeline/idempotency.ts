/**
 * `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header): within 24 h, the same key and body
 * get the same answer. The service stores the answer encrypted, with a cipher key derived from the
 * client's key, so that the store alone does not reveal its secrets. The ids and secrets of the
 * request are derived likewise: a repetition after a crash finds what the first attempt created.
 */
import { Effect } from "effect"
import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from "node:crypto"
import type { IdempotencyMessage, IdempotencyReply } from "../../actors/idempotency/index.ts"
import { idempotencyKind } from "../../actors/index.ts"
import { type Address, address } from "../../runtime/index.ts"
import { derivedIds, type IdSource, randomId } from "../auth/credentials/index.ts"
import { idempotencyKeyCharsMax } from "../limits.ts"
import type { HttpRequest } from "../wire/index.ts"
import type { PlainAnswer } from "./call.ts"
import { type HandlerFailure, httpError } from "./http-error.ts"
import { ask, askOrRefusal, type Service } from "./service.ts"

/** A request with an Idempotency-Key. */
export interface KeyedRequest {
  readonly address: Address
  /** The ids for a body of this digest: another body with the same key gets others. */
  readonly idsFor: (bodyDigest: string) => IdSource
  readonly sealKey: Buffer
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

/** The keyed request of `caller`, who alone may repeat it; fails with 400 for an invalid key. */
export const readKeyedRequest = (
  service: Service,
  request: HttpRequest,
  caller: string
): Effect.Effect<KeyedRequest, HandlerFailure> => {
  const key = keyIn(request.headers.get("idempotency-key") ?? "")
  if (key === undefined) {
    return Effect.fail(httpError(
      "malformed",
      `Idempotency-Key must be a string of 1 to ${idempotencyKeyCharsMax} visible characters`
    ))
  }
  const { serviceKey, startId } = service
  const scope = createHash("sha256").update(`${caller}\n${request.path}\n${key}`).digest()
  return Effect.succeed({
    address: address(idempotencyKind, createHash("sha256").update(scope).digest("base64url")),
    idsFor: (digest) => derivedIds(serviceKey, `${scope.toString("base64url")}\n${digest}`),
    sealKey: Buffer.from(hkdfSync("sha256", scope, serviceKey, "answer", 32)),
    attempt: `${startId}.${randomId()}`
  })
}

const nonceBytes = 12

const tagBytes = 16

const seal = (key: Buffer, answer: PlainAnswer): string => {
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv("aes-256-gcm", key, nonce)
  const body = answer.body === undefined ? undefined : Buffer.from(answer.body).toString("base64")
  const text = JSON.stringify({ status: answer.status, headers: answer.headers, body })
  const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final()])
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString("base64")
}

const unseal = (key: Buffer, sealed: string): PlainAnswer => {
  const bytes = Buffer.from(sealed, "base64")
  const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, nonceBytes))
  decipher.setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes))
  const text = decipher.update(bytes.subarray(nonceBytes + tagBytes), undefined, "utf8") +
    decipher.final("utf8")
  // `seal` wrote this text, and the cipher has authenticated it.
  const { body, headers, status } = JSON.parse(text) as {
    readonly status: number
    readonly headers: ReadonlyArray<[string, string]>
    readonly body?: string
  }
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
 * Runs a request once for its key. `digest` is the digest of the body after `run`, or after `drain`
 * for a repetition, which answers without running. Fails with 409 while another attempt runs and
 * with 422 if the key was used with another body.
 */
export const runOnce = Effect.fnUntraced(function*(
  service: Service,
  keyed: KeyedRequest,
  digest: () => string,
  drain: Effect.Effect<void, HandlerFailure>,
  run: Effect.Effect<PlainAnswer, HandlerFailure>
): Effect.fn.Return<PlainAnswer, HandlerFailure> {
  const { attempt } = keyed
  const begun = yield* askKey(service, keyed, { _tag: "Begin", attempt })
  if (begun._tag === "InProgress") {
    return yield* httpError("conflict", "another request with this Idempotency-Key is running", [
      ["Retry-After", "1"]
    ])
  }
  if (begun._tag === "Done") {
    yield* drain
    if (digest() !== begun.bodyDigest) {
      return yield* httpError("idempotency-key-reuse", "this key was used with another body")
    }
    return unseal(keyed.sealKey, begun.sealed)
  }
  const abandon = Effect.ignore(askKey(service, keyed, { _tag: "Abandon", attempt }))
  const answer = yield* Effect.onError(run, () => abandon)
  if (answer.status >= 300) {
    yield* abandon
    return answer
  }
  const sealed = seal(keyed.sealKey, answer)
  const done: IdempotencyMessage = { _tag: "Complete", attempt, bodyDigest: digest(), sealed }
  // The actor refuses if another attempt replaced this slow one; both created the same.
  yield* askOrRefusal<IdempotencyReply>(service, keyed.address, done)
  return answer
})
