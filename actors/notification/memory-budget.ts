/** What the attempts of one node share: documents at hand, room for others, and who is gone. */
import { randomBytes } from "node:crypto"
import { documentAtHandCharsMax, documentCharsInFlightMax,
  documentsAtHandCharsMax } from "../limits.ts"

/** How much is read for attempts under way on this node: memory is bounded whatever waits. */
export class MemoryBudget {
  private used = 0

  /** Takes room for so many characters, if there is; one document always fits. */
  take(chars: number): boolean {
    if (this.used > 0 && this.used + chars > documentCharsInFlightMax) return false
    this.used += chars
    return true
  }

  give(chars: number): void {
    this.used -= chars
  }
}

/** Small documents by their notification, those that came last: most attempts read none. */
class Documents {
  private readonly known = new Map<string, string>()
  private chars = 0

  get(id: string): string | undefined {
    return this.known.get(id)
  }

  keep(id: string, document: string): void {
    if (document.length > documentAtHandCharsMax || this.known.has(id)) return
    this.known.set(id, document)
    this.chars += document.length
    for (const [first, { length }] of this.known) {
      if (this.chars <= documentsAtHandCharsMax) return
      this.known.delete(first)
      this.chars -= length
    }
  }
}

/** The notifications with attempts under way here, and which of them have been removed since. */
class Standing {
  private readonly known = new Map<string, { attempts: number; isRemoved: boolean }>()

  begin(id: string): void {
    const one = this.known.get(id)
    if (one === undefined) this.known.set(id, { attempts: 1, isRemoved: false })
    else one.attempts += 1
  }

  end(id: string): void {
    const one = this.known.get(id)
    if (one !== undefined && --one.attempts === 0) this.known.delete(id)
  }

  remove(id: string): void {
    const one = this.known.get(id)
    if (one !== undefined) one.isRemoved = true
  }

  isRemoved(id: string): boolean {
    return this.known.get(id)?.isRemoved === true
  }
}

const spanBytes = 8

const spansAtOnce = 256

/** Span ids of W3C Trace Context, drawn many at a time. */
class Spans {
  private drawn = Buffer.alloc(0)
  private at = 0

  next(): string {
    if (this.at >= this.drawn.length) {
      this.drawn = randomBytes(spanBytes * spansAtOnce)
      this.at = 0
    }
    return this.drawn.toString("hex", this.at, this.at += spanBytes)
  }
}

export class RelayResources {
  readonly room: MemoryBudget
  readonly documents = new Documents()
  readonly standing = new Standing()
  readonly spans = new Spans()

  constructor(room = new MemoryBudget()) {
    this.room = room
  }
}
