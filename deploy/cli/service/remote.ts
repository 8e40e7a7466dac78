/** Requests to a running service, of the commands that are its clients. */
import { Effect, Redacted, Result, Schema } from "effect"
import { CommandFailed, exitCodes } from "../../command-failure.ts"

const answerMs = 30_000

/** A running service, and whom to be there. */
export interface RemoteService {
  /** Origin without a slash at its end. */
  readonly baseUrl: string
  /** The value of Authorization; undefined for nobody. */
  readonly authorization: Redacted.Redacted | undefined
}

/** The owner of a token. */
export const byToken = (token: Redacted.Redacted): Redacted.Redacted =>
  Redacted.make(`Bearer ${Redacted.value(token)}`)

/** Whoever knows the password: the user name is not looked at. */
export const byPassword = (password: Redacted.Redacted): Redacted.Redacted =>
  Redacted.make(`Basic ${Buffer.from(`restante:${Redacted.value(password)}`).toString("base64")}`)

const Problem = Schema.Struct({
  title: Schema.String,
  detail: Schema.optionalKey(Schema.String)
})

/** The failure of a command. */
export const failed = (message: string, exitCode: 1 | 2 | 75 = exitCodes.failed): CommandFailed =>
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

/** The service does not answer now, and may later. */
export const unreachable = ({ baseUrl }: RemoteService, cause: unknown): CommandFailed =>
  failed(`${baseUrl} cannot be reached: ${reason(cause)}`, exitCodes.unavailable)

const problemOf = (status: number, body: string): string => {
  const decoded = Schema.decodeUnknownResult(Schema.fromJsonString(Problem))(body)
  if (Result.isFailure(decoded)) return `the service answered ${status}`
  const { detail, title } = decoded.success
  return `${status} ${title}${detail === undefined ? "" : `: ${detail}`}`
}

/** Statuses of a service that may do later what it does not now. */
const passing: ReadonlySet<number> = new Set([429, 502, 503, 504])

/** The failure that an answer tells of; `message` says it instead of the problem document. */
export const refusedBy = (status: number, body: string, message?: string): CommandFailed =>
  failed(
    message ?? problemOf(status, body),
    passing.has(status) ? exitCodes.unavailable : exitCodes.failed
  )

/** An answer, read to its end. */
export interface RemoteAnswer {
  readonly status: number
  readonly headers: Headers
  readonly body: string
  /** Path of the next page. */
  readonly next: string | undefined
}

/** Path and query of a URI, which may begin with another origin than the service is reached at. */
export const pathOf = (uri: string | null | undefined): string | undefined => {
  if (uri === null || uri === undefined || !URL.canParse(uri)) return undefined
  const { pathname, search } = new URL(uri)
  return pathname + search
}

/** Path of the link with this relation. */
export const linkOf = (link: string | null, relation: string): string | undefined =>
  pathOf(new RegExp(`<([^>]+)>;\\s*rel="?${relation}\\b`).exec(link ?? "")?.[1])

/** What is asked of the service. */
export interface RemoteRequest {
  readonly method: "GET" | "HEAD" | "POST" | "PUT" | "DELETE"
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | AsyncIterable<Uint8Array>
  /** Statuses beside 2xx that are no failure. */
  readonly also?: ReadonlyArray<number>
  /** Bounds the whole exchange; null for one that takes as long as its body. */
  readonly withinMs?: number | null
}

const exchange = async (
  { authorization, baseUrl }: RemoteService,
  { body, headers, method, path, withinMs = answerMs }: RemoteRequest,
  interrupted: AbortSignal
): Promise<RemoteAnswer> => {
  const signals = withinMs === null ? [] : [AbortSignal.timeout(withinMs)]
  const response = await fetch(`${baseUrl}${path}`, {
    method,
    headers: {
      accept: "application/json",
      ...authorization === undefined ? {} : { authorization: Redacted.value(authorization) },
      ...headers
    },
    ...body === undefined ? {} : { body, duplex: "half" as const },
    redirect: "manual",
    signal: AbortSignal.any([interrupted, ...signals])
  })
  const next = linkOf(response.headers.get("link"), "next")
  return { status: response.status, headers: response.headers, body: await response.text(), next }
}

/** Fails with 75 when the service does not answer now, with 1 when it refuses. */
export const request = (
  remote: RemoteService,
  asked: RemoteRequest
): Effect.Effect<RemoteAnswer, CommandFailed> =>
  Effect.tryPromise({
    try: (interrupted) => exchange(remote, asked, interrupted),
    catch: (cause) => unreachable(remote, cause)
  }).pipe(
    Effect.flatMap((answer) => {
      const { body, status } = answer
      const isExpected = (status >= 200 && status < 300) || asked.also?.includes(status) === true
      return isExpected ? Effect.succeed(answer) : Effect.fail(refusedBy(status, body))
    })
  )

/** The service answered what restante does not. */
export const notUnderstood = (): CommandFailed =>
  failed("the service's answer is not understood; is it restante?")

/** Reads the JSON of an answer. */
export const decodeAs = <A>(
  schema: Schema.Codec<A, unknown>
): (answer: RemoteAnswer) => Effect.Effect<A, CommandFailed> => {
  const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(schema))
  return ({ body }) => Effect.mapError(decode(body), notUnderstood)
}
