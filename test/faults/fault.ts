/** What may happen to a service under load, and how soon it serves again. */
import { expect } from "vitest"
import { eventually, pause } from "../e2e/process.ts"
import { healedWithinMs, told } from "./bounds.ts"
import type { Random } from "./random.ts"
import type { Tally } from "./tally.ts"
import type { Workload } from "./workload.ts"

const wholeAskedMs = 300
/** Answers between two faults, at the least. */
const requestsBetween = 60
const busyWithinMs = 60_000

export interface Fault {
  /** For what is told and counted of it. */
  readonly what: string
  readonly strike: () => Promise<unknown>
  readonly mend: () => Promise<unknown>
  /** How soon all nodes that are asked serve although it lasts; undefined where they cannot. */
  readonly servedWithinMs: number | undefined
  /** How long it lasts after that. */
  readonly lastsMs: number
  /** Nobody may be answered with an error meanwhile. */
  readonly refusesNobody?: true
}

/** What is under load. */
export interface Ground {
  /** Of the nodes that clients ask now. */
  readonly urls: () => ReadonlyArray<string>
  /** Whether no copy is behind and each has its leader: else a fault would be the second one. */
  readonly isWhole: () => Promise<boolean>
  /** The last of what every process wrote, for a test that fails. */
  readonly logs: string
}

/** Chooses a fault when everything is whole. */
export type Choose = (random: Random) => Promise<Fault> | Fault

/** Those of these names, in this order. */
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
  readonly ground: Ground
  readonly load: Workload
  readonly tally: Tally
}

/** Strikes as was chosen, and mends; all nodes serve again after each that lets them. */
export const suffer = async (
  { ground, load, tally }: UnderLoad,
  choose: Choose
): Promise<void> => {
  const isWhole = async () => await ground.isWhole() || undefined
  await eventually(healedWithinMs, "everything is whole", isWhole, wholeAskedMs)
  // However slow the machine is, what strikes finds a service that has done something.
  const before = load.acknowledged
  const isBusy = () => load.acknowledged > before + requestsBetween || undefined
  await eventually(busyWithinMs, "the service is under load", isBusy)
  const fault = await choose(load.random)
  const { lastsMs, servedWithinMs, what } = fault
  const refused = load.recorder.refused
  tally.strikes(what)
  await fault.strike()
  if (servedWithinMs !== undefined) {
    told(what, await load.servedAgain(ground.urls(), servedWithinMs))
  }
  await pause(lastsMs)
  await fault.mend()
  told(`${what}, and mended`, await load.servedAgain(ground.urls(), healedWithinMs))
  if (fault.refusesNobody === true) {
    const recently = load.recorder.refused - refused
    expect(recently, `${load.refusals.slice(-5).join("\n")}\n${ground.logs}`).toBe(0)
  }
}
