/** Accounts and their tokens (protocol §4). */
import { Effect } from "effect"
import type { AccountMessage, AccountReply } from "../../../actors/account/index.ts"
import { isRefusal } from "../../../runtime/index.ts"
import { secretHash } from "../../auth/credentials/index.ts"
import { callerOf, requireAdmin } from "../../auth/index.ts"
import { askedAtOnceMax } from "../../limits.ts"
import { absoluteUri, ask, askOrRefusal, type Call, emptyAnswer, type HandlerAnswer,
  type HandlerFailure, nextLink, readPageRequest, refusalError, type ResourceHandler, type Route,
  type Service, viewAnswer, withFormRedisplay } from "../../pipeline/index.ts"
import { isSlug } from "../../slug.ts"
import { at, concerned, describe, noStore, unchanged, unexpected } from "./account-access.ts"
import { wishedOf } from "./account-input.ts"
import { accountForm, accountPath, accountView, collectionPath, createdView,
  listingView } from "./account-views.ts"
import { enterToken, leaveToken, leaveTokens } from "./token-records.ts"
import { tokenRoutes } from "./token-routes.ts"

export { type Bootstrapped } from "./bootstrap.ts"

const create = (service: Service): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const caller = yield* requireAdmin(service, call)
    const wished = yield* wishedOf(call)
    const { ids } = call
    const token = ids.secret("token")
    const tokenId = ids.id("token")
    const tokenHash = secretHash(token)
    yield* enterToken(service, wished.name, tokenId, tokenHash)
    const message: AccountMessage = {
      _tag: "Create",
      caller: callerOf(caller),
      requestId: ids.id("request"),
      ...wished,
      tokenId,
      tokenHash
    }
    const reply = yield* askOrRefusal<AccountReply>(service, at(wished.name), message)
    if (isRefusal(reply)) {
      yield* leaveToken(service, wished.name, tokenId)
      return yield* refusalError(reply)
    }
    if (reply._tag !== "Created") throw unexpected(reply)
    return viewAnswer(createdView(service, reply.view, tokenId, token), {
      status: 201,
      headers: [["Location", absoluteUri(service, accountPath(wished.name))], ...noStore]
    })
  })

const list = (service: Service): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const caller = yield* requireAdmin(service, call)
    const page = yield* readPageRequest(call, isSlug)
    const names = yield* service.system.scan("account", page.after, page.limit)
    const message: AccountMessage = { _tag: "Describe", caller: callerOf(caller) }
    const replies = yield* Effect.forEach(
      names,
      (name) => askOrRefusal<AccountReply>(service, at(name), message),
      { concurrency: askedAtOnceMax }
    )
    const accounts = replies.flatMap((reply) =>
      !isRefusal(reply) && reply._tag === "Described" ? [reply.view] : []
    )
    const next = nextLink(absoluteUri(service, collectionPath), page, names)
    return viewAnswer(listingView(service, accounts, next), { headers: noStore })
  })

const read = (service: Service): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const { caller, name } = yield* concerned(service, call)
    const view = accountView(service, yield* describe(service, caller, name))
    return viewAnswer(view, { headers: noStore })
  })

const remove = (service: Service): ResourceHandler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    yield* requireAdmin(service, call)
    const { caller, name } = yield* concerned(service, call)
    const expected = yield* unchanged(
      service,
      call,
      { caller, name },
      (view) => accountView(service, view)
    )
    const message: AccountMessage = { _tag: "Remove", caller: callerOf(caller), ...expected }
    yield* ask<AccountReply>(service, at(name), message)
    yield* leaveTokens(service, name)
    return emptyAnswer(204)
  })

/** Every resource of the accounts. */
export const accountRoutes = (service: Service): ReadonlyArray<Route<ResourceHandler>> => [
  {
    pattern: collectionPath,
    methods: {
      GET: { handle: list(service) },
      POST: { handle: withFormRedisplay(() => accountForm, create(service)) }
    }
  },
  {
    pattern: `${collectionPath}/{account}`,
    methods: { GET: { handle: read(service) }, DELETE: { handle: remove(service) } }
  },
  ...tokenRoutes(service)
]
