/** Compiles `child.ts`, and runs it in another process. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"

const root = resolve(import.meta.dirname, "../../..")

const outDir = join(root, "node_modules/.cache/restante-embedded")

/** Compiles the child, since Node 20 cannot run TypeScript; returns its path. */
export const compileChild = (): string => {
  mkdirSync(outDir, { recursive: true })
  const settings = {
    extends: join(root, "tsconfig.base.json"),
    compilerOptions: { rootDir: root, outDir, composite: false, incremental: false },
    files: [join(root, "test/runtime/embedded/child.ts")]
  }
  writeFileSync(join(outDir, "tsconfig.json"), JSON.stringify(settings))
  writeFileSync(join(outDir, "package.json"), JSON.stringify({ type: "module" }))
  const tsc = join(root, "node_modules/typescript/bin/tsc")
  execFileSync(process.execPath, [tsc, "-p", outDir], { stdio: "inherit" })
  return join(outDir, "test/runtime/embedded/child.js")
}

export interface Child {
  readonly process: ChildProcess
  readonly lines: ReadonlyArray<string>
  /** Resolves when the child has printed so many lines. */
  readonly printed: (count: number) => Promise<void>
  readonly kill: () => Promise<void>
}

export const startChild = (
  path: string,
  folder: string,
  mode: "commit" | "hold",
  env: Readonly<Record<string, string>> = {}
): Child => {
  const child = spawn(process.execPath, [path, folder, mode], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "inherit"]
  })
  const ended = new Promise<void>((done) => child.once("close", () => done()))
  const lines: Array<string> = []
  let rest = ""
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    const parts = (rest + text).split("\n")
    rest = parts.pop() ?? ""
    lines.push(...parts)
  })
  const printed = async (count: number): Promise<void> => {
    while (lines.length < count) {
      if (child.exitCode !== null) throw new Error(`the child ended with ${child.exitCode}`)
      await new Promise((done) => setTimeout(done, 5))
    }
  }
  const kill = (): Promise<void> => {
    child.kill("SIGKILL")
    return ended
  }
  return { process: child, lines, printed, kill }
}
