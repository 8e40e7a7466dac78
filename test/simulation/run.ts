/** One run of the simulation: runs a plan, then checks the invariants. */
import { cabinetKind, mailboxKind, sessionKind } from "../../actors/index.ts"
import { address, shardOf } from "../../runtime/actor/address.ts"
import { runClients } from "./clients.ts"
import { notificationAt, notificationIdOf, notificationParts } from "./notifications.ts"
import type { Operation, Plan } from "./plan.ts"
import { Records } from "./records.ts"
import { nothingKnown } from "./operations.ts"
import { judge, type Run, unsettled } from "./verdict.ts"
import { Invariants } from "./invariants.ts"
import { World, type WorldSeams } from "./world.ts"

/** The result of a run. */
export interface Result {
  /** The violated invariants. */
  readonly violations: ReadonlyArray<string>
  /** Digest of all events: equal for equal runs. */
  readonly hash: string
  readonly trace: ReadonlyArray<string>
  readonly operations: number
  readonly faults: ReadonlyMap<string, number>
  readonly simulatedMs: number
  /** Number of executed events. */
  readonly steps: number
}

export interface RunOptions {
  readonly keepsTrace?: boolean
  readonly seams?: WorldSeams
}

/** How long a cluster may take to become idle, and how often that is checked, ms. */
const REST_MAX_MS = 300_000
const REST_LOOK_MS = 2_000
/** How long clients may take to finish their operations. */
const ENDING_MS = 120_000

const shardsInUse: ReadonlySet<number> = new Set([
  ...[0, 1].map((at) => shardOf(address(mailboxKind, `mailbox-${at}`))),
  ...[0, 1].map((at) => shardOf(address(sessionKind, `session-${at}`))),
  shardOf(address(cabinetKind, "cabinet-0")),
  ...Array.from(
    { length: notificationParts },
    (_, at) => shardOf(notificationAt(notificationIdOf(at)))
  )
])

/** At the end one more client reads every resource while all nodes are healthy. */
const lastLooks = ({ nodes, operations }: Plan, atMs: number): ReadonlyArray<Operation> => {
  const base = {
    client: 0,
    atMs,
    mark: 1,
    choice: 0,
    nodes: Array.from({ length: nodes }, (_, at) => at)
  }
  const all: Array<Operation> = []
  for (const at of [0, 1]) {
    all.push(
      { ...base, resource: `mailbox/${at}`, verb: "read" },
      { ...base, resource: `mailbox/${at}`, verb: "describe" },
      { ...base, resource: `session/${at}`, verb: "describe" }
    )
  }
  all.push({ ...base, resource: "cabinet/0", verb: "describe" })
  const sends = operations.filter(({ verb }) => verb === "send").length
  for (let at = 0; at < sends; at++) {
    all.push({ ...base, choice: at / sends, resource: "notification", verb: "describe" })
  }
  for (let at = 0; at < 4; at++) {
    all.push({ ...base, choice: at / 4, resource: "registration/0", verb: "describe" })
  }
  return all
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
  world.begin(plan, shardsInUse)
  const clients = runClients(world, plan, records, known)
  await time.runUntil(plan.busyMs)
  world.heal()
  if (!await ends(world, clients)) world.violate("a client never ended")
  const restMs = time.nowMs + REST_MAX_MS
  while (unsettled(run) !== undefined && time.nowMs < restMs) {
    await time.runUntil(time.nowMs + REST_LOOK_MS)
  }
  const looks = { ...plan, operations: lastLooks(plan, time.nowMs) }
  if (!await ends(world, runClients(world, looks, records, known))) {
    world.violate("the last look never ended")
  }
}

/** Runs the plan; the same plan has the same result. */
export const simulate = async (
  plan: Plan,
  { keepsTrace = false, seams = {} }: RunOptions = {}
): Promise<Result> => {
  const world = new World(plan, keepsTrace, seams)
  const records = new Records()
  const run: Run = {
    plan,
    world,
    invariants: new Invariants(world, records),
    records,
    known: nothingKnown()
  }
  const giveBack = world.time.install()
  try {
    await play(plan, run)
    judge(run)
  } finally {
    giveBack()
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
