/** Queries over tables of rows: conditions, sources, cursors, and rows in memory. */
export { comparisonsOf, filterOf, fold, type NumberRange, type Operator, operators, type Order,
  type RowCondition, type RowFilter, type RowQuery, spanOf } from "./condition.ts"
export { fieldNames, fieldsIn, fieldsPattern, queryElement, queryIn } from "./query-document.ts"
export { type CursorPosition, decodeCursor, encodeCursor, pause, runQuery } from "./query-run.ts"
export { RowCaches } from "./row-cache.ts"
export type { RowEntry } from "./row-sources.ts"
export { indexKey, isDecimal, replacingValue, type Row, type TableSchema } from "./table-fields.ts"
