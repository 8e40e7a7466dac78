/** The tables that queries are about. */
import { customers } from "../customers/table.ts"
import { quotes } from "../quotes/table.ts"
import type { RowQuery } from "./condition.ts"
import type { TableSchema } from "./fields.ts"

export const tables: ReadonlyArray<TableSchema> = [customers, quotes]

export const tableOf = ({ on }: RowQuery): TableSchema => on === "customers" ? customers : quotes
