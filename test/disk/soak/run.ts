/** A steady load, and samples of the process that serves it. */
import { readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { pause, type Service } from "../../e2e/process.ts"
import type { Sample } from "./checker.ts"
import type { Load } from "./load.ts"

const WORKERS = 48
const TICK_MS = 10
/** Most operations in flight; above it operations start late, and count as late. */
const UNDER_WAY_MAX = 2_000

/** Measures operations per second with clients that never pause. */
export const maximumOf = async (load: Load, forMs: number): Promise<number> => {
  const startedMs = performance.now()
  const before = load.operations
  const worker = async () => {
    while (performance.now() - startedMs < forMs) await load.one()
  }
  await Promise.all(Array.from({ length: WORKERS }, worker))
  return (load.operations - before) * 1000 / (performance.now() - startedMs)
}

const bytesIn = (folder: string): number =>
  readdirSync(folder, { recursive: true, withFileTypes: true }).reduce((sum, entry) => {
    if (!entry.isFile()) return sum
    // Files appear and disappear during the count.
    const found = statSync(join(entry.parentPath, entry.name), { throwIfNoEntry: false })
    return sum + (found?.size ?? 0)
  }, 0)

const residentBytes = (pid: number): number => {
  const [, kilobytes = "0"] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ??
    []
  return Number(kilobytes) * 1024
}

const quantile = (sorted: ReadonlyArray<number>, part: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0

export interface Steady {
  readonly perSecond: number
  readonly forMs: number
  readonly everyMs: number
}

/** Latencies start when an operation is due, so that they include queueing. */
export const steady = async (
  load: Load,
  service: Service,
  { everyMs, forMs, perSecond }: Steady,
  sampled: (sample: Sample) => void
): Promise<void> => {
  let times: Array<number> = []
  const underWay = new Set<Promise<void>>()
  const one = async (dueMs: number) => {
    await load.one()
    times.push(performance.now() - dueMs)
  }
  const begin = (dueMs: number) => {
    const going = one(dueMs)
    underWay.add(going)
    void going.then(() => underWay.delete(going))
  }
  const startedMs = performance.now()
  let begun = 0
  let lastMs = startedMs
  for (;;) {
    const nowMs = performance.now()
    const due = Math.floor((nowMs - startedMs) * perSecond / 1000)
    const more = Math.min(due - begun, UNDER_WAY_MAX - underWay.size)
    for (let n = 0; n < more; n++) begin(startedMs + begun++ * 1000 / perSecond)
    if (nowMs - lastMs >= everyMs) {
      lastMs = nowMs
      const sorted = times.sort((one, other) => one - other)
      times = []
      sampled({
        atMs: nowMs - startedMs,
        operations: sorted.length,
        p50Ms: quantile(sorted, 0.5),
        p99Ms: quantile(sorted, 0.99),
        rssBytes: residentBytes(service.pid),
        files: readdirSync(`/proc/${service.pid}/fd`).length,
        diskBytes: bytesIn(service.dataDir),
        liveBytes: load.liveBytes
      })
    }
    if (nowMs - startedMs > forMs) break
    await pause(TICK_MS)
  }
  await Promise.all(underWay)
}
