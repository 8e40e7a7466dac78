/** Accounts and their tokens (protocol §4). */
export { accountKind } from "../schemas.ts"
export { account } from "./actor.ts"
export { isOwned, type OwnedEntry, type OwnedResource, type OwnedStores, readOwned,
  removeUnusedReports } from "./owned-resources.ts"
export { AccountMessage, type AccountReply, type AccountView, type BrowserSessionView, Role,
  tokenAddition, tokenIdsTable, tokenKey, tokenRemoval, type TokenRights, TokenScope, tokensTable,
  type TokenView, tooManyTokens } from "./protocol.ts"
export { goneQueries, queriesTable, queryOwnersTable } from "./query-records.ts"
