/**
 * The store of all nodes, by the contract of the storage port: it stores commits atomically and in
 * their order. Nodes may receive the outcomes late or never.
 */
import { Effect } from "effect"
import { keyOf } from "../../runtime/actor/address.ts"
import { StorageUnavailable } from "../../runtime/actor/errors.ts"
import { makeMemoryStorage } from "../../runtime/memory/storage.ts"
import type { Commit, CommitOutcome, StorageApi } from "../../runtime/ports/storage.ts"
import type { Noise } from "./plan.ts"
import type { Computer, VirtualTime } from "./time.ts"
import type { Trace } from "./trace.ts"

/** A node's connection to the store. */
export interface Line {
  readonly storage: StorageApi
  /** Calls before this time arrive at this time. */
  cutUntilMs: number
}

/** Called for each commit that the store has applied or rejected. */
export interface Applied {
  readonly computer: Computer
  readonly commit: Commit
  readonly outcome: CommitOutcome
}

type Commits = Effect.Effect<ReadonlyArray<CommitOutcome>, StorageUnavailable>
/** Applies one commit to the store; tests plant bugs here. */
export type Apply = (inner: StorageApi, commit: Commit, later: Later) => CommitOutcome
/** Runs a function on the node of the commit, if the node still runs. */
export type Later = (delayMs: number, run: () => void) => void

export const faithful = (inner: StorageApi, commit: Commit): CommitOutcome => {
  const [outcome] = Effect.runSync(inner.commit([commit]))
  if (outcome === undefined) throw new Error("a commit has no outcome")
  return outcome
}

/** Shortest and longest duration of a commit that hangs, ms. */
const LATE_MIN_MS = 1_000
const LATE_MAX_MS = 40_000
const WAY_MS = 6

export class SharedStore {
  readonly inner: StorageApi
  noise: Noise
  /** The store has no leader, and answers no node, before this time. */
  stalledUntilMs = 0
  onApplied: (applied: Applied) => void = () => {}
  private readonly time: VirtualTime
  private readonly trace: Trace
  private readonly apply: Apply

  constructor(time: VirtualTime, trace: Trace, noise: Noise, apply: Apply) {
    this.time = time
    this.trace = trace
    this.noise = noise
    this.apply = apply
    this.inner = makeMemoryStorage()
  }

  connect(computer: Computer): Line {
    const { inner, time } = this
    let arrivedMs = 0
    const wayMs = (): number => {
      const stallMs = Math.max(this.stalledUntilMs, line.cutUntilMs) - time.nowMs
      return Math.max(0, stallMs) + 0.1 + time.random() * (WAY_MS + this.noise.slowMs / 2)
    }
    const fails = Effect.fail(new StorageUnavailable({ detail: "as simulated" }))
    /** A read of the store. */
    const read = <A>(make: () => Effect.Effect<A, unknown>): Effect.Effect<A, StorageUnavailable> =>
      Effect.callback((resume) => {
        const lot = time.random()
        if (lot < this.noise.readHangs) return this.trace.note("store", "a read hangs")
        time.later(wayMs(), () => {
          if (lot < this.noise.readHangs + this.noise.readFails) {
            time.on(computer, wayMs(), () => resume(fails))
            return
          }
          const exit = Effect.runSyncExit(make()) as Effect.Effect<A, StorageUnavailable>
          time.on(computer, wayMs(), () => resume(exit))
        })
      })
    const commit = (group: ReadonlyArray<Commit>): Commits =>
      Effect.callback((resume) => {
        const fate = this.fate()
        // Calls arrive in their order, unless they hang.
        const onTime = Math.max(arrivedMs, time.nowMs + wayMs())
        const isLate = fate === "late" || fate === "silent"
        const atMs = isLate
          ? time.nowMs + LATE_MIN_MS + time.random() * (LATE_MAX_MS - LATE_MIN_MS)
          : onTime
        if (!isLate) arrivedMs = onTime
        if (fate === "never") return this.trace.note("store", `${computer.name}: a group is lost`)
        time.later(atMs - time.nowMs, () => {
          if (fate === "fails") {
            this.trace.note("store", `${computer.name}: a group fails`)
            time.on(computer, wayMs(), () => resume(fails))
            return
          }
          const done = group.map((one) => this.take(computer, one))
          if (fate === "lost" || fate === "silent") return
          const outcomes = Effect.succeed(done.map(({ outcome }) => outcome))
          time.on(computer, wayMs(), () => resume(outcomes))
        })
      })
    const line: Line = {
      cutUntilMs: 0,
      storage: {
        engine: inner.engine,
        streamOf: inner.streamOf,
        commit,
        load: (address) => read(() => inner.load(address)),
        read: (address, from, limit) => read(() => inner.read(address, from, limit)),
        timers: (shard, limit) => read(() => inner.timers(shard, limit)),
        scan: (kind, after, limit) => read(() => inner.scan(kind, after, limit)),
        health: Effect.void
      }
    }
    return line
  }

  /**
   * `fails`: not stored; `lost`: stored, not answered; `late`, `silent`: stored much later, with or
   * without an answer; `never`: neither stored nor answered.
   */
  private fate(): "kept" | "fails" | "lost" | "late" | "silent" | "never" {
    const { commitFails, commitHangs, commitLost } = this.noise
    let lot = this.time.random()
    if ((lot -= commitFails) < 0) return "fails"
    if ((lot -= commitLost) < 0) return "lost"
    if ((lot -= commitHangs) >= 0) return "kept"
    const kind = this.time.random()
    return kind < 0.4 ? "late" : kind < 0.8 ? "silent" : "never"
  }

  private take(computer: Computer, commit: Commit): Applied {
    const outcome = this.apply(this.inner, commit, (ms, run) => this.time.on(computer, ms, run))
    const applied = { computer, commit, outcome }
    this.trace.note("store", () => {
      const { append, expected, state, timer } = commit
      const what = `${keyOf(commit.address)} r${expected} +${append.length} timer ${timer}`
      return `${computer.name}: ${what} ${state ?? ""} ${outcome._tag}`
    })
    this.onApplied(applied)
    return applied
  }
}
