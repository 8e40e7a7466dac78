/** One run of the simulation: runs a plan, then checks the invariants. */
import { randomId } from "../../http/auth/credentials/index.ts"
import type { RunResult } from "../../runtime/testing/index.ts"
import { checkRun, type Run, unfinishedWork } from "./checker.ts"
import { runClients } from "./clients.ts"
import { collectOrphans, mayHaveOrphans } from "./contents.ts"
import { Invariants } from "./invariants.ts"
import { nothingKnown } from "./operations.ts"
import { contentsCount, crossings, type Operation, type Plan } from "./plan.ts"
import { Records } from "./records.ts"
import { shardsInUse } from "./shards.ts"
import { fill } from "./volume.ts"
import { World, type WorldSeams } from "./world.ts"

export interface RunOptions {
  readonly keepsTrace?: boolean
  readonly seams?: WorldSeams
}

/** How long a cluster may take to become idle, and how often that is checked, ms. */
const REST_MAX_MS = 300_000
const REST_LOOK_MS = 2_000
/** How long clients may take to finish their operations. */
const ENDING_MS = 120_000

/** An operation at the end, while all nodes are healthy. */
const lastOperation = ({ nodes }: Plan, atMs: number) => ({
  client: 0,
  atMs,
  mark: 1,
  choice: 0,
  nodes: Array.from({ length: nodes }, (_, at) => at)
})

const everyContent = (plan: Plan, atMs: number, verb: string): ReadonlyArray<Operation> =>
  Array.from({ length: contentsCount }, (_, at) => ({
    ...lastOperation(plan, atMs),
    resource: `content/${at}`,
    verb
  }))

const everyKeyedDeposit = (plan: Plan, atMs: number): ReadonlyArray<Operation> =>
  plan.operations.filter(({ verb }) => verb === "deposit-once").map(({ mark, resource }) => ({
    ...lastOperation(plan, atMs),
    resource,
    mark,
    verb: "deposit-again"
  }))

/** At the end one more client reads every resource. */
const lastLooks = (plan: Plan, atMs: number): ReadonlyArray<Operation> => {
  const { operations } = plan
  const base = lastOperation(plan, atMs)
  const all: Array<Operation> = []
  for (const at of [0, 1]) {
    all.push(
      { ...base, resource: `mailbox/${at}`, verb: "read" },
      { ...base, resource: `mailbox/${at}`, verb: "describe" },
      { ...base, resource: `session/${at}`, verb: "describe" }
    )
  }
  for (const at of crossings) {
    all.push({ ...base, resource: `session/${at}`, verb: "describe" })
  }
  all.push({ ...base, resource: "cabinet/0", verb: "describe" })
  const sends = operations.filter(({ verb }) => verb === "send").length
  for (let at = 0; at < sends; at++) {
    all.push({ ...base, choice: at / sends, resource: "notification", verb: "describe" })
  }
  for (let at = 0; at < 4; at++) {
    all.push({ ...base, choice: at / 4, resource: "registration/0", verb: "describe" })
  }
  all.push({ ...base, resource: "customer/0", verb: "list everywhere" })
  return [...all, ...everyContent(plan, atMs, "read")]
}

/** Advances time until the promise settles; false if it never does. */
const ends = async ({ time }: World, what: Promise<void>): Promise<boolean> => {
  const state = { isOver: false }
  void what.then(() => void (state.isOver = true))
  const untilMs = time.nowMs + ENDING_MS
  while (!state.isOver && time.nowMs < untilMs) await time.runUntil(time.nowMs + REST_LOOK_MS)
  return state.isOver
}

const play = async (plan: Plan, run: Run): Promise<void> => {
  const { known, records, world } = run
  const { time } = world
  if (plan.waiting > 0) fill(world.store.inner, plan.waiting)
  world.begin(plan, shardsInUse)
  const clients = runClients(world, plan, records, known)
  await time.runUntil(plan.busyMs)
  world.heal()
  if (!await ends(world, clients)) world.violate("a client never ended")
  // A commit that is stored late may set timers, and its actor cannot be loaded before.
  await time.runUntil(Math.max(time.nowMs, world.store.settledMs))
  const rest = async (): Promise<void> => {
    const restMs = time.nowMs + REST_MAX_MS
    while (unfinishedWork(run) !== undefined && time.nowMs < restMs) {
      await time.runUntil(time.nowMs + REST_LOOK_MS)
    }
  }
  await rest()
  const perform = async (what: string, operations: ReadonlyArray<Operation>): Promise<void> => {
    const ended = await ends(world, runClients(world, { ...plan, operations }, records, known))
    if (!ended) world.violate(`${what} never ended`)
  }
  await perform("a repetition", [
    ...everyContent(plan, time.nowMs, "repeat"),
    ...everyKeyedDeposit(plan, time.nowMs)
  ])
  // A repeated deposit may be a new one. Its push waits for a registration whose commit is late.
  await rest()
  // Waiting until they are settled takes long.
  if (mayHaveOrphans(world)) {
    await time.runUntil(Math.max(time.nowMs, world.blobs.settledMs))
    if (!await ends(world, collectOrphans(world))) world.violate("a collection never ended")
  }
  await perform("the last look", lastLooks(plan, time.nowMs))
}

/** Runs the plan; the same plan has the same result. */
export const simulate = async (
  plan: Plan,
  { keepsTrace = false, seams = {} }: RunOptions = {}
): Promise<RunResult> => {
  const world = new World(plan, keepsTrace, seams)
  const records = new Records()
  const run: Run = {
    plan,
    world,
    invariants: new Invariants(world, records),
    records,
    known: nothingKnown()
  }
  const restore = world.time.install(randomId)
  try {
    await play(plan, run)
    checkRun(run)
  } finally {
    restore()
  }
  return {
    violations: world.violations,
    hash: world.trace.hash,
    trace: world.trace.lines,
    operations: run.records.count,
    faults: world.faults,
    simulatedMs: world.time.nowMs,
    steps: world.time.steps
  }
}
