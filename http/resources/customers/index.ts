/** Customers, one by one and as whole files (protocol §3, C2). */
export { customerResource } from "./customer-resource.ts"
export { customersTable } from "./customer-table.ts"
export { findForm } from "./customer-views.ts"
export { retryLoads, watchLoads } from "./load-application.ts"
export { isBlobOfPendingLoad, isLoadBlob } from "./load.ts"
