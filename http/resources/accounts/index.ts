/** Accounts and tokens as resources (protocol §4). */
export { accountRefOf, describeAccount } from "./account-access.ts"
export { accountOperations } from "./account-operations.ts"
export { accountRoutes } from "./account-routes.ts"
export { bootstrap } from "./bootstrap.ts"
