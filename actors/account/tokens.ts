/** The records of tokens: from a token's hash to its account, and from its id to its hash. */
import type { RecordChange } from "../../runtime/index.ts"

/** Hash of each token: the account that may know it. */
export const tokensTable = "tokens"
/** `<account>.<token id>` of each token: its hash. */
export const tokenIdsTable = "token-ids"

/** Key of a token in {@link tokenIdsTable}. */
export const tokenKey = (account: string, tokenId: string): string => `${account}.${tokenId}`

/** Takes out both records of a token. */
export const tokenRemoval = (
  account: string,
  tokenId: string,
  hash: string
): ReadonlyArray<RecordChange> => [
  { table: tokensTable, key: hash, value: null, fades: true },
  { table: tokenIdsTable, key: tokenKey(account, tokenId), value: null, fades: true }
]
