/** Customers, one by one and as whole files (protocol §3, C2). */
export { customerOperations } from "./customer-operations.ts"
export { customerRoutes } from "./customer-routes.ts"
export { customersTable } from "./customer-table.ts"
export { findForm } from "./customer-views.ts"
export { resumeLoads, watchLoads } from "./load-application.ts"
export { isLoadBlob, loadNames } from "./load.ts"
