/**
 * Idempotency-Key (draft-ietf-httpapi-idempotency-key-header): the same key and body again within
 * 24 h gets the same answer. The answer is kept sealed with a key that follows from the client's
 * own, so that the secrets in it are not readable from the store; ids and secrets of the request
 * are derived likewise, so that a repetition after a crash finds what the first attempt left.
 */
import { Effect } from "effect"
import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from "node:crypto"
import type { IdempotencyMessage, IdempotencyReply } from "../actors/idempotency/index.ts"
import { idempotencyKind } from "../actors/index.ts"
import { type Address, address } from "../runtime/index.ts"
import { derivedIds, type IdSource, randomId } from "./auth/credentials/index.ts"
import { authenticate, hasIssuerToken } from "./auth/index.ts"
import { idempotencyKeyCharsMax } from "./limits.ts"
import { ask, askOrRefusal, type Call, type HandlerFailure, httpError, type Rendered,
  type Service } from "./pipeline/index.ts"

/** One keyed request: what it is known by, and where its ids come from. */
export interface Keyed {
  readonly address: Address
  /** Ids for a body of this digest: another body under the same key gets others. */
  readonly idsFor: (bodyDigest: string) => IdSource
  readonly sealKey: Buffer
  readonly attempt: string
}

const quoted = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/

const bare = /^[\x21\x23-\x5b\x5d-\x7e]+$/

/** The key of the field: a structured-field string, or bare; fails with 400. */
const keyOf = (field: string): string | undefined => {
  const text = field.trim()
  const key = quoted.exec(text)?.[1] ?? (bare.test(text) ? text : undefined)
  return key === undefined || key === "" || key.length > idempotencyKeyCharsMax ? undefined : key
}

/**
 * Whose key it is. An issuer's tokens are new every few minutes, so that with them the key is the
 * account's, with the roles that it has now.
 */
const holderOf = (service: Service, call: Call): Effect.Effect<string, HandlerFailure> =>
  hasIssuerToken(service, call)
    ? Effect.map(
      authenticate(service, call),
      (account) => `vouched ${account?.name} ${account?.roles.join(" ")}`
    )
    : Effect.succeed(call.request.headers.get("authorization") ?? "")

/** The keyed request, undefined without the field; 400 for a field that is none. */
export const keyedRequest = (
  service: Service,
  call: Call
): Effect.Effect<Keyed | undefined, HandlerFailure> => {
  const { request } = call
  const field = request.headers.get("idempotency-key")
  if (field === undefined || request.method !== "POST") return Effect.succeed(undefined)
  const key = keyOf(field)
  if (key === undefined) {
    return Effect.fail(httpError(
      "malformed",
      `Idempotency-Key must be a string of 1 to ${idempotencyKeyCharsMax} visible characters`
    ))
  }
  return Effect.map(
    holderOf(service, call),
    (holder) => keyedBy(service, `${holder}\n${request.path}\n${key}`)
  )
}

const keyedBy = (service: Service, text: string): Keyed => {
  const scope = createHash("sha256").update(text).digest()
  return {
    address: address(idempotencyKind, createHash("sha256").update(scope).digest("base64url")),
    idsFor: (digest) => derivedIds(service.serviceKey, `${scope.toString("base64url")}\n${digest}`),
    sealKey: Buffer.from(hkdfSync("sha256", scope, service.serviceKey, "answer", 32)),
    attempt: `${service.startId}.${randomId()}`
  }
}

const nonceBytes = 12

const tagBytes = 16

const seal = (key: Buffer, answer: Rendered): string => {
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv("aes-256-gcm", key, nonce)
  const body = answer.body === undefined ? undefined : Buffer.from(answer.body).toString("base64")
  const text = JSON.stringify({ status: answer.status, headers: answer.headers, body })
  const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final()])
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString("base64")
}

const unseal = (key: Buffer, sealed: string): Rendered => {
  const bytes = Buffer.from(sealed, "base64")
  const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, nonceBytes))
  decipher.setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes))
  const text = decipher.update(bytes.subarray(nonceBytes + tagBytes), undefined, "utf8") +
    decipher.final("utf8")
  // This service's own text, sealed by `seal` and authenticated.
  const { body, headers, status } = JSON.parse(text) as {
    readonly status: number
    readonly headers: ReadonlyArray<[string, string]>
    readonly body?: string
  }
  return { status, headers, body: body === undefined ? undefined : Buffer.from(body, "base64") }
}

const tell = (service: Service, keyed: Keyed, message: IdempotencyMessage) =>
  ask<IdempotencyReply>(service, keyed.address, message)

/**
 * Runs a request once for its key. `digest` is that of its body, read to the end by `run` or, for
 * a repetition, by `drain`.
 */
export const once = Effect.fnUntraced(function*(
  service: Service,
  keyed: Keyed,
  digest: () => string,
  drain: Effect.Effect<void, HandlerFailure>,
  run: Effect.Effect<Rendered, HandlerFailure>
): Effect.fn.Return<Rendered, HandlerFailure> {
  const { attempt } = keyed
  const begun = yield* tell(service, keyed, { _tag: "Begin", attempt })
  if (begun._tag === "InProgress") {
    return yield* httpError("conflict", "a request with this Idempotency-Key is under way", [
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
  const abandon = Effect.ignore(tell(service, keyed, { _tag: "Abandon", attempt }))
  const answer = yield* Effect.onError(run, () => abandon)
  if (answer.status >= 300) {
    yield* abandon
    return answer
  }
  const sealed = seal(keyed.sealKey, answer)
  const done: IdempotencyMessage = { _tag: "Complete", attempt, bodyDigest: digest(), sealed }
  // Another attempt may have taken over from one this slow; what was created is the same.
  yield* askOrRefusal<IdempotencyReply>(service, keyed.address, done)
  return answer
})
