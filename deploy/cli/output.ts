/** What the commands print. */
import { Console, type Effect } from "effect"
import { Flag } from "effect/cli"

export const jsonFlag = (about = "Print JSON") =>
  Flag.Boolean("json").pipe(Flag.withDescription(about), Flag.withDefault(false))

/** A document for programs. */
export const printJson = (document: unknown): Effect.Effect<void> =>
  Console.log(JSON.stringify(document, null, 2))

/** Control characters, line separators, and what turns the direction of writing. */
const unprintable = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]+/gu

/** Text of others as one line that can do nothing to a terminal. */
export const plain = (text: string): string => text.replace(unprintable, " ")

/** Rows below each other, with columns as wide as they need to be. */
export const table = (rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const widths: Array<number> = []
  for (const row of rows) {
    for (const [at, cell] of row.entries()) widths[at] = Math.max(widths[at] ?? 0, cell.length)
  }
  return rows.map((row) => row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join("  ").trimEnd())
    .join("\n")
}

/** `1 recipient`, `2 recipients`. */
export const some = (count: number, what: string): string =>
  `${count} ${what}${count === 1 ? "" : "s"}`

/** Ends this process quietly when nobody reads on, as `head` does after its last line. */
export const endWithReader = (): void => {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error
    process.exit(0)
  })
}
