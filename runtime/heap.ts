/** A binary min-heap of keys by due time; whoever pops an overtaken entry skips it. */
export class TimerHeap {
  private readonly times: Array<number> = []
  private readonly keys: Array<string> = []

  get size(): number {
    return this.keys.length
  }

  /** The earliest due time, or undefined. */
  peek(): number | undefined {
    return this.times[0]
  }

  /** The key of the earliest entry, or undefined. */
  peekKey(): string | undefined {
    return this.keys[0]
  }

  push(atMs: number, key: string): void {
    let at = this.keys.length
    this.times.push(atMs)
    this.keys.push(key)
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (this.time(parent) <= atMs) break
      this.move(parent, at)
      at = parent
    }
    this.times[at] = atMs
    this.keys[at] = key
  }

  /** Removes and returns the earliest entry. */
  pop(): { readonly atMs: number; readonly key: string } | undefined {
    const atMs = this.times[0]
    const key = this.keys[0]
    const lastTime = this.times.pop()
    const lastKey = this.keys.pop()
    if (atMs === undefined || key === undefined) return
    if (this.keys.length > 0 && lastTime !== undefined && lastKey !== undefined) {
      this.sink(lastTime, lastKey)
    }
    return { atMs, key }
  }

  /** Keeps these entries and no others. */
  reset(entries: Iterable<readonly [string, number]>): void {
    this.times.length = 0
    this.keys.length = 0
    for (const [key, atMs] of entries) this.push(atMs, key)
  }

  private sink(atMs: number, key: string): void {
    const size = this.keys.length
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= size) break
      if (child + 1 < size && this.time(child + 1) < this.time(child)) child++
      if (this.time(child) >= atMs) break
      this.move(child, at)
      at = child
    }
    this.times[at] = atMs
    this.keys[at] = key
  }

  private time(at: number): number {
    return this.times[at] ?? Number.POSITIVE_INFINITY
  }

  private move(from: number, to: number): void {
    this.times[to] = this.time(from)
    this.keys[to] = this.keys[from] ?? ""
  }
}
