/**
 * The resources that all attempts of a node share: the memory budget, recent documents, running
 * attempts and recent outcomes.
 */
import { LRUCache } from "lru-cache"
import { randomBytes } from "node:crypto"
import { cachedDocumentCharsMax, cachedDocumentsCharsMax, documentCharsInFlightMax,
  knownOutcomesCharsMax } from "../limits.ts"
import { ReportsLookup } from "../failure-reports/index.ts"
import type { DeliveryOutcome, ExchangeRecord } from "../outbound/index.ts"

/** Bounds the characters of all documents that attempts of this node hold in memory. */
export class MemoryBudget {
  private used = 0

  /** Reserves memory; false if the budget is exhausted. One document of any size always fits. */
  reserve(chars: number): boolean {
    if (this.used > 0 && this.used + chars > documentCharsInFlightMax) return false
    this.used += chars
    return true
  }

  release(chars: number): void {
    this.used -= chars
  }
}

/** Running attempts of one notification, and what has happened to it since they began. */
interface RunningOfOne {
  readonly attempts: Set<string>
  isRemoved: boolean
  /** The last edition, if a follow-up was stored since. */
  edition: number
}

/** The running attempts of this node by notification, and which of them nobody wants any more. */
class RunningAttempts {
  private readonly byId = new Map<string, RunningOfOne>()

  /** False if the attempt is already running. */
  begin(id: string, attempt: string): boolean {
    const running = this.byId.get(id)
    if (running === undefined) {
      this.byId.set(id, { attempts: new Set([attempt]), isRemoved: false, edition: 0 })
      return true
    }
    if (running.attempts.has(attempt)) return false
    running.attempts.add(attempt)
    return true
  }

  end(id: string, attempt: string): void {
    const running = this.byId.get(id)
    if (running?.attempts.delete(attempt) === true && running.attempts.size === 0) {
      this.byId.delete(id)
    }
  }

  markRemoved(id: string): void {
    const running = this.byId.get(id)
    if (running !== undefined) running.isRemoved = true
  }

  markRevised(id: string, edition: number): void {
    const running = this.byId.get(id)
    if (running !== undefined) running.edition = Math.max(running.edition, edition)
  }

  /** Whether an attempt of this edition began before a follow-up was stored. */
  isRevised(id: string, edition: number): boolean {
    return (this.byId.get(id)?.edition ?? 0) > edition
  }

  isRemoved(id: string): boolean {
    return this.byId.get(id)?.isRemoved === true
  }
}

const spanIdBytes = 8

const spanIdsPerDraw = 256

/** Makes span ids of W3C Trace Context. One call draws the random bytes of many ids. */
class SpanIds {
  private bytes = Buffer.alloc(0)
  private offset = 0

  next(): string {
    if (this.offset >= this.bytes.length) {
      this.bytes = randomBytes(spanIdBytes * spanIdsPerDraw)
      this.offset = 0
    }
    return this.bytes.toString("hex", this.offset, this.offset += spanIdBytes)
  }
}

/** The outcome of a completed attempt. */
export interface KnownOutcome {
  readonly outcome: Exclude<DeliveryOutcome, { readonly _tag: "Deferred" }>
  /** When it was made, without what was exchanged; undefined if nothing was sent. */
  readonly exchange: ExchangeRecord | undefined
}

/** Characters of an outcome's key, fields and times, without its Location or problem. */
const outcomeBaseChars = 128

const outcomeChars = ({ outcome }: KnownOutcome): number => {
  const text = outcome._tag === "Delivered" ? outcome.location : outcome.problem
  return outcomeBaseChars + (text?.length ?? 0)
}

/** The shared resources; a node has one instance. */
export class RelayResources {
  readonly memory: MemoryBudget
  /** Recent small documents by notification, so that most attempts need no read. */
  readonly documents = new LRUCache<string, string>({
    maxSize: cachedDocumentsCharsMax,
    maxEntrySize: cachedDocumentCharsMax,
    sizeCalculation: ({ length }) => Math.max(1, length)
  })
  readonly running = new RunningAttempts()
  /**
   * Recent outcomes by notification and attempt. After an indeterminate commit the actor may begin
   * an attempt again. If its outcome is here, the node sends no second request.
   */
  readonly outcomes = new LRUCache<string, KnownOutcome>({
    maxSize: knownOutcomesCharsMax,
    sizeCalculation: outcomeChars
  })
  readonly spanIds = new SpanIds()
  /** Which accounts want failure reports. */
  readonly reports = new ReportsLookup()

  constructor(memory = new MemoryBudget()) {
    this.memory = memory
  }
}
