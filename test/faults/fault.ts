/** Faults of a service under load, and the time until it serves again. */
import { expect } from "vitest"
import { eventually, pause } from "../e2e/process.ts"
import type { ReplicaHealth } from "../runtime/nats/servers.ts"
import type { Random } from "./random.ts"
import { printRecoveryTime, recoveredWithinMs } from "./recovery-times.ts"
import type { RunStatistics } from "./run-statistics.ts"
import type { Workload } from "./workload.ts"

const healthCheckMs = 300
/** After this time, and again after twice this time, a replica that is still behind needs help. */
const stuckAfterMs = 30_000
/** Least number of responses between two faults. */
const responsesBetween = 60
const underLoadWithinMs = 120_000

export interface Fault {
  /** The name for output and statistics. */
  readonly name: string
  readonly inject: () => Promise<unknown>
  readonly undo: () => Promise<unknown>
  /** Limit until all used nodes serve despite the fault; undefined where they cannot. */
  readonly servedWithinMs: number | undefined
  /** The time that the fault then continues. */
  readonly durationMs: number
  /** No request may fail meanwhile. */
  readonly isTransparent?: true
}

/** The system under load. */
export interface FaultTarget {
  /** URLs of the nodes that clients use now. */
  readonly urls: () => ReadonlyArray<string>
  readonly health: () => Promise<ReplicaHealth>
  /** Makes another server the leader of a stream. */
  readonly stepDown?: (stream: string) => Promise<void>
  /** Starts the server of this name again. */
  readonly restartServer?: (name: string) => Promise<void>
  /** The last output of every process, for a failed test. */
  readonly logs: string
}

/** Chooses a fault when the whole system is healthy. */
export type ChooseFault = (random: Random) => Promise<Fault> | Fault

/** The faults of these names, in this order. */
export const faultsNamed = (
  all: Readonly<Record<string, ChooseFault>>,
  names: ReadonlyArray<string>
): ReadonlyArray<ChooseFault> =>
  names.map((name) => {
    const choose = all[name]
    if (choose === undefined) throw new Error(`no fault is called ${name}`)
    return choose
  })

export interface FaultRun {
  readonly target: FaultTarget
  readonly load: Workload
  readonly statistics: RunStatistics
}

/**
 * NATS left a replica behind for two minutes, twice in hundreds of runs on a machine without idle
 * time, although the other replicas had caught up. It got nothing at all: it was thousands of
 * messages behind, and more each second. Once a new leader brought it up to date, once it did not.
 * So first the leader steps down, and then the server of the replica starts again, as an operator
 * would do it.
 */
const helpReplicas = async (
  { restartServer, stepDown }: FaultTarget,
  behind: ReadonlyMap<string, string>,
  isFirstHelp: boolean
): Promise<void> => {
  for (const [replica, how] of behind) {
    const [stream = "", server = ""] = replica.split(" at ")
    const help = isFirstHelp ? "its leader steps down" : "its server starts again"
    process.stderr.write(`${replica} is behind ${how}: ${help}\n`)
    await (isFirstHelp ? stepDown?.(stream) : restartServer?.(server))?.catch(() => undefined)
  }
}

/**
 * Waits until every stream has a leader, and every replica has caught up once; else the next fault
 * would be a second one. Under load a replica that has caught up is often one message behind.
 */
const waitUntilHealthy = async (target: FaultTarget): Promise<void> => {
  let unavailable: ReadonlyArray<string> = []
  let behind: ReadonlyMap<string, string> | undefined
  let helps = 0
  const beganMs = performance.now()
  const isHealthy = async () => {
    const now = await target.health()
    const before = unavailable.length > 0 ? undefined : behind
    unavailable = now.unavailable
    behind = new Map([...now.behind].filter(([replica]) => before?.has(replica) !== false))
    if (unavailable.length + behind.size === 0) return true
    if (helps < 2 && performance.now() > beganMs + (helps + 1) * stuckAfterMs) {
      helps += 1
      await helpReplicas(target, behind, helps === 1)
    }
    return undefined
  }
  await eventually(recoveredWithinMs, "every replica is current", isHealthy, healthCheckMs).catch(
    (cause: unknown) => {
      const left = [...unavailable, ...[...behind ?? []].map((replica) => replica.join(" "))]
      throw new Error(`not current or not available: ${left.join(", ")}`, { cause })
    }
  )
}

/** Injects the chosen faults and ends them; after each one all nodes must serve again. */
export const injectFault = async (
  { target, load, statistics }: FaultRun,
  choose: ChooseFault
): Promise<void> => {
  await load.withLongPauses(() => waitUntilHealthy(target))
  // On a slow machine, too, the service has processed some requests before the fault.
  const before = load.acknowledged
  const isBusy = () => load.acknowledged > before + responsesBetween || undefined
  await eventually(underLoadWithinMs, "the service is under load", isBusy)
  const fault = await choose(load.random)
  const { durationMs, servedWithinMs, name } = fault
  const failedBefore = load.recorder.failed
  statistics.countFault(name)
  await fault.inject()
  const waitUntilServed = (withinMs: number) =>
    load.withLongPauses(() => load.waitUntilServed(target.urls(), withinMs))
  if (servedWithinMs !== undefined) {
    printRecoveryTime(name, await waitUntilServed(servedWithinMs))
  }
  await load.withLongPauses(() => pause(durationMs))
  await fault.undo()
  printRecoveryTime(`${name}, and undone`, await waitUntilServed(recoveredWithinMs))
  if (fault.isTransparent === true) {
    const failed = load.recorder.failed - failedBefore
    expect(failed, `${load.recentFailures.slice(-5).join("\n")}\n${target.logs}`).toBe(0)
  }
}
