/** Quotes (protocol §3, C1, C3, C4). */
export { quoteOperations } from "./quote-operations.ts"
export { quoteRoutes } from "./quote-routes.ts"
export { quotesTable } from "./quote-table.ts"
export { findForm } from "./quote-views.ts"
