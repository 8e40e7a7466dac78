/**
 * Sources of candidate rows, in order and in chunks: the table itself, or an index of it. The rows
 * are the truth: a stale key of an index is skipped.
 */
import { Effect } from "effect"
import { byBytes, type RecordsApi, type StorageFailure } from "../../runtime/index.ts"
import { mergeKeysFactor, mergeKeysMin } from "../limits.ts"
import type { NumberRange } from "./condition.ts"
import { indexed, indexKey, indexPrefix, type Row, type TableSchema } from "./table-fields.ts"

export interface RowEntry {
  readonly key: string
  readonly row: Row
}

export interface Chunk {
  readonly entries: ReadonlyArray<RowEntry>
  /** Number of rows and keys read for them, with stale keys. */
  readonly scanned: number
  /** The last of those keys. */
  readonly last: string | undefined
  readonly isLast: boolean
}

/** Reads the next candidates, about `wanted`. */
export type RowSource = (wanted: number) => Effect.Effect<Chunk, StorageFailure>

/** Which rows to read: direction, and the key to begin after. */
export interface RowScan {
  readonly records: RecordsApi
  readonly table: TableSchema
  readonly reverse: boolean
  readonly after: string | undefined
}

const afterOf = (after: string | undefined): { readonly after?: string } =>
  after === undefined ? {} : { after }

/** Decoded rows by the result of a read: a store returns the same object until a row changes. */
const decoded = new WeakMap<object, ReadonlyArray<unknown>>()

/** Decodes each part of a result, once for each result. */
const decodeOnce = <A, B>(answer: ReadonlyArray<A>, make: (part: A) => B): ReadonlyArray<B> => {
  // Each result is decoded by one caller only.
  const cached = decoded.get(answer) as ReadonlyArray<B> | undefined
  if (cached !== undefined) return cached
  const made = answer.map(make)
  decoded.set(answer, made)
  return made
}

/** All rows in the order of their keys. */
export const scan = ({ after, records, reverse, table }: RowScan): RowSource => {
  let last = after
  return (limit) =>
    Effect.map(
      records.range(table.name, { reverse, limit, ...afterOf(last) }),
      (found): Chunk => {
        last = found.at(-1)?.key ?? last
        return {
          entries: decodeOnce(found, ({ key, value }) => ({ key, row: table.parse(value) })),
          scanned: found.length,
          last,
          isLast: found.length < limit
        }
      }
    )
}

interface Index {
  readonly field: string
  readonly table: string
}

/** The rows of the keys of an index, without those whose key is stale. */
const rowsOf = (
  { records, table }: RowScan,
  { field }: Index,
  found: ReadonlyArray<{ readonly number: number; readonly key: string }>
): Effect.Effect<ReadonlyArray<RowEntry>, StorageFailure> =>
  Effect.map(
    records.getMany(table.name, found.map(({ key }) => key)),
    (values) => {
      const rows = decodeOnce(
        values,
        (value) => value === undefined ? undefined : table.parse(value)
      )
      return found.flatMap(({ key, number }, at) => {
        const row = rows[at]
        return row !== undefined && row[field] === number ? [{ key, row }] : []
      })
    }
  )

/** Rows of a span in the order of the index, then of their keys; `after` is a key of the index. */
export const inOrder = (rowScan: RowScan, index: Index, span: NumberRange): RowSource => {
  const { records, reverse } = rowScan
  let last = rowScan.after ?? indexPrefix(reverse ? span.high + 1 : span.low)
  return Effect.fnUntraced(function*(limit: number) {
    const range = { reverse, limit, after: last }
    const [keys = []] = yield* records.keys(index.table, [range])
    const found = keys.map(indexed).filter(({ number }) =>
      number >= span.low && number <= span.high
    )
    last = keys.at(-1) ?? last
    return {
      entries: yield* rowsOf(rowScan, index, found),
      scanned: keys.length,
      last,
      isLast: keys.length < limit || found.length < keys.length
    }
  })
}

/** The keys of one index value, read ahead. */
interface KeyList {
  readonly number: number
  keys: ReadonlyArray<string>
  at: number
  isComplete: boolean
}

const listsOf = ({ high, low }: NumberRange): Array<KeyList> =>
  Array.from({ length: Math.max(0, high - low + 1) }, (_, at) => ({
    number: low + at,
    keys: [],
    at: 0,
    isComplete: false
  }))

/** The list with the first next key. */
const firstList = (lists: ReadonlyArray<KeyList>, reverse: boolean): KeyList | undefined => {
  let first: KeyList | undefined
  let firstKey = ""
  for (const list of lists) {
    const key = list.keys[list.at]
    if (key === undefined) continue
    const order = first === undefined ? -1 : byBytes(key, firstKey)
    if (first !== undefined && (reverse ? order <= 0 : order >= 0)) continue
    first = list
    firstKey = key
  }
  return first
}

/**
 * Rows of a span in the order of their own keys: a merge of the key lists of all numbers of the
 * span. A page costs one read of each list and of its rows, whatever fraction of the rows match.
 */
export const merge = (
  rowScan: RowScan,
  index: Index,
  span: NumberRange,
  page: number
): RowSource => {
  const { records, reverse } = rowScan
  const start = rowScan.after
  let lists = listsOf(span)
  /** Reads further keys of every list that is nearly used up, in one call. */
  const fill = (limit: number) => {
    const some = lists.filter(({ at, isComplete, keys }) =>
      !isComplete && 2 * (keys.length - at) < limit
    )
    const ranges = some.map(({ keys, number }) => {
      const last = keys.at(-1) ?? start
      const after = last === undefined ? undefined : indexKey(number, last)
      return { prefix: indexPrefix(number), limit, reverse, ...afterOf(after) }
    })
    return Effect.map(records.keys(index.table, ranges), (found) => {
      for (const [at, list] of some.entries()) {
        const more = decodeOnce(found[at] ?? [], (key) => indexed(key).key)
        list.isComplete = more.length < limit
        list.keys = list.at < list.keys.length ? [...list.keys.slice(list.at), ...more] : more
        list.at = 0
      }
      lists = lists.filter(({ at, isComplete, keys }) => at < keys.length || !isComplete)
    })
  }
  const ahead = (rows: number) => {
    const open = lists.filter(({ isComplete }) => !isComplete).length
    return Math.max(mergeKeysMin, Math.ceil(mergeKeysFactor * rows / Math.max(1, open)))
  }
  let isFilled = false
  return Effect.fnUntraced(function*(wanted: number) {
    if (!isFilled) yield* fill(ahead(Math.min(wanted, page)))
    isFilled = true
    const found: Array<{ number: number; key: string }> = []
    let previous: string | undefined
    for (;;) {
      const first = firstList(lists, reverse)
      const key = first?.keys[first.at]
      if (first === undefined || key === undefined) break
      // A page must not end between two keys of one row, of which one is stale.
      if (found.length >= wanted && key !== previous) break
      found.push({ number: first.number, key })
      previous = key
      first.at++
      if (first.at < first.keys.length) continue
      if (first.isComplete) lists = lists.filter((list) => list !== first)
      else yield* fill(ahead(wanted - found.length))
    }
    return {
      entries: yield* rowsOf(rowScan, index, found),
      scanned: found.length,
      last: found.at(-1)?.key ?? start,
      isLast: found.length < wanted
    }
  })
}
