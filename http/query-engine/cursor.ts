/** The cursors of listings that are queries: opaque to clients, checked when they come back. */
import { cursorCharsMax, queryLimitMax } from "../limits.ts"
import type { Order } from "./condition.ts"
import type { Cursor } from "./query-run.ts"
import type { TableSchema } from "./table-fields.ts"

/** Where a page ended, and how many rows were given by then. */
export interface CursorPosition {
  readonly given: number
  readonly cursor: Cursor
}

export const writePlace = ({ cursor, given }: CursorPosition): string =>
  Buffer.from(JSON.stringify([given, cursor.key, cursor.value])).toString("base64url")

const isKey = (value: unknown): value is string =>
  typeof value === "string" && !/[\u0000/]/.test(value)

const isValue = (value: unknown): value is string | number =>
  typeof value === "string" || (typeof value === "number" && Number.isSafeInteger(value))

const utf8 = new TextDecoder("utf-8", { fatal: true })

const parse = (text: string): unknown => {
  try {
    return JSON.parse(utf8.decode(Buffer.from(text, "base64url")))
  } catch {
    return undefined
  }
}

/** The place that a cursor tells, undefined where it is none for this order. */
export const readPlace = (
  table: TableSchema,
  order: Order,
  text: string
): CursorPosition | undefined => {
  if (text.length > cursorCharsMax) return undefined
  const parts: unknown = parse(text)
  if (!Array.isArray(parts) || parts.length < 2 || parts.length > 3) return undefined
  const [given, key, last]: ReadonlyArray<unknown> = parts
  const value = last ?? undefined
  if (!isKey(key) || typeof given !== "number" || !Number.isSafeInteger(given)) return undefined
  if (given < 0 || given > queryLimitMax) return undefined
  if (order.by === table.index?.field) {
    const { max } = table.index
    if (typeof value !== "number" || value < 0 || value > max) return undefined
    return { given, cursor: { key, value } }
  }
  if (value === undefined) return { given, cursor: { key } }
  return isValue(value) && order.by !== table.key ? { given, cursor: { key, value } } : undefined
}
