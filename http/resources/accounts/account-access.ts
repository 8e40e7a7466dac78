/** Which account a path names, and who may use it (protocol §4). */
import { Effect } from "effect"
import type { AccountMessage, AccountView } from "../../../actors/account/index.ts"
import { accountKind } from "../../../actors/index.ts"
import { type Address, address } from "../../../runtime/index.ts"
import { isSlug } from "../../auth/credentials/index.ts"
import { type AuthenticatedAccount, callerOf, requireAccount } from "../../auth/index.ts"
import type { ResourceView } from "../../formats/index.ts"
import { type Call, describeActor, entityTags, expectedVersion, failRefused, type HandlerFailure,
  httpError, type Service } from "../../pipeline/index.ts"

/** An account as a request's path names it, and the account of the request. */
export interface AccountRef {
  readonly name: string
  readonly to: Address
  readonly caller: AuthenticatedAccount
}

export const accountRefNamed = (name: string, caller: AuthenticatedAccount): AccountRef => ({
  name,
  to: address(accountKind, name),
  caller
})

/**
 * The account of the path: the caller's own, or any for an admin. Fails with 401, 403 and 404; only
 * admins learn whether another account exists.
 */
export const accountRefOf = Effect.fnUntraced(function*(
  service: Service,
  call: Call
): Effect.fn.Return<AccountRef, HandlerFailure> {
  const caller = yield* requireAccount(service, call)
  const name = call.parameters.get("account")
  if (caller.name !== name && !caller.roles.includes("admin")) {
    return yield* httpError("forbidden", "only the account itself or the role admin may use it")
  }
  if (!isSlug(name) || call.parameters.secret("account") !== undefined) {
    return yield* httpError("not-found")
  }
  return accountRefNamed(name, caller)
})

/** The account; fails with 404 or 410. */
export const describeAccount = (service: Service, ref: AccountRef) =>
  failRefused(describeOrRefusal(service, ref))

/** The account, or the refusal of its actor. */
export const describeOrRefusal = (service: Service, { caller, to }: AccountRef) => {
  const message: AccountMessage = { _tag: "Describe", caller: callerOf(caller) }
  return describeActor<AccountView>(service, to, message)
}

/** The account's version for which the conditions on a view of it hold. */
export const expectedAccount = (
  service: Service,
  call: Call,
  ref: AccountRef,
  viewOf: (account: AccountView) => Effect.Effect<ResourceView | undefined, HandlerFailure>
) =>
  expectedVersion(
    call,
    Effect.flatMap(describeAccount(service, ref), (account) =>
      Effect.map(viewOf(account), (view) => ({
        version: account.version,
        tags: view === undefined ? undefined : entityTags(call, view)
      })))
  )
