/**
 * Group commit: the pending commits of many actors are written as one group. An actor has at
 * most one commit in flight. What it decides meanwhile makes up its next one, so that a hot actor
 * is not limited to one message for each disk flush.
 */
import { Exit } from "effect"
import { type StorageFailure, StorageUnavailable } from "../actor/index.ts"
import { failureOf, runWithin, storeInterrupted, type Timekeeping } from "../clock.ts"
import type { Limits } from "../limits.ts"
import type { CommitMetrics } from "../metrics.ts"
import type { Commit, CommitOutcome, StorageApi } from "../ports/index.ts"

/** The outcome of a commit, when it is known. */
export type CertainOutcome = Exclude<CommitOutcome, { readonly _tag: "Indeterminate" }>

/** What the committer needs of an actor that has something to commit. */
export interface CommitSource {
  /** Returns the pending commit, which is in flight from now on; undefined: there is none. */
  readonly takeCommit: () => Commit | undefined
  readonly committed: (outcome: CertainOutcome) => void
  /** `indeterminate`: the store may have kept the commit. */
  readonly commitFailed: (failure: StorageFailure, indeterminate: boolean) => void
}

export class Committer {
  private readonly time: Timekeeping
  private readonly storage: StorageApi
  private readonly limits: Limits
  private readonly metrics: CommitMetrics
  private readonly onFault: (cause: unknown) => void
  private waiting: Array<CommitSource> = []
  private groupsInFlight = 0
  private scheduled = false
  private stopped = false

  constructor(
    time: Timekeeping,
    storage: StorageApi,
    limits: Limits,
    metrics: CommitMetrics,
    onFault: (cause: unknown) => void
  ) {
    this.time = time
    this.storage = storage
    this.limits = limits
    this.metrics = metrics
    this.onFault = onFault
  }

  /** Adds an actor to the next group; it must not join again before it is answered. */
  join(actor: CommitSource): void {
    this.waiting.push(actor)
    this.schedule()
  }

  /** Whether nothing waits and nothing is in flight. */
  get isIdle(): boolean {
    return this.waiting.length === 0 && this.groupsInFlight === 0
  }

  /** Writes nothing more: waiting commits fail. Groups in flight are still answered. */
  stop(): void {
    this.stopped = true
    this.schedule()
  }

  private room(): boolean {
    return this.waiting.length > 0 &&
      (this.stopped || this.groupsInFlight < this.limits.groupsInFlightMax)
  }

  private schedule(): void {
    if (this.scheduled || !this.room()) return
    this.scheduled = true
    // Everything that this turn of the event loop decides goes into one group.
    setImmediate(this.flush)
  }

  private readonly flush = (): void => {
    this.scheduled = false
    if (!this.room()) return
    const { groupCommitsMax, storageDeadlineMs } = this.limits
    const joined = this.waiting.slice(0, groupCommitsMax)
    this.waiting = this.waiting.slice(groupCommitsMax)
    const actors: Array<CommitSource> = []
    const group: Array<Commit> = []
    for (const actor of joined) {
      const commit = this.runIsolated(() => actor.takeCommit())
      if (commit === undefined) continue
      actors.push(actor)
      group.push(commit)
    }
    if (this.stopped) {
      this.fail(actors, new StorageUnavailable({ detail: "the node has stopped" }), false)
    } else if (group.length > 0) {
      const startedMs = performance.now()
      this.groupsInFlight++
      const call = () => this.storage.commit(group)
      runWithin(this.time, call, storageDeadlineMs, (exit) => {
        this.groupsInFlight--
        this.metrics.observe(actors.length, performance.now() - startedMs)
        // The waiting commits are written while these are answered.
        if (Exit.isSuccess(exit)) this.flush()
        this.answer(actors, exit)
        this.schedule()
      })
      return
    }
    this.schedule()
  }

  private answer(
    actors: ReadonlyArray<CommitSource>,
    exit: Exit.Exit<ReadonlyArray<CommitOutcome>, StorageFailure>
  ): void {
    if (Exit.isFailure(exit)) {
      const named = failureOf(exit.cause)
      if (named === undefined) this.onFault(exit.cause)
      return this.fail(actors, named ?? storeInterrupted(), named === undefined)
    }
    const outcomes = exit.value
    for (let at = 0; at < actors.length; at++) {
      const actor = actors[at]
      const outcome = outcomes[at]
      if (actor === undefined) continue
      if (outcome === undefined || outcome._tag === "Indeterminate") {
        this.fail([actor], storeInterrupted(), true)
        continue
      }
      if (outcome._tag === "Conflict") this.metrics.conflicts++
      this.runIsolated(() => actor.committed(outcome))
    }
  }

  private fail(
    actors: ReadonlyArray<CommitSource>,
    failure: StorageFailure,
    indeterminate: boolean
  ): void {
    this.metrics.failures++
    for (const actor of actors) this.runIsolated(() => actor.commitFailed(failure, indeterminate))
  }

  /** An error of one actor must not keep the others of its group from their outcomes. */
  private runIsolated<A>(run: () => A): A | undefined {
    try {
      return run()
    } catch (cause) {
      this.onFault(cause)
      return
    }
  }
}
