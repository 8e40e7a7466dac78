/** Accounts and their tokens (protocol §4). */
export { account, accountKind } from "./actor.ts"
export { AccountMessage, type AccountReply, type AccountView, Role, tokenAddition, tokenIdsTable,
  tokenKey, tokenRemoval, tokensTable } from "./protocol.ts"
