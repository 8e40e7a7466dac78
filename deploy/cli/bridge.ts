/** `restante bridge`: a session of the service (protocol §2) in the terminal. */
import { Console, Effect, Option, Schema } from "effect"
import { Argument, Command } from "effect/cli"
import { createInterface } from "node:readline"
import { pathOf, ProblemError } from "../../client/index.ts"
import type { CommandFailed } from "../command-failure.ts"
import { accountFlags, jsonFlag } from "./flags.ts"
import { call, failed, locateService, notUnderstood, pathMatching, type ServiceLocation,
  wrongUsage } from "./service.ts"
import { endWithReader, plain } from "./terminal.ts"

const Challenge = Schema.Struct({
  p: Schema.String,
  method: Schema.optionalKey(Schema.String),
  uri: Schema.optionalKey(Schema.String),
  session: Schema.optionalKey(Schema.String)
})

type Challenge = typeof Challenge.Type

const decodeChallenge = Schema.decodeUnknownEffect(Schema.fromJsonString(Challenge))

/** The status for an answer that is empty, too long, or has an unreadable href. */
const UNPROCESSABLE = 422

/** The lines of standard input. */
interface Lines {
  /** The next line; undefined at the end of the input. */
  readonly next: () => Promise<string | undefined>
  readonly close: () => void
}

const isTerminal = (): boolean => process.stdin.isTTY && process.stderr.isTTY

const openLines = (): Lines => {
  const reader = createInterface({ input: process.stdin, terminal: false })
  const lines = reader[Symbol.asyncIterator]()
  return {
    next: async () => {
      if (isTerminal()) process.stderr.write("> ")
      const { done, value } = await lines.next()
      return done === true ? undefined : value.trim()
    },
    close: () => reader.close()
  }
}

const isRefusal = (text: string): boolean => /^(?:n|no|q|quit)$/i.test(text)

const isConfused = (text: string): boolean => /^(?:\?|what\??|huh\??)$/i.test(text)

/** An answer as a document of the service. */
const documentOf = (text: string): object =>
  isConfused(text)
    ? { continue: "confused", "#text": text }
    : /^https?:\/\/\S+$/.test(text)
    ? { href: text }
    : { "#text": text }

const print = (challenge: Challenge, json: boolean): Effect.Effect<void> =>
  Console.log(json ? JSON.stringify(challenge) : plain(challenge.p))

type ChallengeResponse =
  /** `isRepeated`: the service did not accept the answer, or the session is over. */
  | { readonly challenge: Challenge; readonly isRepeated: boolean }
  | { readonly problem: string }

const request = Effect.fnUntraced(function*(
  service: ServiceLocation,
  method: "GET" | "POST" | "PUT",
  uri: string,
  answer?: object
): Effect.fn.Return<ChallengeResponse, CommandFailed> {
  const response = yield* call(service, (client) =>
    client.request({
      method,
      uri: pathOf(uri),
      acceptedStatuses: method === "GET" ? [] : [406],
      ...answer === undefined ? {} : {
        headers: { "content-type": "application/json" },
        body: JSON.stringify(answer)
      }
    }).catch((error: unknown) => {
      if (error instanceof ProblemError && error.status === UNPROCESSABLE) return error
      throw error
    }))
  if (response instanceof ProblemError) return { problem: response.message }
  const challenge = yield* Effect.mapError(decodeChallenge(response.text), notUnderstood)
  return { challenge, isRepeated: response.status === 406 }
})

const requestChallenge = Effect.fnUntraced(function*(service: ServiceLocation, uri: string) {
  const response = yield* request(service, "GET", uri)
  return "problem" in response ? yield* failed(response.problem) : response.challenge
})

/** Begins a session, unless the user declines. */
const begin = Effect.fnUntraced(function*(
  service: ServiceLocation,
  lines: Lines,
  json: boolean
): Effect.fn.Return<Challenge | undefined, CommandFailed> {
  const entry = yield* requestChallenge(service, "/cross_bridge")
  yield* print(entry, json)
  for (;;) {
    const line = yield* Effect.promise(() => lines.next())
    if (line === undefined || isRefusal(line)) return undefined
    const answer = { continue: isConfused(line) ? "confused" : "true" }
    const response = yield* request(service, "POST", entry.uri ?? "/sessions", answer)
    if ("problem" in response) return yield* failed(response.problem)
    yield* print(response.challenge, json)
    if (!response.isRepeated) return response.challenge
  }
})

const play = Effect.fnUntraced(function*(
  service: ServiceLocation,
  lines: Lines,
  first: Challenge,
  json: boolean
): Effect.fn.Return<void, CommandFailed> {
  const session = first.session ?? (yield* notUnderstood())
  let challenge = first
  while (challenge.method === "PUT" && challenge.uri !== undefined) {
    const line = yield* Effect.promise(() => lines.next())
    if (line === undefined || isRefusal(line)) {
      yield* Console.error(`The session waits: restante bridge ${session}`)
      return yield* failed("the bridge is not crossed")
    }
    const response = yield* request(service, "PUT", challenge.uri, documentOf(line))
    if ("problem" in response) {
      // The question remains.
      yield* Console.error(plain(response.problem))
      continue
    }
    yield* print(response.challenge, json)
    if (!response.isRepeated) challenge = response.challenge
    else {
      // After a confused answer the question remains; after a wrong one the session is over.
      challenge = yield* requestChallenge(service, session)
      if (challenge.method !== "PUT") return yield* failed("the bridge is not crossed")
      yield* print(challenge, json)
    }
  }
})

export const bridgeCommand = Command.make(
  "bridge",
  {
    ...accountFlags,
    session: Argument.String("session").pipe(
      Argument.withDescription("The URI of a session to continue"),
      Argument.optional
    ),
    json: jsonFlag("Each challenge as JSON, one a line")
  },
  Effect.fnUntraced(function*({ json, session, ...flags }) {
    const { baseUrl } = yield* locateService(flags, "account")
    const service = { baseUrl, token: undefined }
    endWithReader()
    const uri = Option.getOrUndefined(session)
    const path = uri === undefined ? undefined : pathMatching(uri, /^\/sessions\/[^/]+$/)
    if (uri !== undefined && path === undefined) {
      return yield* wrongUsage("expected the URI of a session")
    }
    yield* Effect.acquireUseRelease(
      Effect.sync(openLines),
      Effect.fnUntraced(function*(lines) {
        if (isTerminal() && path === undefined) {
          yield* Console.error("Enter to answer, ? when confused, no to leave.")
        }
        const first = path === undefined
          ? yield* begin(service, lines, json)
          : yield* requestChallenge(service, path)
        if (first === undefined) return yield* failed("the bridge is not crossed")
        if (path !== undefined) yield* print(first, json)
        yield* play(service, lines, first, json)
      }),
      (lines) => Effect.sync(() => lines.close())
    )
  })
).pipe(Command.withDescription("Answer the three questions of the Bridge of Death"))
