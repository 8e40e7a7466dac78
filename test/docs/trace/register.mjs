/**
 * `node --import …/register.mjs program`: the program writes a line `<node> <file> <function>` to
 * the file TRACE_FILE when one of the project's functions is called in its main thread. Several
 * processes may share the file: their lines are in order. Of calls of one function that follow
 * each other within TRACE_QUIET_MS, only the first is written.
 */
import { openSync, writeSync } from "node:fs"
import { register } from "node:module"
import { performance } from "node:perf_hooks"

const file = openSync(process.env["TRACE_FILE"] ?? "/dev/null", "a")

/** The name of this process, where several share the file. */
const node = process.env["TRACE_NODE"] ?? "-"

const quietMs = Number(process.env["TRACE_QUIET_MS"] ?? 0)

const lastMs = new Map()

globalThis.recordCall = (line) => {
  if (quietMs > 0) {
    const nowMs = performance.now()
    if (nowMs - (lastMs.get(line) ?? -Infinity) < quietMs) return
    lastMs.set(line, nowMs)
  }
  writeSync(file, `${node} ${line}`)
}

register("./instrument.mjs", import.meta.url)
