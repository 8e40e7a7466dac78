/**
 * Transcripts: `$ ` begins a command, `> ` continues it, `…` is any text, and a line of only `…`
 * any lines. In a command `…` is a secret that the first start has printed.
 */
import type { Block } from "./pages.ts"

/** A command with the output that the page shows. */
export interface Step {
  readonly command: string
  readonly expected: string
}

/** Where the pages' service is. */
export const writtenOrigin = "http://localhost:8080"

export const stepsOf = ({ line, page, text }: Block): ReadonlyArray<Step> => {
  const steps: Array<{ command: string; expected: string }> = []
  for (const shown of text.trimEnd().split("\n")) {
    const step = steps.at(-1)
    if (shown.startsWith("$ ")) steps.push({ command: shown.slice(2), expected: "" })
    else if (step === undefined) {
      throw new Error(`${page}:${line}: begin commands with "$ ", or say <!-- not run: why -->`)
    } else if (shown.startsWith("> ") && step.expected === "") {
      step.command += `\n${shown.slice(2)}`
    } else step.expected += `${shown}\n`
  }
  return steps
}

/** What the whole output of a command matches, without the line's end. */
export const patternOf = (expected: string): RegExp => {
  const escaped = expected.trimEnd().replace(/[.*+?^${}()|[\]\\]/g, "\\$&")
  const lines = escaped.replace(/^…(\n|$)/gm, "(?:[^\\n]*(?:\\n|$))*")
  return new RegExp(`^${lines.replaceAll("…", "[^\\n]*")}$`)
}

/** What the first start prints at its end. */
export interface FirstStart {
  readonly token: string
  /** The three lines to try, with their secrets. */
  readonly lines: ReadonlyArray<string>
  /** What comes after the `~` in the URI of the mailbox `inbox`. */
  readonly secret: string
}

const printed =
  /^ {2}(rst_\S{43})\n\nSend something .+:\n {2}(curl -d .+)\n {2}(curl .+~.+)\n {2}(\S+~(\S+))\n$/m

/** What the first start has printed; undefined when this was no first start, or not yet. */
export const firstStartIn = (output: string): FirstStart | undefined => {
  const [, token, deposit = "", read = "", page = "", secret] = printed.exec(output) ?? []
  if (token === undefined || secret === undefined) return undefined
  return { token, lines: [deposit, read, page], secret }
}

/** A command with the secrets that the page leaves out. */
export const withSecrets = (command: string, first: FirstStart): string =>
  command.replace(/TOKEN=(?:rst_)?…/, `TOKEN=${first.token}`).replaceAll(
    "inbox~…",
    `inbox~${first.secret}`
  )
