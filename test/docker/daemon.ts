/**
 * Docker for a test: the daemon of this machine, or one that the test starts. Everything that the
 * test creates has a label, and is removed however the test ends.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { eventually, within } from "../e2e/process.ts"
import { ask } from "./api.ts"

const answersWithinMs = 5_000
const upWithinMs = 40_000
const endsWithinMs = 90_000
const pollMs = 100
/** The compiled program that removes everything at the end. */
export const keeper = fileURLToPath(new URL("../../dist/test/docker/child.js", import.meta.url))
const socketOfAll = "/var/run/docker.sock"

export interface Docker {
  /** In the form of DOCKER_HOST. */
  readonly host: string
  /** The label of everything that the test creates. */
  readonly label: { readonly name: string; readonly value: string }
  /** Removes everything with the label, and ends a daemon that the test started. */
  readonly end: () => Promise<void>
}

const answers = (host: string): Promise<boolean> =>
  ask(host, "GET", "/_ping", answersWithinMs).then(({ status }) => status === 200, () => false)

/** The daemon that answers at DOCKER_HOST (a socket, or TCP without TLS) or the default socket. */
export const runningDocker = async (): Promise<string | undefined> => {
  const host = process.env["DOCKER_HOST"] ?? `unix://${socketOfAll}`
  return await answers(host) ? host : undefined
}

/** Uses the daemon at `host`; starts it if `daemon` gives a command. */
const keep = async (host: string, daemon: ReadonlyArray<string> = []): Promise<Docker> => {
  if (!existsSync(keeper)) throw new Error("dist/ is missing: run tsc -b first")
  const label = { name: "restante.test", value: `${process.pid}-${Date.now()}` }
  const args = [keeper, host, `${label.name}=${label.value}`, ...daemon]
  // In a separate session, so that it survives a signal to the test's process group.
  const child = spawn(process.execPath, args, { detached: true, stdio: ["pipe", "ignore", "pipe"] })
  const ended = once(child, "close")
  let reported = ""
  child.stderr.setEncoding("utf8").on("data", (text: string) => reported += text)
  child.stdin.on("error", () => undefined)
  const end = async () => {
    child.stdin.end()
    await within(endsWithinMs, "nothing is left in Docker", ended)
  }
  await eventually(upWithinMs, "there is a Docker", async () => {
    if (child.exitCode !== null || reported !== "") throw new Error(`dockerd ended: ${reported}`)
    return await answers(host) ? true : undefined
  }, pollMs).catch((error: unknown) => end().then(() => Promise.reject(error)))
  return { host, label, end }
}

export const useDocker = (host: string): Promise<Docker> => keep(host)

/**
 * Starts a daemon that changes neither the machine's firewall nor files of another daemon. It needs
 * root, control groups and namespaces; otherwise it fails with the daemon's output.
 */
export const startDocker = (program: string): Promise<Docker> => {
  const folder = mkdtempSync(join(tmpdir(), "restante-docker-"))
  const host = `unix://${join(folder, "socket")}`
  return keep(host, [
    ...[folder, program, "-H", host, "--pidfile", join(folder, "pid")],
    ...["--data-root", join(folder, "data"), "--exec-root", join(folder, "exec")],
    ...["--bridge", "none", "--iptables=false", "--ip6tables=false", "--ip-forward=false"]
  ])
}
