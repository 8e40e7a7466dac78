/**
 * Refused operations, counted: the audit log has the first of a client within an hour, the tenth,
 * the hundredth and so on, and few of all clients together. In bounded memory.
 */
import { LRUCache } from "lru-cache"
import { auditedRefusalsMax, refusalClientsMax, refusalWindowMs } from "../limits.ts"

interface Counted {
  fromMs: number
  count: number
}

/** A refusal that is to be recorded. */
export interface CountedRefusal {
  /** How many refusals the client had in this hour. */
  readonly count: number
  /** Refusals of any client that were not recorded since the last recorded one. */
  readonly omitted: number
}

export class RefusalCounter {
  private clients: LRUCache<string, Counted> | undefined
  private readonly all: Counted = { fromMs: 0, count: 0 }
  private omitted = 0

  /** Counts a refusal of a client; undefined if it is not to be recorded. */
  count(client: string, nowMs: number): CountedRefusal | undefined {
    const clients = this.clients ??= new LRUCache({ max: refusalClientsMax })
    const counted = clients.get(client) ?? { fromMs: nowMs, count: 0 }
    clients.set(client, counted)
    advance(counted, nowMs)
    counted.count++
    if (!/^10*$/.test(String(counted.count))) {
      this.omitted++
      return undefined
    }
    advance(this.all, nowMs)
    if (this.all.count >= auditedRefusalsMax) {
      this.omitted++
      return undefined
    }
    this.all.count++
    const { omitted } = this
    this.omitted = 0
    return { count: counted.count, omitted }
  }
}

/** Begins the next window when this one is over, or the clock was set back. */
const advance = (counted: Counted, nowMs: number): void => {
  if (nowMs >= counted.fromMs && nowMs < counted.fromMs + refusalWindowMs) return
  counted.fromMs = nowMs
  counted.count = 0
}
