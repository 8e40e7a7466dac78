/**
 * Where candidates come from, a chunk at a time and in order: the table itself, or an index of it.
 * Rows are the truth; a key of an index that fits none any more is passed over.
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
  /** What was looked at for them, stale keys among it. */
  readonly scanned: number
  /** Key of the last of those. */
  readonly last: string | undefined
  readonly isLast: boolean
}

/** The next candidates: about as many as are wanted. */
export type RowSource = (wanted: number) => Effect.Effect<Chunk, StorageFailure>

/** Which records, in which direction, after which. */
export interface RowScan {
  readonly records: RecordsApi
  readonly table: TableSchema
  readonly reverse: boolean
  readonly after: string | undefined
}

const afterOf = (after: string | undefined): { readonly after?: string } =>
  after === undefined ? {} : { after }

/** Rows of answers that a store gives again as they are, while nothing has changed. */
const decoded = new WeakMap<object, ReadonlyArray<unknown>>()

/** What is made of each part of an answer, made once. */
const once = <A, B>(answer: ReadonlyArray<A>, make: (part: A) => B): ReadonlyArray<B> => {
  // It was made of this very answer, which is asked for one purpose only.
  const known = decoded.get(answer) as ReadonlyArray<B> | undefined
  if (known !== undefined) return known
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
          entries: once(found, ({ key, value }) => ({ key, row: table.parse(value) })),
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

/** The rows that keys of an index lead to, and that still are as the index says. */
const rowsOf = (
  { records, table }: RowScan,
  { field }: Index,
  found: ReadonlyArray<{ readonly number: number; readonly key: string }>
): Effect.Effect<ReadonlyArray<RowEntry>, StorageFailure> =>
  Effect.map(
    records.getMany(table.name, found.map(({ key }) => key)),
    (values) => {
      const rows = once(values, (value) => value === undefined ? undefined : table.parse(value))
      return found.flatMap(({ key, number }, at) => {
        const row = rows[at]
        return row !== undefined && row[field] === number ? [{ key, row }] : []
      })
    }
  )

/** Rows of a span in the order of the index, then of their keys; `after` is a key of the index. */
export const inOrder = (reading: RowScan, index: Index, span: NumberRange): RowSource => {
  const { records, reverse } = reading
  let last = reading.after ?? indexPrefix(reverse ? span.high + 1 : span.low)
  return Effect.fnUntraced(function*(limit: number) {
    const range = { reverse, limit, after: last }
    const [keys = []] = yield* records.keys(index.table, [range])
    const found = keys.map(indexed).filter(({ number }) =>
      number >= span.low && number <= span.high
    )
    last = keys.at(-1) ?? last
    return {
      entries: yield* rowsOf(reading, index, found),
      scanned: keys.length,
      last,
      isLast: keys.length < limit || found.length < keys.length
    }
  })
}

/** The keys under one number of an index, read ahead. */
interface List {
  readonly number: number
  keys: ReadonlyArray<string>
  at: number
  isWhole: boolean
}

const listsOf = ({ high, low }: NumberRange): Array<List> =>
  Array.from({ length: Math.max(0, high - low + 1) }, (_, at) => ({
    number: low + at,
    keys: [],
    at: 0,
    isWhole: false
  }))

/** The list whose next key comes first. */
const foremost = (lists: ReadonlyArray<List>, reverse: boolean): List | undefined => {
  let first: List | undefined
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
 * Rows of a span in the order of their own keys: the lists of all numbers of the span, each in that
 * order already, are merged. So a page costs one look into each list and its rows, whether one row
 * in two fits or one in a million, and wherever those are.
 */
export const merge = (
  reading: RowScan,
  index: Index,
  span: NumberRange,
  page: number
): RowSource => {
  const { records, reverse } = reading
  const start = reading.after
  let lists = listsOf(span)
  /** Reads on in each list that is at its end soon, so that all are read by few looks. */
  const fill = (limit: number) => {
    const some = lists.filter(({ at, isWhole, keys }) => !isWhole && 2 * (keys.length - at) < limit)
    const ranges = some.map(({ keys, number }) => {
      const last = keys.at(-1) ?? start
      const after = last === undefined ? undefined : indexKey(number, last)
      return { prefix: indexPrefix(number), limit, reverse, ...afterOf(after) }
    })
    return Effect.map(records.keys(index.table, ranges), (found) => {
      for (const [at, list] of some.entries()) {
        const more = once(found[at] ?? [], (key) => indexed(key).key)
        list.isWhole = more.length < limit
        list.keys = list.at < list.keys.length ? [...list.keys.slice(list.at), ...more] : more
        list.at = 0
      }
      lists = lists.filter(({ at, isWhole, keys }) => at < keys.length || !isWhole)
    })
  }
  const ahead = (rows: number) => {
    const open = lists.filter(({ isWhole }) => !isWhole).length
    return Math.max(mergeKeysMin, Math.ceil(mergeKeysFactor * rows / Math.max(1, open)))
  }
  let isFilled = false
  return Effect.fnUntraced(function*(wanted: number) {
    if (!isFilled) yield* fill(ahead(Math.min(wanted, page)))
    isFilled = true
    const found: Array<{ number: number; key: string }> = []
    let previous: string | undefined
    for (;;) {
      const first = foremost(lists, reverse)
      const key = first?.keys[first.at]
      if (first === undefined || key === undefined) break
      // A page never ends between two keys that lead to one row: one of them is stale.
      if (found.length >= wanted && key !== previous) break
      found.push({ number: first.number, key })
      previous = key
      first.at++
      if (first.at < first.keys.length) continue
      if (first.isWhole) lists = lists.filter((list) => list !== first)
      else yield* fill(ahead(wanted - found.length))
    }
    return {
      entries: yield* rowsOf(reading, index, found),
      scanned: found.length,
      last: found.at(-1)?.key ?? start,
      isLast: found.length < wanted
    }
  })
}
