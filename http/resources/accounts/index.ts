/** Accounts and tokens as resources (protocol §4). */
export { accountOperations } from "./account-operations.ts"
export { accountRoutes } from "./account-routes.ts"
export { bootstrap } from "./bootstrap.ts"
