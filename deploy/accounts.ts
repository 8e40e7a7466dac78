/** The accounts of a running service, over its HTTP interface (PROTOCOL §4). */
import { Effect, Redacted, Result, Schema } from "effect"
import { CommandFailed, exitCodes } from "./failure.ts"

const answerMs = 30_000

/** A running service, and whom to be there. */
export interface Remote {
  /** Origin without a slash at its end. */
  readonly baseUrl: string
  readonly token: Redacted.Redacted
}

const Token = Schema.Struct({ "#text": Schema.String })
const Account = Schema.Struct({
  name: Schema.String,
  role: Schema.optionalKey(Schema.Array(Schema.String))
})
export type Account = typeof Account.Type

const Made = Schema.Struct({
  // Others of its tokens are there without their text.
  token: Schema.Array(Schema.Struct({ "#text": Schema.optionalKey(Schema.String) }))
})
const Accounts = Schema.Struct({ account: Schema.Array(Account) })
const Problem = Schema.Struct({
  title: Schema.String,
  detail: Schema.optionalKey(Schema.String)
})

const failed = (message: string, exitCode: 1 | 75 = exitCodes.failed): CommandFailed =>
  new CommandFailed({ message, exitCode })

const reason = (cause: unknown): string => {
  if (!(cause instanceof Error)) return String(cause)
  const deeper = cause.cause
  // Happy-eyeballs failures have no message of their own, only a code.
  if (deeper instanceof Error) {
    return deeper.message || ("code" in deeper ? String(deeper.code) : cause.message)
  }
  return cause.message
}

const problemOf = (status: number, body: string): string => {
  const decoded = Schema.decodeUnknownResult(Schema.fromJsonString(Problem))(body)
  if (Result.isFailure(decoded)) return `the service answered ${status}`
  const { detail, title } = decoded.success
  return `${status} ${title}${detail === undefined ? "" : `: ${detail}`}`
}

interface Answer {
  readonly body: string
  /** Path of the next page. */
  readonly next: string | undefined
}

const nextOf = (link: string | null): string | undefined => {
  const target = /<([^>]+)>;\s*rel="?next\b/.exec(link ?? "")?.[1]
  if (target === undefined || !URL.canParse(target)) return undefined
  const { pathname, search } = new URL(target)
  return pathname + search
}

const request = (
  remote: Remote,
  method: "GET" | "POST" | "DELETE",
  path: string,
  document?: string
): Effect.Effect<Answer, CommandFailed> =>
  Effect.tryPromise({
    try: async () => {
      const response = await fetch(`${remote.baseUrl}${path}`, {
        method,
        headers: {
          accept: "application/json",
          authorization: `Bearer ${Redacted.value(remote.token)}`,
          ...(document === undefined ? {} : { "content-type": "application/xml" })
        },
        ...(document === undefined ? {} : { body: document }),
        redirect: "error",
        signal: AbortSignal.timeout(answerMs)
      })
      const next = nextOf(response.headers.get("link"))
      return { status: response.status, body: await response.text(), next }
    },
    catch: (cause) =>
      failed(`${remote.baseUrl} cannot be reached: ${reason(cause)}`, exitCodes.unavailable)
  }).pipe(
    Effect.flatMap(({ status, ...answer }) =>
      status >= 200 && status < 300
        ? Effect.succeed(answer)
        : Effect.fail(failed(problemOf(status, answer.body), status === 503 ? 75 : 1))
    )
  )

const decodeAs = <A>(
  schema: Schema.Codec<A, unknown>
): (answer: Answer) => Effect.Effect<A, CommandFailed> => {
  const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(schema))
  const unknown = () => failed("the service's answer is not understood; is it restante?")
  return ({ body }) => Effect.mapError(decode(body), unknown)
}
const toMade = decodeAs(Made)
const toAccounts = decodeAs(Accounts)
const toToken = decodeAs(Token)

/** Makes an account and answers its token, which is shown only this once. Names are slugs. */
export const addAccount = (
  remote: Remote,
  name: string,
  roles: ReadonlyArray<string>
): Effect.Effect<string, CommandFailed> => {
  const elements = roles.map((role) => `<role>${role}</role>`).join("")
  const document = `<account><name>${name}</name>${elements}</account>`
  return request(remote, "POST", "/accounts", document).pipe(
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
  remote: Remote,
  show: (account: Account) => Effect.Effect<void>
): Effect.fn.Return<void, CommandFailed> {
  let path: string | undefined = "/accounts?limit=1000"
  while (path !== undefined) {
    const answer: Answer = yield* request(remote, "GET", path)
    const { account } = yield* toAccounts(answer)
    yield* Effect.forEach(account, show, { discard: true })
    path = answer.next
  }
})

export const removeAccount = (remote: Remote, name: string): Effect.Effect<void, CommandFailed> =>
  Effect.asVoid(request(remote, "DELETE", `/accounts/${name}`))

/** Gives an account another token, which is shown only this once. */
export const addToken = (remote: Remote, name: string): Effect.Effect<string, CommandFailed> =>
  request(remote, "POST", `/accounts/${name}/token`).pipe(
    Effect.flatMap(toToken),
    Effect.map((token) => token["#text"])
  )
