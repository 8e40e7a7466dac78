/**
 * The body of a request. Reading must begin before the server's callback returns, but a handler
 * needs the body later. It is therefore collected (a document) or buffered with back-pressure (a
 * stream) from the start.
 */
import { Effect } from "effect"
import { createHash } from "node:crypto"
import type { Exchange } from "./exchange.ts"
import { BodyError, type BodyFault } from "./request.ts"

export interface RequestBody {
  /** The whole document, or why it did not arrive. */
  readonly bytes: Effect.Effect<Uint8Array | BodyFault>
  /** The body as it arrives, for one reader; throws a BodyError if it ends early. */
  readonly stream: AsyncIterable<Uint8Array>
  /** Why the stream ended early. */
  readonly fault: () => BodyFault["_tag"] | undefined
  /** SHA-256 in base64url; for a stream only after it was read to its end. */
  readonly digest: () => string
}

const none: AsyncIterable<Uint8Array> = {
  [Symbol.asyncIterator]: () => ({ next: () => Promise.resolve({ done: true, value: undefined }) })
}

/** Ignores the body, if there is one. */
export const noBody: RequestBody = {
  bytes: Effect.succeed(new Uint8Array()),
  stream: none,
  fault: () => undefined,
  digest: () => createHash("sha256").digest("base64url")
}

/** Collects a document of at most `bytesMax`. */
export const documentBody = (exchange: Exchange, bytesMax: number): RequestBody => {
  let outcome: Uint8Array | BodyFault | undefined
  let wake: (() => void) | undefined
  exchange.bytes(bytesMax, (body) => {
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
    fault: () => undefined,
    digest: () =>
      createHash("sha256").update(outcome instanceof Uint8Array ? outcome : "").digest("base64url")
  }
}

/** Streams a body of at most `bytesMax`; computes its digest only if `wantsDigest`. */
export const streamBody = (
  exchange: Exchange,
  bytesMax: number,
  wantsDigest: boolean
): RequestBody => {
  const hash = createHash("sha256")
  let fault: BodyFault["_tag"] | undefined
  const noteFault = (error: unknown): unknown => {
    fault = error instanceof BodyError ? error._tag : "Aborted"
    return error
  }
  let source: AsyncIterable<Uint8Array> = none
  try {
    source = exchange.stream(bytesMax)
  } catch (error) {
    noteFault(error)
  }
  async function* watched(): AsyncGenerator<Uint8Array> {
    if (fault !== undefined) throw new BodyError(fault)
    try {
      for await (const chunk of source) {
        if (wantsDigest) hash.update(chunk)
        yield chunk
      }
    } catch (error) {
      throw noteFault(error)
    }
  }
  return {
    bytes: noBody.bytes,
    stream: watched(),
    fault: () => fault,
    digest: () => hash.digest("base64url")
  }
}
