/**
 * Sets of log numbers as ascending, disjoint ranges, both ends included. With them a mailbox knows
 * which items were retrieved or removed, without a read of the log.
 */
import { Schema } from "effect"
import { Count } from "../schemas.ts"

export const Range = Schema.Struct({ from: Count, to: Count })

export type Range = typeof Range.Type

/** A range of items, and when they were retrieved. */
export const Retrieval = Schema.Struct({ from: Count, to: Count, atMs: Count })

export type Retrieval = typeof Retrieval.Type

const size = (range: Range): number => range.to - range.from + 1

/** Whether `n` is in one of the ranges. */
export const covers = (ranges: ReadonlyArray<Range>, n: number): boolean => {
  let low = 0
  let high = ranges.length - 1
  while (low <= high) {
    const middle = (low + high) >>> 1
    const range = ranges[middle]
    if (range === undefined) return false
    if (n < range.from) high = middle - 1
    else if (n > range.to) low = middle + 1
    else return true
  }
  return false
}

/** The parts of `whole` that are in none of the ranges. */
export const subtract = (whole: Range, ranges: ReadonlyArray<Range>): Array<Range> => {
  const parts: Array<Range> = []
  let from = whole.from
  for (const range of ranges) {
    if (range.to < from) continue
    if (range.from > whole.to) break
    if (range.from > from) parts.push({ from, to: range.from - 1 })
    from = range.to + 1
  }
  if (from <= whole.to) parts.push({ from, to: whole.to })
  return parts
}

/** The ranges, joined where the gap between two of them is wholly in `filled`. */
export const joinAcross = (
  ranges: ReadonlyArray<Range>,
  filled: ReadonlyArray<Range>
): ReadonlyArray<Range> => {
  const joined: Array<Range> = []
  for (const range of ranges) {
    const last = joined.at(-1)
    const isJoined = last !== undefined &&
      subtract({ from: last.to + 1, to: range.from - 1 }, filled).length === 0
    if (isJoined) joined[joined.length - 1] = { from: last.from, to: range.to }
    else joined.push(range)
  }
  return joined
}

/** How many numbers the ranges hold. */
export const total = (ranges: ReadonlyArray<Range>): number =>
  ranges.reduce((sum, range) => sum + size(range), 0)

/** The first `count` numbers of the ranges, ascending. */
export const first = (ranges: ReadonlyArray<Range>, count: number): Array<number> => {
  const numbers: Array<number> = []
  for (const range of ranges) {
    for (let n = range.from; n <= range.to; n++) {
      if (numbers.length === count) return numbers
      numbers.push(n)
    }
  }
  return numbers
}

/** The ranges and `added`. Neighbors are joined unless `join` returns undefined. */
const insert = <R extends Range>(
  ranges: ReadonlyArray<R>,
  added: ReadonlyArray<R>,
  join: (left: R, right: R) => R | undefined
): Array<R> => {
  const merged: Array<R> = []
  for (const range of [...ranges, ...added].toSorted((a, b) => a.from - b.from)) {
    const last = merged.at(-1)
    const joined = last === undefined || last.to + 1 < range.from ? undefined : join(last, range)
    if (joined === undefined) merged.push(range)
    else merged[merged.length - 1] = joined
  }
  return merged
}

/** The ranges without their smallest ones, so that there are at most `countMax`. */
const bounded = <R extends Range>(ranges: Array<R>, countMax: number): ReadonlyArray<R> => {
  while (ranges.length > countMax) {
    let smallest = 0
    ranges.forEach((range, at) => {
      const least = ranges[smallest]
      if (least !== undefined && size(range) < size(least)) smallest = at
    })
    ranges.splice(smallest, 1)
  }
  return ranges
}

/** The ranges with the numbers of `added`. Beyond `countMax` the smallest ranges are dropped. */
export const include = (
  ranges: ReadonlyArray<Range>,
  added: ReadonlyArray<Range>,
  countMax: number
): ReadonlyArray<Range> =>
  bounded(
    insert(ranges, added, (left, right) => ({ from: left.from, to: Math.max(left.to, right.to) })),
    countMax
  )

/**
 * The retrievals with the numbers of `whole`. Numbers that are already in them keep their time.
 * Neighbors whose times are in the same step of `stepMs` are joined and take the later time. Beyond
 * `countMax` the smallest ranges are dropped: their items count as not retrieved, and the mailbox
 * keeps them until the next retrieval.
 */
export const retrieve = (
  retrieved: ReadonlyArray<Retrieval>,
  whole: Retrieval,
  stepMs: number,
  countMax: number
): ReadonlyArray<Retrieval> => {
  const added = subtract(whole, retrieved).map((part) => ({ ...part, atMs: whole.atMs }))
  if (added.length === 0) return retrieved
  const step = (atMs: number): number => Math.floor(atMs / stepMs)
  const joined = insert<Retrieval>(
    retrieved,
    added,
    (left, right) =>
      step(left.atMs) !== step(right.atMs)
        ? undefined
        : { from: left.from, to: right.to, atMs: Math.max(left.atMs, right.atMs) }
  )
  return bounded(joined, countMax)
}
