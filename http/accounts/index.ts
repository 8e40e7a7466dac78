/** Accounts and their tokens (PROTOCOL §4). */
import { Effect } from "effect"
import { accountKind } from "../../actors/index.ts"
import type { Message, Reply, Role, View as AccountView } from "../../actors/account/protocol.ts"
import { type Address, address, isRefusal } from "../../runtime/index.ts"
import { type Answer, type Call, empty, type Handler, inputOf, shown } from "../call.ts"
import { fail, type Failed, type Failure, type HeaderFields, refused } from "../failures.ts"
import { type Account, callerOf, isSlug, requireAccount, requireAdmin } from "../identity.ts"
import { askedAtOnceMax, slugCharsMax } from "../limits.ts"
import { nextLink, pageOf } from "../paging.ts"
import { conditionsHold, entityTags, isConditional } from "../respond.ts"
import type { View } from "../representations.ts"
import type { Route } from "../routing.ts"
import { secretHash } from "../secrets.ts"
import { ask, askFor, type Service, uri } from "../service.ts"
import { childrenOf, textOf } from "../xml.ts"
import { enterToken, leaveToken, leaveTokens } from "./tokens.ts"
import {
  accountPath,
  accountView,
  collectionPath,
  createdView,
  listingView,
  roles,
  tokenPath,
  tokenView
} from "./views.ts"

export { bootstrap, type Bootstrapped } from "./bootstrap.ts"

const at = (name: string): Address => address(accountKind, name)

const noStore: HeaderFields = [["Cache-Control", "no-store"]]

const unexpected = (reply: Reply): Error => new Error(`an account answered ${reply._tag}`)

/** The caller and the account in the path: the caller's own, or any for an admin. */
const concerned = Effect.fnUntraced(function*(
  service: Service,
  call: Call
): Effect.fn.Return<{ readonly caller: Account; readonly name: string }, Failure> {
  const caller = yield* requireAccount(service, call)
  const name = call.parameters.get("account")
  // Whether there is such an account is told to admins only.
  if (caller.name !== name && !caller.roles.includes("admin")) {
    return yield* fail("forbidden", "this is for the account itself or the role admin")
  }
  if (!isSlug(name) || call.parameters.secret("account") !== undefined) {
    return yield* fail("not-found")
  }
  return { caller, name }
})

const describe = Effect.fnUntraced(function*(
  service: Service,
  caller: Account,
  name: string
): Effect.fn.Return<AccountView, Failure> {
  const message: Message = { _tag: "Describe", caller: callerOf(caller) }
  const reply = yield* ask<Reply>(service, at(name), message)
  if (reply._tag !== "Described") throw unexpected(reply)
  return reply.view
})

interface Wished {
  readonly name: string
  readonly roles: ReadonlyArray<Role>
}

const isRole = (text: string): text is Role => roles.some((role) => role === text)

const checked = (
  names: ReadonlyArray<string>,
  given: ReadonlyArray<string>
): Effect.Effect<Wished, Failed> => {
  const [name] = names
  if (name === undefined || names.length !== 1) {
    return Effect.fail(fail("unprocessable", "an account has one name"))
  }
  if (!isSlug(name)) {
    const detail = "a name has small letters, digits and hyphens, no hyphen first, and at most " +
      `${slugCharsMax} characters`
    return Effect.fail(fail("unprocessable", detail))
  }
  const wished = new Set<Role>()
  for (const role of given) {
    if (!isRole(role)) {
      return Effect.fail(fail("unprocessable", `the roles are ${roles.join(", ")}`))
    }
    wished.add(role)
  }
  return Effect.succeed({ name, roles: [...wished] })
}

const wishedOf = Effect.fnUntraced(function*(call: Call): Effect.fn.Return<Wished, Failed> {
  const input = yield* inputOf(call, "account", { form: true })
  if (input._tag === "Form") {
    const { fields } = input
    return yield* checked(fields.all("name"), fields.all("role").filter((role) => role !== ""))
  }
  const { root } = input
  const unknown = childrenOf(root).find(({ name }) => name !== "name" && name !== "role")
  if (unknown !== undefined) {
    return yield* fail("unprocessable", `an account has no element ${unknown.name}`)
  }
  const texts = (name: string) => childrenOf(root, name).map((child) => textOf(child).trim())
  return yield* checked(texts("name"), texts("role"))
})

const create = (service: Service): Handler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<Answer, Failure> {
    const caller = yield* requireAdmin(service, call)
    const wished = yield* wishedOf(call)
    const { ids } = call
    const token = ids.secret("token")
    const tokenId = ids.id("token")
    const tokenHash = secretHash(token)
    yield* enterToken(service, wished.name, tokenId, tokenHash)
    const message: Message = {
      _tag: "Create",
      caller: callerOf(caller),
      requestId: ids.id("request"),
      ...wished,
      tokenId,
      tokenHash
    }
    const reply = yield* askFor<Reply>(service, at(wished.name), message)
    if (isRefusal(reply)) {
      yield* leaveToken(service, wished.name, tokenId)
      return yield* refused(reply)
    }
    if (reply._tag !== "Created") throw unexpected(reply)
    return shown(createdView(service, reply.view, tokenId, token), {
      status: 201,
      headers: [["Location", uri(service, accountPath(wished.name))], ...noStore]
    })
  })

const list = (service: Service): Handler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<Answer, Failure> {
    const caller = yield* requireAdmin(service, call)
    const page = yield* pageOf(call, isSlug)
    const names = yield* service.system.scan("account", page.after, page.limit)
    const message: Message = { _tag: "Describe", caller: callerOf(caller) }
    const replies = yield* Effect.forEach(
      names,
      (name) => askFor<Reply>(service, at(name), message),
      { concurrency: askedAtOnceMax }
    )
    const accounts = replies.flatMap((reply) =>
      !isRefusal(reply) && reply._tag === "Described" ? [reply.view] : []
    )
    const next = nextLink(uri(service, collectionPath), page, names)
    return shown(listingView(service, accounts, next), { headers: noStore })
  })

const read = (service: Service): Handler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<Answer, Failure> {
    const { caller, name } = yield* concerned(service, call)
    const view = accountView(service, yield* describe(service, caller, name))
    return shown(view, { headers: noStore })
  })

/** The version that the request's conditions hold for, which the actor compares again; or 412. */
const unchanged = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  of: { readonly caller: Account; readonly name: string },
  shownAs: (state: AccountView) => View | undefined
): Effect.fn.Return<{ readonly ifVersion?: number }, Failure> {
  if (!isConditional(call)) return {}
  const state = yield* describe(service, of.caller, of.name)
  const view = shownAs(state)
  const tags = view === undefined ? undefined : entityTags(view)
  if (!conditionsHold(call, tags)) return yield* fail("precondition-failed")
  return { ifVersion: state.version }
})

const remove = (service: Service): Handler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<Answer, Failure> {
    yield* requireAdmin(service, call)
    const { caller, name } = yield* concerned(service, call)
    const expected = yield* unchanged(
      service,
      call,
      { caller, name },
      (view) => accountView(service, view)
    )
    const message: Message = { _tag: "Remove", caller: callerOf(caller), ...expected }
    yield* ask<Reply>(service, at(name), message)
    yield* leaveTokens(service, name)
    return empty(204)
  })

const addToken = (service: Service): Handler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<Answer, Failure> {
    const { caller, name } = yield* concerned(service, call)
    const token = call.ids.secret("token")
    const tokenId = call.ids.id("token")
    const tokenHash = secretHash(token)
    yield* enterToken(service, name, tokenId, tokenHash)
    const message: Message = {
      _tag: "AddToken",
      caller: callerOf(caller),
      tokenId,
      tokenHash,
      replacesAll: false
    }
    const reply = yield* askFor<Reply>(service, at(name), message)
    if (isRefusal(reply)) {
      yield* leaveToken(service, name, tokenId)
      return yield* refused(reply)
    }
    const { tokens } = yield* describe(service, caller, name)
    const made = tokens.find(({ id }) => id === tokenId)
    if (made === undefined) return yield* fail("gone", "the token was removed again")
    return shown(tokenView(service, name, made, token), {
      status: 201,
      headers: [["Location", uri(service, tokenPath(name, tokenId))], ...noStore]
    })
  })

const readToken = (service: Service): Handler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<Answer, Failure> {
    const { caller, name } = yield* concerned(service, call)
    const { tokens } = yield* describe(service, caller, name)
    const found = tokens.find(({ id }) => id === call.parameters.get("token"))
    return found === undefined
      ? yield* fail("not-found")
      : shown(tokenView(service, name, found), { headers: noStore })
  })

const removeToken = (service: Service): Handler["handle"] =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<Answer, Failure> {
    const { caller, name } = yield* concerned(service, call)
    const tokenId = call.parameters.get("token")
    const expected = yield* unchanged(service, call, { caller, name }, ({ tokens }) => {
      const found = tokens.find(({ id }) => id === tokenId)
      return found === undefined ? undefined : tokenView(service, name, found)
    })
    const message: Message = {
      _tag: "RemoveToken",
      caller: callerOf(caller),
      tokenId,
      ...expected
    }
    yield* ask<Reply>(service, at(name), message)
    yield* leaveToken(service, name, tokenId)
    return empty(204)
  })

/** Every resource of the accounts. */
export const accountRoutes = (service: Service): ReadonlyArray<Route<Handler>> => [
  {
    pattern: collectionPath,
    methods: { GET: { handle: list(service) }, POST: { handle: create(service) } }
  },
  {
    pattern: `${collectionPath}/{account}`,
    methods: { GET: { handle: read(service) }, DELETE: { handle: remove(service) } }
  },
  {
    pattern: `${collectionPath}/{account}/token`,
    methods: { POST: { handle: addToken(service) } }
  },
  {
    pattern: `${collectionPath}/{account}/tokens/{token}`,
    methods: { GET: { handle: readToken(service) }, DELETE: { handle: removeToken(service) } }
  }
]
