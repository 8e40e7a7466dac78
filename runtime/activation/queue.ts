/** First in, first out, a step in constant time however long it is. */
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
    // Half of it is holes: moving the rest costs no more than the steps that made them.
    else if (this.first >= 1_024 && this.first * 2 >= this.items.length) {
      this.reset(this.items.slice(this.first))
    }
    return item
  }

  /** Empties the queue. */
  takeAll(): Array<Item> {
    // Beyond the first index there are no holes.
    const all = this.items.slice(this.first) as Array<Item>
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
