/** A binary heap that knows where each of its items is, so that any of them can move or leave. */
export class IndexedHeap<Item extends object> {
  private readonly isBefore: (one: Item, other: Item) => boolean
  private readonly items: Array<Item> = []
  private readonly places = new Map<Item, number>()

  /** `isBefore` orders the items; it may change for an item only until the next `put` of it. */
  constructor(isBefore: (one: Item, other: Item) => boolean) {
    this.isBefore = isBefore
  }

  /** The item before which no other one is; undefined in an empty heap. */
  get first(): Item | undefined {
    return this.items[0]
  }

  /** Adds an item, or moves one whose order has changed. */
  put(item: Item): void {
    const place = this.places.get(item) ?? this.items.length
    this.sink(item, this.rise(item, place))
  }

  remove(item: Item): void {
    const place = this.places.get(item)
    if (place === undefined) return
    this.places.delete(item)
    const last = this.items.pop()
    if (last !== undefined && last !== item) this.sink(last, this.rise(last, place))
  }

  private set(place: number, item: Item): void {
    this.items[place] = item
    this.places.set(item, place)
  }

  /** Moves an item from a place to the front as far as it belongs there; returns its place. */
  private rise(item: Item, from: number): number {
    let place = from
    while (place > 0) {
      const parentPlace = (place - 1) >> 1
      const parent = this.items[parentPlace]
      if (parent === undefined || !this.isBefore(item, parent)) break
      this.set(place, parent)
      place = parentPlace
    }
    this.set(place, item)
    return place
  }

  /** Moves an item from a place to the back as far as it belongs there. */
  private sink(item: Item, from: number): void {
    let place = from
    for (;;) {
      let childPlace = 2 * place + 1
      let child = this.items[childPlace]
      const other = this.items[childPlace + 1]
      if (child !== undefined && other !== undefined && this.isBefore(other, child)) {
        child = other
        childPlace += 1
      }
      if (child === undefined || !this.isBefore(child, item)) break
      this.set(place, child)
      place = childPlace
    }
    this.set(place, item)
  }
}
