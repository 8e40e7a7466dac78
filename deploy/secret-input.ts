/**
 * The secrets of a command: in a file, from standard input, or typed at a terminal. No flag has a
 * secret as its value, since every user of a machine sees the arguments of processes.
 */
import { Effect, Option, Redacted } from "effect"
import { open } from "node:fs/promises"
import { createInterface } from "node:readline"
import { type Readable, Writable } from "node:stream"
import { type CommandFailed, exitCodes, failed, unreadableFile } from "./command-failure.ts"
import { secretFileBytesMax } from "./limits.ts"

/** Where a person types a secret: standard output may be the result of the command. */
export interface SecretTerminal {
  readonly input: Readable & { readonly isTTY?: boolean }
  readonly output: { readonly write: (text: string) => unknown }
}

const processTerminal = (): SecretTerminal => ({ input: process.stdin, output: process.stderr })

/** Whether a person can be asked. */
export const isTerminal = ({ input }: SecretTerminal = processTerminal()): boolean =>
  input.isTTY === true

/** Asks for a secret on the terminal, which does not show what is typed. */
export const askSecret = (
  question: string,
  { input, output }: SecretTerminal = processTerminal()
): Effect.Effect<string, CommandFailed> =>
  Effect.callback<string, CommandFailed>((resume) => {
    const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
    const reader = createInterface({ input, output: silent, terminal: true, historySize: 0 })
    const end = (result: Effect.Effect<string, CommandFailed>) => {
      reader.removeAllListeners()
      reader.close()
      output.write("\n")
      resume(result)
    }
    const nothing = Effect.fail(
      failed("no secret was typed", "repeat the command", exitCodes.usage)
    )
    reader.once("line", (line) => end(Effect.succeed(line)))
    reader.once("SIGINT", () => end(nothing))
    reader.once("close", () => end(nothing))
    output.write(`${question}: `)
  })

/** Fails if more than one value is `-`, standard input, which is read once. */
export const checkStandardInput = (
  ...files: ReadonlyArray<Option.Option<string>>
): Effect.Effect<void, CommandFailed> =>
  files.filter((file) => Option.getOrUndefined(file) === "-").length < 2
    ? Effect.void
    : Effect.fail(failed(
      "standard input (-) is read once",
      "name a file in its other places",
      exitCodes.usage
    ))

/** The bytes of a stream; beyond the limit, its beginning. */
const bytesUpTo = async (source: AsyncIterable<Uint8Array>, limit: number): Promise<Buffer> => {
  const chunks: Array<Uint8Array> = []
  let count = 0
  for await (const chunk of source) {
    chunks.push(chunk)
    count += chunk.length
    if (count > limit) break
  }
  return Buffer.concat(chunks)
}

const readText = async (file: string): Promise<string> => {
  if (file === "-") return (await bytesUpTo(process.stdin, secretFileBytesMax)).toString("utf8")
  const handle = await open(file)
  try {
    const source = handle.createReadStream({ autoClose: false })
    return (await bytesUpTo(source, secretFileBytesMax)).toString("utf8")
  } finally {
    await handle.close()
  }
}

/**
 * The secret in a file, which has it as its only line. `-` is standard input, or the answer to a
 * question if that is a terminal.
 */
export const readSecret = Effect.fnUntraced(function*(
  file: string,
  question: string
): Effect.fn.Return<Redacted.Redacted, CommandFailed> {
  const isAsked = file === "-" && isTerminal()
  const text = isAsked ? yield* askSecret(question) : yield* Effect.tryPromise({
    try: () => readText(file),
    catch: (cause) => unreadableFile(file, cause)
  })
  const secret = text.replace(/\r?\n$/, "")
  if (/^[\x21-\x7e]+$/.test(secret) && secret.length <= secretFileBytesMax) {
    return Redacted.make(secret)
  }
  const source = file === "-" ? "standard input" : file
  return yield* failed(
    `${source} has no secret, which is one line of visible ASCII characters without spaces`,
    "write the secret there again",
    exitCodes.usage
  )
})
