/**
 * Group commit: the committer writes the pending commits of many actors as one group. An actor has
 * at most one commit in flight. Its decisions meanwhile join its next commit, so a busy actor can
 * decide more than one message for each disk flush.
 *
 * A group has commits of one stream of the store, and each stream has its own bounds, so a stream
 * without a leader delays no other stream. The committer answers each member as soon as it knows
 * the outcome.
 */
import { Exit } from "effect"
import { type StorageFailure, StorageUnavailable } from "../actor/index.ts"
import { failureOf, runWithin, storeInterrupted, type Timekeeping } from "../clock.ts"
import type { Limits } from "../limits.ts"
import type { CommitMetrics } from "../metrics.ts"
import type { Commit, CommitOutcome, StorageApi } from "../ports/index.ts"

/** The outcome of a commit, when it is certain whether the store has kept it. */
export type CertainOutcome = Extract<CommitOutcome, { readonly _tag: "Committed" | "Conflict" }>

/** An actor with a pending commit, as the committer sees it. */
export interface CommitSource {
  readonly shard: number
  /** Returns the pending commit, which is in flight from now on; undefined: there is none. */
  readonly takeCommit: () => Commit | undefined
  readonly committed: (outcome: CertainOutcome) => void
  /** `indeterminate`: the store may have kept the commit. */
  readonly commitFailed: (failure: StorageFailure, indeterminate: boolean) => void
}

/** The commits that wait for one stream of the store, and those in flight. */
class StreamQueue {
  waiting: Array<CommitSource> = []
  groups = 0
  /** Commits in flight that are not answered. */
  unanswered = 0

  get isIdle(): boolean {
    return this.waiting.length === 0 && this.groups === 0
  }

  take(count: number): ReadonlyArray<CommitSource> {
    const { waiting } = this
    this.waiting = waiting.slice(count)
    return waiting.length <= count ? waiting : waiting.slice(0, count)
  }
}

/** The members of a group; an answered member is undefined. */
type Members = Array<CommitSource | undefined>

export class Committer {
  private readonly time: Timekeeping
  private readonly storage: StorageApi
  private readonly limits: Limits
  private readonly metrics: CommitMetrics
  private readonly onFault: (cause: unknown) => void
  /** The queues, by the number of the stream. */
  private readonly streams: Array<StreamQueue | undefined> = []
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
    const at = this.storage.streamOf(actor.shard)
    const stream = this.streams[at] ??= new StreamQueue()
    stream.waiting.push(actor)
    this.schedule(stream)
  }

  /** Whether nothing waits and nothing is in flight. */
  get isIdle(): boolean {
    return this.streams.every((stream) => stream?.isIdle !== false)
  }

  /** Writes nothing more: waiting commits fail. Groups in flight are still answered. */
  stop(): void {
    this.stopped = true
    for (const stream of this.streams) if (stream !== undefined) this.schedule(stream)
  }

  /** How many commits the next group may have. */
  private room(stream: StreamQueue): number {
    const { commitsInFlightMax, groupCommitsMax, groupsInFlightMax } = this.limits
    const { groups, unanswered, waiting } = stream
    if (this.stopped) return waiting.length
    if (groups >= groupsInFlightMax) return 0
    return Math.min(waiting.length, groupCommitsMax, commitsInFlightMax - unanswered)
  }

  private schedule(stream: StreamQueue): void {
    if (this.scheduled || this.room(stream) <= 0) return
    this.scheduled = true
    // All decisions of this turn of the event loop join one group of their stream.
    setImmediate(this.flushAll)
  }

  private readonly flushAll = (): void => {
    this.scheduled = false
    for (const stream of this.streams) {
      if (stream !== undefined) this.flush(stream)
    }
  }

  private flush(stream: StreamQueue): void {
    const room = this.room(stream)
    if (room <= 0) return
    const members: Members = []
    const group: Array<Commit> = []
    for (const actor of stream.take(room)) {
      const commit = this.runIsolated(() => actor.takeCommit())
      if (commit === undefined) continue
      members.push(actor)
      group.push(commit)
    }
    if (this.stopped) {
      this.fail(members, new StorageUnavailable({ detail: "the node has stopped" }), false)
    } else if (group.length > 0) this.write(stream, members, group)
    this.schedule(stream)
  }

  private write(stream: StreamQueue, members: Members, group: ReadonlyArray<Commit>): void {
    const startedMs = performance.now()
    stream.groups++
    stream.unanswered += group.length
    const report = (at: number, outcome: CommitOutcome | undefined): void => {
      const actor = members[at]
      if (actor === undefined) return
      members[at] = undefined
      stream.unanswered--
      this.answer(actor, outcome)
    }
    const call = () =>
      this.storage.commit(group, (at, outcome) => {
        report(at, outcome)
        this.schedule(stream)
      })
    runWithin(this.time, call, this.limits.storageDeadlineMs, (exit) => {
      stream.groups--
      this.metrics.observe(group.length, performance.now() - startedMs)
      if (Exit.isSuccess(exit)) {
        // The store writes the next group while these members get their answers.
        this.flush(stream)
        for (let at = 0; at < members.length; at++) report(at, exit.value[at])
      } else {
        const left = members.splice(0)
        for (const actor of left) if (actor !== undefined) stream.unanswered--
        const failure = failureOf(exit.cause)
        if (failure === undefined) this.onFault(exit.cause)
        this.fail(left, failure ?? storeInterrupted(), failure === undefined)
      }
      this.schedule(stream)
    })
  }

  /** `outcome`: undefined if the store has reported none. */
  private answer(actor: CommitSource, outcome: CommitOutcome | undefined): void {
    switch (outcome?._tag) {
      case "Committed":
        return void this.runIsolated(() => actor.committed(outcome))
      case "Conflict":
        this.metrics.conflicts++
        return void this.runIsolated(() => actor.committed(outcome))
      case "Refused":
        return this.fail([actor], outcome.failure, false)
      default:
        return this.fail([actor], outcome?.failure ?? storeInterrupted(), true)
    }
  }

  private fail(
    members: Members,
    failure: StorageFailure,
    indeterminate: boolean
  ): void {
    for (const actor of members) {
      if (actor === undefined) continue
      this.metrics.failures++
      this.runIsolated(() => actor.commitFailed(failure, indeterminate))
    }
  }

  /** Reports an error of one actor, so that the other members of its group get their outcomes. */
  private runIsolated<A>(run: () => A): A | undefined {
    try {
      return run()
    } catch (cause) {
      this.onFault(cause)
      return
    }
  }
}
