/** Random numbers that are the same for the same seed. */

/** Numbers from 0 (included) to 1 (excluded). */
export type Random = () => number

/** A generator (mulberry32) of this seed, a 32-bit whole number. */
export const randomOf = (seed: number): Random => {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** One element of a list that is not empty; throws a RangeError for an empty list. */
export const pick = <A>(random: Random, all: ReadonlyArray<A>): A => {
  if (all.length === 0) throw new RangeError("an empty list has no element to pick")
  // The index is below the length.
  return all[Math.floor(random() * all.length)] as A
}
