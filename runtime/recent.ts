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
    this.numbers.set(key, n)
    if (this.numbers.size <= this.keptMax) return
    // All are looked at: a key that came again stands where it stood first.
    for (const [known, at] of this.numbers) if (at <= n - this.max) this.numbers.delete(known)
  }

  clear(): void {
    this.numbers.clear()
  }
}
