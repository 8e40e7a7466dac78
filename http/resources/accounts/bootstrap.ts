/** The first account of a store, and the operator's token. */
import { Effect } from "effect"
import type { AccountMessage, AccountReply } from "../../../actors/account/index.ts"
import { accountKind } from "../../../actors/index.ts"
import { type Address, address, isRefusal } from "../../../runtime/index.ts"
import { recordAudit } from "../../audit/index.ts"
import { makeToken, operatorAccount, randomIds, secretHash } from "../../auth/credentials/index.ts"
import { ask, askOrRefusal, expectReply, type HandlerFailure,
  type Service } from "../../pipeline/index.ts"
import { accountPath } from "./account-views.ts"
import { addToken, recordedHash, removeHash, removeToken } from "./token-records.ts"

/** The outcome of {@link bootstrap}; `token` is a new random token, to be shown once. */
export interface Bootstrapped {
  readonly created: boolean
  readonly token?: string
}

/** The operator's token has a fixed id, so that another token replaces it. */
const operatorTokenId = "operator"

const askAdmin = (service: Service, message: AccountMessage) =>
  Effect.map(
    ask<AccountReply>(service, address(accountKind, operatorAccount), message),
    (reply) => expectReply(reply, "Bootstrapped")
  )

/** Records the operator's token, and returns the hash that was recorded before. */
const recordToken = Effect.fnUntraced(function*(
  service: Service,
  tokenHash: string
): Effect.fn.Return<string | undefined, HandlerFailure> {
  const before = yield* recordedHash(service, operatorAccount, operatorTokenId)
  if (before !== tokenHash) yield* addToken(service, operatorAccount, operatorTokenId, tokenHash)
  return before
})

/** A start has set the token: whoever can start a node is the operator, and no client. */
const recordOperatorToken = (service: Service): Effect.Effect<void, HandlerFailure> => {
  const operation = {
    caller: { admin: true },
    action: "operator-token.set",
    target: accountPath(operatorAccount)
  } as const
  return recordAudit(service, undefined, operation, "done")
}

/** Adds the operator's token to the account, in place of the former one. */
const withOperatorToken = Effect.fnUntraced(function*(
  service: Service,
  token: string
): Effect.fn.Return<Bootstrapped, HandlerFailure> {
  const tokenHash = secretHash(token)
  const before = yield* recordToken(service, tokenHash)
  const { created } = yield* askAdmin(service, {
    _tag: "Bootstrap",
    name: operatorAccount,
    tokenId: operatorTokenId,
    tokenHash,
    enforced: true
  })
  // A removal of the revoked token may have deleted the records before the account had this one.
  yield* recordToken(service, tokenHash)
  if (before !== undefined && before !== tokenHash) yield* removeHash(service, before)
  if (before !== tokenHash) yield* recordOperatorToken(service)
  return { created }
})

const accountExists = Effect.fnUntraced(function*(
  service: Service,
  to: Address
): Effect.fn.Return<boolean, HandlerFailure> {
  const message: AccountMessage = { _tag: "Describe", caller: { admin: true } }
  return !isRefusal(yield* askOrRefusal<AccountReply>(service, to, message))
})

/**
 * Creates the account `admin` in a store that has none: with `adminToken`, or with a random token,
 * which only this call returns. Another `adminToken` than before replaces the operator's token.
 */
export const bootstrap = Effect.fnUntraced(function*(
  service: Service,
  adminToken: string | undefined
): Effect.fn.Return<Bootstrapped, HandlerFailure> {
  if (adminToken !== undefined) return yield* withOperatorToken(service, adminToken)
  const to = address(accountKind, operatorAccount)
  if (yield* accountExists(service, to)) return { created: false }
  const token = makeToken(randomIds)
  const tokenId = randomIds.id("token")
  const tokenHash = secretHash(token)
  yield* addToken(service, operatorAccount, tokenId, tokenHash)
  const message: AccountMessage = {
    _tag: "Bootstrap",
    name: operatorAccount,
    tokenId,
    tokenHash,
    enforced: false
  }
  const { created, tokenKept } = yield* askAdmin(service, message)
  if (!tokenKept) yield* removeToken(service, operatorAccount, tokenId)
  if (created) yield* recordOperatorToken(service)
  return created ? { created, token } : { created }
})
