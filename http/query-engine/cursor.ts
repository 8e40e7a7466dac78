/** Cursors of query listings: opaque to clients, validated when they return. */
import { cursorCharsMax, queryLimitMax } from "../limits.ts"
import type { Order } from "./condition.ts"
import type { Cursor } from "./query-run.ts"
import type { TableSchema } from "./table-fields.ts"

/** Where a page ended, and how many rows the pages so far had. */
export interface CursorPosition {
  readonly count: number
  readonly cursor: Cursor
}

export const encodeCursor = ({ count, cursor }: CursorPosition): string =>
  Buffer.from(JSON.stringify([count, cursor.key, cursor.value])).toString("base64url")

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

/** The position in a cursor; undefined for a cursor that is not valid for this order. */
export const decodeCursor = (
  table: TableSchema,
  order: Order,
  text: string
): CursorPosition | undefined => {
  if (text.length > cursorCharsMax) return undefined
  const parts: unknown = parse(text)
  if (!Array.isArray(parts) || parts.length < 2 || parts.length > 3) return undefined
  const [count, key, last]: ReadonlyArray<unknown> = parts
  const value = last ?? undefined
  if (!isKey(key) || typeof count !== "number" || !Number.isSafeInteger(count)) return undefined
  if (count < 0 || count > queryLimitMax) return undefined
  if (order.by === table.index?.field) {
    const { max } = table.index
    if (typeof value !== "number" || value < 0 || value > max) return undefined
    return { count, cursor: { key, value } }
  }
  if (value === undefined) return { count, cursor: { key } }
  return isValue(value) && order.by !== table.key ? { count, cursor: { key, value } } : undefined
}
