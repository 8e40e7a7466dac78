/**
 * The keys of the last items of a log, each with its number: a window that forgets the oldest.
 *
 * Keys are kept in two generations. When the younger one has as many as the window holds, all of
 * the older one are out of the window and it is dropped, so that nothing is ever deleted singly.
 * A generation is a hash table of numbers, which tell nearly always that a key is not in it
 * without a look at the keys; those lie anywhere in memory, and looking costs more than the rest.
 */
/** Places of the first table; a power of two, and doubled as it fills. */
const placesMin = 16

/** A place holds an index + 1 in its low bits and bits of the key's hash above them. */
const indexBits = 20

const indexMask = (1 << indexBits) - 1

/** The most keys that a window may hold. */
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
  private places = new Int32Array(placesMin)

  find(key: string, hash: number): number | undefined {
    const index = this.indexOf(key, hash)
    return index === undefined ? undefined : this.numbers[index]
  }

  /** Adds a key; one that is there already gets the number. */
  add(key: string, hash: number, n: number): void {
    const { keys, numbers } = this
    const index = this.indexOf(key, hash)
    if (index !== undefined) {
      numbers[index] = n
      return
    }
    if (2 * keys.length >= this.places.length) this.grow()
    keys.push(key)
    numbers.push(n)
    this.place(hash, keys.length)
  }

  private indexOf(key: string, hash: number): number | undefined {
    const { places } = this
    const last = places.length - 1
    for (let at = hash & last;; at = (at + 1) & last) {
      const place = places[at] ?? 0
      if (place === 0) return
      if (((place ^ hash) & ~indexMask) !== 0) continue
      const index = (place & indexMask) - 1
      if (this.keys[index] === key) return index
    }
  }

  private place(hash: number, index: number): void {
    const { places } = this
    const last = places.length - 1
    let at = hash & last
    while (places[at] !== 0) at = (at + 1) & last
    places[at] = (hash & ~indexMask) | index
  }

  private grow(): void {
    this.places = new Int32Array(2 * this.places.length)
    for (let at = 0; at < this.keys.length; at++) this.place(hashOf(this.keys[at] ?? ""), at + 1)
  }
}

export class DeduplicationWindow {
  private readonly max: number
  private younger: Generation | undefined = undefined
  private older: Generation | undefined = undefined
  private last = 0

  /** `max` is at most {@link deduplicationKeysMax}. */
  constructor(max: number) {
    if (max > deduplicationKeysMax) {
      throw new RangeError(`a window holds ${deduplicationKeysMax} keys at most`)
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

  /** Remembers the key of item `n`, which is greater than all before. */
  add(key: string, n: number): void {
    if (this.younger !== undefined && this.younger.keys.length >= this.max) {
      this.older = this.younger
      this.younger = undefined
    }
    this.younger ??= new Generation()
    this.younger.add(key, hashOf(key), n)
    this.last = n
  }

  clear(): void {
    this.younger = undefined
    this.older = undefined
  }
}
