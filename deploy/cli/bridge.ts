/** `restante bridge`: a session of the service (protocol §2) in the terminal. */
import { Effect, Option, Schema } from "effect"
import { Argument, Command } from "effect/cli"
import { createInterface } from "node:readline"
import { type Client, pathOf, ProblemError } from "../../client/index.ts"
import { failed } from "../command-failure.ts"
import { accountFlags, jsonFlag, textArgument } from "./flags.ts"
import { call, locateService, notUnderstood, ownResourceOf, problemOf } from "./service/index.ts"
import { endWithReader, jsonText, plain, printLine } from "./terminal.ts"

const Challenge = Schema.Struct({
  p: Schema.String,
  method: Schema.optionalKey(Schema.String),
  uri: Schema.optionalKey(Schema.String),
  session: Schema.optionalKey(Schema.String)
})

type Challenge = typeof Challenge.Type

const decodeChallenge = Schema.decodeUnknownOption(Schema.fromJsonString(Challenge))

/** The status (422) of an answer that is empty, too long, or has an unreadable href. */
const unprocessableStatus = 422

const notCrossed = () =>
  failed("the session ended before the other side of the bridge", "begin another one")

const printError = (text: string): boolean => process.stderr.write(`${text}\n`)

const isTerminal = (): boolean => process.stdin.isTTY && process.stderr.isTTY

const isRefusal = (text: string): boolean => /^(?:n|no|q|quit)$/i.test(text)

const isConfused = (text: string): boolean => /^(?:\?|what\??|huh\??)$/i.test(text)

/** An answer as the JSON document that the service accepts. */
const documentOf = (text: string): object =>
  isConfused(text)
    ? { continue: "confused", text: text }
    : /^https?:\/\/\S+$/.test(text)
    ? { href: text }
    : { text: text }

/** Asks the questions of one session on the terminal. */
class Bridge {
  private readonly client: Client
  private readonly json: boolean
  private readonly input = createInterface({ input: process.stdin, terminal: false })
  private readonly lines = this.input[Symbol.asyncIterator]()

  constructor(client: Client, json: boolean) {
    this.client = client
    this.json = json
  }

  close(): void {
    this.input.close()
  }

  /** Begins a session. Fails if the user declines. */
  async begin(): Promise<Challenge> {
    if (isTerminal()) printError("Enter to answer, ? when confused, no to leave.")
    const { uri = "/sessions" } = this.print(await this.challengeAt("/cross_bridge"))
    for (;;) {
      const line = await this.nextLine()
      if (line === undefined) throw notCrossed()
      const answer = { continue: isConfused(line) ? "confused" : "true" }
      const reply = await this.request("POST", uri, answer)
      if (reply === undefined) continue
      this.print(reply.challenge)
      if (!reply.isRejected) return reply.challenge
    }
  }

  /** Continues with the current question of a session. */
  async continue(path: string): Promise<Challenge> {
    return this.print(await this.challengeAt(path))
  }

  /** Answers the questions to the end of the session; fails after a wrong answer. */
  async cross(first: Challenge): Promise<void> {
    if (first.session === undefined) throw notUnderstood()
    let challenge = first
    while (challenge.method === "PUT" && challenge.uri !== undefined) {
      const line = await this.nextLine()
      if (line === undefined) {
        throw failed(
          "the questions of the session are not all answered",
          plain(`continue it with restante bridge ${first.session}`)
        )
      }
      const reply = await this.request("PUT", challenge.uri, documentOf(line))
      if (reply === undefined) continue
      this.print(reply.challenge)
      if (!reply.isRejected) challenge = reply.challenge
      else {
        // After a confused answer the question remains; after a wrong one the session is over.
        challenge = await this.challengeAt(first.session)
        if (challenge.method !== "PUT") throw notCrossed()
        this.print(challenge)
      }
    }
  }

  /** The next line of standard input; undefined at the end of input, or if the user declines. */
  private async nextLine(): Promise<string | undefined> {
    if (isTerminal()) process.stderr.write("> ")
    const { done, value } = await this.lines.next()
    return done === true || isRefusal(value.trim()) ? undefined : value.trim()
  }

  private print(challenge: Challenge): Challenge {
    printLine(this.json ? jsonText(challenge) : plain(challenge.p))
    return challenge
  }

  private async challengeAt(uri: string): Promise<Challenge> {
    const { text } = await this.client.request({ method: "GET", uri: pathOf(uri) })
    return Option.getOrThrowWith(decodeChallenge(text), notUnderstood)
  }

  /**
   * Sends an answer, and returns the reply. `isRejected`: the service did not accept the answer, or
   * the session is over. Returns undefined if the answer is unusable; the user can answer again.
   */
  private async request(
    method: "POST" | "PUT",
    uri: string,
    answer: object
  ): Promise<{ readonly challenge: Challenge; readonly isRejected: boolean } | undefined> {
    try {
      const { status, text } = await this.client.request({
        method,
        uri: pathOf(uri),
        acceptedStatuses: [406],
        headers: { "content-type": "application/json" },
        body: JSON.stringify(answer)
      })
      const challenge = Option.getOrThrowWith(decodeChallenge(text), notUnderstood)
      return { challenge, isRejected: status === 406 }
    } catch (error) {
      if (!(error instanceof ProblemError && error.status === unprocessableStatus)) throw error
      printError(plain(problemOf(error)))
      return undefined
    }
  }
}

export const bridgeCommand = Command.make(
  "bridge",
  {
    ...accountFlags,
    session: textArgument("session", "The id or the URI of a session to continue").pipe(
      Argument.optional
    ),
    json: jsonFlag("Each challenge as JSON, one a line")
  },
  Effect.fnUntraced(function*({ json, session, ...flags }) {
    const service = yield* locateService(flags, "account")
    endWithReader()
    const path = Option.isNone(session)
      ? undefined
      : (yield* ownResourceOf(service, session.value, "session")).path
    yield* call({ baseUrl: service.baseUrl, token: undefined }, async (client) => {
      const bridge = new Bridge(client, json)
      try {
        await bridge.cross(path === undefined ? await bridge.begin() : await bridge.continue(path))
      } finally {
        bridge.close()
      }
    })
  })
).pipe(Command.withDescription("Answer the three questions of the Bridge of Death"))
