/** Projects that `create-restante` has written, and their programs as processes. */
import { spawnSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { eventually, Running } from "../e2e/process.ts"
import { freePorts } from "../runtime/nats/servers.ts"
import { root } from "./sources.ts"

const command = join(root, "create/main.mjs")
const startsWithinMs = 120_000

/** How the command ended, and what it wrote. */
export interface Creation {
  readonly code: number | null
  readonly output: string
  readonly errors: string
}

/** Runs `create-restante` in a folder; `script` is the file of the command. */
export const create = (
  cwd: string,
  args: ReadonlyArray<string>,
  options: { readonly script?: string; readonly uid?: number } = {}
): Creation => {
  const { script = command, ...user } = options
  const { status, stderr, stdout } = spawnSync(process.execPath, [script, ...args], {
    cwd,
    encoding: "utf8",
    env: { PATH: process.env["PATH"] ?? "" },
    ...user
  })
  return { code: status, output: stdout, errors: stderr }
}

/** The files of a project, but for its data and what npm has installed. */
export const filesOf = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .filter((path) => !/^(node_modules|data|dist)\//.test(path))
    .toSorted()

/** A program of a project that listens. */
export interface ListeningProgram {
  /** Requests the counter of this id, and returns status and body. */
  readonly request: (method: string, id: string) => Promise<readonly [number, unknown]>
  readonly process: Running
  readonly port: number
}

/** Starts a program of a project on ports of its own; resolves when it answers. */
export const listen = async (
  folder: string,
  args: ReadonlyArray<string>,
  environment: Readonly<Record<string, string>> = {}
): Promise<ListeningProgram> => {
  const [port = 0] = await freePorts(1)
  const variables = {
    PORT: String(port),
    // Any that is free.
    INSPECTOR_PORT: "0",
    DATA_DIR: join(folder, "data"),
    ...environment
  }
  // A process of these tests begins in their folder, and tsx is found from that of the program.
  const own = args.map((one) => existsSync(join(folder, one)) ? join(folder, one) : one)
  const running = new Running(process.execPath, own, variables)
  const request = async (method: string, id: string) => {
    const response = await fetch(`http://127.0.0.1:${port}/counters/${id}`, { method })
    return [response.status, await response.json()] as const
  }
  await eventually(startsWithinMs, "the program answers", async () => {
    if (running.isOver) throw new Error(`the program has ended:\n${running.output}`)
    return await request("GET", "visits").catch(() => undefined)
  })
  return { request, process: running, port }
}

/** Replaces a text in a file of a project, as editors do: by a new file of the same name. */
export const edit = (folder: string, path: string, from: string, to: string): void => {
  const file = join(folder, path)
  const text = readFileSync(file, "utf8")
  if (!text.includes(from)) throw new Error(`${path} has no ${from}`)
  writeFileSync(`${file}.new`, text.replace(from, to))
  renameSync(`${file}.new`, file)
}
