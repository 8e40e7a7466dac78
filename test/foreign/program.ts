/** Runs programs of the suites, each in a process group that ends with its time limit. */
import { type ChildProcess, spawn } from "node:child_process"

/** How a program ended, and what it wrote. */
export interface Program {
  /** The exit code; undefined when a signal or the time limit ended it. */
  readonly code: number | undefined
  readonly output: string
  readonly errors: string
}

export interface ProgramOptions {
  readonly cwd: string
  readonly withinMs: number
  readonly env?: Readonly<Record<string, string>>
}

const running = new Set<ChildProcess>()

/** Ends a program and what it started. */
const end = (child: ChildProcess): void => {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, "SIGKILL")
  } catch {
    // Its group has ended already.
  }
}

/** Ends every running program: after an error or an interrupt. */
export const endPrograms = (): void => {
  for (const child of running) end(child)
}

/** Runs a program to its end; fails only when it cannot be started. */
export const runProgram = async (
  command: string,
  args: ReadonlyArray<string>,
  { cwd, env, withinMs }: ProgramOptions
): Promise<Program> => {
  const child = spawn(command, args, {
    cwd,
    env: { ...process.env, ...env },
    // A group of its own, so that its children end with it.
    detached: true,
    stdio: ["ignore", "pipe", "pipe"]
  })
  running.add(child)
  const written = { output: "", errors: "" }
  child.stdout.setEncoding("utf8").on("data", (text: string) => written.output += text)
  child.stderr.setEncoding("utf8").on("data", (text: string) => written.errors += text)
  const timer = setTimeout(() => end(child), withinMs)
  try {
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once("error", reject)
      child.once("close", resolve)
    })
    return { code: code ?? undefined, ...written }
  } finally {
    clearTimeout(timer)
    running.delete(child)
  }
}
