/**
 * The load generator: wrk with a Lua script and one thread. On two processors it leaves one to the
 * server. A generator in JavaScript would need more processor time than the server.
 */
import { execFile, spawnSync } from "node:child_process"
import { existsSync } from "node:fs"
import { root } from "./process.ts"

export interface Load {
  readonly origin: string
  /** A file of test/bench/load, without `.lua`. */
  readonly script: string
  readonly args?: ReadonlyArray<string>
  readonly connections: number
  readonly threads?: number
  readonly seconds: number
}

export interface Loaded {
  readonly requests: number
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** The script's own count. */
  readonly counted: number
}

const has = (program: string): boolean =>
  (process.env["PATH"] ?? "").split(":").some((folder) => existsSync(`${folder}/${program}`))

/** Ensures that there is wrk: installs it as root on Debian, else reports how to install it. */
export const requireWrk = (): void => {
  if (has("wrk")) return
  if (process.getuid?.() === 0 && has("apt-get")) {
    const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" }
    spawnSync("apt-get", ["-qq", "update"], { env, stdio: "ignore" })
    spawnSync("apt-get", ["-qq", "install", "-y", "wrk"], { env, stdio: "ignore" })
  }
  if (!has("wrk")) throw new Error("the load generator is missing: install wrk")
}

/** Version of wrk. */
export const wrkVersion = (): string =>
  /wrk (\S+)/.exec(String(spawnSync("wrk", ["--version"]).stdout))?.[1] ?? "unknown"

interface Summary extends Loaded {
  readonly refused: number
  readonly broken: number
}

/**
 * Runs wrk. Fails when a response has a status of 400 or more, or a connection broke, since such
 * figures are worthless.
 */
export const wrk = async (load: Load): Promise<Loaded> => {
  const args = [
    `-t${load.threads ?? 1}`,
    `-c${load.connections}`,
    `-d${load.seconds}s`,
    "--timeout=30s",
    `-s${root}test/bench/load/${load.script}.lua`,
    load.origin,
    "--",
    ...load.args ?? []
  ]
  const output = await new Promise<string>((resolve, reject) => {
    const done = (error: Error | null, text: string) =>
      error === null ? resolve(text) : reject(error)
    execFile(
      "wrk",
      args,
      { env: { ...process.env, LUA_PATH: `${root}test/bench/load/?.lua` } },
      done
    )
  })
  const line = /^RESULT (.*)$/m.exec(output)?.[1]
  if (line === undefined) throw new Error(`wrk did not end as it should:\n${output}`)
  // load/result.lua writes this line.
  const summary = JSON.parse(line) as Summary
  if (summary.refused > 0 || summary.broken > 0) {
    throw new Error(
      `${load.script}: ${summary.refused} refused, ${summary.broken} broken:\n${output}`
    )
  }
  return summary
}
