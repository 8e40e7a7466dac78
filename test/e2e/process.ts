/**
 * The built binary as a process: started on a free port with its own folder, watched, killed,
 * stopped and restarted. {@link cleanUp} ends every process.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync,
  writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

/** Token of the account `admin` of every service in these tests. */
export const adminToken = "e2e-admin-token-0123456789abcdef"
/** The start of the services' URIs, whatever port they listen on. */
export const publicUrl = "http://post.test"

const root = fileURLToPath(new URL("../..", import.meta.url))
/** The built program. */
export const binary = join(root, "dist/bin/restante.js")
/** Three nodes that create a cluster's streams on a busy machine need more than 20 s. */
const readyWithinMs = 240_000
const endsWithinMs = 120_000
const pollMs = 20

export const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, ms))

/**
 * No wait fails before this time, in ms, since machines differ greatly in speed. The limit only
 * ends tests that hang.
 */
const hangMs = 60_000

/**
 * Fails with `what` unless the promise settles within `expectedMs`, or {@link hangMs} if longer.
 */
export const within = async <A>(
  expectedMs: number,
  what: string,
  promise: Promise<A>
): Promise<A> => {
  const ms = Math.max(expectedMs, hangMs)
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: not within ${ms} ms`)), ms)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Polls until the result is not undefined, for `expectedMs`, or {@link hangMs} if longer. */
export const eventually = async <A>(
  expectedMs: number,
  what: string,
  poll: () => Promise<A | undefined> | A | undefined,
  everyMs = pollMs
): Promise<A> => {
  const ms = Math.max(expectedMs, hangMs)
  const endMs = performance.now() + ms
  for (;;) {
    const answer = await poll()
    if (answer !== undefined) return answer
    if (performance.now() > endMs) throw new Error(`${what}: not within ${ms} ms`)
    await pause(everyMs)
  }
}

const running = new Set<ChildProcess>()
const folders = new Set<string>()

/** Creates an empty folder, which {@link cleanUp} removes. */
export const temporaryFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), "restante-e2e-"))
  folders.add(folder)
  return folder
}

/** The files of blobs that are too large for the service's database. */
export const blobFiles = (dataDir: string): ReadonlyArray<string> =>
  readdirSync(join(dataDir, "blobs"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))

/** Ends the processes of this module and removes its folders: for `afterAll`. */
export const cleanUp = (): void => {
  for (const child of running) child.kill("SIGKILL")
  for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  folders.clear()
}
process.on("exit", cleanUp)

/** How a process ended. */
export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

type Environment = Readonly<Record<string, string>>

/** A file with one key of stored secrets, or with more. */
export const keyFile = (...keys: ReadonlyArray<string>): string => {
  const file = join(temporaryFolder(), "secret-key")
  writeFileSync(file, `${keys.join("\n")}\n`, { mode: 0o600 })
  return file
}

/** A new folder with the key of stored secrets of another one, to restore its store into. */
export const folderWithKeyOf = (dataDir: string): string => {
  const folder = temporaryFolder()
  copyFileSync(join(dataDir, "secret-key"), join(folder, "secret-key"))
  return folder
}

/** The key of every cluster in these tests, whose nodes have folders of their own. */
const clusterKey = Buffer.alloc(32, "cluster").toString("base64")

/** Only the variables that Node needs, of the test's own environment. */
const environment = (added: Environment): Record<string, string> => ({
  PATH: process.env["PATH"] ?? "",
  HOME: process.env["HOME"] ?? "",
  ...added["NATS_URL"] === undefined ? {} : { SECRET_KEY_FILE: keyFile(clusterKey) },
  ...added
})

/** What each thread of a process waits for, to explain why it hangs; empty without /proc. */
const threadsOf = (pid: number): string => {
  const folder = `/proc/${pid}/task`
  if (!existsSync(folder)) return ""
  const read = (file: string) => {
    try {
      return readFileSync(join(folder, file), "utf8").trim()
    } catch {
      return "?"
    }
  }
  return readdirSync(folder)
    .map((task) => ["comm", "wchan", "syscall", "stat"].map((file) => read(`${task}/${file}`)))
    .map((facts) => facts.join(" | "))
    .join("\n")
}

/** A process with its output. */
export class Running {
  readonly child: ChildProcess
  readonly ended: Promise<Ended>
  private readonly parts: Array<string> = []

  constructor(command: string, args: ReadonlyArray<string>, added: Environment) {
    const child = spawn(command, args, {
      cwd: root,
      env: environment(added),
      stdio: ["ignore", "pipe", "pipe"]
    })
    this.child = child
    running.add(child)
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text: string) => this.parts.push(text))
    }
    this.ended = new Promise((resolve) => {
      child.on("error", (error) => this.parts.push(`${error.message}\n`))
      child.on("close", (code, signal) => {
        running.delete(child)
        resolve({ code, signal })
      })
    })
  }

  get pid(): number {
    const { pid } = this.child
    if (pid === undefined) throw new Error("the process was not started")
    return pid
  }

  /** Everything on standard output and standard error so far. */
  get output(): string {
    return this.parts.join("")
  }

  get isOver(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null
  }

  /** SIGKILL, like a crash. */
  async kill(): Promise<void> {
    this.child.kill("SIGKILL")
    await this.ended
  }

  /** Sends SIGTERM, and returns the exit. */
  async stop(): Promise<Ended> {
    this.child.kill("SIGTERM")
    return this.end()
  }

  /** Waits until the process ends. */
  end(ms = endsWithinMs): Promise<Ended> {
    return within(ms, `the process ends; it wrote:\n${this.output.slice(-4000)}`, this.ended)
  }
}

/** Runs a command of the binary to its end. */
export const command = async (
  args: ReadonlyArray<string>,
  added: Environment = {}
): Promise<Ended & { readonly output: string }> => {
  const one = new Running(process.execPath, [binary, ...args], added)
  const ended = await one.end()
  return { ...ended, output: one.output }
}

/** A service, by default on a port of its own choice. */
export class Service extends Running {
  readonly dataDir: string

  constructor(dataDir: string, added: Environment, script: ReadonlyArray<string>) {
    super(process.execPath, script, {
      PORT: "0",
      HOST: "127.0.0.1",
      DATA_DIR: dataDir,
      ADMIN_TOKEN: adminToken,
      BASE_URL: publicUrl,
      LOG_LEVEL: "warn",
      // A result must not depend on how full the disk of the machine is.
      DISK_FREE_MIN: "0",
      ...added
    })
    this.dataDir = dataDir
  }

  /** The port in its output; undefined before it listens. */
  get listening(): number | undefined {
    const [, port] = / on 127\.0\.0\.1:(\d+)/.exec(this.output) ?? []
    return port === undefined ? undefined : Number(port)
  }

  get port(): number {
    const { listening } = this
    if (listening === undefined) throw new Error(`the service does not listen:\n${this.output}`)
    return listening
  }

  /** The origin of the service, without a slash at its end. */
  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  async ready(): Promise<this> {
    let last = "it does not listen"
    const poll = async () => {
      if (this.isOver) throw new Error(`the service ended at its start:\n${this.output}`)
      if (this.listening === undefined) return undefined
      const response = await fetch(`${this.url}/readyz`)
      last = `${response.status} ${await response.text()}`
      return response.ok ? true : undefined
    }
    try {
      await eventually(readyWithinMs, "the service is ready", poll)
    } catch (cause) {
      if (this.isOver) throw cause
      const where = `${threadsOf(this.pid)}\n${this.output}`
      throw new Error(`the service is not ready: ${last}\n${where}`, { cause })
    }
    return this
  }
}

interface Launch {
  /** A new one by default. */
  readonly dataDir?: string
  readonly env?: Environment
  /** Arguments of Node; the binary's `serve` by default. */
  readonly script?: ReadonlyArray<string>
}

/** Starts a service without waiting for it. */
export const launch = (options: Launch = {}): Service => {
  if (!existsSync(binary)) throw new Error("dist/ is missing: run tsc -b first")
  const dataDir = options.dataDir ?? temporaryFolder()
  return new Service(dataDir, options.env ?? {}, options.script ?? [binary, "serve"])
}

/** Starts a service and waits until it is ready. */
export const start = (options: Launch = {}): Promise<Service> => launch(options).ready()
