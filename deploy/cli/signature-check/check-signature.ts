/**
 * `restante registrations check-signature`: what is wrong with a push that a receiver rejects. It
 * needs no service: the secret stays on this machine.
 */
import { Clock, Console, Effect, Option, Redacted } from "effect"
import { Argument, Command } from "effect/cli"
import { diagnoseSignature, readHeaderText, readRequestText,
  type SignatureDiagnosis } from "../../../client/index.ts"
import { type CommandFailed, failed, unreadableFile } from "../../command-failure.ts"
import { checkedRequestBytesMax } from "../../limits.ts"
import { askSecret, checkStandardInput, isTerminal, readSecret } from "../../secret-input.ts"
import { jsonFlag, secretFileFlag, textArgument, textFlag } from "../flags.ts"
import { wrongUsage } from "../service/index.ts"
import { bytesOf, plain, printJson } from "../terminal.ts"

const secretVariable = "RESTANTE_WEBHOOK_SECRET"

/** The whole of a file, or of standard input for `-`. */
const readWhole = (file: string): Effect.Effect<Buffer, CommandFailed> =>
  Effect.scoped(Effect.gen(function*() {
    const source = yield* bytesOf(file)
    const chunks: Array<Buffer> = []
    let length = 0
    yield* Effect.tryPromise({
      try: async () => {
        for await (const chunk of source) {
          chunks.push(chunk)
          length += chunk.length
          if (length > checkedRequestBytesMax) break
        }
      },
      catch: (cause) => unreadableFile(file, cause)
    })
    return length <= checkedRequestBytesMax ? Buffer.concat(chunks) : yield* failed(
      `${file} is no push, as it has more than ${checkedRequestBytesMax} bytes`,
      "give another file"
    )
  }))

/** The secret in a file, in the environment, or typed on the terminal. */
const secretOf = Effect.fnUntraced(function*(
  file: Option.Option<string>,
  isInputRead: boolean
): Effect.fn.Return<string, CommandFailed> {
  const question = "Secret of the registration"
  if (Option.isSome(file)) return Redacted.value(yield* readSecret(file.value, question))
  const value = process.env[secretVariable]
  if (value !== undefined && value !== "") return value.trim()
  if (!isInputRead && isTerminal()) return yield* askSecret(question)
  return yield* wrongUsage(
    "there is no secret to check the signature with",
    `set ${secretVariable}, or use --secret-file; every user of the machine would see an argument`
  )
})

/** The time at which the push arrived; now without one. */
const arrivalMs = (time: Option.Option<string>): Effect.Effect<number, CommandFailed> => {
  if (Option.isNone(time)) return Clock.currentTimeMillis
  const ms = Date.parse(time.value)
  return Number.isNaN(ms)
    ? Effect.fail(wrongUsage(
      `--at is ${JSON.stringify(time.value)}, which is no time`,
      "write one such as 2026-07-01T00:00:00Z"
    ))
    : Effect.succeed(ms)
}

const print = (
  { advice, problem, result, subject }: SignatureDiagnosis,
  json: boolean
): Effect.Effect<void> => {
  if (json) return printJson({ result, problem, subject, advice })
  const lines = [
    result === "right" ? "✓ right" : `✗ ${result}`,
    `what: ${problem}`,
    `of: ${subject}`,
    `do: ${advice}`
  ]
  return Console.log(lines.map(plain).join("\n"))
}

export const checkSignature = Command.make(
  "check-signature",
  {
    request: textArgument(
      "request",
      "File with header fields, an empty line and the body, as it arrived; - for standard input"
    ).pipe(Argument.withDefault("-")),
    body: textFlag("body-file", "file", "The body, in a file of its own; - for standard input"),
    secret: secretFileFlag(
      "secret-file",
      `File of the secret of the registration, in place of ${secretVariable}`
    ),
    at: textFlag("at", "time", "When the push arrived, such as 2026-07-01T00:00:00Z; now without"),
    json: jsonFlag()
  },
  Effect.fnUntraced(function*({ at, body, json, request, secret }) {
    yield* checkStandardInput(secret, body, Option.some(request))
    const isInputRead = request === "-" || Option.getOrUndefined(body) === "-"
    const nowMs = yield* arrivalMs(at)
    const secretText = yield* secretOf(secret, isInputRead)
    const bytes = yield* readWhole(request)
    const push = Option.isNone(body)
      ? readRequestText(bytes)
      : { headers: readHeaderText(bytes.toString("utf8")), body: yield* readWhole(body.value) }
    const diagnosis = yield* Effect.promise(() => diagnoseSignature(push, secretText, { nowMs }))
    yield* print(diagnosis, json)
    if (diagnosis.result !== "right") {
      return yield* failed(
        `the signature of the push is ${plain(diagnosis.result)}`,
        plain(diagnosis.advice)
      )
    }
  })
).pipe(
  Command.withDescription("Say what is wrong with the signature of a push, without a service"),
  Command.withExamples([
    {
      command: "restante registrations check-signature push.txt --secret-file secret.txt",
      description: "Check a push that a log has: header fields, an empty line, the body"
    },
    {
      command: "restante registrations check-signature headers.txt --body-file body.xml",
      description: "Check a body in a file of its own, with the secret of the environment"
    }
  ])
)
