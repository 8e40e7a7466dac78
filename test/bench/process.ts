/** The measured processes: started on loopback, measured by /proc, and always ended. */
import { type ChildProcess, spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { readFileSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

/** The project's folder; this module runs from dist/test/bench. */
export const root = fileURLToPath(new URL("../../../", import.meta.url))

const readyWithinMs = 60_000
const pollMs = 5
const stopWithinMs = 60_000
const ticksPerSecond = 100

/** Memory of one process, in MB of 1,000,000 bytes. */
export interface Memory {
  /** Resident memory now. */
  readonly resident: number
  /** Peak resident memory since the start or `resetPeak`. */
  readonly peak: number
  /** The part of `resident` without file-backed pages. */
  readonly anonymous: number
}

export type StopSignal = "SIGINT" | "SIGTERM" | "SIGKILL"

export interface Running {
  readonly pid: number
  readonly origin: string
  readonly token: string
  /** Time from spawning the process to its first response. */
  readonly readyAfterMs: number
  readonly memory: () => Memory
  readonly resetPeak: () => void
  /** Processor time of all threads. */
  readonly cpuMs: () => number
  readonly stop: (signal?: StopSignal) => Promise<void>
}

export interface ServeOptions {
  /** The folder of another build of the service. */
  readonly build?: string
  readonly token?: string
  readonly env?: Readonly<Record<string, string>>
}

const running = new Set<ChildProcess>()

/** Ends every running process: after an error or an interrupt. */
export const endAll = (): void => {
  for (const child of running) child.kill("SIGKILL")
}

export const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer().once("error", reject)
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      server.close(() => resolve(typeof address === "object" ? address?.port ?? 0 : 0))
    })
  })

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

const answers = async (uri: string): Promise<boolean> => {
  try {
    const { body, ok } = await fetch(uri)
    await body?.cancel()
    return ok
  } catch {
    return false
  }
}

const memoryOf = (pid: number): Memory => {
  const status = readFileSync(`/proc/${pid}/status`, "utf8")
  const field = (name: string): number =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(status)?.[1]) * 1024 / 1e6
  return { resident: field("VmRSS"), peak: field("VmHWM"), anonymous: field("RssAnon") }
}

/** The fields of /proc/<pid>/stat after the program's name, from the state on. */
const statOf = (pid: number | string): ReadonlyArray<string> => {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")
}

const ticksToMs = (...ticks: ReadonlyArray<string | undefined>): number =>
  ticks.reduce((sum, one) => sum + Number(one), 0) * 1000 / ticksPerSecond

/** Processor time of all threads of a process. */
export const cpuMsOf = (pid: number): number => {
  const fields = statOf(pid)
  return ticksToMs(fields[11], fields[12])
}

/** Processor time of a process and of its children, also of those that have ended. */
export const cpuMsWithChildren = (pid: number): number => {
  const fields = statOf(pid)
  const own = ticksToMs(...fields.slice(11, 15))
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ")
  return children.filter(Boolean).reduce((sum, child) => {
    try {
      return sum + cpuMsOf(Number(child))
    } catch {
      // It has ended since the list was read: the next reading has its time in that of its parent.
      return sum
    }
  }, own)
}

/** The user that a program runs as, by its numbers. */
export interface User {
  readonly uid: number
  readonly gid: number
}

export interface ProgramOptions {
  readonly env?: Readonly<Record<string, string>>
  /** Where clients reach it; empty for a program that is not asked over HTTP. */
  readonly origin: string
  readonly token?: string
  /** A URI that is answered when the program is ready, or a check for that. */
  readonly ready: string | (() => Promise<boolean>)
  readonly user?: User | undefined
  /** The signal that ends the program in order. By default SIGTERM. */
  readonly stopSignal?: StopSignal
}

/** Starts a program and waits until it is ready. Fails, and ends the program, when it is not. */
export const startProgram = async (
  command: string,
  args: ReadonlyArray<string>,
  { env, origin, ready, stopSignal = "SIGTERM", token = "", user }: ProgramOptions
): Promise<Running> => {
  const startedMs = performance.now()
  const child = spawn(command, args, {
    env: { PATH: process.env["PATH"] ?? "", ...env },
    stdio: ["ignore", "ignore", "pipe"],
    ...user
  })
  running.add(child)
  let errorText = ""
  let isOver = false
  child.stderr.on("data", (chunk: Buffer) => errorText = `${errorText}${chunk}`.slice(-4000))
  const exited = new Promise<void>((resolve) => {
    const over = () => {
      isOver = true
      running.delete(child)
      resolve()
    }
    child.once("exit", over)
    child.once("error", (error) => {
      errorText += String(error)
      over()
    })
  })
  const stop = async (signal: StopSignal): Promise<void> => {
    child.kill(signal)
    const timer = setTimeout(() => child.kill("SIGKILL"), stopWithinMs)
    await exited
    clearTimeout(timer)
  }
  const isReady = typeof ready === "string" ? () => answers(ready) : ready
  while (!await isReady()) {
    if (isOver || performance.now() - startedMs > readyWithinMs) {
      await stop(stopSignal)
      throw new Error(`${command} is not ready:\n${errorText}\nits arguments: ${args.join(" ")}`)
    }
    await pause(pollMs)
  }
  const pid = child.pid ?? 0
  return {
    pid,
    origin,
    token,
    readyAfterMs: performance.now() - startedMs,
    memory: () => memoryOf(pid),
    // 5 resets the peak of the resident set (proc_pid_clear_refs(5)).
    resetPeak: () => writeFileSync(`/proc/${pid}/clear_refs`, "5"),
    cpuMs: () => cpuMsOf(pid),
    stop: (signal = stopSignal) => stop(signal)
  }
}

/** Starts a node of the service with a store in `folder`. */
export const serve = async (folder: string, options: ServeOptions = {}): Promise<Running> => {
  const port = await freePort()
  const token = options.token ?? randomBytes(32).toString("base64url")
  const env = {
    HOST: "127.0.0.1",
    PORT: String(port),
    DATA_DIR: folder,
    DISK_FREE_MIN: "0",
    // A measured mailbox takes more than strangers may deposit by default.
    MAILBOX_ANONYMOUS_BYTES_MAX: "1TiB",
    ADMIN_TOKEN: token,
    LOG_LEVEL: "warn",
    NODE_ENV: "production",
    ...options.env
  }
  const args = [join(options.build ?? root, "dist/bin/restante.js"), "serve"]
  const origin = `http://127.0.0.1:${port}`
  return startProgram(process.execPath, args, { env, origin, token, ready: `${origin}/readyz` })
}

/** Starts a server that is a script of this folder, with its port as the first argument. */
export const startScript = async (
  name: string,
  args: ReadonlyArray<string> = []
): Promise<Running> => {
  const port = await freePort()
  const script = fileURLToPath(new URL(name, import.meta.url))
  const origin = `http://127.0.0.1:${port}`
  const ready = `${origin}/`
  return startProgram(process.execPath, [script, String(port), ...args], { origin, ready })
}

export const servePeer = (): Promise<Running> => startScript("peer.js")

/**
 * Runs a script of this folder to its end, optionally by another Node or with options of Node;
 * resolves to its standard output.
 */
export const runScript = async (
  name: string,
  args: ReadonlyArray<string>,
  node = process.execPath,
  options: ReadonlyArray<string> = []
): Promise<string> => {
  const script = fileURLToPath(new URL(name, import.meta.url))
  const child = spawn(node, [...options, script, ...args], {
    env: { PATH: process.env["PATH"] ?? "" },
    stdio: ["ignore", "pipe", "inherit"]
  })
  running.add(child)
  let text = ""
  child.stdout.on("data", (chunk: Buffer) => text += String(chunk))
  const code = await new Promise((resolve) => child.once("close", resolve))
  running.delete(child)
  if (code !== 0) throw new Error(`${name} ended with ${String(code)}`)
  return text
}

/** Ensures that there is a NATS server, as for the tests. */
export const requireNats = async (): Promise<void> => {
  // A plain JavaScript module, which is not compiled.
  const { haveNatsServer } = await import(`${root}test/nats-server.mjs`) as {
    readonly haveNatsServer: () => boolean
  }
  if (!haveNatsServer()) throw new Error("there is no NATS server")
}
