/**
 * The tokens of accounts as records: the hash of a token names its account, for Bearer; an account
 * and the id of a token name the hash, for its removal. Both are written before the account adds
 * the token, and removed after the account has removed it. A crash between leaves an entry of a
 * token that the account does not accept.
 */
import { Effect } from "effect"
import { tokenAddition, tokenIdsTable, tokenKey, tokenRemoval,
  tokensTable } from "../../../actors/account/index.ts"
import { tokenRecordsPage } from "../../limits.ts"
import type { HandlerFailure, Service } from "../../pipeline/index.ts"

export const addToken = (
  { records }: Service,
  account: string,
  tokenId: string,
  hash: string
): Effect.Effect<void, HandlerFailure> => records.write(tokenAddition(account, tokenId, hash))

/** The recorded hash of a token. */
export const recordedHash = (
  { records }: Service,
  account: string,
  tokenId: string
): Effect.Effect<string | undefined, HandlerFailure> =>
  records.get(tokenIdsTable, tokenKey(account, tokenId))

export const removeToken = Effect.fnUntraced(function*(
  service: Service,
  account: string,
  tokenId: string
): Effect.fn.Return<void, HandlerFailure> {
  const hash = yield* recordedHash(service, account, tokenId)
  if (hash !== undefined) yield* service.records.write(tokenRemoval(account, tokenId, hash))
})

/** Removes the entry of a hash that another hash has replaced. */
export const removeHash = (
  { records }: Service,
  hash: string
): Effect.Effect<void, HandlerFailure> =>
  records.write([{ table: tokensTable, key: hash, value: null, markerExpires: true }])

/** Removes every token of an account. */
export const removeTokens = Effect.fnUntraced(function*(
  { records }: Service,
  account: string
): Effect.fn.Return<void, HandlerFailure> {
  for (;;) {
    const entries = yield* records.range(tokenIdsTable, {
      prefix: `${account}.`,
      limit: tokenRecordsPage
    })
    if (entries.length === 0) return
    yield* records.write(
      entries.flatMap(({ key, value }) =>
        tokenRemoval(account, key.slice(account.length + 1), value)
      )
    )
  }
})
