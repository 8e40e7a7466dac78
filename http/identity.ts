/** Who calls: accounts by Basic or Bearer, and the secrets of messages and mailboxes. */
import { Effect } from "effect"
import type {
  Message as AccountMessage,
  Reply as AccountReply
} from "../actors/account/protocol.ts"
import { accountKind } from "../actors/index.ts"
import { address, isRefusal } from "../runtime/index.ts"
import type { Call } from "./call.ts"
import { challenge, fail, type Failure } from "./failures.ts"
import { slugCharsMax } from "./limits.ts"
import { secretHash } from "./secrets.ts"
import { askFor, type Service } from "./service.ts"

/** An authenticated account. */
export interface Account {
  readonly name: string
  readonly roles: ReadonlyArray<string>
}

/** `[a-z0-9][a-z0-9-]*`, at most 64 characters: names of accounts and mailboxes. */
export const isSlug = (text: string): boolean =>
  text.length <= slugCharsMax && /^[a-z0-9][a-z0-9-]*$/.test(text)

/** Table of the records that lead from a token's hash to its account. */
export const tokensTable = "tokens"

/** The account of the request's credentials; undefined when they are nobody's. */
export const accountOf = Effect.fnUntraced(function*(
  service: Service,
  { identity }: Call
): Effect.fn.Return<Account | undefined, Failure> {
  if (identity._tag === "Nobody") return
  const secret = identity._tag === "Basic" ? identity.password : identity.token
  const tokenHash = secretHash(secret)
  const name = identity._tag === "Basic"
    ? identity.user
    : yield* service.records.get(tokensTable, tokenHash)
  if (name === undefined || !isSlug(name)) return
  const message: AccountMessage = { _tag: "Authenticate", tokenHash }
  const reply = yield* askFor<AccountReply>(service, address(accountKind, name), message)
  if (isRefusal(reply) || reply._tag !== "Authenticated") return
  return { name, roles: reply.roles }
})

/** The account, or 401. */
export const requireAccount = (
  service: Service,
  call: Call
): Effect.Effect<Account, Failure> =>
  Effect.flatMap(accountOf(service, call), (account) =>
    account === undefined
      ? Effect.fail(fail("unauthenticated", "an account's name and token are needed", challenge))
      : Effect.succeed(account))

/** The account with the role admin, else 401 or 403. */
export const requireAdmin = (service: Service, call: Call): Effect.Effect<Account, Failure> =>
  Effect.flatMap(requireAccount(service, call), (account) =>
    account.roles.includes("admin")
      ? Effect.succeed(account)
      : Effect.fail(fail("forbidden", "this needs the role admin")))

/** What messages to actors say of their sender. */
export const callerOf = (
  account: Account | undefined
): { readonly account?: string; readonly admin: boolean } =>
  account === undefined
    ? { admin: false }
    : { account: account.name, admin: account.roles.includes("admin") }
