/** Quotes (protocol §3, C1, C3, C4). */
export { quoteResource } from "./quote-resource.ts"
export { quotesTable } from "./quote-table.ts"
export { findForm } from "./quote-views.ts"
