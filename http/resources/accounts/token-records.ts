/**
 * The tokens of accounts as records: from a token's hash to its account, for Bearer, and from an
 * account and the token's id to the hash, so that it can be taken out. Both are written before
 * the account is told of the token and removed after it was told to forget it: a crash between
 * leaves at the most an entry that leads to an account which does not know the token.
 */
import { Effect } from "effect"
import { tokenIdsTable, tokenKey, tokenRemoval,
  tokensTable } from "../../../actors/account/index.ts"
import type { HandlerFailure, Service } from "../../pipeline/index.ts"

/** Enters a token. */
export const enterToken = (
  { records }: Service,
  account: string,
  tokenId: string,
  hash: string
): Effect.Effect<void, HandlerFailure> =>
  records.write([
    { table: tokensTable, key: hash, value: account },
    { table: tokenIdsTable, key: tokenKey(account, tokenId), value: hash }
  ])

/** The hash that is entered for a token. */
export const enteredHash = (
  { records }: Service,
  account: string,
  tokenId: string
): Effect.Effect<string | undefined, HandlerFailure> =>
  records.get(tokenIdsTable, tokenKey(account, tokenId))

/** Takes out one token. */
export const leaveToken = Effect.fnUntraced(function*(
  service: Service,
  account: string,
  tokenId: string
): Effect.fn.Return<void, HandlerFailure> {
  const hash = yield* enteredHash(service, account, tokenId)
  if (hash !== undefined) yield* service.records.write(tokenRemoval(account, tokenId, hash))
})

/** Takes out a hash that another has taken the place of. */
export const leaveHash = (
  { records }: Service,
  hash: string
): Effect.Effect<void, HandlerFailure> =>
  records.write([{ table: tokensTable, key: hash, value: null, fades: true }])

/** Tokens that are taken out at a time. */
const pageEntries = 100

/** Takes out every token of an account. */
export const leaveTokens = Effect.fnUntraced(function*(
  { records }: Service,
  account: string
): Effect.fn.Return<void, HandlerFailure> {
  for (;;) {
    const entries = yield* records.range(tokenIdsTable, {
      prefix: `${account}.`,
      limit: pageEntries
    })
    if (entries.length === 0) return
    yield* records.write(
      entries.flatMap(({ key, value }) =>
        tokenRemoval(account, key.slice(account.length + 1), value)
      )
    )
  }
})
