/** Accounts and tokens as resources (protocol §4). */
export { type AccountRef, accountRefOf, describeAccount } from "./account-access.ts"
export { parseExpiry } from "./account-input.ts"
export { accountResource } from "./account-resource.ts"
export { expirySchema } from "./account-schemas.ts"
export { accountElement, accountPath } from "./account-views.ts"
export { bootstrap } from "./bootstrap.ts"
