/**
 * Signed messages of clients that are no nodes. A node decides each once: nobody grants a second
 * copy of them.
 */
import { NoOwner, Overloaded } from "../../actor/index.ts"
import { answeredKeepMs, envelopeAgeMaxMs, envelopeSkewMs, foreignEnvelopesMax,
  noOwnerRetryMs } from "../../limits.ts"
import { EnvelopeRefused, type EnvelopeSignature, isFresh } from "./envelopes.ts"

/** The codes of received messages, in two generations of `answeredKeepMs`. */
export class ReceivedCodes {
  private current = new Set<string>()
  private before = new Set<string>()
  private rotatedMs = 0

  /** Of the current generation. */
  get size(): number {
    return this.current.size
  }

  has(code: string): boolean {
    this.rotate()
    return this.current.has(code) || this.before.has(code)
  }

  add(code: string): void {
    this.rotate()
    this.current.add(code)
  }

  private rotate(): void {
    const nowMs = performance.now()
    if (nowMs - this.rotatedMs <= answeredKeepMs) return
    this.before = nowMs - this.rotatedMs > 2 * answeredKeepMs ? new Set() : this.current
    this.current = new Set()
    this.rotatedMs = nowMs
  }
}

export class ForeignEnvelopes {
  /** Older messages are not timely. */
  private readonly received = new ReceivedCodes()

  /** Why the node does not decide the message; undefined if it does. Call it once for a message. */
  refusalOf(
    key: string,
    signature: EnvelopeSignature,
    timely: boolean
  ): EnvelopeRefused | NoOwner | Overloaded | undefined {
    const { code } = signature
    if (!timely) return this.untimely(key, signature)
    if (this.received.has(code)) {
      return new EnvelopeRefused({ key, detail: "the message was received before: sign it again" })
    }
    if (this.received.size >= foreignEnvelopesMax) {
      return new Overloaded({ key, retryAfterMs: answeredKeepMs })
    }
    this.received.add(code)
    return undefined
  }

  private untimely(key: string, signature: EnvelopeSignature): EnvelopeRefused | NoOwner {
    // An earlier owner of the shard may have decided a message that is older than this tenure.
    if (isFresh(signature)) return new NoOwner({ key, retryAfterMs: noOwnerRetryMs })
    const detail =
      `the time in Restante-Auth is more than ${envelopeAgeMaxMs / 1_000} s behind the ` +
      `clock of the node, or ${
        envelopeSkewMs / 1_000
      } s ahead of it: set the clock, and sign the ` +
      "message again"
    return new EnvelopeRefused({ key, detail })
  }
}
