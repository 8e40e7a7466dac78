/** The accounts of a running service, over its HTTP interface (protocol §4). */
import { Effect, Schema } from "effect"
import type { CommandFailed } from "../../command-failure.ts"
import { decodeAs, failed, type RemoteAnswer, type RemoteService, request } from "./remote.ts"

const Token = Schema.Struct({ "#text": Schema.String })

const ListedAccount = Schema.Struct({
  name: Schema.String,
  role: Schema.optionalKey(Schema.Array(Schema.String))
})

export type ListedAccount = typeof ListedAccount.Type

const Made = Schema.Struct({
  // Others of its tokens are there without their text.
  token: Schema.Array(Schema.Struct({ "#text": Schema.optionalKey(Schema.String) }))
})

const ListedToken = Schema.Struct({
  id: Schema.String,
  created: Schema.String,
  name: Schema.optionalKey(Schema.String),
  expires: Schema.optionalKey(Schema.String)
})

const Tokens = Schema.Struct({ token: Schema.Array(ListedToken) })

const Accounts = Schema.Struct({ account: Schema.Array(ListedAccount) })

const toMade = decodeAs(Made)

const toAccounts = decodeAs(Accounts)

const toTokens = decodeAs(Tokens)

const toToken = decodeAs(Token)

/** Makes an account and answers its token, which is shown only this once. Names are slugs. */
export const addAccount = (
  remote: RemoteService,
  name: string,
  roles: ReadonlyArray<string>
): Effect.Effect<string, CommandFailed> => {
  const elements = roles.map((role) => `<role>${role}</role>`).join("")
  return request(remote, {
    method: "POST",
    path: "/accounts",
    headers: { "content-type": "application/xml" },
    body: `<account><name>${name}</name>${elements}</account>`
  }).pipe(
    Effect.flatMap(toMade),
    Effect.flatMap(({ token }) => {
      const text = token.find((one) => one["#text"] !== undefined)?.["#text"]
      return text === undefined
        ? Effect.fail(failed("the service did not show the token"))
        : Effect.succeed(text)
    })
  )
}

/** Every account, in the order of names, page by page. */
export const listAccounts = Effect.fnUntraced(function*(
  remote: RemoteService,
  show: (account: ListedAccount) => Effect.Effect<void>
): Effect.fn.Return<void, CommandFailed> {
  let path: string | undefined = "/accounts?limit=1000"
  while (path !== undefined) {
    const answer: RemoteAnswer = yield* request(remote, { method: "GET", path })
    const { account } = yield* toAccounts(answer)
    yield* Effect.forEach(account, show, { discard: true })
    path = answer.next
  }
})

export const removeAccount = (
  remote: RemoteService,
  name: string
): Effect.Effect<void, CommandFailed> =>
  Effect.asVoid(request(remote, { method: "DELETE", path: `/accounts/${name}` }))

/** What a token is to be. */
export interface TokenWish {
  readonly name: string | undefined
  /** A time, a duration or seconds, as the service reads them. */
  readonly expires: string | undefined
}

/** A token as it is listed, without itself. */
export type ListedToken = typeof ListedToken.Type

const tokensOf = (name: string): string => `/accounts/${name}/tokens`

/** Gives an account another token, which is shown only this once. */
export const addToken = (
  remote: RemoteService,
  name: string,
  { expires, name: label }: TokenWish
): Effect.Effect<string, CommandFailed> =>
  request(remote, {
    method: "POST",
    path: `/accounts/${name}/token`,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      ...label === undefined ? {} : { name: label },
      ...expires === undefined ? {} : { expires }
    })
  }).pipe(
    Effect.flatMap(toToken),
    Effect.map((token) => token["#text"])
  )

/** The tokens of an account, oldest first. */
export const listTokens = (
  remote: RemoteService,
  name: string
): Effect.Effect<ReadonlyArray<ListedToken>, CommandFailed> =>
  request(remote, { method: "GET", path: tokensOf(name) }).pipe(
    Effect.flatMap(toTokens),
    Effect.map(({ token }) => token)
  )

/** Revokes one token of an account, or all. */
export const revokeTokens = (
  remote: RemoteService,
  name: string,
  id: string | undefined
): Effect.Effect<void, CommandFailed> => {
  const path = id === undefined ? tokensOf(name) : `${tokensOf(name)}/${encodeURIComponent(id)}`
  return Effect.asVoid(request(remote, { method: "DELETE", path }))
}
