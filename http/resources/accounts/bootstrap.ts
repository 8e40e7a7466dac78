/** The first account of a store, and the operator's way back in. */
import { Effect } from "effect"
import type { AccountMessage, AccountReply } from "../../../actors/account/index.ts"
import { accountKind } from "../../../actors/index.ts"
import { type Address, address, isRefusal } from "../../../runtime/index.ts"
import { randomIds, secretHash } from "../../auth/credentials/index.ts"
import { ask, askOrRefusal, type HandlerFailure, type Service } from "../../pipeline/index.ts"
import { enteredHash, enterToken, leaveHash, leaveToken } from "./token-records.ts"

/** What {@link bootstrap} did; `token` is only there when one was made up, to be shown once. */
export interface Bootstrapped {
  readonly created: boolean
  readonly token?: string
}

const admin = "admin"

/** The operator's token has an id of its own, so that another takes its place. */
const operatorTokenId = "operator"

const tell = (service: Service, message: AccountMessage) =>
  ask<AccountReply>(service, address(accountKind, admin), message)

const bootstrapped = (reply: AccountReply): Extract<AccountReply, { _tag: "Bootstrapped" }> => {
  if (reply._tag !== "Bootstrapped") throw new Error(`an account answered ${reply._tag}`)
  return reply
}

/** Sees to it that the operator's token is one of the account's. */
const withOperatorToken = Effect.fnUntraced(function*(
  service: Service,
  token: string
): Effect.fn.Return<Bootstrapped, HandlerFailure> {
  const tokenHash = secretHash(token)
  const before = yield* enteredHash(service, admin, operatorTokenId)
  if (before !== tokenHash) yield* enterToken(service, admin, operatorTokenId, tokenHash)
  const { created } = bootstrapped(
    yield* tell(service, {
      _tag: "Bootstrap",
      name: admin,
      tokenId: operatorTokenId,
      tokenHash,
      enforced: true
    })
  )
  if (before !== undefined && before !== tokenHash) yield* leaveHash(service, before)
  return { created }
})

const isThere = Effect.fnUntraced(function*(
  service: Service,
  to: Address
): Effect.fn.Return<boolean, HandlerFailure> {
  const message: AccountMessage = { _tag: "Describe", caller: { admin: true } }
  return !isRefusal(yield* askOrRefusal<AccountReply>(service, to, message))
})

/**
 * Makes the account `admin` where there is none: with `adminToken`, or with a new token, which is
 * returned this once. An `adminToken` that is not the operator's yet takes the place of the one
 * before, so that an operator can change it; repeating it changes nothing.
 */
export const bootstrap = Effect.fnUntraced(function*(
  service: Service,
  adminToken: string | undefined
): Effect.fn.Return<Bootstrapped, HandlerFailure> {
  if (adminToken !== undefined) return yield* withOperatorToken(service, adminToken)
  if (yield* isThere(service, address(accountKind, admin))) return { created: false }
  const token = randomIds.secret("token")
  const tokenId = randomIds.id("token")
  const tokenHash = secretHash(token)
  yield* enterToken(service, admin, tokenId, tokenHash)
  const { created, tokenKept } = bootstrapped(
    yield* tell(service, { _tag: "Bootstrap", name: admin, tokenId, tokenHash, enforced: false })
  )
  if (!tokenKept) yield* leaveToken(service, admin, tokenId)
  return created ? { created, token } : { created }
})
