/** Faults of a service under load, and the time until it serves again. */
import { expect } from "vitest"
import { eventually, pause } from "../e2e/process.ts"
import { healedWithinMs, printTime } from "./bounds.ts"
import type { Random } from "./random.ts"
import type { Tally } from "./tally.ts"
import type { Workload } from "./workload.ts"

const healthCheckMs = 300
/** Least number of responses between two faults. */
const requestsBetween = 60
const busyWithinMs = 120_000

export interface Fault {
  /** The name for output and statistics. */
  readonly what: string
  readonly inject: () => Promise<unknown>
  readonly undo: () => Promise<unknown>
  /** Limit until all used nodes serve despite the fault; undefined where they cannot. */
  readonly servedWithinMs: number | undefined
  /** The time that the fault then continues. */
  readonly lastsMs: number
  /** No request may fail meanwhile. */
  readonly refusesNobody?: true
}

/** The system under load. */
export interface FaultTarget {
  /** URLs of the nodes that clients use now. */
  readonly urls: () => ReadonlyArray<string>
  /** Whether every replica is current and has a leader; else the next fault would be a second. */
  readonly isHealthy: () => Promise<boolean>
  /** The last output of every process, for a failed test. */
  readonly logs: string
}

/** Chooses a fault when the whole system is healthy. */
export type Choose = (random: Random) => Promise<Fault> | Fault

/** The faults of these names, in this order. */
export const chosen = (
  all: Readonly<Record<string, Choose>>,
  names: ReadonlyArray<string>
): ReadonlyArray<Choose> =>
  names.map((name) => {
    const choose = all[name]
    if (choose === undefined) throw new Error(`no fault is called ${name}`)
    return choose
  })

export interface UnderLoad {
  readonly target: FaultTarget
  readonly load: Workload
  readonly tally: Tally
}

/** Injects the chosen faults and ends them; after each one all nodes must serve again. */
export const injectFault = async (
  { target, load, tally }: UnderLoad,
  choose: Choose
): Promise<void> => {
  const isHealthy = async () => await target.isHealthy() || undefined
  await eventually(healedWithinMs, "everything is whole", isHealthy, healthCheckMs)
  // On a slow machine, too, the service has processed some requests before the fault.
  const before = load.acknowledged
  const isBusy = () => load.acknowledged > before + requestsBetween || undefined
  await eventually(busyWithinMs, "the service is under load", isBusy)
  const fault = await choose(load.random)
  const { lastsMs, servedWithinMs, what } = fault
  const refused = load.recorder.refused
  tally.strikes(what)
  await fault.inject()
  if (servedWithinMs !== undefined) {
    printTime(what, await load.servedAgain(target.urls(), servedWithinMs))
  }
  await pause(lastsMs)
  await fault.undo()
  printTime(`${what}, and mended`, await load.servedAgain(target.urls(), healedWithinMs))
  if (fault.refusesNobody === true) {
    const recently = load.recorder.refused - refused
    expect(recently, `${load.refusals.slice(-5).join("\n")}\n${target.logs}`).toBe(0)
  }
}
