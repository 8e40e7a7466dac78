/** Reads spans of keys. Rows are an array in which keys and values alternate. */
import { readSliceMs } from "../../limits.ts"
import { endOf } from "../keys.ts"
import type { Database, KeyRange } from "./engine.ts"

/**
 * Reads a span in slices, so that a cold disk does not block the event loop. Each slice calls
 * `database` for the database that is open then.
 */
export const readSpan = (
  database: () => Database,
  span: KeyRange,
  reverse: boolean,
  values = true
): ReadonlyArray<string> | Promise<ReadonlyArray<string>> => {
  const first = database().query(span, reverse, values, readSliceMs)
  if (first instanceof Promise) return first
  if (first.finished || isFull(first.rows, span)) return first.rows
  return readRest(database, span, reverse, values, [...first.rows])
}

/** Whether rows reach a bound of their span. */
const isFull = (rows: ReadonlyArray<string>, { charsMax, limit }: KeyRange): boolean => {
  if (rows.length >= 2 * limit || charsMax === undefined) return rows.length >= 2 * limit
  let chars = 0
  for (let at = 1; at < rows.length; at += 2) chars += rows[at]?.length ?? 0
  return chars >= charsMax
}

const readRest = async (
  database: () => Database,
  span: KeyRange,
  reverse: boolean,
  values: boolean,
  rows: Array<string>
): Promise<ReadonlyArray<string>> => {
  let sliceMs = readSliceMs
  for (;;) {
    await new Promise((resolve) => setImmediate(resolve))
    const last = rows.at(-2)
    const lower = reverse || last === undefined ? lowerOf(span) : { gt: last }
    const lt = reverse && last !== undefined ? last : span.lt
    const rest = { ...lower, lt, limit: span.limit - rows.length / 2, charsMax: span.charsMax }
    const slice = database().query(rest, reverse, values, sliceMs)
    if (slice instanceof Promise) return [...rows, ...await slice]
    for (const row of slice.rows) rows.push(row)
    if (slice.finished || isFull(rows, span)) return rows
    // A slice without rows must not be repeated unchanged.
    if (slice.rows.length === 0) sliceMs *= 2
  }
}

const lowerOf = ({ gt, gte }: KeyRange): Pick<KeyRange, "gt" | "gte"> => ({
  ...(gt === undefined ? {} : { gt }),
  ...(gte === undefined ? {} : { gte })
})

/** The least key of a span, or undefined. */
export const firstKey = async (
  database: () => Database,
  span: Omit<KeyRange, "limit">
): Promise<string | undefined> => (await readSpan(database, { ...span, limit: 1 }, false, false))[0]

/** The keys of rows, without their first `skip` characters. */
export const keysIn = (rows: ReadonlyArray<string>, skip: number): Array<string> => {
  const keys: Array<string> = []
  for (let at = 0; at < rows.length; at += 2) keys.push((rows[at] ?? "").slice(skip))
  return keys
}

/** The keys, without the prefix, and values that begin with a prefix, in pages of `limit`. */
export async function* pagesOf(
  database: () => Database,
  prefix: string,
  { limit, values }: { readonly limit: number; readonly values: boolean }
): AsyncGenerator<ReadonlyArray<readonly [key: string, value: string]>> {
  const lt = endOf(prefix)
  let from: { gte: string } | { gt: string } = { gte: prefix }
  for (;;) {
    const rows = await readSpan(database, { ...from, lt, limit }, false, values)
    yield keysIn(rows, prefix.length).map((key, at) => [key, rows[2 * at + 1] ?? ""] as const)
    if (rows.length < 2 * limit) return
    from = { gt: rows.at(-2) ?? "" }
    // A running service gets its turn between two pages.
    await new Promise((resolve) => setImmediate(resolve))
  }
}
