/** The tokens of an account: made, listed, revoked (protocol §4). */
import { Effect } from "effect"
import type { AccountMessage, AccountReply } from "../../../actors/account/index.ts"
import { isRefusal } from "../../../runtime/index.ts"
import { secretHash } from "../../auth/credentials/index.ts"
import { type AuthenticatedAccount, callerOf } from "../../auth/index.ts"
import { absoluteUri, ask, askOrRefusal, type Call, emptyAnswer, type HandlerAnswer,
  type HandlerFailure, httpError, refusalError, type ResourceHandler, type Route, type Service,
  viewAnswer, withFormRedisplay } from "../../pipeline/index.ts"
import { at, concerned, describe, noStore, unchanged, unexpected } from "./account-access.ts"
import { wishedTokenOf } from "./account-input.ts"
import { collectionPath, tokenForm, tokenPath, tokensView, tokenView } from "./account-views.ts"
import { enterToken, leaveToken } from "./token-records.ts"

/**
 * A token has the account's own roles. Whom the issuer gives fewer of them just now gets none that
 * would be worth more, and would outlive the issuer's word.
 */
const mayMake = Effect.fnUntraced(function*(
  service: Service,
  caller: AuthenticatedAccount,
  name: string
): Effect.fn.Return<void, HandlerFailure> {
  if (caller.isFederated !== true || caller.roles.includes("admin")) return
  const { roles } = yield* describe(service, caller, name)
  if (roles.every((role) => caller.roles.includes(role))) return
  return yield* httpError("forbidden", "the account has roles that your issuer does not give you")
})

const addToken = (service: Service): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const { caller, name } = yield* concerned(service, call)
    yield* mayMake(service, caller, name)
    const wished = yield* wishedTokenOf(call, service.nowMs())
    const token = call.ids.secret("token")
    const tokenId = call.ids.id("token")
    const tokenHash = secretHash(token)
    yield* enterToken(service, name, tokenId, tokenHash)
    const message: AccountMessage = {
      _tag: "AddToken",
      caller: callerOf(caller),
      tokenId,
      tokenHash,
      ...wished,
      replacesAll: false
    }
    const reply = yield* askOrRefusal<AccountReply>(service, at(name), message)
    if (isRefusal(reply)) {
      yield* leaveToken(service, name, tokenId)
      return yield* refusalError(reply)
    }
    const { tokens } = yield* describe(service, caller, name)
    const made = tokens.find(({ id }) => id === tokenId)
    if (made === undefined) return yield* httpError("gone", "the token was removed again")
    return viewAnswer(tokenView(service, name, made, token), {
      status: 201,
      headers: [["Location", absoluteUri(service, tokenPath(name, tokenId))], ...noStore]
    })
  })

const readToken = (service: Service): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const { caller, name } = yield* concerned(service, call)
    const { tokens } = yield* describe(service, caller, name)
    const found = tokens.find(({ id }) => id === call.parameters.get("token"))
    return found === undefined
      ? yield* httpError("not-found")
      : viewAnswer(tokenView(service, name, found), { headers: noStore })
  })

const removeToken = (service: Service): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const { caller, name } = yield* concerned(service, call)
    const tokenId = call.parameters.get("token")
    const expected = yield* unchanged(service, call, { caller, name }, ({ tokens }) => {
      const found = tokens.find(({ id }) => id === tokenId)
      return found === undefined ? undefined : tokenView(service, name, found)
    })
    const message: AccountMessage = {
      _tag: "RemoveToken",
      caller: callerOf(caller),
      tokenId,
      ...expected
    }
    yield* ask<AccountReply>(service, at(name), message)
    yield* leaveToken(service, name, tokenId)
    return emptyAnswer(204)
  })

const listTokens = (service: Service): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const { caller, name } = yield* concerned(service, call)
    const { tokens } = yield* describe(service, caller, name)
    return viewAnswer(tokensView(service, name, tokens), { headers: noStore })
  })

const removeTokens = (service: Service): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const { caller, name } = yield* concerned(service, call)
    const expected = yield* unchanged(
      service,
      call,
      { caller, name },
      ({ tokens }) => tokensView(service, name, tokens)
    )
    const message: AccountMessage = { _tag: "RemoveTokens", caller: callerOf(caller), ...expected }
    const reply = yield* ask<AccountReply>(service, at(name), message)
    if (reply._tag !== "Revoked") throw unexpected(reply)
    yield* Effect.forEach(reply.tokenIds, (id) => leaveToken(service, name, id), { discard: true })
    return emptyAnswer(204)
  })

/** The resources of an account's tokens. */
export const tokenRoutes = (service: Service): ReadonlyArray<Route<ResourceHandler>> => [
  {
    pattern: `${collectionPath}/{account}/token`,
    methods: {
      POST: {
        handle: withFormRedisplay(
          ({ parameters }) => tokenForm(parameters.get("account")),
          addToken(service)
        )
      }
    }
  },
  {
    pattern: `${collectionPath}/{account}/tokens`,
    methods: { GET: { handle: listTokens(service) }, DELETE: { handle: removeTokens(service) } }
  },
  {
    pattern: `${collectionPath}/{account}/tokens/{token}`,
    methods: { GET: { handle: readToken(service) }, DELETE: { handle: removeToken(service) } }
  }
]
