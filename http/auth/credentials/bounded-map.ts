/**
 * A map that forgets: bounded, in two generations. When the younger is full it becomes the older,
 * and what was only in the one before is forgotten. No time is spent on looking for the oldest.
 */
export class BoundedMap<Value> {
  readonly #eachMax: number
  #young = new Map<string, Value>()
  #old = new Map<string, Value>()

  /** Holds `entriesMax` entries at the most, and the newest half of them for certain. */
  constructor(entriesMax: number) {
    this.#eachMax = Math.max(1, Math.floor(entriesMax / 2))
  }

  /** Entries in memory; one that was set in both generations counts twice. */
  get size(): number {
    return this.#young.size + this.#old.size
  }

  get(key: string): Value | undefined {
    return this.#young.get(key) ?? this.#old.get(key)
  }

  set(key: string, value: Value): void {
    if (this.#young.size >= this.#eachMax && !this.#young.has(key)) {
      this.#old = this.#young
      this.#young = new Map()
    }
    this.#young.set(key, value)
  }

  delete(key: string): void {
    this.#young.delete(key)
    this.#old.delete(key)
  }
}
