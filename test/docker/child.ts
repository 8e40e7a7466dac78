/**
 * Keeps a Docker for a test: `child.js <host> <label> [<folder> <dockerd> <arguments>…]`. Starts
 * the daemon, if it is told one. When its standard input ends, as it does however the test's
 * process ends, it removes all that bears the label, ends the daemon and removes the folder.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { openSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { ask } from "./api.ts"

const endsWithinMs = 20_000
const logTail = 2_000

const [, , host = "", label = "", folder, program, ...args] = process.argv

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Removes every thing of one sort; `id` is the name of the field that names it. */
const removeAll = async (sort: string, listing: string, how: string): Promise<void> => {
  const filters = encodeURIComponent(JSON.stringify({ label: [label] }))
  const { text } = await ask(host, "GET", `/${sort}/${listing}filters=${filters}`)
  const things: ReadonlyArray<{ readonly Id: string }> = JSON.parse(text)
  await Promise.all(things.map(({ Id }) => ask(host, "DELETE", `/${sort}/${Id}${how}`)))
}

const clear = async (): Promise<void> => {
  await removeAll("containers", "json?all=1&", "?force=1&v=1")
  await removeAll("networks", "?", "")
  await removeAll("images", "json?", "?force=1")
}

/** A daemon that is killed leaves mounts, and so does one that ends. */
const unmount = (below: string): void => {
  const mounts = readFileSync("/proc/self/mountinfo", "utf8").split("\n")
    .map((line) => line.split(" ")[4] ?? "").filter((path) => path.startsWith(`${below}/`))
  for (const path of mounts.toReversed()) spawnSync("umount", ["-l", path])
}

const end = async (daemon: ChildProcess | undefined): Promise<void> => {
  await clear().catch(() => undefined) // of a daemon that has ended
  if (daemon !== undefined && daemon.exitCode === null && daemon.signalCode === null) {
    const ended = new Promise((resolve) => daemon.once("exit", resolve))
    daemon.kill("SIGTERM")
    await Promise.race([ended, pause(endsWithinMs)])
    daemon.kill("SIGKILL")
  }
  if (folder !== undefined) {
    unmount(folder)
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
  process.exit(0)
}

/** The daemon, whose end before its time is told, and is the end of this process. */
const startDaemon = (command: string, own: string): ChildProcess => {
  const log = openSync(join(own, "log"), "w")
  const daemon = spawn(command, args, { stdio: ["ignore", log, log] })
  const tell = (what: string) => process.stderr.write(`${what.slice(-logTail)}\n`)
  daemon.once("error", (error) => tell(error.message))
  daemon.once("exit", () => tell(readFileSync(join(own, "log"), "utf8")))
  return daemon
}

// Whoever would read what is told may be gone.
process.stderr.on("error", () => undefined)
const daemon = program === undefined || folder === undefined
  ? undefined
  : startDaemon(program, folder)
let isEnding = false
const endOnce = () => {
  if (!isEnding) void end(daemon)
  isEnding = true
}
process.stdin.once("close", endOnce).once("end", endOnce).resume()
daemon?.once("error", endOnce).once("exit", endOnce)
