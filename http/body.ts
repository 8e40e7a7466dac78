/**
 * A request's body. Reading must begin before the server's callback returns, while a handler asks
 * for it later: so it is collected (a document) or buffered with back-pressure (a stream) from the
 * start.
 */
import { createHash } from "node:crypto"
import { Effect } from "effect"
import { documentBytesMax } from "./limits.ts"
import type { BodyFault, Exchange } from "./server.ts"

export interface Body {
  /** The whole document, or why there is none. */
  readonly bytes: Effect.Effect<Uint8Array | BodyFault>
  /** The body as it arrives; throws a BodyError when it breaks off. Read by one reader. */
  readonly stream: AsyncIterable<Uint8Array>
  /** SHA-256 of what was read, base64url; of a stream, when it has been read to its end. */
  readonly digest: () => string
}

const none: AsyncIterable<Uint8Array> = {
  [Symbol.asyncIterator]: () => ({ next: () => Promise.resolve({ done: true, value: undefined }) })
}

/** No body is wanted; what is sent all the same is passed over. */
export const noBody: Body = {
  bytes: Effect.succeed(new Uint8Array()),
  stream: none,
  digest: () => createHash("sha256").digest("base64url")
}

/** Collects a document. */
export const documentBody = (exchange: Exchange): Body => {
  let outcome: Uint8Array | BodyFault | undefined
  let wake: (() => void) | undefined
  exchange.bytes(documentBytesMax, (body) => {
    outcome = body
    wake?.()
  })
  return {
    bytes: Effect.callback((resume) => {
      const arrived = (): void => {
        if (outcome !== undefined) resume(Effect.succeed(outcome))
      }
      if (outcome === undefined) wake = arrived
      else arrived()
    }),
    stream: none,
    digest: () =>
      createHash("sha256").update(outcome instanceof Uint8Array ? outcome : "").digest("base64url")
  }
}

async function* hashed(
  source: AsyncIterable<Uint8Array>,
  hash: { update: (chunk: Uint8Array) => unknown }
): AsyncGenerator<Uint8Array> {
  for await (const chunk of source) {
    hash.update(chunk)
    yield chunk
  }
}

const broken = (error: unknown): AsyncIterable<Uint8Array> => ({
  [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(error) })
})

/** Streams a body of at most `bytesMax`; its digest is only taken when `wantsDigest`. */
export const streamBody = (exchange: Exchange, bytesMax: number, wantsDigest: boolean): Body => {
  const hash = createHash("sha256")
  let source: AsyncIterable<Uint8Array>
  try {
    source = exchange.stream(bytesMax)
  } catch (error) {
    source = broken(error)
  }
  return {
    bytes: noBody.bytes,
    stream: wantsDigest ? hashed(source, hash) : source,
    digest: () => hash.digest("base64url")
  }
}
