/**
 * Owns Docker for a test: `child.js <host> <label> [<folder> <dockerd> <arguments>…]`. With a
 * folder and a command it starts the daemon. Its standard input ends whenever and however the
 * test's process ends. Then it removes everything with the label, the daemon and the folder.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { openSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { ask } from "./api.ts"

const endsWithinMs = 20_000
const logTail = 2_000

const [, , host = "", label = "", folder, program, ...args] = process.argv

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Removes all objects of one kind that have the label. */
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

/** A daemon leaves mounts behind, whether it ends or is killed. */
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

/** Starts the daemon; if it ends early, this process reports that and ends too. */
const startDaemon = (command: string, own: string): ChildProcess => {
  const log = openSync(join(own, "log"), "w")
  const daemon = spawn(command, args, { stdio: ["ignore", log, log] })
  const report = (what: string) => process.stderr.write(`${what.slice(-logTail)}\n`)
  daemon.once("error", (error) => report(error.message))
  daemon.once("exit", () => report(readFileSync(join(own, "log"), "utf8")))
  return daemon
}

// The process that reads the output may have ended.
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
