/** A first-in-first-out queue with amortized constant time for each operation. */
export class Queue<Item> {
  private items: Array<Item | undefined> = []
  private first = 0

  get length(): number {
    return this.items.length - this.first
  }

  push(item: Item): void {
    this.items.push(item)
  }

  shift(): Item | undefined {
    if (this.first === this.items.length) return
    const item = this.items[this.first]
    this.items[this.first++] = undefined
    if (this.first === this.items.length) this.reset([])
    // Half of the array is empty: copying the rest costs no more than the shifts before.
    else if (this.first >= 1_024 && this.first * 2 >= this.items.length) {
      this.reset(this.items.slice(this.first))
    }
    return item
  }

  /** A copy of the items, in their order. */
  toArray(): Array<Item> {
    // From the first index on, no entry is undefined.
    return this.items.slice(this.first) as Array<Item>
  }

  /** Empties the queue. */
  takeAll(): Array<Item> {
    const all = this.toArray()
    this.reset([])
    return all
  }

  /** Puts items before all others, in their order. */
  putFirst(items: ReadonlyArray<Item>): void {
    if (items.length > 0) this.reset([...items, ...this.items.slice(this.first)])
  }

  private reset(items: Array<Item | undefined>): void {
    this.items = items
    this.first = 0
  }
}
