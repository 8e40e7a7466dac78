/** Accounts and tokens as resources (protocol §4). */
export { accountRefOf, describeAccount } from "./account-access.ts"
export { accountResource } from "./account-resource.ts"
export { bootstrap } from "./bootstrap.ts"
