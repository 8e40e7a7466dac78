/** The tables that queries are about. */
import { customers } from "../customers/table.ts"
import { quotes } from "../quotes/table.ts"
import type { Query } from "./condition.ts"
import type { Table } from "./fields.ts"

export const tables: ReadonlyArray<Table> = [customers, quotes]

export const tableOf = ({ on }: Query): Table => on === "customers" ? customers : quotes
