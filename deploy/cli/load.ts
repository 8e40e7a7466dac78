/** `restante load`: a whole file of customers, all of it or nothing. */
import { open } from "node:fs/promises"
import { extname } from "node:path"
import { Console, Effect, Option, type Scope } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { followLoad, type LoadProgress, problemsOf, sendFile } from "../customers.ts"
import { type CommandFailed, exitCodes } from "../failure.ts"
import { failed } from "../remote.ts"
import { jsonFlag, plain, some } from "./output.ts"
import { accountFlags, asAccount } from "./remote.ts"

const types = {
  csv: "text/csv; charset=utf-8",
  jsonl: "application/x-ndjson",
  xml: "application/xml"
} as const

type Format = keyof typeof types

const formats: ReadonlyArray<Format> = ["csv", "jsonl", "xml"]

const byName: Readonly<Record<string, Format>> = {
  ".csv": "csv",
  ".jsonl": "jsonl",
  ".ndjson": "jsonl",
  ".xml": "xml"
}

/** The bytes of a file, or of standard input. */
const bytesOf = (
  file: string
): Effect.Effect<AsyncIterable<Uint8Array>, CommandFailed, Scope.Scope> =>
  file === "-" ? Effect.succeed(process.stdin) : Effect.gen(function*() {
    const handle = yield* Effect.acquireRelease(
      Effect.tryPromise({
        try: () => open(file),
        catch: (cause) =>
          failed(
            `${file} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`
          )
      }),
      (handle) => Effect.promise(() => handle.close())
    )
    return handle.createReadStream({ autoClose: false, highWaterMark: 256 * 1024 })
  })

/** One line that is written over and over, for people only. */
class Progress {
  private readonly isShown = process.stderr.isTTY
  private lastMs = 0
  private width = 0

  show(text: string, isLast = false): void {
    const nowMs = performance.now()
    if (!this.isShown || (!isLast && nowMs - this.lastMs < 100)) return
    this.lastMs = nowMs
    process.stderr.write(`\r${text.padEnd(this.width)}${isLast ? "\n" : ""}`)
    this.width = text.length
  }
}

async function* counted(
  bytes: AsyncIterable<Uint8Array>,
  progress: Progress
): AsyncGenerator<Uint8Array> {
  let sent = 0
  for await (const chunk of bytes) {
    sent += chunk.length
    progress.show(`sent ${(sent / 1e6).toFixed(1)} MB`)
    yield chunk
  }
}

const summaryOf = ({ created, replaced, rows, skipped }: LoadProgress): string =>
  `${some(rows, "row")}: ${created} new, ${replaced} replaced, ${skipped} passed over`

export const loadCommand = Command.make(
  "load",
  {
    ...accountFlags,
    table: Argument.Literals("table", ["customers"]).pipe(
      Argument.withDescription("What is loaded: customers")
    ),
    file: Argument.String("file").pipe(
      Argument.withDescription("A file in UTF-8, or - for standard input")
    ),
    format: Flag.Literals("format", formats).pipe(
      Flag.withDescription("By the file's name unless given"),
      Flag.optional
    ),
    continue: Flag.Boolean("continue").pipe(
      Flag.withDescription("Pass over rows with a fault, instead of refusing the file"),
      Flag.withDefault(false)
    ),
    json: jsonFlag("Print what became of it as JSON")
  },
  Effect.fnUntraced(function*({ continue: isLenient, file, format, json, ...given }) {
    const chosen = Option.getOrElse(format, () => byName[extname(file).toLowerCase()])
    if (chosen === undefined) {
      return yield* failed(`give --format: one of ${formats.join(", ")}`, exitCodes.usage)
    }
    const remote = yield* asAccount(given)
    const progress = new Progress()
    const begun = yield* Effect.scoped(
      Effect.flatMap(
        bytesOf(file),
        (bytes) =>
          sendFile(remote, { bytes: counted(bytes, progress), type: types[chosen], isLenient })
      )
    )
    const load = yield* followLoad(
      remote,
      begun,
      ({ read, rows }) => progress.show(`loaded ${read} of ${some(rows, "row")}`)
    )
    progress.show(summaryOf(load), true)
    const problems = problemsOf(load).map((one) => ({ row: Number(one.row), detail: one["#text"] }))
    for (const { detail, row } of problems) yield* Console.error(`row ${row}: ${plain(detail)}`)
    const { created, href, replaced, rows, skipped } = load
    yield* Console.log(
      json
        ? JSON.stringify({ href, rows, created, replaced, skipped, problems })
        : summaryOf(load)
    )
  })
).pipe(
  Command.withDescription("Load a file of customers (CSV, JSON lines, XML), all of it or nothing"),
  Command.withExamples([
    {
      command: "restante load customers people.csv",
      description: "Make or replace every customer in the file"
    },
    {
      command: "restante load customers - --format jsonl --continue",
      description: "From standard input, passing over rows with a fault"
    }
  ])
)
