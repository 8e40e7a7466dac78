/** The output of the commands, and the files that they read. */
import { Console, Effect, type Scope } from "effect"
import { CliOutput } from "effect/cli"
import { open } from "node:fs/promises"
import { Readable } from "node:stream"
import { type CommandFailed, exitCodes, unreadableFile } from "../command-failure.ts"
import { columnCharsMax } from "../limits.ts"

/** How many entries the largest page of the service has. */
const pageEntriesMax = 1000

/** The page size to request if the command needs `limit` entries. */
export const pageSizeFor = (limit: number): number => Math.min(limit, pageEntriesMax)

/** The first `limit` entries of a listing. */
export async function* take<A>(
  listing: AsyncIterable<A>,
  limit: number
): AsyncGenerator<A, void, void> {
  let left = limit
  for await (const entry of listing) {
    yield entry
    if (--left === 0) return
  }
}

/** The controls that JSON does not escape itself, and that some terminals obey. */
const unescapedControls = /[\u007f-\u009f]/g

/** A document as JSON without control characters, since a terminal may show it. */
export const jsonText = (document: unknown, indent?: number): string =>
  JSON.stringify(document, null, indent).replace(
    unescapedControls,
    (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, "0")}`
  )

/** Prints a JSON document, for programs. */
export const printJson = (document: unknown): Effect.Effect<void> =>
  Console.log(jsonText(document, 2))

/** Prints the outcome of a command: a JSON document for programs, or a message for people. */
export const printOutcome = (json: boolean, document: object, message: string) =>
  json ? printJson(document) : Console.error(plain(message))

/** Prints one line to standard output. */
export const printLine = (line: string): boolean => process.stdout.write(`${line}\n`)

/** Control characters, line separators, and characters that change the direction of text. */
const unprintable = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]+/gu

/** Foreign text as one line without effects on the terminal. */
export const plain = (text: string): string => text.replace(unprintable, " ")

/** Foreign text of several lines, each without effects on the terminal. */
export const plainLines = (text: string): string => text.split("\n").map(plain).join("\n")

/** The beginning of a text that a column is to hold. */
export const cut = (text: string): string => {
  const chars = [...text]
  return chars.length <= columnCharsMax ? text : `${chars.slice(0, columnCharsMax - 1).join("")}…`
}

/**
 * Rows in aligned columns, without effects on the terminal. A cell that is longer than a column may
 * be is whole, and moves only what follows it.
 */
export const table = (cells: ReadonlyArray<ReadonlyArray<string>>): string => {
  const rows = cells.map((row) => row.map(plain))
  const widths: Array<number> = []
  for (const row of rows) {
    for (const [at, cell] of row.entries()) {
      if (cell.length <= columnCharsMax) widths[at] = Math.max(widths[at] ?? 0, cell.length)
    }
  }
  return rows.map((row) => row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join("  ").trimEnd())
    .join("\n")
}

/** `1 recipient`, `2 recipients`. */
export const plural = (count: number, noun: string): string =>
  `${count} ${noun}${count === 1 ? "" : "s"}`

/** Ends this process without an error when the reader of its output ends, such as `head`. */
export const endWithReader = (): void => {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error
    process.exit(0)
  })
}

/** A console on standard error, for help that would look like the output of the command. */
const standardErrorConsole: Console.Console = Object.assign(Object.create(console), {
  log: (...parts: ReadonlyArray<unknown>) => process.stderr.write(`${parts.join(" ")}\n`)
})

/** What is wrong with a command line, in one line for each fault, and where its help is. */
const wrongLine = (
  { commandPath, errors }: CliOutput.Presenter.InvalidInvocation
): string => {
  // What the library says of a schema, whose own message begins with the same word.
  const preface = /Expected: Schema validation failed: (?:Expected )?/
  const faults = errors.map(({ message }) =>
    message.replace(/\s+/g, " ").replace(preface, "Expected ")
  )
  return [...faults, `try \`${commandPath.join(" ")} --help\``]
    .map((line) => `restante: ${line}\n`).join("")
}

/**
 * Prints requested help to standard output, and other help to standard error. A wrong command line
 * gets no help, which would move its fault out of sight.
 */
export const presenter: CliOutput.Presenter = {
  present: (event) => {
    if (event._tag === "InvalidInvocation") {
      return Effect.sync(() => void process.stderr.write(wrongLine(event)))
    }
    const printed = CliOutput.defaultPresenter.present(event)
    const isRequested = event._tag === "Version" ||
      (event._tag === "Help" && event.reason !== "Implicit")
    return isRequested
      ? printed
      : Effect.provideService(printed, Console.Console, standardErrorConsole)
  }
}

/** The output of a progress line. */
export interface Screen {
  readonly write: (text: string) => void
  /** Whether a line can be overwritten. */
  readonly isTerminal: boolean
}

export const standardError: Screen = {
  write: (text) => void process.stderr.write(text),
  isTerminal: process.stderr.isTTY
}

/** How often a progress line is written where it cannot be overwritten, such as to a log. */
const loggedProgressMs = 10_000

/**
 * Shows a line of progress. On a terminal it overwrites the line, at most every `intervalMs`;
 * elsewhere it writes a line every 10 s.
 */
export const progressLine = (
  intervalMs: number,
  screen = standardError,
  monotonicMs = () => performance.now()
) => {
  let nextMs = screen.isTerminal ? 0 : monotonicMs() + loggedProgressMs
  return {
    show: (text: () => string): void => {
      const nowMs = monotonicMs()
      if (nowMs < nextMs) return
      nextMs = nowMs + (screen.isTerminal ? intervalMs : loggedProgressMs)
      screen.write(screen.isTerminal ? `\r\x1b[K${text()}` : `${text()}\n`)
    },
    clear: (): void => {
      if (screen.isTerminal) screen.write("\r\x1b[K")
    }
  }
}

/** Runs to the end; a signal before the end makes the exit code 1 instead of 0. */
export const mustComplete = <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    process.exitCode = exitCodes.failed
    return Effect.tap(work, () =>
      Effect.sync(() => {
        process.exitCode = undefined
      }))
  })

/** The bytes of a file, or of standard input for `-`, as a stream. */
export const bytesOf = (
  file: string
): Effect.Effect<Readable, CommandFailed, Scope.Scope> =>
  file === "-" ? Effect.succeed(process.stdin) : Effect.gen(function*() {
    const unreadable = (cause: unknown): CommandFailed => unreadableFile(file, cause)
    const handle = yield* Effect.acquireRelease(
      Effect.tryPromise({ try: () => open(file), catch: unreadable }),
      (handle) => Effect.promise(() => handle.close())
    )
    const stat = yield* Effect.tryPromise({ try: () => handle.stat(), catch: unreadable })
    if (stat.isDirectory()) return yield* unreadable("it is a folder")
    return handle.createReadStream({ autoClose: false, highWaterMark: 256 * 1024 })
  })

/** The stream as a web stream, which `fetch` accepts as a body. */
export const webStream = (source: Readable): ReadableStream<Uint8Array> =>
  // Node and the DOM types declare the same stream twice.
  Readable.toWeb(source) as ReadableStream<Uint8Array>
