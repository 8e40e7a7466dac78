/** The reader of docs/runtime/tutorial.md: a folder, a shell, and what the page says to do. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect } from "vitest"
import { type Block, blocksOf } from "../pages.ts"
import { patternOf, stepsOf } from "../transcript.ts"

const page = "docs/runtime/tutorial.md"

const shortTest = "test/docs/runtime/tutorial.test.ts"

/** Surrounds the exit code of a command. */
const mark = "\u001e"

/** What the shell itself says of processes that were killed. */
const ofJobs = /^bash: line \d+: +\d+ (?:Killed|Terminated).*\n/gm

interface Typed {
  readonly output: string
  readonly code: string
}

/** One shell, in which a reader types one command after the other. */
export class ReaderShell {
  private readonly child: ChildProcessWithoutNullStreams
  private output = ""
  /** Called with each output. */
  private onOutput: () => void = () => {}

  constructor(folder: string, env: Readonly<Record<string, string>>) {
    const { HOME = "", PATH = "" } = process.env
    this.child = spawn("bash", ["--norc"], {
      cwd: folder,
      env: { HOME, PATH, npm_config_update_notifier: "false", ...env },
      detached: true
    })
    this.child.stdout.on("data", (chunk) => {
      this.output += String(chunk)
      this.onOutput()
    })
    this.child.stdin.write("exec 2>&1\n")
  }

  async type(command: string): Promise<Typed> {
    this.output = ""
    this.child.stdin.write(`{ ${command}\n} </dev/null\nprintf '${mark}%s${mark}' "$?"\n`)
    await new Promise<void>((resolve) => {
      this.onOutput = () => {
        if (this.output.split(mark).length === 3) resolve()
      }
    })
    const [output = "", code = ""] = this.output.split(mark)
    return { output: output.replace(ofJobs, "").trimEnd(), code }
  }

  /** Ends the shell and all that it has started. */
  end(): void {
    const { pid } = this.child
    // Its group is its own, since it is detached.
    if (pid !== undefined && this.child.exitCode === null) process.kill(-pid, "SIGKILL")
  }
}

export interface ReaderOptions {
  readonly folder: string
  readonly shell: ReaderShell
  /** A text of the page as this reader needs it, with a port of this machine. */
  readonly here: (text: string) => string
  /** Whether the reader also types what only the long test runs. */
  readonly isLong: boolean
  /** What the test does after a command. */
  readonly after?: (command: string) => Promise<void>
}

/** Types the commands of a block. Without `$ ` it shows no output. */
const commandsOf = (block: Block) =>
  block.text.startsWith("$ ")
    ? stepsOf(block)
    : block.text.trimEnd().split("\n").map((command) => ({ command, expected: undefined }))

/** Saves the files and types the commands, in their order; returns the outputs by command. */
export const follow = async (
  { after, folder, here, isLong, shell }: ReaderOptions
): Promise<ReadonlyMap<string, string>> => {
  const outputs = new Map<string, string>()
  for (const block of blocksOf(page)) {
    if (block.mark?.kind === "file") {
      writeFileSync(join(folder, block.mark.text), here(block.text))
    } else if (isLong || block.mark?.text === shortTest) {
      for (const { command, expected } of commandsOf(block)) {
        const { code, output } = await shell.type(here(command))
        if (expected !== undefined) expect(output, command).toMatch(patternOf(expected))
        // The page shows one command that fails: the test that finds the bug.
        const fails = expected?.includes("VIOLATION") === true
        expect(code, `${command}:\n${output}`).toBe(fails ? "1" : "0")
        outputs.set(command, output)
        await after?.(command)
      }
    }
  }
  return outputs
}
