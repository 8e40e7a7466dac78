/**
 * The deduplication window: the keys of a log's last items with their numbers.
 *
 * The window has two generations of keys. When the younger one is as large as the window, every key
 * of the older one has left the window. So the window drops the older generation as a whole, and
 * never deletes single keys. A generation is a hash table of integers that contain part of the
 * hash. Nearly every lookup of a missing key ends there, without the slow access to the keys.
 */
/** Slots of a new table; a power of two, doubled as the table fills. */
const slotsMin = 16

/** A slot has the key's index + 1 in its low bits, and bits of the key's hash in the others. */
const indexBits = 20

const indexMask = (1 << indexBits) - 1

/** Greatest number of keys of a window. */
export const deduplicationKeysMax = indexMask - 1

/** FNV-1a (32 bit), its low bits mixed with the high ones. */
const hashOf = (key: string): number => {
  let hash = 0x811c9dc5
  for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193)
  return hash ^ (hash >>> 15)
}

class Generation {
  readonly keys: Array<string> = []
  private readonly numbers: Array<number> = []
  private slots = new Int32Array(slotsMin)

  find(key: string, hash: number): number | undefined {
    const index = this.indexOf(key, hash)
    return index === undefined ? undefined : this.numbers[index]
  }

  /** Adds a key, or replaces the number of an existing one. */
  add(key: string, hash: number, n: number): void {
    const { keys, numbers } = this
    const index = this.indexOf(key, hash)
    if (index !== undefined) {
      numbers[index] = n
      return
    }
    if (2 * keys.length >= this.slots.length) this.grow()
    keys.push(key)
    numbers.push(n)
    this.insert(hash, keys.length)
  }

  private indexOf(key: string, hash: number): number | undefined {
    const { slots } = this
    const last = slots.length - 1
    for (let at = hash & last;; at = (at + 1) & last) {
      const slot = slots[at] ?? 0
      if (slot === 0) return
      if (((slot ^ hash) & ~indexMask) !== 0) continue
      const index = (slot & indexMask) - 1
      if (this.keys[index] === key) return index
    }
  }

  private insert(hash: number, index: number): void {
    const { slots } = this
    const last = slots.length - 1
    let at = hash & last
    while (slots[at] !== 0) at = (at + 1) & last
    slots[at] = (hash & ~indexMask) | index
  }

  private grow(): void {
    this.slots = new Int32Array(2 * this.slots.length)
    for (let at = 0; at < this.keys.length; at++) this.insert(hashOf(this.keys[at] ?? ""), at + 1)
  }
}

/** Finds the number of a recent item by its key. */
export class DeduplicationWindow {
  private readonly max: number
  private younger: Generation | undefined = undefined
  private older: Generation | undefined = undefined
  private last = 0

  /** `max` is at most {@link deduplicationKeysMax}. */
  constructor(max: number) {
    if (max > deduplicationKeysMax) {
      throw new RangeError(
        `a deduplication window of ${max} keys: the maximum is ${deduplicationKeysMax}`
      )
    }
    this.max = max
  }

  readonly find = (key: string): number | undefined => {
    const { older, younger } = this
    if (younger === undefined) return
    const hash = hashOf(key)
    const n = younger.find(key, hash) ?? older?.find(key, hash)
    return n !== undefined && n > this.last - this.max ? n : undefined
  }

  /** Adds the key of item `n`, which must be greater than all earlier numbers. */
  add(key: string, n: number): void {
    if (this.younger !== undefined && this.younger.keys.length >= this.max) {
      this.older = this.younger
      this.younger = undefined
    }
    this.younger ??= new Generation()
    this.younger.add(key, hashOf(key), n)
    this.last = n
  }
}
