/**
 * The load generator: wrk with a Lua script, one thread. On two processors it leaves the server one
 * of its own, which a generator in JavaScript would not: that takes more than the server measured.
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
  /** What the script counted by itself. */
  readonly counted: number
}

const has = (program: string): boolean =>
  (process.env["PATH"] ?? "").split(":").some((folder) => existsSync(`${folder}/${program}`))

/** Makes sure that there is wrk: as root on Debian it is installed, elsewhere that is said. */
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
 * Runs it. Fails when a request was answered with 400 or more, or a connection broke: figures of
 * refused requests are worth nothing.
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
  // The line is written by load/result.lua.
  const summary = JSON.parse(line) as Summary
  if (summary.refused > 0 || summary.broken > 0) {
    throw new Error(
      `${load.script}: ${summary.refused} refused, ${summary.broken} broken:\n${output}`
    )
  }
  return summary
}
