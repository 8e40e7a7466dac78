/**
 * Formats of records, which are those of states: whole numbers from 1. A record of format 1 is its
 * text, as a message of format 1 has no `_format`. A record of a later format is
 * `@<format> <text>`. No text of format 1 begins with `@`.
 *
 * A node writes a record in a later format only when every node reads it (`System.format`). A form
 * that only adds fields to an object needs no new format: programs keep the fields that they do
 * not know. A table whose keys change is a new table.
 */
import { Effect, Layer } from "effect"
import { firstFormat, StorageUnavailable } from "../actor/index.ts"
import { Records, type RecordsApi } from "./records.ts"

/** A record's value: its format, and its text in that format. */
export interface StoredRecord {
  readonly format: number
  readonly text: string
}

const mark = "@"

const markCode = mark.charCodeAt(0)

export const encodeRecord = ({ format, text }: StoredRecord): string =>
  format === firstFormat ? text : `${mark}${format} ${text}`

/** Throws when the value has a mark and no format. */
export const decodeRecord = (value: string): StoredRecord => {
  if (value.charCodeAt(0) !== markCode) return { format: firstFormat, text: value }
  const space = value.indexOf(" ")
  const format = Number(value.slice(1, space))
  if (space < 2 || !Number.isSafeInteger(format) || format <= firstFormat) {
    throw new Error(`a stored record begins with ${mark}, and then has no format`)
  }
  return { format, text: value.slice(space + 1) }
}

/**
 * Records as a program reads them that knows the formats up to `formatMax`. A read of a record of
 * a later format fails and changes nothing; such a record can be read by a later program.
 */
export const readableRecords = (records: RecordsApi, formatMax: number): RecordsApi => {
  // Nearly all records have the first format, so only the others are decoded.
  const isLater = (value: string | undefined): boolean =>
    value?.charCodeAt(0) === markCode && decodeRecord(value).format > formatMax
  const assertReadable = (table: string, key: string, value: string | undefined) => {
    if (value === undefined || !isLater(value)) return Effect.void
    const formats = `format ${decodeRecord(value).format}, and this node reads up to ${formatMax}`
    const detail = `the record ${table}/${key} is stored in ${formats}: update this node`
    return Effect.fail(new StorageUnavailable({ detail }))
  }
  return {
    ...records,
    get: (table, key) =>
      Effect.tap(records.get(table, key), (value) => assertReadable(table, key, value)),
    getMany: (table, keys) =>
      Effect.tap(records.getMany(table, keys), (values) => {
        const at = values.findIndex(isLater)
        return at < 0 ? Effect.void : assertReadable(table, keys[at] ?? "", values[at])
      }),
    range: (table, range) =>
      Effect.tap(records.range(table, range), (entries) => {
        const found = entries.find(({ value }) => isLater(value))
        return found === undefined ? Effect.void : assertReadable(table, found.key, found.value)
      })
  }
}

/** The records below, as {@link readableRecords}. */
export const recordsUpTo = (formatMax: number): Layer.Layer<Records, never, Records> =>
  Layer.effect(Records, Effect.map(Records, (records) => readableRecords(records, formatMax)))
