/**
 * The resources that all attempts of a node share: the memory budget, recent documents, running
 * attempts.
 */
import { LRUCache } from "lru-cache"
import { randomBytes } from "node:crypto"
import { cachedDocumentCharsMax, cachedDocumentsCharsMax,
  documentCharsInFlightMax } from "../limits.ts"

/** Bounds the characters of documents that attempts of this node have read, however many wait. */
export class MemoryBudget {
  #used = 0

  /** Reserves so many characters; false if there is no room. One document always fits. */
  reserve(chars: number): boolean {
    if (this.#used > 0 && this.#used + chars > documentCharsInFlightMax) return false
    this.#used += chars
    return true
  }

  release(chars: number): void {
    this.#used -= chars
  }
}

/** The notifications with running attempts on this node, and which have been removed since. */
class RunningAttempts {
  readonly #byId = new Map<string, { attempts: number; isRemoved: boolean }>()

  begin(id: string): void {
    const running = this.#byId.get(id)
    if (running === undefined) this.#byId.set(id, { attempts: 1, isRemoved: false })
    else running.attempts += 1
  }

  end(id: string): void {
    const running = this.#byId.get(id)
    if (running !== undefined && --running.attempts === 0) this.#byId.delete(id)
  }

  markRemoved(id: string): void {
    const running = this.#byId.get(id)
    if (running !== undefined) running.isRemoved = true
  }

  isRemoved(id: string): boolean {
    return this.#byId.get(id)?.isRemoved === true
  }
}

const spanIdBytes = 8

const spanIdsPerDraw = 256

/** Span ids of W3C Trace Context; the random bytes are drawn many at a time. */
class SpanIds {
  #bytes = Buffer.alloc(0)
  #at = 0

  next(): string {
    if (this.#at >= this.#bytes.length) {
      this.#bytes = randomBytes(spanIdBytes * spanIdsPerDraw)
      this.#at = 0
    }
    return this.#bytes.toString("hex", this.#at, this.#at += spanIdBytes)
  }
}

export class RelayResources {
  readonly memory: MemoryBudget
  /** Small documents by notification: most attempts need no read. */
  readonly documents = new LRUCache<string, string>({
    maxSize: cachedDocumentsCharsMax,
    maxEntrySize: cachedDocumentCharsMax,
    sizeCalculation: ({ length }) => Math.max(1, length)
  })
  readonly running = new RunningAttempts()
  readonly spanIds = new SpanIds()

  constructor(memory = new MemoryBudget()) {
    this.memory = memory
  }
}
