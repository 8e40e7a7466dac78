/** The keys of the last items of a log, each with its number: a window that forgets the oldest. */
export class Recent {
  private readonly max: number
  private readonly numbers = new Map<string, number>()

  constructor(max: number) {
    this.max = max
  }

  readonly find = (key: string): number | undefined => this.numbers.get(key)

  /** Remembers the key of item `n`, and forgets whatever is `max` or more items older. */
  add(key: string, n: number): void {
    // Anew at the end, so that the map stays in the order of the log.
    this.numbers.delete(key)
    this.numbers.set(key, n)
    for (const [oldest, at] of this.numbers) {
      if (at > n - this.max) break
      this.numbers.delete(oldest)
    }
  }

  clear(): void {
    this.numbers.clear()
  }
}
