/**
 * The body of a request. Reading must begin before the server's callback returns, but a handler
 * needs the body later. It is therefore collected (a document) or buffered with back-pressure (a
 * stream) from the start.
 */
import { Effect } from "effect"
import { createHash } from "node:crypto"
import type { Exchange } from "./exchange.ts"
import type { BodyFault } from "./request.ts"

export interface RequestBody {
  /** The whole document, or why it did not arrive. */
  readonly bytes: Effect.Effect<Uint8Array | BodyFault>
  /** The body as it arrives, for one reader; throws a BodyError if it ends early. */
  readonly stream: AsyncIterable<Uint8Array>
  /** Why the stream ended early; undefined if it did not. */
  readonly fault: () => BodyFault | undefined
  /** SHA-256 in base64url; for a stream only after it was read to its end. */
  readonly digest: () => string
}

/** Ignores the body, if there is one. */
export const noBody: RequestBody = {
  bytes: Effect.succeed(new Uint8Array()),
  stream: { async *[Symbol.asyncIterator]() {} },
  fault: () => undefined,
  digest: () => createHash("sha256").digest("base64url")
}

/**
 * Collects a document of at most `bytesMax`; see {@link Exchange.bytes}. `arrived` gets the bytes
 * of a whole one.
 */
export const documentBody = (
  exchange: Exchange,
  bytesMax: number,
  networkOf: () => string,
  arrived: (bytes: number) => void
): RequestBody => {
  let outcome: Uint8Array | BodyFault | undefined
  const arrival = new Promise<Uint8Array | BodyFault>((resolve) => {
    exchange.bytes(bytesMax, networkOf, (body) => {
      outcome = body
      if (body instanceof Uint8Array) arrived(body.length)
      resolve(body)
    })
  })
  return {
    ...noBody,
    bytes: Effect.promise(() => arrival),
    digest: () =>
      createHash("sha256").update(outcome instanceof Uint8Array ? outcome : "").digest("base64url")
  }
}

/** Streams a body of at most `bytesMax`; computes its digest only if `wantsDigest`. */
export const streamBody = (
  exchange: Exchange,
  bytesMax: number,
  networkOf: () => string,
  wantsDigest: boolean
): RequestBody => {
  const upload = exchange.stream(bytesMax, networkOf)
  const hash = createHash("sha256")
  async function* hashed(): AsyncGenerator<Uint8Array> {
    for await (const chunk of upload) {
      hash.update(chunk)
      yield chunk
    }
  }
  return {
    ...noBody,
    stream: wantsDigest ? hashed() : upload,
    fault: () => upload.fault,
    digest: () => hash.digest("base64url")
  }
}
