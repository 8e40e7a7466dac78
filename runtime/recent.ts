/** The keys of the last items of a log, each with its number: a window that forgets the oldest. */
export class Recent {
  private readonly max: number
  private readonly keptMax: number
  private readonly numbers = new Map<string, number>()
  private last = 0

  constructor(max: number) {
    this.max = max
    // What is out of the window is dropped many at a time: singly it costs more than to keep it.
    this.keptMax = max + (max >>> 3)
  }

  readonly find = (key: string): number | undefined => {
    const n = this.numbers.get(key)
    return n !== undefined && n > this.last - this.max ? n : undefined
  }

  /** Remembers the key of item `n`, and forgets whatever is `max` or more items older. */
  add(key: string, n: number): void {
    this.last = n
    // Anew at the end, so that the map stays in the order of the log.
    this.numbers.delete(key)
    this.numbers.set(key, n)
    if (this.numbers.size <= this.keptMax) return
    for (const [oldest, at] of this.numbers) {
      if (at > n - this.max) break
      this.numbers.delete(oldest)
    }
  }

  clear(): void {
    this.numbers.clear()
  }
}
