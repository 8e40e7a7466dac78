/** Wrong tries by key (a client's address) within a window: so many, then wait. Bounded in size. */
import { throttledKeysMax, wrongTriesMax, wrongTriesWindowMs } from "./limits.ts"

interface Tries {
  count: number
  readonly untilMs: number
}

export class Throttle {
  private readonly tries = new Map<string, Tries>()
  private readonly nowMs: () => number

  constructor(nowMs: () => number) {
    this.nowMs = nowMs
  }

  /** ms to wait when the key has had its wrong tries; 0 when it may try. */
  waitMs(key: string): number {
    const found = this.tries.get(key)
    if (found === undefined) return 0
    const leftMs = found.untilMs - this.nowMs()
    if (leftMs <= 0) {
      this.tries.delete(key)
      return 0
    }
    return found.count >= wrongTriesMax ? leftMs : 0
  }

  /** Counts one wrong try. */
  wrong(key: string): void {
    if (this.waitMs(key) > 0) return
    const found = this.tries.get(key)
    if (found !== undefined) {
      found.count++
      return
    }
    if (this.tries.size >= throttledKeysMax) {
      // The oldest goes: the map keeps the order of arrival.
      for (const oldest of this.tries.keys()) {
        this.tries.delete(oldest)
        break
      }
    }
    this.tries.set(key, { count: 1, untilMs: this.nowMs() + wrongTriesWindowMs })
  }
}
