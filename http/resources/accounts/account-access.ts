/** Which account a path names, who may have it, and how it stands. */
import { Effect } from "effect"
import type { AccountMessage, AccountReply, AccountView } from "../../../actors/account/index.ts"
import { accountKind } from "../../../actors/index.ts"
import { type Address, address } from "../../../runtime/index.ts"
import { type AuthenticatedAccount, callerOf, requireAccount } from "../../auth/index.ts"
import type { ResourceView } from "../../formats/index.ts"
import { ask, type Call, entityTags, type HandlerFailure, type HeaderList, httpError, isConditional,
  preconditionsHold, type Service } from "../../pipeline/index.ts"
import { isSlug } from "../../slug.ts"

/** The actor of an account. */
export const at = (name: string): Address => address(accountKind, name)

export const noStore: HeaderList = [["Cache-Control", "no-store"]]

export const unexpected = (reply: AccountReply): Error =>
  new Error(`an account answered ${reply._tag}`)

/** Whoever asks, and about which account. */
export interface Concerned {
  readonly caller: AuthenticatedAccount
  readonly name: string
}

/** The caller and the account in the path: the caller's own, or any for an admin. */
export const concerned = Effect.fnUntraced(function*(
  service: Service,
  call: Call
): Effect.fn.Return<Concerned, HandlerFailure> {
  const caller = yield* requireAccount(service, call)
  const name = call.parameters.get("account")
  // Whether there is such an account is told to admins only.
  if (caller.name !== name && !caller.roles.includes("admin")) {
    return yield* httpError("forbidden", "this is for the account itself or the role admin")
  }
  if (!isSlug(name) || call.parameters.secret("account") !== undefined) {
    return yield* httpError("not-found")
  }
  return { caller, name }
})

/** How the account stands. */
export const describe = Effect.fnUntraced(function*(
  service: Service,
  caller: AuthenticatedAccount,
  name: string
): Effect.fn.Return<AccountView, HandlerFailure> {
  const message: AccountMessage = { _tag: "Describe", caller: callerOf(caller) }
  const reply = yield* ask<AccountReply>(service, at(name), message)
  if (reply._tag !== "Described") throw unexpected(reply)
  return reply.view
})

/** The version that the request's conditions hold for, which the actor compares again; or 412. */
export const unchanged = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  of: Concerned,
  shownAs: (state: AccountView) => ResourceView | undefined
): Effect.fn.Return<{ readonly ifVersion?: number }, HandlerFailure> {
  if (!isConditional(call)) return {}
  const state = yield* describe(service, of.caller, of.name)
  const view = shownAs(state)
  const tags = view === undefined ? undefined : entityTags(call, view)
  if (!preconditionsHold(call, tags)) return yield* httpError("precondition-failed")
  return { ifVersion: state.version }
})
