/**
 * The times that shards are held, as nodes tell each other of them: which claim, since when, and
 * which claim was before. By these who asks finds out whether anybody else can have decided on a
 * message (`moving.ts`).
 */
import type { ShardTenure } from "../ports/transport.ts"
import { holdingsMs } from "./limits.ts"

const tenureHeader = "Restante-Held"

/** What a node says of a time that it holds, or held, a shard. */
export interface TenureReport extends ShardTenure {
  /** So long ago it began, ms. */
  readonly forMs: number
}

/** The line of a header that tells of it; nothing where a node stands alone. */
export const holdingLine = (held: ShardTenure | undefined, sinceMs: number): string => {
  if (held === undefined) return ""
  const forMs = Math.floor(performance.now() - sinceMs)
  const { after = 0, claim, orphaned } = held
  return `${tenureHeader}: ${claim} ${forMs} ${after} ${orphaned ? 1 : 0}\r\n`
}

export const holdingOf = (
  headers: { readonly get: (name: string) => string } | undefined
): TenureReport | undefined => {
  const text = headers?.get(tenureHeader) ?? ""
  if (text === "") return undefined
  const [claim = 0, forMs = 0, after = 0, orphaned = 0] = text.split(" ").map(Number)
  return { claim, forMs, after: after === 0 ? undefined : after, orphaned: orphaned === 1 }
}

interface Past {
  readonly line: () => string
  readonly endedMs: number
}

/** The times that are over, for as long as somebody may ask about them. */
export class PastHoldings {
  private readonly past = new Map<number, Past>()

  ended(held: ShardTenure | undefined, sinceMs: number): void {
    if (held === undefined) return
    const endedMs = performance.now()
    for (const [claim, one] of this.past) {
      if (endedMs - one.endedMs > holdingsMs) this.past.delete(claim)
    }
    this.past.set(held.claim, { line: () => holdingLine(held, sinceMs), endedMs })
  }

  /** The line that tells of the time with this claim; undefined when it is not over, or unknown. */
  lineOf(claim: number): string | undefined {
    return this.past.get(claim)?.line()
  }
}
