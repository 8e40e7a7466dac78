/** `restante bridge`: a session of the service (protocol §2), played in the terminal. */
import { Console, Effect, Option, Schema } from "effect"
import { Argument, Command } from "effect/cli"
import { createInterface } from "node:readline"
import { type CommandFailed, exitCodes } from "../command-failure.ts"
import { decodeAs, failed, notUnderstood, pathOf, refusedBy, type RemoteAnswer, type RemoteService,
  request } from "./service/index.ts"
import { accountFlags, endWithReader, jsonFlag, plain, serviceLocation } from "./terminal.ts"

const Challenge = Schema.Struct({
  p: Schema.String,
  method: Schema.optionalKey(Schema.String),
  uri: Schema.optionalKey(Schema.String),
  session: Schema.optionalKey(Schema.String)
})

type Challenge = typeof Challenge.Type

const toChallenge = decodeAs(Challenge)

/** The status of an answer that is none: it is empty, too long, or its href cannot be read. */
const UNFIT = 422

/** What the traveller types, line by line. */
interface Lines {
  /** The next one; undefined at the end of the input. */
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

/** An answer as the service takes it; `?` says that one is confused. */
const documentOf = (text: string): string =>
  JSON.stringify(
    isConfused(text)
      ? { continue: "confused", "#text": text }
      : /^https?:\/\/\S+$/.test(text)
      ? { href: text }
      : { "#text": text }
  )

const say = (shown: Challenge, json: boolean): Effect.Effect<void> =>
  Console.log(json ? JSON.stringify(shown) : plain(shown.p))

const put = (
  remote: RemoteService,
  method: "POST" | "PUT",
  path: string,
  body: string
): Effect.Effect<RemoteAnswer, CommandFailed> =>
  request(remote, {
    method,
    path,
    headers: { "content-type": "application/json" },
    body,
    also: [406, UNFIT]
  })

/** Begins a session, unless the traveller would rather not. */
const begin = Effect.fnUntraced(function*(
  remote: RemoteService,
  lines: Lines,
  json: boolean
): Effect.fn.Return<Challenge | undefined, CommandFailed> {
  const entry = yield* Effect.flatMap(
    request(remote, { method: "GET", path: "/cross_bridge" }),
    toChallenge
  )
  yield* say(entry, json)
  for (;;) {
    const line = yield* Effect.promise(() => lines.next())
    if (line === undefined || isRefusal(line)) return undefined
    const answer = JSON.stringify({ continue: isConfused(line) ? "confused" : "true" })
    const answered = yield* put(remote, "POST", entry.uri ?? "/sessions", answer)
    const challenge = yield* toChallenge(answered)
    yield* say(challenge, json)
    if (answered.status !== 406) return challenge
  }
})

const play = Effect.fnUntraced(function*(
  remote: RemoteService,
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
    const answered = yield* put(remote, "PUT", challenge.uri, documentOf(line))
    if (answered.status === UNFIT) {
      // The question stands.
      yield* Console.error(plain(refusedBy(UNFIT, answered.body).message))
      continue
    }
    const said = yield* toChallenge(answered)
    yield* say(said, json)
    if (answered.status !== 406) challenge = said
    else {
      // Either one was confused, and the question stands, or one was cast into the gorge.
      const now = yield* request(remote, { method: "GET", path: session })
      challenge = yield* toChallenge(now)
      if (challenge.method !== "PUT") return yield* failed("the bridge is not crossed")
      yield* say(challenge, json)
    }
  }
})

export const bridgeCommand = Command.make(
  "bridge",
  {
    ...accountFlags,
    session: Argument.String("session").pipe(
      Argument.withDescription("The URI of a session to go on with"),
      Argument.optional
    ),
    json: jsonFlag("Each challenge as JSON, one a line")
  },
  Effect.fnUntraced(function*({ json, session, ...flags }) {
    const { baseUrl } = yield* serviceLocation(flags, "account")
    const remote: RemoteService = { baseUrl, authorization: undefined }
    endWithReader()
    const given = Option.getOrUndefined(session)
    const path = given?.startsWith("/") === true ? given : pathOf(given)
    if (given !== undefined && !/^\/sessions\/[^/]+$/.test(path ?? "")) {
      return yield* failed("expected the URI of a session", exitCodes.usage)
    }
    yield* Effect.acquireUseRelease(
      Effect.sync(openLines),
      Effect.fnUntraced(function*(lines) {
        if (isTerminal() && given === undefined) {
          yield* Console.error("Enter to answer, ? when confused, no to leave.")
        }
        const first = path === undefined
          ? yield* begin(remote, lines, json)
          : yield* Effect.flatMap(request(remote, { method: "GET", path }), toChallenge)
        if (first === undefined) return yield* failed("the bridge is not crossed")
        if (path !== undefined) yield* say(first, json)
        yield* play(remote, lines, first, json)
      }),
      (lines) => Effect.sync(() => lines.close())
    )
  })
).pipe(Command.withDescription("Answer the three questions of the Bridge of Death"))
